"""A question can find a world: the whole as a hit of its own, with its summary."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import worlddb
from recall.search_stage import hold_at_most
from worlddb import Id, Memory, RecallSettings, WorldDB

TRIP = (
    "The ferry to Bergen leaves at noon.",
    "We hike along the fjord for three days.",
    "The cabin near Oslo has a sauna.",
)
TAXES = (
    "The refund was 300 euros.",
    "The accountant wants every receipt.",
    "The form is due in May.",
)


@pytest.fixture(params=[1 << 20, 0], ids=["held", "wide"])
def db(request: pytest.FixtureRequest) -> Iterator[WorldDB]:
    with worlddb.open(":memory:") as db:
        yield hold_at_most(db, request.param)


def topic(db: WorldDB, name: str, texts: tuple[str, ...]) -> Id:
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name=name).id
        for text in texts:
            tx.create_node(type="Fact", content=text, parent=world)
    return world


def test_a_topic_is_the_first_hit_when_the_whole_is_asked_for(db: WorldDB) -> None:
    trip, taxes = topic(db, "Norway trip", TRIP), topic(db, "Tax return", TAXES)
    assert db.recall("our trip to Norway")[0].node.id == trip
    assert db.recall("the tax return")[0].node.id == taxes
    # One of its texts is asked for: the text is first, and the topic does not push it away.
    assert db.recall("When does the ferry to Bergen leave?")[0].node.content == TRIP[0]
    off = db.recall("our trip to Norway", settings=RecallSettings(worlds=False))
    assert trip not in {hit.node.id for hit in off}


def test_a_world_hit_brings_its_summary_while_that_holds(db: WorldDB) -> None:
    trip = topic(db, "Norway trip", TRIP)
    topic(db, "Tax return", TAXES)
    assert db.recall("our trip to Norway")[0].summary is None
    db.consolidate()
    hit = next(hit for hit in db.recall("our trip to Norway") if hit.node.id == trip)
    assert hit.summary is not None
    assert "ferry" in hit.summary.content
    assert "ferry" in hit.text
    assert hit.tokens > len(hit.node.name) // 4
    assert not db.recall("our trip to Norway", max_tokens=2).hits
    with db.transaction() as tx:
        old = next(node for node in db.children(trip) if "ferry" in node.content)
        new = tx.create_node(type="Fact", content="The ferry leaves at nine.", parent=trip)
        tx.write_edge("supersedes", new.id, old.id)
    again = next(hit for hit in db.recall("our trip to Norway") if hit.node.id == trip)
    assert again.summary is None


def test_members_count_and_what_was_born_ended_does_not(db: WorldDB) -> None:
    other = topic(db, "Mixed", TRIP)
    with db.transaction() as tx:
        album = tx.create_node(type="Topic", name="Album").id
        for node in db.children(other):
            tx.write_edge("contains", album, node.id)
        ended = tx.create_node(type="Topic", name="Old things").id
        for text in TAXES:
            tx.create_node(
                type="Fact",
                content=text,
                parent=ended,
                created_at="2019-01-01T00:00:00Z",
                valid_to="2020-01-01T00:00:00Z",
            )
    db.consolidate()
    found = {hit.node.id for hit in db.recall("hiking and ferries in Norway, cabin, fjord", k=20)}
    assert album in found
    assert ended not in {hit.node.id for hit in db.recall("refund, accountant and form", k=20)}


def test_a_world_that_gets_its_members_later_is_a_hit_from_then_on(db: WorldDB) -> None:
    other, question = topic(db, "Mixed", TRIP), "our trip to Norway"
    with db.transaction() as tx:
        trip = tx.create_node(type="Topic", name="Norway trip").id
    assert trip not in {hit.node.id for hit in db.recall(question)}
    with db.transaction() as tx:
        for node in db.children(other):
            tx.write_edge("contains", trip, node.id)
    assert trip in {hit.node.id for hit in db.recall(question)}


def test_a_world_out_of_sight_is_no_hit(db: WorldDB) -> None:
    with db.transaction() as tx:
        mine = tx.create_node(type="Scope", name="mine").id
    trip = topic(db, "Norway trip", TRIP)
    with db.transaction() as tx:
        for node in db.children(trip):
            tx.write_edge("contains", mine, node.id)
    found = db.recall("our trip to Norway", scope=mine)
    assert {hit.node.content for hit in found} == set(TRIP)
    with db.transaction() as tx:
        tx.retire(trip)
    assert trip not in {hit.node.id for hit in db.recall("our trip to Norway")}


def test_a_session_is_found_by_what_was_said_in_it() -> None:
    with Memory(":memory:", user_id="ada") as memory:
        talks = {
            name: memory.write(messages=[{"role": "user", "content": text} for text in texts]).id
            for name, texts in {
                "trip": TRIP,
                "taxes": TAXES,
            }.items()
        }
        # Without a summary, a session says no more than its turns.
        before = memory.recall("ferry, fjord and cabin in Norway", k=10)
        assert talks["trip"] not in {hit.node.id for hit in before}
        memory.db.consolidate()
        hits = {hit.node.id: hit for hit in memory.recall("ferry, fjord and cabin in Norway", k=10)}
        assert talks["trip"] in hits
        summary = hits[talks["trip"]].summary
        assert summary is not None
        assert "sauna" in summary.content
        assert talks["taxes"] not in hits
        asked = memory.recall("When does the ferry to Bergen leave?")
        assert talks["trip"] not in {hit.node.id for hit in asked}
