"""Checkpointer: moves the write-ahead log into the file, off every writer's path."""

from __future__ import annotations

import threading
from contextlib import suppress

import apsw

PAGES_MIN = 4_000  # About 16 MB of log: small enough to re-read after a crash in no time.


class Checkpointer:
    """A thread that sleeps until the log has grown, then checkpoints without blocking anyone."""

    def __init__(self, path: str, writer: apsw.Connection) -> None:
        self._path = path
        self._due = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None
        writer.set_wal_hook(self._after_commit)

    def _after_commit(self, con: apsw.Connection, database: str, pages: int) -> int:
        if pages >= PAGES_MIN:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="worlddb-checkpoint", daemon=True
                )
                self._thread.start()
            self._due.set()
        return apsw.SQLITE_OK

    def _run(self) -> None:
        con = apsw.Connection(self._path)
        try:
            while True:
                self._due.wait()
                self._due.clear()
                if self._stopped:
                    return
                # A failed checkpoint loses nothing: the log stays, and the next commit asks again.
                with suppress(apsw.Error):
                    con.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        finally:
            con.close()

    def stop(self) -> None:
        """End the thread; the last connection to close checkpoints what is left."""
        self._stopped = True
        self._due.set()
        if self._thread is not None:
            self._thread.join()
