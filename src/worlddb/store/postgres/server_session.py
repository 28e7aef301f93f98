"""Server session: one connection to PostgreSQL in one transaction; its text index and scans.

Server lines: what belongs to a tenant and is no part of its journal: key and record of reads.

Server load: the words of a bulk load, analysed by one thread while the server indexes others.

Rows go to the server as one array for each column, a batch in one statement. COPY would do no more:
PostgreSQL refuses it where row-level security holds.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from math import log
from operator import itemgetter
from typing import Any, NamedTuple

from psycopg import Connection, RawServerCursor
from psycopg.generators import fetch_many
from psycopg.pq import Format, TransactionStatus

from worlddb.errors import StorageError
from worlddb.language.text_tokens import indexed, indexed_content
from worlddb.store.postgres.server_pipeline import ServerPipeline, Statement
from worlddb.store.postgres.server_schema import COLUMNS, KEYS
from worlddb.store.postgres.sql_dialect import (
    RowNumbers,
    insert_one_sql,
    insert_sql,
    translated_sql,
    turned,
)
from worlddb.store.rows import Head, NewText, TextHit
from worlddb.store.tables.derived_tables import REACHED_SQL
from worlddb.store.tables.sql_session import (
    HEAD_SQL,
    DeferredIndexes,
    SessionContext,
    SqlSession,
    TableScan,
)

STREAM_ROWS = 5_000  # How many rows of a whole table come at once: a megabyte or two.
KEPT_MAX = 64  # Statements sent at once: their answers fit what a connection holds back.
REMEMBERED_MAX = 64  # Rows of an answer that a snapshot remembers: heads, models, some nodes.
ROWS_KNOWN_MAX = 20_000  # Ids whose rows a store remembers: two or three megabytes.
COUNTED_MAX = 2_000  # As in a file: more nodes with a word than this are estimated.
K1, B = 1.2, 0.75  # BM25 as FTS5 computes it, so that both stores give the same scores.
IDF_MIN = 1e-6  # What FTS5 gives a word that half of all nodes have.
_TOKEN = re.compile("[0-9a-z\x80-\U0010ffff]+")
"""What FTS5 takes for one word of our analysed text: it splits at every sign of ASCII."""
_PLACE = "I"  # Places are 32-bit numbers, the lowest byte first.
_PLACE_BYTES = 4
_USUAL_PLACES = 1_024  # Hardly any text has more words; 16 KB are kept ready for them.
_PLACES = tuple(place.to_bytes(_PLACE_BYTES, "little") for place in range(_USUAL_PLACES))
_COUNTS = """
    SELECT w.word, c.count, c.last FROM unnest($1::text[]) AS w(word), LATERAL (
        SELECT count(*) AS count, max(node) AS last FROM (
            SELECT node FROM words x WHERE x.word = w.word ORDER BY node LIMIT $2
        ) s
    ) c
