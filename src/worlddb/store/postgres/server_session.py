"""Server session: one PostgreSQL connection in one transaction.

    ServerPipeline   sends statements together and waits once for all their answers
    ServerSession    the connection behind the shared tables (`store/tables/sql_session.py`)
    ServerScan       whole tables of a tenant, for `check` and `export`
    ServerLines      signing key and record of reads, which are outside the journal

A statement is prepared when first sent, unless a pooler in between does not keep prepared
statements. psycopg's pipelines are not used: they check the socket for every statement, which costs
more than most statements do.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import AbstractContextManager
from functools import cache
from operator import itemgetter
from typing import Any

from psycopg import Connection, OperationalError, RawServerCursor, errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import fetch_many, send
from psycopg.pq import ExecStatus, Format, TransactionStatus

from worlddb.errors import StorageError
from worlddb.store.postgres.server_schema import (
    COLUMNS,
    KEYS,
    RowNumbers,
    insert_one_sql,
    insert_sql,
    translated_sql,
    turned,
)
from worlddb.store.postgres.word_table import ServerLoad, WordTable, postings_of, single_rows
from worlddb.store.rows import Head
from worlddb.store.tables.derived_tables import MODELS_SQL, REACHED_SQL
from worlddb.store.tables.sql_session import (
    HEAD_SQL,
    DeferredIndexes,
    SessionContext,
    SqlSession,
    TableScan,
)

PREPARED_MAX = 300  # prepared statements per connection; the engine has about 200

Statement = tuple[str, Any]
"""SQL, and its values or None."""
Key = tuple[bytes, tuple[int, ...]]
"""The SQL and the types of its values: the key of a prepared statement."""


POOLED = errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement
"""Errors of a server behind a pooler that shares connections between transactions."""


class ServerPipeline:
    """Sends statements over a connection, and reads the server's answers.

    `is_pooled` becomes true when the server has other prepared statements than this one made.
    """

    __slots__ = ("_con", "_most", "_names", "_number", "_values", "is_pooled")

    def __init__(self, con: Connection[Any], *, prepares: bool = True) -> None:
        self._con = con
        self._most = PREPARED_MAX if prepares else 0
        self.is_pooled = False
        self._values = Transformer(con)
        self._names: dict[Key, bytes] = {}
        self._number = 0

    def ask(self, statements: Sequence[Statement], answers: int = 1) -> tuple[list[Any], str]:
        """Run statements; return the rows of the last `answers`, and the status of the last one.

        Raises:
            Error: the first error of the server; later statements were not run.
        """
        given = [self._given(*statement) for statement in statements]
        pgconn = self._con.pgconn
        coming: deque[Key | None] = deque()  # expected answers; for a preparation its key
        pgconn.enter_pipeline_mode()
        try:
            for key, values, formats in given:
                coming += self._send(key, values, formats)
            pgconn.pipeline_sync()
            if pgconn.flush():
                self._con.wait(send(pgconn))
            found, error = self._received(coming)
        except BaseException:
            self._give_up(coming)
            raise
        self._leave_pipeline()
        if error is not None:
            self.is_pooled = isinstance(error, POOLED)
            raise error
        rows = [self._loaded(result) for result in found[-answers:]]
        return rows, (found[-1].command_status or b"").decode()

    def _loaded(self, result: Any) -> list[Any]:
        self._values.set_pgresult(result)
        rows: list[Any] = self._values.load_rows(0, result.ntuples, tuple)
        return rows

    def _given(self, sql: str, values: Any) -> tuple[Key, Any, Any]:
        if not values:
            return (sql.encode(), ()), None, None
        dumped = self._values.dump_sequence(values, [PyFormat.AUTO] * len(values))
        return (sql.encode(), self._values.types or ()), dumped, self._values.formats

    def _send(self, key: Key, values: Any, formats: Any) -> list[Key | None]:
        """Send one statement; return the keys of its expected answers."""
        pgconn = self._con.pgconn
        name, is_new = self._names.get(key), False
        if name is None:
            sql, types = key
            if len(self._names) >= self._most:
                pgconn.send_query_params(sql, values, types, formats, Format.BINARY)
                return [None]
            self._number += 1
            name, is_new = b"worlddb_%d" % self._number, True
            pgconn.send_prepare(name, sql, types)
            self._names[key] = name  # The next statement of this batch finds it.
        pgconn.send_query_prepared(name, values, formats, Format.BINARY)
        return [key, None] if is_new else [None]

    def _received(self, coming: deque[Key | None]) -> tuple[list[Any], Exception | None]:
        """Read all answers; return the rows of statements, and the first error."""
        found, error = [], None
        while coming:
            result = self._next()[0]  # A connection may report its end twice.
            key = coming.popleft()
            if result.status == ExecStatus.FATAL_ERROR and error is None:
                error = errors.error_from_result(result)
            if key is None:
                found.append(result)
            elif error is not None:
                del self._names[key]
        return found, error

    def _next(self) -> list[Any]:
        found: list[Any] = self._con.wait(fetch_many(self._con.pgconn))
        if not found:
            raise OperationalError("the server has closed the connection")
        return found

    def _leave_pipeline(self) -> None:
        self._next()  # The answer to the end of the batch.
        self._con.pgconn.exit_pipeline_mode()

    def _give_up(self, coming: deque[Key | None]) -> None:
        """Read the remaining answers after an interrupt, so that the connection stays usable."""
        for key in filter(None, coming):
            self._names.pop(key, None)
        try:
            while coming:
                self._next()
                coming.popleft()
            self._leave_pipeline()
        except BaseException:
            self._con.pgconn.finish()


STREAM_ROWS = 5_000  # rows of a whole table fetched at once: a megabyte or two
KEPT_MAX = 64  # statements sent at once: their answers fit the connection's buffer
REMEMBERED_MAX = 64  # rows of an answer that a snapshot caches: heads, models, some nodes
ANSWERS_KNOWN_MAX = 2_000  # cached answers that snapshots of one commit share: some megabytes
ROWS_KNOWN_MAX = 20_000  # ids whose rows a store caches: two or three megabytes


_DERIVED = re.compile(
    r"\b(lookups\w*|models|vectors|tokens|pools|pages|waiting|recalls|words|heads|side_lines)\b"
)
"""The tables that change without a commit."""


@cache
def _is_of_commit(sql: str) -> bool:
    """Return whether a query has the same answer until the next commit."""
    return sql.startswith(("SELECT", "WITH", "\n")) and not _DERIVED.search(sql)


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


Answers = dict[tuple[str, Any], FoundRows]
"""By SQL and values."""


class KnownAnswers:
    """Answers cached for all snapshots of one commit, from tables that only a commit changes.

    Sessions that began at another commit keep that commit's answers.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: tuple[Head | None, Answers] = None, {}  # One value: threads change it at once.

    def at(self, head: Head) -> Answers:
        """Return the answers of a commit."""
        known, answers = self._held
        if head != known or len(answers) >= ANSWERS_KNOWN_MAX:
            answers = {}
            self._held = head, answers
        return answers


