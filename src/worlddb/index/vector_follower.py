"""VectorFollower: a thread that embeds what was committed, so that no recall has to.

It also files the names of many nodes that were written at once.

A server has one (`db.embed_in_background()`). While it runs, a recall takes the vectors that are
there. Of the nodes that it can see, it embeds the newest few itself; the others are found by their
words and names until the thread comes to them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from worlddb.errors import WorldDBError
from worlddb.index.vectors import Vectors

LOOK_S = 0.1  # Between two looks for new commits, whoever made them: much shorter than a thought.
RETRY_S = 5.0  # After an embedder has failed: an endpoint that is down needs longer than a moment.
STOPPING_S_MAX = 5.0  # Longer than a batch takes; then the thread, a daemon, is left behind.

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # A library says nothing unless somebody listens.


class _StoppedError(Exception):
    """The store is being closed."""


class VectorFollower:
    """Keeps the vectors of one open store up to the last commit."""

    def __init__(self, vectors: Vectors, follow_names: Callable[[], None]) -> None:
        self._vectors = vectors
        self._follow_names = follow_names
        self._stop = threading.Event()
        vectors.is_followed = True
        self._thread = threading.Thread(target=self._run, name="worlddb-vectors", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause_s = LOOK_S
        while not self._stop.wait(pause_s):
            pause_s = LOOK_S
            try:
                self._follow_names()
                self._vectors.catch_up(self._progress)
            except _StoppedError:
                return
            except WorldDBError as error:
                log.warning("vectors wait: %s", error)
                pause_s = RETRY_S

    def _progress(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise _StoppedError

    def stop(self) -> None:
        """End the thread; what is embedded by then is kept."""
        self._stop.set()
        self._thread.join(STOPPING_S_MAX)
        self._vectors.is_followed = False
