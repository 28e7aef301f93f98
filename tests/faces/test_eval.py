"""eval: the figures of a benchmark file on the command line."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from evaluate.samples import dmr, locomo, longmemeval, longmemeval_item, save, save_lines
from worlddb.faces.cli import terminal as drawing
from worlddb.faces.cli.terminal import Progress

from .command import Result, in_process

QUESTIONS = 4


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("data") / "small.json", longmemeval(QUESTIONS))


def evaluate(path: Path, *arguments: object) -> Result:
    return in_process("eval", "retrieval", "--data", path, "--embedder", "hash", *arguments)


def test_figures_are_printed_by_category_and_for_all(data: Path) -> None:
    done = in_process("eval", "retrieval", "--data", data, "--embedder", "hash")
    assert (done.code, done.err) == (0, "")
    sessions, told, turns, more, sure, spent = done.out.split("\n\n")
    header, *rows = [line.split() for line in sessions.splitlines()]
    assert header == [
        *("category", "n", "any@5", "all@5", "any@10", "all@10", "any@30", "all@30"),
        *("ndcg@10", "mrr"),
    ]
    assert rows == [
        [*("multi-session", "2"), *["1.000"] * 8],
        [*("single-session-user", "2"), *["1.000"] * 8],
        [*("all", "4"), *["1.000"] * 8],
    ]
    assert "95 % intervals of all: any@5 0.510 to 1.000" in told
    assert "any@k, all@k: at least one, or all, gold sessions" in told
    assert turns.split()[2:4] == ["turns@1", "recall@1"]
    assert "tokens@k: what the first k turns take" in more
    assert sure.splitlines()[0].split() == ["confidence", "answer", "found", "questions"]
    assert "auroc_abstention: " in sure
    assert spent.startswith("recall_ms_p50 ")


def test_as_json_the_figures_are_numbers(data: Path) -> None:
    done = evaluate(data, "--json")
    assert done.code == 0
    assert done.data["data"] == str(data)
    assert list(done.data["figures"]) == ["multi-session", "single-session-user", "all"]
    assert done.data["figures"]["all"]["n"] == QUESTIONS
    assert done.data["figures"]["all"]["turns@50"] == 1.0
    assert 0 < done.data["recall_ms_p50"] <= done.data["recall_ms_p95"]
    assert done.data["tokens_in_10"] > 0
    assert done.data["definitions"]["any@k, all@k"].startswith("at least one, or all, gold")


@pytest.mark.parametrize("name", ["small.json.gz", "small.json.xz"])
def test_compressed_files_give_the_same_figures(data: Path, tmp_path: Path, name: str) -> None:
    packed = save(tmp_path / name, longmemeval(QUESTIONS))
    assert evaluate(packed, "--json").data["figures"] == evaluate(data, "--json").data["figures"]


def test_the_format_is_seen_or_told(tmp_path: Path, data: Path) -> None:
    path = save(tmp_path / "locomo.json", locomo())
    figures = evaluate(path, "--json").data["figures"]
    assert figures == evaluate(path, "--format", "locomo", "--json").data["figures"]
    named = in_process("eval", "locomo", "--data", path, "--embedder", "hash", "--json")
    assert named.data["figures"] == figures
    assert {name: row["n"] for name, row in figures.items()} == {
        **dict.fromkeys(("multi-hop", "open-domain", "single-hop", "temporal"), 1),
        "all": 4,
    }
    assert figures["all"]["turns@5"] == 1.0
    chats = save_lines(tmp_path / "msc.jsonl", dmr())
    assert evaluate(chats, "--json").data["figures"]["all"]["n"] == 3


def test_a_limit_asks_the_first_questions_only(data: Path) -> None:
    figures = evaluate(data, "--limit", 3, "--json").data["figures"]
    assert {name: row["n"] for name, row in figures.items()} == {
        "multi-session": 2,
        "single-session-user": 1,
        "all": 3,
    }
    assert evaluate(data, "--limit", 99, "--json").data["figures"]["all"]["n"] == QUESTIONS


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]


def test_each_question_is_a_line_that_can_be_audited(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert evaluate(data, "--out", out, "--limit", 2).code == 0
    lines = lines_of(out)
    assert [line["id"] for line in lines] == ["question-0", "question-1"]
    first = lines[0]
    assert set(first) == {
        *("id", "category", "question", "asked_at", "reference", "has_answer", "gold", "hits"),
        *("write_s", "sessions", "sessions_unread", "figures", "recall_s", "evidence_ranks"),
        *("conversation", "confidence", "is_found"),
    }
    assert first["gold"] == {"sessions": [0], "turns": [[0, 2]]}
    assert first["evidence_ranks"] == {"sessions": [[0, 1]], "turns": [[0, 2, 1]]}
    assert first["hits"][0]["turn"] == [0, 2]
    assert set(first["hits"][0]["lanes"]) <= {"text", "vector", "graph"}
    assert first["hits"][0]["lanes"]["text"]["rank"] == 1
    assert first["hits"][0]["lanes"]["text"]["score"] > 0
    assert first["hits"][0]["text"] == "My gardening teacher is called Person0."
    assert set(first["hits"][0]) == {
        *("turn", "score", "weighed", "fused", "lanes", "tokens", "text", "confidence")
    }
    assert "answer_" not in (out / "questions.jsonl").read_text()
    assert {path.name for path in out.iterdir()} == {
        *("questions.jsonl", "run.json", "report.md", "report.html"),
        *("sessions.svg", "turns.svg"),
    }


def test_lanes_can_be_chosen_and_weighing_left_out(data: Path, tmp_path: Path) -> None:
    def hits_of(*arguments: str) -> list[Any]:
        out = tmp_path / "-".join(["run", *arguments])
        assert evaluate(data, "--out", out, *arguments).code == 0
        return [hit for line in lines_of(out) for hit in line["hits"]]

    def lanes_of(*arguments: str) -> set[str]:
        return {lane for hit in hits_of(*arguments) for lane in hit["lanes"]}

    assert lanes_of("--lanes", "text", "--plain") == {"text"}
    assert lanes_of("--lanes", "text, vector") == {"text", "vector"}
    assert hits_of("--plain") != hits_of()


def test_without_an_embedder_words_alone_are_measured(data: Path) -> None:
    done = in_process(
        *("eval", "retrieval", "--data", data, "--embedder", "none", "--json", "--limit", 1)
    )
    assert done.code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("--lanes", "words"), 2, "unknown lane 'words'"),
        (("--limit", "0"), 2, "--limit: give at least 1"),
        (("--sample", "0"), 2, "--sample: give at least 1"),
        (("--limit", "-3"), 2, "not a whole number"),
        (("--format", "squad"), 2, "invalid choice"),
        (("--format", "locomo"), 6, "is not in the format locomo"),
        (("--mode", "qa"), 2, "for --mode qa or both name the benchmark"),
        (("--knob", "k"), 2, "--knob: works only with ablate"),
        (("--k", "0"), 2, "--k: give at least 1"),
        (("--extractor", "openai:m"), 2, "a model reads only with --mode qa or both"),
        (("--embedder", "gpt-9"), 2, "no such embedder"),
        (("--out", "/proc/no/such/folder"), 8, "no such file or directory"),
    ],
)
def test_a_wrong_option_is_one_line_and_a_code(
    data: Path, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    done = evaluate(data, *arguments)
    assert (done.code, done.out) == (code, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [("--k", "7"), ("--judge", "none"), ("--no-summaries",), ("--price", "answerer=5,25")],
)
def test_an_option_for_answers_is_told_to_change_nothing_where_nobody_answers(
    data: Path, arguments: tuple[str, ...]
) -> None:
    done = evaluate(data, *arguments)
    assert done.code == 0
    assert arguments[0] in done.err
    assert "no effect with --mode retrieval" in done.err


def test_a_missing_or_useless_file_is_told_and_makes_no_folder(tmp_path: Path) -> None:
    out = tmp_path / "run"
    nothing = save(tmp_path / "nothing.json", [longmemeval_item(0, question_id="q_abs")])
    lost = longmemeval_item(0, answer_session_ids=["answer_elsewhere"])
    elsewhere = save(tmp_path / "elsewhere.json", [lost])
    empty = save(tmp_path / "empty.json", [])
    broken = tmp_path / "broken.json.xz"
    broken.write_bytes(b"no such thing")
    for path, code, complaint in (
        (tmp_path / "missing.json", 8, "missing.json: no such file"),
        (elsewhere, 2, "none of its 1 can be asked: 1 whose gold is not in the file"),
        (empty, 2, "has no question for such a run; it is empty"),
        (broken, 6, "is damaged from the start (no JSON: 'no such thing')"),
        (tmp_path, 8, "is a directory"),
    ):
        done = evaluate(path, "--out", out, "--format", "longmemeval")
        assert (done.code, done.out) == (code, ""), done.err
        assert complaint in done.err
        assert done.err.count("\n") == 1
    unknown = save(tmp_path / "unknown.json", [{"a": 1}])
    assert "is none of longmemeval, locomo, dmr" in evaluate(unknown, "--out", out).err
    assert not out.exists()
    assert in_process("eval", "retrieval").code == 2
    assert in_process("eval", "everything", "--data", nothing).code == 2


class Log(io.StringIO):
    """A stream that is no terminal, and knows when it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def flush(self) -> None:
        self.written.set()


