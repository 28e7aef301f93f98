"""Folders: what a run wrote down of itself, and which other runs may not go on in its folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from hashlib import sha256
from pathlib import Path

import pytest

from faces.command import COMMAND, environment, in_process
from models.server import Answer, Fault, Seen, serving

from .eval_command import asked, options, records
from .models import model, roles_asked
from .samples import longmemeval, save

PATIENCE_S = 60


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


def test_questions_that_nothing_is_known_of_are_not_taken_over(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serving(model) as server:
        assert asked("longmemeval", data, server, out, "--limit", 1).code == 0
        (out / "run.json").unlink()
        before = (out / "questions.jsonl").read_bytes()
        server.seen.clear()
        other = asked("longmemeval", data, server, out)
        assert server.seen == []
    assert other.code == 6
    assert "has questions.jsonl without run.json" in other.err
    assert (out / "questions.jsonl").read_bytes() == before


@pytest.mark.parametrize("what", ["longmemeval", "ablate"])
def test_a_second_run_in_a_folder_is_refused_until_the_first_is_gone(
    data: Path, tmp_path: Path, what: str
) -> None:
    out = tmp_path / "run"
    reached = threading.Event()

    def sticks(_: Seen) -> Answer:
        reached.set()
        return Fault(late=True)

    with serving(sticks) as server:
        given = [*("eval", what, "--data", data, "--limit", 1), *options(server, out)]
        first = subprocess.Popen(
            [*COMMAND, *map(str, given)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        try:
            assert reached.wait(PATIENCE_S)
            server.model = model
            asked_before = len(server.seen)
            second = in_process(*given)
            assert second.code == 4
            assert "another run is at work in this folder" in second.err
            assert len(server.seen) == asked_before
        finally:
            first.kill()
            first.wait(PATIENCE_S)
        assert in_process(*given).code == 0, "a crash holds nothing"
    assert not list(out.rglob("run.lock"))


def test_a_part_does_not_take_the_place_of_a_fuller_report(tmp_path: Path) -> None:
    data = save(tmp_path / "data.json", longmemeval(6))
    out = tmp_path / "run"
    common = ("eval", "retrieval", "--embedder", "hash", "--data", data, "--out", out)
    assert in_process(*common).code == 0
    kept = {name: (out / name).read_bytes() for name in ("report.md", "report.html", "run.json")}
    part = in_process(*common, "--limit", 2, "--json")
    assert part.code == 0
    assert part.data["figures"]["all"]["n"] == 2
    assert "has a report of more questions, which is left as it was" in part.err
    assert kept == {name: (out / name).read_bytes() for name in kept}
    assert len(records(out)) == 7


def test_a_larger_run_that_was_stopped_keeps_no_smaller_report_back(tmp_path: Path) -> None:
    items = longmemeval(12)
    # Nobody else asks this, so that no kept reply comes between the failures.
    items[0]["question"] = "By whom am I taught?"
    data = save(tmp_path / "data.json", items)
    out = tmp_path / "run"
    with serving(model) as server:
        more = ("--extractor", "verbatim", "--workers", 1)
        assert asked("longmemeval", data, server, out, *more, "--limit", 1).code == 0
        server.model = lambda _: Fault(401, {"error": "no"})
        assert "10 questions in a row" in asked("longmemeval", data, server, out, *more).err
        told = json.loads((out / "run.json").read_text())
        assert (told["chosen"]["count"], told["reported"]) == (13, 1)
        server.model = model
        done = asked("longmemeval", data, server, out, *more, "--limit", 2)
    assert done.code == 0
    assert "is left as it was" not in done.err
    assert (out / "report.md").read_text().startswith("# longmemeval: qa, the first 2 of the file")


def test_which_questions_were_chosen_can_be_told_apart(tmp_path: Path) -> None:
    data = save(tmp_path / "data.json", longmemeval(6))
    common = ("eval", "retrieval", "--embedder", "hash", "--data", data)
    assert in_process(*common, "--limit", 2, "--out", tmp_path / "a").code == 0
    told = json.loads((tmp_path / "a" / "run.json").read_text())
    names = b"question-0\nquestion-1"
    assert told["chosen"] == {"count": 2, "sha256": sha256(names).hexdigest()}


def test_an_empty_name_is_no_folder(data: Path) -> None:
    done = in_process("eval", "retrieval", "--data", data, "--out", "")
    assert done.code == 2
    assert "--out: give the name of a folder" in done.err
