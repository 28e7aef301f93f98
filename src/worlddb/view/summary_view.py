"""Summary view: a world read summary first, and which summaries are stale.

A summary is stale when one of its details has ended, or when a sentence of a detail was replaced.
(The replaced sentence is a `Fact` derived from the longer text; the text itself stays.) A summary
of summaries is followed down to its details.

`summary_view` reads a world without reading what its summaries cover:

    is there one summary of everything inside, and has nothing changed since?  ──yes──▶ that one
        └─no──▶ what is directly inside, the same of each world there, less what is summarised

A summary that covers the whole world says so among its sources. The world's state covers its whole
interior, so the time of its last change tells whether such a summary is up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from worlddb.model.inputs import to_micros
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.store.rows import InsideRow
from worlddb.view.visibility import Moment

SUMMARY, FACT = "Summary", "Fact"
DERIVED, REPLACED = "derived_from", "supersedes"


class EndedSentence(NamedTuple):
    """A sentence of a longer text that was replaced: its fact, and when the engine learned it."""

    fact: Node
    learned: datetime


def ended_sentences(
    reader: Reader, rows: Iterable[int], moment: Moment
) -> dict[int, list[EndedSentence]]:
    """Return the replaced sentences of texts, by the row of the text."""
    parts: dict[int, list[int]] = {}
    for item in reader.edges_at(sorted(rows), "in", (DERIVED,), moment.known):
        parts.setdefault(item.source, []).append(item.target)
    if not parts:
        return {}
    at = moment.valid or moment.now
    facts = {
        row: node
        for row, node in reader.nodes(parts, moment.known).items()
        if node.type == FACT and node.valid_to is not None and node.valid_to <= at
    }
    learned: dict[int, datetime] = {}
    for item in reader.edges_at(sorted(facts), "in", (REPLACED,), moment.known) if facts else ():
        known = item.edge.known_from
        learned[item.target] = min(learned.get(item.target, known), known)
    found: dict[int, list[EndedSentence]] = {}
    for fact, when in sorted(learned.items()):
        for row in parts[fact]:
            found.setdefault(row, []).append(EndedSentence(facts[fact], when))
    return found


def stale_summaries(
    reader: Reader, nodes: Mapping[int, Node], moment: Moment, *, deep: bool = True
) -> set[int]:
    """Return the rows of those summaries among `nodes` that tell what has ended.

    Without `deep`, summaries of summaries are not looked through. With it, an inner summary that
    has ended says nothing: what it was derived from does.
    """
    details: dict[int, set[int]] = {}
    inner: set[int] = set()
    frontier = {row: {row} for row, node in nodes.items() if node.type == SUMMARY}
    while frontier:
        below: dict[int, set[int]] = {}
        for item in reader.edges_at(sorted(frontier), "out", (DERIVED,), moment.known):
            for top in frontier[item.source]:
                details.setdefault(top, set()).add(item.target)
            below.setdefault(item.target, set()).update(frontier[item.source])
        if not deep or not below:
            break  # Derivations have no circles: the walk ends.
        bodies = reader.bodies(sorted(below), moment.known)
        frontier = {body.row: below[body.row] for body in bodies if body.type == SUMMARY}
        inner |= frontier.keys()
    if not details:
        return set()
    told = {row for found in details.values() for row in found} - inner
    ended = _ended(reader, told, moment)
    sentences = ended_sentences(reader, told - ended, moment)
    return {
        top
        for top, found in details.items()
        if found & ended
        or any(
            sentence.learned > nodes[top].known_from
            for row in found & sentences.keys()
            for sentence in sentences[row]
        )
    }


def _ended(reader: Reader, rows: set[int], moment: Moment) -> set[int]:
    """Return those rows whose validity is over at the moment."""
    at = to_micros(moment.valid or moment.now, "at")
    if moment.known is None:
        return reader.placed.ended(rows, at)
    bodies = reader.bodies(sorted(rows), moment.known)
    return {body.row for body in bodies if body.valid_to is not None and body.valid_to <= at}


def world_summaries(reader: Reader, nodes: Mapping[int, Node], moment: Moment) -> dict[int, Node]:
    """Return the newest summary of each node that is only a name, if it has one that holds."""
    worlds = [row for row, node in nodes.items() if node.name and not node.content]
    if not worlds:
        return {}
    if moment.known is None:
        rows = reader.children_of(worlds)
    else:
        rows = [child for world in worlds for child in reader.children(world, moment.known)]
    kept = [body.row for body in reader.bodies(sorted(rows), moment.known) if body.type == SUMMARY]
    found = {
        row: node for row, node in reader.nodes(kept, moment.known).items() if moment.holds(node)
    }
    stale = stale_summaries(reader, found, moment)
    parents = reader.parents(found, moment.known)
    newest = {parents[row]: found[row] for row in sorted(found) if row not in stale}
    return {row: newest[row] for row in worlds if row in newest}


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
