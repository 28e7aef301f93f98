"""Files: the three formats, read item by item, and what is left out of each."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlddb import FormatError
from worlddb.evaluate import data_sets
from worlddb.evaluate.benchmark_cases import Case
from worlddb.evaluate.data_formats import DMR_ASKED_AT
from worlddb.evaluate.data_sets import format_of, items_of, load_cases

from .samples import dmr_item, locomo, longmemeval, longmemeval_item, save, save_lines

# -- items of a file -------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=5) | st.integers(-9, 9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
ITEMS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=6)
SEARCH = settings(derandomize=True, deadline=None, database=None, max_examples=60)


@SEARCH
@given(ITEMS, st.integers(1, 40), st.sampled_from([None, 1]))
def test_items_are_the_same_however_the_file_is_cut(
    items: list[Any], chunk: int, indent: int | None
) -> None:
    before = data_sets.CHUNK_BYTES
    data_sets.CHUNK_BYTES = chunk
    try:
        array = json.dumps(items, indent=indent, ensure_ascii=False).encode()
        assert list(items_of(io.BytesIO(array))) == items
        if items:
            lines = "\n".join(json.dumps(item, ensure_ascii=False) for item in items).encode()
            assert list(items_of(io.BytesIO(lines))) == items
    finally:
        data_sets.CHUNK_BYTES = before


@pytest.mark.parametrize(
    "text", ["", " \n", "[", "[{}", "[{},", "[{} {}]", "[{}]x", "{}}", "[,]", '[{"a": }]', "\xff"]
)
def test_what_breaks_off_or_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        list(items_of(io.BytesIO(text.encode("latin-1"))))


def test_the_first_item_comes_before_the_rest_is_read() -> None:
    class Endless(io.RawIOBase):
        asked = 0

        def read(self, size: int = -1) -> bytes:
            self.asked += size
            return (b"[" if self.asked == size else b"") + b'{"a": 1},' * (size // 9)

    file = Endless()
    found = items_of(file)  # type: ignore[arg-type]
    assert [next(found) for _ in range(3)] == [{"a": 1}] * 3
    assert file.asked < 10 * data_sets.CHUNK_BYTES


def test_a_format_is_told_by_what_the_first_item_holds(tmp_path: Path) -> None:
    for form, data in (
        ("longmemeval", longmemeval(1)),
        ("locomo", locomo()),
        ("dmr", [dmr_item()]),
    ):
        assert format_of(str(save(tmp_path / "data.json.xz", data))) == form
    for strange in ([{"a": 1}], [], [3], 7):
        with pytest.raises(FormatError, match="is none of longmemeval, locomo, dmr, beam"):
            format_of(str(save(tmp_path / "strange.json", strange)))


def test_questions_of_one_name_get_names_of_their_own(tmp_path: Path) -> None:
    twice = save(tmp_path / "data.json", [longmemeval_item(0), longmemeval_item(0)])
    names = [case.questions[0].id for case in load_cases(str(twice), "longmemeval")]
    assert names == ["question-0", "question-0#2"]
    talks = save(tmp_path / "talks.json", [*locomo(), *locomo()])
    ids = [one.id for case in load_cases(str(talks), "locomo") for one in case.questions]
    assert len(set(ids)) == 12
    assert ids[0] == "conv-1:0"


# -- wrong files -----------------------------------------------------------------------------------


def told(path: Path, form: str) -> str:
    with pytest.raises(FormatError) as caught:
        list(load_cases(str(path), form))
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("data", "form", "complaint"),
    [
        (longmemeval(1), "locomo", "it has the layout of longmemeval; run `worlddb eval longmem"),
        (locomo(), "dmr", "it has the layout of locomo; run `worlddb eval locomo`"),
        ([dmr_item()], "longmemeval", "it has the layout of dmr; run `worlddb eval dmr`"),
        ([longmemeval_item(0), {"a": 1}], "longmemeval", "item 2: lacks 'question_id'; give"),
        (
            [longmemeval_item(0), locomo()],
            "longmemeval",
            "item 2: the item: is not an object but a list; give",
        ),
        (
            [longmemeval_item(0, question=5)],
            "longmemeval",
            "item 1 ('question-0'): question: is not a text but",
        ),
    ],
)
def test_a_file_of_another_layout_is_told_with_what_to_do(
    tmp_path: Path, data: Any, form: str, complaint: str
) -> None:
    said = told(save(tmp_path / "data.json", data), form)
    assert said.startswith(f"is not in the format {form}: {complaint}")


def test_what_a_download_can_leave_is_told(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    packed = save(tmp_path / "inner.json", longmemeval(1))
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as archive:
        archive.add(packed)
    assert "is a tar archive: unpack it" in told(tmp_path / "data.tar.gz", "longmemeval")
    for body, complaint in (
        (b"PK\x03\x04....", "is a zip archive: unpack it"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "run `git lfs pull`"),
        (b"\n<!DOCTYPE html><html>", "is a web page, not the data"),
    ):
        path.write_bytes(body)
        assert complaint in told(path, "longmemeval")


def test_damage_in_the_middle_is_told_with_what_came_before(tmp_path: Path) -> None:
    path = save(tmp_path / "data.json", longmemeval(3))
    whole = path.read_bytes()
    path.write_bytes(whole[:-500])
    assert told(path, "longmemeval") == "is damaged after item 3 (breaks off); get the file again"
    path.write_bytes(whole.replace(b'"question-2"', b'"question-2" oops'))
    assert "is damaged after item 2 (no JSON: 'oops" in told(path, "longmemeval")


def test_a_damaged_item_is_told_before_the_rest_is_read() -> None:
    class Endless(io.RawIOBase):
        asked = 0

        def read(self, size: int = -1) -> bytes:
            self.asked += size
            return (b'[{"a": oops' if self.asked == size else b"") + b'{"a": 1},' * (size // 9)

    file = Endless()
    with pytest.raises(ValueError, match="no JSON: 'oops"):
        next(items_of(file))  # type: ignore[arg-type]
    assert file.asked < 10 * data_sets.CHUNK_BYTES


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress, bytes])
def test_how_a_file_is_packed_is_seen_whatever_its_name(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "longmemeval_s"
    path.write_bytes(pack(json.dumps(longmemeval(2)).encode()))
    assert len(list(load_cases(str(path), format_of(str(path))))) == 3


# -- deep memory retrieval -------------------------------------------------------------------------


def dmr_case(path: Path, *items: dict[str, Any]) -> Case:
    return next(load_cases(str(save_lines(path / "msc.jsonl", list(items))), "dmr"))


def test_a_chat_is_its_sessions_and_what_b_asks_and_a_answers(tmp_path: Path) -> None:
    case = dmr_case(tmp_path, dmr_item(1))
    (question,) = case.questions
    assert question.id == "valid_1"
    assert question.text == "Hey, do you remember which instrument I have played since school?"
    assert question.reference == "The Harp, since school!"
    assert question.at == DMR_ASKED_AT == datetime(2024, 1, 1, 12, tzinfo=UTC)
    assert [len(session.turns) for session in case.sessions] == [2, 2, 2]
    said = [(turn.speaker, turn.text) for turn in case.sessions[0].turns]
    assert said[1] == ("Speaker 2", "Yes, I have played the harp since school.")
    assert said[0][0] == "Speaker 1"


def test_times_are_counted_back_and_keep_the_order_of_the_file(tmp_path: Path) -> None:
    case = dmr_case(tmp_path, dmr_item())
    times = [DMR_ASKED_AT - session.at for session in case.sessions]
    assert times == [
        timedelta(days=12, hours=3),
        timedelta(days=2),
        timedelta(minutes=1),
    ]
    silent = dmr_item(previous_dialogs=[{"dialog": [{"text": text}]} for text in ("a", "b")])
    began = [session.at for session in dmr_case(tmp_path, silent).sessions]
    assert began == sorted(began)
    assert began[1] - began[0] == timedelta(days=1)
    wrong = dmr_item()
    wrong["previous_dialogs"][1]["time_back"] = "3 months ago"
    moved = [session.at for session in dmr_case(tmp_path, wrong).sessions]
    assert moved == sorted(moved)


def test_personas_and_summaries_are_not_what_was_said(tmp_path: Path) -> None:
    case = dmr_case(tmp_path, dmr_item())
    assert "ecretly" not in str(case.sessions)


def test_gold_of_a_chat_are_turns_with_the_words_of_the_answer(tmp_path: Path) -> None:
    item = dmr_item(self_instruct={"B": "Which instrument?", "A": "Cello!"})
    assert dmr_case(tmp_path, item).questions[0].turns == {(0, 1)}
    other = dmr_item(self_instruct={"B": "Which?", "A": "I would say a bassoon"})
    assert dmr_case(tmp_path, other).questions[0].turns == frozenset()
    part = dmr_item(self_instruct={"B": "Which?", "A": "cell"})
    assert dmr_case(tmp_path, part).questions[0].turns == frozenset(), "whole words"


NO_DMR: list[Any] = [
    {"previous_dialogs": [], "dialog": []},
    dmr_item(self_instruct={"A": "x"}),
    dmr_item(self_instruct={"B": "", "A": "x"}),
    dmr_item(self_instruct={"B": "x", "A": ["y"]}),
    dmr_item(previous_dialogs={}),
    dmr_item(previous_dialogs=[{"text": "x"}]),
    dmr_item(dialog=[{"txt": "x"}]),
    dmr_item(dialog=["x"]),
    dmr_item(metadata=[]),
    {"messages": [], "question": "?", "answer": "!"},
    longmemeval_item(0),
]


@pytest.mark.parametrize("item", NO_DMR)
def test_other_formats_are_told_from_dmr(tmp_path: Path, item: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="is not in the format dmr"):
        dmr_case(tmp_path, item)


# -- BEAM, TimeQA, MemDaily ------------------------------------------------------------------------


def beam_item() -> dict[str, Any]:
    turns = [
        {"id": 7, "role": "user", "content": "The budget is 40k."},
        {"id": 8, "role": "assistant", "content": "Noted."},
    ]
    asked = {"id": "q1", "category": "extraction", "question": "Which budget?", "answer": "40k"}
    never = {"id": "q2", "category": "abstention", "question": "Whose?", "answer": "not said"}
    return {
        "name": "chat",
        "sessions": [{"at": "2024-03-15T00:07:00Z", "turns": turns}],
        "questions": [{**asked, "evidence": [7, 99]}, {**never, "evidence": []}],
    }


def test_a_long_chat_has_its_evidence_by_place(tmp_path: Path) -> None:
    path = str(save(tmp_path / "beam.json", [beam_item()]))
    assert format_of(path) == "beam"
    (case,) = load_cases(path, "beam")
    found, never = case.questions
    assert found.turns == {(0, 0)}
    assert found.gold_missing == 1
    assert found.is_measured
    assert not never.is_measured
    assert not never.has_answer


def test_paragraphs_are_turns_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    answers = [{"para": 2, "from": 0, "end": 3, "answer": "Ann"}]
    item = {
        "index": "/wiki/Old_House#P1",
        "link": "/wiki/Old_House",
        "paras": ["Old House", " ", "Ann lived there."],
        "questions": [["Who lived there?", answers], ["Who built it?", []]],
    }
    path = str(save(tmp_path / "time.json", [item]))
    (case,) = load_cases(path, format_of(path))
    assert [turn.text for turn in case.sessions[0].turns] == ["Old House", "Ann lived there."]
    assert case.sessions[0].turns[0].speaker == "Old House"
    found, never = case.questions
    assert found.turns == {(0, 1)}
    assert not never.has_answer


def test_messages_of_others_are_among_the_messages_of_a_person(tmp_path: Path) -> None:
    def trajectory(number: int) -> dict[str, Any]:
        time = f"2024年04月{number:02}日 周一 08:30"
        messages = [{"mid": n, "message": f"{number}: {n}", "time": time} for n in range(3)]
        asked = {"question": "?", "answer": None, "time": time, "target_step_id": [1]}
        return {"message_list": messages, "question_list": [asked]}

    item = {"01_simple_events": [trajectory(1), trajectory(2)], "02_other": [trajectory(3)]}
    (path := tmp_path / "daily.json").write_text(json.dumps(item), encoding="utf-8")
    cases = list(load_cases(str(path), format_of(str(path))))
    assert len(cases) == 3
    texts = [session.turns[0].text for session in cases[0].sessions]
    assert texts[:3] == ["1: 0", "1: 1", "1: 2"]
    assert sorted(texts[3:]) == ["2: 0", "2: 1", "2: 2", "3: 0", "3: 1", "3: 2"]
    assert cases[0].questions[0].turns == {(1, 0)}
    assert cases[2].sessions[0].at == datetime(2024, 4, 3, 8, 30, tzinfo=UTC)
