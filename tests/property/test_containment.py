"""Containment: a question asked inside a world is answered from inside that world.

Random nested worlds with memberships, edges of every type and merges; random questions of every
kind, at random instants of both clocks. Each answer must equal the naive model's, and must stay
inside the world but for what a `refers_to` leads to.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import worlddb
from store_choice import fewer
from thinning import examples, some
from worlddb import Id, Node, QueryBuilder, Subgraph, Transaction
from worlddb.model.records import Direction

from .naive import ROOT, at
from .player import (
    BASE,
    EDGE_TYPES,
    HOUR,
    HOURS,
    NODE_TYPES,
    Player,
    Turn,
    first_turn,
    random_turn,
    turns,
)
from .view import View

DIRECTIONS: tuple[Direction, ...] = ("out", "in", "both")
WORDS = ("red", "green", "blue", "apple", "pear")


@dataclass
class Question:
    """A question to the store, what the model answers to it, and what it may let through."""

    asked: QueryBuilder
    view: View
    rows: set[Id]
    pierces: bool = False
    named: set[Id] = field(default_factory=set)
    comparable: bool = True

    def may_show(self) -> set[Id]:
        """Return what the answer may hold: the world's interior, and beyond it by reference."""
        inside = self.view.visible()
        if self.pierces:
            for edge in self.view.world.live(("refers_to",)):
                inside |= {edge.source, edge.target}
        return inside


def random_question(rng: random.Random, player: Player) -> Question:
    """Return a random question inside a random world at random instants."""
    world = rng.choice(player.history[1:])
    nodes = list(world.nodes)
    valid = BASE + rng.randrange(-1, HOURS + 2) * HOUR + rng.choice((-1, 0, 1))
    worlds = [*(node.parent for node in world.nodes.values() if node.parent), *nodes]
    view = View(
        world=world,
        now=player.now,
        valid=rng.choice((None, None, valid)),
        inside=rng.choice(worlds),
        include_superseded=rng.random() < 0.3,
    )
    asked = player.db.query().in_world(view.inside or ROOT)
    asked = asked.include_superseded(view.include_superseded)
    known = None if world is player.world else at(world.time + rng.choice((0, 0, 1)))
    if known is not None and at(world.time) < known:
        following = player.history[player.history.index(world) + 1]
        known = min(known, at(following.time - 1))
    asked = asked.as_of(valid=None if view.valid is None else at(view.valid), known=known)
    question = _start(rng, Question(asked, view, set()), nodes)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        rng.choice((_traverse, _traverse, _traverse, _type, _time, _connected))(
            rng, question, nodes
        )
    if rng.random() < 0.2:
        question.asked = question.asked.prefer_summaries()
        question.rows = view.with_summaries(question.rows)
    question.rows = view.shown(question.rows)
    return question


def _start(rng: random.Random, question: Question, nodes: list[Id]) -> Question:
    view = question.view
    kind = rng.choice(("seeds", "seeds", "text", "all"))
    if kind == "seeds":
        inside = sorted(view.visible()) or nodes
        seeds = rng.sample(nodes, min(2, len(nodes))) + rng.choices(inside, k=2)
        question.asked = question.asked.seeds(seeds)
        question.rows = view.seeds(seeds)
    elif kind == "text":
        words = rng.sample(WORDS, 2)
        question.asked = question.asked.text(" ".join(words))
        question.rows = view.text(words)
    else:
        question.rows = view.everything()
    return question


def _traverse(rng: random.Random, question: Question, nodes: list[Id]) -> None:
    types = tuple(rng.sample(EDGE_TYPES, rng.choice((1, 2, 5, 11))))
    direction, hops = rng.choice(DIRECTIONS), rng.choice((1, 1, 2, 3))
    question.asked = question.asked.traverse(types, direction, hops)
    question.rows = question.view.traverse(question.rows, types, direction, hops)
    question.pierces |= "refers_to" in types


def _type(rng: random.Random, question: Question, nodes: list[Id]) -> None:
    wanted = rng.sample(NODE_TYPES, 2)
    # A seed may have ended; what a filter then makes of it as a start is nobody's promise.
    question.rows = _only_shown(question)
    question.asked = question.asked.filter_type(*wanted)
    question.rows = question.view.filter_type(question.rows, wanted)


