"""LlmSummarizer and LlmTiebreaker: a model's word where the engine asks for one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.identity.match_values import Ambiguous, Match, NamedNode, New, Resolved
from worlddb.identity.resolver import Resolver
from worlddb.model.records import Message, Summarizer
from worlddb.models.model_tasks import LlmSummarizer, LlmTiebreaker

from .server import Answer, Cut, Fault, Seen, chat_at, in_turn, serving

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)
SAID = [Message(text="We had soup.", at=NOON), Message(text="And cake.", speaker="Ben", at=NOON)]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_summary_is_what_the_model_says_of_title_and_messages(provider: str) -> None:
    with serving(in_turn("<think>hm</think>\n Soup and \n\n cake.  ")) as server:
        summarizer: Summarizer = LlmSummarizer(chat_at(server, provider=provider))
        assert summarizer.summarize("Lunch", SAID) == "Soup and\n\ncake."
    assert summarizer.name == "llm:m"
    assert server.seen[0].said == (
        "Title: Lunch\n\n<messages>\n[0] 2026-05-20 12:00 user: We had soup.\n"
        "[1] 2026-05-20 12:00 Ben: And cake.\n</messages>"
    )
    assert "Name every single event" in server.seen[0].told


def test_a_summary_that_was_cut_is_made_in_halves() -> None:
    def model(seen: Seen) -> Answer:
        if "[0]" in seen.said and "[1]" in seen.said:
            return Cut("Soup and c")
        return "Soup." if "soup" in seen.said else "Cake."

    with serving(model) as server:
        assert LlmSummarizer(chat_at(server)).summarize("Lunch", SAID) == "Soup.\nCake."


def test_much_text_is_summarized_in_portions() -> None:
    long = [Message(text=f"{n} " + "word " * 150) for n in range(4)]
    made = LlmSummarizer(
        lambda said: f"{said[-1]['content'].count('] user')} messages", portion_chars_max=2_000
    ).summarize("Words", long)
    assert made == "2 messages\n2 messages"


def test_a_summary_needs_text_and_an_answer() -> None:
    with pytest.raises(InvalidInputError, match="no text"):
        LlmSummarizer(lambda said: "x").summarize("Nothing", [Message(text=" ")])
    with pytest.raises(ProviderError, match="no summary"):
        LlmSummarizer(lambda said: "<think>never mind</think>").summarize("Lunch", SAID)
    with serving(in_turn(Fault(500))) as server, pytest.raises(ProviderError, match="HTTP 500"):
        LlmSummarizer(chat_at(server, retries_max=0)).summarize("Lunch", SAID)
    with pytest.raises(InvalidInputError, match="chat"):
        LlmSummarizer(None)  # type: ignore[arg-type]


# -- ties ------------------------------------------------------------------------------------------


def named(key: int, *names: str) -> NamedNode:
    return NamedNode(key=key, type="Entity", names=names)


ANNA = named(0, "Anna Berg")
TWO = (named(1, "Anna Berg", "Annie"), named(2, "Anna Berg"))


def settled(choose: Any) -> Resolved | Ambiguous | New:
    return Resolver(tiebreaker=choose).resolve(ANNA, TWO)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_tie_is_broken_by_the_number_the_model_gives(provider: str) -> None:
    with serving(in_turn('{"choice": 2, "reason": "same flat"}')) as server:
        found = settled(LlmTiebreaker(chat_at(server, provider=provider)))
    assert isinstance(found, Resolved)
    assert found.match.tier == "tiebreaker"
    asked = json.loads(server.seen[0].said)
    assert asked["candidate"]["names"] == ["Anna Berg"]
    assert [option["number"] for option in asked["options"]] == [1, 2]
    chosen = asked["options"][1]["names"]
    assert list(found.match.option.names) == chosen


def test_a_number_in_words_will_do_and_no_other_is_taken() -> None:
    def answering(text: str) -> Any:
        return LlmTiebreaker(lambda said: text)

    assert isinstance(settled(answering("{'choice': '1'}")), Resolved)
    for text in ('{"choice": null}', '{"choice": 0}', '{"choice": 9}', '{"choice": true}', "{}"):
        assert isinstance(settled(answering(text)), Ambiguous)


def test_a_model_that_fails_decides_nothing_and_says_why() -> None:
    with serving(in_turn(Fault(503))) as server:
        tiebreaker = LlmTiebreaker(chat_at(server, retries_max=0))
        assert isinstance(settled(tiebreaker), Ambiguous)
    assert [("HTTP 503" in error) for error in tiebreaker.errors] == [True]
    nonsense = LlmTiebreaker(lambda said: "the second, I think")
    assert isinstance(settled(nonsense), Ambiguous)
    assert "no JSON" in nonsense.errors[0]


def test_many_options_are_not_all_asked_about() -> None:
    seen: list[Any] = []

    def model(said: list[dict[str, str]]) -> str:
        seen.append(json.loads(said[-1]["content"]))
        return '{"choice": 1}'

    many: Sequence[Match] = [
        Match(
            option=named(number, f"Anna {number}"),
            tier="fuzzy",
            score=0.9,
            confidence=0.5,
            compared=("Anna", "Anna"),
        )
        for number in range(30)
    ]
    assert LlmTiebreaker(model)(ANNA, many) is many[0]
    assert len(seen[0]["options"]) == 10
