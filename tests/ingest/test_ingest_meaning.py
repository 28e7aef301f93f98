"""Names compared by their vectors: when the neighbourhood is looked at again, and never before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import worlddb
from worlddb import Id, Ingested, ResolverSettings, WorldDB
from worlddb.embed.embedder import Vectors
from worlddb.identity import store_resolver as meaning

CITY = ("NYC", "New York City", "the Big Apple", "Ann Smith")


class Gazetteer:
    """An embedder for tests that knows one city by all its names, and a woman of that name."""

    model_id = "gazetteer"
    dim = 16

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.asked += 1
        if self.fails:
            raise OSError("the line is dead")
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text.removesuffix(": home") in CITY:
                row[0] = 1.0
            row[1 + sum(map(ord, text)) % (self.dim - 1)] += 0.2
        return rows

    embed_queries = embed_documents


@pytest.fixture
def embedder() -> Gazetteer:
    return Gazetteer()


@pytest.fixture
def db(embedder: Gazetteer) -> WorldDB:
    return worlddb.open(":memory:", embedder=embedder)


def searched(db: WorldDB) -> WorldDB:
    """Search once, as somebody who uses the store does."""
    db.recall("anything")
    return db


def entity(db: WorldDB, name: str, **fields: Any) -> Id:
    with db.transaction() as tx:
        return tx.create_node(**{"type": "Entity", "name": name, **fields}).id


def mention(db: WorldDB, name: str, **options: Any) -> Ingested:
    return db.ingest(f"I was in {name} today.", **{"recluster": "now", **options})


def proposed(db: WorldDB) -> list[tuple[str, str, str]]:
    found = []
    for item in db.proposals():
        low, high = sorted((db.get(item.left).name, db.get(item.right).name))
        found.append((item.tier, low, high))
    return found


def test_other_words_for_one_thing_are_proposed(db: WorldDB) -> None:
    entity(db, "New York City")
    entity(db, "Boston")
    told = mention(searched(db), "NYC")
    assert told.proposals == ()
    assert proposed(db) == [("embedding", "NYC", "New York City")]
    assert db.proposals()[0].evidence["compared"] == ["NYC", "New York City"]


def test_a_pair_is_proposed_once(db: WorldDB) -> None:
    entity(db, "New York City")
    mention(searched(db), "NYC")
    (proposal,) = db.proposals()
    db.reject_merge(proposal.edge)
    db.ingest("NYC was cold and I liked NYC.", recluster="now")
    assert db.proposals() == []


def test_writing_never_asks_an_embedder(db: WorldDB, embedder: Gazetteer) -> None:
    entity(db, "New York City")
    mention(db, "NYC")
    assert embedder.asked == 0
    assert proposed(db) == []
    before = searched(db) and embedder.asked
    mention(db, "Chicago", recluster="off")
    assert embedder.asked == before


def test_what_has_content_is_not_compared_by_it(db: WorldDB) -> None:
    entity(db, "New York City", content="home")
    mention(searched(db), "NYC")
    assert proposed(db) == []


def test_a_person_is_never_recognised_by_a_vector(db: WorldDB) -> None:
    entity(db, "Ann Smith")
    mention(searched(db), "NYC")
    assert proposed(db) == []


def test_only_the_same_world_is_looked_at(db: WorldDB) -> None:
    one, other = (entity(db, name, type="Scope") for name in ("anna", "ben"))
    entity(db, "New York City", parent=one)
    mention(searched(db), "NYC", world=other)
    assert proposed(db) == []
    mention(db, "NYC", world=one)
    assert proposed(db) == [("embedding", "NYC", "New York City")]


def test_the_tier_can_be_switched_off(db: WorldDB, embedder: Gazetteer) -> None:
    entity(db, "New York City")
    before = searched(db) and embedder.asked
    letters = ResolverSettings(tiers=frozenset({"exact", "fuzzy", "phonetic"}))
    mention(db, "NYC", resolver=letters)
    assert (proposed(db), embedder.asked) == ([], before)


def test_an_embedder_that_fails_stops_nothing(db: WorldDB, embedder: Gazetteer) -> None:
    entity(db, "New York City")
    entity(searched(db), "Jonathon Smyth")
    embedder.fails = True
    told = db.ingest("I met Jonathan Smyth in NYC.", recluster="later")
    assert db.wait(60)
    assert told.commit is not None
    assert [seen.error for seen in db.reclustered] == [None]
    assert ("fuzzy", "Jonathan Smyth", "Jonathon Smyth") in proposed(db)


def test_where_many_wait_for_their_vectors_the_tier_stands_aside(
    db: WorldDB, embedder: Gazetteer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "BEHIND_MAX", 3)
    entity(db, "New York City")
    before = searched(db) and embedder.asked
    for name in ("Boston", "Chicago", "Denver"):
        entity(db, name)
    mention(db, "NYC")
    assert (proposed(db), embedder.asked) == ([], before)
    (nyc,) = (node.id for node in db.query().filter_type("Entity").execute() if node.name == "NYC")
    searched(db).recluster([nyc])
    assert proposed(db) == [("embedding", "NYC", "New York City")]


def test_without_an_embedder_everything_else_works() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        entity(db, "Jonathon Smyth")
        db.ingest("I met Jonathan Smyth in NYC.", recluster="now")
        assert ("fuzzy", "Jonathan Smyth", "Jonathon Smyth") in proposed(db)
