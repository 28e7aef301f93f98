"""Pages: how a world's sets of children and edges lie in the store.

A page is a node of the set digest's tree. A leaf page is a bucket: its sorted members, one after
the other. A fork page is the digests of its 16 parts, then their sizes, 4 bytes big-endian each.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from worlddb.model.address import (
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
from worlddb.store.protocol import CHILDREN, EDGES, Reader, SetChange

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


# Sets: how the children and the interior edges of a world change, with their digest.
#
# A set is a tree of pages in the store, the tree of `model/digest.py`: a leaf page holds the members
# of a bucket, a fork page the digests and sizes of its 16 parts. One change reads and makes one leaf
# and the forks above it, so it costs O(log n).
#
# Pages are derived, and the store may write them later than the commit that changed them: what has
# not been written waits beside them as puts and drops. `PresentPages` is the two together.


SORT_WITH_NUMPY_MIN = 20_000
Changed = dict[str, tuple[int, bytes] | None]
"""New pages by path; None says that there is none any more."""


class Laid(NamedTuple):
    """A set worked out ahead: its digest, and the pages it would lie on."""

    digest: bytes
    pages: dict[str, tuple[int, bytes]]


def lay_out(members: list[bytes]) -> Laid:
    """Work out a large new set without the store, while the store is busy with something else."""
    return Laid(*digest_and_pages(sort_members(members)))


def change(
    source: PageSource,
    world: int,
    kind: int,
    put: list[bytes],
    drop: Iterable[bytes],
    laid: Laid | None = None,
) -> tuple[bytes, Changed]:
    """Put members (replacing those with the same address), drop addresses.

    Returns the new digest and the pages that are different. `laid` is `put` worked out ahead; it is
    used if the world had nothing there before.
    """
    dropped = sorted(drop)
    if laid is not None and not dropped and source.page(world, kind, "") is None:
        return laid.digest, dict(laid.pages)
    work = _Change(source, world, kind)
    digest = work.apply("", sort_members(put), dropped)[0]
    changed: Changed = dict.fromkeys(work.gone)
    changed.update(work.put)
    return digest, changed


def merge(changes: Iterable[SetChange]) -> dict[tuple[int, int], tuple[list[bytes], set[bytes]]]:
    """Return the last word of several commits on each set: (world, kind) → (put, drop)."""
    puts: dict[tuple[int, int], dict[bytes, bytes]] = {}
    drops: dict[tuple[int, int], set[bytes]] = {}
    for _, world, kind, put, drop in changes:
        new = puts.setdefault((world, kind), {})
        gone = drops.setdefault((world, kind), set())
        for member in put:
            new[member[:32]] = member
            gone.discard(member[:32])
        # What one commit both put and dropped is not there after it.
        for ident in drop:
            new.pop(ident, None)
            gone.add(ident)
    return {key: (list(new.values()), drops[key]) for key, new in puts.items()}


class PresentPages:
    """The pages of a snapshot as they would be if nothing waited to be written."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._waiting = merge(reader.waiting())
        self._changed: dict[tuple[int, int], Changed] = {}

    def page(self, world: int, kind: int, path: str) -> tuple[bool, bytes] | None:
        """Return one page of a world's set: whether it is a fork, and its bytes."""
        key = world, kind
        if key in self._waiting:
            put, drop = self._waiting.pop(key)
            self._changed[key] = change(self._reader, world, kind, put, drop)[1]
        changed = self._changed.get(key, {})
        if path not in changed:
            return self._reader.page(world, kind, path)
        page = changed[path]
        return None if page is None else (bool(page[0]), page[1])


def sort_members(members: list[bytes]) -> list[bytes]:
    """Return members in byte order; big sets by their first 8 bytes, which is much faster."""
    if len(members) < SORT_WITH_NUMPY_MIN:
        return sorted(members)
    import numpy as np

    width = len(members[0])
    keys = np.frombuffer(b"".join(members), dtype=">u8")[:: width // 8].astype(np.uint64)
    order = np.argsort(keys)
    keys = keys[order]
    if (keys[1:] == keys[:-1]).any():
        return sorted(members)
    return [members[i] for i in order.tolist()]


class _Change:
    """One change of one set: pages are read as it goes down, and kept until its end."""

    def __init__(self, source: PageSource, world: int, kind: int) -> None:
        self.source = source
        self.world = world
        self.kind = kind
        self.width = WIDTH[kind]
        self.read: dict[str, tuple[bool, bytes] | None] = {}
        self.put: dict[str, tuple[int, bytes]] = {}
        self.gone: set[str] = set()

    def page(self, path: str) -> tuple[bool, bytes] | None:
        """Return a page as it was before this change."""
        if path not in self.read:
            self.read[path] = self.source.page(self.world, self.kind, path)
        return self.read[path]

    def apply(self, path: str, put: Sequence[bytes], drop: Sequence[bytes]) -> tuple[bytes, int]:
        """Change the part of the set below `path`; return its digest and size."""
        page = self.page(path)
        if page is None or not page[0]:
            before = members_of(page[1], self.width) if page else []
            return self._store(path, _merge(before, put, drop), page is not None)
        parts = [
            (i, *self.apply(path + NIBBLES[i], below, gone))
            for i, below, gone in _by_nibble(put, drop, len(path))
        ]
        body, digest, sizes = with_parts(page[1], parts)
        size = sum(sizes)
        if size <= BUCKET_MAX:
            return self._store(path, self._take_in(path, sizes), True)
        self.put[path] = (1, body)
        return digest, size

    def _store(self, path: str, members: Sequence[bytes], existed: bool) -> tuple[bytes, int]:
        """Write sorted members below `path` as one leaf page or as a fork over smaller ones."""
        digest, pages = digest_and_pages(members, path)
        self.put.update(pages)
        if existed and not pages:
            self.gone.add(path)
        return digest, len(members)

    def _take_in(self, path: str, sizes: Sequence[int]) -> list[bytes]:
        """Remove the small pages below a fork that has become small; return their members."""
        members: list[bytes] = []
        for i, size in enumerate(sizes):
            below = path + NIBBLES[i]
            if below in self.put:
                members += members_of(self.put.pop(below)[1], self.width)
            elif size:
                page = self.page(below)
                assert page is not None
                members += members_of(page[1], self.width)
            self.gone.add(below)
        return members


def _by_nibble(
    put: Sequence[bytes], drop: Sequence[bytes], depth: int
) -> Iterable[tuple[int, Sequence[bytes], Sequence[bytes]]]:
    """Return what to put and to drop in each part of a fork that has either."""
    if len(put) == 1 and not drop:
        return ((nibble(put[0], depth), put, ()),)
    puts = split(put, depth) if put else [()] * FORK_WIDTH
    drops = split(drop, depth) if drop else [()] * FORK_WIDTH
    return [(i, puts[i], drops[i]) for i in range(FORK_WIDTH) if puts[i] or drops[i]]


def _merge(before: list[bytes], put: Sequence[bytes], drop: Sequence[bytes]) -> Sequence[bytes]:
    """Return sorted members with others put in, replacing those of the same address, or dropped."""
    if not before and not drop:
        return put
    if len(put) > len(before):
        merged = {member[:32]: member for member in before}
        merged.update((member[:32], member) for member in put)
        before = sorted(merged.values())
    else:
        for member in put:
            place = bisect_left(before, member[:32])
            if place < len(before) and before[place].startswith(member[:32]):
                before[place] = member
            else:
                before.insert(place, member)
    gone = set(drop)
    return [member for member in before if member[:32] not in gone] if gone else before
