"""Ingest: text in, nodes and edges out; names resolved, guesses proposed, nothing merged."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import worlddb
from patience import PATIENCE_S
from worlddb import (
    AsOf,
    Draft,
    DraftEdge,
    DraftNode,
    InvalidInputError,
    Message,
    NotFoundError,
    WorldDB,
)
from worlddb.ingest import background_queue

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Pairs:
    """An extractor for tests: every two capitalised words in a row are a name."""

    name = "pairs"

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        text = messages[0].text
        names = list(dict.fromkeys(re.findall(r"[A-Z]\w+ [A-Z]\w+", text)))
        entities = [
            DraftNode(key=name, type="Entity", name=name, resolvable=True) for name in names
        ]
        edges = [DraftEdge(type="refers_to", source="memory", target=name) for name in names]
        memory = DraftNode(key="memory", type="Memory", content=text, created_at=at)
        return Draft(nodes=(memory, *entities), edges=tuple(edges))


@pytest.fixture
def db(tmp_path: Path) -> Iterator[WorldDB]:
    # A short patience: erasing waits so long for readers, and one test erases beside its own.
    options: Any = {"durability": "normal", "embedder": "hash", "busy_timeout_s": PATIENCE_S}
    with worlddb.open(tmp_path / "a.db", **options) as opened:
        yield opened


def take(db: WorldDB, text: str, **options: Any) -> worlddb.Ingested:
    return db.ingest(text, extractor=Pairs(), **{"recluster": "now", **options})


def entities(db: WorldDB) -> list[str]:
    return sorted(node.name for node in db.query().filter_type("Entity").execute())


class Named:
    """An extractor for tests: one person, and what else they are called."""

    name = "named"

    def __init__(self, **aliases: Any) -> None:
        self.aliases = aliases

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        robert = DraftNode(
            key="robert", type="Entity", name="Robert Hale", aliases=("Rob Hale",), resolvable=True
        )
        memory = DraftNode(key="memory", type="Memory", content=messages[0].text, created_at=at)
        return Draft(nodes=(memory, robert), **self.aliases)


def test_aliases_of_a_draft_are_names_of_its_nodes(db: WorldDB) -> None:
    for given in ({"robert": ["Bobby Hale", "Rob Hale"]}, {"robert": "Bobby Hale"}, {}):
        db.ingest("Robert has a boat.", extractor=Named(aliases=given), recluster="off")
    (robert,) = db.query().filter_type("Entity").execute()
    assert robert.aliases == ("Rob Hale", "Bobby Hale")
    again = take(db, "Bobby Hale has sold it.")
    assert again.reused == (robert.id,)


@pytest.mark.parametrize(
    ("aliases", "said"),
    [({"bob": ["Bobby"]}, "'bob'"), (["robert"], "mapping"), ({7: "Bobby"}, "'7'")],
)
def test_aliases_of_nobody_in_the_draft_are_refused(db: WorldDB, aliases: Any, said: str) -> None:
    with pytest.raises(worlddb.InvalidInputError, match=f"aliases: .*{said}"):
        db.ingest("Robert has a boat.", extractor=Named(aliases=aliases))
    assert db.children() == []


def test_an_extractor_that_needs_a_model_says_what_to_pass(db: WorldDB) -> None:
    with pytest.raises(worlddb.InvalidInputError, match=r"pass LlmExtractor\(Chat\("):
        db.ingest("Robert has a boat.", extractor="llm")
    memory = worlddb.Memory(":memory:", extractor="llm", embedder="none")
    with memory, pytest.raises(worlddb.InvalidInputError, match=r"pass LlmExtractor\(Chat\("):
        memory.write("Robert has a boat.")
    assert db.children() == []


# -- what is written -------------------------------------------------------------------------------


def test_text_becomes_one_memory_in_one_commit(db: WorldDB) -> None:
    told = db.ingest("We had soup", extractor="verbatim", at=NOON, actor="me", source="chat 1")
    node = db.get(told.memories[0])
    assert (node.type, node.content, node.valid_from) == ("Memory", "We had soup", NOON)
    assert node.provenance == ("chat 1",)
    assert told.commit is not None
    assert (told.commit.actor, told.commit.seq) == ("me", 1)


def test_messages_become_turns_of_a_session(db: WorldDB) -> None:
    told = db.ingest(
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
        extractor="verbatim",
        at=NOON,
    )
    session, first, second = (db.get(ident) for ident in told.memories)
    assert session.type == "Session"
    assert [(turn.name, turn.content) for turn in (first, second)] == [
        ("user", "Hi"),
        ("assistant", "Hello"),
    ]
    assert {first.parent, second.parent} == {session.id}


def test_what_was_said_twice_is_two_turns_and_the_same_chat_again_is_the_same(db: WorldDB) -> None:
    chat = [{"role": "user", "content": "ok"}, {"role": "user", "content": "ok"}]
    first = db.ingest(chat, extractor="verbatim", at=NOON)
    assert len(set(first.memories)) == 3
    assert db.ingest(chat, extractor="verbatim", at=NOON).memories == first.memories
    other = db.ingest([*chat, *chat], extractor="verbatim", at=NOON)
    assert set(other.memories).isdisjoint(first.memories)
    assert len(set(other.memories)) == 5


def test_what_is_ingested_lives_in_the_world_it_was_given(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = tx.create_node(type="Scope", name="anna").id
    told = take(db, "I met Sarah Chen", world=world)
    assert {db.get(ident).parent for ident in told.created} == {world}


def test_the_same_text_again_is_the_same_memory_with_one_source_more(db: WorldDB) -> None:
    first = take(db, "I met Sarah Chen", source="chat 1")
    again = take(db, "I met Sarah Chen", source="chat 2")
    assert again.memories == first.memories
    assert again.created == ()
    assert db.get(first.memories[0]).provenance == ("chat 1", "chat 2")


def test_the_same_text_in_another_world_is_another_memory(db: WorldDB) -> None:
    with db.transaction() as tx:
        one, other = (tx.create_node(type="Scope", name=name).id for name in ("anna", "ben"))
    first = take(db, "I met Sarah Chen", world=one, at=NOON)
    second = take(db, "I met Sarah Chen", world=other, at=NOON)
    assert set(first.created).isdisjoint(second.created)
    assert len(second.created) == 2


def test_a_retired_memory_is_written_anew(db: WorldDB) -> None:
    first = take(db, "The code is 1234")
    with db.transaction() as tx:
        tx.retire(first.memories[0])
    assert take(db, "The code is 1234").memories != first.memories


# -- names -----------------------------------------------------------------------------------------


def test_a_name_that_is_there_is_used_again(db: WorldDB) -> None:
    first = take(db, "I met Sarah Chen")
    second = take(db, "SARAH Chen called Sarah Chen".replace("SARAH", "Sarah"))
    assert len(second.created) == 1
    assert set(second.reused) <= set(first.created)
    assert entities(db) == ["Sarah Chen"]


def test_a_name_in_another_world_is_not_used(db: WorldDB) -> None:
    with db.transaction() as tx:
        one, other = (tx.create_node(type="Scope", name=name).id for name in ("anna", "ben"))
    take(db, "I met Sarah Chen", world=one)
    told = take(db, "I met Sarah Chen today", world=other)
    assert len(told.created) == 2
    assert told.proposals == ()


def test_a_likely_name_is_proposed_with_its_evidence_and_not_merged(db: WorldDB) -> None:
    take(db, "I met Sarah Chen")
    told = take(db, "I saw Sara Chen")
    (proposal,) = told.proposals
    assert proposal.status == "pending"
    assert proposal.tier == "fuzzy"
    assert sorted(proposal.evidence["compared"]) == ["Sara Chen", "Sarah Chen"]
    assert entities(db) == ["Sara Chen", "Sarah Chen"]
    assert db.equivalence_class(proposal.left) == {proposal.left}


def test_an_accepted_merge_is_one_identity_from_then_on_and_can_be_undone(db: WorldDB) -> None:
    take(db, "I met Sarah Chen", source="chat 1")
    (proposal,) = take(db, "I saw Sara Chen", source="chat 2").proposals
    before = db.log(limit=1, newest_first=True)[0].time
    db.accept_merge(proposal.edge)
    both = {proposal.left, proposal.right}
    told = db.export_identity(proposal.left)
    assert set(told.ids) == both
    assert set(told.names) == {"Sarah Chen", "Sara Chen"}
    assert set(told.provenance) == {"chat 1", "chat 2"}
    assert [merge.edge for merge in told.merges] == [proposal.edge]
    then = db.export_identity(proposal.left, as_of=AsOf(known=before))
    assert then.ids == (proposal.left,)
    db.undo_merge(proposal.edge)
    assert db.export_identity(proposal.left).ids == (proposal.left,)


def test_a_rejected_pair_is_not_proposed_again(db: WorldDB) -> None:
    take(db, "I met Sarah Chen")
    (proposal,) = take(db, "I saw Sara Chen").proposals
    db.reject_merge(proposal.edge)
    assert take(db, "Sara Chen and Sarah Chen came").proposals == ()
    assert db.recluster([proposal.left, proposal.right]) == []
    assert db.proposals() == []


def test_of_two_with_the_very_name_none_is_taken_until_they_are_one(db: WorldDB) -> None:
    with db.transaction() as tx:
        one = tx.create_node(type="Entity", name="Sarah Chen").id
        other = tx.create_node(type="Entity", name="Sarah Chen").id
        same = tx.write_edge("same_as", one, other)
    told = take(db, "I met Sarah Chen")
    assert len(told.created) == 2
    assert {item.right for item in told.proposals} == {one, other}
    db.accept_merge(same.id)
    for item in told.proposals:
        db.accept_merge(item.edge)
    assert take(db, "Sarah Chen called").reused == (one,)


def test_two_people_of_one_role_are_two(db: WorldDB) -> None:
    db.ingest("My sister Anna lives in Rome.", recluster="now")
    told = db.ingest("My sister Beth lives in Oslo.", recluster="now")
    assert {"Beth", "Oslo"} <= {db.get(ident).name for ident in told.created}
    assert told.proposals == ()
    assert db.proposals() == []


def test_people_with_one_surname_are_different(db: WorldDB) -> None:
    take(db, "John Smith called")
    assert take(db, "Jane Smith called").proposals == ()


def test_a_first_name_is_proposed_for_the_only_one_who_bears_it(db: WorldDB) -> None:
    db.ingest("Priya Raman came to dinner.", recluster="off")
    (proposal,) = db.ingest("I had lunch with Priya.", recluster="off").proposals
    assert (proposal.tier, proposal.status) == ("fuzzy", "pending")
    assert proposal.evidence["compared"] == ["Priya", "Priya Raman"]
    assert {"Priya", "Priya Raman"} <= set(entities(db))
    db.ingest("Sarah Chen and Sarah Miller came to dinner.", recluster="off")
    assert db.ingest("I had lunch with Sarah.", recluster="now").proposals == ()
    assert len(db.proposals()) == 1


def test_a_tiebreaker_is_asked_outside_the_transaction(db: WorldDB) -> None:
    asked: list[Any] = []

    def person(candidate: Any, matches: Any) -> Any:
        asked.append(candidate)
        with db.transaction(actor="somebody else") as tx:  # Possible only while none is open.
            tx.create_node(type="Fact", content=f"asked {len(asked)}")
        return None

    with db.transaction() as tx:  # Two of one name: which of them is meant?
        tx.create_node(type="Entity", name="Sarah Chen")
        tx.create_node(type="Entity", name="Sarah Chen")
    told = take(db, "I saw Sarah Chen", tiebreaker=person)
    assert told.commit is not None
    assert asked


@pytest.mark.parametrize("how", ["retired", "erased"])
def test_what_somebody_ends_meanwhile_is_written_anew(db: WorldDB, how: str) -> None:
    with db.transaction() as tx:
        tx.create_node(type="Entity", name="Sarah Chen")
        tx.create_node(type="Entity", name="Sarah Chen")
    (old,) = take(db, "I saw Sarah Chen", recluster="off").memories

    def person(candidate: Any, matches: Any) -> Any:
        if how == "erased":
            db.erase(old)
        else:
            with db.transaction(actor="somebody else") as tx:
                tx.retire(old)
        return None

    told = take(db, "I saw Sarah Chen", tiebreaker=person, source="chat 2", recluster="off")
    (new,) = told.memories
    assert new != old
    assert db.get(new).valid_to is None
    assert db.get(old).provenance == ()
    assert db.check() == []


# -- looking again ---------------------------------------------------------------------------------


def test_the_neighbourhood_of_what_is_new_is_resolved_again(db: WorldDB) -> None:
    with db.transaction() as tx:  # Written directly, so nobody has compared them.
        tx.create_node(type="Entity", name="Jonathan Smyth")
        tx.create_node(type="Entity", name="Jonathon Smyth")
    take(db, "Lunch with Jonathan Smyth", recluster="off")
    assert db.proposals() == []
    take(db, "Dinner with Jonathan Smyth", recluster="now")
    (proposal,) = db.proposals()
    names = {db.get(side).name for side in (proposal.left, proposal.right)}
    assert names == {"Jonathan Smyth", "Jonathon Smyth"}
    assert db.log(limit=1, newest_first=True)[0].actor == "recluster"


def test_looking_again_happens_in_the_background_and_can_be_seen(db: WorldDB) -> None:
    with db.transaction() as tx:
        tx.create_node(type="Entity", name="Jonathan Smyth")
        tx.create_node(type="Entity", name="Jonathon Smyth")
    told = take(db, "Lunch with Jonathan Smyth", recluster="later")
    assert db.wait(60)
    (seen,) = db.reclustered
    assert seen.nodes == told.created
    assert seen.error is None
    assert [item.edge for item in seen.proposals] == [item.edge for item in db.proposals()]


def test_closing_waits_for_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_queue, "CLOSING_S_MAX", PATIENCE_S)
    path = tmp_path / "b.db"
    with worlddb.open(path) as db:
        with db.transaction() as tx:
            tx.create_node(type="Entity", name="Jonathan Smyth")
            tx.create_node(type="Entity", name="Jonathon Smyth")
        take(db, "Lunch with Jonathan Smyth", recluster="later")
    with worlddb.open(path) as db:
        assert len(db.proposals()) == 1
        assert db.check() == []


def test_many_threads_ingesting_one_name_make_one_node(db: WorldDB) -> None:
    start = threading.Barrier(4)

    def work(number: int) -> None:
        start.wait()
        for turn in range(5):
            take(db, f"Sarah Chen said {number} and {turn}", recluster="off")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert entities(db) == ["Sarah Chen"]
    assert len(db.query().filter_type("Memory").execute()) == 20
    assert db.check() == []


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["", "  ", [], [{"role": "user", "content": " "}]])
def test_nothing_to_remember_is_refused(db: WorldDB, given: Any) -> None:
    with pytest.raises(InvalidInputError, match="no text"):
        db.ingest(given)
    assert len(db.log()) == 1


@pytest.mark.parametrize("given", [None, 7, b"text", {"role": "user"}, [7], [{"role": "user"}]])
def test_what_is_no_text_is_refused(db: WorldDB, given: Any) -> None:
    with pytest.raises(InvalidInputError):
        db.ingest(given)
    assert len(db.log()) == 1


def test_wrong_options_are_refused_before_anything_is_written(db: WorldDB) -> None:
    with pytest.raises(InvalidInputError, match="verbatim, rules"):
        db.ingest("soup", extractor="magic")
    with pytest.raises(NotFoundError):
        db.ingest("soup", world="abcd" * 16)
    with pytest.raises(InvalidInputError, match="time zone"):
        db.ingest("soup", at="2026-01-01T00:00:00")
    with pytest.raises(InvalidInputError, match="later"):
        db.ingest("soup", recluster="sometimes")  # type: ignore[arg-type]
    assert len(db.log()) == 1
