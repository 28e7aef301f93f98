"""Summary view: a world read *summary first*, without reading what its summaries stand for.

    is there one summary of everything in here, and has nothing changed since?  ──yes──▶ that one
        └─no──▶ what is directly inside, the same of each world there, less what is summarised

A summary that stands for everything inside its world says so among its sources. The world's state
witnesses its whole interior, so the time of its last change tells whether the summary still does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from worlddb.model.inputs import to_micros
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.store.rows import InsideRow
from worlddb.view.stale_summaries import stale_summaries
from worlddb.view.visibility import Moment

SUMMARY = "Summary"
DERIVED = "derived_from"
WHOLE = "summary of everything inside, depth "
"""The source of a summary that stands for its whole world, before the depth of summaries in it."""
DEPTH_DIGITS_MAX = 4
"""Longer numbers are no depth: a source is free text that anybody may have written."""


def whole_summaries(reader: Reader, worlds: Iterable[int], now: int) -> dict[int, tuple[int, int]]:
    """Return the summary that stands for everything in a world now, and its depth, by world.

    Worlds without one are left out. The last child tells: whatever came later is not in it.
    """
    found = {}
    for world, row, source in reader.sweep.wholes(worlds, WHOLE, now):
        digits = source.removeprefix(WHOLE)
        depth = int(digits) if digits.isdecimal() and len(digits) <= DEPTH_DIGITS_MAX else 0
        if depth and _stands(reader, row, depth, now):
            found[world] = row, depth
    return found


def _stands(reader: Reader, row: int, depth: int, now: int) -> bool:
    """Return whether all summaries in a summary hold: closing one of them changes no state."""
    below = [row]
    for _ in range(depth - 1):
        found = reader.sweep.summaries_below(below)
        if any(ends is not None and ends <= now for _, ends in found):
            return False
        below = [inner for inner, _ in found]
    return True


def summary_view(reader: Reader, world: int, moment: Moment) -> set[int] | None:
    """Return what is inside a world now that no summary there was derived from.

    A summary that tells what has ended stands for nothing and is not part of it.

    Worlds that one summary stands for are not entered; that summary covers nothing outside them.
    None if there are members: one may be covered where it lives, in a world that was not entered.
    What has ended may be among the rows.
    """
    now = to_micros(moment.now, "now")
    whole = _fresh(reader, whole_summaries(reader, [world], now), moment)
    if whole:
        return {whole[world][0]}
    seen: set[int] = set()
    stand_ins: set[int] = set()
    summaries: set[int] = set()
    frontier = {world}
    while frontier:
        entered: dict[int, InsideRow] = {}
        for item in reader.sweep.inside(frontier):
            if item.is_member:
                return None
            entered[item.row] = item
        seen |= entered.keys()
        summaries |= {
            item.row
            for item in entered.values()
            if item.type == SUMMARY and (item.valid_to is None or item.valid_to > now)
        }
        worlds = [item.row for item in entered.values() if item.has_interior]
        whole = _fresh(reader, whole_summaries(reader, worlds, now), moment) if worlds else {}
        stand_ins |= {row for row, _ in whole.values()}
        frontier = entered.keys() - whole.keys()
    seen |= stand_ins
    covering = summaries - stand_ins
    stale = stale_summaries(reader, reader.nodes(covering), moment)
    covers = reader.sweep.covers(covering - stale, (DERIVED,))
    covered = {item.target for item in covers if item.valid_to is None or item.valid_to > now}
    return seen - covered - stale


def _fresh(
    reader: Reader, whole: dict[int, tuple[int, int]], moment: Moment
) -> dict[int, tuple[int, int]]:
    """Return the whole summaries that tell nothing that has ended: an end changes no state."""
    stale = stale_summaries(reader, reader.nodes([row for row, _ in whole.values()]), moment)
    return {world: found for world, found in whole.items() if found[0] not in stale}


def uncovered(
    reader: Reader,
    rows: set[int],
    types: Sequence[str],
    moment: Moment,
    read: Callable[[Iterable[int]], dict[int, Node]],
) -> set[int]:
    """Return those of `rows` that no summary among them was derived from, and no stale summary.

    `read` returns the nodes of rows as far as they can be seen at the moment.
    """
    at = to_micros(moment.now if moment.valid is None else moment.valid, "valid")
    covers = [
        item
        for item in reader.sweep.covers(rows, types)
        if (item.valid_to is None or item.valid_to > at)
        and (moment.valid is None or item.valid_from <= at)
    ]
    nodes = read({item.source for item in covers})
    stale = stale_summaries(reader, nodes, moment)
    summaries = {row for row, node in nodes.items() if node.type == SUMMARY} - stale
    return rows - stale - {item.target for item in covers if item.source in summaries}
