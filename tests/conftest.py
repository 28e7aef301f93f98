"""What holds for all tests: an interrupt interrupts, and long files come first."""

from __future__ import annotations

import signal

import pytest

pytest_plugins = ["store_choice"]

LONG = {"explorer", "crash", "chaos", "faces", "evaluate", "store", "property", "index", "audit"}
"""Folders with long files. They come first: both processes of a run end with short ones."""

# A shell that starts us in the background has us ignore it, and what we start inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first; otherwise the order stays."""
    items.sort(key=lambda item: LONG.isdisjoint(item.path.parts))
