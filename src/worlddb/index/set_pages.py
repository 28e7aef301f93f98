"""The sets of children and edges of a world, stored as pages.

A set is a tree of pages: the tree of the set digest (`model/address.py`). A leaf page is a bucket
with its sorted members, one after the other. A fork page holds the digests of its 16 parts, then
their sizes, 4 bytes big-endian each. A change reads and writes one leaf and the forks above it, so
it costs O(log n).

Pages are derived. The store may write them some commits later; until then the changes are stored
beside them as puts and drops. `PresentPages` combines both.
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
from worlddb.store.interface import Reader
from worlddb.store.rows import CHILDREN, EDGES, SetChange

WIDTH = {CHILDREN: 64, EDGES: 32}
"""Bytes of a member: a child is its id and its state, an edge its id."""
NIBBLES = "0123456789abcdef"
SORT_WITH_NUMPY_MIN = 20_000  # with fewer members, plain `sorted` is as fast

Pages = dict[str, tuple[int, bytes]]
"""Pages by path: whether the page is a fork (0 or 1), and its bytes."""
Changed = dict[str, tuple[int, bytes] | None]
"""Changed pages by path; None for a deleted page."""

_SIZES = struct.Struct(f">{FORK_WIDTH}I")
_SIZE = struct.Struct(">I")
_DIGESTS_BYTES = 32 * FORK_WIDTH


class PageSource(Protocol):
    """An object with pages: a reader of a store, or `PresentPages`."""

    def page(self, world: int, kind: int, path: str) -> tuple[bool, bytes] | None:
        """Return a page of a world's set: whether it is a fork, and its bytes."""


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
    """Return the digest of a set."""
    page = source.page(world, kind, "")
    if page is None:
        return EMPTY
    fork, body = page
    if fork:
        return joined_fork_digest(body[:_DIGESTS_BYTES])
    return joined_bucket_digest(WIDTH[kind], body)


def digest_and_pages(members: Sequence[bytes], path: str = "") -> tuple[bytes, Pages]:
    """Return the digest of sorted members, and their pages; both depend on the set alone."""
    pages: Pages = {}
    if len(members) <= BUCKET_MAX:
        if members:
            pages[path] = (0, b"".join(members))
        return bucket_digest(members), pages
    digests, sizes = [], []
    for i, part in enumerate(split(members, len(path))):
        digest, below = digest_and_pages(part, path + NIBBLES[i])
        digests.append(digest)
        sizes.append(len(part))
        pages.update(below)
    pages[path] = (1, b"".join(digests) + _SIZES.pack(*sizes))
    return fork_digest(digests), pages


def leaf_and_forks(
    source: PageSource, world: int, kind: int, ident: bytes
) -> tuple[list[bytes], list[list[bytes]]]:
    """Return the leaf of `ident` and the digests of the forks above it, top first."""
    forks: list[list[bytes]] = []
    path = ""
    while (page := source.page(world, kind, path)) is not None:
        fork, body = page
        if not fork:
            return members_of(body, WIDTH[kind]), forks
        forks.append(parts_of(body)[0])
        path += NIBBLES[nibble(ident, len(path))]
    return [], forks


class SetLayout(NamedTuple):
    """A new set, computed without the store: its digest and its pages."""

    digest: bytes
    pages: Pages


def lay_out(members: list[bytes]) -> SetLayout:
    """Compute a large new set, while the store is busy with something else."""
    return SetLayout(*digest_and_pages(sort_members(members)))


def change(
    source: PageSource,
    world: int,
    kind: int,
    put: list[bytes],
    drop: Iterable[bytes],
    laid: SetLayout | None = None,
) -> tuple[bytes, Changed]:
    """Put members (replacing those with the same address) and drop addresses.

    Returns the new digest and the changed pages. `laid` is `put` as computed by `lay_out`; it is
    used if the set was empty before.
    """
    dropped = sorted(drop)
    if laid is not None and not dropped and source.page(world, kind, "") is None:
        return laid.digest, dict(laid.pages)
    if len(put) == 1 and not dropped and (found := _with_one(source, world, kind, put[0])):
        return found
    work = _Change(source, world, kind)
    digest = work.apply("", sort_members(put), dropped)[0]
    changed: Changed = dict.fromkeys(work.gone)
    changed.update(work.put)
    return digest, changed


def _with_one(
    source: PageSource, world: int, kind: int, member: bytes
) -> tuple[bytes, Changed] | None:
    """Return what `change` returns for one put, the most usual change; None if a leaf overflows.

    The leaf grows by one member, and the forks above it stay forks.
    """
    width, path = WIDTH[kind], ""
    forks: list[tuple[str, int, bytes]] = []
    while (page := source.page(world, kind, path)) is not None and page[0]:
        place = nibble(member, len(path))
        forks.append((path, place, page[1]))
        path += NIBBLES[place]
    if page is None or len(page[1]) >= BUCKET_MAX * width:
        return None
    body = _with_members(page[1], width, (member,))
    changed: Changed = {path: (0, body)}
    digest, size = joined_bucket_digest(width, body), len(body) // width
    for path, place, before in reversed(forks):
        body, digest, sizes = with_parts(before, ((place, digest, size),))
        changed[path], size = (1, body), sum(sizes)
    return digest, changed


