"""Closure: what follows from causes and from types, what it rests on, and when it falls."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from consolidate.stage import Clock, open_store, shape
from worlddb import AsOf, Edge, Id, Query, WorldDB, WriteContext
from worlddb.ontology.edge_types import Causes

TYPES = ("causes", "implies", "subtype_of")


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def nodes(db: WorldDB, names: str) -> dict[str, Id]:
    """Create a node for each letter; each begins a day after the one before."""
    with db.transaction() as tx:
        return {
            name: tx.create_node(
                type="Event", name=name, created_at=f"2025-01-{at:02d}T00:00:00+00:00"
            ).id
            for at, name in enumerate(names, 1)
        }


def link(db: WorldDB, made: dict[str, Id], *pairs: str, type_: str = "causes") -> list[Edge]:
    with db.transaction() as tx:
        return [tx.write_edge(type_, made[pair[0]], made[pair[1]]) for pair in pairs]


def inferred(db: WorldDB, made: dict[str, Id], type_: str = "causes") -> set[str]:
    """Return the inferred edges, as pairs of names."""
    names = {ident: name for name, ident in made.items()}
    return {
        names[edge.source] + names[edge.target]
        for ident in made.values()
        for edge in db.edges(ident, "out", [type_])
        if edge.metadata.get("inferred")
    }


@pytest.mark.parametrize("type_", TYPES)
def test_what_follows_is_written_with_its_two_premises(db: WorldDB, type_: str) -> None:
    made = nodes(db, "abc")
    premises = link(db, made, "ab", "bc", type_=type_)
    report = db.consolidate()
    (told,) = report.inferred
    assert (told.type, told.source, told.target) == (type_, made["a"], made["c"])
    assert told.edge is not None
    edge = db.get_edge(told.edge)
    assert edge.metadata == {"inferred": True, "premises": [str(it.id) for it in premises]}
    assert [(it.actor, it.edges) for it in db.log(after=report.commits[0] - 1)] == [
        ("consolidator", 1)
    ]
    assert db.consolidate().commits == ()
    assert db.check() == []


def test_a_chain_is_closed_in_one_run(db: WorldDB) -> None:
    made = nodes(db, "abcde")
    link(db, made, "ab", "bc", "cd", "de")
    assert len(db.consolidate().inferred) == 6
    assert inferred(db, made) == {"ac", "ad", "ae", "bd", "be", "ce"}
    assert db.consolidate().commits == ()


def test_what_is_there_already_is_not_inferred(db: WorldDB) -> None:
    made = nodes(db, "abc")
    link(db, made, "ab", "bc", "ac")
    assert db.consolidate().inferred == ()


def test_types_do_not_mix_and_others_are_not_closed(db: WorldDB) -> None:
    made = nodes(db, "abc")
    link(db, made, "ab", type_="causes")
    link(db, made, "bc", type_="subtype_of")
    link(db, made, "ab", "bc", type_="refers_to")
    link(db, made, "ab", "bc", type_="precedes")
    assert db.consolidate().inferred == ()


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("which", [0, 1])
def test_what_was_inferred_falls_with_either_premise(db: WorldDB, type_: str, which: int) -> None:
    made = nodes(db, "abcd")
    premises = link(db, made, "ab", "bc", "cd", type_=type_)
    db.consolidate()
    then = db.log()[-1].time
    with db.transaction() as tx:
        tx.delete_edge(premises[which].id)
    left = {"bd"} if which == 0 else set()
    assert inferred(db, made, type_) == left
    before = db.edges(made["a"], "out", [type_], as_of=AsOf(known=then))
    assert len(before) == 3
    assert db.consolidate().commits == ()


def test_what_still_follows_another_way_is_inferred_again(db: WorldDB) -> None:
    made = nodes(db, "abcd")
    first, *_ = link(db, made, "ab", "bd", "ac", "cd")
    db.consolidate()
    (edge,) = [it for it in db.edges(made["a"]) if it.metadata]
    assert edge.metadata["premises"][0] == str(first.id)
    with db.transaction() as tx:
        tx.delete_edge(first.id)
    assert inferred(db, made) == set()
    assert len(db.consolidate().inferred) == 1
    assert inferred(db, made) == {"ad"}


def test_what_somebody_took_back_is_not_inferred_again(db: WorldDB) -> None:
    made = nodes(db, "abcd")
    link(db, made, "ab", "bc", "cd")
    db.consolidate()
    (wrong,) = [it for it in db.edges(made["b"]) if it.metadata]
    with db.transaction() as tx:
        tx.delete_edge(wrong.id)
    db.consolidate()
    assert inferred(db, made) == {"ac"}  # What rested on it does not come back either.
    assert db.consolidate().commits == ()


def test_an_inference_holds_when_both_premises_do(db: WorldDB) -> None:
    made = nodes(db, "abcxyz")
    with db.transaction() as tx:
        tx.write_edge("causes", made["a"], made["b"], valid_from="2025-02-01T00:00:00+00:00")
        tx.write_edge(
            "causes",
            made["b"],
            made["c"],
            valid_from="2025-03-01T00:00:00+00:00",
            valid_to="2030-01-01T00:00:00+00:00",
        )
        for pair, start, end in (("xy", 2027, 2028), ("yz", 2029, 2030)):
            tx.write_edge(
                "causes",
                made[pair[0]],
                made[pair[1]],
                valid_from=f"{start}-01-01T00:00:00+00:00",
                valid_to=f"{end}-01-01T00:00:00+00:00",
            )
    (told,) = db.consolidate().inferred
    assert (told.source, told.target) == (made["a"], made["c"])
    assert told.valid_from.isoformat() == "2025-03-01T00:00:00+00:00"
    assert told.valid_to is not None
    assert told.valid_to.isoformat() == "2030-01-01T00:00:00+00:00"


class Ends:
    """`x --ends--> y`: the causes of y end; the one way to close an edge's validity."""

    type = "ends"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        for other in ctx.edges(edge.target, "out", ("causes",)):
            if not other.metadata.get("inferred"):
                ctx.close_validity(other.id, ctx.now)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        pass

    def on_query_rewrite(self, query: Query) -> Query:
        return query


