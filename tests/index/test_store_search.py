"""Store search: worlds too large to be held are searched in the store, with equal answers.

The same stores are asked twice: held in memory, and wide. What must agree is said in each test.
Scores of words need not: held, a world's own statistics say what is rare; wide, the store's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from property.naive import ROOT, at
from property.player import NODE_TYPES, Player
from recall.search_stage import (
    BASE,
    HOUR,
    edge,
    fact,
    facts,
    found,
    hold_at_most,
    lanes,
    nested_worlds,
    open_store,
)
from worlddb import AsOf, Id, Recall, RecallSettings, Weights, WorldDB
from worlddb.embed.embedder import HashEmbedder
from worlddb.index import store_search

HELD, WIDE = 1 << 20, 0
ALL = 100_000
WORDS = ("red", "green", "blue", "apple", "pear", "Dog", "Animal", "a", "b", "c")
SEEDS = (1, 2, 3)

same_worlds = cache(nested_worlds)
"""They are only read, so one of each will do."""


def random_view(rng: random.Random, player: Player) -> dict[str, Any]:
    """Return where and when to ask, as recall takes it."""
    world = rng.choice(player.history[1:])
    valid = at(BASE + rng.randrange(12) * HOUR) if rng.random() < 0.4 else None
    known = at(world.time) if rng.random() < 0.4 else None
    nodes = (world if known else player.world).nodes
    worlds = sorted({node.parent for node in nodes.values() if node.parent}) * 3 + list(nodes)
    return {
        "scope": rng.choice((None, rng.choice(worlds), rng.sample(worlds, 2))),
        "as_of": AsOf(valid=valid, known=known),
        "include_superseded": rng.random() < 0.3,
        "types": rng.choice((None, None, rng.sample(NODE_TYPES, 2))),
    }


def asked_twice(player: Player, question: str, **options: Any) -> tuple[Recall, Recall]:
    """Return the answers of a world that is held, and of the same searched wide."""
    held = hold_at_most(player.db, HELD).recall(question, **options)
    return held, hold_at_most(player.db, WIDE).recall(question, **options)


# -- both ways agree -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_words_find_the_same_nodes_held_and_wide(seed: int) -> None:
    """Compared as sets: with so few nodes every word is rare, and all that have one are found."""
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    for _ in range(60):
        view, words = random_view(rng, player), " ".join(rng.sample(WORDS, 3))
        held, spread = asked_twice(player, words, k=ALL, settings=lanes("text", depth=ALL), **view)
        assert set(found(held)) == set(found(spread))
        count += len(held)
    assert count > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_names_find_the_same_nodes_held_and_wide(seed: int) -> None:
    """Compared as sets: how common the words of a name are is counted in another set of nodes."""
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    for _ in range(120):
        view, words = random_view(rng, player), " ".join(rng.sample(WORDS, 4))
        held, spread = asked_twice(player, words, k=ALL, settings=lanes("graph", depth=ALL), **view)
        assert set(found(held)) == set(found(spread))
        count += len(held)
    assert count > 50


@pytest.mark.parametrize("seed", SEEDS)
def test_vectors_find_the_same_nodes_in_the_same_order_held_and_wide(seed: int) -> None:
    """Compared by cosine: below the graph's size both are exact, up to half precision."""
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    for _ in range(60):
        view = random_view(rng, player)
        world = view["scope"] if isinstance(view["scope"], Id) else ROOT
        vector = np.array([rng.uniform(-1, 1) for _ in range(64)], dtype=np.float32)
        asked = player.db.query().in_world(world).include_superseded(view["include_superseded"])
        asked = asked.as_of(valid=view["as_of"].valid, known=view["as_of"].known)
        most, is_past = rng.choice((5, ALL)), view["as_of"].known is not None
        asked = asked.vector(vector.tolist()).limit(ALL if is_past else most)
        hold_at_most(player.db, HELD)
        held = asked.execute()
        hold_at_most(player.db, WIDE)
        spread = asked.execute()
        if is_past:
            # Wide, what was known then is ranked by the vectors that worlds have now.
            assert set(found(held)) == set(found(spread))
            continue
        expected = cosines(player.db, found(held), vector)
        assert cosines(player.db, found(spread), vector) == pytest.approx(expected, abs=1e-3)
        assert expected == sorted(expected, reverse=True)
        count += len(held)
    assert count > 200


