"""Evaluation of retrieval: figures worked out by hand, and nothing of the gold in the store."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from itertools import permutations
from math import log2
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import FormatError, InvalidInputError, RecallSettings
from worlddb.evaluate.benchmark_cases import Case
from worlddb.evaluate.case_recall import ask, ingest, session_figures, turn_figures
from worlddb.evaluate.data_sets import load_cases

from .samples import TOPICS, locomo, longmemeval, longmemeval_item, save


def cases_of(path: Path, data: Any, form: str = "longmemeval") -> list[Case]:
    return list(load_cases(str(save(path / "data.json", data)), form))


def evaluate(cases: list[Case], settings: RecallSettings | None = None) -> list[dict[str, Any]]:
    """Ask every question that has gold."""
    found = []
    for case in cases:
        # Ids have random parts and break ties: here the same in every run.
        drawn = random.Random(7).randbytes
        with worlddb.open(":memory:", embedder="hash", random_bytes=drawn) as db:
            places = {ident: [place] for ident, place in ingest(db, case).items()}
            found += [
                ask(db, question, places, settings, at=case.asked_at(question))
                for question in case.questions
                if question.is_measured
            ]
    return found


# -- figures ---------------------------------------------------------------------------------------


def test_any_and_all_ask_for_one_gold_session_and_for_each() -> None:
    ranked = [9, 1, 8, 7, 6, 2, 5]
    figures = session_figures(ranked, frozenset({1, 2}))
    assert (figures["any@5"], figures["all@5"]) == (1.0, 0.0)
    assert (figures["any@10"], figures["all@10"]) == (1.0, 1.0)
    assert session_figures(ranked, frozenset({3}))["any@10"] == 0.0
    both = session_figures([1, 2], frozenset({1, 2}))
    assert both["all@5"] == 1.0
    late = session_figures([9, 8, 7, 6, 5, 1], frozenset({1}))
    assert (late["any@5"], late["all@10"]) == (0.0, 1.0)
    deep = session_figures([*range(100, 129), 1, 2], frozenset({1, 2}))
    assert (deep["any@10"], deep["any@30"], deep["all@30"]) == (0.0, 1.0, 0.0)


def test_ndcg_is_what_a_hand_works_out() -> None:
    figures = session_figures([9, 1, 8, 2], frozenset({1, 2}))
    expected = (1 / log2(3) + 1 / log2(5)) / (1 / log2(2) + 1 / log2(3))
    assert figures["ndcg@10"] == pytest.approx(expected)
    assert figures["ndcg@10"] == pytest.approx(0.6509209)
    assert session_figures([1], frozenset({1}))["ndcg@10"] == 1.0
    assert session_figures([2, 3], frozenset({1}))["ndcg@10"] == 0.0
    ranks = list(range(20))
    assert session_figures(ranks, frozenset({10}))["ndcg@10"] == 0.0, "the eleventh does not count"
    many = frozenset(range(12))
    assert session_figures(ranks, many)["ndcg@10"] == pytest.approx(1.0), "only ten can be in ten"


def test_ndcg_is_best_for_the_gold_first_and_never_above_one() -> None:
    gold = frozenset({0, 1})
    found = {order: session_figures(order, gold)["ndcg@10"] for order in permutations(range(4))}
    assert max(found.values()) == pytest.approx(1.0)
    assert {order[:2] for order, value in found.items() if value > 0.999} == {(0, 1), (1, 0)}


def test_mrr_looks_at_the_first_gold_session_however_deep() -> None:
    assert session_figures([9, 8, 1, 2], frozenset({1, 2}))["mrr"] == pytest.approx(1 / 3)
    assert session_figures([*range(30), 99], frozenset({99}))["mrr"] == pytest.approx(1 / 31)
    assert session_figures([], frozenset({1}))["mrr"] == 0.0


def test_turns_count_when_all_are_there_and_recall_is_their_share() -> None:
    gold = frozenset({(0, 1), (2, 3), (4, 5)})
    ranked = [(0, 1), (9, 9), (2, 3), *((8, place) for place in range(8)), (4, 5)]
    figures = turn_figures(ranked, gold)
    assert figures["turns@5"] == 0.0
    assert figures["recall@5"] == pytest.approx(2 / 3)
    assert figures["turns@10"] == 0.0
    assert (figures["turns@20"], figures["recall@20"]) == (1.0, 1.0)
    assert figures["turns@50"] == 1.0
    assert turn_figures(ranked, frozenset()) == {}


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.json", "data.json.gz", "data.json.xz"])
def test_a_file_is_read_as_its_name_says(tmp_path: Path, name: str) -> None:
    path = save(tmp_path / name, longmemeval(2))
    found = list(load_cases(str(path), "longmemeval"))
    assert [case.questions[0].id for case in found] == [
        "question-0",
        "question-1",
        "question-9_abs",
    ]


def test_longmemeval_gold_is_by_place_and_times_are_utc(tmp_path: Path) -> None:
    (case,) = cases_of(tmp_path, [longmemeval_item(3)])
    (question,) = case.questions
    assert question.sessions == {3}
    assert question.turns == {(3, 2)}
    assert question.category == "single-session-user"
    assert question.at == datetime(2023, 5, 30, 23, 40, tzinfo=UTC)
    assert case.sessions[0].at == datetime(2023, 5, 10, 2, 21, tzinfo=UTC)
    assert [turn.speaker for turn in case.sessions[3].turns] == ["user", "assistant", "user"]
    assert (question.reference, question.has_answer) == ("Person3", True)
    (unsure,) = cases_of(tmp_path, [longmemeval_item(3, question_id="x_abs", answer=7)])
    assert unsure.questions[0].category == "single-session-user"
    assert (unsure.questions[0].reference, unsure.questions[0].has_answer) == ("7", False)


def test_locomo_gold_is_by_place_and_pictures_are_their_captions(tmp_path: Path) -> None:
    (case,) = cases_of(tmp_path, locomo(), "locomo")
    assert [len(session.turns) for session in case.sessions] == [2, 2], (
        "a date alone is not a session"
    )
    assert case.sessions[1].at == datetime(2023, 6, 19, 10, 4, tzinfo=UTC)
    assert case.sessions[1].turns[0].text == "Look at this! [shares a photo of a red kayak]"
    gold = [question.turns for question in case.questions]
    assert gold == [{(0, 1)}, {(0, 0)}, {(1, 1)}, {(1, 0)}, {(0, 1)}, frozenset()]
    assert case.questions[4].category == "adversarial"
    assert [question.has_answer for question in case.questions] == [*[True] * 4, False, True]
    assert [question.reference for question in case.questions[2:5]] == [
        "19 June 2023",
        "1",
        "The conversation does not mention it.",
    ]


def test_a_misspelt_key_still_names_its_turns(tmp_path: Path) -> None:
    talk = locomo()
    talk[0]["qa"] = [
        {"question": "?", "answer": "!", "category": 4, "evidence": keys}
        for keys in (["D:1:2"], ["D1:02"], ["D1:1; D2:2"], ["D"], [], None)
    ]
    (case,) = cases_of(tmp_path, talk, "locomo")
    gold = [sorted(question.turns) for question in case.questions]
    assert gold == [[(0, 1)], [(0, 1)], [(0, 0), (1, 1)], [], [], []]


def test_locomo_sessions_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    talk: dict[str, Any] = {}
    for number in (10, 2, 1):
        talk[f"session_{number}"] = [{"speaker": "Ann", "dia_id": f"D{number}:1", "text": "Hi"}]
        talk[f"session_{number}_date_time"] = f"1:00 pm on {number} May, 2023"
    data = [{"conversation": talk, "qa": []}]
    (case,) = cases_of(tmp_path, data, "locomo")
    assert [session.at.day for session in case.sessions] == [1, 2, 10]


NO_LONGMEMEVAL: list[Any] = [
    {"a": 1},
    [1],
    7,
    None,
    [{"question_id": "x"}],
    [longmemeval_item(0, question_date="yesterday")],
    [longmemeval_item(0, haystack_dates=["2023/05/10 (Wed) 02:21"])],
    [longmemeval_item(0, question=5)],
    [longmemeval_item(0, haystack_sessions=[[{"role": "user", "content": None}]] * len(TOPICS))],
    [longmemeval_item(0, haystack_sessions=[["x"]] * len(TOPICS))],
    locomo(),
]


@pytest.mark.parametrize("data", NO_LONGMEMEVAL)
def test_another_format_is_told_from_the_right_one(tmp_path: Path, data: Any) -> None:
    with pytest.raises(FormatError, match="is not in the format longmemeval"):
        cases_of(tmp_path, data)


@pytest.mark.parametrize("data", [longmemeval(1), [{"conversation": 5, "qa": []}], [{}], 7, ["x"]])
def test_another_format_is_told_from_locomo(tmp_path: Path, data: Any) -> None:
    with pytest.raises(FormatError, match="is not in the format locomo"):
        cases_of(tmp_path, data, "locomo")


@pytest.mark.parametrize("name", ["data.json", "data.json.gz", "data.json.xz"])
@pytest.mark.parametrize("damage", ["empty", "noise", "cut", "deep"])
def test_a_damaged_file_is_told(tmp_path: Path, name: str, damage: str) -> None:
    path = save(tmp_path / name, longmemeval(1))
    whole = path.read_bytes()
    if damage == "deep":
        path = tmp_path / "deep.json"
        whole = b"[" * 100_000
    path.write_bytes(
        {"empty": b"", "noise": bytes(range(256)), "cut": whole[: len(whole) // 2]}.get(
            damage, whole
        )
    )
    with pytest.raises(
        FormatError, match=r"is damaged (?:from the start|after item 1) \(.+\); get the file again"
    ):
        list(load_cases(str(path), "longmemeval"))


def test_a_missing_file_and_a_format_nobody_knows_are_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(load_cases(str(tmp_path / "missing.json"), "longmemeval"))
    with pytest.raises(InvalidInputError, match="use one of longmemeval, locomo, dmr"):
        list(load_cases(str(tmp_path / "missing.json"), "squad"))


# -- the whole way ---------------------------------------------------------------------------------


def test_every_answer_of_the_small_files_is_found(tmp_path: Path) -> None:
    outcomes = evaluate(cases_of(tmp_path, longmemeval()))
    assert len(outcomes) == 4
    for number, outcome in enumerate(outcomes):
        assert outcome["figures"]["all@5"] == outcome["figures"]["turns@50"] == 1.0
        assert outcome["hits"][0]["turn"] == [number, 2]
        assert outcome["evidence_ranks"] == {"sessions": [[number, 1]], "turns": [[number, 2, 1]]}
        assert 0 < outcome["figures"]["tokens@5"] < outcome["figures"]["tokens@10"]
        assert outcome["recall_s"] > 0


def test_questions_without_an_answer_are_left_out(tmp_path: Path) -> None:
    outcomes = evaluate(cases_of(tmp_path, locomo(), "locomo"))
    assert [outcome["hits"][0]["turn"] for outcome in outcomes] == [[0, 1], [0, 0], [1, 1], [1, 0]]


def test_a_question_without_marked_turns_has_session_figures_alone(tmp_path: Path) -> None:
    item = longmemeval_item(1)
    for session in item["haystack_sessions"]:
        for turn in session:
            turn.pop("has_answer", None)
    (outcome,) = evaluate(cases_of(tmp_path, [item]))
    assert outcome["evidence_ranks"] == {"sessions": [[1, 1]], "turns": []}
    assert not [name for name in outcome["figures"] if name.startswith(("turns", "recall"))]
    assert outcome["figures"]["any@5"] == 1.0


def test_a_session_that_is_twice_in_the_haystack_counts_at_both_places(tmp_path: Path) -> None:
    item = longmemeval_item(0)
    for name in ("haystack_sessions", "haystack_session_ids", "haystack_dates"):
        item[name] = [*item[name], item[name][0]]
    (case,) = cases_of(tmp_path, [item])
    assert case.questions[0].sessions == {0, len(TOPICS)}
    (outcome,) = evaluate([case])
    assert [turn[:2] for turn in outcome["evidence_ranks"]["turns"]] == [[0, 2], [len(TOPICS), 2]]
    assert outcome["figures"]["all@5"] == 1.0


def test_nothing_of_the_gold_reaches_the_store(tmp_path: Path) -> None:
    item = longmemeval_item(2)
    (case,) = cases_of(tmp_path, [item])
    with worlddb.open(":memory:", embedder="hash") as db:
        places = ingest(db, case)
        assert len(places) == 3 * len(TOPICS)
        assert set(places.values()) == {(s, t) for s in range(len(TOPICS)) for t in range(3)}
        everything = "\n".join(db.export()).casefold()
    for secret in (
        *item["haystack_session_ids"],
        *("answer_", "ultrachat", "has_answer", "gold", item["question_id"], item["question"]),
    ):
        assert secret.casefold() not in everything


def test_ranks_do_not_depend_on_which_session_is_gold(tmp_path: Path) -> None:
    """Two sessions say the same at the same time: which comes first is decided by address."""
    found = []
    for gold in (0, 1):
        item = longmemeval_item(0)
        item["haystack_sessions"][1] = item["haystack_sessions"][0]
        item["haystack_dates"] = [item["haystack_dates"][0]] * len(TOPICS)
        item["haystack_session_ids"] = [
            f"answer_{place}" if place == gold else f"z{place}" for place in range(len(TOPICS))
        ]
        item["answer_session_ids"] = [f"answer_{gold}"]
        (outcome,) = evaluate(cases_of(tmp_path, [item]))
        found.append([(hit["turn"], hit["score"]) for hit in outcome["hits"]])
    assert found[0] == found[1]
    assert [turn for turn, _ in found[0][:2]] in ([[0, 2], [1, 2]], [[1, 2], [0, 2]])


def test_equal_turns_of_one_session_stay_two_nodes(tmp_path: Path) -> None:
    item = longmemeval_item(0)
    item["haystack_sessions"][0] = [{"role": "user", "content": "Yes."}] * 3
    item["haystack_sessions"][1] = [{"role": "user", "content": "Yes."}] * 3
    item["haystack_dates"] = [item["haystack_dates"][0]] * len(TOPICS)
    (case,) = cases_of(tmp_path, [item])
    with worlddb.open(":memory:", embedder="hash") as db:
        assert len(ingest(db, case)) == 3 * len(TOPICS)


def test_lanes_and_weighing_are_as_the_settings_say(tmp_path: Path) -> None:
    settings = RecallSettings(weights={"text": 1.0}, weighing=None)
    (first, *_) = evaluate(cases_of(tmp_path, longmemeval()), settings)
    assert {lane for hit in first["hits"] for lane in hit["lanes"]} == {"text"}
