"""What the consolidator asks of a store: worlds, edge types and recalls as a whole, as numbers."""

# ruff: noqa: D102 - each call says what it does where it is implemented.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol


class InsideRow(NamedTuple):
    """What lies directly inside a world: by living there, or as a member from when to when."""

    world: int
    row: int
    type: str
    has_content: int
    has_name: int
    has_interior: int
    born: int
    created_at: int
    valid_to: int | None
    is_member: int
    member_from: int
    member_to: int | None


class CoverRow(NamedTuple):
    """An edge as numbers."""

    row: int
    source: int
    target: int
    valid_from: int
    valid_to: int | None


class CauseRow(NamedTuple):
    """An edge of a type that is looked at as a whole; `inferred` is its metadata, if it is."""

    row: int
    id: bytes
    source: int
    target: int
    world: int
    valid_from: int
    valid_to: int | None
    inferred: str | None
    gone: int | None


class RecallRow(NamedTuple):
    """What retention is reckoned from."""

    row: int
    created_at: int
    recalls: int
    last: int | None
    links: int


class Sweep(Protocol):
    """Worlds, edge types and recalls as a whole; `add_recalls` belongs inside `Store.derive`."""

    def worlds(self) -> list[int]: ...
    def inside(self, worlds: Iterable[int]) -> list[InsideRow]: ...
    def covers(self, sources: Iterable[int], types: Sequence[str]) -> list[CoverRow]: ...
    def saying(self, targets: Iterable[int], type_: str, said: Sequence[str]) -> list[int]: ...
    def noted(self, rows: Iterable[int], start: str) -> dict[int, list[str]]: ...
    def summaries_in(
        self, worlds: Iterable[int], start: str
    ) -> list[tuple[int, int, int | None]]: ...
    def wholes(self, worlds: Iterable[int], start: str, now: int) -> list[tuple[int, int, str]]: ...
    def summaries_below(self, rows: Iterable[int]) -> list[tuple[int, int | None]]: ...
    def typed(self, type_: str) -> Iterator[CauseRow]: ...
    def has_recalls(self) -> bool: ...
    def recalls(self, rows: Iterable[int]) -> list[RecallRow]: ...
    def add_recalls(self, rows: Iterable[tuple[int, int, int]]) -> None: ...
