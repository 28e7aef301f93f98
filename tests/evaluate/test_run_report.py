"""Reports: means, intervals, and pages that other programs can read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from worlddb.evaluate.figure_summary import Z, bootstrap, mean_of, summarise, wilson
from worlddb.evaluate.run_report import tables_of, write_report

NASTY = 'a <b>|"x"| & \x07\n</td></table><script>alert(1)</script> ‰ \ud800'
SVG = "{http://www.w3.org/2000/svg}"


def record(number: int, *, category: str = "one", right: bool = True, **changes: Any) -> Any:
    found: dict[str, Any] = {
        "id": f"q{number}",
        "conversation": number // 2,
        "write_s": 0.5,
        "category": category,
        "question": f"{NASTY} {number}",
        "reference": "yes",
        "has_answer": True,
        "gold": {"sessions": [0], "turns": [[0, 0]]},
        "sessions_unread": 0,
        "recall_s": 0.001 * number,
        "figures": {"all@5": float(right), "mrr": 0.25 * (number % 4), "tokens@10": 100.0 + number}
        | {f"turns@{k}": float(k > 10) for k in (5, 10, 20, 50)},
        "qa": {
            "answer": NASTY,
            "correct": right,
            "score": {"match": 0.0, "exact": 0.0, "f1": 0.5, "numeric": None},
            "evidence": {"all_sessions": right},
            "context_tokens": 1000,
            "times": {"recall_s": 0.001},
        },
    }
    return found | changes


# -- intervals -------------------------------------------------------------------------------------


def test_wilson_is_what_tables_give() -> None:
    assert wilson(8, 10) == pytest.approx((0.4901625, 0.9433178), abs=1e-6)
    for right, n in ((450, 470), (1, 3), (249, 500)):
        for bound in wilson(right, n):
            # Where a share that far off would just be rejected.
            assert (right / n - bound) ** 2 == pytest.approx(Z**2 * bound * (1 - bound) / n)
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == 1.0


def test_a_bootstrap_is_repeatable_and_shrinks_with_more_values() -> None:
    few, many = [0.0, 0.5, 1.0, 0.25], [0.0, 0.5, 1.0, 0.25] * 100
    assert bootstrap(few) == bootstrap(few)
    low, high = bootstrap(many)
    assert low < sum(many) / len(many) < high
    assert high - low < bootstrap(few)[1] - bootstrap(few)[0]
    assert mean_of([0.5] * 9).low == 0.5
    with pytest.raises(ValueError, match="no values"):
        mean_of([])


# -- summaries -------------------------------------------------------------------------------------


def test_categories_count_the_same_in_the_averaged_row() -> None:
    records = [record(n, category="big") for n in range(8)]
    records += [record(8 + n, category="small", right=False) for n in range(2)]
    records[0] = record(0, category="big", has_answer=False)
    summary = summarise(records)
    rows = {group.name: group for group in summary.answers}
    assert list(rows) == ["big", "small", "all", "task-averaged", "abstention"]
    assert rows["all"].means["correct"].value == 0.8
    assert rows["task-averaged"].means["correct"].value == 0.5
    assert rows["abstention"].n == 1
    assert [group.name for group in summary.figures] == ["big", "small", "all"]
    data = summary.to_dict()
    assert data["answers"]["all"]["correct"] == 0.8
    assert data["intervals"]["answers"]["all"]["correct"] == list(wilson(8, 10))
    assert data["recall_ms_p50"] == pytest.approx(5.0)
    assert data["write_s"] == 2.5, "two questions each about five conversations"


def test_turns_are_counted_over_the_questions_that_have_some() -> None:
    bare = record(1)
    bare["figures"] = {"all@5": 1.0, "mrr": 1.0, "tokens@10": 5.0}
    sessions, turns, _ = tables_of(summarise([record(0), bare]))
    assert sessions.rows[-1][:2] == ["all", "2"]
    assert turns.rows[-1][:2] == ["all", "1"]


def test_without_a_judge_there_is_no_such_column() -> None:
    scored = record(0)
    scored["qa"]["correct"] = None
    del scored["figures"]
    (table,) = tables_of(summarise([scored]))
    assert table.headers == ["category", "n", "match", "exact", "f1", "evidence", "tokens"]


def test_what_counts_though_it_went_otherwise_is_counted() -> None:
    cut, vague, wrong = record(0), record(2), record(4)
    cut["qa"] |= {"is_cut": True, "verdict": "CORRECT"}
    vague["qa"] |= {"is_cut": False, "verdict": "Hm."}
    wrong["qa"] |= {"is_cut": False, "verdict": "Wrong."}
    spent = summarise([cut, vague, wrong]).spent
    assert {name: spent.get(name) for name in ("answers_cut", "verdicts_unclear")} == {
        "answers_cut": 1,
        "verdicts_unclear": 1,
    }
    assert "sessions_unread" not in spent
    both = [record(n, conversation=9, sessions_unread=3) for n in range(4)]
    assert summarise(both).spent["sessions_unread"] == 3, "once for each conversation"


def test_numbers_are_scored_over_the_references_that_have_some() -> None:
    some, none = record(0), record(1)
    some["qa"]["score"]["numeric"] = 1.0
    numeric = summarise([some, none]).answers[-2].means["numeric"]
    assert (numeric.value, numeric.n) == (1.0, 1)


def test_nothing_gives_nothing() -> None:
    summary = summarise([])
    assert tables_of(summary) == []
    assert summary.to_dict() == {"intervals": {}}


# -- pages -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    records = [record(n, category=NASTY, right=n % 3 > 0) for n in range(9)]
    run = {"benchmark": "locomo", "mode": "both", "data": NASTY, "roles": {"judge": "m"}}
    write_report(tmp_path, run, summarise(records), records, {"cost": "1.00"})
    return tmp_path


def test_the_page_is_whole_by_itself_and_well_formed(folder: Path) -> None:
    text = (folder / "report.html").read_text()
    page = ET.fromstring(text)
    assert page.tag == "html"
    assert len(page.findall(f".//{SVG}svg")) == 3
    assert not re.search(r"(?:src|href)=|@import|url\(", text)
    assert len(page.findall(".//figcaption")) == 3
    assert page.findall(".//script") == []
    for table in page.findall(".//table"):
        columns = len(table.findall("./thead/tr/th"))
        assert {len(row.findall("./td")) for row in table.findall("./tbody/tr")} == {columns}
    heads = [str(head.text) for head in page.findall(".//h2")]
    assert heads == ["Sessions", "Turns", "Answers", "What went wrong (3)", "The run"]


def test_figures_stand_apart_from_their_intervals(folder: Path) -> None:
    page = ET.fromstring((folder / "report.html").read_text())
    cells = page.findall(".//table[@class='figures']/tbody/tr[@class='whole']/td")
    assert str(cells[2].text).strip() == "0.667"
    small = cells[2].find("small")
    assert small is not None
    assert small.text == "[0.35, 0.88]"
    assert page.findall(".//table[@class='texts']//small") == []


def test_the_markdown_has_its_drawings_beside_it(folder: Path) -> None:
    named = re.findall(r"!\[[^]]+\]\(([^)]+)\)", (folder / "report.md").read_text())
    assert named == ["sessions.svg", "turns.svg", "answers.svg"]
    for name in named:
        assert ET.fromstring((folder / name).read_text()).tag == f"{SVG}svg"


def test_plots_stay_inside_their_frames(folder: Path) -> None:
    page = ET.fromstring((folder / "report.html").read_text())
    for drawing in page.findall(f".//{SVG}svg"):
        _, _, width, height = map(float, drawing.attrib["viewBox"].split())
        for mark in drawing.iter():
            assert 0 <= float(mark.attrib.get("x", 0)) <= width
            assert 0 <= float(mark.attrib.get("y", 0)) <= height


def test_every_row_of_the_markdown_has_the_cells_of_its_head(folder: Path) -> None:
    blocks = re.split(r"\n(?!\|)", (folder / "report.md").read_text())
    tables = [block for block in blocks if block.startswith("|") or "\n|" in block]
    assert len(tables) == 5
    for table in tables:
        lines = [line for line in table.splitlines() if line.startswith("|")]
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
        assert len(cells) == 1, table
    assert "<script>" not in (folder / "report.md").read_text()


def test_without_answers_the_report_says_where_the_gold_was(tmp_path: Path) -> None:
    hidden = record(0, right=False, evidence_ranks={"sessions": [[3, 7], [4, None]], "turns": []})
    found = record(1)
    for one in (hidden, found):
        del one["qa"]
    run = {"benchmark": "locomo", "mode": "retrieval"}
    write_report(tmp_path, run, summarise([hidden, found]), [hidden, found], {})
    page = ET.fromstring((tmp_path / "report.html").read_text())
    wrong = page.findall(".//table")[2]
    cells = [str(cell.text) for cell in wrong.findall("./tbody/tr/td")]
    assert cells[0] == "q0"
    assert cells[-1] == "7, nowhere"
    assert len(wrong.findall("./tbody/tr")) == 1
