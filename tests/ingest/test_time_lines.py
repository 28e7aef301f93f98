"""Time lines of claims: the same, whatever the order of writing, merging, splitting and undoing.

Random statements about where people live are written in random order. The model knows nothing of
time lines: what holds at an instant is the last statement before it, one for each person.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import NamedTuple

import pytest

from thinning import some
from worlddb import Memory, WorldDB

CITIES = ("Rome", "Oslo", "Paris", "Lima", "Cairo", "Delhi", "Quito", "Tunis")
FORMS = ("{} lives in %s.", "{} moved to %s.", "{} lives in %s. The weather was fine.")
HER, OTHER = "Sarah Chen", "Sara Chen"

Held = dict[int, set[str]]


class Said(NamedTuple):
    """A statement about one of two people, and the day on which it was made."""

    is_hers: bool
    form: str
    city: str
    day: int

    def write(self, memory: Memory, other: str = HER) -> str:
        name = HER if self.is_hers else other
        return str(memory.write(self.form.format(name) % self.city, at=at(self.day)).id)


def at(day: int) -> datetime:
    return datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=day)


def random_statements(seed: int, count: int) -> list[Said]:
    rng = random.Random(seed)
    cities, days = rng.sample(CITIES, count), rng.sample(range(0, 1500, 50), count)
    owners = [True, False, *(rng.random() < 0.5 for _ in range(count - 2))]
    rng.shuffle(owners)
    return [
        Said(is_hers, rng.choice(FORMS), city, day)
        for is_hers, city, day in zip(owners, cities, days, strict=True)
    ]


def modelled(said: Iterable[Said], *, as_one: bool) -> Held:
    """Return the cities that hold the day after each statement."""
    said = sorted(said, key=lambda one: one.day)
    held: Held = {}
    latest: dict[bool, str] = {}
    for one in said:
        latest[as_one or one.is_hers] = one.city
        held[one.day] = set(latest.values())
    return held


def held_in(db: WorldDB, said: Iterable[Said]) -> Held:
    """Return the same as the store tells it: what lives, without sentences that have ended."""
    facts = list(db.query().include_superseded().filter_type("Fact").execute())
    held: Held = {}
    for one in said:
        then = at(one.day + 1)
        live = db.query().as_of(valid=then).filter_type("Memory", "Fact").execute()
        quoted = {city(node.content) for node in live if node.type == "Fact"}
        over = {
            city(fact.content)
            for fact in facts
            if fact.valid_to is not None and fact.valid_from < fact.valid_to <= then
        }
        held[one.day] = {city(node.content) for node in live} - (over - quoted)
    return held


def city(text: str) -> str:
    return next(one for one in CITIES if one in text)


@pytest.mark.parametrize("seed", some(range(60), 10))
def test_merges_and_their_undoing_leave_the_time_lines_of_the_names(seed: int) -> None:
    rng = random.Random(seed)
    said = random_statements(seed, 5)
    with Memory(":memory:", user_id="ada", embedder="none", recluster="now") as memory:
        db, is_one, accepted = memory.db, False, 0
        for count, one in enumerate(said, 1):
            one.write(memory, OTHER)
            if (found := db.proposals(None)) and rng.random() < 0.6:
                if not is_one:
                    db.accept_merge(found[0].edge)
                    accepted = db.log()[-1].seq
                elif rng.random() < 0.5:
                    db.undo_merge(found[0].edge)
                else:
                    memory.undo(accepted)
                is_one = not is_one
            assert held_in(db, said[:count]) == modelled(said[:count], as_one=is_one)
        assert db.check() == []


@pytest.mark.parametrize("seed", some(range(60), 10))
def test_a_split_gives_each_person_a_time_line_and_can_be_undone(seed: int) -> None:
    said = random_statements(seed, 5)
    with Memory(":memory:", user_id="ada", embedder="none", recluster="off") as memory:
        db = memory.db
        ids = [one.write(memory) for one in said]
        before = held_in(db, said)
        assert before == modelled(said, as_one=True)
        others = [ident for ident, one in zip(ids, said, strict=True) if not one.is_hers]
        done = memory.split(HER, others)
        assert held_in(db, said) == modelled(said, as_one=False)
        assert done.commit is not None
        memory.undo(done.commit)
        assert held_in(db, said) == before
        assert db.check() == []


SPLITS = (
    # Hers was written first, so the other's ended at once.
    "hers Lima 1150, hers Paris 600, other Rome 750",
    # The claim between the two was a sentence of a longer text.
    "other Lima 200, hers Cairo+ 550, other Quito 1450",
    # Both people's claims ended one sentence.
    "hers Paris 1300, other Delhi+ 400, other Oslo 750",
    "hers Quito+ 750, other Tunis 1100, hers Cairo 400, hers Oslo+ 1000, hers Lima+ 850",
)
MERGES = (
    # A claim that was written while both were one, and a claim that both sides had ended.
    "hers Rome 1000, other Cairo 250, merge, other Quito 750, undo",
    "hers Cairo 500, other Rome 1350, merge, hers Delhi+ 1300, undo",
    # A sentence that ended through the merge had itself ended another one.
    "other Lima 100, other Oslo 500, hers Delhi 1250, merge, other Cairo 300, undo, other Rome 350",
)


def read(step: str) -> Said:
    who, where, day = step.split()
    form = FORMS[2] if where.endswith("+") else FORMS[0]
    return Said(who == "hers", form, where.rstrip("+"), int(day))


@pytest.mark.parametrize("script", SPLITS)
def test_what_a_split_once_got_wrong(script: str) -> None:
    said = [read(step) for step in script.split(", ")]
    with Memory(":memory:", user_id="ada", embedder="none", recluster="off") as memory:
        ids = [one.write(memory) for one in said]
        memory.split(HER, [it for it, one in zip(ids, said, strict=True) if not one.is_hers])
        assert held_in(memory.db, said) == modelled(said, as_one=False)


@pytest.mark.parametrize("by_commit", [False, True])
@pytest.mark.parametrize("script", MERGES)
def test_what_undoing_a_merge_once_got_wrong(script: str, by_commit: bool) -> None:
    said: list[Said] = []
    accepted = 0
    with Memory(":memory:", user_id="ada", embedder="none", recluster="now") as memory:
        for step in script.split(", "):
            if step == "merge":
                memory.db.accept_merge(memory.db.proposals()[0].edge)
                accepted = memory.db.log()[-1].seq
            elif step == "undo" and by_commit:
                memory.undo(accepted)
            elif step == "undo":
                memory.db.undo_merge(memory.db.proposals(None)[0].edge)
            else:
                said.append(read(step))
                said[-1].write(memory, OTHER)
        assert held_in(memory.db, said) == modelled(said, as_one=False)


MIXED = (
    ("I live in Rome.", 300),
    ("I moved to Oslo in March 2021.", 600),
    ("I live in Lima. The weather was fine.", 900),
    ("I have lived in Paris since 2023.", 1400),
)


def test_any_order_of_dated_and_plain_statements_gives_one_time_line() -> None:
    found = set()
    for order in list(permutations(MIXED))[::3]:
        with Memory(":memory:", user_id="ada", embedder="none", recluster="off") as memory:
            for text, day in order:
                memory.write(text, at=at(day))
            nodes = memory.db.query().include_superseded().execute()
            kept = {
                (node.type, node.content, node.valid_from, node.valid_to)
                for node in nodes
                if node.type in ("Memory", "Fact")
            }
            found.add(frozenset(kept))
            # As known after each commit, what was said last of all until then holds.
            for count, commit in enumerate(memory.db.log()[-len(order) :], 1):
                for instant in (at(day + 1) for _, day in order[:count]):
                    known = memory.db.query().as_of(valid=instant, known=commit.time)
                    here = [node.content for node in known.filter_type("Memory").execute()]
                    late = max((it for it in order[:count] if at(it[1]) <= instant), key=by_day)
                    assert late[0] in here
                    assert len([text for text in here if "weather" not in text]) <= 1
    assert len(found) == 1


def by_day(said: tuple[str, int]) -> int:
    return said[1]


@pytest.mark.parametrize("later", ["2020-05-01T10:00:00Z", "2090-05-01T10:00:00Z"])
def test_an_ended_text_said_again_for_an_earlier_time_is_written(later: str) -> None:
    """Statements of one instant end one another; which of them stays depends on their ids."""
    cities = ("Rome", "Paris", "Oslo")
    for again in [f"I live in {city}." for city in cities] * 4:
        with Memory(":memory:", embedder="none") as memory:
            for city in cities:
                memory.write(f"I live in {city}.", at=later)
            [last] = memory.recall("Where do I live?", as_of="2091-01-01T10:00:00Z")
            if last.node.content != again:
                memory.write(again, at="2015-01-01T10:00:00Z")
                [then] = memory.recall("Where do I live?", as_of="2016-01-01T10:00:00Z")
                assert then.node.content == again
            assert memory.db.check() == []
