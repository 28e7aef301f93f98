"""Pace: how many requests run at once, and how many begin in a minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Pace:
    """Lets requests through one after the other, evenly spaced, and not too many at a time.

    Spaced, not counted per minute: a server that allows 60 a minute may still refuse 60 at once.
    """

    def __init__(self, *, per_minute: float | None, at_once_max: int) -> None:
        self._gap_s = 0.0 if per_minute is None else 60.0 / per_minute
        self._room = threading.BoundedSemaphore(at_once_max)
        self._lock = threading.Lock()
        self._next = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and hold it for the length of the block."""
        with self._room:
            self._wait()
            yield

    def _wait(self) -> None:
        if not self._gap_s:
            return
        with self._lock:
            begins = max(time.monotonic(), self._next)
            self._next = begins + self._gap_s
        while (left := begins - time.monotonic()) > 0:
            time.sleep(left)
