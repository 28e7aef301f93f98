"""Interior: a world held in memory follows the store, and answers as if it were read afresh."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from property.naive import at
from property.player import Player, first_turn, random_turn
from worlddb import AsOf, Id, Recall, RecallSettings, Subgraph, WorldDB
from worlddb.embed.deterministic import HashEmbedder
from worlddb.embed.protocol import Vectors
from worlddb.read import interiors
from worlddb.read.interior import Interior
from worlddb.store.protocol import BodyRow

from .search_stage import (
    BASE,
    HOUR,
    LANES,
    Clock,
    delete,
    edge,
    fact,
    facts,
    found,
    hold_at_most,
    lanes,
    open_for,
    open_store,
    player_on,
)

QUESTIONS = ("red apple", "green", "Dog", "a pear of the Animal", "blue c")


def random_answers(db: WorldDB, player: Player, seed: int, questions: int) -> list[Any]:
    """Ask the same random questions of whichever store is given."""
    rng = random.Random(seed)
    # Few worlds and few moments: those that are held are asked again.
    worlds = list(player.world.nodes)[:: max(1, len(player.world.nodes) // 5)]
    moments = [AsOf(), AsOf(), AsOf(valid=at(BASE + 3 * HOUR))]
    if len(player.history) > 5:
        moments.append(AsOf(known=at(player.history[5].time)))
    answers: list[Any] = []
    for _ in range(questions):
        world, words, when = rng.choice(worlds), rng.choice(QUESTIONS), rng.choice(moments)
        if when.known is not None:
            world = list(player.history[5].nodes)[-1]
        weights = {lane: 1.0 for lane in LANES if rng.random() < 0.7} or {"text": 1.0}
        settings = RecallSettings(weights=weights)
        if rng.random() < 0.5:
            settings = RecallSettings(weights=weights, weighing=None, depth=rng.choice((3, 100)))
        scope = rng.choice((None, world, [world, *rng.sample(worlds, 1)]))
        ended = rng.random() < 0.3
        answers.append(
            db.recall(
                words, scope=scope, as_of=when, include_superseded=ended, settings=settings, k=30
            )
        )
        asked = db.query().in_world(world).as_of(valid=when.valid, known=when.known)
        asked = asked.include_superseded(ended)
        vector = [rng.uniform(-1, 1) for _ in range(64)]
        answers.append(asked.text(words).execute())
        answers.append(asked.vector(vector).limit(rng.choice((2, 50))).execute())
    return answers


def unlike(answers: list[Any], expected: list[Any]) -> list[int]:
    """Return which answers are not as expected; whole ones are too long to be shown."""
    pairs = zip(answers, expected, strict=True)
    return [number for number, (one, other) in enumerate(pairs) if one != other]


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_whatever_is_committed_an_open_store_answers_like_one_opened_afresh(
    tmp_path: Path, seed: int
) -> None:
    path = tmp_path / "store.db"
    rng = random.Random(seed)
    player = player_on(path)
    player.play(first_turn(rng, BASE))
    other = open_for(player, path)
    clock, answered = BASE, 0
    for turn in range(60):
        clock += rng.choice((0, 1, HOUR // 2, HOUR))
        player.play(random_turn(rng, clock))
        player.clock = clock + rng.choice((0, HOUR))
        if turn % 3:
            continue
        with open_for(player, path) as fresh:
            expected = random_answers(fresh, player, turn, 8)
        assert not unlike(random_answers(player.db, player, turn, 8), expected)
        assert not unlike(random_answers(other, player, turn, 8), expected)
        answered += sum(map(len, expected))
    assert answered > 400
    other.close()
    player.db.close()


# -- one change, one case each ---------------------------------------------------------------------

Change = Callable[[WorldDB, dict[str, Id]], None]


def add_child(db: WorldDB, ids: dict[str, Id]) -> None:
    fact(db, "an apple and Ada", parent=ids["topic"])


def add_grandchild(db: WorldDB, ids: dict[str, Id]) -> None:
    with db.transaction(bulk=True) as tx:
        shelf = tx.create_node(type="Topic", name="shelf", parent=ids["topic"]).id
        tx.create_node(type="Fact", content="an apple on the shelf", parent=shelf)


def move_in(db: WorldDB, ids: dict[str, Id]) -> None:
    edge(db, "contains", ids["topic"], ids["free"])


def move_in_and_out(db: WorldDB, ids: dict[str, Id]) -> None:
    delete(db, edge(db, "contains", ids["topic"], ids["loose"]))


def join(db: WorldDB, ids: dict[str, Id]) -> None:
    edge(db, "contains", ids["scope"], ids["other"])


def leave(db: WorldDB, ids: dict[str, Id]) -> None:
    for membership in db.edges(ids["scope"], types=["contains"]):
        delete(db, membership.id)


def retire(db: WorldDB, ids: dict[str, Id]) -> None:
    with db.transaction() as tx:
        tx.retire(ids["child"])


def supersede(db: WorldDB, ids: dict[str, Id]) -> None:
    with db.transaction() as tx:
        new = tx.create_node(type="Fact", content="a better apple", parent=ids["scope"]).id
        tx.write_edge("supersedes", new, ids["child"])


def name_again(db: WorldDB, ids: dict[str, Id]) -> None:
    with db.transaction() as tx:
        tx.add_aliases(ids["topic"], ["Ada"])


def refer(db: WorldDB, ids: dict[str, Id]) -> None:
    edge(db, "refers_to", ids["member"], ids["topic"])


def merge(db: WorldDB, ids: dict[str, Id]) -> None:
    edge(db, "refers_to", ids["child"], ids["member"])
    db.accept_merge(edge(db, "same_as", ids["topic"], ids["member"]))


CHANGES: list[Change] = [
    add_child,
    add_grandchild,
    move_in,
    move_in_and_out,
    join,
    leave,
    retire,
    supersede,
    name_again,
    refer,
    merge,
]


def furnish(db: WorldDB) -> dict[str, Id]:
    """Make a scope with a topic, a child of the topic and a member, and some nodes outside."""
    with db.transaction() as tx:

        def node(content: str, **fields: Any) -> Id:
            return tx.create_node(**{"type": "Fact", "content": content, **fields}).id

        ids = {
            "scope": node("", type="Scope", name="scope"),
            "free": node("an apple that is free"),
            "loose": node("an apple that is loose"),
            "home": node("", type="Topic", name="home"),
        }
        ids["topic"] = node("", type="Topic", name="Fruit", parent=ids["scope"])
        ids["other"] = node("an apple elsewhere", name="Other", parent=ids["home"])
        ids["member"] = node("an apple of a member", name="Member", parent=ids["home"])
        ids["child"] = node("an apple of the topic", parent=ids["topic"])
        tx.write_edge("contains", ids["scope"], ids["member"])
    return ids


def every_answer(db: WorldDB, ids: dict[str, Id], *moments: AsOf) -> list[Any]:
    """Ask in every way that is held, of the scope, of the whole store, and of two worlds."""
    vector = db._search.vectors().ask("an apple").tolist()
    answers: list[Any] = []
    for when in (AsOf(), *moments):
        for scope in (None, ids["scope"], [ids["topic"], ids["home"]]):
            answers.append(db.recall("Ada, Fruit: apple?", scope=scope, as_of=when))
            settings = lanes(*LANES)
            answers.append(db.recall("Member", scope=scope, as_of=when, settings=settings))
        asked = db.query().in_world(ids["scope"]).as_of(valid=when.valid, known=when.known)
        answers += [asked.text("apple").execute(), asked.vector(vector).execute()]
    return answers


def play(path: Path, changes: list[Change]) -> None:
    """Make changes one by one; two open stores must answer like one that is opened afresh."""
    with open_store(path) as db, open_store(path) as other:
        ids = furnish(db)
        moments = AsOf(known=db.log()[-1].time), AsOf(valid=db.log()[-1].time)
        for change in changes:
            before = every_answer(db, ids, *moments)
            change(db, ids)
            with open_store(path) as fresh:
                expected = every_answer(fresh, ids, *moments)
            assert not unlike(every_answer(db, ids, *moments), expected)
            assert unlike(before, expected) or len(changes) > 1 or change is move_in_and_out
        assert not unlike(every_answer(other, ids, *moments), expected)


@pytest.mark.parametrize("change", CHANGES)
def test_after_a_change_an_open_store_answers_like_one_opened_afresh(
    tmp_path: Path, change: Change
) -> None:
    play(tmp_path / "store.db", [change])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_changes_in_any_order_an_open_store_answers_like_one_opened_afresh(
    tmp_path: Path, seed: int
) -> None:
    changes = CHANGES[:]
    random.Random(seed).shuffle(changes)
    play(tmp_path / "store.db", changes)


# -- time passes -----------------------------------------------------------------------------------


def test_a_membership_stops_counting_when_its_time_has_come() -> None:
    clock = Clock()
    db = open_store(clock=clock)
    scope = fact(db, "", type="Scope", name="scope")
    home = fact(db, "", type="Topic", name="home")
    member, child = fact(db, "apple", parent=home), fact(db, "apple pie", parent=scope)
    edge(db, "contains", scope, member, valid_to=at(BASE + HOUR))

    def inside(**when: Any) -> set[Id]:
        asked = db.query().in_world(scope).as_of(**when)
        answers = {frozenset(found(db.recall("apple", scope=scope, as_of=AsOf(**when))))}
        answers.add(frozenset(found(asked.text("apple").execute())))
        (answer,) = answers
        return set(answer)

    known = db.log()[-1].time
    assert inside() == inside(known=known) == {member, child}
    clock.now = BASE + HOUR - 1
    assert inside() == inside(known=known) == {member, child}
    clock.now = BASE + HOUR
    assert inside() == inside(known=known) == {child}
    assert inside(valid=at(BASE + HOUR - 1)) == {member, child}


def test_what_is_committed_while_a_membership_expires_is_not_missed() -> None:
    clock = Clock()
    db = open_store(clock=clock)
    scope = fact(db, "", type="Scope", name="scope")
    home = fact(db, "", type="Topic", name="home")
    member, child = fact(db, "apple", parent=home), fact(db, "apple pie", parent=scope)
    edge(db, "contains", scope, member, valid_to=at(BASE + HOUR))
    assert set(found(db.recall("apple", scope=scope))) == {member, child}
    clock.now = BASE + 2 * HOUR
    with db.transaction() as tx:
        tx.retire(child)
        new = tx.create_node(type="Fact", content="apple tart", name="Tart", parent=scope).id
        tx.add_aliases(new, ["Cake"])
        tx.write_edge("refers_to", new, new)
    assert found(db.recall("apple", scope=scope)) == [new]
    with db.transaction() as tx:
        crumb = tx.create_node(type="Fact", content="crumbs", parent=new).id
    assert found(db.recall("Cake", scope=scope, settings=lanes("graph"))) == [crumb]


# -- others write meanwhile ------------------------------------------------------------------------


class Interrupted(HashEmbedder):
    """An embedder during whose work something else happens, once."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        act, self.meanwhile = self.meanwhile, None
        if act is not None:
            act()
        return super().embed_queries(texts)


