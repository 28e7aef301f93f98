"""Recency: of two hits that answer the question alike, the later one comes first.

    hits in their order ──▶ pairs of an older and a newer answer ──▶ newer before older, and told so

Two hits answer alike if they are one frame with two values ("The code is 2204", "The code is
7719"), or if the later one has what the question asks for and says nothing foreign; see
`language/statement.py`. Both stay. The older hit says which hit may have replaced it.

N1  Only texts of one speaker in one place are compared: another user's alarm has another code.
N2  A question for an earlier time ("What was my old code?") is answered in the order of the ranker.
N3  What is more trusted comes before what is less trusted, however late that was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from worlddb.language.statement import (
    Statement,
    answers_anew,
    asked_of,
    is_answer,
    is_rival,
    may_be_rival,
    statement_of,
)
from worlddb.model.origin import FULL
from worlddb.model.records import Node

HITS_COMPARED_MAX = 20  # Every pair is compared; what ranks lower than this is hardly read.
SAID = frozenset({"Memory", "Turn", "Fact"})
"""Types of nodes that state something."""


class _Answer(NamedTuple):
    """A hit that states something: where in the order, since when, who says it where, and what.

    `answers` if it has enough of the question's words. `trust` is the level of the node.
    """

    at: int
    since: tuple[datetime, int]
    speaker: tuple[object, ...]
    said: Statement
    answers: bool
    trust: int


def newer_first(
    order: Sequence[int],
    rows: Sequence[int],
    nodes: Mapping[int, Node],
    question: str,
    trust: Mapping[int, int],
) -> tuple[list[int], dict[int, int]]:
    """Return positions with newer answers before older ones, and the newest rival of each older.

    `order` are positions in `rows`, best first. The second value is by row; so is `trust`, without
    the rows that are trusted in full.
    """
    found = list(order)
    asked = asked_of(question)
    if asked is None or len(found) < 2:
        return found, {}
    answers = sorted(
        _answers(found[:HITS_COMPARED_MAX], rows, nodes, asked, trust),
        key=lambda it: (it.trust, it.since),
    )
    outdated: dict[int, int] = {}
    for number, new in enumerate(answers):
        older = [old for old in answers[:number] if _replaces(new, old, asked)]
        if not older:
            continue
        outdated.update((rows[old.at], rows[new.at]) for old in older if old.since < new.since)
        first = min(found.index(old.at) for old in older)
        if found.index(new.at) > first:
            found.remove(new.at)
            found.insert(first, new.at)
    return found, outdated


def _answers(
    positions: Sequence[int],
    rows: Sequence[int],
    nodes: Mapping[int, Node],
    asked: Statement,
    trust: Mapping[int, int],
) -> list[_Answer]:
    answers = []
    for at in positions:
        node = nodes.get(rows[at])
        said = statement_of(node.content) if node is not None and node.type in SAID else None
        if node is not None and said is not None:
            # Turns of several chats are compared if one person says them.
            speaker = ("Turn", node.name) if node.type == "Turn" else (node.parent,)
            since = node.valid_from, rows[at]
            answers.append(
                _Answer(at, since, speaker, said, is_answer(said, asked), trust.get(rows[at], FULL))
            )
    return answers


def _replaces(new: _Answer, old: _Answer, asked: Statement) -> bool:
    """Return whether a later answer may have replaced an older one."""
    if new.speaker != old.speaker:
        return False
    if old.answers and answers_anew(old.said, new.said, asked):
        return True
    return may_be_rival(old.said, new.said) and is_rival(old.said, new.said)
