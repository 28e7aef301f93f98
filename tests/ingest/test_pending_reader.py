"""Pending reader: long texts are read in the background; closing never waits for one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from patience import PATIENCE_S, until
from worlddb import Memory
from worlddb.errors import RejectedError
from worlddb.ingest import extraction_queue
from worlddb.ingest.extractors import RulesExtractor

TEXT = "My friend Sarah Chen moved to Oslo, where she met Tom Berg. She likes it there."
Read = RulesExtractor.extract


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RulesExtractor, "chars_max", len(TEXT) - 1)
    monkeypatch.setattr(extraction_queue, "LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(extraction_queue, "REST_S_MAX", 0.0)


def open_it(path: Path | str, **options: Any) -> Memory:
    return Memory(path, embedder="none", recluster="off", **options)


def wait_until_read(memory: Memory) -> None:
    until(lambda: memory.db.pending() == [])


def test_what_waits_and_what_will_wait_is_read(tmp_path: Path) -> None:
    with open_it(tmp_path / "m.db") as memory:
        first = memory.write(TEXT, user_id="ada")
        assert first.pending
        memory.read_pending()
        wait_until_read(memory)
        second = memory.write(f"{TEXT} Tom Berg does, too.", user_id="bob")
        assert second.pending
        wait_until_read(memory)
        for written in (first, second):
            names = {memory.db.get(edge.target).name for edge in memory.db.edges(written.id)}
            assert {"Sarah Chen", "Tom Berg"} <= names
        assert {commit.actor for commit in memory.db.log()} >= {"extract"}
        assert memory.db.check() == []


def test_a_memory_that_consolidates_reads_what_waits() -> None:
    with open_it(":memory:", consolidate_every_s=3600) as memory:
        assert memory.write(TEXT, user_id="ada").pending
        wait_until_read(memory)


def test_closing_does_not_wait_for_a_text_that_is_being_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, goes_on = threading.Event(), threading.Event()

    def slow(self: RulesExtractor, *args: Any) -> Any:
        reads.set()
        assert goes_on.wait(PATIENCE_S)
        return Read(self, *args)

    monkeypatch.setattr(RulesExtractor, "extract", slow)
    monkeypatch.setattr(extraction_queue, "STOP_S_MAX", 0.001)
    others = threading.enumerate()
    with open_it(tmp_path / "m.db") as memory:
        memory.write(TEXT, user_id="ada")
        memory.read_pending()
        assert reads.wait(PATIENCE_S)
    named = [one for one in threading.enumerate() if one.name == "worlddb-extract"]
    [thread] = [one for one in named if one not in others]
    goes_on.set()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    with open_it(tmp_path / "m.db") as memory:
        assert len(memory.db.pending()) == 1
        memory.read_pending()
        wait_until_read(memory)


def test_a_text_that_cannot_be_read_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[str] = []

    def fails(self: RulesExtractor, messages: Any, at: Any) -> Any:
        tries.append(messages[0].text)
        if messages[0].text == TEXT:
            raise RejectedError("no")
        return Read(self, messages, at)

    monkeypatch.setattr(RulesExtractor, "extract", fails)
    with open_it(":memory:") as memory:
        memory.write(TEXT, user_id="ada")
        memory.write(f"{TEXT} So it is.", user_id="ada")
        memory.read_pending()
        until(lambda: [one.attempts for one in memory.db.pending()] == [1])
    assert tries == [TEXT, f"{TEXT} So it is."]
