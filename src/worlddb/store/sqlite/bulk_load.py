"""Bulk load: a large transaction that puts off all indexes until its end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future

import apsw

from worlddb.language.text_tokens import indexed, indexed_content
from worlddb.store.rows import ROOT_ROW, Head, NewText
from worlddb.store.sqlite.database_file import FileSession
from worlddb.store.sqlite.schema import (
    DEFERRED_INDEXES,
    INDEX_TEXTS,
    USUAL_HASH_BYTES,
    USUAL_MERGE,
    guards,
)

BULK_HASH_BYTES = 64 << 20
"""How much text FTS5 gathers during a load: one large segment instead of many small ones."""
SORTING_CACHE_KIB = 2_000
"""SQLite sorts in runs as large as its cache; runs that fit the processor's cache are faster."""
BULK_GUARDS = ("nodes_guard_insert", "edges_guard_insert", "pages_guard_insert")
"""Triggers that would run for each row of a load."""
TEXTS_KEPT_MAX = 2_000_000
"""How many texts a load keeps in memory; those beyond are read back from the nodes."""
TEXTS_BATCH = 10_000
"""How many texts are analysed at once: enough that handing them over costs nothing."""
_BETWEEN = "\x1f"  # Stands between name and content; no word has it.
_INSERT_BATCH = (
    "INSERT INTO texts (rowid, name, content) SELECT ? + rowid - 1, "
    "substr(value, 1, instr(value, char(31)) - 1), substr(value, instr(value, char(31)) + 1) "
    "FROM carray(?)"
)
"""Takes a whole batch as one value, so that SQLite reads it without stopping for Python."""


def _analysed(rows: Sequence[NewText]) -> tuple[int, tuple[str, ...]]:
    """Return the first of consecutive rows, and the words of all of them."""
    words = tuple([f"{indexed(name)}{_BETWEEN}{indexed_content(text)}" for _, name, text in rows])
    return rows[0][0], words


class BulkLoad:
    """A load that drops the indexes which are cheaper to build once, and builds them at its end.

    The transaction hides that from everybody else.
    """

    def __init__(self, session: FileSession, head: Head) -> None:
        # What is there already may be what is loaded again: its keys must be found.
        kept = {name for name in ("nodes_key", "edges_key") if head.nodes > ROOT_ROW}
        self.names = DEFERRED_INDEXES.keys() - kept
        self._session = session
        self._texts: list[NewText] = []
        self._batches: list[Future[tuple[int, tuple[str, ...]]]] = []
        self._texts_from = (session.one("SELECT max(row) FROM nodes", ()) or 0) + 1
        for name in self.names:
            session.execute(f"DROP INDEX {name}")
        for name in BULK_GUARDS:
            session.execute(f"DROP TRIGGER {name}")
        self._tune(BULK_HASH_BYTES, 0)

    def keep(self, rows: Iterable[NewText]) -> None:
        """Keep texts in memory until the indexes are built."""
        if len(self._texts) < TEXTS_KEPT_MAX:
            self._texts.extend(rows)

    def analyse(self, pool: Executor) -> None:
        """Have the words analysed while SQLite builds indexes, which needs no Python."""
        self._batches = [pool.submit(_analysed, batch) for batch in self._split()]

    def _split(self) -> list[list[NewText]]:
        texts = self._texts
        return [texts[at : at + TEXTS_BATCH] for at in range(0, len(texts), TEXTS_BATCH)]

    def build(self) -> None:
        """Build what was put off; the load is over with it."""
        session = self._session
        session.deferred = None
        usual = session.con.pragma("cache_size")
        session.execute(f"PRAGMA cache_size = -{SORTING_CACHE_KIB}")
        for name in DEFERRED_INDEXES:
            if name in self.names:
                session.execute(DEFERRED_INDEXES[name])
        session.execute(f"PRAGMA cache_size = {usual}")
        for name in BULK_GUARDS:
            session.execute(guards()[name])
        for batch in self._batches or map(_analysed, self._split()):
            first, words = batch if isinstance(batch, tuple) else batch.result()
            session.execute(_INSERT_BATCH, (first, apsw.carray(words)))
        # What was too much to keep is read back from the nodes.
        session.execute(INDEX_TEXTS, (self._texts_from + len(self._texts),))
        self._tune(USUAL_HASH_BYTES, USUAL_MERGE)
        # One segment on a high level: left on the lowest, the next few small writes would each
        # wait while FTS5 merges itself into the whole load.
        session.execute("INSERT INTO texts (texts) VALUES ('optimize')")

    def _tune(self, hash_bytes: int, merge: int) -> None:
        """Set how much text FTS5 gathers before it writes, and how eagerly it merges."""
        for option, value in (("hashsize", hash_bytes), ("automerge", merge)):
            self._session.execute("INSERT INTO texts (texts, rank) VALUES (?, ?)", (option, value))
