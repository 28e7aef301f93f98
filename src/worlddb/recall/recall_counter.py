"""Recall counter: how often each memory was a hit, counted in memory and saved in batches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from worlddb.errors import WorldDBError
from worlddb.store.interface import Store

UNSAVED_MAX = 1_000
"""Memories with unsaved counts that trigger a save. Bounds memory and the loss after a kill."""
SAVE_EVERY_MICROS = 30_000_000
"""Counts only rank; to lose half a minute of them in a kill is no harm."""
SAVE_TIMEOUT_S = 1.0
"""How long a save waits for the write lock. It may fail: the counts are kept."""
CLOSE_TIMEOUT_S = 0.2
"""How long the last save may delay `close`."""


class RecallCounter:
    """How often each memory of one open store was recalled, counted in memory and saved in batches.

    A thread saves the counts, without a commit: when there are many, when some time has passed, and
    when the store closes. Counts that cannot be saved are kept for the next time. A read-only store
    counts nothing.
    """

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._unsaved: dict[bytes, tuple[int, int]] = {}
        self._since = 0
        self._saver: threading.Thread | None = None
        self._is_off = store.read_only

    def note(self, ids: Iterable[bytes]) -> None:
        """Count memories as recalled now. Never waits for the disk, and never raises."""
        if self._is_off:
            return
        now = self._clock()
        with self._lock:
            unsaved = self._unsaved
            if not unsaved:
                self._since = now
            for ident in ids:
                count, _ = unsaved.get(ident, (0, 0))
                unsaved[ident] = count + 1, now
            is_due = len(unsaved) >= UNSAVED_MAX or now - self._since >= SAVE_EVERY_MICROS
            if not is_due or self._saver is not None:
                return
            saver = threading.Thread(target=self._save, name="worlddb-recalls", daemon=True)
            self._saver = saver
        try:
            saver.start()
        except RuntimeError:  # No more threads, or the interpreter is ending.
            with self._lock:
                self._saver = None

    def _save(self) -> None:
        try:
            self.flush()
        finally:
            with self._lock:
                self._saver = None

    def flush(self, timeout_s: float = SAVE_TIMEOUT_S) -> bool:
        """Save the counts; return whether none is left."""
        with self._lock:
            taken, self._unsaved = self._unsaved, {}
        if not taken or self._is_off:
            return True
        try:
            with self._store.derive(timeout_s) as session:
                rows = ((session.node_row(ident), *counted) for ident, counted in taken.items())
                known = [(row, count, last) for row, count, last in rows if row is not None]
                session.sweep.add_recalls(known)
        except WorldDBError:
            with self._lock:
                for ident, (count, last) in self._unsaved.items():
                    more, _ = taken.get(ident, (0, 0))
                    taken[ident] = count + more, last
                self._unsaved = taken
                self._since = self._clock()
            return False
        return True

    def close(self) -> None:
        """Save the rest, if that is quick, and count no more."""
        self.wait()
        self.flush(CLOSE_TIMEOUT_S)
        self._is_off = True

    def wait(self) -> None:
        """Wait for a save that is under way."""
        with self._lock:
            saver = self._saver
        if saver is not None:
            with suppress(RuntimeError):
                saver.join()
