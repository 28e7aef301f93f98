"""Interiors: the worlds that are held in memory, least recently asked first to go."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from worlddb.read.interior import Interior, nodes_at
from worlddb.read.moment import Moment
from worlddb.store.protocol import ROOT_ROW, Head, Reader

HELD_MAX = 16_384
"""A world with more nodes is searched through the store's own indexes."""
NODES_MAX = 262_144
"""How many nodes are held in all."""
WORLDS_MAX = 1_024
"""How many worlds are held or remembered as too large, each moment of one counted."""

Key = tuple[tuple[int, ...], bool, object, int | None]


class Interiors:
    """The interiors of one open store."""

    def __init__(self, held_max: int = HELD_MAX) -> None:
        self._held_max = held_max
        self._lock = threading.Lock()
        self._held: OrderedDict[Key, Interior] = OrderedDict()
        self._too_large: dict[Key, int] = {}

    @contextmanager
    def holding(
        self, reader: Reader, worlds: Iterable[int], moment: Moment, members: bool
    ) -> Iterator[Interior | None]:
        """Yield the interior of some worlds as of the reader's commit; None if it is too large.

        Nobody else reads on in it meanwhile: it stays at that commit.
        """
        key: Key = (tuple(sorted(set(worlds))), members, moment.valid, moment.known)
        head = reader.head()
        if self._is_too_large(key, reader, head):
            yield None
            return
        if reader.is_uncommitted:
            # What is seen now may be rolled back: nothing of it is kept.
            passing = Interior(key[0], members)
            yield passing if passing.read(reader, moment, self._held_max) else None
            return
        found = self._held_or_new(key)
        with found.lock:
            if found.head is not None and found.head.seq > head.seq:
                # Another thread has read on; this snapshot gets an interior of its own.
                found = Interior(key[0], members)
            if self._follow(key, found, reader, moment):
                yield found
                return
        yield None

    def _is_too_large(self, key: Key, reader: Reader, head: Head) -> bool:
        if key[0] == (ROOT_ROW,) and head.nodes > self._held_max + 1:
            # What was known at a commit is as large as it was then.
            return nodes_at(reader, key[3]) > self._held_max + 1
        # A world seldom shrinks: ask again only when the store has grown by as much as is held.
        return head.nodes < self._too_large.get(key, 0)

    def _held_or_new(self, key: Key) -> Interior:
        with self._lock:
            found = self._held.pop(key, None)
            if found is None:
                found = Interior(key[0], key[1])
            self._held[key] = found
            return found

    def _follow(self, key: Key, found: Interior, reader: Reader, moment: Moment) -> bool:
        """Bring an interior to the reader's commit; return whether it fits."""
        fits = False
        try:
            fits = found.follow(reader, moment, self._held_max)
        finally:
            with self._lock:
                if not fits:
                    # Too large, or stopped half-way and of no use.
                    self._held.pop(key, None)
                while self._is_crowded():
                    self._held.popitem(last=False)
        if not fits:
            with self._lock:
                if len(self._too_large) >= WORLDS_MAX:
                    self._too_large.clear()
                self._too_large[key] = reader.head().nodes + self._held_max // 2
        return fits

    def _is_crowded(self) -> bool:
        if len(self._held) <= 1:
            return False
        return len(self._held) > WORLDS_MAX or sum(map(len, self._held.values())) > NODES_MAX
