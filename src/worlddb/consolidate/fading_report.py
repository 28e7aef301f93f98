"""Fading report: memories with a low retention, and why. Nothing is retired because of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from heapq import nsmallest

from worlddb.errors import InvalidInputError
from worlddb.model.inputs import Plain, check_integer, from_micros, to_micros
from worlddb.model.records import Node
from worlddb.model.retention_curve import (
    DAY_MICROS,
    RetentionSettings,
    idle_micros,
    retention,
    strength,
)
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, RecallRow
from worlddb.view.summary_view import SUMMARY
from worlddb.view.visibility import Moment, find, interior, is_answer

NODES_PER_READ = 1_000  # bounds the memory of one database call: the whole store may be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Fading(Plain):
    """A memory with a low retention, and the figures that the retention was computed from."""

    node: Node
    retention: float
    age_days: float
    idle_days: float
    recalls: int
    last_recalled: datetime | None
    links: int
    half_life_days: float

    @property
    def because(self) -> str:
        """Why the memory is fading, in words."""
        often = "never recalled"
        if self.recalls:
            often = f"recalled {self.recalls} times, last {self.idle_days:.0f} days ago"
        links = "1 link" if self.links == 1 else f"{self.links} links"
        return (
            f"{self.age_days:.0f} days old, {often}, {links}: "
            f"half of it is gone every {self.half_life_days:.0f} days, {self.retention:.1%} is left"
        )


def check_fading(limit: int, below: float) -> None:
    """Raise InvalidInputError if an option of a report is wrong."""
    check_integer(limit, "limit", 1)
    is_number = isinstance(below, int | float) and not isinstance(below, bool)
    if not is_number or not below > 0:
        raise InvalidInputError(f"below: give a number above 0, not {below!r:.40}")


def fading_in(
    reader: Reader,
    moment: Moment,
    world: bytes | str | None,
    limit: int,
    below: float,
    settings: RetentionSettings | None,
) -> list[Fading]:
    """Return the report on a world named by its id, or on the whole store.

    Raises:
        InvalidInputError, NotFoundError: an option is wrong, or there is no such world.
    """
    check_fading(limit, below)
    row = ROOT_ROW if world is None else find(reader, world, "nodes")
    chosen = settings or RetentionSettings()
    return fading(reader, moment, world=row, limit=limit, below=below, settings=chosen)


def fading(
    reader: Reader,
    moment: Moment,
    *,
    world: int,
    limit: int,
    below: float,
    settings: RetentionSettings,
) -> list[Fading]:
    """Return the memories inside a world whose retention is `below` a bound, lowest first."""
    now = to_micros(moment.now, "now")
    rows = (
        range(ROOT_ROW + 1, reader.head().nodes + 1)
        if world == ROOT_ROW
        else sorted(interior(reader, world, moment, members=True))
    )
    lowest: list[tuple[float, int, RecallRow]] = []
    for start in range(0, len(rows), NODES_PER_READ):
        chosen = [
            body.row
            for body in reader.bodies(rows[start : start + NODES_PER_READ])
            if is_answer(body) and body.type != SUMMARY and body.row != ROOT_ROW
            if body.valid_to is None or body.valid_to > now
        ]
        for item in reader.sweep.recalls(chosen):
            kept = retention(item.created_at, item.last, item.recalls, item.links, now, settings)
            if kept < below:
                lowest.append((kept, item.row, item))
        lowest = nsmallest(limit, lowest)
    nodes = reader.nodes([row for _, row, _ in lowest])
    return [fading_of(nodes[row], kept, item, now, settings) for kept, row, item in lowest]


def fading_of(
    node: Node, kept: float, item: RecallRow, now: int, settings: RetentionSettings
) -> Fading:
    """Return a memory with the figures that its retention was computed from."""
    return Fading(
        node=node,
        retention=kept,
        age_days=max(0, now - item.created_at) / DAY_MICROS,
        idle_days=idle_micros(item.created_at, item.last, now) / DAY_MICROS,
        recalls=item.recalls,
        last_recalled=None if item.last is None else from_micros(item.last),
        links=item.links,
        half_life_days=settings.half_life_days * strength(item.recalls, item.links, settings),
    )
