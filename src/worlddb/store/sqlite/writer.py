"""Writer: the SQL of every write, inside the one write transaction.

Every change of a projection leaves what it said before in `history`; only the first value of a
commit is kept, so a reader of an earlier commit never sees the middle of this one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import apsw

from worlddb.language.words import indexed
from worlddb.model.address import Id, short_key
from worlddb.model.records import Direction
from worlddb.store.protocol import (
    ROOT_ROW,
    CommitRow,
    ConflictRow,
    EdgeRow,
    Head,
    ProposalRow,
    SetChange,
)
from worlddb.store.sqlite.connection import CACHE_KIB
from worlddb.store.sqlite.erasing import Erasing
from worlddb.store.sqlite.kept import KeptPages
from worlddb.store.sqlite.lookups import LEFT_LOOKUPS
from worlddb.store.sqlite.reader import SqliteReader
from worlddb.store.sqlite.schema import (
    DEFERRED_INDEXES,
    INDEX_TEXTS,
    USUAL_HASH_BYTES,
    USUAL_MERGE,
    guards,
)
from worlddb.store.sqlite.sets import encode, size_of

BULK_HASH_BYTES = 64 << 20
SORTING_CACHE_KIB = 2_000
BULK_GUARDS = ("nodes_guard_insert", "edges_guard_insert", "pages_guard_insert")


TEXTS_KEPT_MAX = 2_000_000
TEXTS_BATCH = 10_000
INSERT_TEXT = "INSERT INTO texts (rowid, name, content) VALUES (?, ?, ?)"
BETWEEN = "\x1f"
"""Stands between name and content; no word has it."""
INSERT_TEXTS = (
    "INSERT INTO texts (rowid, name, content) SELECT ? + rowid - 1, "
    "substr(value, 1, instr(value, char(31)) - 1), substr(value, instr(value, char(31)) + 1) "
    "FROM carray(?)"
)
"""Takes a whole batch as one value, so that SQLite reads it without stopping for Python."""


def _analysed(rows: Sequence[tuple[int, str, str]]) -> tuple[int, tuple[str, ...]]:
    """Return the first of consecutive rows, and the words of all of them."""
    words = tuple([f"{indexed(name)}{BETWEEN}{indexed(text)}" for _, name, text in rows])
    return rows[0][0], words


class SqliteWriter(Erasing, SqliteReader):
    """The open write transaction; `seq` and `time` are those of the commit it will become."""

    def __init__(self, con: apsw.Connection, head: Head, time: int, kept: KeptPages) -> None:
        super().__init__(con)
        self._kept = kept
        self._head = head
        self.seq = head.seq + 1
        self.time = time
        self._deferred: set[str] = set()
        self._texts_from = 0
        self._texts: list[tuple[int, str, str]] = []
        self._analysed: list[Future[tuple[int, tuple[str, ...]]]] = []

    def head(self) -> Head:
        """Return the commit this transaction follows; nobody else can commit meanwhile."""
        return self._head

    # -- reads that need an index wait for a deferred one -----------------------------------------

    def node_row(self, ident: bytes) -> int | None:
        """Return the row of a node by its whole id."""
        if "nodes_key" in self._deferred:
            self.build_indexes()
        return super().node_row(ident)

    def ids_like(self, table: str, prefix: str, limit: int) -> list[Id]:
        """Return ids that begin with a prefix."""
        self.build_indexes()
        return super().ids_like(table, prefix, limit)

    def edge_row(self, ident: bytes) -> int | None:
        """Return the row of an edge by its whole id."""
        if "edges_key" in self._deferred:
            self.build_indexes()
        return super().edge_row(ident)

    def children(
        self, row: int, known: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[int]:
        """Return the rows of a world's children."""
        self.build_indexes()
        return super().children(row, known, after, limit)

    def edges_at(
        self,
        rows: Iterable[int],
        direction: Direction,
        types: Iterable[str] | None = None,
        known: int | None = None,
    ) -> list[EdgeRow]:
        """Return the edges at `rows`."""
        self.build_indexes()
        return super().edges_at(rows, direction, types, known)

    def lookup(self, idents: Sequence[bytes]) -> dict[bytes, tuple[int, int, int]]:
        """Return (row, parent row, valid_from) of the nodes among `idents` that exist."""
        if "nodes_key" in self._deferred:
            self.build_indexes()
        sql = "SELECT id, row, parent, valid_from FROM nodes WHERE key "
        wanted = set(idents)
        if len(idents) == 1:
            found = self.con.execute(sql + "= ?", (short_key(idents[0]),))
        else:
            keys = apsw.carray(array("q", map(short_key, idents)))
            found = self.con.execute(sql + "IN (SELECT value FROM carray(?))", (keys,))
        # The root has no parent; its outgoing edges are interior to itself.
        return {
            ident: (row, parent or row, valid_from)
            for ident, row, parent, valid_from in found
            if ident in wanted
        }

    # -- nodes and edges -------------------------------------------------------------------------

    def insert_nodes(self, rows: Iterable[Sequence[Any]]) -> None:
        """Insert all columns of `nodes` but the state, which a new node has not."""
        self.con.executemany(
            "INSERT INTO nodes (row, key, id, type, name, content, created_at, parent, valid_from, "
            "valid_to, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def insert_texts(self, rows: Iterable[tuple[int, str, str]]) -> None:
        """Index (row, name, content); a bulk load only remembers them until its end."""
        if not self._deferred:
            words = ((row, indexed(name), indexed(content)) for row, name, content in rows)
            self.con.executemany(INSERT_TEXT, words)
        elif len(self._texts) < TEXTS_KEPT_MAX:
            self._texts.extend(rows)

    def insert_edges(self, rows: Iterable[Sequence[Any]]) -> None:
        """Insert all columns of `edges` but `gone`.

        The one raw insert of edges; only the reconciler and the replay of a journal call it.
        """
        self.con.executemany(
            "INSERT INTO edges (row, key, id, type, source, target, world, valid_from, valid_to, "
            "metadata, generation, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def insert_notes(self, rows: Iterable[Sequence[Any]]) -> None:
        """Insert all columns of `notes`."""
        self.con.executemany("INSERT INTO notes VALUES (?, ?, ?, ?, ?)", rows)

    def insert_premises(self, rows: Iterable[tuple[int, int]]) -> None:
        """Remember (premise, inferred edge)."""
        self.con.executemany("INSERT OR IGNORE INTO premises VALUES (?, ?)", rows)

    def resting_on(self, edge: int) -> list[int]:
        """Return the rows of the inferred edges that rest on an edge."""
        sql = "SELECT edge FROM premises WHERE premise = ? ORDER BY edge"
        return [row for (row,) in self.con.execute(sql, (edge,))]

    def was_moved(self, row: int) -> bool:
        """Return whether a node was ever moved from where it was born."""
        sql = "SELECT 1 FROM history WHERE field = 'node.parent' AND row = ? LIMIT 1"
        return self.con.execute(sql, (row,)).get is not None

    def has_note(self, node: int, kind: str, text: str) -> bool:
        """Return whether a node already has this alias or source."""
        sql = "SELECT 1 FROM notes WHERE node = ? AND kind = ? AND text = ?"
        return self.con.execute(sql, (node, kind, text)).get is not None

    def _remember(self, field: str, row: int, was: Any) -> None:
        self.con.execute(
            "INSERT OR IGNORE INTO history VALUES (?, ?, ?, ?)", (field, row, self.seq, was)
        )

    def set_valid_to(self, kind: str, row: int, valid_to: int) -> None:
        """Close the validity of a node or an edge (`kind`)."""
        table = f"{kind}s"
        was = self.con.execute(f"SELECT valid_to FROM {table} WHERE row = ?", (row,)).get
        self._remember(f"{kind}.valid_to", row, was)
        self.con.execute(f"UPDATE {table} SET valid_to = ? WHERE row = ?", (valid_to, row))

    def set_parent(self, row: int, parent: int) -> list[bytes]:
        """Move a node; return the ids of its live outgoing edges, which move with it."""
        self.build_indexes()
        was = self.con.execute("SELECT parent FROM nodes WHERE row = ?", (row,)).get
        self._remember("node.parent", row, was)
        self.con.execute("UPDATE nodes SET parent = ? WHERE row = ?", (parent, row))
        self.con.execute("UPDATE edges SET world = ? WHERE source = ?", (parent, row))
        self.con.execute(LEFT_LOOKUPS, (row,))
        sql = "SELECT id FROM edges WHERE source = ? AND gone IS NULL"
        return [ident for (ident,) in self.con.execute(sql, (row,))]

    def set_states(self, rows: Sequence[tuple[int, bytes | None, bytes]]) -> None:
        """Give worlds their new states: (row, state before, state); the journal has the root's."""
        inner = [row for row in rows if row[0] != ROOT_ROW]
        self.con.executemany(
            "INSERT OR IGNORE INTO history VALUES ('node.state', ?, ?, ?)",
            [(row, self.seq, was) for row, was, _ in inner],
        )
        self.con.executemany(
            "UPDATE nodes SET state = ? WHERE row = ?", [(state, row) for row, _, state in inner]
        )

    def delete_edge(self, row: int) -> None:
        """Close an edge on the known axis."""
        self.con.execute("UPDATE edges SET gone = ? WHERE row = ?", (self.seq, row))

    # -- digests, proposals, conflicts, ontology ---------------------------------------------------

    def page(self, world: int, kind: int, path: str) -> tuple[bool, bytes] | None:
        """Return one page of a world's set."""
        key = (world, kind, path)
        if key not in self._kept:
            self._kept[key] = super().page(world, kind, path)
        return self._kept[key]

    def unseen(self) -> list[SetChange]:
        """Return the changes of sets that the pages of this session do not show yet.

        The last writer's pages go on if this process was it. After others they lack what those
        did, if that still waits; if it was written, pages must be read again.
        """
        kept = self._kept
        if kept.is_fresh:
            return []
        at = None
        if kept.at is not None:
            sql = "SELECT hash FROM commits WHERE seq = ? AND (SELECT min(seq) FROM waiting) <= seq"
            at = kept.at[0] if self.con.execute(sql, kept.at[:1]).get == kept.at[1] else None
        if at is None:
            kept.forget()
        unseen = self.waiting(at)
        kept.caught_up(size_of(unseen))
        return unseen

    def put_pages(
        self, world: int, kind: int, pages: Mapping[str, tuple[int, bytes] | None]
    ) -> None:
        """Change pages of a set, for this session and the ones after it; None removes one."""
        for path, page in pages.items():
            self._kept.change(
                (world, kind, path), None if page is None else (bool(page[0]), page[1])
            )

    def keep_changes(self, changes: Sequence[SetChange]) -> None:
        """Write down what the commit changed in sets; or, once enough waits, all pages."""
        if not changes:
            return
        self._kept.waiting += size_of(changes)
        if self._kept.is_full:
            self.write_pages()
        else:
            self.con.execute(
                "INSERT INTO waiting VALUES (?, ?)", (self.seq, encode(self.seq, changes))
            )

    def write_pages(self) -> None:
        """Write every page that is different in the file; nothing waits any more."""
        kept = self._kept
        put, gone = [], []
        for key in sorted(kept.unwritten):
            page = kept[key]
            if page is None:
                gone.append(key)
            else:
                put.append((*key, *page))
        self.con.executemany("DELETE FROM pages WHERE world = ? AND kind = ? AND path = ?", gone)
        self.con.executemany(
            "INSERT INTO pages (world, kind, path, fork, body) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (world, kind, path) DO UPDATE SET fork = excluded.fork, "
            "body = excluded.body",
            put,
        )
        self.con.execute("DELETE FROM waiting")
        kept.unwritten.clear()
        kept.waiting = 0

    def put_proposal(self, row: ProposalRow) -> None:
        """Stage a proposal."""
        self.con.execute("INSERT INTO proposals VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*row, self.seq))

    def set_status(self, edge: int, status: str) -> None:
        """Decide, withdraw or reopen a proposal."""
        was = self.con.execute("SELECT status FROM proposals WHERE edge = ?", (edge,)).get
        self._remember("proposal.status", edge, was)
        self.con.execute("UPDATE proposals SET status = ? WHERE edge = ?", (status, edge))

    def put_conflict(self, row: ConflictRow) -> None:
        """Record a conflict."""
        values = (row.edge, row.low, row.high, row.reason, self.seq)
        self.con.execute(
            "INSERT INTO conflicts (edge, low, high, reason, born) VALUES (?, ?, ?, ?, ?)", values
        )

    def settle_conflict(self, edge: int) -> None:
        """Record that a conflict is over."""
        self.con.execute("UPDATE conflicts SET gone = ? WHERE edge = ?", (self.seq, edge))

    def put_registration(self, world: int, type_: str, version: str, functional: bool) -> None:
        """Remember a custom edge type of a world."""
        self.con.execute(
            "INSERT OR REPLACE INTO registrations VALUES (?, ?, ?, ?, ?)",
            (world, type_, version, int(functional), self.seq),
        )

    # -- bulk and commit ---------------------------------------------------------------------------

    @property
    def is_deferred(self) -> bool:
        """Whether indexes wait to be built."""
        return bool(self._deferred)

    def defer_indexes(self) -> None:
        """Drop what is cheaper to build once at the end; the transaction hides it from others."""
        if self._deferred:
            return
        # What is there already may be what is loaded again: its keys must be found.
        head = self.head()
        kept = {name for name in ("nodes_key", "edges_key") if head.nodes > ROOT_ROW}
        self._deferred = DEFERRED_INDEXES.keys() - kept
        self._texts_from = self.con.execute("SELECT max(row) FROM nodes").get + 1
        for name in self._deferred:
            self.con.execute(f"DROP INDEX {name}")
        for name in BULK_GUARDS:
            self.con.execute(f"DROP TRIGGER {name}")
        self._tune_texts(BULK_HASH_BYTES, 0)

    def analyse_texts(self, pool: Executor) -> None:
        """Have the words of a load analysed while SQLite builds indexes, which needs no Python."""
        self._analysed = [pool.submit(_analysed, batch) for batch in self._batches()]

    def _batches(self) -> list[list[tuple[int, str, str]]]:
        texts = self._texts
        return [texts[at : at + TEXTS_BATCH] for at in range(0, len(texts), TEXTS_BATCH)]

    def build_indexes(self) -> None:
        """Build what was deferred; does nothing otherwise."""
        if not self._deferred:
            return
        # SQLite sorts in runs as large as its cache; small runs suit the processor's far better.
        self.con.execute(f"PRAGMA cache_size = -{SORTING_CACHE_KIB}")
        for name in DEFERRED_INDEXES:
            if name in self._deferred:
                self.con.execute(DEFERRED_INDEXES[name])
        self.con.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._deferred = set()
        for name in BULK_GUARDS:
            self.con.execute(guards()[name])
        for batch in self._analysed or map(_analysed, self._batches()):
            first, words = batch if isinstance(batch, tuple) else batch.result()
            self.con.execute(INSERT_TEXTS, (first, apsw.carray(words)))
        # What was too much to remember is read back from the nodes.
        self.con.execute(INDEX_TEXTS, (self._texts_from + len(self._texts),))
        self._texts, self._analysed = [], []
        self._tune_texts(USUAL_HASH_BYTES, USUAL_MERGE)
        # One segment on a high level: left on the lowest, the next few small writes would each
        # wait while FTS5 merges itself into the whole load.
        self.con.execute("INSERT INTO texts (texts) VALUES ('optimize')")

    def _tune_texts(self, hash_bytes: int, merge: int) -> None:
        """Set how much text FTS5 gathers before it writes, and how eagerly it merges."""
        self.con.execute("INSERT INTO texts (texts, rank) VALUES ('hashsize', ?)", (hash_bytes,))
        self.con.execute("INSERT INTO texts (texts, rank) VALUES ('automerge', ?)", (merge,))

    def insert_commit(self, row: CommitRow) -> None:
        """Write the journal's row; the transaction is complete with it."""
        self._kept.leads_to(row.seq, row.hash)
        self.con.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
