"""TextIndex: the words of every node (FTS5); and BulkLoad, which puts off all indexes.

Words come analysed; none of them is ever FTS5 syntax.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, Future

import apsw

from worlddb.language.text_tokens import indexed
from worlddb.store.rows import ROOT_ROW, Head, NewText, TextHit
from worlddb.store.sqlite.database_file import CACHE_KIB
from worlddb.store.sqlite.schema import (
    DEFERRED_INDEXES,
    INDEX_TEXTS,
    USUAL_HASH_BYTES,
    USUAL_MERGE,
    guards,
)
from worlddb.store.sqlite.sql_session import SqlSession

COUNTED_MAX = 2_000
"""More nodes with a word than this are estimated: counting them all takes as long as a search."""
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
_INSERT = "INSERT INTO texts (rowid, name, content) VALUES (?, ?, ?)"
_BETWEEN = "\x1f"
"""Stands between name and content; no word has it."""
_INSERT_BATCH = (
    "INSERT INTO texts (rowid, name, content) SELECT ? + rowid - 1, "
    "substr(value, 1, instr(value, char(31)) - 1), substr(value, instr(value, char(31)) + 1) "
    "FROM carray(?)"
)
"""Takes a whole batch as one value, so that SQLite reads it without stopping for Python."""
_OPTIMIZE = "INSERT INTO texts (texts) VALUES ('optimize')"


class TextIndex:
    """The words of every node, as one session sees them."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def counts(self, words: Sequence[str], nodes: int) -> dict[str, int]:
        """Return in how many of `nodes` each word occurs.

        Counting a common word would take longer than the search. So only the first that have it
        are counted, and how far down the store those reach says how many there are in all.
        """
        sql = (
            "SELECT count(*), max(rowid) FROM (SELECT rowid FROM texts WHERE texts MATCH ? LIMIT ?)"
        )
        found = {}
        for word in words:
            count, last = next(self._session.execute(sql, (f'"{word}"', COUNTED_MAX)))
            found[word] = count if count < COUNTED_MAX else max(count, count * nodes // last)
        return found

    def match(self, words: Sequence[str], most: int) -> list[TextHit]:
        """Return the nodes that have any of these words, best first."""
        return self._ranked(" OR ".join(map(_quoted, words)), most)

    def match_all(self, words: Sequence[str], phrase: bool, most: int) -> list[TextHit]:
        """Return the nodes that have all words, or have them in a row, best first."""
        return self._ranked(_quoted(" ".join(words)) if phrase else _all_of(words), most)

    def _ranked(self, expression: str, most: int) -> list[TextHit]:
        sql = "SELECT rowid, -rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
        return list(map(TextHit._make, self._session.execute(sql, (expression, most))))

    def latest(self, words: Sequence[str], most: int) -> list[int]:
        """Return the rows of the newest nodes that have all of these words."""
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid DESC LIMIT ?"
        return self._session.rows(sql, (_all_of(words), most))

    def named(self, words: str) -> list[int]:
        """Return the rows of the nodes whose name has these words one after the other."""
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid"
        return self._session.rows(sql, (f"name : {_quoted(words)}",))

    def average_length(self) -> float:
        """Return how many words a node has on average."""
        body = self._session.execute("SELECT block FROM texts_data WHERE id = 1").get
        nodes, *columns = _varints(body if isinstance(body, bytes) else b"")
        return sum(columns) / nodes if nodes else 0.0

    def insert(self, rows: Iterable[NewText]) -> None:
        """Index new nodes."""
        words = ((row, indexed(name), indexed(content)) for row, name, content in rows)
        self._session.executemany(_INSERT, words)


def _quoted(words: str) -> str:
    return f'"{words}"'


def _all_of(words: Iterable[str]) -> str:
    return " AND ".join(map(_quoted, words))


def _varints(body: bytes) -> list[int]:
    """Return the numbers of FTS5's record of totals: nodes, then words per column."""
    numbers, value = [], 0
    for byte in body:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers or [0]


def _analysed(rows: Sequence[NewText]) -> tuple[int, tuple[str, ...]]:
    """Return the first of consecutive rows, and the words of all of them."""
    words = tuple([f"{indexed(name)}{_BETWEEN}{indexed(text)}" for _, name, text in rows])
    return rows[0][0], words


class BulkLoad:
    """A load that drops the indexes which are cheaper to build once, and builds them at its end.

    The transaction hides that from everybody else.
    """

    def __init__(self, session: SqlSession, head: Head) -> None:
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
        session.deferred = self

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
        session.execute(f"PRAGMA cache_size = -{SORTING_CACHE_KIB}")
        for name in DEFERRED_INDEXES:
            if name in self.names:
                session.execute(DEFERRED_INDEXES[name])
        session.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
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
        session.execute(_OPTIMIZE)

    def _tune(self, hash_bytes: int, merge: int) -> None:
        """Set how much text FTS5 gathers before it writes, and how eagerly it merges."""
        for option, value in (("hashsize", hash_bytes), ("automerge", merge)):
            self._session.execute("INSERT INTO texts (texts, rank) VALUES (?, ?)", (option, value))
