"""Details: what the summaries of a world should stand for, and which of them no longer do.

A world's details are those directly inside it, living there or as members, that say something
themselves or have a summary of their own interior; each with those summaries. Details and contents
never change, so a summary is up to date if it was derived from exactly what is there now.

    inside ──▶ units ──▶ parts (at most `DETAILS_MAX` units each) ──▶ jobs

D1  A world with fewer than two units has no summary.
D2  A unit stays in the part that has it; new ones fill the last part, then further ones. So a run
    that was cut short goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from worlddb.query.pipeline import DERIVED, SUMMARY, WHOLE, whole_summaries
from worlddb.sleep.report import SummaryAction
from worlddb.store.protocol import ROOT_ROW, Reader
from worlddb.store.sweep import InsideRow
from worlddb.view.visibility import DOORS

DETAILS_MAX = 1_000
DETAILS_MIN = 2
MADE_BY = "summarizer:"
"""How the source of every summary begins that the consolidator wrote, before the summarizer."""
MEMBERSHIP = ("contains",)


class Unit(NamedTuple):
    """A detail with the summaries of its own interior; `moving`: those will be others."""

    row: int
    summaries: tuple[int, ...]
    moving: bool

    @property
    def rows(self) -> set[int]:
        """Everything a summary of this unit is derived from."""
        return {self.row, *self.summaries}


class Job(NamedTuple):
    """A summary to write, to refresh or to retire. Equal jobs come from equal worlds."""

    action: SummaryAction
    world: int
    old: int | None
    units: tuple[Unit, ...]
    depth: int
    """How deep summaries lie in each other if this one stands for the whole world, else 0."""

    @property
    def sources(self) -> list[str]:
        """The mark of a summary that stands for the whole world."""
        return [f"{WHOLE}{self.depth}"] if self.depth else []


def levels_of(reader: Reader, worlds: Iterable[int]) -> list[list[int]]:
    """Return worlds by height: those that hold none of the others first, then those around them."""
    chosen = set(worlds)
    holders: dict[int, list[int]] = {}
    inner = dict.fromkeys(chosen, 0)
    links = [
        (parent, row)
        for row, parent in reader.parents(chosen).items()
        if parent in chosen and parent != row
    ]
    links += [
        (item.source, item.target)
        for item in reader.sweep.covers(chosen, MEMBERSHIP)
        if item.target in chosen
    ]
    for holder, row in set(links):
        holders.setdefault(row, []).append(holder)
        inner[holder] += 1
    level = sorted(row for row, count in inner.items() if not count)
    levels = []
    while level:
        levels.append(level)
        above: set[int] = set()
        for row in level:
            for holder in holders.get(row, ()):
                inner[holder] -= 1
                if not inner[holder]:
                    above.add(holder)
        level = sorted(above)
    return levels


def jobs_of(
    reader: Reader, worlds: Sequence[int], now: int, coming: Mapping[int, bool]
) -> dict[int, list[Job]]:
    """Return what is to do for each of some worlds that have not ended, and where there is any.

    `coming` says of worlds whose summaries would change first whether they would then have one: a
    dry run has to know, while after a real one it can be seen.
    """
    inside: dict[int, list[InsideRow]] = {}
    found_inside = reader.sweep.inside(worlds)
    # A summary of ours is told of in its own world; elsewhere two worlds would chase each other.
    guests = {item.row for item in found_inside if item.is_member and item.type == SUMMARY}
    guests &= reader.sweep.noted(guests, MADE_BY).keys()
    for item in found_inside:
        if item.row not in guests or not item.is_member:
            inside.setdefault(item.world, []).append(item)
    around = set(worlds)
    around.update(item.row for rows in inside.values() for item in rows if item.has_interior)
    around.update(item.row for rows in inside.values() for item in rows if item.row in coming)
    own: dict[int, list[int]] = {}
    for world, row, ends in reader.sweep.summaries_in(around, MADE_BY):
        if ends is None or ends > now:
            own.setdefault(world, []).append(row)
    ended = {
        body.row
        for body in reader.bodies(worlds)
        if body.valid_to is not None and body.valid_to <= now
    }
    parts = set(chain.from_iterable(own.get(world, ()) for world in worlds))
    covers: dict[int, set[int]] = {}
    for cover in reader.sweep.covers(parts, (DERIVED,)):
        covers.setdefault(cover.source, set()).add(cover.target)
    found: dict[int, list[Job]] = {}
    for world in worlds:
        rows = inside.get(world, [])
        units = [] if world in ended else _units(rows, own, now, coming)
        mine = {part: covers.get(part, set()) for part in own.get(world, ())}
        jobs = _jobs(world, units, mine)
        if jobs:
            found[world] = [_with_depth(reader, job, rows, units, now) for job in jobs]
    return found


def _units(
    rows: Iterable[InsideRow], own: Mapping[int, list[int]], now: int, coming: Mapping[int, bool]
) -> list[Unit]:
    """Return what there is to tell of a world, in the order of writing."""
    units: dict[int, Unit] = {}
    for item in rows:
        if not _is_live(item, now) or item.row in own.get(item.world, ()):
            continue
        moving = item.row in coming
        summaries = () if moving else tuple(own.get(item.row, ()))
        says = item.has_content or (item.has_name and item.type not in DOORS)
        if says or summaries or coming.get(item.row):
            units[item.row] = Unit(item.row, summaries, moving)
    return [units[row] for row in sorted(units)]


def _is_live(item: InsideRow, now: int) -> bool:
    if item.valid_to is not None and item.valid_to <= now:
        return False
    return not item.is_member or item.member_to is None or item.member_to > now


def _jobs(world: int, units: Sequence[Unit], parts: Mapping[int, set[int]]) -> list[Job]:
    """Return which parts are to be written, refreshed or retired."""
    if len(units) < DETAILS_MIN:
        return [Job("retired", world, part, (), 0) for part in parts]
    kept: dict[int, list[Unit]] = {part: [] for part in parts}
    rest: list[Unit] = []
    for unit in units:
        home = next((part for part, covered in parts.items() if unit.row in covered), None)
        (rest if home is None else kept[home]).append(unit)
    if parts:
        last = kept[list(parts)[-1]]
        room = max(0, DETAILS_MAX - len(last))
        last += rest[:room]
        rest = rest[room:]
    jobs = []
    for part, told in kept.items():
        if not told:
            jobs.append(Job("retired", world, part, (), 0))
        elif any(unit.moving for unit in told) or _rows(told) != parts[part]:
            jobs.append(Job("refreshed", world, part, tuple(told), 0))
    groups = [rest[at : at + DETAILS_MAX] for at in range(0, len(rest), DETAILS_MAX)]
    return jobs + [Job("written", world, None, tuple(group), 0) for group in groups]


def _rows(units: Iterable[Unit]) -> set[int]:
    return {row for unit in units for row in unit.rows}


def _with_depth(
    reader: Reader, job: Job, rows: Sequence[InsideRow], units: Sequence[Unit], now: int
) -> Job:
    """Return the job with its depth, if its summary will stand for everything inside the world."""
    if job.action == "retired" or len(job.units) < len(units) or any(it.moving for it in units):
        return job
    if any(item.is_member for item in rows):
        return job  # What happens to a member is not witnessed by this world's state.
    told = {unit.row for unit in units}
    # Older summaries of this world have no interior and will have ended.
    worlds = [item.row for item in rows if item.has_interior]
    whole = whole_summaries(reader, worlds, now) if worlds else {}
    for item in rows:
        if item.has_interior:
            if item.row not in whole or item.row not in told:
                return job
        elif _is_live(item, now) and item.row not in told and item.row != job.old:
            return job
    if reader.sweep.covers([item.row for item in rows], MEMBERSHIP):
        return job
    # Somebody else's summary may stand for what lies outside, where this world is not entered.
    others = [item.row for item in rows if item.type == SUMMARY and item.row in told]
    covered = {item.target for item in reader.sweep.covers(others, (DERIVED,))}
    if not covered <= {row for unit in units for row in unit.rows}:
        return job
    return job._replace(depth=1 + max((depth for _, depth in whole.values()), default=0))


def candidates(reader: Reader, inside: set[int] | None) -> list[int]:
    """Return the worlds to look at: all but the root, or those of a part of the store."""
    found = reader.sweep.worlds()
    return [row for row in found if row != ROOT_ROW and (inside is None or row in inside)]
