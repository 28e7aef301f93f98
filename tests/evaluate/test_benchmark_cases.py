"""Layout: a bad item is told by file, place and id, before anything is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faces.command import in_process
from models.server import serving
from worlddb import FormatError
from worlddb.evaluate.data_sets import load_cases

from .eval_command import asked, records
from .models import model
from .samples import TOPICS, dmr_item, locomo, longmemeval, longmemeval_item, save

HUGE = "x" * ((1 << 20) + 1)


def said(text: Any) -> list[Any]:
    """Return sessions that are as they should be, but for one turn."""
    sessions = longmemeval_item(0)["haystack_sessions"]
    sessions[3][1]["content"] = text
    return list(sessions)


def talk(**changes: Any) -> Any:
    (item,) = locomo()
    item["qa"][1] |= changes
    return item


BAD = [
    (longmemeval_item(1, question=" "), "question 'question-1': is empty"),
    (longmemeval_item(1, question="\ud800?"), "question 'question-1': character 0 is a lone surr"),
    (
        longmemeval_item(1, haystack_sessions=said(HUGE)),
        "session 4, turn 2: the text: 1,048,577 by",
    ),
    (longmemeval_item(1, haystack_sessions=said("\udfff")), "session 4, turn 2: the text: charact"),
    (longmemeval_item(1, haystack_sessions=said(None)), "haystack_sessions, 4, 2, content: is not"),
    (longmemeval_item(1, answer=None), "answer: is neither a text nor a number but null"),
    (longmemeval_item(1, answer=""), "answer: is empty"),
    (longmemeval_item(1, haystack_dates=[]), "has 8 haystack_sessions, but 0 haystack_dates"),
    (longmemeval_item(1, haystack_session_ids=["a"]), "has 8 haystack_sessions, but 1 haystack_se"),
    (longmemeval_item(1, haystack_sessions=None), "haystack_sessions: is not a list but null"),
    (
        longmemeval_item(1, haystack_sessions=["x"] * 8),
        "haystack_sessions, 1: is not a list but a te",
    ),
    (
        longmemeval_item(1, haystack_sessions=[["x"]] * 8),
        "haystack_sessions, 1, 1: is not an object",
    ),
    (longmemeval_item(1, answer_session_ids=None), "answer_session_ids: is not a list but null"),
    (
        longmemeval_item(1, question_date="2023/13/01 (Wed) 02:21"),
        "question_date: is not a date: '2",
    ),
    (talk(question=""), "question 'conv-1:1#2': is empty"),
    (talk(answer=None), "qa, 2, answer: is neither a text nor a number but null"),
    (talk(category=7), "qa, 2, category: is none of 1 to 5"),
    (talk(evidence=[5]), "qa, 2, evidence: is not a text but a number"),
    ({**talk(), "qa": None}, "qa: is not a list but null"),
    ({**talk(), "conversation": {}}, "has no session that says when its questions are asked"),
    (dmr_item(0, dialog=None), "dialog: is not a list but null"),
    (dmr_item(0, dialog=[{"text": HUGE}]), "session 3, turn 1: the text: 1,048,577 bytes"),
    (dmr_item(0, metadata=None), "metadata: is not an object but null"),
]


@pytest.mark.parametrize(("item", "complaint"), BAD)
def test_a_bad_item_is_told_by_its_place_and_what_is_wrong(
    tmp_path: Path, item: dict[str, Any], complaint: str
) -> None:
    form, good = ("longmemeval", longmemeval_item(0))
    if "conversation" in item:
        form, good = "locomo", locomo()[0]
    elif "dialog" in item:
        form, good = "dmr", dmr_item(1)
    path = save(tmp_path / "data.json", [good, item])
    with pytest.raises(FormatError) as error:
        list(load_cases(str(path), form))
    told = str(error.value)
    assert told.startswith(f"{path}: ")
    name = item.get("question_id") or item.get("sample_id") or "valid_0"
    assert f"item 2 ({name!r}): {complaint}" in told or f"item 2: {complaint}" in told
    assert "NoneType" not in told
    assert "indices" not in told


def test_nothing_is_asked_if_a_later_item_is_bad(tmp_path: Path) -> None:
    items = [*longmemeval(2), longmemeval_item(5, question="")]
    data = save(tmp_path / "data.json", items)
    with serving(model) as server:
        done = asked("longmemeval", data, server, tmp_path / "run")
        assert server.seen == []
    assert done.code == 6
    assert "item 4 ('question-5'): question 'question-5': is empty" in done.err
    assert not (tmp_path / "run").exists()


def test_gold_that_the_file_does_not_have_is_counted(tmp_path: Path) -> None:
    items = longmemeval(2)
    items[0]["answer_session_ids"] += ["answer_elsewhere", "answer_nowhere"]
    data = save(tmp_path / "data.json", items)
    out = tmp_path / "run"
    common = ("eval", "longmemeval", "--data", data, "--embedder", "hash", "--out", out)
    done = in_process(*common, "--json")
    assert done.data["gold_missing"] == 2
    assert done.data["figures"]["all"]["all@5"] == 1.0
    assert records(out)[0]["gold"]["missing"] == 2
    assert "gold_missing | 2.0" in (out / "report.md").read_text()
    assert len(records(out)[0]["evidence_ranks"]["sessions"]) == 1
    assert len(TOPICS) == records(out)[0]["sessions"]
