"""Edges by the order they were written: a range of them, of all types or of some."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import worlddb
from worlddb import WorldDB


@pytest.fixture
def db(tmp_path: Path) -> Iterator[WorldDB]:
    with worlddb.open(tmp_path / "a.db", durability="normal", embedder="none") as opened:
        yield opened


def test_a_range_of_edges_can_be_had_by_type_and_as_of_a_commit(db: WorldDB) -> None:
    with db.transaction() as tx:
        world, *nodes = (tx.create_node(type="Topic", name=name).id for name in "wabc")
        kept = [tx.write_edge("refers_to", nodes[0], node) for node in nodes[1:]]
        member = tx.write_edge("contains", world, nodes[0])
    with db.transaction() as tx:
        later = tx.write_edge("precedes", nodes[1], nodes[2])
        tx.delete_edge(kept[0].id)
    with db.engine.store.read() as reader:
        last, before = reader.head().edges, reader.head().seq - 1

        def between(*given: int, **options: object) -> list[worlddb.Id]:
            return [item.edge.id for item in reader.edges_between(*given, **options)]  # type: ignore[arg-type]

        everything = [edge.id for edge in (*kept, member, later)]
        assert between(1, last) == everything
        assert between(2, last - 1) == everything[1:-1]
        assert between(1, last, types=["contains"]) == [member.id]
        assert between(1, last, types=["contains", "precedes"]) == [member.id, later.id]
        assert between(1, last, types=["precedes"], known=before) == []
        assert between(1, last, types=["refers_to"], known=before) == [edge.id for edge in kept]
        assert between(1, last, types=[]) == []
