"""Read page: the latest entries of the record of reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from worlddb.audit.read_audit import ReadEntry, reads
from worlddb.model.inputs import check_whole
from worlddb.model.records import Plain, groups_of
from worlddb.store.interface import Store

PAGE_MAX = 1_000  # Bounds one answer; the file itself has the rest.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage(Plain):
    """Reads, the latest first; `left` counts those beyond the limit."""

    reads: tuple[ReadEntry, ...]
    left: int

    def __iter__(self) -> Iterator[ReadEntry]:
        return iter(self.reads)

    def __len__(self) -> int:
        return len(self.reads)


def read_page(store: Store, limit: int, scope: Mapping[str, Any]) -> ReadPage:
    """Return the latest reads of some scopes; see `Memory.reads`."""
    check_whole(limit, "limit", 1, PAGE_MAX)
    named = {str(name) for group in groups_of(scope) for name in group}
    found = [entry for entry in reads(store) if not named or named.intersection(entry.scopes)]
    return ReadPage(reads=tuple(found[::-1][:limit]), left=max(0, len(found) - limit))
