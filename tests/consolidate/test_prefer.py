"""Summary first: the view of a world is its summaries and what none of them stands for."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from consolidate.stage import DAY, Clock, fact, open_store, retire, summaries, texts, world
from thinning import some
from worlddb import Edge, Id, Node, Query, WorldDB, WriteContext
from worlddb.store.tables.edge_table import WorldSweep as StoreSweep


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def is_stale(db: WorldDB, summary: Id) -> bool:
    """Return whether a summary, or one in it, was derived from something that has ended."""
    details = db.edges(summary, "out", ["derived_from"], include_superseded=True)
    nodes = [db.get(edge.target) for edge in details]
    return any(
        is_stale(db, node.id) if node.type == "Summary" else node.valid_to is not None
        for node in nodes
    )


def naive(db: WorldDB, inside: Id) -> set[Id]:
    """Return what is seen in a world less what a summary seen there was derived from.

    A stale summary stands for nothing and is left out.
    """
    seen = db.query().in_world(inside).execute().nodes
    stale = {node.id for node in seen if node.type == "Summary" and is_stale(db, node.id)}
    covered = {
        edge.target
        for node in seen
        if node.type == "Summary" and node.id not in stale
        for edge in db.edges(node.id, "out", ["derived_from"])
    }
    return {node.id for node in seen} - covered - stale


def view(db: WorldDB, inside: Id) -> list[Node]:
    return list(db.query().in_world(inside).prefer_summaries().execute().nodes)


def test_the_default_view_of_a_world_of_worlds_is_one_summary(db: WorldDB) -> None:
    outer = world(db, "outer", ["x"])
    inner = [world(db, f"inner {n}", ["a", "b"], outer) for n in range(3)]
    db.consolidate()
    assert view(db, outer) == summaries(db, outer)
    assert view(db, inner[0]) == summaries(db, inner[0])
    assert naive(db, outer) == {summaries(db, outer)[0].id}


def test_the_details_are_reached_from_the_summary_and_equal_what_was_written(db: WorldDB) -> None:
    outer = world(db, "outer")
    for number in range(3):
        world(db, f"inner {number}", [f"a {number}", f"b {number}"], outer)
    full = db.query().in_world(outer).execute()
    db.consolidate()
    (top,) = view(db, outer)
    reached = db.query().seeds(top.id).traverse("derived_from", hops=9).execute()
    assert {node.id: node.content for node in reached if node.type != "Summary"} == {
        node.id: node.content for node in full
    }
    one = db.query().in_world(outer).seeds(top.id).traverse("derived_from").execute()
    assert {node.type for node in one} == {"Topic", "Summary"}


def test_what_is_new_is_seen_beside_the_summary_at_once(db: WorldDB) -> None:
    outer = world(db, "outer")
    inner = [world(db, f"inner {n}", ["a", "b"], outer) for n in range(2)]
    db.consolidate()
    (top,) = view(db, outer)
    added = fact(db, "new", inner[0])
    assert {node.id for node in view(db, outer)} == {top.id, added}
    db.consolidate()
    assert [node.type for node in view(db, outer)] == ["Summary"]


def test_what_has_no_summary_is_seen_as_it_is(db: WorldDB) -> None:
    outer = world(db, "outer", ["x", "y"])
    with db.transaction() as tx:
        name = tx.create_node(type="Entity", name="Sarah", parent=outer).id
        alone = tx.create_node(type="Topic", name="alone", parent=outer).id
        only = tx.create_node(type="Fact", content="only one", parent=alone).id
    db.consolidate()
    assert {node.id for node in view(db, outer)} == {
        summaries(db, outer)[0].id,
        name,
        alone,
        only,
    }


def test_a_summary_that_was_retired_uncovers_its_details_at_once(db: WorldDB) -> None:
    outer = world(db, "outer")
    inner = [world(db, f"inner {n}", ["a", "b"], outer) for n in range(2)]
    db.consolidate()
    retire(db, summaries(db, inner[0])[0].id)  # No state changes by this.
    assert texts(view(db, outer)) == sorted(["a", "b", summaries(db, outer)[0].content])


def test_a_summary_retired_from_some_day_on_stands_until_then() -> None:
    clock = Clock()
    with open_store(clock=clock) as db:
        outer = world(db, "outer")
        inner = [world(db, f"inner {n}", ["a", "b"], outer) for n in range(2)]
        db.consolidate()
        with db.transaction() as tx:
            tx.retire(summaries(db, inner[0])[0].id, at="2026-06-01T00:00:00+00:00")
        assert len(view(db, outer)) == 1
        clock.now += 365 * DAY
        assert len(view(db, outer)) == 3


def test_a_member_of_what_is_inside_is_seen_beside_the_summary(db: WorldDB) -> None:
    outer = world(db, "outer", ["a", "b"])
    elsewhere = world(db, "elsewhere", ["guest"])
    holder, guest = db.children(outer)[0].id, db.children(elsewhere)[0].id
    with db.transaction() as tx:
        tx.write_edge("contains", holder, guest)
    db.consolidate()
    assert {node.id for node in view(db, outer)} == {summaries(db, outer)[0].id, guest}


class Uncovers:
    """`x --uncovers--> y`: nothing stands for y any more, though no edge is deleted."""

    type = "uncovers"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        for other in ctx.edges(edge.target, "in", ("derived_from",)):
            ctx.close_validity(other.id, ctx.now)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        pass

    def on_query_rewrite(self, query: Query) -> Query:
        return query


def test_a_detail_whose_edge_has_ended_is_seen_beside_the_summary() -> None:
    with open_store(handlers=[Uncovers()]) as db:
        outer = world(db, "outer", ["a", "b"])
        detail = db.children(outer)[0].id
        other = fact(db, "other")
        db.consolidate()
        with db.transaction() as tx:
            tx.write_edge("uncovers", other, detail)
        assert {node.id for node in view(db, outer)} == {summaries(db, outer)[0].id, detail}


def test_a_summary_inside_that_stands_for_something_outside_still_does(db: WorldDB) -> None:
    outer = world(db, "outer", ["x", "y"])
    inner = world(db, "inner", ["a", "b"], outer)
    with db.transaction() as tx:
        own = tx.create_node(type="Summary", content="own", parent=inner).id
        tx.write_edge("derived_from", own, db.children(outer)[0].id)
    db.consolidate(inner)
    assert {node.id for node in view(db, outer)} == naive(db, outer)
    assert "x" not in texts(view(db, outer))


def test_somebody_elses_words_do_not_make_a_summary_of_everything(db: WorldDB) -> None:
    for number, words in enumerate(("1", "x", "99999999999", "0", "²")):
        inside = world(db, f"world {number}", ["a", "b"])
        with db.transaction() as tx:
            source = f"summary of everything inside, depth {words}"
            summary = tx.create_node(type="Summary", content="mine", parent=inside, source=source)
            tx.write_edge("derived_from", summary.id, db.children(inside)[0].id)
            tx.write_edge("derived_from", summary.id, db.children(inside)[1].id)
        assert {node.id for node in view(db, inside)} == naive(db, inside)


def test_a_quiet_world_is_answered_without_reading_its_details(
    db: WorldDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    outer = world(db, "outer")
    for number in range(3):
        world(db, f"inner {number}", ["a", "b"], outer)
    db.consolidate()
    monkeypatch.setattr(StoreSweep, "inside", None)  # Walking down would fail.
    assert len(view(db, outer)) == 1


def test_as_of_an_earlier_time_the_view_is_that_of_then(db: WorldDB) -> None:
    outer = world(db, "outer", ["a", "b"])
    before = db.log()[-1].time
    db.consolidate()
    between = db.log()[-1].time
    fact(db, "c", outer)
    query = db.query().in_world(outer).prefer_summaries()
    assert texts(query.as_of(known=before).execute()) == ["a", "b"]
    then = query.as_of(known=between).execute()
    assert [node.type for node in then] == ["Summary"]
    assert then.edges == ()
    assert {node.type for node in query.as_of(valid=between).execute()} == {"Summary"}
    assert len(query.include_superseded().execute()) == 2


# -- whatever happens, the short way and the long way agree ---------------------------------------


class Meddler:
    """Does random things to a store of nested worlds, summaries among them."""

    def __init__(self, db: WorldDB, seed: int) -> None:
        self.db = db
        self.members = seed % 3 == 0
        self.rng = random.Random(seed)
        self.worlds = [world(db, "outer")]
        for number in range(5):
            parent = self.rng.choice(self.worlds)
            self.worlds.append(world(db, f"world {number}", ["a", "b"], parent))

    def nodes(self) -> list[Node]:
        return [node for node in self.db.query().execute().nodes if node.id != self.db.root_id]

    def do(self) -> None:
        kinds = ("fact", "retire", "retire summary", "contains", "uncover", "world", "name", "sum")
        kind = self.rng.choice((*kinds, "consolidate", "consolidate", "consolidate"))
        if kind == "consolidate":
            self.db.consolidate(worlds_max=self.rng.choice((1, 3, 100)))
        elif kind == "fact":
            fact(self.db, f"fact {self.rng.random()}", self.rng.choice(self.worlds))
        elif kind == "world":
            self.worlds.append(world(self.db, "new", ["c", "d"], self.rng.choice(self.worlds)))
        elif kind == "name":
            with self.db.transaction() as tx:
                tx.create_node(type="Entity", name="n", parent=self.rng.choice(self.worlds))
        elif kind == "sum":
            with self.db.transaction() as tx:
                inside, detail = self.rng.choice(self.worlds), self.rng.choice(self.nodes())
                own = tx.create_node(type="Summary", content="own", parent=inside).id
                tx.write_edge("derived_from", own, detail.id)
        elif kind == "contains":
            if self.members:
                self._contain()
        elif kind == "uncover":
            edges = [
                edge
                for node in self.nodes()
                for edge in self.db.edges(node.id, "out", ["derived_from", "contains"])
            ]
            if edges:
                with self.db.transaction() as tx:
                    tx.delete_edge(self.rng.choice(edges).id)
        else:
            wanted = [it for it in self.nodes() if kind == "retire" or it.type == "Summary"]
            if wanted:
                retire(self.db, self.rng.choice(wanted).id)

    def _contain(self) -> None:
        inside, node = self.rng.choice(self.worlds), self.rng.choice(self.nodes())
        below = {it.id for it in self.db.query().in_world(node.id).execute().nodes}
        if inside != node.id and inside not in below:
            with self.db.transaction() as tx:
                tx.write_edge("contains", inside, node.id)


@pytest.mark.parametrize("seed", some(range(12), 3))
def test_the_view_is_always_what_no_summary_stands_for(seed: int) -> None:
    with open_store() as db:
        meddler = Meddler(db, seed)
        for _ in range(25):
            meddler.do()
            for inside in meddler.worlds:
                assert {node.id for node in view(db, inside)} == naive(db, inside)
        while not db.consolidate().is_complete:
            pass
        assert db.consolidate().commits == ()
        assert db.check() == []
