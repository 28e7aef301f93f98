"""A failing model never loses the write: what it should have read waits, and is read later."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import InvalidInputError, Message, ProviderError, WorldDB
from worlddb.embed.json_client import CircuitBreaker
from worlddb.model.address import ROOT_ID
from worlddb.model.records import Draft
from worlddb.models.model_tasks import LlmExtractor, LlmTiebreaker

from .server import Answer, Fault, Seen, chat_at, in_turn, serving

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
TOLD = json.dumps(
    {
        "summary": "On 2026-05-20 they moved.",
        "entities": [{"name": "Rachel Adams", "kind": "person", "aliases": []}],
        "facts": [
            {
                "text": "On 2026-05-13, Rachel Adams moved to Oslo.",
                "subject": "Rachel Adams",
                "about": ["Oslo"],
                "date": "2026-05-13",
                "quote": "Rachel Adams moved to Oslo",
                "relation": "lives in",
                "value": "Oslo",
                "functional": True,
            }
        ],
    }
)
TEXT = "Rachel Adams moved to Oslo last week."
CHAT = [
    {"role": "user", "content": TEXT},
    {"role": "assistant", "content": "How nice!"},
    {"role": "user", "content": "ok"},
]


def down(messages: list[dict[str, str]]) -> str:
    raise ProviderError("the model is down")


def up(messages: list[dict[str, str]]) -> str:
    return TOLD


DOWN, UP = LlmExtractor(down), LlmExtractor(up)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[WorldDB]:
    path = tmp_path / "a.db"
    with worlddb.open(path, durability="normal", embedder="hash", busy_timeout_s=60) as opened:
        yield opened
        assert opened.check() == []


def contents(db: WorldDB, type: str) -> list[str]:
    return [node.content for node in db.query().filter_type(type).execute()]


# -- a model that works ----------------------------------------------------------------------------


def test_what_a_model_reads_is_written_and_found_again(db: WorldDB) -> None:
    told = db.ingest(CHAT, extractor=UP, at=NOON, source="chat 1", recluster="now")
    assert told.pending is None
    assert db.pending() == []
    session = db.get(told.memories[0])
    assert [node.type for node in db.children(session.id)] == [
        *("Turn", "Turn", "Turn", "Summary", "Fact")
    ]
    fact = db.children(session.id)[-1]
    assert fact.valid_from == datetime(2026, 5, 13, tzinfo=UTC)
    assert fact.provenance == ("chat 1",)
    (to_rachel, to_oslo) = db.edges(fact.id, types=["refers_to"])
    assert db.get(to_rachel.target).name == "Rachel Adams"
    assert to_rachel.metadata["value"] == "Oslo"
    assert db.get(to_oslo.target).name == "Oslo"
    hits = db.recall("Where does Rachel Adams live?", k=3)
    assert fact.content in [hit.node.content for hit in hits]


def test_the_same_chat_again_is_the_same_and_names_are_used_again(db: WorldDB) -> None:
    first = db.ingest(CHAT, extractor=UP, at=NOON, recluster="now")
    again = db.ingest(CHAT, extractor=UP, at=NOON, recluster="now")
    assert again.created == ()
    assert again.memories == first.memories
    other = db.ingest(TEXT, extractor=UP, at=NOON, recluster="now")
    names = {db.get(ident).name for ident in other.reused}
    assert names == {"Rachel Adams", "Oslo"}


# -- a model that fails ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, headers={"Retry-After": "0"}),
        Fault(500),
        Fault(late=True),
        Fault(body=b'{"choices": [{"message"', cut=5),
        Fault(body=b"<html>busy</html>"),
        Fault(reset=True),
        Fault(401),
        "I am sorry, I cannot help with that.",
    ],
)
def test_the_text_is_stored_verbatim_and_queued_whatever_the_endpoint_does(
    db: WorldDB, fault: Answer
) -> None:
    with serving(in_turn(fault)) as server:
        # A server that says nothing is not waited for; one that is slow is.
        late = isinstance(fault, Fault) and fault.late
        chat = chat_at(server, retries_max=1, **({"timeout_s": 0.2} if late else {}))
        told = db.ingest(TEXT, extractor=LlmExtractor(chat), at=NOON, actor="me", source="s")
    assert told.pending
    assert told.commit is not None
    assert told.commit.actor == "me"
    node = db.get(told.memories[0])
    assert (node.type, node.content, node.valid_from) == ("Memory", TEXT, NOON)
    (waits,) = db.pending()
    assert (waits.id, waits.extractor, waits.attempts) == (node.id, "llm:m", 1)
    assert waits.error == told.pending
    assert [hit.node.id for hit in db.recall("Who moved to Oslo?", k=1)] == [node.id]


def test_writes_do_not_wait_for_an_endpoint_that_has_just_failed(
    db: WorldDB, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    faults = [Fault(503)] * 4
    with serving(in_turn(*faults, TOLD)) as server:
        chat = chat_at(server, retries_max=2)
        chat._breaker = CircuitBreaker(chat.name, 30.0, clock=lambda: now)
        extractor = LlmExtractor(chat)

        def pending(text: str) -> str | None:
            return db.ingest(text, extractor=extractor, at=NOON).pending

        assert "tried 3 times" in str(pending("One."))
        assert len(server.seen) == 3
        for text in ("Two.", "Three."):
            assert str(pending(text)).startswith("not asked, because it failed shortly before: ")
        assert len(server.seen) == 3
        now = 31.0  # One asks for all, and once; the others still go on without.
        assert "(tried once)" in str(pending("Four."))
        assert str(pending("Five.")).startswith("not asked")
        assert len(server.seen) == 4
        now = 62.0
        assert pending(TEXT) is None
        assert pending("It answers again.") is None
        assert len(server.seen) == 6
        assert [item.attempts for item in db.pending()] == [0, 0, 0, 1, 1]
        assert [record.name for record in caplog.records] == ["worlddb.embed.json_client"] * 2
        assert len(db.extract_pending(extractor).done) == 5


def test_while_writes_go_on_without_it_an_endpoint_can_be_asked_outright(db: WorldDB) -> None:
    with serving(in_turn(Fault(503), TOLD)) as server:
        extractor = LlmExtractor(chat_at(server, retries_max=0))
        assert db.ingest(TEXT, extractor=extractor, at=NOON).pending
        assert extractor.resting()
        assert len(db.extract_pending(extractor).done) == 1
        assert extractor.resting() is None


@pytest.mark.parametrize("fault", [Fault(401), Fault(body=b"<html>busy</html>"), "no JSON"])
def test_an_endpoint_that_answered_is_asked_again_at_the_next_write(
    db: WorldDB, fault: Answer
) -> None:
    with serving(in_turn(fault)) as server:
        extractor = LlmExtractor(chat_at(server, retries_max=0))
        for text in ("One.", "Two."):
            assert db.ingest(text, extractor=extractor, at=NOON).pending
            assert extractor.resting() is None
    assert [item.attempts for item in db.pending()] == [1, 1]


def test_an_endpoint_that_refuses_is_no_longer_down(db: WorldDB) -> None:
    with serving(in_turn(Fault(503), Fault(401))) as server:
        extractor = LlmExtractor(chat_at(server, retries_max=0))
        assert db.ingest(TEXT, extractor=extractor, at=NOON).pending
        assert extractor.resting()
        assert len(db.extract_pending(extractor).failed) == 1
        assert extractor.resting() is None


def test_one_asks_for_all_and_the_others_go_on_without_until_it_has() -> None:
    now = 0.0
    breaker = CircuitBreaker("chat", 30.0, clock=lambda: now)
    breaker.failed("busy")
    now = 31.0
    assert breaker.reason() is None
    assert breaker.is_probe
    assert str(breaker.reason()).endswith("busy")
    now = 62.0
    assert breaker.reason() is None, "who was to ask never came back"
    breaker.answered()
    assert not breaker.is_probe
    assert breaker.reason() is None


def test_without_a_rest_every_write_asks(db: WorldDB) -> None:
    with serving(in_turn(Fault(503))) as server:
        extractor = LlmExtractor(chat_at(server, retries_max=0, rest_s=0))
        for text in ("One.", "Two."):
            assert db.ingest(text, extractor=extractor, at=NOON).pending
    assert len(server.seen) == 2


def test_a_tiebreaker_does_not_wait_for_an_endpoint_that_has_just_failed(db: WorldDB) -> None:
    with db.transaction() as tx:
        for _ in range(2):
            tx.create_node(type="Entity", name="Rachel Adams")
    with serving(in_turn(Fault(503))) as server:
        chat = chat_at(server, retries_max=0)
        breaker = LlmTiebreaker(chat)
        for number in range(2):
            db.ingest(f"{TEXT} Really, {number}!", tiebreaker=breaker, at=NOON)
    assert len(server.seen) == 1
    assert len(breaker.errors) == 2
    assert breaker.errors[1].startswith("not asked")


def test_what_waits_is_extracted_later_as_if_the_model_had_worked(tmp_path: Path) -> None:
    lists = []
    for number, first in enumerate((UP, DOWN)):
        with worlddb.open(tmp_path / f"{number}.db", embedder="hash") as db:
            with db.transaction() as tx:
                world = tx.create_node(type="Scope", name="anna", created_at=NOON).id
            for given in (CHAT, TEXT):
                db.ingest(given, world=world, extractor=first, at=NOON, source="x", recluster="off")
            done = db.extract_pending(UP, recluster="off")
            assert len(done.done) == 2 * number
            assert (done.failed, done.left, db.pending()) == ((), 0, [])
            found = [node for node in db.query().in_world(world).execute() if node.type != "Entity"]
            lists.append(sorted((node.type, node.content, node.provenance) for node in found))
            names = sorted(node.name for node in db.query().filter_type("Entity").execute())
            assert names == ["Oslo", "Rachel Adams"]
            assert db.log(newest_first=True)[0].actor == ("extract" if number else "unknown")
            assert db.check() == []
    assert lists[0] == lists[1]


def test_the_turns_that_are_there_are_used_and_none_is_written_twice(db: WorldDB) -> None:
    told = db.ingest(CHAT, extractor=DOWN, at=NOON)
    db.extract_pending(UP)
    turns = db.query().filter_type("Turn").execute()
    assert {turn.id for turn in turns} == set(told.memories[1:])
    (fact,) = db.query().filter_type("Fact").execute()
    (derived,) = db.edges(fact.id, types=["derived_from"])
    assert derived.target == told.memories[1]


def test_the_fallback_may_be_the_rules(db: WorldDB) -> None:
    db.ingest(TEXT, extractor=LlmExtractor(down, fallback="rules"), at=NOON, recluster="now")
    names = {node.name for node in db.query().filter_type("Entity").execute()}
    assert {"Rachel Adams", "Oslo"} <= names
    assert len(db.pending()) == 1
    db.extract_pending(UP)
    assert {node.name for node in db.query().filter_type("Entity").execute()} == names
    assert contents(db, "Fact") == ["On 2026-05-13, Rachel Adams moved to Oslo."]


def test_any_extractor_whose_model_fails_is_queued(db: WorldDB) -> None:
    class Mine:
        name = "mine"

        def extract(self, messages: Any, at: datetime) -> Draft:
            raise ProviderError("no")

    told = db.ingest(TEXT, extractor=Mine(), at=NOON)
    assert [(item.id, item.extractor) for item in db.pending()] == [(told.memories[0], "mine")]


def test_what_is_ingested_twice_waits_once(db: WorldDB) -> None:
    for number in range(3):
        extractor = LlmExtractor(lambda said: "no" * (number + 1))  # noqa: B023
        db.ingest(TEXT, extractor=extractor, at=NOON, source=f"chat {number}")
    assert len(db.pending()) == 1
    assert len(db.extract_pending(UP).done) == 1
    assert db.pending() == []
    assert len(contents(db, "Fact")) == 1


def test_a_failure_goes_to_the_end_of_the_queue_and_the_others_are_done(db: WorldDB) -> None:
    for name in ("bad one", "second", "third"):
        db.ingest(f"This is the {name}.", extractor=DOWN, at=NOON)

    def picky(messages: list[dict[str, str]]) -> str:
        return "no" if "bad one" in messages[1]["content"] else '{"facts": []}'

    done = db.extract_pending(LlmExtractor(picky))
    assert (len(done.done), len(done.failed), done.left) == (2, 1, 1)
    assert "no JSON" in done.failed[0].error
    db.ingest("This is the fourth.", extractor=DOWN, at=NOON)
    waiting = db.pending()
    assert [(db.get(item.id).content, item.attempts) for item in waiting] == [
        ("This is the fourth.", 1),
        ("This is the bad one.", 2),
    ]


def test_a_model_that_is_down_ends_the_run_soon_and_nothing_is_lost(db: WorldDB) -> None:
    for number in range(6):
        db.ingest(f"Note number {number}.", extractor=DOWN, at=NOON)
    done = db.extract_pending(DOWN)
    assert (len(done.done), len(done.failed), done.left) == (0, 3, 6)
    seen: list[tuple[int, int]] = []
    done = db.extract_pending(UP, limit=4, on_progress=lambda *now: seen.append(now))
    assert (len(done.done), done.left) == (4, 2)
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
    with pytest.raises(InvalidInputError, match="limit"):
        db.extract_pending(UP, limit=0)


def test_what_was_retired_meanwhile_only_leaves_the_queue(db: WorldDB) -> None:
    told = db.ingest(TEXT, extractor=DOWN, at=NOON)
    with db.transaction() as tx:
        tx.retire(told.memories[0])
    done = db.extract_pending(UP)
    assert (done.dropped, done.done, done.left) == (told.memories, (), 0)
    assert contents(db, "Fact") == []


def test_of_a_session_with_one_turn_left_that_turn_is_extracted(db: WorldDB) -> None:
    told = db.ingest(CHAT, extractor=DOWN, at=NOON)
    with db.transaction() as tx:
        for turn in told.memories[2:]:
            tx.retire(turn)
    db.extract_pending(UP)
    (fact,) = db.query().filter_type("Fact").execute()
    (derived,) = db.edges(fact.id, types=["derived_from"])
    assert derived.target == told.memories[1]
    assert contents(db, "Memory") == []


def test_what_somebody_else_extracted_meanwhile_is_left_alone(db: WorldDB) -> None:
    db.ingest(TEXT, extractor=DOWN, at=NOON)

    def slow(messages: list[dict[str, str]]) -> str:
        db.extract_pending(UP)
        return TOLD.replace("moved to", "travelled to")

    done = db.extract_pending(LlmExtractor(slow))
    assert (done.done, done.failed, done.left) == ((), (), 0)
    assert contents(db, "Fact") == ["On 2026-05-13, Rachel Adams moved to Oslo."]


def test_facts_are_members_of_the_worlds_that_their_memory_is_a_member_of(db: WorldDB) -> None:
    with db.transaction() as tx:
        home, other = (tx.create_node(type="Scope", name=name).id for name in ("anna", "work"))
    told = db.ingest(TEXT, world=home, extractor=DOWN, at=NOON)
    with db.transaction() as tx:
        tx.write_edge("contains", other, told.memories[0])
    db.extract_pending(UP)
    seen = {node.type for node in db.query().in_world(other).execute()}
    assert seen == {"Memory", "Fact", "Summary", "Entity"}


def test_the_queue_survives_and_is_no_part_of_what_is_remembered(tmp_path: Path) -> None:
    with worlddb.open(tmp_path / "q.db", embedder="hash") as db:
        told = db.ingest(TEXT, extractor=DOWN, at=NOON)
        lines = list(db.export())
    with worlddb.open(tmp_path / "q.db", embedder="hash") as db:
        assert [item.id for item in db.pending()] == [told.memories[0]]
        assert [node.id for node in db.query().execute()] == [told.memories[0]]
        assert db.edges(told.memories[0]) == []
        assert len(db.edges(ROOT_ID)) == 1
    with worlddb.open(tmp_path / "copy.db", embedder="hash") as copy:
        copy.replay(lines)
        assert [item.id for item in copy.pending()] == [told.memories[0]]
        assert len(copy.extract_pending(UP).done) == 1
        assert copy.check() == []


# -- where models are asked, and where not ---------------------------------------------------------


def test_the_write_lock_is_free_while_a_model_is_asked(db: WorldDB) -> None:
    def write() -> None:
        with db.transaction(actor="somebody else") as tx:
            tx.create_node(type="Fact", content=f"written meanwhile {len(written)}")
        written.append(threading.get_ident())

    written: list[int] = []

    def model(seen: Seen) -> Answer:
        write()  # In a thread of the server's; it would wait for an open transaction.
        if "choice" in seen.told:
            return '{"choice": null, "reason": ""}'
        return TOLD

    with db.transaction() as tx:  # Two of one name: which of them is meant?
        for _ in range(2):
            tx.create_node(type="Entity", name="Rachel Adams")
    db.ingest("Soup.", extractor=DOWN, at=NOON)
    with serving(model) as server:
        chat = chat_at(server, retries_max=0)
        told = db.ingest(
            TEXT, extractor=LlmExtractor(chat), tiebreaker=LlmTiebreaker(chat), at=NOON
        )
        assert told.pending is None
        assert len(written) == 2
        assert len(db.extract_pending(LlmExtractor(chat)).done) == 1
    assert len(written) == 3


def test_no_read_touches_the_network(db: WorldDB, monkeypatch: pytest.MonkeyPatch) -> None:
    db.ingest(CHAT, extractor=UP, at=NOON, recluster="now")
    told = db.ingest("Soup.", extractor=DOWN, at=NOON, recluster="now")

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a read touched the network")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    with pytest.raises(AssertionError, match="network"):
        socket.create_connection(("127.0.0.1", 9))
    ident = told.memories[0]
    db.get(ident)
    db.children()
    db.edges(ident, "both")
    db.query().text("Oslo").traverse("refers_to").execute()
    db.query().seeds([ident]).prefer_summaries().execute()
    db.query().filter_type("Fact").as_of(valid=NOON).execute()
    db.recall("Where does Rachel Adams live?", explain=True)
    db.recall("soup", include_superseded=True, max_tokens=50)
    db.pending()
    db.proposals(None)
    db.conflicts()
    db.log()
    list(db.export())
    assert db.check() == []


def test_a_message_keeps_its_speaker_and_time_when_it_is_read_later(db: WorldDB) -> None:
    asked: list[str] = []

    def model(messages: list[dict[str, str]]) -> str:
        asked.append(messages[1]["content"])
        return TOLD

    said = [
        Message(
            text="Rachel Adams moved to Oslo", speaker="Ben", at=datetime(2026, 5, 1, tzinfo=UTC)
        ),
        Message(text="When?", speaker="Ada", at=datetime(2026, 5, 2, tzinfo=UTC)),
    ]
    db.ingest(said, extractor=DOWN, at=NOON)
    db.extract_pending(LlmExtractor(model))
    db.ingest(said, extractor=LlmExtractor(model), at=datetime(2026, 5, 1, tzinfo=UTC))
    assert asked[0] == asked[1]
    assert "[1] 2026-05-02 00:00 Ada: When?" in asked[0]
