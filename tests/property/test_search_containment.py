"""Containment of search: what a lane finds inside a world is what it finds there, and all of it.

Random nested worlds with memberships, references and merges; random words, vectors and questions,
inside random worlds, at random instants of both clocks, held in memory and searched wide. Each
answer must equal the naive model's, so nothing outside is ever returned, and nothing inside lost.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import worlddb
from recall.search_stage import LANES, found, hold_at_most, lanes, nested_worlds, player_on
from thinning import examples, some
from worlddb import AsOf, Hit, Id, Recall, RecallSettings, Weights
from worlddb.index.ranking_numbers import SCALARS
from worlddb.language.text_tokens import STOP

from .naive import ROOT, World, at
from .player import BASE, HOUR, HOURS, NODE_TYPES, Player, Turn, turns
from .view import View

ALL = 100_000
DIM = 64
SEEDS = some((1, 2), 2)
WORDS = ("red", "green", "blue", "apple", "pear", "dog", "animal", "a", "b", "c")
MIXED = 5
WAYS = pytest.mark.parametrize("most", [1 << 20, MIXED, 0], ids=["held", "mixed", "wide"])


same_worlds = cache(nested_worlds)
"""They are only read, so one of each will do."""


@dataclass
class Place:
    """Where and when a question is asked: some worlds, and the model as it was then."""

    worlds: list[Id]
    view: View
    as_of: AsOf

    @property
    def inside(self) -> set[Id]:
        """Everything inside any of the worlds."""
        return set().union(*map(self.view.interior, self.worlds))

    @property
    def seen(self) -> set[Id]:
        """What of it may be shown."""
        return self.view.shown(self.inside)

    @property
    def told(self) -> set[Id]:
        """What of it recall tells: no summary while a detail of it has ended."""
        if self.view.include_superseded:
            return self.seen
        nodes, when = self.view.world.nodes, self.view.valid or self.view.now
        ends = {ident: node.valid_to for ident, node in nodes.items()}
        over = {ident for ident, end in ends.items() if end is not None and end <= when}
        derived = self.view.world.live(("derived_from",))
        stale = {edge.source for edge in derived if edge.target in over}
        return {one for one in self.seen if nodes[one].type != "Summary" or one not in stale}

    def options(self) -> dict[str, Any]:
        """Return the place as recall takes it."""
        return {
            "scope": self.worlds,
            "as_of": self.as_of,
            "include_superseded": self.view.include_superseded,
        }


def random_place(rng: random.Random, player: Player, worlds: int = 1) -> Place:
    """Return a random place; worlds that have something in them are the most frequent."""
    world = rng.choice(player.history[1 + len(player.history) // 2 :] or [player.world])
    parents = sorted({node.parent for node in world.nodes.values() if node.parent})
    valid = BASE + rng.randrange(-1, HOURS + 2) * HOUR + rng.choice((-1, 0, 1))
    view = View(
        world=world,
        now=player.now,
        valid=rng.choice((None, None, valid)),
        include_superseded=rng.random() < 0.5,
    )
    as_of = AsOf(
        valid=None if view.valid is None else at(view.valid),
        known=None if world is player.world else at(world.time),
    )
    return Place(rng.choices([ROOT, *parents * 4, *world.nodes], k=worlds), view, as_of)


def queries(player: Player, place: Place) -> worlddb.QueryBuilder:
    asked = player.db.query().in_world(place.worlds[0])
    asked = asked.as_of(valid=place.as_of.valid, known=place.as_of.known)
    return asked.include_superseded(place.view.include_superseded).limit(ALL)


def random_settings(rng: random.Random) -> RecallSettings:
    weights = {lane: rng.choice((0.5, 1.0)) for lane in LANES if rng.random() < 0.7}
    weighing = rng.choice((None, Weights(), Weights(following=0.0, world=0.0)))
    depth = rng.choice((1, 3, 100, ALL))
    return RecallSettings(
        weights=weights or {"graph": 1.0}, weighing=weighing, depth=depth, c=rng.choice((0, 60))
    )


# -- the model of each lane ------------------------------------------------------------------------


def with_words(world: World, words: Iterable[str]) -> set[Id]:
    """Return the nodes whose name or content has one of the words."""
    wanted = set(words)
    nodes = world.nodes.values()
    said = {node.id: f"{node.name} {node.content}".lower().split() for node in nodes}
    return {ident for ident, tokens in said.items() if wanted & set(tokens)}


def with_names(place: Place, words: Iterable[str]) -> set[Id]:
    """Return the named, what refers to it, or lives in it; names and what is named are inside."""
    world, inside, reached = place.view.world, place.inside, set[Id]()
    references = [edge for edge in world.live(("refers_to",)) if place.view.holds(edge)]
    for word in set(words) - STOP:
        named = {
            ident
            for ident in inside
            if word
            in (name.lower() for name in (world.nodes[ident].name, *world.nodes[ident].aliases))
        }
        named = world.same_as(named, inside)
        led = {edge.source for edge in references if edge.target in named}
        led |= {node.id for node in world.nodes.values() if node.parent in named}
        reached |= led | named
    return reached & place.seen


def passed_on(place: Place, given: set[Id]) -> set[Id]:
    """Return what texts lead to: what they mention inside, and the texts about that."""
    world, inside, reached = place.view.world, place.inside, set[Id]()
    references = [edge for edge in world.live(("refers_to",)) if place.view.holds(edge)]
    for text in given:
        for mentioned in {edge.target for edge in references if edge.source == text} & inside:
            same = world.same_as({mentioned}, inside)
            led = {
                edge.source
                for edge in references
                if edge.target in same and edge.metadata.get("role") == "about"
            }
            led = (led | same) & place.seen
            reached |= set() if text in led else led
    return reached


def passed_by(recalled: Recall) -> set[Id]:
    """Return the nodes on the paths to all hits."""
    return {step.node for hit in recalled for step in hit.path}


def check_names(place: Place, words: Iterable[str], recalled: Recall) -> None:
    """Check what the names in a question lead to, directly and by way of what they lead to.

    Of many texts only the best lead on; all of them together lead to all that may be found.
    """
    answer, direct = set(found(recalled)), with_names(place, words)
    reached = direct
    is_exact = True
    for _ in range(SCALARS.spread_hops):
        is_exact = is_exact and len(reached) <= SCALARS.spread_texts
        reached = reached | passed_on(place, reached)
    assert passed_by(recalled) <= place.inside
    assert direct & place.told <= answer <= reached & place.told
    assert answer == reached & place.told or not is_exact


# -- exactly what is inside ------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("seed", SEEDS)
def test_words_find_inside_a_world_what_has_them_there(seed: int, most: int) -> None:
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    hold_at_most(player.db, most)
    for _ in range(60):
        place, words = random_place(rng, player), rng.sample(WORDS, 2)
        expected = with_words(place.view.world, words) & place.seen
        told = expected & place.told
        answer = queries(player, place).text(" ".join(words)).execute()
        assert answer.ids == expected
        recalled = player.db.recall(
            " ".join(words), k=ALL, settings=lanes("text", depth=ALL), **place.options()
        )
        assert set(found(recalled)) == told
        count += len(expected)
    assert count > 20


@WAYS
@pytest.mark.parametrize("seed", SEEDS)
def test_vectors_find_inside_a_world_all_that_can_be_seen_there(seed: int, most: int) -> None:
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    hold_at_most(player.db, most)
    for _ in range(60):
        place = random_place(rng, player)
        vector = [rng.uniform(-1, 1) for _ in range(DIM)]
        answer = queries(player, place).vector(vector).execute()
        assert answer.ids == place.seen
        few = queries(player, place).vector(vector).limit(3).execute()
        assert len(few) == min(3, len(answer))
        # Wide, equals are cut off in the order of writing before they are ordered by id.
        assert few.ids <= answer.ids
        assert few.nodes == answer.nodes[:3] or most < 1 << 20
        count += len(answer)
    assert count > 30


@WAYS
@pytest.mark.parametrize("seed", SEEDS)
def test_names_lead_inside_a_world_to_what_the_model_says(seed: int, most: int) -> None:
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    hold_at_most(player.db, most)
    for _ in range(80):
        place, words = random_place(rng, player, rng.choice((1, 2))), rng.sample(WORDS, 4)
        recalled = player.db.recall(
            " ".join(words), k=ALL, settings=lanes("graph", depth=ALL), **place.options()
        )
        check_names(place, words, recalled)
        count += len(recalled)
    assert count > 20


@WAYS
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_the_settings_nothing_outside_is_recalled(seed: int, most: int) -> None:
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    hold_at_most(player.db, most)
    for _ in range(80):
        place, words = random_place(rng, player, rng.choice((1, 1, 2, 3))), rng.sample(WORDS, 3)
        types = rng.choice((None, rng.sample(NODE_TYPES, 2)))
        recalled = player.db.recall(
            " ".join(words),
            k=rng.choice((2, ALL)),
            max_tokens=rng.choice((None, 20)),
            types=types,
            settings=random_settings(rng),
            **place.options(),
        )
        assert set(found(recalled)) <= place.seen
        assert passed_by(recalled) <= place.inside
        if types is not None:
            views = [replace(place.view, inside=world) for world in place.worlds]
            allowed = [view.filter_type(place.seen, types) for view in views]
            assert set(found(recalled)) <= set().union(*allowed)
        for conflict in recalled.conflicts:
            assert {conflict.left, conflict.right} <= place.inside
        count += len(recalled)
    assert count > 20


def score_of(hit: Hit) -> float | None:
    return hit.lanes["vector"].score if "vector" in hit.lanes else None


@WAYS
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_found_in_the_whole_store_is_found_inside_its_world(seed: int, most: int) -> None:
    """By words and by meaning; a name must itself be inside to be known there."""
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    hold_at_most(player.db, most)
    settings = lanes("text", "vector", depth=ALL)

    def ranked(place: Place, words: str) -> Recall:
        return player.db.recall(words, k=ALL, settings=settings, **place.options())

    for _ in range(40):
        place, words = random_place(rng, player), " ".join(rng.sample(WORDS, 3))
        if most == MIXED:
            # Wide, what was known then is ranked by the vectors that worlds have now.
            view, valid = replace(place.view, world=player.world), place.as_of.valid
            place = replace(place, view=view, as_of=AsOf(valid=valid))
        whole, part = ranked(replace(place, worlds=[ROOT]), words), ranked(place, words)
        assert set(found(part)) == set(found(whole)) & place.inside
        by_meaning = {hit.node.id: score_of(hit) for hit in whole}
        assert all(score_of(hit) == by_meaning[hit.node.id] for hit in part)
        count += len(part)
    assert count > 30


@pytest.mark.stores
@settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=examples(40, 15),
    suppress_health_check=list(HealthCheck),
)
@given(
    st.lists(turns, min_size=2, max_size=8),
    st.sampled_from((1 << 20, 3, 0)),
    st.randoms(use_true_random=False),
)
def test_no_history_lets_a_search_out_of_its_world(
    history: list[Turn], most: int, rng: random.Random
) -> None:
    player = player_on()
    hold_at_most(player.db, most)
    for turn in history:
        player.play(turn)
        if len(player.history) == 1:
            continue
        place, words = random_place(rng, player), rng.sample(WORDS, 3)
        asked = queries(player, place)
        expected = with_words(place.view.world, words) & place.seen
        assert asked.text(" ".join(words)).execute().ids == expected
        vector = random.Random(len(history)).choices((-1.0, 0.5, 2.0), k=DIM)
        assert asked.vector(vector).execute().ids == place.seen
        by_name = lanes("graph", depth=ALL)
        recalled = player.db.recall(" ".join(words), k=ALL, settings=by_name, **place.options())
        check_names(place, words, recalled)
        recalled = player.db.recall(
            " ".join(words), settings=random_settings(rng), **place.options()
        )
        assert set(found(recalled)) <= place.seen
        assert passed_by(recalled) <= place.inside
    player.db.close()
