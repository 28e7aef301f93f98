"""Pending reader: reads the texts that were too long for their write, on a thread of its own.

No caller waits for the thread, and it works in no lane of theirs. It reads one text at a time, then
rests several times as long as that took. What it has not read when it stops stays in the queue.
Texts that wait for a language model are left to `extract_pending`: to ask it costs money.
"""

from __future__ import annotations

import logging
import threading
import time

from worlddb.errors import WorldDBError
from worlddb.ingest.extraction_queue import queue_entries
from worlddb.ingest.ingestion import Ingestion

READER = "rules"
ACTOR = "extract"
LOOK_EVERY_S = 5.0  # Other processes queue texts, too. A look is one small read.
RESTS = 9  # A tenth of the time is for the work, as for other work in the background.
REST_S_MAX = 30.0  # The longest text takes a few seconds.
STOP_S_MAX = 2.0
"""How long stopping waits. A text that is just read is given up; nothing of it was written."""

log = logging.getLogger(__name__)


class PendingReader:
    """Reads what waits in one open store, from `start` to `stop`."""

    def __init__(self, ingestion: Ingestion) -> None:
        self._ingestion = ingestion
        self._stop = threading.Event()
        # A daemon: a process that ends does not wait for a text to be read.
        self._thread = threading.Thread(target=self._work, name="worlddb-extract", daemon=True)

    def start(self) -> None:
        """Begin to read what waits, and what will wait."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more; return soon, also while a text is being read."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S_MAX)

    def _work(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            began = time.monotonic()
            try:
                is_read = self._read_one()
            except WorldDBError as error:  # A full disk, or another writer: later it may succeed.
                is_read = False
                if not self._stop.is_set():
                    log.warning("a long text is not read yet: %s", error)
            took_s = time.monotonic() - began
            pause_s = min(RESTS * took_s, REST_S_MAX) if is_read else LOOK_EVERY_S

    def _read_one(self) -> bool:
        """Read the text that waits longest; return whether there was one."""
        with self._ingestion.store.read() as reader:
            waits = any(
                entry.pending.extractor == READER and not entry.pending.attempts
                for entry in queue_entries(reader)
            )
        if waits:  # A text that failed once stays for a person to look at.
            self._ingestion.extract_pending(
                READER, limit=1, actor=ACTOR, recluster="later", on_progress=lambda *_: None
            )
        return waits
