"""`worlddb demo` and `worlddb open`: what a newcomer sees first."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path

import pytest

from faces.command import in_process
from faces.http.serving import Site
from worlddb import Memory
from worlddb.faces.http.http_app import page_files


def test_sample_data_are_those_of_the_page_and_written_once(tmp_path: Path) -> None:
    store = tmp_path / "m.db"
    first = in_process("demo", "--db", store, "--json")
    assert first.code == 0, first.err
    again = in_process("demo", "--db", store, "--json")
    assert first.data["created"] == first.data["memories"] > 5
    assert again.data["created"] == 0
    with Memory(store, embedder="none", user_id="sample") as memory:
        told = sorted(one.text for one in memory.list())
        found = memory.recall("Where do I live?").hits
    assert told == sorted(one["text"] for one in json.loads(page_files()["sample.json"][0]))
    assert found[0].node.content == "I moved to Lisbon."
    assert [len(hit.outdated) for hit in found if "Hamburg" in hit.node.content] == [1]


def test_a_running_server_is_shown_and_not_started_again(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", shown.append)
    port = site.url.rpartition(":")[2]
    done = in_process("open", "--db", tmp_path / "other.db", "--port", port)
    assert done.code == 0, done.err
    assert shown == [f"{site.url}/"]
    assert "answers already" in done.out
    assert not (tmp_path / "other.db").exists()
