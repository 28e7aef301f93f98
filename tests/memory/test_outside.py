"""Bound callers: what lies outside their bounds changes none of their answers, scores or errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

import worlddb
from recall.search_stage import hold_at_most
from worlddb import Memory, WorldDB, WorldDBError
from worlddb.index import store_search
from worlddb.index.ranking_numbers import SCALARS
from worlddb.recall import activation, store_lanes
from worlddb.recall import question as recall_question

START = datetime(2026, 1, 1, tzinfo=UTC)
OWN = (
    "My friend Sarah Chen lives in Oslo.",
    "Sarah Chen plays chess with Tom Berg on Sundays.",
    "Tom Berg works at Tern and drinks green tea.",
    "I moved to Lisbon in March.",
    "Green tea is what I drink in the morning.",
    "Sarah's sister Mia Novak is a doctor in Graz.",
)
QUESTIONS = (
    "Where does Sarah Chen live?",
    "Whom does Tom play chess with?",
    "Who drinks green tea?",
    "What does Sara Chen like?",  # Misspelled.
    "Where did I move to?",
    "Who is Mia?",
)
OTHERS = (
    "Sarah Chen lives in Paris and plays chess.",
    "Tom Berg drinks green tea in Oslo.",
    "Green tea, green tea and chess in Lisbon with Mia Novak.",
    "Sara Chen is somebody else.",
    "Mia Berg and Tom Novak moved to Graz in the morning.",
)

ELSEWHERE = ("Sarah Chen and Tom Berg saw Mia Novak.", "Tom Berg met Sarah Chen at the lake.")


class Clock:
    """A clock that the test sets, so that equal writes have equal ids in both stores."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        return int(self.now.timestamp() * 1_000_000)


@contextmanager
def told(*, others: int, held: bool, bounds: str) -> Iterator[tuple[WorldDB, Memory]]:
    """Yield a store with what Ada wrote in a shop, and her memory or that of the shop, bound.

    Between her memories are those of other users. After them come some of hers that are not in the
    shop, about people who are.
    """
    clock = Clock()
    with worlddb.open(
        ":memory:", embedder="none", clock=clock, random_bytes=lambda size: b"\1" * size
    ) as db:
        memory = Memory(db, recluster="off")
        if not held:
            hold_at_most(db, 0)
        for number, text in enumerate(OWN):
            for turn in range(others):
                clock.now = START + timedelta(days=number, seconds=turn + 1)
                other = OTHERS[(number + turn) % len(OTHERS)]
                memory.write(f"{other} Note {turn}.", user_id=f"user {turn % 7}")
            clock.now = START + timedelta(days=number, hours=12)
            memory.write(text, user_id="ada", app_id="shop")
        for turn in range(4 * others if bounds == "app_id" else 0):
            clock.now = START + timedelta(days=len(OWN), seconds=turn + 1)
            memory.write(ELSEWHERE[turn % len(ELSEWHERE)] + f" Note {turn}.", user_id="ada")
        clock.now = START + timedelta(days=30)
        bound: Any = {bounds: {"user_id": "ada", "app_id": "shop"}[bounds]}
        yield db, memory.bound(**bound)


def answer(call: Callable[[], Any]) -> Any:
    """Return what a call says, or its error."""
    try:
        found = call()
    except WorldDBError as error:
        return type(error).__name__, str(error)
    return found.to_dict() if hasattr(found, "to_dict") else found


def answers(db: WorldDB, memory: Memory) -> list[Any]:
    """Return everything that a bound caller is told."""
    found = [answer(partial(memory.recall, question)) for question in QUESTIONS]
    found += [answer(partial(memory.recall, "", names=[name])) for name in ("Sarah Chen", "Tom")]
    found.append(answer(lambda: memory.list(limit=50)))
    found.append(answer(lambda: memory.write("Sarah Chen lives in Bergen now.", at=START)))
    found.append(answer(lambda: memory.recall("Where does Sarah Chen live?")))
    found.append(answer(lambda: memory.read("0000")))
    found.append(answer(lambda: memory.recall("Whom?", user_id="user 1")))
    return found


def meet_every_limit(patch: pytest.MonkeyPatch) -> None:
    """Let a few of the others be as many as thousands are."""
    patch.setattr(store_search, "CANDIDATES_MAX", 8)
    patch.setattr(store_lanes, "CANDIDATES_MAX", 8)
    patch.setattr(recall_question, "BEARERS_MAX", 5)
    patch.setattr(store_lanes, "BEARERS_MAX", 5)
    patch.setattr(activation, "SCALARS", replace(SCALARS, references_max=8))


@pytest.mark.parametrize("bounds", ["user_id", "app_id"])
@pytest.mark.parametrize("held", [True, False], ids=["small", "large"])
def test_no_answer_depends_on_what_lies_outside(
    held: bool, bounds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet_every_limit(monkeypatch)
    with told(others=0, held=held, bounds=bounds) as alone:
        expected = answers(*alone)
    with told(others=9, held=held, bounds=bounds) as among:
        found = answers(*among)
    for one, other in zip(found, expected, strict=True):
        assert one == other
    assert all(hits["hits"] for hits in expected[: len(QUESTIONS)])


@pytest.mark.parametrize("held", [True, False], ids=["small", "large"])
def test_two_people_are_not_one_by_somebody_outside(held: bool) -> None:
    found = []
    for merged in (False, True):
        with told(others=0, held=held, bounds="user_id") as (db, memory):
            with db.transaction() as tx:
                home = db.get(memory.list(limit=1).memories[0].id).parent
                one, two = (
                    tx.create_node(type="Entity", name=f"Zoe {name}", parent=home).id
                    for name in ("Ray", "Kim")
                )
                tx.write_edge(
                    "refers_to",
                    tx.create_node(type="Memory", content="She sings.", parent=home).id,
                    one,
                    metadata={"role": "about"},
                )
                outside = tx.create_node(type="Entity", name="Zoe").id
                edges = [tx.write_edge("same_as", outside, each).id for each in (one, two)]
            for edge in edges if merged else ():
                db.accept_merge(edge)
            found.append([answer(lambda: memory.recall("What does Zoe Kim do?"))])
    assert found[0] == found[1]


def test_what_an_undo_leaves_does_not_tell_how_many_commits_others_made() -> None:
    told = []
    for others in (0, 5):
        with Memory(":memory:", embedder="none", recluster="off") as memory:
            for number in range(others):
                memory.write(f"Note {number}.", user_id="bob")
            ada = memory.bound(user_id="ada")
            ada.write("I live in Rome.")
            ada.undo(1)
            ada.undo(2)
            edges = ada.diff(0, 3).edges
            assert any(edge.type == "supersedes" for edge in edges)
            told.append([dict(edge.metadata) for edge in edges])
    assert told[0] == told[1]
