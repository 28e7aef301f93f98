"""Outdated: what of the found is no longer so, though it has not ended itself.

A longer text stays when one sentence of it is replaced; the sentence has ended as a fact that was
derived from it. Then the text is still found, but what replaced the sentence comes before it. A
summary says what its details said: with one of them ended it is left out until it is made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from worlddb.model.instant import to_micros
from worlddb.model.values import Node
from worlddb.read.hits import Outdated
from worlddb.read.moment import Moment
from worlddb.store.protocol import Reader

SUMMARY, FACT = "Summary", "Fact"


class Replaced(NamedTuple):
    """A sentence that has ended, and the row of what replaced it."""

    row: int
    told: Outdated


def stale_summaries(reader: Reader, nodes: Mapping[int, Node], moment: Moment) -> set[int]:
    """Return the rows of those summaries of which a detail has ended."""
    summaries = [row for row, node in nodes.items() if node.type == SUMMARY]
    if not summaries:
        return set()
    details: dict[int, set[int]] = {}
    for item in reader.edges_at(summaries, "out", ("derived_from",), moment.known):
        details.setdefault(item.source, set()).add(item.target)
    ended = _ended(reader, {row for found in details.values() for row in found}, moment)
    return {row for row, found in details.items() if found & ended}


def _ended(reader: Reader, rows: set[int], moment: Moment) -> set[int]:
    """Return those rows whose validity is over at the moment."""
    at = to_micros(moment.valid or moment.now, "at")
    if moment.known is None:
        return reader.placed.ended(rows, at)
    bodies = reader.bodies(sorted(rows), moment.known)
    return {body.row for body in bodies if body.valid_to is not None and body.valid_to <= at}


def replaced(reader: Reader, rows: Iterable[int], moment: Moment) -> dict[int, list[Replaced]]:
    """Return by row the sentences that something has replaced since."""
    parts: dict[int, list[int]] = {}
    for item in reader.edges_at(rows, "in", ("derived_from",), moment.known):
        parts.setdefault(item.source, []).append(item.target)
    if not parts:
        return {}
    facts = {
        row: node
        for row, node in reader.nodes(parts, moment.known).items()
        if node.type == FACT and not moment.holds(node)
    }
    found: dict[int, list[Replaced]] = {}
    for item in reader.edges_at(facts, "in", ("supersedes",), moment.known) if facts else ():
        fact = facts[item.target]
        assert fact.valid_to is not None or moment.valid is not None
        told = Outdated(text=fact.content, until=fact.valid_to, by=item.edge.source)
        for row in parts[item.target]:
            found.setdefault(row, []).append(Replaced(item.source, told))
    return found


def in_order(
    order: Sequence[int],
    rows: Sequence[int],
    outdated: Mapping[int, Sequence[Replaced]],
    stale: set[int],
) -> list[int]:
    """Return places with what replaced a sentence right before the text that still has it."""
    if not outdated and not stale:
        return list(order)
    place_of = {row: place for place, row in enumerate(rows)}
    kept = [place for place in order if rows[place] not in stale]
    for place in [place for place in kept if rows[place] in outdated]:
        for newer in outdated[rows[place]]:
            better = place_of.get(newer.row)
            if better is None or rows[better] in stale:
                continue
            at = kept.index(place)
            if better not in kept[:at]:
                if better in kept:
                    kept.remove(better)
                kept.insert(at, better)
    return kept
