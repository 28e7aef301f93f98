"""Server pipeline: sends statements together over a connection, and waits once for all answers.

Each statement is prepared when it is first sent, unless a pooler stands in between that does not
keep prepared statements. psycopg's own pipelines look at the socket for every statement, which
costs more than most statements do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from psycopg import Connection, OperationalError, errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import fetch_many, send
from psycopg.pq import ExecStatus, Format

PREPARED_MAX = 300  # Statements that a server keeps for one connection; the engine has about 200.

Statement = tuple[str, Any]
"""SQL, and its values or None."""
Key = tuple[bytes, tuple[int, ...]]
"""The SQL, and the types of its values: what is prepared once."""


POOLED = errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement
"""What a server says where a pooler gives each transaction a connection that others have used."""


class ServerPipeline:
    """Sends statements over a connection, and reads what the server answers.

    `is_pooled` turns true when the server has other prepared statements than this one has made.
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
            Error: the first error of the server; what follows it was not run.
        """
        given = [self._given(*statement) for statement in statements]
        pgconn = self._con.pgconn
        coming: deque[Key | None] = deque()  # Answers: of a preparation, its key.
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
        """Send one statement; return what its answers are."""
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
        """Read all answers; return those of statements, and the first error."""
        found, error = [], None
        while coming:
            result = self._next()[0]  # A connection that ends may tell of it twice.
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
        """Read what is left after an interrupt, so that the connection can be used again."""
        for key in filter(None, coming):
            self._names.pop(key, None)
        try:
            while coming:
                self._next()
                coming.popleft()
            self._leave_pipeline()
        except BaseException:
            self._con.pgconn.finish()