def cosines(db: WorldDB, idents: list[Id], vector: Any) -> list[float]:
    with db.engine.store.read() as reader:
        rows = [reader.node_row(ident) or 0 for ident in idents]
        matrix = db.engine.search.vectors().load(reader, rows)
    return [float(row @ vector / np.linalg.norm(vector)) for row in matrix]


@pytest.mark.parametrize("weighed", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_all_lanes_together_find_the_same_nodes_held_and_wide(seed: int, weighed: bool) -> None:
    """Compared as sets, and meaning with its scores: words and names rank by other statistics.

    So what weighed texts pass on differs, too: of names, what they find by themselves is compared.
    """
    settings = RecallSettings(depth=ALL) if weighed else lanes("text", "vector", "graph", depth=ALL)
    player, rng, count = same_worlds(seed), random.Random(seed), 0
    for _ in range(50):
        view, words = random_view(rng, player), " ".join(rng.sample(WORDS, 3))
        # Not as of what was known then: wide, the vectors of worlds are those of now.
        view["as_of"] = AsOf(valid=view["as_of"].valid)
        held, spread = asked_twice(player, words, k=ALL, settings=settings, **view)
        assert set(found(held)) == set(found(spread))
        assert held.conflicts == spread.conflicts or set(held.conflicts) == set(spread.conflicts)
        if weighed:
            alone = RecallSettings(depth=ALL, weighing=Weights(spread=0.0))
            held, spread = asked_twice(player, words, k=ALL, settings=alone, **view)
            assert set(found(held)) == set(found(spread))
        others = {hit.node.id: hit for hit in spread}
        for hit in held:
            other = others[hit.node.id].lanes
            assert hit.lanes.get("vector") == other.get("vector")
            assert ("graph" in hit.lanes) == ("graph" in other)
        count += len(held)
    assert count > 100


# -- what is found, however large the rest is ------------------------------------------------------


def test_a_word_nobody_had_said_is_found_as_soon_as_it_is_said() -> None:
    db = hold_at_most(open_store(), WIDE)
    facts(db, (f"apple {number}" for number in range(100)))
    assert found(db.query().text("zebra").execute()) == []
    assert found(db.recall("zebra", settings=lanes("text"))) == []
    zebra = fact(db, "a zebra")
    assert found(db.query().text("zebra").execute()) == [zebra]
    assert found(db.recall("zebra", settings=lanes("text"))) == [zebra]


def test_a_name_nobody_had_is_known_as_soon_as_it_is_given() -> None:
    db = hold_at_most(open_store(), WIDE)
    said = fact(db, "an apple")
    facts(db, (f"pear {number}" for number in range(100)))
    assert found(db.recall("Ada?", settings=lanes("graph"))) == []
    ada = fact(db, "", type="Entity", name="Ada")
    edge(db, "refers_to", said, ada)
    assert found(db.recall("Ada?", settings=lanes("graph"))) == [said]


def test_names_alone_do_not_crowd_out_the_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    db = open_store()
    with db.transaction() as tx:
        for number in range(300):
            tx.create_node(type="Entity", name=f"apple {number}")
    answer = fact(db, "many words are said here, and an apple is one of them, as is a pear")
    for most in (HELD, WIDE):
        hold_at_most(db, most)
        for lane in ("text", "vector"):
            assert found(db.recall("apple", settings=lanes(lane, depth=5), k=5)) == [answer]


@pytest.mark.parametrize("rare", ["outside", "ended", "of another type"])
def test_common_words_are_looked_for_where_nothing_has_the_rare_one(
    monkeypatch: pytest.MonkeyPatch, rare: str
) -> None:
    monkeypatch.setattr(store_search, "CANDIDATES_MAX", 10)
    db = hold_at_most(open_store(), WIDE)
    world = fact(db, "", type="Scope", name="world")
    apples = facts(db, ("an apple" for _ in range(20)), parent=world)
    if rare == "outside":
        fact(db, "a zebra")
    elif rare == "ended":
        zebra = fact(db, "a zebra", parent=world)
        with db.transaction() as tx:
            tx.retire(zebra)
    else:
        fact(db, "a zebra", type="Animal", parent=world)
    settings = lanes("text")
    answer = db.recall("zebra apple", scope=world, types=["Fact"], settings=settings, k=ALL)
    assert set(found(answer)) == set(apples)


def test_a_question_of_common_words_is_answered_from_the_newest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store_search, "CANDIDATES_MAX", 10)
    db = hold_at_most(open_store(), WIDE)
    world = fact(db, "", type="Scope", name="world")
    inside = facts(db, ("an apple and a pear" for _ in range(40)), parent=world)
    outside = facts(db, ("an apple and a pear" for _ in range(40)))
    newest = found(db.query().text("apple pear").limit(5).execute())
    assert len(newest) == 5
    assert set(newest) < set(outside)
    within = db.query().in_world(world).text("apple pear")
    assert set(found(within.execute())) == set(inside)
    assert len(within.limit(4).execute()) == 4


