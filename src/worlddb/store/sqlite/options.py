"""Options: what `open` may be told, checked before anything is opened."""

from __future__ import annotations

import os
from collections.abc import Iterable

from worlddb.errors import InvalidInputError
from worlddb.model.inputs import Limits

SYNCHRONOUS = {"full": "FULL", "normal": "NORMAL"}
"""What `durability` means to SQLite."""
PATIENCE_S_MAX = 1_000_000


def check_options(
    path: object,
    durability: object,
    patience: object,
    limits: object,
    handlers: object,
    clock: object,
) -> None:
    """Refuse options of the wrong kind.

    Raises:
        InvalidInputError: an option is wrong; the message says what it may be.
    """
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"path: give text or a Path, not {path!r}")
    if not isinstance(durability, str) or durability not in SYNCHRONOUS:
        raise InvalidInputError(f"durability {durability!r}: use 'full' or 'normal'")
    if isinstance(patience, bool) or not isinstance(patience, int | float):
        raise InvalidInputError(f"busy_timeout_s: give seconds, not {patience!r}")
    if not 0 <= patience <= PATIENCE_S_MAX:
        raise InvalidInputError(
            f"busy_timeout_s: give 0 to {PATIENCE_S_MAX} seconds, not {patience!r}"
        )
    if limits is not None and not isinstance(limits, Limits):
        raise InvalidInputError(f"limits: give worlddb.Limits(…), not {limits!r}")
    if not isinstance(handlers, Iterable):
        raise InvalidInputError(f"handlers: give a list of edge handlers, not {handlers!r}")
    if not callable(clock):
        raise InvalidInputError(f"clock: give a function of microseconds, not {clock!r}")
