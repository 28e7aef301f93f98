"""The record of reads: who asked what, what it keeps, and what leaves it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import worlddb
from worlddb import Memory
from worlddb.audit.read_audit import READS_END

DAY = 86_400_000_000


class Clock:
    now = 1_767_225_600_000_000  # 2026-01-01 in microseconds.

    def __call__(self) -> int:
        self.now += 1
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "file"])
def memory(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    path = ":memory:" if request.param == "memory" else tmp_path / "memory.db"
    options = {"embedder": "none", "recluster": "off", "clock": clock, "audit_reads": True}
    with Memory(path, **options) as memory:  # type: ignore[arg-type]
        memory.write("I live in Rome.", user_id="ada")
        memory.write("Bob lives in Oslo.", user_id="bob")
        yield memory


def told(memory: Memory, **scope: str) -> list[tuple[str, str, str, int]]:
    return [
        (one.actor, one.call, one.question, len(one.hits))
        for one in memory.reads(**scope)  # type: ignore[arg-type]
    ]


def test_it_is_recorded_who_asked_what_and_what_was_the_answer(memory: Memory) -> None:
    ada = memory.bound(user_id="ada", actor="token ada")
    found = ada.recall("Where do I live?")
    ada.list()
    ada.read(found[0].id)
    memory.signed("root").recall("Who lives in Oslo?", user_id="bob")
    memory.recall("Who is there?", user_id="nobody")
    ada.query("text Rome")
    assert told(memory) == [
        ("token ada", "query", "", 2),
        ("memory", "recall", "Who is there?", 0),
        ("root", "recall", "Who lives in Oslo?", 1),
        ("token ada", "read", "", 1),
        ("token ada", "list", "", 1),
        ("token ada", "recall", "Where do I live?", 1),
    ]
    assert told(memory, user_id="bob") == [("root", "recall", "Who lives in Oslo?", 1)]
    last = memory.reads(limit=1)
    assert (len(last), last.left) == (1, 5)
    assert memory.reads().reads[-1].hits == (found[0].id,)


def test_a_recall_with_a_receipt_is_recorded_and_its_verification_is_not(memory: Memory) -> None:
    pytest.importorskip("cryptography")
    receipt = memory.recall("Where do I live?", user_id="ada", receipt=True).receipt
    assert receipt is not None
    assert memory.verify_receipt(receipt)
    assert told(memory) == [("memory", "recall", "Where do I live?", 1)]


def test_what_is_erased_leaves_the_record(memory: Memory) -> None:
    hit = memory.recall("Where do I live?", user_id="ada")[0]
    memory.recall("unknown", user_id="ada", min_confidence=1)
    memory.recall("Who lives in Oslo?", user_id="bob")
    memory.erase(hit.id)
    assert told(memory) == [
        ("memory", "recall", "Who lives in Oslo?", 1),
        ("memory", "recall", "unknown", 0),
    ]
    memory.erase(user_id="ada", confirm="ada")
    assert told(memory) == [("memory", "recall", "Who lives in Oslo?", 1)]


def test_a_retention_policy_holds_for_the_record(memory: Memory, clock: Clock) -> None:
    memory.recall("Where do I live?", user_id="ada")
    memory.recall("Who lives in Oslo?", user_id="bob")
    memory.set_retention(keep_days=30, user_id="ada")
    clock.now += 31 * DAY
    memory.recall("Where do I live now?", user_id="ada")
    memory.set_retention(hold="on", user_id="ada")
    memory.apply_retention()
    assert len(memory.reads(user_id="ada")) == 2
    memory.set_retention(hold="off", user_id="ada")
    memory.apply_retention()
    assert [one.question for one in memory.reads(user_id="ada")] == ["Where do I live now?"]
    assert len(memory.reads(user_id="bob")) == 1


def test_an_export_has_the_reads_of_its_scope(memory: Memory) -> None:
    memory.recall("Where do I live?", user_id="ada")
    memory.recall("Who lives in Oslo?", user_id="bob")
    assert [one.question for one in memory.export(user_id="ada").reads] == ["Where do I live?"]
    assert memory.reads(limit=1).reads[0].call == "export"
    assert memory.bound(user_id="ada").export(user_id="ada").reads == ()


def test_a_bound_caller_does_not_see_the_record(memory: Memory) -> None:
    with pytest.raises(worlddb.RejectedError):
        memory.bound(user_id="ada").reads()


def test_the_file_is_the_owners_alone_and_a_store_without_audit_has_none(tmp_path: Path) -> None:
    path, record = tmp_path / "memory.db", tmp_path / f"memory.db{READS_END}"
    with Memory(path, embedder="none") as memory:
        memory.write("I live in Rome.")
        memory.recall("Where do I live?")
        assert not record.exists()
        assert len(memory.reads()) == 0
    with Memory(path, embedder="none", audit_reads=True) as memory:
        memory.recall("Where do I live?\nTell me.")
    assert record.stat().st_mode & 0o777 == 0o600
    lines = record.read_text().splitlines()
    assert [json.loads(line)["question"] for line in lines] == ["Where do I live?\nTell me."]
    # Erasing reaches the record also where reads are no longer recorded.
    with Memory(path, embedder="none") as memory:
        memory.erase(user_id="default", confirm="default")
    assert record.read_text() == ""


def test_a_read_that_cannot_be_recorded_fails(tmp_path: Path) -> None:
    (tmp_path / f"memory.db{READS_END}").mkdir()
    with Memory(tmp_path / "memory.db", embedder="none", audit_reads=True) as memory:
        memory.write("I live in Rome.")
        with pytest.raises(worlddb.StorageError, match="record of reads"):
            memory.recall("Where do I live?")
