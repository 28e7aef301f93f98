"""Pages: how a world's sets of children and edges lie in the store.

A page is a node of the set digest's tree. A leaf page is a bucket: its sorted members, one after
the other. A fork page is the digests of its 16 parts, then their sizes, 4 bytes big-endian each.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Protocol

from worlddb.model.digest import (
    BUCKET_MAX,
    EMPTY,
    FORK_WIDTH,
    bucket_digest,
    fork_digest,
    joined_bucket_digest,
    joined_fork_digest,
    nibble,
    split,
)
from worlddb.store.protocol import CHILDREN, EDGES

WIDTH = {CHILDREN: 64, EDGES: 32}
NIBBLES = "0123456789abcdef"

_SIZES = struct.Struct(f">{FORK_WIDTH}I")
_SIZE = struct.Struct(">I")
_DIGESTS_BYTES = 32 * FORK_WIDTH


class PageSource(Protocol):
    """Whatever has pages: a session of a store, or one with what waits laid over it."""

    def page(self, world: int, kind: int, path: str) -> tuple[bool, bytes] | None:
        """Return one page of a world's set: whether it is a fork, and its bytes."""


def fork_body(digests: list[bytes], sizes: list[int]) -> bytes:
    """Return a fork page."""
    return b"".join(digests) + _SIZES.pack(*sizes)


def members_of(body: bytes, width: int) -> list[bytes]:
    """Return the members of a leaf page."""
    return [body[i : i + width] for i in range(0, len(body), width)]


def parts_of(body: bytes) -> tuple[list[bytes], list[int]]:
    """Return the digests and sizes of a fork page."""
    digests = [body[i : i + 32] for i in range(0, _DIGESTS_BYTES, 32)]
    return digests, list(_SIZES.unpack_from(body, _DIGESTS_BYTES))


def with_parts(
    body: bytes, parts: Iterable[tuple[int, bytes, int]]
) -> tuple[bytes, bytes, tuple[int, ...]]:
    """Return a fork page with other parts (place, digest, size), its digest, and all its sizes."""
    changed = bytearray(body)
    for i, digest, size in parts:
        changed[32 * i : 32 * i + 32] = digest
        _SIZE.pack_into(changed, _DIGESTS_BYTES + 4 * i, size)
    page = bytes(changed)
    return page, joined_fork_digest(page[:_DIGESTS_BYTES]), _SIZES.unpack_from(page, _DIGESTS_BYTES)


def digest_of(source: PageSource, world: int, kind: int) -> bytes:
    """Return the present digest of a set."""
    page = source.page(world, kind, "")
    if page is None:
        return EMPTY
    fork, body = page
    return joined_fork_digest(body[:_DIGESTS_BYTES]) if fork else leaf_digest(kind, body)


def leaf_digest(kind: int, body: bytes) -> bytes:
    """Return the digest of the bucket that a leaf page is."""
    return joined_bucket_digest(WIDTH[kind], body)


def digest_and_pages(
    members: Sequence[bytes], path: str = ""
) -> tuple[bytes, dict[str, tuple[int, bytes]]]:
    """Return the digest of sorted members and the pages they lie on: path → (is fork, body).

    A page is a bucket or a fork of the digest, so the layout follows from the set alone.
    """
    if len(members) <= BUCKET_MAX:
        pages = {path: (0, b"".join(members))} if members else {}
        return bucket_digest(members), pages
    digests, sizes, pages = [], [], {}
    for i, part in enumerate(split(members, len(path))):
        digest, below = digest_and_pages(part, path + NIBBLES[i])
        digests.append(digest)
        sizes.append(len(part))
        pages.update(below)
    pages[path] = (1, fork_body(digests, sizes))
    return fork_digest(digests), pages


def leaf_and_forks(
    source: PageSource, world: int, kind: int, ident: bytes
) -> tuple[list[bytes], list[list[bytes]]]:
    """Return the leaf page that holds `ident` and the digests of the forks above it, top first."""
    forks: list[list[bytes]] = []
    path = ""
    while (page := source.page(world, kind, path)) is not None:
        fork, body = page
        if not fork:
            return members_of(body, WIDTH[kind]), forks
        forks.append(parts_of(body)[0])
        path += NIBBLES[nibble(ident, len(path))]
    return [], forks
