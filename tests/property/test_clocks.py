"""Both clocks: every answer as of any (valid, known) pair equals what the engine knew then.

Random histories are played on a store and on the naive model, which keeps a whole copy of the
world after every commit. Then every question is asked at every interesting pair of instants.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import worlddb
from store_choice import fewer
from thinning import examples, some
from worlddb import AsOf, Edge, Id, Node, NotFoundError, WorldDB

from .naive import ROOT, World, at
from .player import BASE, EDGE_TYPES, HOUR, Player, Turn, Write, first_turn, random_turn, turns
from .view import View

BEFORE_THE_STORE = -5 * HOUR
LATER = BASE + 1_000 * HOUR


def random_history(seed: int, commits: int, steps_max: int = 6) -> Player:
    """Play random transactions under a clock that runs, stands still and steps back."""
    rng = random.Random(seed)
    player = Player()
    clock = BASE
    player.play(first_turn(rng, clock))
    for _ in range(commits):
        clock += rng.choice((0, 1, 1_000_000, HOUR // 2, HOUR, -1, -HOUR))
        player.play(random_turn(rng, clock, steps_max))
    player.clock = clock + rng.choice((-HOUR, 0, 20 * HOUR))
    return player


def valid_instants(player: Player) -> list[int]:
    """Return every instant at which something begins or ends, and the microseconds beside it."""
    found = {world.time for world in player.history[1:]}
    for world in player.history:
        for begins, ends in world.validities().values():
            found |= {begins, begins if ends is None else ends}
    return sorted({i + d for i in found for d in (-1, 0, 1)})


def known_instants(player: Player) -> list[tuple[int, World | None]]:
    """Return instants around every commit, each with the world as it was known then."""
    worlds = player.history
    instants = {world.time + d for world in worlds for d in (-1, 0, 1)}
    known: list[tuple[int, World | None]] = []
    for instant in sorted(instants | {BEFORE_THE_STORE, LATER}):
        then = [world for world in worlds if world.time <= instant]
        known.append((instant, then[-1] if then else None))
    return known


class Answers:
    """What the model answers about one world, worked out once for all valid times."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.nodes = world.node_values()
        self.edges = world.edge_values()

    def children(self, view: View, ident: Id) -> list[Node]:
        rows = self.world.nodes.values()
        return [self.nodes[n.id] for n in rows if n.parent == ident and view.holds(n)]

    def edges_out(self, view: View, ident: Id) -> list[Edge]:
        live = self.world.live()
        return [self.edges[e.id] for e in live if e.source == ident and view.holds(e)]

    def edges_in(self, view: View, ident: Id) -> list[Edge]:
        live = self.world.live()
        return [self.edges[e.id] for e in live if e.target == ident and view.holds(e)]


def compare_lookups(
    db: WorldDB, answers: Answers, view: View, as_of: AsOf, idents: list[Id]
) -> None:
    """Ask `get`, `children` and `edges` about some nodes."""
    nodes = answers.world.nodes
    for ident in idents:
        if ident not in nodes:
            for question in (db.get, db.children, db.edges):
                with pytest.raises(NotFoundError):
                    question(ident, as_of=as_of)
            continue
        if view.valid is not None and not view.holds(nodes[ident]):
            with pytest.raises(NotFoundError):
                db.get(ident, as_of=as_of)
        else:
            assert db.get(ident, as_of=as_of) == answers.nodes[ident]
        assert db.children(ident, as_of=as_of) == answers.children(view, ident)
        assert db.edges(ident, as_of=as_of) == answers.edges_out(view, ident)
        assert db.edges(ident, "in", as_of=as_of) == answers.edges_in(view, ident)
        around = {*answers.edges_out(view, ident), *answers.edges_in(view, ident)}
        assert set(db.edges(ident, "both", as_of=as_of)) == around


def compare_queries(db: WorldDB, answers: Answers, view: View, as_of: AsOf, seed: Id) -> None:
    """Ask for everything, and for what is around one node."""

    def values(idents: set[Id]) -> list[Node]:
        return [answers.nodes[ident] for ident in sorted(idents)]

    asked = db.query().as_of(valid=as_of.valid, known=as_of.known)
    assert list(asked.execute()) == values(view.everything())
    if seed not in answers.world.nodes:
        with pytest.raises(NotFoundError):
            asked.seeds([seed]).execute()
        return
    assert list(asked.seeds([seed]).execute()) == values(view.shown(view.seeds([seed])))
    reached = asked.seeds([seed]).traverse(EDGE_TYPES, "both", 2).execute()
    expected = view.traverse(view.seeds([seed]), EDGE_TYPES, "both", 2)
    # Along causes and precedes an answer is in the order of time.
    assert reached.ids == expected
    assert set(reached) == set(values(expected))


