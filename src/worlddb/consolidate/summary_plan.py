"""Summary plan: what the summaries of a world should cover, and which no longer do.

The details of a world are the nodes directly inside it, living there or as members, that have a
content or a name of their own, or that have a summary of their interior. A *unit* is a detail with
those summaries. Details and contents never change, so a summary is up to date if it was derived
from exactly the units that are there now, and no sentence of them was replaced since.

    nodes inside ──▶ units ──▶ parts (at most `DETAILS_MAX` units each) ──▶ jobs

D1  A world with fewer than two units has no summary.
D2  A unit stays in the part that covers it; new units fill the last part, then further parts. So a
    run that was cut short goes on as if it had not been.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from worlddb.consolidate.consolidation_run import SummaryAction
from worlddb.consolidate.transitive_closure import topological_levels
from worlddb.model.inputs import from_micros
from worlddb.query.summary_view import DERIVED, SUMMARY, WHOLE, whole_summaries
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, InsideRow
from worlddb.view.stale_summaries import stale_summaries
from worlddb.view.visibility import NAME_TYPES, Moment

DETAILS_MAX = 1_000
"""Units of one summary. Bounds what a summarizer gets at once, and what one change makes anew."""
DETAILS_MIN = 2  # A summary of one detail would only repeat it.
MADE_BY = "summarizer:"
"""Prefix of the source of every summary that the consolidator wrote; the summarizer follows."""
MEMBERSHIP = ("contains",)


class SummaryUnit(NamedTuple):
    """A detail with the summaries of its own interior; `is_moving`: those are about to change."""

    row: int
    summaries: tuple[int, ...]
    is_moving: bool

    @property
    def rows(self) -> set[int]:
        """Everything that a summary of this unit is derived from."""
        return {self.row, *self.summaries}


class SummaryJob(NamedTuple):
    """A summary to write, to refresh or to retire. Equal jobs come from equal worlds."""

    action: SummaryAction
    world: int
    old: int | None
    units: tuple[SummaryUnit, ...] = ()
    depth: int = 0
    """Levels of summaries below this one if it covers its whole world, else 0."""

    @property
    def rows(self) -> set[int]:
        """Everything that the summary is derived from."""
        return {row for unit in self.units for row in unit.rows}

    @property
    def sources(self) -> list[str]:
        """The source that marks a summary of a whole world."""
        return [f"{WHOLE}{self.depth}"] if self.depth else []


def worlds_by_height(reader: Reader, scope: set[int] | None) -> list[list[int]]:
    """Return the worlds of a scope by height: those that hold none of the others come first.

    The root is never among them.
    """
    chosen = {
        row for row in reader.sweep.worlds() if row != ROOT_ROW and (scope is None or row in scope)
    }
    inner: dict[int, set[int]] = {row: set() for row in chosen}
    for row, parent in reader.parents(chosen).items():
        if parent in chosen and parent != row:
            inner[parent].add(row)
    for item in reader.sweep.covers(chosen, MEMBERSHIP):
        inner[item.source].add(item.target)
    return topological_levels(inner)


def plan_jobs(
    reader: Reader, worlds: Sequence[int], now: int, coming: Mapping[int, bool], oldest: int
) -> dict[int, list[SummaryJob]]:
    """Return the jobs of each of some worlds; worlds without a job are left out.

    Details that were created after `oldest` are too young, unless a summary covers them already.
    `coming` is for a dry run. Its keys are worlds whose summaries would have changed by now; a
    value says whether that world would then have one. A real run sees it in the store.
    """
    inside = _inside(reader, worlds, now)
    rows = [item for items in inside.values() for item in items]
    around = {*worlds, *(item.row for item in rows if item.has_interior or item.row in coming)}
    own: dict[int, list[int]] = {}
    for world, row, ends in reader.sweep.summaries_in(around, MADE_BY):
        if ends is None or ends > now:
            own.setdefault(world, []).append(row)
    ended = {
        body.row
        for body in reader.bodies(worlds)
        if body.valid_to is not None and body.valid_to <= now
    }
    covers: dict[int, set[int]] = {}
    parts = set(chain.from_iterable(own.get(world, ()) for world in worlds))
    for cover in reader.sweep.covers(parts, (DERIVED,)):
        covers.setdefault(cover.source, set()).add(cover.target)
    moment = Moment(from_micros(now), None, None)
    stale = stale_summaries(reader, reader.nodes(parts), moment, deep=False)
    found: dict[int, list[SummaryJob]] = {}
    for world in worlds:
        items = inside.get(world, [])
        covered = {part: covers.get(part, set()) for part in own.get(world, ())}
        grown = set().union(*covered.values())
        grown.update(item.row for item in items if item.created_at <= oldest)
        units = [] if world in ended else _units(items, own, now, coming)
        jobs = _jobs(world, [unit for unit in units if unit.row in grown], covered, stale)
        if jobs:
            found[world] = [_with_depth(reader, job, items, units, now) for job in jobs]
    return found


def _inside(reader: Reader, worlds: Sequence[int], now: int) -> dict[int, list[InsideRow]]:
    """Return what is directly inside worlds, without guest summaries that we wrote.

    A membership that begins later does not count yet.

    Such a summary counts in the world it lives in. If it also counted where it is a member, two
    worlds could refresh each other's summaries forever.
    """
    found = reader.sweep.inside(worlds)
    later = {
        (item.source, item.target)
        for item in reader.sweep.covers(worlds, MEMBERSHIP)
        if item.valid_from > now
    }
    found = [item for item in found if not item.is_member or (item.world, item.row) not in later]
    guests = {item.row for item in found if item.is_member and item.type == SUMMARY}
    guests &= reader.sweep.noted(guests, MADE_BY).keys()
    inside: dict[int, list[InsideRow]] = {}
    for item in found:
        if item.row not in guests or not item.is_member:
            inside.setdefault(item.world, []).append(item)
    return inside


def _units(
    rows: Iterable[InsideRow], own: Mapping[int, list[int]], now: int, coming: Mapping[int, bool]
) -> list[SummaryUnit]:
    """Return the units of a world, in the order of writing."""
    units: dict[int, SummaryUnit] = {}
    for item in rows:
        if not _is_live(item, now) or item.row in own.get(item.world, ()):
            continue
        is_moving = item.row in coming
        summaries = () if is_moving else tuple(own.get(item.row, ()))
        has_text = item.has_content or (item.has_name and item.type not in NAME_TYPES)
        if has_text or summaries or coming.get(item.row):
            units[item.row] = SummaryUnit(item.row, summaries, is_moving)
    return [units[row] for row in sorted(units)]


def _is_live(item: InsideRow, now: int) -> bool:
    if item.valid_to is not None and item.valid_to <= now:
        return False
    return not item.is_member or item.member_to is None or item.member_to > now


def _jobs(
    world: int, units: Sequence[SummaryUnit], parts: Mapping[int, set[int]], stale: set[int]
) -> list[SummaryJob]:
    """Return which parts are to be written, refreshed or retired.

    `parts` are the summaries that there are, with what each is derived from.
    """
    if len(units) < DETAILS_MIN:
        return [SummaryJob("retired", world, part) for part in parts]
    kept: dict[int, list[SummaryUnit]] = {part: [] for part in parts}
    rest: list[SummaryUnit] = []
    for unit in units:
        home = next((part for part, covered in parts.items() if unit.row in covered), None)
        (rest if home is None else kept[home]).append(unit)
    if parts:
        last = kept[list(parts)[-1]]
        room = max(0, DETAILS_MAX - len(last))
        last += rest[:room]
        rest = rest[room:]
    jobs = []
    for part, covered_units in kept.items():
        job = SummaryJob("refreshed", world, part, tuple(covered_units))
        if not covered_units:
            jobs.append(SummaryJob("retired", world, part))
        elif (
            part in stale  # The details are the same, but a sentence of one was replaced.
            or any(unit.is_moving for unit in covered_units)
            or job.rows != parts[part]
        ):
            jobs.append(job)
    groups = [rest[at : at + DETAILS_MAX] for at in range(0, len(rest), DETAILS_MAX)]
    return jobs + [SummaryJob("written", world, None, tuple(group)) for group in groups]


def _with_depth(
    reader: Reader,
    job: SummaryJob,
    rows: Sequence[InsideRow],
    units: Sequence[SummaryUnit],
    now: int,
) -> SummaryJob:
    """Return the job with its depth if its summary will cover everything inside the world."""
    if job.action == "retired" or len(job.units) < len(units) or any(it.is_moving for it in units):
        return job
    if any(item.is_member for item in rows):
        return job  # A change of a member does not change the state of this world.
    covered = {unit.row for unit in units}
    worlds = [item.row for item in rows if item.has_interior]
    whole = whole_summaries(reader, worlds, now) if worlds else {}
    for item in rows:
        if item.has_interior:
            if item.row not in whole or item.row not in covered:
                return job
        # The summary that this job replaces is live, but not a unit.
        elif _is_live(item, now) and item.row not in covered and item.row != job.old:
            return job
    if reader.sweep.covers([item.row for item in rows], MEMBERSHIP):
        return job
    # A summary written by somebody else may cover nodes outside this world.
    others = [item.row for item in rows if item.type == SUMMARY and item.row in covered]
    if not {item.target for item in reader.sweep.covers(others, (DERIVED,))} <= job.rows:
        return job
    return job._replace(depth=1 + max((depth for _, depth in whole.values()), default=0))