def test_common_words_reorder_what_rare_words_find(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_search, "CANDIDATES_MAX", 10)
    db = hold_at_most(open_store(), WIDE)
    facts(db, ("an apple" for _ in range(20)))
    plain, both = facts(db, ["a quince to eat", "a quince and apple"])
    assert found(db.query().text("apple quince").limit(2).execute()) == [both, plain]


@pytest.mark.parametrize("most", [HELD, WIDE])
def test_what_only_asks_is_behind_however_it_was_found(most: int) -> None:
    db = hold_at_most(open_store(embedder="none"), most)
    _, told = facts(db, ("Which old aunt is that?", "The old aunt is called Ada."))
    answer = db.recall("Who is my old aunt?")
    assert answer[0].node.id == told
    assert answer[0].weighed["telling"] > answer[1].weighed["telling"]


@pytest.mark.parametrize("most", [HELD, WIDE])
def test_equal_texts_are_equally_near_and_ordered_by_id(most: int) -> None:
    db = hold_at_most(open_store(), most)
    same = facts(db, ("the same words" for _ in range(23)))
    rng = random.Random(1)
    for _ in range(30):
        vector = [rng.uniform(-1, 1) for _ in range(64)]
        assert found(db.query().vector(vector).execute()) == sorted(same)
    answer = db.recall("same words", settings=lanes("vector", "text"), k=ALL)
    assert found(answer) == sorted(same)
    assert len({hit.score for hit in db.recall("same words", k=ALL)}) == 1


@pytest.mark.parametrize("most", [HELD, WIDE])
def test_what_ended_as_1970_began_has_ended(most: int) -> None:
    db = hold_at_most(open_store(), most)
    fact(db, "apple", created_at="1960-01-01T00:00:00Z", valid_to="1970-01-01T00:00:00Z")
    then, later = "1965-01-01T00:00:00Z", "1980-01-01T00:00:00Z"
    assert len(db.recall("apple", as_of=AsOf(valid=then))) == 1
    assert len(db.recall("apple", as_of=AsOf(valid=later))) == 0
    assert len(db.recall("apple")) == 0


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [HELD, WIDE])
def test_a_name_outside_does_not_hide_a_shorter_one_inside(most: int) -> None:
    db = hold_at_most(open_store(), most)
    world = fact(db, "", type="Scope", name="mine")
    york = fact(db, "", type="Entity", name="New York", parent=world)
    fact(db, "", type="Entity", name="New York Times")
    said = fact(db, "a large city", parent=world)
    edge(db, "refers_to", said, york)
    asked = "Is New York Times good?"
    assert found(db.recall(asked, scope=world, settings=lanes("graph"))) == [said]
    assert found(db.recall(asked, settings=lanes("graph"))) == []