class KnownRows(dict[bytes, int]):
    """The rows of ids, cached for a session and shared with other sessions of the same store.

    The row of an id never changes. Rows that a snapshot does not have yet are not returned.
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
        """Cache a row; uncommitted rows are not shared with other sessions."""
        super().__setitem__(ident, row)
        if self._session.is_snapshot:
            if len(self._others) >= ROWS_KNOWN_MAX:
                self._others.clear()
            self._others[ident] = row


class ServerSession(SqlSession):
    """A session on a connection to PostgreSQL.

    Writes without an answer are deferred, and sent with the next statement that has one, or with
    the COMMIT: each awaited answer costs a round trip. For the same reason a read-only snapshot
    (`is_snapshot`) caches answers, shares them with snapshots of the same commit (`known`), gets
    the answers that every transaction needs with its beginning (`foreseen`), and nobody waits for
    its end (`end`). `rows` are the rows of ids that all sessions of a store have read.
    """

    __slots__ = (
        "_answers",
        "_is_ending",
        "_kept",
        "_known",
        "_later",
        "_of_commit",
        "_rows",
        "_streams",
        "foreseen",
        "is_snapshot",
        "line",
    )

    def __init__(
        self,
        con: Connection[Any],
        context: SessionContext,
        rows: dict[bytes, int],
        known: KnownAnswers,
        *,
        prepares: bool = True,
    ) -> None:
        self.line = ServerPipeline(con, prepares=prepares)
        self._rows = rows
        self._known = known
        self._kept: list[Statement] = []
        self._streams = 0
        self._is_ending = self.is_snapshot = False
        self._later: Future[Any] | None = None
        self.foreseen: dict[str, FoundRows] = {}
        super().__init__(con, context)

    def forget(self) -> None:
        """Drop cached answers and unsent statements of a snapshot."""
        super().forget()
        self._kept = []
        self._answers: Answers = {}
        self._of_commit = self._answers
        self.node_rows = KnownRows(self, self._rows)

    def begin(self, statements: Sequence[Statement], *, is_snapshot: bool) -> None:
        """Begin a transaction after the last one has ended."""
        self.forget()
        self.context.statements += 1
        self.is_snapshot = is_snapshot
        if self._is_ending:  # Not by `get_result`, which would block all threads.
            self.con.wait(fetch_many(self.con.pgconn))
            self._is_ending = False
        asked = (HEAD_SQL, REACHED_SQL, MODELS_SQL) if is_snapshot else (HEAD_SQL, REACHED_SQL)
        found, _ = self.line.ask([*statements, *((sql, None) for sql in asked)], len(asked))
        self.foreseen = dict(zip(asked, map(FoundRows, found), strict=True))
        if is_snapshot and found[0]:
            self.head = Head(*found[0][0])
            self._of_commit = self._known.at(self.head)

    def end(self) -> None:
        """Send a ROLLBACK of the open transaction without waiting for it."""
        if self._later is not None:
            wait([self._later])
            self._later = None
        pgconn = self.con.pgconn
        if not self.con.closed and pgconn.transaction_status != TransactionStatus.IDLE:
            if pgconn.transaction_status == TransactionStatus.ACTIVE:
                self.con.execute("ROLLBACK")  # An interrupt has left an open statement.
            else:
                pgconn.send_query(b"ROLLBACK")
                pgconn.flush()
                self._is_ending = True

    def run(self, sql: str, values: Any = None) -> FoundRows:
        """Run a statement of PostgreSQL's own dialect."""
        return FoundRows(self._sent(sql, values)[0][-1])

    def commit(self) -> None:
        """Commit the transaction."""
        done = self._sent("COMMIT")[1]
        if done != "COMMIT":
            raise StorageError(
                f"the server did not commit ({done}); nothing was written, try again"
            )

    def _sent(self, sql: str, values: Any = None) -> tuple[list[Any], str]:
        self.context.statements += 1
        self._await_later()
        kept, self._kept = self._kept, []
        return self.line.ask([*kept, (sql, values)])

    def keep(self, sql: str, values: Any = None) -> None:
        """Defer a statement without an answer until the next that has one."""
        self.context.statements += 1
        self._kept.append((sql, values))
        if len(self._kept) >= KEPT_MAX:
            self.flush()

    def flush(self) -> None:
        """Send the deferred statements."""
        if self._kept:
            self.run("SELECT 1")
        self._await_later()

    def flush_later(self, pool: Executor) -> None:
        """Send the deferred statements from another thread; the next statement waits for it."""
        self._await_later()
        if self._kept:
            kept, self._kept = self._kept, []
            self._later = pool.submit(self.line.ask, kept)

    def _await_later(self) -> None:
        if self._later is not None:
            self._later.result()
            self._later = None

    def execute(self, sql: str, values: Any = None) -> FoundRows:
        if sql.startswith(("UPDATE", "INSERT", "DELETE")):
            self.keep(translated_sql(sql), values)
            return FoundRows()
        if values is None and sql in self.foreseen:
            return self.foreseen[sql] if self.is_snapshot else self.foreseen.pop(sql)
        if not self.is_snapshot:
            return self.run(translated_sql(sql), values)
        key = sql, tuple(values or ())
        answers = self._of_commit if _is_of_commit(sql) else self._answers
        found = answers.get(key)
        if found is None:
            found = self.run(translated_sql(sql), values)
            if len(found) <= REMEMBERED_MAX:
                answers[key] = found
        return found

    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        self._run_many(translated_sql(sql), list(rows))

    def _run_many(self, sql: str, rows: list[Any]) -> None:
        for row in rows:
            self.keep(sql, row)
        self.context.statements -= max(len(rows) - 1, 0)

    def stream(self, sql: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
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
        given = list(rows)
        if not given:
            return
        if conflict.startswith("(") and _has_twice(columns, given, conflict):
            # One at a time: one statement cannot change a row twice.
            self._run_many(insert_one_sql(table, tuple(columns), conflict), given)
        else:
            self.keep(insert_sql(table, tuple(columns), conflict), turned(table, columns, given))

    def among(self, rows: Sequence[int]) -> RowNumbers:
        return RowNumbers(sorted(rows))  # Sorted, so that equal sets share a cached answer.

    def texts(self) -> WordTable:
        return WordTable(self)

    def bulk_load(self, head: Head) -> DeferredIndexes:
        """Defer the words of new texts until the end of a load."""
        return ServerLoad(self)

    def scan(self) -> ServerScan:
        return ServerScan(self)

    def former(self, value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, bytes):
            return f"b{value.hex()}"
        return f"n{value}" if isinstance(value, int) else f"t{value}"

    def former_of(self, column: str) -> str:
        return f"former({column})"

    def current(self, was: str | None) -> Any:
        if was is None:
            return None
        kind, value = was[0], was[1:]
        return bytes.fromhex(value) if kind == "b" else int(value) if kind == "n" else value


def _has_twice(columns: Sequence[str], rows: list[Any], conflict: str) -> bool:
    """Return whether two rows have the key that ON CONFLICT begins with."""
    key = itemgetter(*map(columns.index, conflict[1 : conflict.index(")")].split(", ")))
    return len(set(map(key, rows))) < len(rows)


class ServerScan(TableScan):
    """Reads every row of a tenant's tables once, for `check` and `export`."""

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
        """Return an empty list: the guard refuses writes of other programs."""
        return []

    def text_problems(self) -> list[str]:
        """Analyse every node's text again and compare the words, node by node."""
        stored: dict[int, list[Any]] = {}
        sql = f"SELECT {', '.join(COLUMNS['words'])} FROM words ORDER BY word"
        for item in single_rows(self._own.stream(sql)):
            stored.setdefault(item[1], []).append(item)
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
        with self._beside() as session:
            session.run("INSERT INTO side_lines (name, line) VALUES ($1, $2)", (self._name, line))

    def read(self) -> dict[int, str]:
        with self._beside() as session:
            sql = "SELECT number, line FROM side_lines WHERE name = $1 ORDER BY number"
            return {row[0]: row[1] for row in session.run(sql, (self._name,))}

    def remove(self, numbers: Sequence[int]) -> None:
        with self._beside() as session:
            sql = "DELETE FROM side_lines WHERE name = $1 AND number = ANY ($2)"
            session.run(sql, (self._name, list(numbers)))