def test_where_no_terminal_is_a_line_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    monkeypatch.setattr("sys.stderr", log)
    monkeypatch.setattr(drawing, "TELL_S", 0.01)
    progress = Progress("asking", unit="questions", total=8, tells=True)
    progress.done = 2
    with progress:
        assert log.written.wait(60)
    line, *_ = log.getvalue().splitlines()
    assert line.startswith("asking  [######..................]  25%  2 questions  ")
    assert "\r" not in log.getvalue()
    quiet = Log()
    monkeypatch.setattr("sys.stderr", quiet)
    with Progress("copying"):
        pass
    assert quiet.getvalue() == ""


def test_how_many_questions_are_done_already_is_told(data: Path, tmp_path: Path) -> None:
    assert evaluate(data, "--out", tmp_path / "run", "--limit", 3).err == ""
    rest = evaluate(data, "--out", tmp_path / "run")
    assert rest.err == "asking: 3 of 5 questions are done already\n"


def test_what_dmr_counts_is_said_as_it_is(tmp_path: Path) -> None:
    items = dmr(5)
    for item in items[3:]:
        item["self_instruct"] = {"B": "Which colour?", "A": "Ultramarine"}
    chats = save_lines(tmp_path / "msc.jsonl", items)
    done = in_process("eval", "dmr", "--data", chats, "--embedder", "hash", "--out", tmp_path / "r")
    rule = "n: questions whose answer's words stand in a row in some turn. The benchmark marks no"
    assert rule in done.out
    assert rule.replace("n:", "*n*:") in (tmp_path / "r" / "report.md").read_text()
    assert (
        "questions: 3 of the 5 of the file; 2 without a turn that has the answer's words in a row\n"
    ) in done.out


def test_all_runs_every_file_of_a_folder_beside_simpler_rankings(tmp_path: Path) -> None:
    save(tmp_path / "one.json", longmemeval(QUESTIONS))
    save(tmp_path / "two.json", locomo())
    (tmp_path / "notes.json").write_text('{"of": "something else"}', encoding="utf-8")
    done = in_process("eval", "all", "--data", tmp_path, "--embedder", "hash", "--json")
    assert done.code == 0
    rows = [(row["set"], row["ranking"]) for row in done.data]
    assert list(dict.fromkeys(one for one, _ in rows)) == ["longmemeval", "locomo"]
    rankings = [ranking for form, ranking in rows if form == "locomo"]
    assert rankings[0] == "as asked for"
    assert {"without the graph lane", "plain rank fusion", "text lane alone"} < set(rankings)
    assert len(rows) == 2 * len(rankings)
    assert "all@5 1.000 [0.510, 1.000]" in done.data[0]["figures with their 95 % intervals"]
    empty = in_process("eval", "all", "--data", tmp_path / "nothing", "--embedder", "hash")
    assert empty.code != 0
    assert "has no benchmark file" in empty.err
