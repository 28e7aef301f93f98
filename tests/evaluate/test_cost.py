"""Cost: it is told before anything is asked, and nobody pays without a yes."""

from __future__ import annotations

import os
import pty
import shlex
import subprocess
from pathlib import Path

import pytest

from bridge.server import serving
from faces.command import COMMAND, environment, in_process

from .models import model
from .running import asked, options


def test_the_cost_is_told_first_and_nobody_is_asked_without_yes(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        given = [one for one in options(server, tmp_path / "run") if one != "--yes"]
        more = ("--price", "answerer=5,25")
        done = in_process("eval", "longmemeval", "--data", data, *given, *more)
        assert done.code == 2
        assert "answerer answers: about 5 requests" in done.err
        assert "judge judges: about 5 requests" in done.err
        assert "no price given" in done.err
        assert "give --yes where nobody can be asked" in done.err
        assert server.seen == []


@pytest.mark.parametrize(("said", "code", "requests"), [(b"n\n", 1, 0), (b"y\n", 0, 10)])
def test_at_a_terminal_somebody_is_asked(
    data: Path, tmp_path: Path, said: bytes, code: int, requests: int
) -> None:
    with serving(model) as server:
        given = [one for one in options(server, tmp_path / "run") if one != "--yes"]
        command = [*COMMAND, "eval", "longmemeval", "--data", data, "--limit", 1, *given]
        ours, theirs = pty.openpty()
        os.write(ours, said)
        done = subprocess.run(
            list(map(str, command)),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            env=environment(),
            timeout=60,
            check=False,
        )
        os.close(theirs)
        os.close(ours)
        assert done.returncode == code
        assert len(server.seen) == requests


def test_only_what_is_left_is_estimated_and_nothing_left_needs_no_yes(
    data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with serving(model) as server:
        given = ["eval", "longmemeval", "--data", data, *options(server, out)]
        priced = [*given, *("--price", "answerer=5,25", "--price", "judge=1,1")]
        half = in_process(*given, "--limit", 2)
        assert "answerer answers: about 2 requests" in half.err
        rest = in_process(*priced, "--price", "extractor=1,1")
        assert "answerer answers: about 3 requests" in rest.err
        assert "all together: cost 0." in rest.err
        server.seen.clear()
        again = in_process(*(one for one in given if one != "--yes"))
        assert (again.code, again.err) == (0, "")
        assert server.seen == []


def test_whoever_says_no_or_is_refused_leaves_no_folder(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serving(model) as server:
        given = [one for one in options(server, out) if one != "--yes"]
        assert in_process("eval", "longmemeval", "--data", data, *given).code == 2
        assert not out.exists()
        assert asked("longmemeval", data, server, out, "--limit", 1).code == 0
        server.seen.clear()
        other = in_process("eval", "longmemeval", "--data", data, *given, "--k", 7)
    assert other.code == 4
    assert "holds a run with other settings (k was 50, now 7)" in other.err
    assert "requests" not in other.err, "told before anybody is asked to pay"


def test_the_command_that_the_docs_give_for_the_paper_is_understood(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    fence = page.partition("### The paper's setting")[2].split("```")[1]
    command = shlex.split(fence.partition("worlddb ")[2].replace("\\\n", " "))
    given = [str(data) if one.startswith("longmemeval_") else one for one in command]
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "WORLDDB_EMBEDDER_KEY"):
        assert f"{name}=" in fence
        monkeypatch.setenv(name, "k")
    done = in_process(*given)
    assert done.code == 2
    for told in (
        "embedder text-embedding-3-small: about",
        "extractor claude-haiku-4-5: about",
        "answerer claude-opus-4-7: about 5 requests",
        "judge claude-sonnet-4-6: about 5 requests",
        "give --yes",
    ):
        assert told in done.err
