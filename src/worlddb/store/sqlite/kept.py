"""Kept: the writer's view of set pages, and how changes of sets lie in the file until pages follow.

A commit changes a leaf here and a leaf there, and every fork above them: many pages of the file for
a few bytes. So it writes down only what it put and dropped, in one row; the pages themselves are
kept in memory, and written together once enough changes wait. Pages in the file and the changes
that wait beside them say the same as the pages kept here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from blake3 import blake3

from worlddb.errors import CorruptionError
from worlddb.store.protocol import Head, SetChange

KEPT_MAX = 4096
WAITING_MAX = 256
"""How many members may wait: so many pages a commit may have to write at once."""

_SUM_BYTES = 16
_CHANGE = struct.Struct(">QBBII")
_SEQ = struct.Struct(">q")

Key = tuple[int, int, str]
Page = tuple[bool, bytes]


def size_of(changes: Iterable[SetChange]) -> int:
    """Return how many members were put or dropped."""
    return sum(len(change.put) + len(change.drop) for change in changes)


def encode(seq: int, changes: Iterable[SetChange]) -> bytes:
    """Return a commit's changes as one row's bytes, behind a sum over them."""
    parts = []
    for _, world, kind, put, drop in changes:
        width = len(put[0]) if put else 0
        parts.append(_CHANGE.pack(world, kind, width, len(put), len(drop)))
        parts += put
        parts += drop
    body = b"".join(parts)
    return _sum(seq, body) + body


def decode(seq: int, row: bytes) -> list[SetChange]:
    """Return the changes that `encode` wrote.

    Raises:
        CorruptionError: these are not the bytes that were written.
    """
    body = row[_SUM_BYTES:]
    if row[:_SUM_BYTES] != _sum(seq, body):
        raise CorruptionError(f"what waits of commit {seq} is damaged; restore a backup")
    changes, at = [], 0
    while at < len(body):
        world, kind, width, puts, drops = _CHANGE.unpack_from(body, at)
        at += _CHANGE.size
        put = [body[at + i * width : at + (i + 1) * width] for i in range(puts)]
        at += puts * width
        drop = [body[at + i * 32 : at + (i + 1) * 32] for i in range(drops)]
        at += drops * 32
        changes.append(SetChange(seq, world, kind, put, drop))
    return changes


def _sum(seq: int, body: bytes) -> bytes:
    return blake3(_SEQ.pack(seq) + body).digest()[:_SUM_BYTES]


class KeptPages(dict[Key, "Page | None"]):
    """Pages by (world, kind, path) as of one commit; None says there is no such page."""

    def __init__(self) -> None:
        super().__init__()
        self.unwritten: set[Key] = set()
        self.waiting = 0
        self.is_fresh = False
        self._head: tuple[int, bytes] | None = None
        self.at: tuple[int, bytes] | None = None
        self._next: tuple[int, bytes] | None = None

    @property
    def is_full(self) -> bool:
        """Whether so much waits that pages have to be written."""
        return self.waiting > WAITING_MAX

    def begin(self, head: Head) -> None:
        """Start a transaction that follows the commit `head`."""
        self.is_fresh = self.at == (head.seq, head.hash)
        self._next = None
        if len(self) > KEPT_MAX:
            for key in self.keys() - self.unwritten:
                del self[key]

    def forget(self) -> None:
        """Drop everything: the file has it."""
        self.clear()
        self.unwritten.clear()
        self.waiting = 0

    def caught_up(self, waiting: int) -> None:
        """Say that the pages are those of the last commit, with so many members unwritten."""
        self.is_fresh = True
        self.waiting = waiting

    def change(self, key: Key, page: Page | None) -> None:
        """Change a page. Until the commit lands, the pages are those of no commit."""
        self.at = None
        self[key] = page
        self.unwritten.add(key)

    def leads_to(self, seq: int, commit: bytes) -> None:
        """Remember the commit that the transaction becomes if it lands."""
        self._next = (seq, commit)

    def landed(self) -> None:
        """Keep the pages: they are now those of the last commit."""
        if self.is_fresh and self._next is not None:
            self.at = self._next
