"""Server lines: what belongs to a tenant and is no part of its journal: key and record of reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from worlddb.store.postgres.server_session import ServerSession


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
