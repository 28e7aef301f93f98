"""Sets: the SQL of their pages, and how their changes lie in the file until pages follow."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import apsw
from blake3 import blake3

from worlddb.errors import CorruptionError
from worlddb.store.protocol import SetChange

_SUM_BYTES = 16
_CHANGE = struct.Struct(">QBBII")
_SEQ = struct.Struct(">q")


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


class Sets:
    """The part of a reader that knows the pages of sets."""

    con: apsw.Connection

    def page(self, world: int, kind: int, path: str) -> tuple[bool, bytes] | None:
        """Return one page of a world's set: whether it is a fork, and its bytes."""
        found = self.con.execute(
            "SELECT fork, body FROM pages WHERE world = ? AND kind = ? AND path = ?",
            (world, kind, path),
        ).fetchone()
        return None if found is None else (bool(found[0]), found[1])

    def waiting(self, after: int | None = None) -> list[SetChange]:
        """Return the changes of sets whose pages are not written, of all commits or after one."""
        sql = "SELECT seq, body FROM waiting WHERE ?1 IS NULL OR seq > ?1 ORDER BY seq"
        found = self.con.execute(sql, (after,))
        return [change for seq, body in found for change in decode(seq, body)]
