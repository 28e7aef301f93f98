"""Replies: models that say nothing have answered, and badly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from models.server import Answer, Cut, Fault, Seen, serving

from .eval_command import asked, records
from .models import model, role_of, roles_asked
from .samples import TOPICS

NULL = {
    "choices": [{"message": {"role": "assistant", "content": None}, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 512},
}
REFUSED = {"choices": [{"message": {"content": None, "refusal": "I will not"}}]}


def silent(role: str, how: Answer) -> Any:
    """Return the model that says nothing in one role."""
    return lambda seen: how if role_of(seen) == role else model(seen)


@pytest.mark.parametrize(
    ("how", "cut"),
    [("", 0), (" \n", 0), (Cut(""), 5), (Fault(body=NULL), 5), (Fault(body=REFUSED), 0)],
)
def test_an_empty_answer_is_wrong_and_nobody_judges_it(
    data: Path, tmp_path: Path, how: Answer, cut: int
) -> None:
    out = tmp_path / "run"
    with serving(silent("answerer", how)) as server:
        done = asked("longmemeval", data, server, out, "--json")
        assert done.code == 0, done.err
        assert "judge" not in roles_asked(server.seen)
        server.seen.clear()
        assert asked("longmemeval", data, server, out).code == 0
        assert server.seen == [], "it has been paid for"
    answers = done.data["answers"]["all"]
    assert (answers["n"], answers["correct"], answers["match"]) == (5, 0.0, 0.0)
    assert done.data["answers_empty"] == 5
    assert done.data.get("answers_cut", 0) == cut
    assert {line["qa"]["answer"] for line in records(out)} == {""}


@pytest.mark.parametrize("how", ["", Cut("")])
def test_an_empty_verdict_is_unclear_and_wrong(data: Path, tmp_path: Path, how: Answer) -> None:
    with serving(silent("judge", how)) as server:
        done = asked("longmemeval", data, server, tmp_path / "run", "--json")
    assert done.code == 0, done.err
    assert (done.data["answers"]["all"]["n"], done.data["answers"]["all"]["correct"]) == (5, 0.0)
    assert done.data["verdicts_unclear"] == 5


def test_a_reader_that_says_nothing_leaves_sessions_unread(data: Path, tmp_path: Path) -> None:
    with serving(silent("extractor", "")) as server:
        done = asked("longmemeval", data, server, tmp_path / "run", "--limit", 1, "--json")
    assert done.code == 0, done.err
    assert done.data["sessions_unread"] == len(TOPICS)


def test_what_never_arrives_is_a_failure_all_the_same(data: Path, tmp_path: Path) -> None:
    def lost(seen: Seen) -> Answer:
        return Fault(400, {"error": "no"}) if role_of(seen) == "judge" else model(seen)

    with serving(lost) as server:
        done = asked("longmemeval", data, server, tmp_path / "run", "--limit", 1)
    assert done.code == 9
