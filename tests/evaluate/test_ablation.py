"""Ablation: one knob at a time, and the table of what it does."""

from __future__ import annotations

import argparse
import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from faces.command import in_process
from models.server import Answer, Seen, serving
from worlddb import InvalidInputError
from worlddb.evaluate.ablation import BASE, changes, differences, table_of
from worlddb.evaluate.benchmark_cases import RunSettings
from worlddb.evaluate.benchmark_run import Finished
from worlddb.evaluate.figure_summary import summarise
from worlddb.faces.cli.evaluation import model_of, options_of_row

from .eval_command import asked, records, timeless
from .models import model, role_of, roles_asked
from .samples import TOPICS, longmemeval, save


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return save(tmp_path / "data.json", longmemeval(2))


def titles(given: list[str], **options: Any) -> list[str]:
    return [
        title for title, _ in changes(RunSettings(benchmark="locomo", **options), given, model_of)
    ]


@pytest.mark.parametrize("reading", ["rules", "model"])
def test_each_row_differs_from_the_first_in_one_thing(reading: Any) -> None:
    base = RunSettings(benchmark="locomo", mode="qa", reading=reading)
    rows = changes(base, [], model_of)
    assert rows[0] == (BASE, base)
    names = [title for title, _ in rows]
    assert len(names) == len(set(names))
    for title, settings in rows[1:]:
        before, after = base.to_dict(), settings.to_dict()
        changed = {name for name in before if before[name] != after[name]}
        flat = {"facts", "summaries"} if title == "turns alone (flat)" else changed
        assert changed == flat
        assert len(changed) == 1 or title == "turns alone (flat)"


def test_without_an_answerer_only_knobs_of_recall_are_options_of_row() -> None:
    found = titles([], reading="rules")
    assert "without the graph lane" in found
    assert "no facts and entities" in found
    assert "mean pooling" in found
    assert not {"no summaries", "k = 10", "turns alone (flat)"} & set(found)
    with pytest.raises(InvalidInputError, match="only changes what is answered"):
        titles(["k"])


def test_where_nothing_is_read_there_is_nothing_to_leave_out() -> None:
    assert "no facts and entities" not in titles([])
    assert "no summaries" not in titles([], mode="qa")
    assert not {"no summaries", "turns alone (flat)"} & set(titles([], mode="qa", reading="rules"))
    assert "no summaries" in titles([], mode="qa", reading="model")
    with pytest.raises(InvalidInputError, match="knob summaries: only a model writes them"):
        titles(["summaries"], mode="qa", reading="rules")
    with pytest.raises(InvalidInputError, match=r"knob facts: .*; give --extractor rules"):
        titles(["facts"])


def test_knobs_can_be_chosen_and_given_values() -> None:
    assert titles(["k=5, 50,7"], mode="qa") == [BASE, "k = 5", "k = 7"]
    assert titles(["embedder=hash,arctic-embed-s"]) == [
        *(BASE, "embedder hash", "embedder arctic-embed-s"),
    ]
    assert titles(["lanes=graph"]) == [BASE, "without the graph lane"]
    assert titles(["lanes"], lanes=("text",)) == [
        *(BASE, "the vector lane alone", "the graph lane alone"),
    ]
    assert titles(["weighing"], weighed=False) == [BASE], "already so"


@pytest.mark.parametrize(
    "knob",
    [
        "colour",
        "k=x",
        "k=-1",
        "k=0",
        "lanes=words",
        "",
        "answerer",
        "judge=openai:x",
        "answerer=openai:x@h:1/v1",
    ],
)
def test_a_knob_that_is_none_is_refused(knob: str) -> None:
    with pytest.raises(InvalidInputError):
        titles([knob], mode="qa")


def test_the_table_shows_what_retrieval_loses(data: Path) -> None:
    common = ("eval", "ablate", "--data", data, "--embedder", "hash", "--knob", "lanes")
    done = in_process(*common)
    assert done.code == 0, done.err
    header, first, *rows = done.out.split("\n\n")[0].splitlines()
    assert header.split()[:4] == ["what", "all@5", "all@10", "ndcg@10"]
    assert first.split()[:4] == ["as", "asked", "for", "1.000"]
    assert "(+0.000)" in rows[0]
    alone = next(row for row in rows if row.startswith("the graph lane alone"))
    assert alone.count("(-1.000)") > 3
    assert "questions: all 3 of the file; the same in" in done.out
    data_rows = in_process(*common, "--json").data["rows"]
    assert data_rows["the graph lane alone"]["all@5"] == 0.0


@pytest.mark.parametrize("more", [(), ("--extractor", "rules", "--sample", 1)])
def test_the_first_row_is_the_run_without_ablate(
    data: Path, tmp_path: Path, more: tuple[object, ...]
) -> None:
    common = ("--data", data, "--embedder", "hash", *more)
    once = in_process("eval", "longmemeval", *common, "--out", tmp_path / "once")
    table = in_process("eval", "ablate", *common, "--knob", "weighing", "--out", tmp_path / "runs")
    assert (once.code, table.code) == (0, 0), once.err + table.err
    first = tmp_path / "runs" / "as-asked-for"
    assert (first / "run.json").read_bytes() == (tmp_path / "once" / "run.json").read_bytes()
    assert timeless(records(first)) == timeless(records(tmp_path / "once"))
    plain = in_process("eval", "longmemeval", *common, "--plain", "--out", tmp_path / "plain")
    assert plain.code == 0, plain.err
    other = tmp_path / "runs" / "fused-ranks-alone"
    assert (
        timeless(records(other))
        == timeless(records(tmp_path / "plain"))
        != timeless(records(first))
    )
    assert [one["write_s"] for one in records(other)] == [one["write_s"] for one in records(first)]


