"""Scoring without a judge, and reading what judges and answerers say."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlddb import InvalidInputError
from worlddb.evaluate.model_answers import (
    alternatives_in,
    answer_in,
    filled,
    is_clear,
    is_correct,
    is_refusal,
    load_prompts,
    score,
)

# -- verdicts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    ["CORRECT", "correct", " Correct.\n", "CORRECT - the same", "CORRECT\nWRONG", "CORRECT!"],
)
def test_a_verdict_that_begins_with_the_word_is_correct(said: str) -> None:
    assert is_correct(said)


@pytest.mark.parametrize(
    "said",
    [
        *("WRONG", "wrong", "", " ", "INCORRECT", "NOT CORRECT", "The answer is CORRECT", "CORREC"),
        *("**CORRECT**", "CORRECTION: it is wrong", "CORRECTLY, one would say WRONG", "yes", "?"),
        *("I cannot judge that.", "WRONG, though CORRECT in part", "'CORRECT'"),
    ],
)
def test_anything_else_is_wrong(said: str) -> None:
    assert not is_correct(said)


@pytest.mark.parametrize("said", ["CORRECT", "wrong.", "INCORRECT", "<think>?</think> WRONG"])
def test_a_verdict_can_be_told_from_none(said: str) -> None:
    assert is_clear(said)
    assert not any(map(is_clear, ("", "The answer is CORRECT", "WRONGLY", "I cannot judge that.")))


def test_what_a_judge_thinks_aloud_is_no_verdict() -> None:
    assert is_correct("<think>WRONG? No.</think>\nCORRECT")
    assert not is_correct("<think>CORRECT? No.</think>\nWRONG")


# -- answers ---------------------------------------------------------------------------------------


def test_an_answer_is_what_follows_the_last_mark() -> None:
    assert answer_in("Reasoning: a\nAnswer: 42 days") == "42 days"
    assert answer_in("First Answer: 1\nno, wait.\nANSWER: 2\nand more") == "2\nand more"
    assert answer_in("**Answer:** Oslo") == "Oslo"
    assert answer_in("answer : `x`") == "x"
    assert answer_in("The answer: is it known?\nAnswer: yes") == "yes"


def test_without_a_mark_the_whole_reply_is_the_answer() -> None:
    assert answer_in("It was in May.\n") == "It was in May."
    assert answer_in("*stars* stay*") == "*stars* stay*"
    assert answer_in("") == ""
    assert answer_in("Reasoning: it broke off. Answer:") == ""
    assert answer_in("<think>Answer: 1</think>It is 2") == "It is 2"


# -- without a judge -------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["I don't know.", "The memories do not mention it.", "Unknown"])
def test_a_refusal_is_right_where_nothing_can_be_known(answer: str) -> None:
    reference = "The information provided is not enough to say; you mentioned tea, not coffee."
    assert score(answer, reference).match == 1.0
    assert score("Two cups a day", reference).match == 0.0
    assert score(answer, "Two cups a day").match == 0.0


def test_another_number_is_wrong_and_near_is_right_only_if_the_reference_is_vague() -> None:
    assert score("You paid $65.", "$185").match == 0.0
    assert score("You paid $185 in all.", "$185").match == 1.0
    assert score("14 days", "about 15 days").match == 1.0
    assert score("15 days", "about 15 days").match == 1.0
    assert score("20 days", "about 15 days").match == 0.0
    assert score("14 days", "15 days").match == 0.0
    assert score("fifteen days", "15 days").match == 1.0
    assert score("1,200 dollars", "1200 dollars").match == 1.0
    assert score("12.50", "12.5").match == 1.0


def test_other_words_for_the_same_are_left_to_a_judge() -> None:
    """The judge accepts this one; the score must not claim to."""
    found = score(
        "The first thing that failed after the car's first service was the GPS, on March 22.",
        "GPS system not functioning correctly",
    )
    assert found.match == 0.0
    assert 0 < found.f1 < 0.5
    assert found.numeric is None
    assert score("The GPS system was not functioning correctly", "GPS system not functioning").match


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("May 3, 2023", "2023-05-03"),
        ("3 May 2023", "3rd of May, 2023"),
        ("on Sept. 9", "2024/09/09"),
        ("March 22nd", "22 March"),
        ("2023/5/3", "the third? no: May 3 2023"),
    ],
)
def test_a_day_is_the_same_however_it_is_written(one: str, other: str) -> None:
    assert score(f"It was {one}", other).numeric == 1.0
    assert score(f"It was {other}", one).numeric == 1.0


def test_another_day_or_year_is_another_date() -> None:
    assert score("May 4, 2023", "3 May 2023").match == 0.0
    assert score("May 3, 2022", "3 May 2023").match == 0.0
    assert score("in May", "3 May 2023").match == 0.0


def test_exact_leaves_out_articles_case_and_punctuation_alone() -> None:
    assert score("the Blue Bicycle!", "a blue bicycle").exact == 1.0
    assert score("blue bicycles", "a blue bicycle").exact == 1.0
    assert score("a red bicycle", "a blue bicycle").exact == 0.0
    assert score("three", "3").exact == 1.0


def test_f1_is_what_a_hand_works_out() -> None:
    # said: blue, bicycle, garage; wanted: blue, bicycle. 2 * 2 / (3 + 2)
    assert score("the blue bicycle in the garage", "blue bicycle").f1 == pytest.approx(0.8)
    assert score("", "blue").f1 == 0.0
    assert score("green", "blue").f1 == 0.0
    assert score("", "").match == 0.0


@pytest.mark.parametrize(
    "text",
    [
        *("I don't know", "I do not know that", "There is no information on that", "not mentioned"),
        *("You did not mention this information", "I can’t tell", "no record of it"),
        "The information provided is not enough",
    ],
)
def test_ways_of_not_knowing_are_seen(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text", ["You know Anna", "It is enough for two", "You mentioned Oslo", "Not on Monday", "No"]
)
def test_other_answers_are_no_refusals(text: str) -> None:
    assert not is_refusal(text)


# -- prompts ---------------------------------------------------------------------------------------


def test_our_prompts_ask_for_what_the_protocol_needs() -> None:
    prompts = load_prompts()
    for word in ("Reasoning:", "Answer:", "latest one holds", "Count by listing", "I don't know"):
        assert word in prompts.answer
    assert "{date}" in prompts.answer
    assert "CORRECT" in prompts.judge
    assert "about 30" in prompts.judge
    assert '"facts"' in prompts.extract
    assert "every single event" in prompts.extract


def test_a_folder_replaces_some_of_them(tmp_path: Path) -> None:
    ours = load_prompts()
    (tmp_path / "judge.txt").write_text("{question} {reference} {answer}")
    mine = load_prompts(str(tmp_path))
    assert mine.judge == "{question} {reference} {answer}"
    assert (mine.answer, mine.extract) == (ours.answer, ours.extract)
    assert mine.digests()["judge"] != ours.digests()["judge"]
    assert mine.digests()["answer"] == ours.digests()["answer"]


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("answer.txt", "no room for {question}", r"answer.txt has no \{memories\}"),
        ("judge.txt", "{question} {answer}", r"judge.txt has no \{reference\}"),
        ("extract.txt", " ", "give its text"),
    ],
)
def test_a_prompt_without_room_is_refused(
    tmp_path: Path, name: str, text: str, complaint: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=complaint):
        load_prompts(str(tmp_path))
    with pytest.raises(InvalidInputError, match="is not a folder"):
        load_prompts(str(tmp_path / "missing"))


def test_prompts_may_name_their_fields_as_the_paper_does(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text("{question_date} {turns_block} {question}")
    (tmp_path / "judge.txt").write_text("{question} {reference} {generated}")
    mine = load_prompts(str(tmp_path))
    assert filled(mine.answer, date="d", memories="m", question="q") == "d m q"
    assert filled(mine.judge, question="q", reference="r", answer="a") == "q r a"


def test_filling_leaves_braces_of_values_alone() -> None:
    text = filled("{question} / {answer} / {else} {}", question="{answer}", answer="{x} \\1")
    assert text == "{answer} / {x} \\1 / {else} {}"


# -- references that take several answers ----------------------------------------------------------

DAYS = "7 days. 8 days (including the last day) is also acceptable."
WEEK = "One week. Answers ranging from 7 days to 10 days are also acceptable."
TRIP = "15 hours for getting to the three destinations (or 30 hours for the round trip)"


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (DAYS, ["7 days", "8 days"]),
        (WEEK, ["One week", "7 days", "8 days", "9 days", "10 days"]),
        ("25 minutes and 50 seconds (or 25:50)", ["25 minutes and 50 seconds", "25:50"]),
        ("It is also acceptable.", []),
        ("A Pilsner or Lager (for the recipe).", []),
        ("7 days. " * 200 + "8 days is also acceptable.", []),
    ],
)
def test_a_reference_may_name_what_else_it_takes(reference: str, found: list[str]) -> None:
    assert alternatives_in(reference) == found


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("7 days", DAYS),
        ("It took 8 days.", DAYS),
        ("seven days", DAYS),
        ("one week", WEEK),
        ("9 days", WEEK),
        ("30 hours for the round trip", TRIP),
        (DAYS, DAYS),
    ],
)
def test_either_of_them_is_right(answer: str, reference: str) -> None:
    found = score(answer, reference)
    assert (found.match, found.numeric) == (1.0, 1.0)
    if len(answer) < 9 and "seven" not in answer:
        assert found.exact == 1.0


@pytest.mark.parametrize(
    ("answer", "reference"), [("9 days", DAYS), ("6 days", WEEK), ("20 hours", TRIP), ("", DAYS)]
)
def test_nothing_else_is(answer: str, reference: str) -> None:
    found = score(answer, reference)
    assert (found.match, found.numeric) == (0.0, 0.0)