"""
_LATEST = "SELECT node FROM words a WHERE a.word = $1{} ORDER BY a.node DESC LIMIT {}"
_HAS = " AND EXISTS (SELECT 1 FROM words b WHERE b.word = ${} AND b.node = a.node)"


Posting = tuple[str, int, int, int, bytes]
"""A row of `words`: the word, the node, its length, the length of its name, where the word is."""


class FoundRows(list[Any]):
    """The rows that a statement found."""

    @property
    def get(self) -> Any:
        """The first column of the first row, or None."""
        return self[0][0] if self else None

    def fetchone(self) -> Any:
        """Return the first row, or None."""
        return self[0] if self else None

    def fetchall(self) -> FoundRows:
        """Return all rows."""
        return self


class KnownRows(dict[bytes, int]):
    """The rows of ids that a session has met, and before it others of the same store.

    The row of an id never changes. Rows that a snapshot does not have yet are not told.
    """

    def __init__(self, session: ServerSession, others: dict[bytes, int]) -> None:
        self._session = session
        self._others = others

    def get(self, ident: bytes, default: Any = None) -> Any:
        """Return the row of an id, if it is known."""
        row = super().get(ident)
        if row is None:
            row, head = self._others.get(ident), self._session.head
            if row is not None and (head is None or row > head.nodes):
                row = None
        return default if row is None else row

    def __setitem__(self, ident: bytes, row: int) -> None:
        """Remember a row; what a transaction writes may be rolled back, so others do not see it."""
        super().__setitem__(ident, row)
        if self._session.is_snapshot:
            if len(self._others) >= ROWS_KNOWN_MAX:
                self._others.clear()
            self._others[ident] = row


class ServerSession(SqlSession):
    """A session on a connection to PostgreSQL.

    What writes and has no answer is kept, and sent with the next statement that has one, or with
    the COMMIT: each answer that is waited for costs a way to the server and back. For the same
    reason a snapshot that can only be read (`is_snapshot`) asks nothing twice, what every
    transaction asks first comes with its beginning (`foreseen`), and nobody waits for the end of a
    snapshot (`end`). `rows` are the rows of ids that all sessions of a store have met.
    """

    __slots__ = (
        "_answers",
        "_is_ending",
        "_kept",
        "_line",
        "_rows",
        "_streams",
        "foreseen",
        "is_snapshot",
    )

    def __init__(
        self, con: Connection[Any], context: SessionContext, rows: dict[bytes, int]
    ) -> None:
        self._line = ServerPipeline(con)
        self._rows = rows
        self._kept: list[Statement] = []
        self._streams = 0
        self._is_ending = self.is_snapshot = False
        self.foreseen: dict[str, FoundRows] = {}
        super().__init__(con, context)

    def forget(self) -> None:
        """Drop what was remembered of a snapshot, and what was not sent."""
        super().forget()
        self._kept = []
        self._answers: dict[tuple[str, Any], FoundRows] = {}
        self.node_rows = KnownRows(self, self._rows)

    def begin(self, statements: Sequence[Statement], *, is_snapshot: bool) -> None:
        """Begin a transaction, as soon as the last one has ended."""
        self.forget()
        self.context.statements += 1
        self.is_snapshot = is_snapshot
        if self._is_ending:  # Not by `get_result`: it would keep all threads waiting.
            self.con.wait(fetch_many(self.con.pgconn))
            self._is_ending = False
        asked = (HEAD_SQL, REACHED_SQL)
        found, _ = self._line.ask([*statements, *((sql, None) for sql in asked)], len(asked))
        self.foreseen = dict(zip(asked, map(FoundRows, found), strict=True))

    def end(self) -> None:
        """Have the server roll back what is open, without waiting for that."""
        pgconn = self.con.pgconn
        if not self.con.closed and pgconn.transaction_status != TransactionStatus.IDLE:
            if pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.con.execute("ROLLBACK")  # An interrupt has left a statement.
            else:
                pgconn.send_query(b"ROLLBACK")
                pgconn.flush()
                self._is_ending = True

    def run(self, sql: str, values: Any = None) -> FoundRows:
        """Run a statement of PostgreSQL's own."""
        return FoundRows(self._sent(sql, values)[0][-1])

    def commit(self) -> None:
        """Commit the transaction.

        Raises:
            StorageError: the server has rolled back, which it does without an error if a statement
                had failed before.
        """
        done = self._sent("COMMIT")[1]
        if done != "COMMIT":
            raise StorageError(
                f"the server did not commit ({done}); nothing was written, try again"
            )

    def _sent(self, sql: str, values: Any = None) -> tuple[list[Any], str]:
        self.context.statements += 1
        kept, self._kept = self._kept, []
        return self._line.ask([*kept, (sql, values)])

    def keep(self, sql: str, values: Any = None) -> None:
        """Run a statement without an answer, together with the next that has one."""
        self.context.statements += 1
        self._kept.append((sql, values))
        if len(self._kept) >= KEPT_MAX:
            self.flush()

    def flush(self) -> None:
        """Send what was kept."""
        if self._kept:
            self.run("SELECT 1")

    def execute(self, sql: str, values: Any = None) -> FoundRows:
        """Run one statement."""
        if sql.startswith(("UPDATE", "INSERT", "DELETE")):
            self.keep(translated_sql(sql), values)
            return FoundRows()
        if values is None and sql in self.foreseen:
            return self.foreseen.pop(sql)
        if not self.is_snapshot:
            return self.run(translated_sql(sql), values)
        key = sql, tuple(values or ())
        if key not in self._answers:
            found = self.run(translated_sql(sql), values)
            if len(found) > REMEMBERED_MAX:
                return found
            self._answers[key] = found
        return self._answers[key]

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        """Run one statement for many rows; it counts once."""
        self._run_many(translated_sql(sql), list(rows))

    def _run_many(self, sql: str, rows: list[Any]) -> None:
        for row in rows:
            self.keep(sql, row)
        self.context.statements -= max(len(rows) - 1, 0)

    def stream(self, sql: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        """Yield the rows of a whole table without having all of them in memory."""
        self.flush()
        self.context.statements += 1
        self._streams += 1
        name = f"stream_{self._streams}"
        with RawServerCursor(self.con, name) as cursor:
            cursor.itersize, cursor.format = STREAM_ROWS, Format.BINARY
            cursor.execute(translated_sql(sql), values)
            yield from cursor

    def insert(
        self, table: str, columns: Sequence[str], rows: Iterable[Any], conflict: str = ""
    ) -> None:
        """Insert rows; `conflict` is what follows ON CONFLICT."""
        given = list(rows)
        if not given:
            return
        if conflict.startswith("(") and _has_twice(columns, given, conflict):
            # One at a time: one statement changes no row twice.
            self._run_many(insert_one_sql(table, tuple(columns), conflict), given)
        else:
            self.keep(insert_sql(table, tuple(columns), conflict), turned(table, columns, given))

    def among(self, rows: Sequence[int]) -> RowNumbers:
        """Return rows as the value that `IN` reads."""
        return RowNumbers(sorted(rows))  # The same rows are the same question.

    def texts(self) -> WordTable:
        """Return the full-text index."""
        return WordTable(self)

    def bulk_load(self, head: Head) -> DeferredIndexes:
        """Put the words of new texts off until the end of a load."""
        return ServerLoad(self)

    def scan(self) -> ServerScan:
        """Return the whole tables."""
        return ServerScan(self)

    def former(self, value: Any) -> str | None:
        """Return a value of any type as `history` has it."""
        if value is None:
            return None
        if isinstance(value, bytes):
            return f"b{value.hex()}"
        return f"n{value}" if isinstance(value, int) else f"t{value}"

    def former_of(self, column: str) -> str:
        """Return the SQL that makes a column `former`."""
        return f"former({column})"

    def current(self, was: str | None) -> Any:
        """Return what a value of `history` says."""
        if was is None:
            return None
        kind, value = was[0], was[1:]
        return bytes.fromhex(value) if kind == "b" else int(value) if kind == "n" else value


def _has_twice(columns: Sequence[str], rows: list[Any], conflict: str) -> bool:
    """Return whether two rows have the key that ON CONFLICT begins with."""
    key = itemgetter(*map(columns.index, conflict[1 : conflict.index(")")].split(", ")))
    return len(set(map(key, rows))) < len(rows)


# -- words -----------------------------------------------------------------------------------------


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def postings_of(row: int, name: str, content: str) -> list[Posting]:
    """Return the rows of `words` for one node.

    Words are numbered through name and content, with a gap between, so that no phrase spans both.
    """
    named, said = _tokens(indexed(name)), _tokens(indexed_content(content))
    places: dict[str, bytes] = {}
    for place, word in enumerate([*named, "", *said]):
        where = _PLACES[place] if place < _USUAL_PLACES else place.to_bytes(_PLACE_BYTES, "little")
        places[word] = places[word] + where if word in places else where
    del places[""]
    length = len(named) + len(said)
    return [(word, row, length, len(named), places[word]) for word in sorted(places)]


class NewWords(NamedTuple):
    """How many texts there are, how many words they have, and the columns of `words` for them."""

    texts: int
    words: int
    arrays: list[Any]


def words_of(rows: Sequence[NewText]) -> NewWords:
    """Return the words of texts, sorted, so that the index meets each of its pages once."""
    found: dict[str, list[Posting]] = {}
    words = 0
    for row in rows:
        items = postings_of(*row)
        words += items[0][2] if items else 0
        for item in items:
            found.setdefault(item[0], []).append(item)
    postings = [item for word in sorted(found) for item in found[word]]
    arrays = turned("words", tuple(COLUMNS["words"]), postings) if postings else []
    return NewWords(len(rows), words, arrays)


class WordTable:
    """The words of every node, as one session sees them; ranked as FTS5 ranks them."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session

    def counts(self, words: Sequence[str], nodes: int) -> dict[str, int]:
        """Return about how many of all `nodes` have each word; exact while there are few."""
        self._session.need_index("words")
        found: dict[str, int] = {}
        single = [word for word in words if _tokens(word) == [word]]
        for word, count, last in self._session.run(_COUNTS, (single, COUNTED_MAX)):
            found[word] = count if count < COUNTED_MAX else max(count, count * nodes // last)
        return {
            word: found[word] if word in found else len(self._having(_tokens(word)))
            for word in words
        }

    def match(self, words: Sequence[str], most: int) -> list[TextHit]:
        """Return the nodes that have any of the words, best first."""
        return self._ranked([_tokens(word) for word in words], most)

    def match_all(self, words: Sequence[str], phrase: bool, most: int) -> list[TextHit]:
        """Return the nodes that have all words, or have them as a phrase, best first."""
        if phrase:
            return self._ranked([_tokens(" ".join(words))], most)
        return self._ranked([_tokens(word) for word in words], most, is_all=True)

    def latest(self, words: Sequence[str], most: int) -> list[int]:
        """Return the newest nodes that have all words, newest first."""
        self._session.need_index("words")
        asked = [_tokens(word) for word in words]
        if all(len(tokens) == 1 for tokens in asked) and asked:
            flat = [token for (token,) in asked]
            also = "".join(_HAS.format(number) for number in range(2, len(flat) + 1))
            return self._session_rows(_LATEST.format(also, f"${len(flat) + 1}"), (*flat, most))
        held = [set(self._having(tokens)) for tokens in asked if tokens]
        return sorted(set.intersection(*held), reverse=True)[:most] if held else []

    def _session_rows(self, sql: str, values: tuple[Any, ...]) -> list[int]:
        return [row for (row,) in self._session.run(sql, values)]

    def named(self, words: str) -> list[int]:
        """Return the nodes whose name has the words as a phrase, by row."""
        return sorted(self._having(_tokens(words), in_name=True))

    def average_length(self) -> float:
        """Return how many words a node has on average."""
        texts, words = self._totals()
        return words / texts if texts else 0.0

    def _totals(self) -> tuple[int, int]:
        self._session.need_index("words")
        texts, words = self._session.run("SELECT texts, words FROM heads")[0]
        return texts, words

    def _having(self, phrase: list[str], in_name: bool = False) -> dict[int, tuple[int, int]]:
        """Return the nodes that have a phrase: how often, and how many words they have."""
        if not phrase:
            return {}
        self._session.need_index("words")
        wanted = list(dict.fromkeys(phrase))
        if len(wanted) == len(phrase) == 1 and not in_name:
            sql = f"SELECT node, length(places) / {_PLACE_BYTES}, length FROM words WHERE word = $1"
            return {row: (often, size) for row, often, size in self._session.run(sql, wanted)}
        sql = "SELECT word, node, length, named, places FROM words WHERE word = $1" + "".join(
            f" UNION ALL SELECT word, a.node, length, named, places FROM words a WHERE "
            f"word = ${number} AND EXISTS (SELECT 1 FROM words b WHERE b.word = $1 "
            "AND b.node = a.node)"
            for number in range(2, len(wanted) + 1)
        )
        places: dict[int, dict[str, set[int]]] = {}
        about: dict[int, tuple[int, int]] = {}
        for word, node, length, named, body in self._session.run(sql, wanted):
            places.setdefault(node, {})[word] = set(array(_PLACE, body))
            about[node] = length, named
        found = {}
        for node, where in places.items():
            length, named = about[node]
            if len(where) == len(wanted):
                starts = [
                    start
                    for start in where[phrase[0]]
                    if all(start + at in where[word] for at, word in enumerate(phrase))
                    and (not in_name or start < named)
                ]
                if starts:
                    found[node] = len(starts), length
        return found

    def _ranked(
        self, phrases: list[list[str]], most: int, *, is_all: bool = False
    ) -> list[TextHit]:
        """Return the nodes that have phrases by BM25; ties by row."""
        held = [self._having(phrase) for phrase in phrases if phrase]
        if not held:
            return []
        texts, total = self._totals()
        average = total / texts if texts else 1.0
        rows = set.intersection(*map(set, held)) if is_all else set().union(*held)
        scores: Counter[int] = Counter()
        for hits in held:
            idf = max(log((texts - len(hits) + 0.5) / (len(hits) + 0.5)), 0.0) or IDF_MIN
            for row, (often, size) in hits.items():
                if row in rows:
                    weight = often + K1 * (1 - B + B * size / average)
                    scores[row] += idf * (often * (K1 + 1.0) / weight)  # type: ignore[assignment]
        ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [TextHit(row, float(score)) for row, score in ranked[:most]]

    # -- writes ------------------------------------------------------------------------------------

    def insert(self, rows: Iterable[NewText]) -> None:
        """Index new nodes."""
        self.add(words_of(list(rows)))

    def add(self, new: NewWords) -> None:
        """Write the words of texts."""
        if new.arrays:
            self._session.keep(insert_sql("words", tuple(COLUMNS["words"]), ""), new.arrays)
        self._count(new.texts, new.words)

    def erase(self, rows: Sequence[int]) -> None:
        """Forget the words of nodes; their texts are still there."""
        self._session.need_index("words")
        sql = "SELECT row, name, content FROM nodes WHERE row = ANY($1)"
        found = [postings_of(*row) for row in self._session.run(sql, (RowNumbers(rows),))]
        gone = [(item[0], item[1]) for items in found for item in items]
        self._session.executemany("DELETE FROM words WHERE word = ? AND node = ?", gone)
        self._count(0, -sum(items[0][2] for items in found if items))

    def _count(self, texts: int, words: int) -> None:
        sql = "UPDATE heads SET texts = texts + $1, words = words + $2"
        self._session.keep(sql, (texts, words))


class ServerScan(TableScan):
    """Reads every row of a tenant's tables once, and compares them with what they should be."""

    def __init__(self, session: ServerSession) -> None:
        super().__init__(session)
        self._own = session

    def schema_problems(self) -> list[str]:
        """Return where tables, keys and guards differ from those of a new store."""
        found = dict(
            self._own.run(
                "SELECT c.relname::text, c.relrowsecurity AND c.relforcerowsecurity AND EXISTS "
                "(SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'guard' "
                "AND t.tgenabled = 'O') AND EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = "
                "c.oid AND i.indisprimary) FROM pg_class c WHERE c.relkind = 'r' "
                "AND c.relnamespace = 'worlddb'::regnamespace"
            )
        )
        return [f"{table} is not as it was made" for table in KEYS if not found.get(table)]

    def edited_tables(self) -> list[str]:
        """Return nothing: the guard refuses the edits of other programs."""
        return []

    def text_problems(self) -> list[str]:
        """Analyse every node's text again and compare the words, node by node."""
        stored: dict[int, list[Any]] = {}
        for word, node, *rest in self._own.stream(
            f"SELECT {', '.join(COLUMNS['words'])} FROM words ORDER BY word"
        ):
            stored.setdefault(node, []).append((word, node, *rest))
        for row, name, content in self._own.stream("SELECT row, name, content FROM nodes"):
            if stored.pop(row, []) != postings_of(row, name, content):
                return [f"words: the index and the text of node row {row} differ"]
        return (
            [f"words: the index has a node row {min(stored)} that is not there"] if stored else []
        )


class ServerLines:
    """The lines of one name in the table `side_lines`."""

    def __init__(
        self, beside: Callable[[], AbstractContextManager[ServerSession]], name: str
    ) -> None:
        self._beside = beside
        self._name = name

    def add(self, line: str) -> None:
        """Add a line; when the call returns, it is kept."""
        with self._beside() as session:
            session.run("INSERT INTO side_lines (name, line) VALUES ($1, $2)", (self._name, line))

    def read(self) -> dict[int, str]:
        """Return all lines by number, in the order of writing."""
        with self._beside() as session:
            sql = "SELECT number, line FROM side_lines WHERE name = $1 ORDER BY number"
            return {row[0]: row[1] for row in session.run(sql, (self._name,))}

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove lines for good."""
        with self._beside() as session:
            sql = "DELETE FROM side_lines WHERE name = $1 AND number = ANY ($2)"
            session.run(sql, (self._name, list(numbers)))


TEXTS_BATCH = 2_000
"""Texts in one statement: a megabyte or two of words, sorted, so that each page is met once."""


class ServerLoad:
    """A load that puts the words of its texts off until its end."""

    def __init__(self, session: ServerSession) -> None:
        self.names = {"words"}
        self._session = session
        self._texts: list[NewText] = []
        self._batches: list[Future[NewWords]] = []

    def keep(self, rows: Iterable[NewText]) -> None:
        """Keep texts in memory until their words are written."""
        self._texts.extend(rows)

    def analyse(self, pool: Executor) -> None:
        """Have the words analysed while the server writes, which needs no Python."""
        self._batches = [pool.submit(words_of, batch) for batch in self._split()]
        self._session.flush()

    def _split(self) -> list[list[NewText]]:
        texts = self._texts
        return [texts[at : at + TEXTS_BATCH] for at in range(0, len(texts), TEXTS_BATCH)]

    def build(self) -> None:
        """Write the words; the load is over with it."""
        self._session.deferred = None
        table = WordTable(self._session)
        for batch in self._batches or map(words_of, self._split()):
            table.add(batch.result() if isinstance(batch, Future) else batch)
            self._session.flush()
