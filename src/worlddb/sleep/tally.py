"""Tally: how often each memory was recalled, counted in memory and written down now and then.

Noting costs a recall a few dictionary entries. What was noted is written by a thread of its own,
without a commit, when there is enough of it or enough time has passed, and when the store closes.
A count that cannot be written is kept for the next time; a store that is read-only counts nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from worlddb.errors import WorldDBError
from worlddb.store.protocol import Store

WAITING_MAX = 1_000
"""Memories with unwritten counts before they are written, however early that is."""
EVERY_MICROS = 30_000_000
PATIENCE_S = 1.0
LAST_PATIENCE_S = 0.2


class Tally:
    """The counts of one open store that are not in the file yet."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: dict[bytes, tuple[int, int]] = {}
        self._since = 0
        self._writer: threading.Thread | None = None
        self._off = store.read_only

    def note(self, ids: Iterable[bytes]) -> None:
        """Count some memories as recalled now. Never waits for the disk, and never raises."""
        if self._off:
            return
        now = self._clock()
        with self._lock:
            waiting = self._waiting
            if not waiting:
                self._since = now
            for ident in ids:
                count, _ = waiting.get(ident, (0, 0))
                waiting[ident] = count + 1, now
            is_due = len(waiting) >= WAITING_MAX or now - self._since >= EVERY_MICROS
            if not is_due or self._writer is not None:
                return
            self._writer = threading.Thread(target=self._write, name="worlddb-tally", daemon=True)
            writer = self._writer
        try:
            writer.start()
        except RuntimeError:  # No more threads, or the interpreter is ending.
            with self._lock:
                self._writer = None

    def _write(self) -> None:
        try:
            self.flush(PATIENCE_S)
        finally:
            with self._lock:
                self._writer = None

    def flush(self, patience_s: float = PATIENCE_S) -> bool:
        """Write down what was counted; return whether nothing is left."""
        with self._lock:
            taken, self._waiting = self._waiting, {}
        if not taken or self._off:
            return True
        try:
            with self._store.derive(patience_s) as session:
                rows = ((session.node_row(ident), *counted) for ident, counted in taken.items())
                known = [(row, count, last) for row, count, last in rows if row is not None]
                session.sweep.add_recalls(known)
        except WorldDBError:
            with self._lock:
                for ident, (count, last) in self._waiting.items():
                    more, _ = taken.get(ident, (0, 0))
                    taken[ident] = count + more, last
                self._waiting = taken
                self._since = self._clock()
            return False
        return True

    def close(self) -> None:
        """Write down the rest, if that goes quickly, and count no more."""
        with self._lock:
            writer = self._writer
        if writer is not None:
            with suppress(RuntimeError):
                writer.join()
        self.flush(LAST_PATIENCE_S)
        self._off = True
