"""Folders: what a run wrote down of itself, and which other runs may not go on in its folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bridge.server import serving

from .models import model, roles_asked
from .running import asked


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--answer-tokens", 99), "limits of answerer was 512, now 99"),
        (("--judge-tokens", 64), "limits of judge was 8, now 64"),
        (("--extract-tokens", 99), "limits of extractor was 4096, now 99"),
    ],
)
def test_other_limits_of_models_need_another_folder(
    data: Path, tmp_path: Path, more: tuple[object, ...], told: str
) -> None:
    out = tmp_path / "run"
    with serving(model) as server:
        assert asked("longmemeval", data, server, out, "--limit", 1).code == 0
        server.seen.clear()
        other = asked("longmemeval", data, server, out, "--limit", 1, *more)
        assert server.seen == []
    assert other.code == 4
    assert f"holds a run with other settings ({told})" in other.err
    assert "calls.jsonl, if there is one, can be copied there" in other.err


def test_a_model_at_another_address_needs_another_folder(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serving(model) as server, serving(model) as far:
        assert asked("longmemeval", data, server, out, "--limit", 1).code == 0
        judge = ("--judge", f"openai:judges@{far.url}")
        other = asked("longmemeval", data, server, out, "--limit", 1, *judge)
        assert far.seen == []
        assert other.code == 4
        assert f"addresses of judge was '{server.url}', now '{far.url}'" in other.err
        told = json.loads((out / "run.json").read_text())
        assert told["addresses"] == dict.fromkeys(("answerer", "judge", "extractor"), server.url)
        assert told["limits"] == {"answerer": 512, "judge": 8, "extractor": 4096}
        for text in (server.url, "judge: 8"):
            assert text in (out / "report.md").read_text()


def test_a_judge_with_more_room_asks_nobody_else_again(data: Path, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with serving(model) as server:
        assert asked("longmemeval", data, server, old).code == 0
        new.mkdir()
        shutil.copy(old / "calls.jsonl", new)
        server.seen.clear()
        done = asked("longmemeval", data, server, new, "--judge-tokens", 64)
        assert done.code == 0, done.err
        assert roles_asked(server.seen) == {"judge": 5}