def merge(changes: Iterable[SetChange]) -> dict[tuple[int, int], tuple[list[bytes], set[bytes]]]:
    """Return the changes of several commits combined by set: (world, kind) → (put, drop)."""
    puts: dict[tuple[int, int], dict[bytes, bytes]] = {}
    drops: dict[tuple[int, int], set[bytes]] = {}
    for _, world, kind, put, drop in changes:
        new = puts.setdefault((world, kind), {})
        gone = drops.setdefault((world, kind), set())
        for member in put:
            new[member[:32]] = member
            gone.discard(member[:32])
        # A member that one commit both puts and drops is gone afterwards.
        for ident in drop:
            new.pop(ident, None)
            gone.add(ident)
    return {key: (list(new.values()), drops[key]) for key, new in puts.items()}


class PresentPages:
    """The pages of a snapshot with all waiting changes applied."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._waiting = merge(reader.waiting())
        self._changed: dict[tuple[int, int], Changed] = {}

    def page(self, world: int, kind: int, path: str) -> tuple[bool, bytes] | None:
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
    """Return members in byte order; large sets by their first 8 bytes, which is much faster."""
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
    """A change of one set: reads pages on the way down and collects the new pages."""

    def __init__(self, source: PageSource, world: int, kind: int) -> None:
        self.source = source
        self.world = world
        self.kind = kind
        self.width = WIDTH[kind]
        self.read: dict[str, tuple[bool, bytes] | None] = {}
        self.put: Pages = {}
        self.gone: set[str] = set()

    def page(self, path: str) -> tuple[bool, bytes] | None:
        """Return a page as it was before the change."""
        if path not in self.read:
            self.read[path] = self.source.page(self.world, self.kind, path)
        return self.read[path]

    def apply(self, path: str, put: Sequence[bytes], drop: Sequence[bytes]) -> tuple[bytes, int]:
        """Change the part of the set below `path`; return its digest and size."""
        page = self.page(path)
        is_fork, before = page or (False, b"")
        if not is_fork:
            size = len(before) // self.width
            if before and not drop and size + len(put) <= BUCKET_MAX:
                body = _with_members(before, self.width, put)
                self.put[path] = (0, body)
                return joined_bucket_digest(self.width, body), len(body) // self.width
            members = _merge(members_of(before, self.width), put, drop)
            return self._store(path, members, page is not None)
        parts = [
            (i, *self.apply(path + NIBBLES[i], below, gone))
            for i, below, gone in _by_nibble(put, drop, len(path))
        ]
        body, digest, sizes = with_parts(before, parts)
        size = sum(sizes)
        if size <= BUCKET_MAX:
            return self._store(path, self._take_in(path, sizes), True)
        self.put[path] = (1, body)
        return digest, size

    def _store(self, path: str, members: Sequence[bytes], existed: bool) -> tuple[bytes, int]:
        """Write sorted members below `path` as one leaf or as a fork over smaller pages."""
        digest, pages = digest_and_pages(members, path)
        self.put.update(pages)
        if existed and not pages:
            self.gone.add(path)
        return digest, len(members)

    def _take_in(self, path: str, sizes: Sequence[int]) -> list[bytes]:
        """Remove the leaves below a fork that has become too small; return their members."""
        members: list[bytes] = []
        for i, size in enumerate(sizes):
            below = path + NIBBLES[i]
            if size or below in self.put:
                page = self.put.pop(below, None) or self.page(below)
                assert page is not None
                _, body = page
                members += members_of(body, self.width)
            self.gone.add(below)
        return members


def _with_members(body: bytes, width: int, put: Sequence[bytes]) -> bytes:
    """Return a leaf page with added members, which replace those with the same address."""
    for member in put:
        ident, low, high = member[:32], 0, len(body) // width
        while low < high:
            middle = (low + high) // 2
            if body[middle * width : middle * width + 32] < ident:
                low = middle + 1
            else:
                high = middle
        at = low * width
        is_there = body.startswith(ident, at)
        body = body[:at] + member + body[at + width if is_there else at :]
    return body


def _by_nibble(
    put: Sequence[bytes], drop: Sequence[bytes], depth: int
) -> Iterable[tuple[int, Sequence[bytes], Sequence[bytes]]]:
    """Return (part, puts, drops) of each part of a fork that changes."""
    if len(put) == 1 and not drop:
        return ((nibble(put[0], depth), put, ()),)
    if len(put) <= FORK_WIDTH and not drop:
        few: dict[int, list[bytes]] = {}
        for member in put:
            few.setdefault(nibble(member, depth), []).append(member)
        return [(part, members, ()) for part, members in few.items()]
    puts = split(put, depth) if put else [()] * FORK_WIDTH
    drops = split(drop, depth) if drop else [()] * FORK_WIDTH
    return [(i, puts[i], drops[i]) for i in range(FORK_WIDTH) if puts[i] or drops[i]]


def _merge(before: list[bytes], put: Sequence[bytes], drop: Sequence[bytes]) -> Sequence[bytes]:
    """Return sorted members after puts (which replace equal addresses) and drops."""
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