def rotate(items: list[Id], start: int, count: int) -> list[Id]:
    """Return some of the items, others each time."""
    return [items[(start * count + i) % len(items)] for i in range(min(count, len(items)))]


def compare_all(player: Player, ids_per_pair: int, queries_every: int) -> int:
    """Compare the store with the model at every pair of instants; return how many there were."""
    db = player.db
    everyone = list(player.world.nodes)
    pairs = 0
    known: list[tuple[int | None, World | None]] = [(None, player.world), *known_instants(player)]
    valid: list[int | None] = [None, *valid_instants(player)]
    for known_at, world in known:
        answers = None if world is None else Answers(world)
        for valid_at in valid:
            pairs += 1
            as_of = AsOf(
                valid=None if valid_at is None else at(valid_at),
                known=None if known_at is None else at(known_at),
            )
            chosen = rotate(everyone, pairs, ids_per_pair)
            if answers is None:
                with pytest.raises(NotFoundError):
                    db.get(chosen[0], as_of=as_of)
                assert not db.query().as_of(valid=as_of.valid, known=as_of.known).execute().nodes
                continue
            view = View(world=answers.world, now=player.now, valid=valid_at)
            compare_lookups(db, answers, view, as_of, chosen)
            if pairs % queries_every == 0:
                compare_queries(db, answers, view, as_of, chosen[0])
    return pairs


@pytest.mark.stores
@pytest.mark.parametrize("seed", some([1, 2], 2))
def test_every_node_answers_as_it_was_known_at_every_pair_of_instants(
    seed: int, store_kind: str
) -> None:
    player = random_history(seed, commits=fewer(store_kind, 10, 4), steps_max=4)
    assert len(player.history) > fewer(store_kind, 5, 3)
    ids = fewer(store_kind, 1_000, 2)
    assert compare_all(player, ids_per_pair=ids, queries_every=3) > fewer(store_kind, 300, 100)


@pytest.mark.parametrize("seed", some([100, 101], 2))
def test_long_histories_answer_as_they_were_known_at_every_pair_of_instants(seed: int) -> None:
    player = random_history(seed, commits=30)
    assert len(player.history) > 18
    assert compare_all(player, ids_per_pair=2, queries_every=10) > 1_000
    assert player.db.check() == []


@settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=examples(40, 15),
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(turns, min_size=1, max_size=6))
def test_any_history_answers_as_it_was_known(history: list[Turn]) -> None:
    player = Player()
    for turn in history:
        player.play(turn)
    compare_all(player, ids_per_pair=2, queries_every=3)
    player.db.close()


def identity_history(seed: int, commits: int) -> Player:
    """Play a history of little else than merges and conflicts."""
    rng = random.Random(seed)
    player = Player()
    player.play(first_turn(rng, BASE))
    for i in range(commits):
        turn = random_turn(rng, BASE + i * HOUR)
        kept = tuple(
            step
            for step in turn.steps
            if not isinstance(step, Write) or step.type in ("same_as", "contradicts")
        )
        player.play(replace(turn, steps=kept))
    return player


@pytest.mark.parametrize("seed", some([200, 201], 2))
def test_identity_and_conflicts_answer_as_they_were_known(seed: int) -> None:
    player = identity_history(seed, commits=110)
    statuses = {item.status for w in player.history for item in w.proposals.values()}
    assert statuses == {"pending", "accepted", "rejected", "withdrawn"}
    assert any(item.settled for item in player.world.conflicts.values())
    for known_at, world in known_instants(player):
        as_of = AsOf(known=at(known_at))
        staged = [] if world is None else list(world.proposals.values())
        assert player.db.proposals(None, as_of=as_of) == staged
        for status in ("pending", "accepted", "rejected", "withdrawn"):
            expected = [item for item in staged if item.status == status]
            assert player.db.proposals(status, as_of=as_of) == expected
        against = [] if world is None else list(world.conflicts.values())
        assert player.db.conflicts(as_of=as_of, include_settled=True) == against
        if world is not None:
            for ident in world.nodes:
                assert player.db.equivalence_class(ident, as_of=as_of) == world.same_as([ident])


def clocks(seed: int) -> Iterator[int]:
    rng = random.Random(seed)
    clock = BASE
    while True:
        clock += rng.choice((-HOUR, -1, 0, 0, 1, 7, HOUR))
        yield clock


