"""The field index says of every row what the filter says of the node, at every known time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import worlddb
from worlddb.index.field_index import FieldIndex
from worlddb.model.conditions import condition_of, matches

FILTERS: list[dict[str, Any]] = [
    {"p": "x"},
    {"p": {"$ne": "x"}},
    {"n": {"$gte": 2}},
    {"n": {"$in": [1, None]}},
    {"t": {"$contains": "a"}},
    {"o.k": 1},
    {"o": {"$exists": False}},
    {"$or": [{"p": "y"}, {"t": "b"}]},
    {"$not": {"$and": [{"p": "x"}, {"n": {"$lt": 3}}]}},
    {"type": "Note", "n": 1},
    {"source": {"$contains": "f"}},
    {"valid_to": {"$exists": True}},
    {"$not": {"valid_to": {"$exists": True}}, "p": "x"},
    {"known_from": {"$gt": "2020-01-01"}, "p": {"$exists": True}},
    {"valid_from": {"$lt": "2026-01-01"}},
]


def some_metadata(chance: random.Random) -> dict[str, Any]:
    whole = {
        "p": chance.choice(["x", "y", 1, True]),
        "n": chance.choice([0, 1, 2.0, 3, "2"]),
        "t": chance.sample(["a", "b", "ab"], chance.randrange(3)),
        "o": chance.choice([{"k": 1}, {"k": {"z": 2}}, 5]),
    }
    return {key: whole[key] for key in chance.sample(sorted(whole), chance.randrange(1, 5))}


def test_the_index_agrees_with_the_filter_on_every_node_at_every_commit() -> None:
    chance = random.Random(19)
    index = FieldIndex()
    with worlddb.open(":memory:", embedder="none") as db:
        ids = []
        for number in range(60):
            with db.transaction(actor="t") as tx:
                for _ in range(2):
                    made = tx.create_node(
                        type=chance.choice(["Note", "Memory"]),
                        content=str(number),
                        source=chance.choice([None, "f", "g"]),
                        created_at=f"20{chance.randrange(20, 30)}-01-01T00:00:00Z",
                        valid_to=chance.choice([None, "2031-01-01T00:00:00Z"]),
                    )
                    ids.append(made.id)
                tx.add_metadata(chance.choice(ids), some_metadata(chance))
            if number % 15 == 14:
                compare(db, index, [number, None])
        compare(db, index, [0, 7, 31, None])
        db.erase(ids[5])
        compare(db, index, [None])


def compare(db: worlddb.WorldDB, index: FieldIndex, commits: list[int | None]) -> None:
    with db.engine.store.read() as reader:
        rows = np.arange(2, reader.head().nodes + 1)
        for known in commits:
            nodes = reader.nodes(rows.tolist(), known)
            for where in FILTERS:
                condition = condition_of(where)
                found = index.row_filter(reader, condition, known)
                wanted = {row for row, node in nodes.items() if matches(node, condition)}
                assert found.keep(nodes) == wanted, (where, known)
                few = found.few(10_000)
                assert few is not None
                assert set(few) & nodes.keys() == wanted
                assert not wanted or found.few(0) is None


def test_the_index_follows_another_process_and_an_older_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    index = FieldIndex()
    condition = condition_of({"p": "x"})
    with worlddb.open(path, embedder="none") as one, worlddb.open(path, embedder="none") as two:
        with one.transaction(actor="t") as tx:
            first = tx.create_node(type="Note", content="1")
            tx.add_metadata(first.id, {"p": "x"})
        with one.engine.store.snapshot() as before:
            with two.transaction(actor="t") as tx:
                second = tx.create_node(type="Note", content="2")
                tx.add_metadata(second.id, {"p": "x"})
                tx.add_metadata(first.id, {"p": "y"})
            with one.engine.store.snapshot() as after:
                assert index.row_filter(after, condition, None).few(9) == [3]
            assert index.row_filter(before, condition, None).few(9) == [2]
