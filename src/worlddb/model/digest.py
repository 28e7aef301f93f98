"""The set digest: one hash for a set of addresses, whatever the order of writes.

A member is a fixed-width byte string that begins with a 32-byte address: `id ‖ state` for a child,
`id` for an interior edge.

    digest(S) at depth d =
        |S| ≤ 64   blake3( field("worlddb.bucket.1") ‖ width as 4 bytes ‖ sorted members )
        else       blake3( field("worlddb.fork.1") ‖ digest(S₀) ‖ … ‖ digest(S₁₅) )

where Sᵢ holds the members whose address has nibble i at depth d, and the empty set is the bucket
of width 0. The shape follows from the set alone, so equal sets have equal digests; one change
touches one bucket and the forks above it.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence

from blake3 import blake3

BUCKET_MAX = 64
FORK_WIDTH = 16

_LENGTH = struct.Struct(">I").pack


def _domain(tag: bytes) -> bytes:
    return _LENGTH(len(tag)) + tag


_BUCKET = _domain(b"worlddb.bucket.1")
_FORK = _domain(b"worlddb.fork.1")


def bucket_digest(members: Sequence[bytes]) -> bytes:
    """Return the digest of at most 64 sorted members."""
    return joined_bucket_digest(len(members[0]) if members else 0, b"".join(members))


def joined_bucket_digest(width: int, members: bytes) -> bytes:
    """Return the digest of a bucket from its members one after the other."""
    return blake3(_BUCKET + _LENGTH(width) + members).digest()


def fork_digest(digests: Sequence[bytes]) -> bytes:
    """Return the digest of a fork from those of its 16 parts."""
    return joined_fork_digest(b"".join(digests))


def joined_fork_digest(digests: bytes) -> bytes:
    """Return the digest of a fork from those of its parts one after the other."""
    return blake3(_FORK + digests).digest()


EMPTY = bucket_digest(())
"""The digest of the empty set."""


def nibble(member: bytes, depth: int) -> int:
    """Return the half-byte of the member's address at `depth`."""
    byte = member[depth >> 1]
    return byte & 15 if depth & 1 else byte >> 4


def split(members: Sequence[bytes], depth: int) -> list[Sequence[bytes]]:
    """Split sorted members that agree on the first `depth` nibbles by the next one."""
    if len(members) <= FORK_WIDTH:
        few: list[list[bytes]] = [[] for _ in range(FORK_WIDTH)]
        for member in members:
            few[nibble(member, depth)].append(member)
        return few  # type: ignore[return-value]
    parts: list[Sequence[bytes]] = []
    start = 0
    prefix = members[0][: depth >> 1]
    high = members[0][depth >> 1] & 0xF0
    for i in range(1, FORK_WIDTH):
        bound = prefix + bytes(((high | i) if depth & 1 else (i << 4),))
        end = bisect_left(members, bound, start)
        parts.append(members[start:end])
        start = end
    parts.append(members[start:])
    return parts


def set_digest(members: Sequence[bytes], depth: int = 0) -> bytes:
    """Return the digest of sorted members that agree on the first `depth` nibbles."""
    if len(members) <= BUCKET_MAX:
        return bucket_digest(members) if members else EMPTY
    return fork_digest([set_digest(part, depth + 1) for part in split(members, depth)])