def test_what_is_written_while_a_question_is_embedded_has_its_vector_the_next_time(
    tmp_path: Path,
) -> None:
    path, embedder = tmp_path / "store.db", Interrupted()
    with open_store(path, embedder=embedder) as db, open_store(path) as other:
        topic = fact(db, "", type="Topic", name="Fruit")
        first = fact(db, "an apple", parent=topic)
        by_meaning = lanes("vector")
        assert found(db.recall("an apple", settings=by_meaning)) == [first]
        embedder.meanwhile = lambda: fact(other, "an apple, too", parent=topic)
        db.recall("an apple", settings=by_meaning)
        with open_store(path) as fresh:
            expected = fresh.recall("an apple", settings=by_meaning)
            everything = fresh.query().vector([1.0] * 64).execute()
        assert len(expected) == 2
        assert db.recall("an apple", settings=by_meaning) == expected
        assert db.query().vector([1.0] * 64).execute() == everything


def test_readers_see_each_commit_whole_while_somebody_writes(tmp_path: Path) -> None:
    """Each commit ends the last pair of facts and begins the next one, in a scope and outside."""
    path = tmp_path / "store.db"
    db = open_store(path)
    scope = fact(db, "", type="Scope", name="scope")
    home = fact(db, "", type="Topic", name="home")
    pairs, stop = [facts(db, ["apple", "apple"], parent=scope)], threading.Event()
    wrong: list[object] = []

    def ask(question: Callable[[], Recall | Subgraph], *also: set[Id]) -> None:
        try:
            while not stop.is_set():
                answer = set(found(question()))
                if answer not in (*map(set, pairs), *also):
                    wrong.append(answer)
        except BaseException as error:
            wrong.append(error)

    vector = db._search.vectors().ask("apple").tolist()
    inside = db.query().in_world(scope)
    asked: list[tuple[Any, ...]] = [
        (lambda: db.recall("apple", scope=scope),),
        (lambda: db.recall("apple", settings=lanes("text")),),
        (lambda: inside.text("apple").execute(),),
        # What was committed after the last embedding has no vector yet.
        (lambda: inside.vector(vector).execute(), set()),
    ]
    threads = [threading.Thread(target=ask, args=args) for args in asked]
    for thread in threads:
        thread.start()
    try:
        for _ in range(60):
            new = [scope, scope]
            pairs.append(new)
            with db.transaction() as tx:
                for old in pairs[-2]:
                    tx.retire(old)
                new[0] = tx.create_node(type="Fact", content="apple", parent=scope).id
                new[1] = tx.create_node(type="Fact", content="apple", parent=home).id
                tx.write_edge("contains", scope, new[1])
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    with open_store(path) as fresh:
        ids = {"scope": scope, "topic": scope, "home": home}
        assert not unlike(every_answer(db, ids), every_answer(fresh, ids))
    db.close()