@pytest.mark.parametrize("most", [HELD, WIDE])
def test_an_alias_counts_from_when_it_was_known(most: int) -> None:
    db = hold_at_most(open_store(), most)
    ada = fact(db, "", type="Entity", name="Ada")
    said = fact(db, "an apple")
    edge(db, "refers_to", said, ada)
    before = db.log()[-1].time
    with db.transaction() as tx:
        tx.add_aliases(ada, ["The Countess"])
    asked = "what did the countess say"
    assert found(db.recall(asked, settings=lanes("graph"))) == [said]
    assert found(db.recall(asked, settings=lanes("graph"), as_of=AsOf(known=before))) == []


@pytest.mark.parametrize("most", [HELD, WIDE])
def test_what_a_merged_foreign_node_is_called_and_knows_stays_where_it_lives(most: int) -> None:
    db = hold_at_most(open_store(), most)
    world = fact(db, "", type="Scope", name="mine")
    bob = fact(db, "", type="Entity", name="Bob", parent=world)
    robert = fact(db, "", type="Entity", name="Robert")
    of_bob, of_robert = facts(db, ["likes fish", "likes meat"], parent=world)
    edge(db, "refers_to", of_bob, bob)
    edge(db, "refers_to", of_robert, robert)
    db.accept_merge(edge(db, "same_as", bob, robert))
    settings = lanes("graph")
    assert found(db.recall("Bob", scope=world, settings=settings)) == [of_bob]
    assert found(db.recall("Robert", scope=world, settings=settings)) == []
    assert set(found(db.recall("Robert", settings=settings))) == {of_bob, of_robert}


# -- far too much ----------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [HELD, WIDE])
def test_however_many_are_asked_for_there_are_no_more_than_there_are(most: int) -> None:
    db = hold_at_most(open_store(), most)
    apple = fact(db, "apple")
    huge = 10**30
    assert found(db.recall("apple", k=huge, max_tokens=huge)) == [apple]
    assert found(db.recall("apple", k=huge, settings=RecallSettings(depth=huge))) == [apple]
    assert found(db.query().text("apple").limit(huge).execute()) == [apple]
    assert found(db.query().vector([1.0] * 64).limit(huge).execute()) == [apple]


def test_who_may_be_seen_is_asked_once_of_each_however_deep_a_search_goes() -> None:
    rows, asked = [(row, 1.0 / (1 + row)) for row in range(1_000)], list[int]()

    def keep(some: Sequence[int]) -> set[int]:
        asked.extend(some)
        return {row for row in some if row % 100 == 99}

    found = store_search._until_enough(lambda deep: rows[:deep], keep, 3, 10)
    assert [row for row, _ in found] == [99, 199, 299, 399, 499, 599]
    assert asked == list(range(640))


@pytest.mark.parametrize("most", [HELD, WIDE])
@pytest.mark.parametrize("by", ["vector", "text", "phrase"])
def test_which_of_equal_nodes_comes_first_does_not_depend_on_the_limit(most: int, by: str) -> None:
    db = hold_at_most(open_store(), most)
    ids = facts(db, ["apple pie"] * 60)
    facts(db, [f"pear {number}" for number in range(60)])
    asked = {
        "vector": db.query().vector(HashEmbedder().embed_queries(["apple pie"])[0].tolist()),
        "text": db.query().text("apple"),
        "phrase": db.query().text("apple pie", "phrase"),
    }[by]
    for few in (1, 2, 7, 50, 60):
        assert found(asked.limit(few).execute()) == sorted(ids)[:few]
