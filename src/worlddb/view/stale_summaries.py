"""Stale summaries: which summaries tell something that has ended since they were made.

A summary says what its details said. It is stale once one of them has ended, or once a sentence of
one of them was replaced: the sentence is a `Fact` that was derived from the longer text, and the
text itself stays. A summary of summaries is looked through, down to the last detail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from worlddb.model.inputs import to_micros
from worlddb.model.records import Node
from worlddb.store.interface import Reader
from worlddb.view.visibility import Moment

SUMMARY, FACT = "Summary", "Fact"
DERIVED, REPLACED = ("derived_from",), ("supersedes",)


class EndedSentence(NamedTuple):
    """A sentence of a longer text that was replaced: its fact, and when the engine learned it."""

    fact: Node
    learned: datetime


def ended_sentences(
    reader: Reader, rows: Iterable[int], moment: Moment
) -> dict[int, list[EndedSentence]]:
    """Return the replaced sentences of texts, by the row of the text."""
    parts: dict[int, list[int]] = {}
    for item in reader.edges_at(sorted(rows), "in", DERIVED, moment.known):
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
    for item in reader.edges_at(sorted(facts), "in", REPLACED, moment.known) if facts else ():
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
        for item in reader.edges_at(sorted(frontier), "out", DERIVED, moment.known):
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
