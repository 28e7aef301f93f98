"""Held world: a world held in memory follows the store, and answers as if it were read afresh."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from property.naive import at
from property.player import Player, first_turn, random_turn
from recall.search_stage import (
    BASE,
    HOUR,
    LANES,
    delete,
    edge,
    fact,
    lanes,
    open_for,
    open_store,
    player_on,
)
from thinning import some
from worlddb import AsOf, Id, RecallSettings, WorldDB

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


@pytest.mark.parametrize("seed", some([1, 2, 3], 3))
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


def test_what_has_left_leaves_the_form_of_its_text_to_nobody() -> None:
    with open_store(embedder="none") as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Topic", name="shelf").id
        texts = ("Is the tea hot?", "The tea is nice", "Is the tea cold?", "The tea is green")
        ids = [fact(db, text) for text in texts]
        edges = [edge(db, "contains", world, ident) for ident in ids]

        def behind() -> set[Id]:
            hits = db.recall("tea", scope=world)
            best = max(hit.weighed["telling"] for hit in hits)
            return {hit.node.id for hit in hits if hit.weighed["telling"] < best}

        assert behind() == {ids[0], ids[2]}
        delete(db, edges[0])
        assert behind() == {ids[2]}


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
    vector = db.engine.search.vectors().ask("an apple").tolist()
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


@pytest.mark.parametrize("seed", some([1, 2, 3], 3))
def test_after_changes_in_any_order_an_open_store_answers_like_one_opened_afresh(
    tmp_path: Path, seed: int
) -> None:
    changes = CHANGES[:]
    random.Random(seed).shuffle(changes)
    play(tmp_path / "store.db", changes)
