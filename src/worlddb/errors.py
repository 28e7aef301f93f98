"""The errors WorldDB raises, in one tree.

    WorldDBError
    ├── InvalidInputError   the call is wrong; the message says what to change
    ├── NotFoundError       no such node, edge, commit or proposal at the requested time
    ├── ConflictError       another writer was first; retry with a fresh read
    ├── RejectedError       an edge handler refused; the transaction was rolled back
    ├── FormatError         the file is not a WorldDB store, or of a newer format
    ├── CorruptionError     stored bytes contradict each other; run `worlddb check`
    ├── StorageError        the disk refused: full, read-only, unreadable
    │   └── StoreKeyError   the key of an encrypted store is missing or wrong
    └── ProviderError       a model, an endpoint, a server or a custom edge handler failed

Faces map these to exit codes, HTTP statuses and MCP errors; the core never does.
"""

from __future__ import annotations

__all__ = [
    "ConflictError",
    "CorruptionError",
    "FormatError",
    "InvalidInputError",
    "NotFoundError",
    "ProviderError",
    "RejectedError",
    "StorageError",
    "StoreKeyError",
    "WorldDBError",
]


class WorldDBError(Exception):
    """The base of every error that this package raises on purpose."""


class InvalidInputError(WorldDBError, ValueError):
    """The call is wrong; the message says what to change."""


class NotFoundError(WorldDBError, LookupError):
    """No node, edge or commit has this id or number at the requested time."""


class ConflictError(WorldDBError):
    """Another writer holds or has changed what this call needs; try again."""


class RejectedError(WorldDBError):
    """An edge handler refused the write, so the whole transaction was rolled back."""

    def __init__(self, reason: str, *, edge_type: str | None = None) -> None:
        super().__init__(f"{edge_type}: {reason}" if edge_type else reason)
        self.reason = reason
        self.edge_type = edge_type


class FormatError(WorldDBError):
    """The file is not a WorldDB store, or was written by a newer format."""


class CorruptionError(WorldDBError):
    """Stored bytes contradict each other; `worlddb check` says where."""


class StorageError(WorldDBError):
    """The disk refused: full, read-only, missing folder or failing device."""


class StoreKeyError(StorageError):
    """The key of an encrypted store is missing or wrong; the message says what to give."""


class ProviderError(WorldDBError):
    """A model, an endpoint, a WorldDB server or the rewrite of a custom edge handler failed."""
