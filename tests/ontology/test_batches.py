"""Batches of acyclic edges: refused as one by one, without the cost of one by one."""

from __future__ import annotations

from itertools import pairwise

import pytest

import worlddb
from worlddb import EdgeDraft, Id, NodeDraft, RejectedError

ACYCLIC = ["causes", "precedes", "implies", "derived_from", "subtype_of"]
CREATED = "2026-01-01T00:00:00+00:00"


def chain(db: worlddb.WorldDB, length: int) -> list[Id]:
    with db.transaction() as tx:
        return tx.create_nodes(
            NodeDraft(type="Fact", name=f"{i}", created_at=CREATED) for i in range(length)
        )


def links(ids: list[Id]) -> list[EdgeDraft]:
    return [EdgeDraft(source=a, target=b) for a, b in pairwise(ids)]


@pytest.mark.parametrize("type_", ACYCLIC)
def test_a_batch_that_closes_a_circle_by_itself_is_refused(type_: str) -> None:
    with worlddb.open(":memory:") as db:
        ids = chain(db, 5)
        with pytest.raises(RejectedError, match="circle"), db.transaction() as tx:
            tx.write_edges(type_, links([*ids, ids[0]]))
        assert db.edges(ids[0], "both") == []


@pytest.mark.parametrize("type_", ACYCLIC)
def test_a_batch_that_closes_a_circle_with_what_is_there_is_refused(type_: str) -> None:
    with worlddb.open(":memory:") as db:
        ids = chain(db, 6)
        with db.transaction() as tx:
            assert tx.write_edges(type_, links(ids[:4])) == 3
        with pytest.raises(RejectedError, match="circle"), db.transaction() as tx:
            tx.write_edges(type_, links([ids[3], ids[4], ids[5], ids[1]]))


@pytest.mark.parametrize("type_", ACYCLIC)
@pytest.mark.parametrize("turned", [False, True])
def test_a_long_chain_costs_a_few_questions_a_link_in_either_order(
    type_: str, turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from worlddb.store.tables.edge_table import EdgeTable

    asked = 0
    ask = EdgeTable.edges_at

    def count(self: EdgeTable, *args: object, **kwargs: object) -> object:
        nonlocal asked
        asked += 1
        return ask(self, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(EdgeTable, "edges_at", count)
    with worlddb.open(":memory:") as db:
        ids = chain(db, 300)
        asked = 0
        with db.transaction() as tx:
            tx.write_edges(type_, links(ids[:150]))
        whole = asked
        with db.transaction() as tx:
            for draft in sorted(
                links(ids[149:]), key=lambda d: ids.index(Id(d.source)), reverse=turned
            ):
                tx.write_edge(type_, draft.source, draft.target)
        assert 0 < whole < 10
        assert asked - whole < 151 * 4


def test_an_effect_before_its_cause_is_refused_in_a_batch_too() -> None:
    with worlddb.open(":memory:") as db:
        with db.transaction() as tx:
            late = tx.create_node(type="Event", name="late", valid_from="2026-02-01T00:00:00Z")
            early = tx.create_node(type="Event", name="early", valid_from="2026-01-01T00:00:00Z")
            assert tx.write_edges("causes", [EdgeDraft(source=early.id, target=late.id)]) == 1
        turned = [EdgeDraft(source=late.id, target=early.id)]
        with pytest.raises(RejectedError, match="begins before"), db.transaction() as tx:
            tx.write_edges("precedes", turned)