@pytest.mark.parametrize("seed", some(range(3), 3))
def test_commit_times_strictly_increase_whatever_the_clock_does(seed: int) -> None:
    ticks = clocks(seed)
    with worlddb.open(":memory:", clock=lambda: next(ticks)) as db:
        for i in range(200):
            with db.transaction() as tx:
                tx.create_node(type="Fact", name=str(i))
        log = db.log()
        assert len(log) == 201
        assert all(before.time < after.time for before, after in pairwise(log))
        assert db.check() == []


@pytest.mark.parametrize("seed", some(range(300, 303), 3))
def test_what_two_commits_differ_by_never_changes_later(seed: int) -> None:
    rng = random.Random(seed)
    player = Player()
    said = []
    for i in range(30):
        if player.play(random_turn(rng, BASE + i * HOUR)):
            seq = len(player.history) - 1
            said.append((seq, player.db.diff(0, seq), player.db.diff(seq - 1, seq)))
    for seq, whole, last in said:
        assert player.db.diff(0, seq) == whole
        assert player.db.diff(seq - 1, seq) == last


@pytest.mark.stores
def test_a_node_that_was_retired_is_hidden_at_once_also_after_the_clock_stepped_back() -> None:
    player = Player()
    with player.db.transaction() as tx:
        node = tx.create_node(type="Fact", name="it rains")
    player.clock -= HOUR
    with player.db.transaction() as tx:
        tx.retire(node.id)
    assert player.db.children() == []
    assert player.db.query().execute().nodes == ()


@pytest.mark.stores
def test_a_superseded_node_is_hidden_at_once_also_after_the_clock_stepped_back() -> None:
    player = Player()
    with player.db.transaction() as tx:
        old = tx.create_node(type="Fact", name="it rains")
    player.clock -= HOUR
    with player.db.transaction() as tx:
        new = tx.create_node(type="Fact", name="it snows")
        tx.write_edge("supersedes", new.id, old.id)
    assert [node.id for node in player.db.children()] == [new.id]
    assert player.db.query().execute().ids == {new.id}


@pytest.mark.stores
def test_what_was_true_before_1970_is_found_in_the_root_world() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            born = tx.create_node(type="Event", name="born", valid_from="1950-01-01T00:00:00Z")
        as_of = AsOf(valid="1955-01-01T00:00:00Z")
        assert db.query().as_of(valid=as_of.valid).execute().ids == {born.id}
        assert [node.id for node in db.children(as_of=as_of)] == [born.id]


@pytest.mark.stores
def test_text_is_found_as_it_was_known_however_much_was_written_since() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            first = tx.create_node(
                type="Fact", name="the first", content="an apple " + "and so " * 9
            )
        assert tx.commit is not None
        with db.transaction() as tx:
            for _ in range(150):
                tx.create_node(type="Fact", content="apple")
        then = db.log()[1].time
        assert db.query().text("apple").as_of(known=then).execute().ids == {first.id}


@pytest.mark.stores
def test_text_is_found_as_it_was_valid_however_much_is_valid_now() -> None:
    with worlddb.open(":memory:") as db:
        long_ago = datetime(1990, 1, 1, tzinfo=UTC)
        with db.transaction() as tx:
            ended = tx.create_node(
                type="Fact",
                content="an apple " + "and so " * 9,
                valid_from=long_ago,
                valid_to=long_ago + timedelta(days=2),
            )
            for _ in range(150):
                tx.create_node(type="Fact", content="apple")
        asked = db.query().text("apple").as_of(valid=long_ago + timedelta(days=1))
        assert asked.execute().ids == {ended.id}


@pytest.mark.stores
def test_edges_of_both_directions_come_in_the_order_of_writing() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            one = tx.create_node(type="Fact", name="one")
            other = tx.create_node(type="Fact", name="other")
            written = [
                tx.write_edge("refers_to", other.id, one.id).id,
                tx.write_edge("refers_to", one.id, other.id).id,
                tx.write_edge("refers_to", one.id, one.id).id,
                tx.write_edge("implies", other.id, one.id).id,
            ]
        assert [edge.id for edge in db.edges(one.id, "both")] == written


@pytest.mark.stores
def test_before_the_first_commit_nothing_is_known_but_the_root() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            node = tx.create_node(type="Fact", name="a", valid_from=at(BASE))
        just_before = AsOf(known=db.log()[1].time - timedelta(microseconds=1))
        assert db.get(ROOT, as_of=just_before).state == ROOT
        assert db.children(as_of=just_before) == []
        with pytest.raises(NotFoundError):
            db.get(node.id, as_of=just_before)
