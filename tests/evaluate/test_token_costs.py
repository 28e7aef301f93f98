"""Cost: it is told before anything is asked, and nobody pays without a yes."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from faces.command import COMMAND, environment, in_process
from models.server import Answer, Cut, Seen, serving
from worlddb.evaluate.benchmark_cases import tokens_of

from .eval_command import asked, options, records
from .models import model, role_of, roles_asked
from .samples import TOPICS, longmemeval, save


def test_the_cost_is_told_first_and_nobody_is_asked_without_yes(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        given = [one for one in options(server, tmp_path / "run") if one != "--yes"]
        more = ("--price", "answerer=5,25")
        done = in_process("eval", "longmemeval", "--data", data, *given, *more)
        assert done.code == 2
        assert "answerer answers: about 5 requests" in done.err
        assert "judge judges: about 5 requests" in done.err
        assert "no price given" in done.err
        assert "give --yes if there is no terminal" in done.err
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
        assert (again.code, again.err) == (0, "asking: 5 of 5 questions are done already\n")
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


def announced(err: str, role: str) -> int:
    """Return how many tokens a role was said to read."""
    found = re.search(rf"^{role} \S+: about [\d,]+ requests, ([\d,]+) tokens in", err, re.MULTILINE)
    assert found is not None, err
    return int(found[1].replace(",", ""))


@pytest.mark.parametrize("more", [(), ("--k", 3), ("--context-tokens", 200)])
@pytest.mark.parametrize("reading", ["verbatim", "rules"])
def test_what_is_announced_is_about_what_is_sent(
    tmp_path: Path, reading: str, more: tuple[object, ...]
) -> None:
    items = longmemeval(6)
    for item in items:
        for session in item["haystack_sessions"]:
            # What is asked about is said briefly; the other speaker is not found, and never brief.
            session[1]["content"] = "Splendid, do go on. " * 60
    data = save(tmp_path / "data.json", items)
    with serving(model) as server:
        given = ("--extractor", reading, *more)
        done = asked("longmemeval", data, server, tmp_path / "run", *given)
        assert done.code == 0, done.err
        for role in ("answerer", "judge"):
            sent = sum(tokens_of(seen.said) for seen in server.seen if role_of(seen) == role)
            assert announced(done.err, role) == pytest.approx(sent, rel=0.2)


def test_an_embedder_behind_an_address_is_not_asked_without_a_yes(
    data: Path, tmp_path: Path
) -> None:
    with serving(model) as server:
        far = ("--embedder", f"{server.url}#m?dimensions=8")
        out = tmp_path / "run"
        done = in_process("eval", "retrieval", "--data", data, "--out", out, *far)
        assert server.seen == []
    assert done.code == 2
    assert "embedder m: about 10 requests" in done.err
    assert "give --yes if there is no terminal" in done.err
    assert not out.exists()


def test_a_reader_whose_replies_are_cut_is_not_asked_without_end(tmp_path: Path) -> None:
    items = longmemeval(1)[:1]
    for session in items[0]["haystack_sessions"]:
        session += [{"role": "user", "content": f"Number {n} is a fine number."} for n in range(29)]
    data = save(tmp_path / "data.json", items)

    def cut(seen: Seen) -> Answer:
        started = Cut('{"summary": "All of it", "entities": [], "facts": [')
        return started if role_of(seen) == "extractor" else model(seen)

    out = tmp_path / "run"
    with serving(cut) as server:
        done = asked("longmemeval", data, server, out, "--json")
        assert done.code == 0, done.err
        assert roles_asked(server.seen)["extractor"] == 7 * len(TOPICS), "halved thrice, not more"
    assert re.search(r"extractor reads: about 8 requests, [\d,]+ tokens in, about ", done.err)
    assert "a session whose reading is cut takes up to 6 requests more\n" in done.err
    assert done.data["readings_cut"] == 7 * len(TOPICS)
    assert records(out)[0]["reading_requests"] == 7 * len(TOPICS)
    assert "| readings_cut | 56.0 |" in (out / "report.md").read_text()


def test_replies_that_are_kept_are_told(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        asked("longmemeval", data, server, tmp_path / "run", "--limit", 1)
        rest = asked("longmemeval", data, server, tmp_path / "run")
    told = "replies from before are kept, and not paid for again: extractor 8, answerer 1, judge 1"
    assert told in rest.err
