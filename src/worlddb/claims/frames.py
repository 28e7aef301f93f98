"""Frames: two live texts of one place that say the same with another value may be in conflict.

    "The budget is 40k."   ◀──contradicts──   "The budget is 60k."

Nobody said that the older text is over, so nothing ends: the two are linked, and recall tells both.
A text is filed by its opening words in the name index, so a look-up costs one statement of SQL.

F1  A text is linked with the one before it and the one after it in time. A series of a thousand
    values has a thousand links.
F2  Only texts of one speaker in one world, or in sessions of that world, are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from worlddb.index.name_index import STATED, frame_numbers, speaker_name
from worlddb.language.statement import Statement, is_rival, statement_of
from worlddb.model.address import Id
from worlddb.model.drafts import DraftNode
from worlddb.model.inputs import to_micros
from worlddb.store.interface import Reader

FOUND_MAX = 8  # Texts of one key that are compared, the newest first: a neighbour is among them.
REASON = "the same words with another value"


class Rivals(NamedTuple):
    """Two texts of one frame; each is a drafted node by key, or a node of the store."""

    newer: str | Id
    older: str | Id


class _FramedText(NamedTuple):
    """A text that states something, and when it was said."""

    text: str | Id
    said: Statement
    at: tuple[int, int]
    keys: frozenset[int]


def rivals(
    reader: Reader,
    nodes: Sequence[DraftNode],
    known: Mapping[str, Id],
    world: int,
    now: int,
    keep: Callable[[Iterable[int]], set[int]],
) -> list[Rivals]:
    """Return the rivals of drafted texts, among themselves and in a world.

    `known` are the drafted nodes that are there already. `keep` returns the rows that hold and that
    the caller may see.
    """
    drafted = list(_drafted(nodes, known, world, now))
    keys = sorted({key for one in drafted for key in one.keys})
    if not keys:
        return []
    rows_of = reader.lookups.find(keys, FOUND_MAX)
    there: dict[int, list[_FramedText]] = {}
    rows = {row for found in rows_of.values() for row in found}
    for body in reader.bodies(sorted(keep(rows))) if rows else ():
        said = statement_of(body.content)
        if said is not None:
            stated = _FramedText(Id(body.id), said, (body.valid_from, 0), frozenset())
            there[body.row] = [stated]
    by_key = {
        key: [one for row in found for one in there.get(row, ())] for key, found in rows_of.items()
    }
    pairs: dict[Rivals, None] = {}
    for one in drafted:
        others = {other.text: other for key in sorted(one.keys) for other in by_key[key]}
        pairs.update(dict.fromkeys(_neighbours(one, others.values())))
        for key in one.keys:
            by_key[key].append(one)
    return list(pairs)


def _drafted(
    nodes: Iterable[DraftNode], known: Collection[str], world: int, now: int
) -> Iterable[_FramedText]:
    for number, node in enumerate(nodes):
        if node.type not in STATED or node.key in known or node.resolvable:
            continue
        said = statement_of(node.content)
        if said is not None:
            begins = node.valid_from or node.created_at
            at = now if begins is None else to_micros(begins, "valid_from")
            keys = frame_numbers(node.content, speaker_name(node.type, node.name), world)
            yield _FramedText(node.key, said, (at, number + 1), frozenset(keys))


def _neighbours(one: _FramedText, others: Iterable[_FramedText]) -> Iterable[Rivals]:
    """Yield the last rival before a text, and the first one after it."""
    found = sorted(others, key=lambda other: other.at)
    before = [other for other in found if other.at < one.at and is_rival(other.said, one.said)]
    after = [other for other in found if other.at > one.at and is_rival(one.said, other.said)]
    if before:
        yield Rivals(one.text, before[-1].text)
    if after:
        yield Rivals(after[0].text, one.text)