def test_the_page_of_a_table_has_one_heading_each_and_whole_lines(
    data: Path, tmp_path: Path
) -> None:
    common = ("eval", "ablate", "--data", data, "--embedder", "hash", "--sample", 1)
    assert in_process(*common, "--knob", "lanes", "--out", tmp_path / "runs").code == 0
    lines = (tmp_path / "runs" / "ablation.md").read_text().splitlines()
    heads = [line for line in lines if line.startswith("#")]
    assert heads == ["# longmemeval: retrieval, ablated", "## One knob at a time"]
    notes = [line.partition(":")[0] for line in lines if line.startswith("- ")]
    assert notes == ["- *questions*", "- *in parentheses*", "- *star*"]
    assert "a sample of 1 of the 3 of the file" in "".join(lines)
    assert "fewer than 20" in lines[-1]


@pytest.mark.parametrize(("n", "shown"), [(19, "0.000 (-1.000)"), (20, "0.000 (-1.000)*")])
def test_a_few_questions_bear_nothing_out(n: int, shown: str) -> None:
    def finished(value: float) -> Finished:
        found = [
            {
                "id": str(number),
                "category": "one",
                "figures": {"all@5": value, "tokens@10": 1.0},
                "recall_s": 0.1,
                "write_s": 0.1,
                "sessions_unread": 0,
            }
            for number in range(n)
        ]
        return Finished(records=found, summary=summarise(found))

    table = table_of({BASE: finished(1.0), "worse": finished(0.0)}, f"all {n}")
    assert table.rows[1][1] == shown


def test_with_models_what_was_read_is_paid_for_once(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    with serving(model) as server:
        more = ("--knob", "facts", "--knob", "k=1", "--json")
        done = asked("ablate", data, server, out, *more)
        assert done.code == 0, done.err
        spent = roles_asked(server.seen)
        assert spent["extractor"] == len(TOPICS)
        assert spent["answerer"] == 4 * 3
        again = asked("ablate", data, server, out, *more)
        assert roles_asked(server.seen) == spent
    assert done.data == again.data
    rows = done.data["rows"]
    assert list(rows) == [BASE, "no facts and entities", "turns alone (flat)", "k = 1"]
    assert rows["k = 1"]["tokens"] < rows["turns alone (flat)"]["tokens"] < rows[BASE]["tokens"]
    assert {path.name for path in out.iterdir()} == {
        *("calls.jsonl", "as-asked-for", "no-facts-and-entities", "turns-alone-flat", "k-1"),
        *("ablation.md", "ablation.html"),
    }
    assert "| turns alone (flat) | 1.000 (+0.000) |" in (out / "ablation.md").read_text()
    ET.fromstring((out / "ablation.html").read_text())


def test_models_can_be_knobs_and_only_what_differs_is_asked(data: Path, tmp_path: Path) -> None:
    def other(seen: Seen) -> Answer:
        return "Answer: nobody" if role_of(seen) == "answerer" else model(seen)

    with serving(model) as server, serving(other) as far:
        knobs = ("--knob", f"answerer=openai:small@{far.url}", "--knob", f"judge=vllm:j@{far.url}")
        done = asked("ablate", data, server, tmp_path / "runs", *knobs, "--json")
        assert done.code == 0, done.err
        spent = roles_asked(server.seen)
        assert spent == {"extractor": len(TOPICS), "answerer": 3, "judge": 6}
        assert roles_asked(far.seen) == {"answerer": 3, "judge": 3}
        assert "answerer small: about 3 requests" in done.err
    rows = done.data["rows"]
    assert list(rows) == [BASE, "answerer openai:small", "judge vllm:j"]
    assert rows["answerer openai:small"]["correct"] == 0.0
    assert rows["judge vllm:j"] == rows[BASE]
    run = json.loads((tmp_path / "runs" / "answerer-openai-small" / "run.json").read_text())
    assert run["roles"]["answerer"] == "openai:small"


def test_a_difference_is_marked_only_if_questions_bear_it_out() -> None:
    def lines(*values: float) -> list[dict[str, Any]]:
        return [
            {"id": str(number), "figures": {"all@5": value}} for number, value in enumerate(values)
        ]

    nothing = differences(lines(*[1.0] * 40), lines(*[1.0] * 40))["all@5"]
    assert (nothing.value, nothing.low, nothing.high) == (0.0, 0.0, 0.0)
    one = differences(lines(*[1.0] * 40), lines(0.0, *[1.0] * 39))["all@5"]
    assert one.value == -0.025
    assert one.low < 0 <= one.high
    many = differences(lines(*[1.0] * 40), lines(*[0.0] * 10, *[1.0] * 30))["all@5"]
    assert many.high < 0
    assert differences(lines(1.0), lines(1.0, 0.0))["all@5"].n == 1, "pairs alone"


def test_a_model_of_the_same_name_elsewhere_does_not_take_the_place_of_the_one_asked_for() -> None:
    base = RunSettings(benchmark="locomo", mode="qa", roles={"answerer": "openai:m"})
    knobs = ["answerer=openai:m@http://far/v1,openai:n@http://far/v1"]
    args = argparse.Namespace(knob=knobs, answerer="openai:m@http://near/v1")
    found = [options_of_row(args, base, one).answerer for _, one in changes(base, knobs, model_of)]
    assert found == ["openai:m@http://near/v1", "openai:n@http://far/v1"]