# -- what is kept and what is not ------------------------------------------------------------------


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
def test_what_was_read_in_a_transaction_is_gone_when_it_is_rolled_back(most: int) -> None:
    db = hold_at_most(open_store(), most)
    scope = fact(db, "", type="Scope", name="scope")
    kept = fact(db, "an apple", parent=scope)

    def answers() -> list[Any]:
        inside = db.query().in_world(scope)
        return [
            db.recall("apple zebra", scope=scope),
            db.recall("apple zebra"),
            inside.text("zebra").execute(),
            inside.vector([1.0] * 64).execute(),
        ]

    def change_and_think_again() -> None:
        with db.transaction() as tx:
            new = tx.create_node(type="Fact", content="a zebra", parent=scope).id
            tx.retire(kept)
            asked = db.recall("zebra apple", scope=scope, settings=lanes("text"))
            assert found(asked) == [new]
            answers()
            raise KeyboardInterrupt

    before = answers()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            change_and_think_again()
        assert not unlike(answers(), before)
    other = fact(db, "another zebra", parent=scope)
    assert set(found(db.recall("zebra apple", scope=scope))) == {kept, other}


def kept_worlds(db: WorldDB) -> dict[Any, Interior]:
    assert db._search._interiors is not None
    return db._search._interiors._held


