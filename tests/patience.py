"""Patience: how long a test waits for what has to happen, and how it waits."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_S = 60
"""Far longer than a busy machine needs: only a test that fails waits so long."""
LOOK_EVERY_S = 0.01  # Seldom enough to leave the processor to others.


def until(condition: Callable[[], object]) -> None:
    """Wait until something is so, however long a busy machine needs for it."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it has not happened"
        time.sleep(LOOK_EVERY_S)
