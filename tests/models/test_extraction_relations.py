"""Relations that a model reads in a text: edges of their types, or a reason why there is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import worlddb
from worlddb import LlmExtractor, Memory, WorldDB
from worlddb.ingest.ingestion import Ingested
from worlddb.model.records import RELATION_TYPES

from .server import chat_at, in_turn, serving

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
STORM = "The storm caused the flood. The flood came after the storm."


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:", embedder="hash") as opened:
        yield opened
        assert opened.check() == []


def relation(type: str, source: str, target: str, quote: str) -> dict[str, Any]:
    return {"type": type, "source": source, "target": target, "message": 0, "quote": quote}


def told(db: WorldDB, text: str, *relations: Any, facts: tuple[Any, ...] = ()) -> Ingested:
    """Return what became of a text of which a model behind an endpoint tells relations."""
    reply = json.dumps({"facts": list(facts), "relations": list(relations)})
    with serving(in_turn(reply)) as server:
        done = db.ingest(text, extractor=LlmExtractor(chat_at(server)), at=NOON, recluster="off")
    schema = json.dumps(server.seen[0].data)
    assert all(type in schema for type in RELATION_TYPES)
    return done


def written(db: WorldDB) -> set[tuple[str, str, str]]:
    """Return the relations in the store, by what the ends are called."""
    ids = {
        node.id for type in ("Entity", "Fact") for node in db.query().filter_type(type).execute()
    }
    found = [edge for ident in ids for edge in db.edges(ident, types=RELATION_TYPES)]
    assert all(edge.valid_from == NOON for edge in found)
    return {(_called(db, edge.source), edge.type, _called(db, edge.target)) for edge in found}


def _called(db: WorldDB, ident: Any) -> str:
    node = db.get(ident)
    return node.name or node.content


@pytest.mark.parametrize("type", RELATION_TYPES)
def test_each_type_is_an_edge_since_the_text_was_said(db: WorldDB, type: str) -> None:
    done = told(db, STORM, relation(type, "the storm", "the flood", "storm caused the flood"))
    assert done.left_out == ()
    assert written(db) == {("the storm", type, "the flood")}
    (conflict,) = db.conflicts() if type == "contradicts" else (None,)
    assert (conflict is not None) == (type == "contradicts")


def test_facts_are_related_by_their_texts(db: WorldDB) -> None:
    facts = ("It rained all night.", "The match was called off.")
    text = "It rained all night, so the match was called off."
    done = told(db, text, relation("causes", facts[0], facts[1].upper(), text), facts=facts)
    assert done.left_out == ()
    assert written(db) == {(facts[0], "causes", facts[1])}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (relation("eats", "the storm", "the flood", STORM), "no such type of relation; use one of"),
        (relation("causes", "the storm", "the drought", STORM), "must be entities or facts"),
        (relation("causes", "the storm", "The Storm", STORM), "both ends are the same"),
        (relation("causes", "the storm", "the flood", "storms cause it"), "quote does not stand"),
        (relation("causes", "the storm", "the flood", ""), "quote does not stand"),
    ],
)
def test_what_the_text_does_not_say_is_left_out_and_told(
    db: WorldDB, given: dict[str, Any], reason: str
) -> None:
    done = told(db, STORM, given, relation("precedes", "the storm", "the flood", "the storm"))
    assert [reason in one for one in done.left_out] == [True]
    assert given["source"] in done.left_out[0]
    assert done.pending is None
    assert written(db) == {("the storm", "precedes", "the flood")}


def test_what_is_denied_is_no_relation(db: WorldDB) -> None:
    text = "The storm did not cause the flood."
    done = told(db, text, relation("causes", "the storm", "the flood", text))
    assert "denies" in done.left_out[0]
    assert written(db) == set()


@pytest.mark.parametrize("junk", [None, 7, "causes", [1, None, {}, {"type": "causes"}, ["x"]]])
def test_other_shapes_are_dropped(db: WorldDB, junk: Any) -> None:
    reply = json.dumps({"facts": ["It rained."], "relations": junk})
    done = db.ingest("It rained.", extractor=LlmExtractor(lambda asked: reply), at=NOON)
    assert (done.pending, done.left_out) == (None, ())


def test_a_refused_relation_never_loses_the_text(db: WorldDB) -> None:
    facts = (
        {"text": "Rain fell.", "date": "2026-05-10"},
        {"text": "Roads closed.", "date": "2026-05-01"},
    )
    text = "Roads closed. Rain fell."
    done = told(
        db,
        text,
        relation("causes", "Rain fell.", "Roads closed.", "Rain fell"),
        relation("implies", "Rain fell.", "Roads closed.", "Rain fell"),
        relation("implies", "Roads closed.", "Rain fell.", "Rain fell"),
        facts=facts,
    )
    assert db.get(done.memories[0]).content == text
    assert written(db) == {("Rain fell.", "implies", "Roads closed.")}
    assert len(done.left_out) == 2
    assert "the target begins before the source" in done.left_out[0]
    assert "circle" in done.left_out[1]


def test_a_circle_over_two_texts_is_told_by_the_memory_and_the_queue(db: WorldDB) -> None:
    replies = {
        "Dogs are pets.": relation("subtype_of", "dogs", "pets", "Dogs are pets"),
        "Pets are dogs.": relation("subtype_of", "pets", "dogs", "Pets are dogs"),
    }

    def model(messages: list[dict[str, str]]) -> str:
        said = messages[-1]["content"]
        found = [item for text, item in replies.items() if text in said]
        return json.dumps({"facts": [], "relations": found})

    def down(messages: list[dict[str, str]]) -> str:
        raise ConnectionError("down")

    memory = Memory(db, extractor=LlmExtractor(model))
    first, second = (memory.write(text, user_id="ada", at=NOON) for text in replies)
    assert first.left_out == ()
    assert "circle" in second.left_out[0]
    assert memory.read(second.id).text == "Pets are dogs."
    texts = list(replies)
    Memory(db, extractor=LlmExtractor(down)).write(texts[0], user_id="ben", at=NOON)
    Memory(db, extractor=LlmExtractor(down)).write(texts[1], user_id="ben", at=NOON)
    ran = db.extract_pending(LlmExtractor(model))
    assert (len(ran.done), ran.left, ["circle" in one for one in ran.left_out]) == (2, 0, [True])
