"""The values that come out: frozen, comparable, and plain JSON data on request."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, fields, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

import worlddb
from worlddb import NOW, AsOf, Draft, DraftNode, InvalidInputError, Proof, QuerySpec, WorldDB

AT = "2026-01-31T09:30:00+00:00"


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:") as db:
        with db.transaction(actor="me") as tx:
            world = tx.create_node(type="Topic", name="w", created_at=AT, aliases=["v"], source="s")
            first, second, *_ = (
                tx.create_node(type="Fact", name=f"n{number}", created_at=AT, parent=world.id).id
                for number in range(20)
            )
            tx.write_edge(
                "contradicts", first, second, metadata={"reason": "r", "deep": {"a": [1]}}
            )
            tx.write_edge("same_as", first, second, metadata={"score": 0.5, "x": [1, {"y": None}]})
            tx.write_edge("supersedes", second, first)
        yield db


def everything(db: WorldDB) -> list[Any]:
    found = db.query().include_superseded().execute()
    last = db.log()[-1]
    return [
        found,
        *found.nodes,
        *db.edges(found.nodes[0].id, "both"),
        *db.log(),
        *last.changes,
        db.diff(0, 1),
        *db.conflicts(),
        *db.proposals(),
        worlddb.Problem(place="here", message="what"),
    ]


def test_every_value_has_a_plain_json_form(db: WorldDB) -> None:
    for value in everything(db):
        data = value.to_dict()
        assert json.loads(json.dumps(data)) == data
        assert list(data) == [field.name for field in fields(value)]


def test_ids_and_times_are_text_in_the_json_form(db: WorldDB) -> None:
    node = db.children()[0]
    data = node.to_dict()
    assert data["id"] == str(node.id)
    assert data["created_at"] == "2026-01-31T09:30:00+00:00"
    assert data["aliases"] == ["v"]
    assert data["provenance"] == ["s"]
    assert data["valid_to"] is None


def test_a_value_cannot_be_changed(db: WorldDB) -> None:
    for value in everything(db):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            setattr(value, fields(value)[0].name, None)


def test_what_a_reader_does_with_an_edges_metadata_stays_with_that_reader(db: WorldDB) -> None:
    node = db.query().text("n0").include_superseded().execute().nodes[0]
    edge = next(edge for edge in db.edges(node.id, include_superseded=True) if edge.metadata)
    metadata: Any = edge.metadata
    metadata.clear()
    assert db.get_edge(edge.id).metadata


def test_values_are_made_as_their_fields_say() -> None:
    assert list(inspect.signature(DraftNode).parameters) == [one.name for one in fields(DraftNode)]
    one, other = (DraftNode(key="k", type="Entity") for _ in range(2))
    assert one == other == copy.copy(one)
    assert one.attributes == {}
    assert one.attributes is not other.attributes
    assert replace(one, name="Ada", spans=()) == DraftNode(key="k", type="Entity", name="Ada")
    with pytest.raises(TypeError, match="'type'"):
        DraftNode(key="k")  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match="no node of the draft"):
        Draft(aliases={"nobody": "N"})


def test_equal_values_are_equal_and_hash_alike(db: WorldDB) -> None:
    for one, other in zip(everything(db), everything(db), strict=True):
        assert one == other
        assert hash(one) == hash(other)


def test_a_proof_survives_json(db: WorldDB) -> None:
    for node in db.query().include_superseded().execute():
        proof = db.prove(node.id)
        again = Proof.from_dict(json.loads(json.dumps(proof.to_dict())))
        assert again == proof
        assert worlddb.verify_proof(again, db.root_state)
        assert worlddb.verify_proof(again.to_dict(), str(db.root_state))


def test_a_query_spec_survives_json(db: WorldDB) -> None:
    spec = QuerySpec(
        seeds=[str(db.children()[0].id)],
        steps=[
            {"op": "traverse", "types": ["contains"], "direction": "both", "hops": 2},
            {"op": "filter_type", "types": "Fact"},
            {"op": "filter_time", "start": AT},
            {
                "op": "where_connected",
                "type": "refers_to",
                "direction": "in",
                "id": str(db.root_id),
            },
        ],
        world=str(db.root_id),
        valid=AT,
        include_superseded=True,
        limit=3,
    )
    again = QuerySpec.from_dict(json.loads(json.dumps(spec.to_dict())))
    assert again.to_dict() == json.loads(json.dumps(spec.to_dict()))
    assert db.run(again) == db.run(spec)


def test_a_query_spec_of_ids_times_and_numbers_survives_json(db: WorldDB) -> None:
    node = db.children()[0].id
    noon = datetime(2030, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    spec = QuerySpec(
        seeds=(node,),
        vector=np.array([1, 0.5], dtype=np.float32),  # type: ignore[arg-type]
        steps=(
            {"op": "traverse", "types": {"refers_to", "contains"}, "direction": "both"},
            {"op": "filter_time", "end": noon},
            {"op": "where_connected", "type": "refers_to", "direction": "both", "id": node},
        ),
        world=db.root_id,
        valid=noon,
        known=noon,
    )
    plain = json.loads(json.dumps(spec.to_dict()))
    assert QuerySpec.from_dict(spec.to_dict()).to_dict() == spec.to_dict()
    assert (plain["seeds"], plain["world"]) == ([str(node)], str(db.root_id))
    assert plain["valid"] == plain["known"] == "2030-01-01T12:00:00+00:00"
    assert plain["steps"][1] == {"op": "filter_time", "end": plain["valid"]}
    assert plain["vector"] == [1.0, 0.5]
    assert plain["steps"][0]["types"] == ["contains", "refers_to"]
    assert QuerySpec.from_dict(plain).to_dict() == plain
    assert db.run(plain) == db.run(QuerySpec.from_dict(plain)) == db.run(spec)
    assert QuerySpec(seeds=bytes(node)).to_dict()["seeds"] == str(node)
    with pytest.raises(InvalidInputError, match="time zone"):
        QuerySpec(valid=noon.replace(tzinfo=None)).to_dict()


def test_a_query_is_run_from_a_plain_object_too(db: WorldDB) -> None:
    assert db.run({"text": "n5"}) == db.run(QuerySpec(text="n5"))
    assert len(db.run({"text": "n5"})) > 0
    for wrong in ({"texts": "n0"}, ["text"], "n0", None):
        with pytest.raises(InvalidInputError, match="quer"):
            db.run(wrong)  # type: ignore[arg-type]


def test_the_time_of_a_question_is_now_unless_it_says() -> None:
    assert AsOf() == NOW
    assert NOW.valid is None
    assert NOW.known is None


def test_a_problem_reads_as_a_line() -> None:
    assert str(worlddb.Problem(place="node ab", message="is gone")) == "node ab: is gone"