def test_an_inference_whose_premise_has_ended_is_withdrawn_with_all_that_rests_on_it() -> None:
    with open_store(handlers=[Ends()]) as db:
        made = nodes(db, "abcde")
        link(db, made, "ab", "bc", "cd", "de")
        db.consolidate()
        with db.transaction() as tx:
            tx.write_edge("ends", made["a"], made["c"])
        report = db.consolidate()
        assert len(report.withdrawn) == 5
        assert inferred(db, made) == {"ac"}
        assert db.consolidate().commits == ()
        assert db.check() == []


def random_graph(db: WorldDB, seed: int) -> dict[str, Id]:
    made = nodes(db, "abcdefghij")
    rng = random.Random(seed)
    pairs = {"".join(sorted(rng.sample("abcdefghij", 2))) for _ in range(14)}
    link(db, made, *sorted(pairs))
    return made


@pytest.mark.parametrize("seed", range(6))
def test_runs_that_are_cut_short_end_where_one_long_run_does(seed: int) -> None:
    with open_store() as whole:
        made = random_graph(whole, seed)
        planned = whole.consolidate(dry_run=True)
        assert whole.log()[-1].actor != "consolidator"
        report = whole.consolidate()
        pairs = [(it.type, it.source, it.target) for it in report.inferred]
        assert [(it.type, it.source, it.target) for it in planned.inferred] == pairs
        expected, ways = shape(whole), reachable(whole, made)
        assert {(source, target) for _, source, target in pairs} | stated(whole, made) == ways
    with open_store() as db:
        random_graph(db, seed)
        runs = 0
        while not (report := db.consolidate(edges_max=2)).is_complete:
            assert len(report.inferred) == 2
            runs += 1
        assert runs >= 1
        assert shape(db) == expected


def stated(db: WorldDB, made: dict[str, Id]) -> set[tuple[Id, Id]]:
    edges = [edge for ident in made.values() for edge in db.edges(ident) if not edge.metadata]
    return {(edge.source, edge.target) for edge in edges}


def reachable(db: WorldDB, made: dict[str, Id]) -> set[tuple[Id, Id]]:
    """Return which node leads to which, the naive way."""
    found = stated(db, made)
    while True:
        more = {(a, d) for a, b in found for c, d in found if b == c} - found
        if not more:
            return found
        found |= more


class Interrupting(Clock):
    """A clock that lets somebody else write at the moment it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.meddle: list[Callable[[], None] | None] = []

    def __call__(self) -> int:
        meddle = self.meddle.pop(0) if self.meddle else None
        if meddle is not None:
            meddle()
        return super().__call__()


@pytest.mark.parametrize("times", [1, 4, 5])
def test_what_somebody_deletes_meanwhile_is_no_premise(tmp_path: Path, times: int) -> None:
    path = tmp_path / "store.db"
    clock = Interrupting()
    with open_store(path, clock=clock) as db:
        made = nodes(db, "abcd")
        edges = link(db, made, "ab", "bc", "cd")

        def delete() -> None:
            with open_store(path) as other, other.transaction() as tx:
                tx.delete_edge(edges[0].id)

        def idle() -> None:
            with open_store(path) as other, other.transaction() as tx:
                tx.create_node(type="Fact", content="meanwhile")

        # At each look; in between, the transaction reads the clock, too, and nobody can write.
        clock.meddle = [*[idle, None] * (times - 1), delete]
        db.consolidate(only="closure")
        assert clock.meddle == []
        db.consolidate(only="closure")
        for edge in db.edges(made["a"]):
            assert all(db.get_edge(it).known_to is None for it in edge.metadata["premises"])
        assert inferred(db, made) >= {"bd"}
        assert db.check() == []


class Picky(Causes):
    """Causes that nothing may cause `d` but what was stated."""

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        super().on_insert(ctx, edge)
        if edge.metadata.get("inferred") and ctx.get(edge.target).name == "d":
            ctx.refuse("not d")


def test_what_a_handler_refuses_is_told_and_the_rest_is_written() -> None:
    with open_store(handlers=[Picky()]) as db:
        made = nodes(db, "abcde")
        link(db, made, "ab", "bc", "cd", "de")
        report = db.consolidate()
        assert inferred(db, made) == {"ac", "ae", "be", "ce"}  # To e through c, not through d.
        (told,) = report.refused  # What would rest on it is not even tried.
        assert "not d" in told
        assert db.check() == []