def _only_shown(question: Question) -> set[Id]:
    shown = question.view.shown(question.rows)
    question.comparable &= shown == question.rows
    return shown


def _time(rng: random.Random, question: Question, nodes: list[Id]) -> None:
    start, end = sorted(rng.sample(range(HOURS + 1), 2))
    low, high = BASE + start * HOUR, BASE + end * HOUR
    question.rows = _only_shown(question)
    question.asked = question.asked.filter_time(at(low), at(high))
    question.rows = question.view.filter_time(question.rows, low, high)


def _connected(rng: random.Random, question: Question, nodes: list[Id]) -> None:
    type_, direction, to = rng.choice(EDGE_TYPES), rng.choice(DIRECTIONS), rng.choice(nodes)
    question.asked = question.asked.where_connected(type_, direction, to)
    question.rows = question.view.where_connected(question.rows, type_, direction, to)
    if type_ == "refers_to":
        question.named.add(to)


def nested_worlds(seed: int, commits: int = 70) -> Player:
    """Return a store of random worlds inside worlds."""
    rng = random.Random(seed)
    player = Player()
    player.play(first_turn(rng, BASE))
    for i in range(commits):
        player.play(random_turn(rng, BASE + i * HOUR // 3))
    player.clock = rng.choice((BASE, player.world.time + HOUR))
    return player


SEEDS = some((1, 2, 3, 4), 2)
QUESTIONS = examples(400, 200)


@pytest.mark.stores
@pytest.mark.parametrize("seed", SEEDS)
def test_a_question_inside_a_world_finds_what_the_model_finds_and_nothing_outside(
    seed: int, store_kind: str
) -> None:
    player = nested_worlds(seed, commits=fewer(store_kind, 70, 20))
    rng = random.Random(seed)
    found = compared = 0
    for _ in range(QUESTIONS):
        question = random_question(rng, player)
        answer = question.asked.execute()
        assert answer.ids <= question.may_show()
        if question.comparable:
            assert answer.ids == question.rows
            compared += 1
        found += len(answer)
    assert found > QUESTIONS // 4
    assert compared > QUESTIONS * 3 // 4


@pytest.mark.stores
@settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=examples(60, 20),
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(turns, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_no_history_lets_a_question_out_of_its_world(
    history: list[Turn], rng: random.Random
) -> None:
    player = Player()
    for turn in history:
        player.play(turn)
    if len(player.history) > 1:
        for _ in range(4):
            question = random_question(rng, player)
            answer = question.asked.execute()
            assert answer.ids <= question.may_show()
            assert answer.ids == question.rows or not question.comparable
    player.db.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_edge_of_an_answer_touches_what_is_outside(seed: int) -> None:
    player = nested_worlds(seed)
    rng = random.Random(seed)
    edges = 0
    for _ in range(QUESTIONS):
        question = random_question(rng, player)
        answer = question.asked.execute()
        allowed = question.may_show() | question.named
        for edge in answer.edges:
            assert {edge.source, edge.target} <= allowed
        edges += len(answer.edges)
    assert edges > QUESTIONS // 20


@pytest.mark.parametrize("seed", SEEDS)
def test_no_conflict_of_an_answer_names_what_is_outside(seed: int) -> None:
    player = nested_worlds(seed)
    rng = random.Random(seed)
    for _ in range(QUESTIONS):
        question = random_question(rng, player)
        for conflict in question.asked.execute().conflicts:
            assert {conflict.left, conflict.right} <= question.may_show()


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_world_is_seen_whichever_way_its_members_are_asked_for(seed: int) -> None:
    """Going down from the world and going up from the candidates are two different walks."""
    player = nested_worlds(seed)
    for world in player.history[1::4]:
        known = at(world.time)
        view = View(world=world, now=player.now, include_superseded=True)
        for ident in world.nodes:
            inside = player.db.query().in_world(ident).include_superseded().as_of(known=known)
            expected = view.interior(ident)
            assert inside.execute().ids == expected
            assert inside.seeds(list(world.nodes)).execute().ids >= expected - {ROOT}
            seeded = inside.seeds(list(world.nodes)).execute().ids
            assert seeded == expected


# -- one world, one neighbour, one case each -------------------------------------------------------


@dataclass
class Neighbours:
    """A world with one node inside, and a node in another world."""

    db: worlddb.WorldDB
    world: Node
    inner: Node
    foreign_world: Node
    foreign: Node

    def ask(self) -> QueryBuilder:
        return self.db.query().in_world(self.world.id)

    def write(self, act: Callable[[Transaction], None]) -> None:
        with self.db.transaction() as tx:
            act(tx)


@pytest.fixture
def neighbours() -> Neighbours:
    db = worlddb.open(":memory:")
    with db.transaction() as tx:
        world = tx.create_node(type="Scope", name="mine")
        foreign_world = tx.create_node(type="Scope", name="theirs")
        return Neighbours(
            db=db,
            world=world,
            inner=tx.create_node(type="Fact", name="inner", content="apple", parent=world.id),
            foreign_world=foreign_world,
            foreign=tx.create_node(type="Fact", name="foreign", parent=foreign_world.id),
        )


def ids(answer: Subgraph) -> set[Id]:
    return {end for edge in answer.edges for end in (edge.source, edge.target)}


@pytest.mark.stores
def test_text_inside_a_world_is_found_however_much_matches_outside(neighbours: Neighbours) -> None:
    def crowd(tx: Transaction) -> None:
        for _ in range(150):
            tx.create_node(type="Fact", content="apple", parent=neighbours.foreign_world.id)

    neighbours.write(crowd)
    assert neighbours.ask().text("apple").execute().ids == {neighbours.inner.id}


@pytest.mark.stores
def test_where_connected_shows_no_edge_of_a_foreign_node(neighbours: Neighbours) -> None:
    shared = {}

    def connect(tx: Transaction) -> None:
        shared["id"] = tx.create_node(type="Topic", name="shared").id
        tx.write_edge("refers_to", neighbours.inner.id, shared["id"])
        tx.write_edge("refers_to", neighbours.foreign.id, shared["id"])

    neighbours.write(connect)
    answer = neighbours.ask().where_connected("refers_to", "out", shared["id"]).execute()
    assert answer.ids == {neighbours.inner.id}
    assert ids(answer) == {neighbours.inner.id, shared["id"]}


@pytest.mark.stores
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_node_is_not_connected_to_itself_by_an_edge_to_another(direction: Direction) -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            one = tx.create_node(type="Fact", name="one")
            other = tx.create_node(type="Fact", name="other")
            tx.write_edge("refers_to", one.id, other.id)
        asked = db.query().where_connected("refers_to", direction, one.id)
        assert asked.execute().ids == (set() if direction == "out" else {other.id})


@pytest.mark.stores
def test_a_conflict_with_a_foreign_node_does_not_name_it(neighbours: Neighbours) -> None:
    def contradict(tx: Transaction) -> None:
        tx.write_edge("contradicts", neighbours.inner.id, neighbours.foreign.id)

    neighbours.write(contradict)
    answer = neighbours.ask().execute()
    assert answer.ids == {neighbours.inner.id}
    assert answer.conflicts == ()


@pytest.mark.stores
def test_a_type_that_lives_in_a_foreign_world_does_not_widen_a_filter(
    neighbours: Neighbours,
) -> None:
    def teach(tx: Transaction) -> None:
        kind = tx.create_node(type="Type", name="Claim")
        theirs = tx.create_node(type="Type", name="Fact", parent=neighbours.foreign_world.id)
        tx.write_edge("subtype_of", theirs.id, kind.id)

    neighbours.write(teach)
    assert neighbours.ask().filter_type("Claim").execute().ids == set()


@pytest.mark.stores
def test_a_summary_in_a_foreign_world_does_not_stand_for_what_is_inside(
    neighbours: Neighbours,
) -> None:
    def summarise(tx: Transaction) -> None:
        summary = tx.create_node(type="Summary", parent=neighbours.foreign_world.id)
        tx.write_edge("derived_from", summary.id, neighbours.inner.id)

    neighbours.write(summarise)
    assert neighbours.ask().prefer_summaries().execute().ids == {neighbours.inner.id}


@pytest.mark.stores
def test_a_summary_stands_for_what_a_text_finds() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            detail = tx.create_node(type="Fact", content="an apple")
            summary = tx.create_node(type="Summary", content="some fruit")
            tx.write_edge("derived_from", summary.id, detail.id)
        assert db.query().text("apple").execute().ids == {detail.id}
        assert db.query().text("apple").prefer_summaries().execute().ids == {summary.id}


@pytest.mark.stores
def test_a_merged_foreign_node_is_not_shown(neighbours: Neighbours) -> None:
    def merge(tx: Transaction) -> None:
        edge = tx.write_edge("same_as", neighbours.inner.id, neighbours.foreign.id)
        tx.decide_merge(edge.id, "accepted")

    neighbours.write(merge)
    asked = neighbours.ask().seeds([neighbours.foreign.id])
    assert asked.execute().ids == {neighbours.inner.id}
    assert asked.traverse("same_as", "both").execute().ids == set()


@pytest.mark.stores
def test_what_a_merged_foreign_node_knows_stays_where_it_lives(neighbours: Neighbours) -> None:
    second = {}

    def merge(tx: Transaction) -> None:
        edge = tx.write_edge("same_as", neighbours.inner.id, neighbours.foreign.id)
        tx.decide_merge(edge.id, "accepted")
        second["id"] = tx.create_node(type="Fact", parent=neighbours.world.id).id
        tx.write_edge("implies", neighbours.foreign.id, second["id"])

    neighbours.write(merge)
    answer = neighbours.ask().seeds([neighbours.inner.id]).traverse("implies").execute()
    assert answer == Subgraph()
    everywhere = neighbours.db.query().seeds([neighbours.inner.id]).traverse("implies")
    assert everywhere.execute().ids == {second["id"]}


@pytest.mark.stores
@pytest.mark.parametrize("types", [("refers_to", "implies"), ("implies", "refers_to")])
def test_a_reference_leads_outside_also_where_another_edge_goes_the_same_way(
    neighbours: Neighbours, types: tuple[str, str]
) -> None:
    def connect(tx: Transaction) -> None:
        for type_ in types:
            tx.write_edge(type_, neighbours.inner.id, neighbours.foreign.id)

    neighbours.write(connect)
    start = neighbours.ask().seeds([neighbours.inner.id])
    assert start.traverse(types).execute().ids == {neighbours.foreign.id}
    assert start.traverse("implies").execute().ids == set()


@pytest.mark.stores
def test_a_custom_type_that_pierces_leaves_the_world_and_one_that_does_not_stays() -> None:
    class Cites:
        type = "cites"
        pierces = True

        def on_insert(self, ctx: worlddb.WriteContext, edge: worlddb.Edge) -> None: ...
        def on_delete(self, ctx: worlddb.WriteContext, edge: worlddb.Edge) -> None: ...
        def on_query_rewrite(self, query: worlddb.Query) -> worlddb.Query:
            return query

    class Likes(Cites):
        type = "likes"
        pierces = False

    with worlddb.open(":memory:", handlers=[Cites(), Likes()]) as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Scope", name="w")
            inner = tx.create_node(type="Fact", name="inner", parent=world.id)
            outer = tx.create_node(type="Fact", name="outer")
            tx.write_edge("cites", inner.id, outer.id)
            tx.write_edge("likes", inner.id, outer.id)
        inside = db.query().in_world(world.id).seeds([inner.id])
        assert inside.traverse("cites").execute().ids == {outer.id}
        assert inside.traverse("likes").execute().ids == set()


# -- several reasons to be in one world ------------------------------------------------------------


@pytest.mark.stores
def test_a_node_stays_where_its_first_contains_put_it_when_a_further_one_is_deleted() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Scope", name="w")
            node = tx.create_node(type="Fact", name="n")
            tx.write_edge("contains", world.id, node.id)
            further = tx.write_edge("contains", world.id, node.id, metadata={"why": "again"})
        with db.transaction() as tx:
            tx.delete_edge(further.id)
        assert db.get(node.id).parent == world.id


@pytest.mark.stores
def test_a_node_goes_back_to_the_root_world_with_the_last_contains_that_holds_it() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Scope", name="w")
            node = tx.create_node(type="Fact", name="n")
            first = tx.write_edge("contains", world.id, node.id)
            further = tx.write_edge("contains", world.id, node.id, metadata={"why": "again"})
        with db.transaction() as tx:
            tx.delete_edge(first.id)
        assert db.get(node.id).parent == world.id
        with db.transaction() as tx:
            tx.delete_edge(further.id)
        assert db.get(node.id).parent == db.root_id
        assert db.check() == []


@pytest.mark.stores
def test_a_node_that_was_born_in_a_world_stays_there_when_a_contains_is_deleted() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Scope", name="w")
            node = tx.create_node(type="Fact", name="n", parent=world.id)
            edge = tx.write_edge("contains", world.id, node.id)
        with db.transaction() as tx:
            tx.delete_edge(edge.id)
        assert db.get(node.id).parent == world.id


@pytest.mark.stores
def test_worlds_that_would_hold_each_other_are_refused_however_the_circle_is_closed() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            top = tx.create_node(type="Scope", name="top")
            mid = tx.create_node(type="Scope", name="mid", parent=top.id)
            low = tx.create_node(type="Scope", name="low")
            tx.write_edge("contains", mid.id, low.id)
            other = tx.create_node(type="Scope", name="other", parent=db.root_id)
            member = tx.create_node(type="Scope", name="member", parent=other.id)
            tx.write_edge("contains", low.id, member.id)
        for source, target in ((low, top), (low, low), (member, top), (member, mid), (top, None)):
            with pytest.raises(worlddb.RejectedError), db.transaction() as tx:
                tx.write_edge("contains", source.id, db.root_id if target is None else target.id)
        assert db.check() == []


@pytest.mark.stores
def test_memberships_are_seen_at_the_times_they_hold() -> None:
    with worlddb.open(":memory:", clock=lambda: BASE) as db:
        with db.transaction() as tx:
            world = tx.create_node(type="Scope", name="w", valid_from=at(BASE - 9 * HOUR))
            home = tx.create_node(type="Scope", name="home")
            guest = tx.create_node(
                type="Fact", name="guest", parent=home.id, valid_from=at(BASE - 9 * HOUR)
            )
            tx.write_edge(
                "contains",
                world.id,
                guest.id,
                valid_from=at(BASE - 2 * HOUR),
                valid_to=at(BASE - HOUR),
            )
        for hours, seen in ((3, set()), (2, {guest.id}), (1, set())):
            asked = db.query().in_world(world.id).as_of(valid=at(BASE - hours * HOUR))
            assert asked.execute().ids == seen
            assert asked.seeds([guest.id]).execute().ids == seen
        assert db.query().in_world(world.id).execute().ids == set()


def deep(worlds: int) -> tuple[worlddb.WorldDB, list[Id]]:
    """Return a store with one world in another, many times."""
    db = worlddb.open(":memory:")
    chain = [db.root_id]
    with db.transaction() as tx:
        for i in range(worlds):
            chain.append(tx.create_node(type="Scope", name=f"w{i}", parent=chain[-1]).id)
    return db, chain


def test_a_world_a_thousand_deep_is_read_proved_and_checked() -> None:
    db, chain = deep(1_000)
    with db.transaction() as tx:
        leaf = tx.create_node(type="Fact", name="leaf", parent=chain[-1])
    assert db.query().in_world(chain[1]).seeds([leaf.id]).execute().ids == {leaf.id}
    assert len(db.query().in_world(chain[500]).execute()) == 501
    assert worlddb.verify_proof(db.prove(leaf.id), db.root_state)
    assert db.check() == []
    db.close()


@pytest.mark.stores
def test_an_empty_world_and_a_leaf_have_nothing_inside() -> None:
    player = nested_worlds(9, commits=5)
    view = View(world=player.world, now=player.now)
    empty = [ident for ident in view.world.nodes if not view.interior(ident)]
    assert empty
    for ident in empty:
        inside = player.db.query().in_world(ident)
        assert inside.execute().nodes == ()
        assert inside.seeds(list(view.world.nodes)).execute().nodes == ()
        assert inside.text("red green blue").execute().nodes == ()
