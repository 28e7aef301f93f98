"""eval: the figures of a benchmark file on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluate.samples import locomo, longmemeval, longmemeval_item, save

from .command import Result, in_process, worlddb

QUESTIONS = 4


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("data") / "small.json", longmemeval(QUESTIONS))


def evaluate(path: Path, *arguments: object) -> Result:
    return in_process("eval", "retrieval", "--data", path, "--embedder", "hash", *arguments)


def test_figures_are_printed_by_category_and_for_all(data: Path) -> None:
    done = worlddb("eval", "retrieval", "--data", data, "--embedder", "hash")
    assert (done.code, done.err) == (0, "")
    sessions, turns, spent = done.out.split("\n\n")
    header, *rows = [line.split() for line in sessions.splitlines()]
    assert header == [
        *("category", "n", "any@5", "all@5", "any@10", "all@10", "ndcg@10", "mrr"),
    ]
    assert rows == [
        [*("multi-session", "2"), *["1.000"] * 6],
        [*("single-session-user", "2"), *["1.000"] * 6],
        [*("all", "4"), *["1.000"] * 6],
    ]
    assert turns.split()[2:4] == ["turns@5", "recall@5"]
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


@pytest.mark.parametrize("name", ["small.json.gz", "small.json.xz"])
def test_compressed_files_give_the_same_figures(data: Path, tmp_path: Path, name: str) -> None:
    packed = save(tmp_path / name, longmemeval(QUESTIONS))
    assert evaluate(packed, "--json").data["figures"] == evaluate(data, "--json").data["figures"]


def test_locomo_is_asked_for_by_its_name(tmp_path: Path) -> None:
    path = save(tmp_path / "locomo.json", locomo())
    figures = evaluate(path, "--format", "locomo", "--json").data["figures"]
    assert {name: row["n"] for name, row in figures.items()} == {
        **dict.fromkeys(("multi-hop", "open-domain", "single-hop", "temporal"), 1),
        "all": 4,
    }
    assert figures["all"]["turns@5"] == 1.0


def test_a_limit_asks_the_first_questions_only(data: Path) -> None:
    figures = evaluate(data, "--limit", 3, "--json").data["figures"]
    assert {name: row["n"] for name, row in figures.items()} == {
        "multi-session": 2,
        "single-session-user": 1,
        "all": 3,
    }
    assert evaluate(data, "--limit", 99, "--json").data["figures"]["all"]["n"] == QUESTIONS


def test_each_question_is_a_line_that_can_be_audited(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert evaluate(data, "--out", out, "--limit", 2).code == 0
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["id"] for line in lines] == ["question-0", "question-1"]
    first = lines[0]
    assert set(first) == {
        *("id", "category", "question", "figures", "seconds", "tokens", "gold", "hits"),
    }
    assert first["gold"] == [[0, 2]]
    assert first["hits"][0]["turn"] == [0, 2]
    assert set(first["hits"][0]["ranks"]) <= {"text", "vector", "graph"}
    assert "answer_" not in out.read_text()


def test_lanes_can_be_chosen_and_weighing_left_out(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"

    def lanes_of(*arguments: str) -> set[str]:
        assert evaluate(data, "--out", out, *arguments).code == 0
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        return {lane for line in lines for hit in line["hits"] for lane in hit["ranks"]}

    assert lanes_of("--lanes", "text", "--plain") == {"text"}
    assert lanes_of("--lanes", "text, vector") == {"text", "vector"}
    assert evaluate(data, "--plain").code == 0
    plain = out.read_text()
    lanes_of("--lanes", "text,vector", "--plain")
    assert out.read_text() != plain


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
        (("--limit", "-3"), 2, "not a whole number"),
        (("--format", "dmr"), 2, "invalid choice"),
        (("--format", "locomo"), 6, "is no locomo file"),
        (("--embedder", "gpt-9"), 2, "no such embedder"),
        (("--out", "/no/such/folder/out.jsonl"), 8, "no such file or directory"),
    ],
)
def test_a_wrong_option_is_one_line_and_a_code(
    data: Path, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    done = evaluate(data, *arguments)
    assert (done.code, done.out) == (code, "")
    assert complaint in done.err
    assert done.err.count("\n") == 1


def test_a_missing_or_useless_file_is_told_and_costs_no_earlier_results(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text("earlier results\n")
    nothing = save(tmp_path / "nothing.json", [longmemeval_item(0, question_id="q_abs")])
    empty = save(tmp_path / "empty.json", [])
    broken = tmp_path / "broken.json.xz"
    broken.write_bytes(b"no such thing")
    for path, code, complaint in (
        (tmp_path / "missing.json", 8, "missing.json: no such file"),
        (nothing, 2, "has no question with an answer"),
        (empty, 2, "has no question with an answer"),
        (broken, 6, "is no longmemeval file"),
        (tmp_path, 8, "is a directory"),
    ):
        done = evaluate(path, "--out", out)
        assert (done.code, done.out) == (code, ""), done.err
        assert complaint in done.err
        assert done.err.count("\n") == 1
    assert out.read_text() == "earlier results\n"
    assert in_process("eval", "retrieval").code == 2
    assert in_process("eval", "everything", "--data", nothing).code == 2
