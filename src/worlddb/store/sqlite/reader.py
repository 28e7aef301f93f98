"""Reader: the SQL of every read, one snapshot at a time.

Present values are columns. The past is the present with `history` laid over it: the first change
after the asked commit says what was there before.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import apsw

from worlddb.errors import CorruptionError
from worlddb.language.words import indexed
from worlddb.model.address import ERASED, ROOT_ID, ROOT_NAME, ROOT_TYPE, Id, short_key, trusted_id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Direction, Edge, Node
from worlddb.store.protocol import ROOT_ROW, BodyRow, CommitRow, EdgeRow, Head, World
from worlddb.store.sqlite.derived import Derived
from worlddb.store.sqlite.lookups import Lookups
from worlddb.store.sqlite.noted import Noted, merged
from worlddb.store.sqlite.placed import Placed
from worlddb.store.sqlite.scan import SqliteScan
from worlddb.store.sqlite.sets import Sets
from worlddb.store.sqlite.staged import FOREVER, IN, among
from worlddb.store.sqlite.sweep import Sweep
from worlddb.store.sqlite.texts import Texts

_NODE_COLUMNS = """
    SELECT n.row, n.id, n.state, n.type, n.name, n.content, n.created_at, n.parent, p.id,
           n.valid_from, n.valid_to, n.born, b.time
    FROM nodes n LEFT JOIN nodes p ON p.row = n.parent LEFT JOIN commits b ON b.seq = n.born
"""
# CROSS JOIN keeps SQLite from turning the join around: start at the edges, always.
_EDGE_COLUMNS = """
    SELECT e.row, e.id, e.type, e.source, e.target, e.world, s.id, t.id, e.valid_from, e.valid_to,
           e.metadata, e.born, b.time, e.gone, g.time
    FROM edges e CROSS JOIN nodes s ON s.row = e.source CROSS JOIN nodes t ON t.row = e.target
    LEFT JOIN commits b ON b.seq = e.born LEFT JOIN commits g ON g.seq = e.gone
