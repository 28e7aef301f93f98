"""Turns: many readers or one writer, and neither can keep the other waiting for good.

A reader that comes while a writer waits or works lets that one writer through and goes next, also
when more writers are queueing; a writer waits for the readers that were there before it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock that is shared by readers and held by one writer; not reentrant."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._readers = 0
        self._writing = False
        self._writers_waiting = 0
        self._turn = 0
        self._waiting = 0  # Readers that wait for the present turn to end.
        self._due = 0  # Readers of the last turn that have not come in yet.

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Share the lock for the length of the block."""
        with self._changed:
            if self._writing or self._writers_waiting:
                self._wait_as_reader()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                if not self._readers and self._writers_waiting:
                    self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock alone for the length of the block."""
        with self._changed:
            self._writers_waiting += 1
            try:
                while self._writing or self._readers or self._due:
                    self._changed.wait()
            except BaseException:
                # Interrupted while waiting: the readers behind this writer must not wait for it.
                self._writers_waiting -= 1
                self._end_turn()
                raise
            self._writers_waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._end_turn()

    def _wait_as_reader(self) -> None:
        turn = self._turn
        self._waiting += 1
        try:
            while self._turn == turn or self._writing:
                self._changed.wait()
        finally:
            if self._turn == turn:
                self._waiting -= 1
            else:
                self._due -= 1
                self._changed.notify_all()

    def _end_turn(self) -> None:
        self._turn += 1
        self._due += self._waiting
        self._waiting = 0
        self._changed.notify_all()
