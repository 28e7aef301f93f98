"""Questions and answers, the whole way: read, recall, answer, judge, over real HTTP."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faces.command import in_process, worlddb
from models.server import Answer, Fault, Seen, serving

from .conftest import QUESTIONS
from .eval_command import asked, records, timeless
from .models import model, role_of, roles_asked
from .samples import TOPICS, dmr, locomo, longmemeval, save, save_lines


def but(**answers: Callable[[Seen], Answer]) -> Callable[[Seen], Answer]:
    """Return the model with other answers in some roles."""
    return lambda seen: answers.get(role_of(seen), model)(seen)


# -- a run -----------------------------------------------------------------------------------------


def test_a_run_reads_answers_judges_and_reports(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serving(model) as server:
        done = asked("longmemeval", data, server, out, "--json", mode="both")
        assert done.code == 0, done.err
        assert roles_asked(server.seen) == {
            "extractor": len(TOPICS),
            "answerer": QUESTIONS + 1,
            "judge": QUESTIONS + 1,
        }
    assert done.data["answers"]["all"]["correct"] == 1.0
    assert done.data["answers"]["task-averaged"]["correct"] == 1.0
    assert done.data["answers"]["abstention"]["n"] == 1
    assert done.data["figures"]["all"]["n"] == QUESTIONS, "nothing can be found for the other"
    first, *_, last = records(out)
    assert first["qa"]["answer"] == "Person0"
    assert first["qa"]["verdict"] == "CORRECT"
    assert first["qa"]["score"] == {"exact": 1.0, "f1": 1.0, "numeric": 1.0, "match": 1.0}
    assert first["qa"]["evidence"]["turns"] == [[0, 2]]
    assert {hit["type"] for hit in first["qa"]["context"]} == {"Turn", "Fact", "Summary"}
    assert set(first["qa"]["context"][0]) == {
        *(
            "id",
            "type",
            "places",
            "score",
            "weighed",
            "fused",
            "confidence",
            "lanes",
            "tokens",
            "text",
        ),
    }
    ranked = [hit["lanes"] for hit in first["qa"]["context"] if hit["lanes"]]
    assert {name for lanes in ranked for one in lanes.values() for name in one} == {"rank", "score"}
    assert first["qa"]["tokens"] == {"answerer": [100, 7], "judge": [100, 7]}
    assert sum(first["reading_tokens"]["extractor"]) > 0
    assert (last["id"], last["qa"]["answer"]) == ("question-9_abs", "I don't know.")
    ET.fromstring((out / "report.html").read_text())
    assert "| all | 5 | 1.000 [0.57, 1.00] |" in (out / "report.md").read_text()


def test_the_answerer_sees_dated_lines_in_the_order_of_time(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        asked("longmemeval", data, server, tmp_path / "run", "--limit", 1)
        (said,) = [seen.said for seen in server.seen if role_of(seen) == "answerer"]
    assert "asked on 2023/05/30 (Tue) 23:40" in said
    lines = [line for line in said.splitlines() if line.startswith("[2023/")]
    assert lines == sorted(lines, key=lambda line: line[:11])
    assert "[2023/05/10 (Wed) 02:21] user: My gardening teacher is called Person0." in lines
    fact = "[2023/05/10 (Wed) 02:21] Fact: On 2023-05-10, user said that the gardening teacher is "
    assert fact + "Person0." in lines
    assert "answer_" not in said
    first = [line.partition("] ")[2] for line in lines if line.startswith("[2023/05/10")]
    assert first[:3] == [
        "user: Hello, today I would like to talk about gardening.",
        "assistant: With pleasure. What about gardening?",
        "user: My gardening teacher is called Person0.",
    ], "as they were said, not by their scores"
    assert [line.partition(":")[0] for line in first[3:]] == ["Fact", "Summary"]


def test_no_model_is_told_anything_of_the_gold_before_the_judge(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        asked("longmemeval", data, server, tmp_path / "run")
        told = [json.dumps(seen.data) for seen in server.seen if role_of(seen) != "judge"]
    assert not [text for text in told if "answer_" in text or "ultrachat" in text]
    assert not [text for text in told if "has_answer" in text or "question-" in text]


def test_locomo_and_dmr_are_answered_too(tmp_path: Path) -> None:
    talks = save(tmp_path / "talks.json", locomo())
    chats = save_lines(tmp_path / "msc.jsonl", dmr())

    def says(seen: Seen) -> str:
        return "Answer: The Harp, since school!" if "instrument" in seen.said else "Answer: Lisbon"

    with serving(but(answerer=says)) as server:
        done = asked("locomo", talks, server, tmp_path / "a", "--json")
        assert done.code == 0, done.err
        assert done.data["answers"]["single-hop"]["correct"] == 1.0
        assert done.data["answers"]["all"]["n"] == 5
        wide = asked("locomo", talks, server, tmp_path / "b", "--json", "--adversarial")
        assert wide.data["answers"]["adversarial"]["n"] == 1
        done = asked("dmr", chats, server, tmp_path / "c", "--json", mode="both")
    assert done.data["answers"]["dmr"]["correct"] == pytest.approx(1 / 3)
    assert done.data["figures"]["dmr"]["n"] == 3
    lines = records(tmp_path / "a")
    assert lines[0]["asked_at"] == "2023-06-19T10:04:00+00:00"
    assert lines[0]["qa"]["evidence"]["all_turns"] is True
    assert lines[-1]["qa"]["evidence"]["all_sessions"] is None, "its key names no turn there is"
    assert "none is marked" in (tmp_path / "a" / "report.md").read_text()


def test_without_a_judge_answers_are_scored(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        done = asked("longmemeval", data, server, tmp_path / "run", "--json", judge=False)
        assert "judge" not in roles_asked(server.seen)
    assert "correct" not in done.data["answers"]["all"]
    assert done.data["answers"]["all"]["match"] == 1.0
    assert records(tmp_path / "run")[0]["qa"]["verdict"] is None


def test_what_is_read_can_be_left_to_rules_or_left_out(data: Path, tmp_path: Path) -> None:
    def types(name: str, *more: str) -> set[str]:
        with serving(model) as server:
            done = asked("longmemeval", data, server, tmp_path / name, "--limit", 2, *more)
            assert done.code == 0, done.err
            assert ("extractor" in roles_asked(server.seen)) == ("--extractor" not in more)
        return {hit["type"] for line in records(tmp_path / name) for hit in line["qa"]["context"]}

    assert types("all") == {"Turn", "Fact", "Summary"}
    assert types("a", "--no-facts") == {"Turn", "Summary"}
    assert types("b", "--no-summaries") == {"Turn", "Fact"}
    assert types("c", "--no-facts", "--no-summaries") == {"Turn"}
    assert types("d", "--extractor", "rules") == {"Turn"}, "nobody has summarised anything"
    assert types("e", "--extractor", "verbatim") == {"Turn"}


def test_prompts_of_ones_own_are_used_and_told_apart(data: Path, tmp_path: Path) -> None:
    (tmp_path / "judge.txt").write_text("CORRECT or\nWRONG?\n{question}{reference}{answer}")
    (tmp_path / "extract.txt").write_text("Read it all.")
    with serving(but(judge=lambda _: "CORRECT")) as server:
        more = ("--prompts", tmp_path, "--limit", 1)
        assert asked("longmemeval", data, server, tmp_path / "run", *more).code == 0
        judge = [seen for seen in server.seen if role_of(seen) == "judge"]
        assert judge[0].said == "CORRECT or\nWRONG?\nWho is my gardening teacher?Person0Person0"
        assert next(s.told for s in server.seen if role_of(s) == "extractor") == "Read it all."
        other = asked("longmemeval", data, server, tmp_path / "run", "--limit", 1)
    assert other.code == 4
    assert "holds a run with other settings (prompts of extract was" in other.err


def test_limits_on_what_models_write_are_sent(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        more = ("--limit", 1, "--answer-tokens", 99)
        asked("longmemeval", data, server, tmp_path / "run", *more)
        sent = {role_of(seen): seen.data for seen in server.seen}
    assert {role: body["max_tokens"] for role, body in sent.items()} == {
        "extractor": 4096,
        "answerer": 99,
        "judge": 8,
    }
    assert {body["model"] for body in sent.values()} == {"reads", "answers", "judges"}
    assert {body["temperature"] for body in sent.values()} == {0.0}


# -- many at once ----------------------------------------------------------------------------------


def test_threads_and_processes_change_nothing(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        for workers in (1, 3):
            more = ("--workers", workers)
            done = asked("longmemeval", data, server, tmp_path / f"qa{workers}", *more, mode="both")
            assert done.code == 0, done.err
    assert timeless(records(tmp_path / "qa1")) == timeless(records(tmp_path / "qa3"))
    common = ("eval", "retrieval", "--data", data, "--embedder", "hash")
    for workers in (1, 2):
        out = tmp_path / f"r{workers}"
        done = worlddb(*common, "--workers", workers, "--out", out)
        assert (done.code, done.err) == (0, "")
    assert timeless(records(tmp_path / "r1")) == timeless(records(tmp_path / "r2"))
    assert len(records(tmp_path / "r1")) == QUESTIONS + 1  # One has no answer.


def test_a_sample_is_the_same_every_time(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:
        for name in ("a", "b"):
            asked("longmemeval", data, server, tmp_path / name, "--sample", 2, "--seed", 3)
    assert timeless(records(tmp_path / "a")) == timeless(records(tmp_path / "b"))
    assert len({line["category"] for line in records(tmp_path / "a")}) == 2


# -- models by name --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--mode", "qa", "--out", "x"), "no model answers: give --answerer"),
        (("--mode", "qa", "--answerer", "openai:m"), "--out: give a folder"),
        (("--mode", "qa", "--answerer", "m", "--out", "x"), "give provider:model"),
        (("--mode", "qa", "--answerer", "gopher:m", "--out", "x"), "use one of openai"),
        (("--mode", "qa", "--answerer", "openai:m", "--prompts", "y"), "y is not a folder"),
        (("--mode", "qa", "--answerer", "openai:m@localhost:9911/v1"), "is not an address"),
        (("--mode", "qa", "--answerer", "openai:m@ftp://x"), "is not an address"),
        (("--mode", "qa", "--answerer", "openai:m@http://a:b@h/v1"), "leave out user, password"),
        (("--mode", "qa", "--answerer", "openai:m", "--judge", "openai:j@h"), "--judge: model"),
    ],
)
def test_a_run_without_models_or_a_place_is_refused(
    data: Path, tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    done = worlddb("eval", "longmemeval", "--data", data, *arguments, "--yes", cwd=tmp_path)
    assert done.code == 2, done.err
    assert complaint in done.err
    assert list(tmp_path.iterdir()) == []


def test_models_come_from_the_environment_and_keys_go_nowhere_else(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("WORLDDB_JUDGE_KEY", "sk-judge")
    monkeypatch.setenv("WORLDDB_LLM_API_KEY", "sk-own")
    monkeypatch.setenv("WORLDDB_LLM_PROVIDER", "vllm")
    monkeypatch.setenv("WORLDDB_LLM_MODEL", "local")
    with serving(model) as server, serving(model) as other:
        monkeypatch.setenv("WORLDDB_LLM_BASE_URL", server.url)
        common = ("eval", "longmemeval", "--data", data, "--mode", "qa", "--limit", 1, "--yes")
        judge = ("--judge", f"openai:j:1@{other.url}", "--answerer", f"openai:a@{other.url}")
        done = in_process(*common, "--embedder", "hash", "--out", tmp_path / "run", *judge)
        assert done.code == 0, done.err
        keys = {
            (seen.data["model"], seen.headers.get("authorization"))
            for seen in (*server.seen, *other.seen)
        }
    assert keys == {("local", "Bearer sk-own"), ("j:1", "Bearer sk-judge"), ("a", None)}
    written = "".join(path.read_text() for path in (tmp_path / "run").iterdir())
    assert not [key for key in ("sk-own", "sk-judge", "sk-openai") if key in written]


# -- faults ----------------------------------------------------------------------------------------


def test_a_question_that_fails_is_in_no_figure_and_is_asked_again(
    data: Path, tmp_path: Path
) -> None:
    def refuses(seen: Seen) -> Answer:
        return Fault(400, {"error": "no"}) if "chess teacher?" in seen.said else model(seen)

    out = tmp_path / "run"
    with serving(but(answerer=refuses)) as server:
        done = asked("longmemeval", data, server, out)
        assert done.code == 9
        assert "1 of 5 questions failed and are in no figure" in done.err
        assert "all                  4" in done.out
        assert [line["id"] for line in records(out) if "error" in line] == ["question-1"]
        report = (out / "report.md").read_text()
        assert report.startswith("# longmemeval: qa: 4 of 5 questions, 1 failed\n\n## Failed (1)\n")
        assert f"| question-1 | {server.url}#answers: " in report
        assert "4 of 5 questions, 1 failed</h1>" in (out / "report.html").read_text()
        server.seen.clear()
        server.model = model
        done = asked("longmemeval", data, server, out)
        assert roles_asked(server.seen) == {"answerer": 1, "judge": 1}, "all else is kept"
    assert done.code == 0
    assert "ailed (" not in (out / "report.md").read_text()
    assert [line["id"] for line in records(out)] == [
        *(f"question-{n}" for n in range(4)),
        *(["question-9_abs"]),
    ]


def test_a_reader_that_fails_makes_no_quiet_half_memory(data: Path, tmp_path: Path) -> None:
    with serving(but(extractor=lambda _: Fault(400, {"error": "no"}))) as server:
        done = asked("longmemeval", data, server, tmp_path / "run", "--limit", 2)
        assert "answerer" not in roles_asked(server.seen)
    assert done.code == 9
    assert "2 of 2 questions failed" in done.err


def test_sessions_that_no_reader_can_put_into_data_are_counted(data: Path, tmp_path: Path) -> None:
    with serving(but(extractor=lambda _: "Lovely weather.")) as server:
        done = asked("longmemeval", data, server, tmp_path / "run", "--limit", 1, "--json")
    assert done.code == 0, done.err
    assert done.data["sessions_unread"] == len(TOPICS)
    (line,) = records(tmp_path / "run")
    assert {hit["type"] for hit in line["qa"]["context"]} == {"Turn"}


def test_a_judge_that_babbles_gives_nobody_a_point(data: Path, tmp_path: Path) -> None:
    with serving(but(judge=lambda _: "I believe that is CORRECT")) as server:
        done = asked("longmemeval", data, server, tmp_path / "run", "--json")
    assert done.data["answers"]["all"]["correct"] == 0.0
    assert done.data["answers"]["all"]["match"] == 1.0


def test_a_dead_endpoint_ends_the_run_soon(tmp_path: Path) -> None:
    many = save(tmp_path / "many.json", longmemeval(40))
    with serving(lambda _: Fault(401, {"error": "who are you?"})) as server:
        done = asked("longmemeval", many, server, tmp_path / "run", "--workers", 1)
        assert 10 <= len(server.seen) <= 12
    assert done.code == 9
    assert "10 questions in a row failed; the last: " in done.err
    assert "who are you?" in done.err


def test_a_folder_of_something_else_is_refused(data: Path, tmp_path: Path) -> None:
    with serving(model) as server:

        def told(name: str, text: str) -> Any:
            out = tmp_path / name.replace(".", "-")
            out.mkdir()
            (out / name).write_text(text)
            return asked("longmemeval", data, server, out, "--limit", 1)

        assert told("run.json", "[1]").code == 6
        assert told("questions.jsonl", "[1]\n{}\n").code == 6
        assert told("calls.jsonl", "x\n").code == 6
        assert server.seen == []