"""
KEY_NIBBLES = 16
ROOT_WORLD = World(ROOT_ROW, ROOT_ID, None, ROOT_TYPE, ROOT_NAME, "", 0, None)
"""The same in every store, but for its state."""


class SqliteReader(Sets, Noted):
    """One snapshot of the file."""

    is_uncommitted = False
    """Whether this session sees writes that may still be rolled back."""

    def __init__(self, con: apsw.Connection) -> None:
        super().__init__(con)
        self.seq = 0
        self.time = 0

    @property
    def scan(self) -> SqliteScan:
        """Whole tables, for `check` and `export`."""
        return SqliteScan(self.con)

    @property
    def derived(self) -> Derived:
        """Embeddings."""
        return Derived(self.con)

    @property
    def lookups(self) -> Lookups:
        """Nodes by keys of their names and contents."""
        return Lookups(self.con)

    @property
    def placed(self) -> Placed:
        """Pages of worlds."""
        return Placed(self.con)

    @property
    def sweep(self) -> Sweep:
        """Worlds, edge types and recalls as a whole."""
        return Sweep(self.con)

    @property
    def texts(self) -> Texts:
        """The full-text index."""
        return Texts(self.con)

    # -- the journal ---------------------------------------------------------------------------

    def head(self) -> Head:
        """Return the last commit."""
        found = self.con.execute(
            "SELECT seq, time, hash, root_state, nodes, edges, notes FROM commits "
            "ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        if found is None:
            raise CorruptionError("the journal is empty; restore a backup")
        return Head(*found)

    def commit_at(self, time: int) -> int | None:
        """Return the last commit at or before `time`, None before the first.

        Commits are numbered without gaps and their times increase, so halving finds it; an index
        by time would cost every commit a page.
        """
        low, high = -1, self.head().seq
        while low < high:
            middle = (low + high + 1) // 2
            found = self._one("SELECT time FROM commits WHERE seq = ?", (middle,))
            if found is not None and found <= time:
                low = middle
            else:
                high = middle - 1
        return None if low < 0 else low

    def _one(self, sql: str, values: tuple[Any, ...]) -> int | None:
        """Return the first column of the first row as the integer it is, or None."""
        found: int | None = self.con.execute(sql, values).get
        return found

    def commits(self, after: int, limit: int | None, newest_first: bool) -> list[CommitRow]:
        """Return commits above number `after`."""
        order = "DESC" if newest_first else "ASC"
        found = self.con.execute(
            f"SELECT * FROM commits WHERE seq > ? ORDER BY seq {order} LIMIT ?",
            (after, -1 if limit is None else limit),
        )
        return [CommitRow(*row) for row in found]

    def _time(self, seq: int, time: int | None) -> datetime:
        """Return a commit's time; the open transaction's own commit has no row yet."""
        return from_micros(self.time if time is None else time)

    # -- ids -----------------------------------------------------------------------------------

    def node_row(self, ident: bytes) -> int | None:
        """Return the row of a node by its whole id."""
        sql = "SELECT row FROM nodes WHERE key = ? AND id = ?"
        return self._one(sql, (short_key(ident), ident))

    def edge_row(self, ident: bytes) -> int | None:
        """Return the row of an edge by its whole id."""
        sql = "SELECT row FROM edges WHERE key = ? AND id = ?"
        return self._one(sql, (short_key(ident), ident))

    def ids_like(self, table: str, prefix: str, limit: int) -> list[Id]:
        """Return up to `limit` ids that begin with the hex `prefix`, in order."""
        low = short_key(bytes.fromhex(prefix[:KEY_NIBBLES].ljust(KEY_NIBBLES, "0")))
        high = short_key(bytes.fromhex(prefix[:KEY_NIBBLES].ljust(KEY_NIBBLES, "f")))
        found = self.con.execute(
            f"SELECT id FROM {table} WHERE key BETWEEN ? AND ? ORDER BY key, id", (low, high)
        )
        ids = []
        for (ident,) in found:
            if ident.hex().startswith(prefix):
                ids.append(Id(ident))
                if len(ids) == limit:
                    break
        return ids

    # -- nodes ---------------------------------------------------------------------------------

    def nodes(self, rows: Iterable[int], known: int | None = None) -> dict[int, Node]:
        """Return nodes by row, as of commit `known`; those not yet born then are left out."""
        wanted = list(rows)
        if not wanted:
            return {}
        found: list[tuple[Any, ...]] = self.con.execute(
            f"{_NODE_COLUMNS} WHERE n.row {IN}", (among(wanted),)
        ).fetchall()
        if known is not None:
            found = [row for row in found if row[11] <= known]
        past = self._past(("node.valid_to", "node.parent", "node.state"), wanted, known)
        if past:
            found = [self._node_then(row, past) for row in found]
        if ROOT_ROW in wanted:
            state = self._root_state(known)
            found = [(*row[:2], state, *row[3:]) if row[0] == ROOT_ROW else row for row in found]
        notes = self._notes(wanted, known)
        return {row[0]: self._node(row, notes.get(row[0])) for row in found}

    def _root_state(self, known: int | None) -> bytes:
        """Return the root's state: every commit has it in the journal, and it is nowhere else."""
        if known is None:
            return self.head().root_state
        sql = "SELECT root_state FROM commits WHERE seq = ?"
        state: bytes = self.con.execute(sql, (known,)).get
        return state

    def _node(self, row: tuple[Any, ...], notes: dict[str, list[str]] | None) -> Node:
        ident = trusted_id(row[1])
        return Node(
            id=ident,
            state=ident if row[2] is None else trusted_id(row[2]),
            type=row[3],
            name=row[4],
            content=row[5],
            created_at=self._time(row[11], row[12]) if row[6] == ERASED else from_micros(row[6]),
            parent=None if row[8] is None else trusted_id(row[8]),
            valid_from=from_micros(row[9]),
            valid_to=None if row[10] is None else from_micros(row[10]),
            known_from=self._time(row[11], row[12]),
            aliases=tuple(notes.get("alias", ())) if notes else (),
            provenance=tuple(notes.get("source", ())) if notes else (),
            metadata=merged(notes.get("metadata", ())) if notes else {},
            erased=row[6] == ERASED,
        )

    def _node_then(self, row: tuple[Any, ...], past: dict[tuple[str, int], Any]) -> tuple[Any, ...]:
        values = list(row)
        if ("node.valid_to", row[0]) in past:
            values[10] = past["node.valid_to", row[0]]
        if ("node.state", row[0]) in past:
            values[2] = past["node.state", row[0]]
        if ("node.parent", row[0]) in past:
            values[7] = past["node.parent", row[0]]
            values[8] = self.con.execute("SELECT id FROM nodes WHERE row = ?", (values[7],)).get
        return tuple(values)

    def world(self, row: int) -> World:
        """Return the fields that a world's state is hashed from."""
        found = self.worlds([row])
        if row not in found:
            raise CorruptionError(f"node row {row} is missing; run `worlddb check`")
        return found[row]

    def worlds(self, rows: Iterable[int]) -> dict[int, World]:
        """Return the fields that the states of worlds are hashed from."""
        sql = "SELECT row, id, state, type, name, content, created_at, parent FROM nodes WHERE row "
        wanted = list(rows)
        if wanted == [ROOT_ROW]:
            return {ROOT_ROW: ROOT_WORLD._replace(state=self._root_state(None))}
        if len(wanted) == 1:
            found = self.con.execute(sql + "= ?", wanted)
        else:
            found = self.con.execute(sql + IN, (among(wanted),))
        worlds = {values[0]: World._make(values) for values in found}
        if ROOT_ROW in worlds:
            worlds[ROOT_ROW] = worlds[ROOT_ROW]._replace(state=self._root_state(None))
        return worlds

    def rows_named(self, names: Iterable[str]) -> list[int]:
        """Return the rows of the nodes with exactly one of these names, found by their words."""
        rows: list[int] = []
        for name in names:
            said = indexed(name)
            # Where the text index has words for it, it finds the few that may have that name.
            if said:
                sql, chosen = f"SELECT row FROM nodes WHERE name = ? AND row {IN}", self.texts
                values: tuple[Any, ...] = (name, among(chosen.named(said)))
            else:
                sql, values = "SELECT row FROM nodes WHERE name = ?", (name,)
            rows += [row for (row,) in self.con.execute(sql, values)]
        return rows

    def children(
        self, row: int, known: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[int]:
        """Return the rows of a world's children, in the order they were written."""
        sql = "SELECT row FROM nodes WHERE parent = ? AND row > ? ORDER BY row LIMIT ?"
        if known is None:
            found = self.con.execute(sql, (row, after, -1 if limit is None else limit))
            return [child for (child,) in found]
        rows = {child for (child,) in self.con.execute(sql, (row, after, -1))}
        # Those that were moved away since; those that were moved here since fall to parents().
        rows.update(
            child
            for (child,) in self.con.execute(
                "SELECT row FROM history WHERE field = 'node.parent' AND was = ? AND row > ?",
                (row, after),
            )
        )
        then = self.parents(rows, known)
        return sorted(child for child in rows if then.get(child) == row)[:limit]

    def children_of(self, rows: Iterable[int]) -> list[int]:
        """Return the rows of the present children of several worlds."""
        sql = f"SELECT row FROM nodes WHERE parent {IN}"
        return [child for (child,) in self.con.execute(sql, (among(list(rows)),))]

    def bodies(self, rows: Iterable[int], known: int | None = None) -> Iterator[BodyRow]:
        """Yield what search needs of nodes, in the order of rows, as of commit `known`."""
        wanted = list(rows)
        past = self._past(("node.valid_to", "node.parent"), wanted, known)
        found = self.con.execute(
            "SELECT row, id, type, parent, name, content, valid_from, valid_to FROM nodes "
            f"WHERE row {IN} AND born <= ? ORDER BY row",
            (among(wanted), FOREVER if known is None else known),
        )
        for values in found:
            body = BodyRow._make(values)
            if past:
                parent = past.get(("node.parent", body.row), body.parent)
                ends = past.get(("node.valid_to", body.row), body.valid_to)
                body = body._replace(parent=parent, valid_to=ends)
            yield body

    def closed_by(self, rows: Iterable[int], known: int | None = None) -> set[int]:
        """Return those nodes whose validity some commit up to `known` has closed."""
        found = self.con.execute(
            f"SELECT row FROM history WHERE field = 'node.valid_to' AND row {IN} AND seq <= ?",
            (among(list(rows)), FOREVER if known is None else known),
        )
        return {row for (row,) in found}

    def parents(self, rows: Iterable[int], known: int | None = None) -> dict[int, int | None]:
        """Return the parent row of each row; rows not born by `known` are left out."""
        wanted = list(rows)
        if not wanted:
            return {}
        sql = f"SELECT row, parent, born FROM nodes WHERE row {IN}"
        found = self.con.execute(sql, (among(wanted),))
        parents = {row: parent for row, parent, born in found if known is None or born <= known}
        for (_, row), was in self._past(("node.parent",), wanted, known).items():
            if row in parents:
                parents[row] = was
        return parents

    # -- edges ---------------------------------------------------------------------------------

    def edges_at(
        self,
        rows: Iterable[int],
        direction: Direction,
        types: Iterable[str] | None = None,
        known: int | None = None,
    ) -> list[EdgeRow]:
        """Return the edges that leave, enter or touch `rows`, as of commit `known`."""
        wanted = list(rows)
        if direction == "both":
            chosen = None if types is None else list(types)
            out = self.edges_at(wanted, "out", chosen, known)
            seen = {item.row for item in out}
            into = self.edges_at(wanted, "in", chosen, known)
            both = out + [item for item in into if item.row not in seen]
            return sorted(both, key=lambda item: item.row)
        end = "source" if direction == "out" else "target"
        values: list[Any] = [among(wanted)]
        where = f"e.{end} {IN}"
        return self._edges(*_of_types(where, values, types), known) if wanted else []

    def edges(self, rows: Iterable[int], known: int | None = None) -> list[EdgeRow]:
        """Return edges by row, deleted ones too unless `known` is given."""
        wanted = list(rows)
        values = [among(wanted)]
        return self._edges(f"e.row {IN}", values, known, deleted=True) if wanted else []

    def edges_between(
        self, first: int, last: int, known: int | None = None, types: Iterable[str] | None = None
    ) -> list[EdgeRow]:
        """Return the edges of a range of rows as of commit `known`, deleted ones too."""
        where, values = "e.row BETWEEN ? AND ?", [first, last]
        return self._edges(*_of_types(where, values, types), known, deleted=True)

    def _edges(
        self, where: str, values: list[Any], known: int | None, deleted: bool = False
    ) -> list[EdgeRow]:
        if known is not None:
            where += " AND e.born <= ?"
            values.append(known)
        if not deleted:
            where += " AND (e.gone IS NULL OR e.gone > ?)"
            values.append(FOREVER if known is None else known)
        found: list[tuple[Any, ...]] = self.con.execute(
            f"{_EDGE_COLUMNS} WHERE {where} ORDER BY e.row", values
        ).fetchall()
        past = self._past(("edge.valid_to",), [row[0] for row in found], known) if found else {}
        return [self._edge(row, past, known) for row in found]

    def _edge(
        self, row: tuple[Any, ...], past: dict[tuple[str, int], Any], known: int | None
    ) -> EdgeRow:
        valid_to = past.get(("edge.valid_to", row[0]), row[9])
        gone = None if known is not None and row[13] is not None and row[13] > known else row[13]
        edge = Edge(
            id=trusted_id(row[1]),
            type=row[2],
            source=trusted_id(row[6]),
            target=trusted_id(row[7]),
            valid_from=from_micros(row[8]),
            valid_to=None if valid_to is None else from_micros(valid_to),
            known_from=self._time(row[11], row[12]),
            known_to=None if gone is None else self._time(gone, row[14]),
            metadata={} if row[10] == "{}" else json.loads(row[10]),
        )
        return EdgeRow(row[0], row[3], row[4], row[5], edge)


def _of_types(where: str, values: list[Any], types: Iterable[str] | None) -> tuple[str, list[Any]]:
    """Return a condition on edges that holds for some types alone; None: for all of them."""
    if types is None:
        return where, values
    chosen = list(types)
    return f"{where} AND e.type IN ({', '.join('?' * len(chosen))})", [*values, *chosen]
