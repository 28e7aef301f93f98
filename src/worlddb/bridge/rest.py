"""Rest: an endpoint that failed at every try is left alone for a while.

    failed() ──▶ down: who can wait does not ask ──rest_s──▶ one asks for all ──▶ answered()

A write is such a one: its text waits in the queue. The one who asks for all tries once: it is most
likely in vain. Who cannot wait may ask at any time, as patiently as ever.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # A library says nothing unless somebody listens.


class Rest:
    """Whether one endpoint is down, as far as its last answer tells; safe to share."""

    def __init__(
        self, name: str, rest_s: float, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._rest_s = rest_s
        self._clock = clock
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._until = 0.0
        self._asks_for_all: int | None = None

    @property
    def is_asked_for_all(self) -> bool:
        """Whether this thread is the one that tries whether it works again."""
        return self._asks_for_all == threading.get_ident()

    def failed(self, reason: str) -> None:
        """Note that it failed at every try. The first time, it is told in the log."""
        if not self._rest_s:
            return
        with self._lock:
            was_down, self._reason = self._reason is not None, reason
            self._until = self._clock() + self._rest_s
            self._asks_for_all = None
        if not was_down:
            log.warning(
                "%s does not answer: writes go on without it, and it is tried every %g s; "
                "'worlddb extract --pending' finishes what waits",
                self._name,
                self._rest_s,
            )

    def answered(self) -> None:
        """Note that it works."""
        with self._lock:
            was_down, self._reason = self._reason is not None, None
            self._asks_for_all = None
        if was_down:
            log.warning("%s answers again", self._name)

    def reason(self) -> str | None:
        """Return why not to ask it now; None if it works, or if the caller is to try for all."""
        with self._lock:
            if self._reason is None:
                return None
            now = self._clock()
            if now < self._until:
                return f"not asked, for it failed shortly before: {self._reason}"
            self._until = now + self._rest_s
            self._asks_for_all = threading.get_ident()
            return None
