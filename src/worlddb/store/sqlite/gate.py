"""Gate: counts the sessions of a store, admits one writer at a time, and closes behind the last."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from worlddb.errors import ConflictError, InvalidInputError

TIDYING_S_MAX = 5.0
"""How long the store's own upkeep may wait for its turn, or a writer for the upkeep."""


class Gate:
    """Counts readers, admits one writer at a time, and shuts when both are gone."""

    def __init__(self, path: str, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._state = threading.Condition()
        self._readers = 0
        self._writer: int | None = None
        self._tidier: int | None = None
        self._closed = False
        self._queue: deque[object] = deque()
        self._long_lived: list[apsw.Connection] = []

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count as a reader for the length of the block.

        Raises:
            InvalidInputError: the store is closed.
        """
        counted = False
        try:
            with self._state:
                self._check_open()
                self._readers += 1
                counted = True
            yield
        finally:
            if counted:
                with self._state:
                    self._readers -= 1
                    self._state.notify_all()

    @contextmanager
    def writing(self, timeout_s: float | None = None) -> Iterator[None]:
        """Be the one writer for the length of the block.

        Raises:
            InvalidInputError: the store is closed, or this thread is the writer already.
            ConflictError: another thread stayed the writer for longer than the time-out.
        """
        me = threading.get_ident()
        patience_s = self._timeout_s if timeout_s is None else timeout_s
        if self._writer == me:
            raise InvalidInputError(
                "this thread already has a transaction open; use that one, or end it first"
            )
        ticket = object()
        try:
            with self._state:
                self._check_open()
                self._queue.append(ticket)
                if not self._wait_for_turn(ticket, patience_s):
                    raise ConflictError(
                        f"{self._path}: another thread's transaction took longer than "
                        f"{patience_s:g} s; try again"
                    )
                self._check_open()
                self._writer = me
            yield
        finally:
            with self._state:
                with suppress(ValueError):
                    self._queue.remove(ticket)
                if self._writer == me:
                    self._writer = None
                self._state.notify_all()

    @contextmanager
    def tidying(self) -> Iterator[None]:
        """Be the one writer for a moment that is the store's own business.

        Raises:
            InvalidInputError, ConflictError: as `writing`; then there is nothing to tidy.
        """
        self._tidier = threading.get_ident()
        try:
            with self.writing(TIDYING_S_MAX):
                yield
        finally:
            self._tidier = None

    def _wait_for_turn(self, ticket: object, patience_s: float) -> bool:
        """Wait until a writer may pass; one without patience still waits while we tidy up."""
        if self._state.wait_for(lambda: self._is_next(ticket), patience_s):
            return True
        is_ours = self._tidier is not None and self._writer in (None, self._tidier)
        return is_ours and self._state.wait_for(lambda: self._is_next(ticket), TIDYING_S_MAX)

    def _is_next(self, ticket: object) -> bool:
        """Return whether it is a waiting writer's turn: first come, first served."""
        return self._writer is None and self._queue[0] is ticket

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other thread out for the length of the block; the writer passes."""
        if self._writer == threading.get_ident():
            yield
            return
        with self.writing():
            yield

    def adopt(self, con: apsw.Connection) -> None:
        """Remember a connection that lives outside the count, to close it with the store."""
        with self._state:
            self._long_lived.append(con)

    def drop(self, con: apsw.Connection) -> None:
        """Forget an adopted connection."""
        with self._state:
            if con in self._long_lived:
                self._long_lived.remove(con)

    def close(self) -> list[apsw.Connection]:
        """Admit nobody more, wait until all are out, and return the adopted connections.

        Raises:
            InvalidInputError: this thread has a transaction open.
        """
        if self._writer == threading.get_ident():
            raise InvalidInputError(
                "this thread has a transaction open; leave its block, then close the store"
            )
        with self._state:
            self._closed = True
            self._state.wait_for(lambda: not self._readers and self._writer is None)
            left, self._long_lived = self._long_lived, []
        return left

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidInputError(f"{self._path}: is closed; open it again")
