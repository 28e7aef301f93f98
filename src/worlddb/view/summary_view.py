"""Summary view: a world read through its summaries, and which summaries are stale.

A summary is stale when one of its details has ended, or when a sentence of a detail was replaced.
(The replaced sentence is a `Fact` derived from the longer text; the text itself stays.) A summary
of summaries is followed down to its details.

`summary_view` reads a world without reading what its summaries cover:

    does one summary cover everything inside, unchanged since?  ──yes──▶ that summary
        └─no──▶ the nodes directly inside that no summary covers, and the same for each world there

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
    """Return the rows of those summaries among `nodes` that report something that has ended.

    Without `deep`, summaries of summaries are not followed. With it, an inner summary that has
    ended is ignored; the details that it was derived from are checked instead.
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
            break  # Derivations are acyclic, so the walk ends.
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
    """Return the current summary of each node that is only a name, if it has one."""
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
"""Start of the source of a summary of a whole world; the depth of its inner summaries follows."""
DEPTH_DIGITS_MAX = 4
"""A longer number is not a depth: a source is free text that any caller may write."""


def whole_summaries(reader: Reader, worlds: Iterable[int], now: int) -> dict[int, tuple[int, int]]:
    """Return, for each world, the summary that covers the whole world now, and its depth.

    Worlds without one are left out. Only the last child can be one: it would not cover later nodes.
    """
    found = {}
    for world, row, source in reader.sweep.wholes(worlds, WHOLE, now):
        digits = source.removeprefix(WHOLE)
        depth = int(digits) if digits.isdecimal() and len(digits) <= DEPTH_DIGITS_MAX else 0
        if depth and _stands(reader, row, depth, now):
            found[world] = row, depth
    return found


def _stands(reader: Reader, row: int, depth: int, now: int) -> bool:
    """Return whether all summaries in a summary are live: closing one of them changes no state."""
    below = [row]
    for _ in range(depth - 1):
        found = reader.sweep.summaries_below(below)
        if any(ends is not None and ends <= now for _, ends in found):
            return False
        below = [inner for inner, _ in found]
    return True


def summary_view(reader: Reader, world: int, moment: Moment) -> set[int] | None:
    """Return the rows inside a world now that no summary there was derived from.

    A stale summary covers nothing and is left out. Worlds that one summary covers are not read;
    such a summary covers nothing outside its world. Returns None if the world has members, because
    a member may be covered in the world it lives in, which may not be read. Rows that have ended
    may be among the result.
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
    """Return the whole-world summaries that are not stale; an end does not change a state."""
    stale = stale_summaries(reader, reader.nodes([row for row, _ in whole.values()]), moment)
    return {world: found for world, found in whole.items() if found[0] not in stale}


def uncovered(
    reader: Reader,
    rows: set[int],
    types: Sequence[str],
    moment: Moment,
    read: Callable[[Iterable[int]], dict[int, Node]],
) -> set[int]:
    """Return `rows` without stale summaries and without the details of the other summaries.

    `read` returns the visible nodes of rows.
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