@pytest.mark.parametrize("limit", ["NODES_MAX", "WORLDS_MAX"])
def test_worlds_that_had_to_go_are_read_again(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    db = open_store()
    scopes = [fact(db, "", type="Scope", name=f"scope {number}") for number in range(6)]
    monkeypatch.setattr(interiors, limit, 3)
    rng, inside = random.Random(1), {scope: set[Id]() for scope in scopes}
    for number in range(80):
        scope = rng.choice(scopes)
        if rng.random() < 0.3:
            inside[scope].add(fact(db, f"apple {number}", parent=scope))
        assert set(found(db.recall("apple", scope=scope, k=100))) == inside[scope]
        when = AsOf(valid=at(db._clock()))
        assert set(found(db.recall("apple", scope=scope, k=100, as_of=when))) <= inside[scope]
        held = list(kept_worlds(db).values())
        assert len(held) <= (3 if limit == "WORLDS_MAX" else len(held))
        assert len(held) == 1 or limit == "WORLDS_MAX" or sum(map(len, held)) <= 3


def test_a_world_that_was_read_half_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    db = open_store()
    scope = fact(db, "", type="Scope", name="scope")
    known = facts(db, ["apple", "apple"], parent=scope)
    assert set(found(db.recall("apple", scope=scope))) == set(known)
    new = facts(db, ["apple"] * 5, parent=scope)
    append, left = Interior._append, [3]

    def fails_once(self: Interior, body: BodyRow) -> None:
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
        append(self, body)

    monkeypatch.setattr(Interior, "_append", fails_once)
    with pytest.raises(KeyboardInterrupt):
        db.recall("apple", scope=scope)
    assert sorted(found(db.recall("apple", scope=scope))) == sorted([*known, *new])


def test_an_empty_world_is_held_too() -> None:
    db = open_store()
    scope = fact(db, "", type="Scope", name="scope")
    assert len(db.recall("apple", scope=scope)) == 0
    (first,) = kept_worlds(db).values()
    assert len(db.recall("apple", scope=scope)) == 0
    assert list(kept_worlds(db).values()) == [first]
