"""The past: a question as of what was known then gets the answer that was given then."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from property.naive import ROOT, at
from property.player import Create, Player, Renews, Turn, Write, first_turn, random_turn, turns
from recall.search_stage import (
    BASE,
    HOUR,
    LANES,
    delete,
    edge,
    fact,
    facts,
    hit_of,
    hold_at_most,
    lanes,
    open_store,
    write_after_catch_up,
)
from thinning import examples, some
from worlddb import AsOf, Id, WorldDB
from worlddb.embed.embedder import HashEmbedder, Pooling

QUESTIONS = ("red apple", "green", "a pear of the Animal", "blue c")
LATER = BASE + 1_000 * HOUR
"""When every question is asked: what is over by now is over whenever it is asked."""
POOLINGS: tuple[Pooling, ...] = ("attention", "mean")


class History:
    """A history that is played commit by commit, and what was answered after each."""

    def __init__(self, pooling: Pooling, path: Path | None = None) -> None:
        self.player = Player()
        self.player.db.close()
        self.options: dict[str, Any] = {
            "pooling": pooling,
            "clock": lambda: self.player.clock,
            "random_bytes": lambda size: self.player.blind[:size],
            "handlers": [Renews()],
        }
        self.player.db = open_store(":memory:" if path is None else path, **self.options)
        self.given: list[list[Any]] = []

    def play(self, turn: Turn, *, asks: bool = True) -> None:
        """Play a transaction; if it landed, ask."""
        if self.player.play(turn) and asks:
            self.given.append(self.answers(self.player.db, len(self.player.history) - 1))

    def answers(self, db: WorldDB, commit: int, known: bool = False) -> list[Any]:
        """Ask of the whole store and of worlds in it, as of now or as of what was known then."""
        self.player.clock = LATER
        world, rng = self.player.history[commit], random.Random(commit)
        then = at(world.time) if known else None
        scopes: list[Id | None] = [None, None]
        holders = {node.parent or ROOT for node in world.nodes.values()} - {ROOT}
        scopes += rng.sample(sorted(holders), min(2, len(holders)))
        answers: list[Any] = []
        for number, scope in enumerate(scopes):
            valid = at(BASE + rng.randrange(12) * HOUR) if number % 2 else None
            question = rng.choice(QUESTIONS)
            when = AsOf(valid=valid, known=then)
            answers += [
                db.recall(question, scope=scope, as_of=when, settings=chosen, k=30)
                for chosen in (None, lanes(*LANES))
            ]
            asked = db.query() if scope is None else db.query().in_world(scope)
            vector = [rng.uniform(-1, 1) for _ in range(64)]
            answers.append(asked.as_of(valid=valid, known=then).vector(vector).execute().nodes)
        return answers

    def wrong(self, db: WorldDB) -> list[int]:
        """Return the commits of which the store now gives other answers than it gave then."""
        first = len(self.player.history) - len(self.given)
        return [
            commit
            for commit, given_then in enumerate(self.given, first)
            if self.answers(db, commit, known=True) != given_then
        ]


def nesting(turn: Turn, rng: random.Random) -> Turn:
    """Return a transaction that nests more deeply: most of its nodes are made in another one."""
    steps = [
        replace(step, parent=rng.randrange(1_000))
        if isinstance(step, Create) and rng.random() < 0.5
        else replace(step, type="contains")
        if isinstance(step, Write) and rng.random() < 0.5
        else step
        for step in turn.steps
    ]
    return replace(turn, steps=tuple(steps), swallows=True)


def random_turns(seed: int, commits: int) -> Iterator[Turn]:
    """Yield a random history of nodes in nodes that come, move and end."""
    rng = random.Random(seed)
    yield first_turn(rng, BASE)
    for number in range(commits):
        yield nesting(random_turn(rng, BASE + number * HOUR // 3), rng)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("seed", some([1, 2], 2))
def test_as_of_every_past_commit_the_answer_is_the_one_that_was_given_then(
    tmp_path: Path, seed: int, pooling: Pooling
) -> None:
    path = tmp_path / "store.db"
    history = History(pooling, path)
    for turn in random_turns(seed, 30):
        history.play(turn)
    assert len(history.given) > 15
    assert history.wrong(history.player.db) == []
    with open_store(path, **history.options) as fresh:
        assert history.wrong(fresh) == []
    history.player.db.close()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_store_that_was_never_asked_before_gives_the_answers_that_another_gave_then(
    pooling: Pooling,
) -> None:
    history, silent = History(pooling), History(pooling)
    for turn in random_turns(4, 30):
        history.play(turn)
        silent.play(turn, asks=False)
    assert history.wrong(silent.player.db) == []


@settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=examples(25, 10),
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(turns, min_size=2, max_size=8), st.sampled_from(POOLINGS), st.randoms())
def test_any_history_answers_as_it_did_then(
    played: list[Turn], pooling: Pooling, rng: random.Random
) -> None:
    history = History(pooling)
    for turn in played:
        history.play(nesting(turn, rng))
    assert history.wrong(history.player.db) == []
    history.player.db.close()


# -- one change, one case each ---------------------------------------------------------------------


def cosine(db: WorldDB, ident: Id, **when: Any) -> float:
    """Return how near a node is to a question, as the vector lane says."""
    answer = db.recall("red apple", as_of=AsOf(**when), settings=lanes("vector"), k=100)
    return hit_of(answer, ident).lanes["vector"].score


def test_what_came_into_a_memory_does_not_change_how_near_it_was_before() -> None:
    db = open_store()
    memory, other = facts(db, ["red apple", "red apple, a green pear"])
    before, then = cosine(db, memory), db.log()[-1].time
    inner = edge(db, "contains", memory, other)
    within, later = cosine(db, memory), db.log()[-1].time
    assert within < before
    delete(db, inner)
    assert cosine(db, memory) == cosine(db, memory, known=then) == before
    assert cosine(db, memory, known=later) == within


def test_what_has_ended_counts_as_long_as_nobody_knew_whenever_it_was_true() -> None:
    db = open_store()
    memory = fact(db, "red apple")
    child = fact(db, "a green pear", parent=memory)
    before, then = cosine(db, memory), db.log()[-1].time
    with db.transaction() as tx:
        tx.retire(child)
    after = cosine(db, memory)
    assert after > before
    assert cosine(db, memory, known=then) == cosine(db, memory, known=then, valid=then) == before
    assert cosine(db, memory, valid=then) == after


def test_a_nest_of_a_thousand_worlds_is_as_near_as_it_was() -> None:
    db = open_store()
    outer = memory = fact(db, "red apple")
    with db.transaction(bulk=True) as tx:
        for number in range(1_000):
            memory = tx.create_node(type="Fact", content=f"pear {number}", parent=memory).id
    before, then = cosine(db, outer), db.log()[-1].time
    fact(db, "green " * 5, parent=memory)
    fact(db, "green " * 5, parent=outer)
    assert cosine(db, outer) != before
    assert cosine(db, outer, known=then) == before


def test_a_store_that_was_small_then_answers_as_it_did_however_much_it_has_grown() -> None:
    db = hold_at_most(open_store(), 10)
    memory = fact(db, "red apple")
    facts(db, [f"apple {number}" for number in range(9)], parent=memory)
    answer, then = db.recall("red apple"), AsOf(known=db.log()[-1].time)
    facts(db, ["red pear"] * 3, parent=memory)
    edge(db, "contains", memory, fact(db, "green apple"))
    assert db.recall("red apple") != answer
    assert db.recall("red apple", as_of=then) == answer
    too_large = AsOf(known=db.log()[-1].time)
    assert db.recall("red apple", as_of=too_large) == db.recall("red apple")
    assert len(db.recall("red apple", as_of=AsOf(known=at(0)))) == 0


def test_after_another_embedder_took_over_the_past_is_as_that_one_would_have_told_it(
    tmp_path: Path,
) -> None:
    """The new one never composed the world that was emptied before it came."""

    def told(path: Path, first: int) -> tuple[WorldDB, Id, float, Any]:
        db = open_store(path, embedder=HashEmbedder(first), clock=lambda: BASE)
        memory, other = facts(db, ["red apple", "a green pear"])
        inner = edge(db, "contains", memory, other)
        before, then = cosine(db, memory), db.log()[-1].time
        delete(db, inner)
        return db, memory, before, then

    _, _, expected, _ = told(tmp_path / "one.db", 32)
    db, memory, before, then = told(tmp_path / "two.db", 64)
    assert cosine(db, memory, known=then) == before != expected
    db.reindex(HashEmbedder(32))
    assert cosine(db, memory, known=then) == expected != cosine(db, memory)


def test_where_no_vector_can_be_kept_the_past_is_composed_too(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with open_store(path) as db:
        memory = fact(db, "red apple")
        fact(db, "a green pear", parent=memory)
        then = db.log()[-1].time
        fact(db, "a blue pear", parent=memory)
        db.backup(copy)
        before = cosine(db, memory, known=then)
    with open_store(copy, read_only=True) as db:
        assert cosine(db, memory, known=then) == before
        assert cosine(db, memory, known=then) == before


def test_of_what_was_erased_nothing_is_left_in_the_past(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(path) as db:
        memory = fact(db, "red apple")
        child = fact(db, "a green pear", parent=memory)
        then = db.log()[-1].time
        fact(db, "a blue pear", parent=memory)
        before = cosine(db, memory, known=then)
        db.erase(child)
        after = cosine(db, memory, known=then)
        assert after == pytest.approx(1, abs=1e-3) != before
        with open_store(path) as fresh:
            assert cosine(fresh, memory, known=then) == after


def test_what_had_no_vector_when_the_past_was_first_asked_about_has_it_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"

    def write() -> None:
        with open_store(path) as other:
            fact(other, "a green pear", parent=memory)

    with open_store(path) as db:
        memory = fact(db, "red apple")
        fact(db, "a blue pear", parent=memory)
        before = cosine(db, memory)
        fact(db, "a loose end")
        write_after_catch_up(monkeypatch, write)
        known = at(2 * LATER)
        assert cosine(db, memory, known=known) == before
        assert cosine(db, memory, known=known) == cosine(db, memory) != before
