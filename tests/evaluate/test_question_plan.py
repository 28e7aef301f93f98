"""Plan and cost: which questions are asked, and what that will take."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from worlddb import ChatSettings, FormatError, InvalidInputError
from worlddb.evaluate.benchmark_cases import RunSettings
from worlddb.evaluate.data_sets import load_cases
from worlddb.evaluate.model_answers import Roles, load_prompts
from worlddb.evaluate.question_plan import (
    PlannedQuestion,
    choose,
    estimates,
    plan_of,
    read_prices,
    works_of,
)
from worlddb.evaluate.run_folder import CachedChat, ReplyCache

from .samples import locomo, longmemeval, save


def planned(*sizes: int) -> list[PlannedQuestion]:
    """Return so many questions of each of some categories, mixed."""
    names = [f"{kind}-{number}" for kind, size in enumerate(sizes) for number in range(size)]
    names.sort(key=lambda name: name[::-1])
    return [
        PlannedQuestion(
            id=name,
            case=place,
            place=0,
            category=name[0],
            tokens=1000,
            sessions=5,
            turn_tokens=20.0,
        )
        for place, name in enumerate(names)
    ]


def counts(chosen: list[PlannedQuestion]) -> list[int]:
    return [count for _, count in sorted(Counter(one.category for one in chosen).items())]


def test_a_sample_has_its_share_of_every_category() -> None:
    everything = planned(60, 30, 10)
    assert counts(choose(everything, sample=10, limit=None, seed=1)) == [6, 3, 1]
    assert counts(choose(everything, sample=11, limit=None, seed=1)) == [7, 3, 1]
    assert counts(choose(planned(97, 2, 1), sample=11, limit=None, seed=1)) == [9, 1, 1]
    assert counts(choose(planned(97, 2, 1), sample=2, limit=None, seed=1)) == [1, 1]
    assert counts(choose(planned(50, 50, 1), sample=3, limit=None, seed=1)) == [1, 1, 1]
    assert counts(choose(planned(9, 2, 2, 2, 1), sample=14, limit=None, seed=1)) == [8, 2, 2, 1, 1]


def test_a_sample_is_the_same_for_the_same_seed_and_in_the_order_of_the_file() -> None:
    everything = planned(60, 30, 10)
    first = choose(everything, sample=20, limit=None, seed=5)
    assert first == choose(everything, sample=20, limit=None, seed=5)
    assert first != choose(everything, sample=20, limit=None, seed=6)
    assert [one.case for one in first] == sorted(one.case for one in first)
    assert len(first) == len({one.id for one in first}) == 20
    assert choose(everything, sample=500, limit=None, seed=5) == everything
    assert choose(everything, sample=20, limit=7, seed=5) == first[:7]
    assert choose(everything, sample=None, limit=3, seed=5) == everything[:3]


@pytest.mark.parametrize("sizes", [(60, 30, 10), (97, 2, 1), (9, 2, 2, 2, 1), (1, 1), (7,)])
def test_a_larger_sample_holds_every_smaller_one(sizes: tuple[int, ...]) -> None:
    everything = planned(*sizes)
    before: set[str] = set()
    for count in range(1, len(everything) + 1):
        now = {one.id for one in choose(everything, sample=count, limit=None, seed=3)}
        assert len(now) == count
        assert before < now
        before = now


def test_a_plan_says_which_questions_of_the_file_it_has(tmp_path: Path) -> None:
    path = str(save(tmp_path / "stacks.json", longmemeval(6)))

    def told(**options: Any) -> tuple[str, bool]:
        plan = plan_of(path, RunSettings(benchmark="longmemeval"), **options)
        return plan.description, plan.is_part

    whole = "all 7 of the file"
    assert told() == told(sample=7) == told(sample=9) == told(limit=8) == (whole, False)
    assert told(sample=4) == ("a sample of 4 of the 7 of the file (--sample)", True)
    assert told(limit=2) == ("the first 2 of the file, which may have more (--limit 2)", True)
    first = "the first 2 of the 7 of the file (--limit 2)"
    assert told(sample=9, limit=2) == (first, True)
    assert told(sample=4, limit=2) == (
        "the first 2 (--limit) of a sample of 4 of the 7 of the file (--sample)",
        True,
    )
    save(Path(path), longmemeval(6)[:-1])
    assert told() == ("all 6 of the file", False)


def test_retrieval_asks_what_can_be_found_and_qa_what_can_be_answered(tmp_path: Path) -> None:
    talks = str(save(tmp_path / "talks.json", locomo()))

    def ids(**options: Any) -> list[int]:
        settings = RunSettings(benchmark="locomo", **options)
        return [one.place for one in plan_of(talks, settings).questions]

    assert ids(mode="retrieval") == [0, 1, 2, 3, 4]  # Of 4 the confidence alone is measured.
    assert ids(mode="qa") == ids(mode="both") == [0, 1, 2, 3, 5]
    assert ids(mode="qa", adversarial=True) == [0, 1, 2, 3, 4, 5]
    stacks = str(save(tmp_path / "stacks.json", longmemeval(2)))
    for mode, names in (("retrieval", 3), ("qa", 3)):
        given: Any = mode
        settings = RunSettings(benchmark="longmemeval", mode=given)
        assert len(plan_of(stacks, settings).questions) == names


def test_only_chosen_conversations_are_worked_on(tmp_path: Path) -> None:
    stacks = str(save(tmp_path / "stacks.json", longmemeval(6)))
    settings = RunSettings(benchmark="longmemeval")
    found = plan_of(stacks, settings).questions
    works = list(works_of(load_cases(stacks, "longmemeval"), [found[1], found[4]]))
    assert [work.case.questions[0].id for work in works] == ["question-1", "question-4"]
    assert list(works_of(load_cases(stacks, "longmemeval"), [])) == []


def test_with_a_limit_the_rest_of_the_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "stacks.json"
    save(path, longmemeval(6))
    path.write_bytes(path.read_bytes()[:-500])
    settings = RunSettings(benchmark="longmemeval")
    seen: list[int] = []
    chosen = plan_of(str(path), settings, limit=2, on_found=seen.append).questions
    assert [one.id for one in chosen] == ["question-0", "question-1"]
    assert seen == [1, 2]
    with pytest.raises(FormatError, match="is damaged after item 6"):
        plan_of(str(path), settings, limit=2, sample=3)


# -- cost ------------------------------------------------------------------------------------------


def roles(*, judge: bool = True, extractor: bool = True) -> Roles:
    calls = ReplyCache()

    def chat(role: str, longest: int) -> CachedChat:
        settings = ChatSettings(
            provider="openai",
            base_url="http://127.0.0.1:9/v1",
            model=f"m-{role}",
            max_output_tokens=longest,
        )
        return CachedChat(settings, role, calls)

    return Roles(
        prompts=load_prompts(),
        calls=calls,
        answerer=chat("answerer", 512),
        judge=chat("judge", 8) if judge else None,
        extractor=chat("extractor", 4096) if extractor else None,
    )


def test_an_estimate_grows_with_what_is_asked_and_is_priced() -> None:
    settings = RunSettings(benchmark="longmemeval", mode="qa", reading="model", k=10)
    prices = read_prices(["answerer=5,25", "judge=1.5,2"])
    told = {one.role: one for one in estimates(planned(4, 4), settings, roles(), prices)}
    assert [one.requests for one in told.values()] == [8 * 5, 8, 8]
    assert told["extractor"].price is None
    assert told["extractor"].input_tokens > 8 * 1000
    assert told["answerer"].output_tokens == 8 * 512
    answerer = told["answerer"]
    expected = (answerer.input_tokens * 5 + answerer.output_tokens * 25) / 1e6
    assert answerer.price == pytest.approx(expected)
    wider = RunSettings(benchmark="longmemeval", mode="qa", reading="model", k=30)
    more = {one.role: one for one in estimates(planned(4, 4), wider, roles(), prices)}
    assert more["answerer"].input_tokens > answerer.input_tokens
    short = RunSettings(benchmark="longmemeval", mode="qa", k=30, context_tokens=50)
    few = {one.role: one for one in estimates(planned(4, 4), short, roles(judge=False), prices)}
    assert list(few) == ["answerer"], "nobody reads, nobody judges"
    assert few["answerer"].input_tokens < answerer.input_tokens


def test_an_embedder_behind_an_address_is_in_the_estimate_and_a_local_one_is_not() -> None:
    prices = read_prices(["embedder=0.02"])
    assert estimates(planned(4), RunSettings(benchmark="locomo", embedder="hash"), None, {}) == []
    far = RunSettings(benchmark="locomo", embedder="https://host/v1#small?dimensions=8")
    (one,) = estimates(planned(4), far, None, prices)
    assert (one.role, one.model, one.output_tokens) == ("embedder", "small", 0)
    assert one.input_tokens > 4 * 1000
    assert one.price == pytest.approx(one.input_tokens * 0.02 / 1e6)


@pytest.mark.parametrize(
    "text", ["answerer", "answerer=5", "cook=1,2", "judge=1,2,3", "judge=a,b", "judge=-1,2"]
)
def test_a_price_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="give role=in,out"):
        read_prices([text])


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "guess"},
        {"reading": "tea leaves"},
        {"pooling": "max"},
        {"k": 0},
        {"context_tokens": 0},
        {"lanes": ("words",)},
        {"lanes": ()},
    ],
)
def test_settings_that_cannot_be_run_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        RunSettings(benchmark="locomo", **wrong)
