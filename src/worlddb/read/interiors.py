"""Interiors: the worlds that are held in memory, least recently asked first to go."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable

from worlddb.read.interior import Interior
from worlddb.read.moment import Moment
from worlddb.store.protocol import ROOT_ROW, Reader

HELD_MAX = 16_384
"""A world with more nodes is searched through the store's own indexes."""
NODES_MAX = 262_144
"""How many nodes are held in all."""

Key = tuple[tuple[int, ...], bool, object, object]


class Interiors:
    """The interiors of one open store."""

    def __init__(self, held_max: int = HELD_MAX) -> None:
        self._held_max = held_max
        self._lock = threading.Lock()
        self._held: OrderedDict[Key, Interior] = OrderedDict()
        self._too_large: dict[Key, int] = {}

    def get(
        self, reader: Reader, worlds: Iterable[int], moment: Moment, members: bool
    ) -> Interior | None:
        """Return the interior of some worlds as of the reader's commit; None if it is too large.

        The caller takes its lock for as long as it looks at it.
        """
        key: Key = (tuple(sorted(set(worlds))), members, moment.valid, moment.known)
        head = reader.head()
        if key[0] == (ROOT_ROW,) and head.nodes > self._held_max + 1:
            return None
        # A world seldom shrinks: ask again only when the store has grown by as much as is held.
        if head.nodes < self._too_large.get(key, 0):
            return None
        if reader.is_uncommitted:
            # What is seen now may be rolled back: nothing of it is kept.
            passing = Interior(key[0], members)
            return passing if passing.read(reader, moment, self._held_max) else None
        with self._lock:
            found = self._held.pop(key, None) or Interior(key[0], members)
            self._held[key] = found
        with found.lock:
            if found.head is not None and found.head.seq > head.seq:
                # Another thread has read on; this snapshot gets an interior of its own.
                found = Interior(key[0], members)
            fits = found.follow(reader, moment, self._held_max)
        with self._lock:
            if not fits:
                self._held.pop(key, None)
                self._too_large[key] = head.nodes + self._held_max // 2
                return None
            while sum(map(len, self._held.values())) > NODES_MAX and len(self._held) > 1:
                self._held.popitem(last=False)
        return found
