"""How an extracting model is asked: portions, prompts, second chances, and what it may not do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.ingest.extractors import RulesExtractor, VerbatimExtractor
from worlddb.model.records import Draft, Message
from worlddb.models.model_tasks import LlmExtractor

from .conversation import CHAT, NOON, TOLD, extracted, of_type
from .server import Answer, Cut, Fault, Seen, chat_at, in_turn, serving


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_model_behind_an_endpoint_is_told_the_messages_with_numbers_times_and_speakers(
    provider: str,
) -> None:
    with serving(in_turn(json.dumps(TOLD))) as server:
        chat = chat_at(server, provider=provider)
        draft = LlmExtractor(chat).extract(CHAT, NOON)
    assert draft.edges[0].metadata["extractor"] == "llm:m"
    assert len(of_type(draft, "Fact")) == 4
    (seen,) = server.seen
    assert "Date of the conversation: 2026-05-20 (Wednesday)" in seen.said
    assert "[1] 2026-05-20 12:00 assistant: How nice!" in seen.said
    assert "Answer with one JSON object" in seen.told
    assert chat.usage.requests == 1


def test_a_prompt_of_the_callers_own_is_text_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    file.write_text("Read well: é", encoding="utf-8")
    asked: list[dict[str, str]] = []

    def model(messages: list[dict[str, str]]) -> str:
        asked[:] = messages
        return '{"facts": []}'

    for prompt in ("Read well: é", file):
        LlmExtractor(model, prompt=prompt).extract(CHAT, NOON)
        assert asked[0] == {"role": "system", "content": "Read well: é"}
    for wrong in ("", " ", tmp_path / "none.txt", tmp_path, 7):
        with pytest.raises(InvalidInputError, match="prompt"):
            LlmExtractor(lambda said: "", prompt=wrong)  # type: ignore[arg-type]


def test_a_model_that_answers_without_json_is_told_so_once() -> None:
    with serving(in_turn("Certainly! I will.", json.dumps(TOLD))) as server:
        draft = LlmExtractor(chat_at(server)).extract(CHAT, NOON)
    assert len(of_type(draft, "Fact")) == 4
    assert [each["role"] for each in server.seen[1].data["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(
    "answer", ["I would rather not.", "[1, 2]", '"text"', "{}", '{"facts": 3}', "null", "{'a': 1}"]
)
def test_nonsense_is_an_error_in_the_end(answer: str) -> None:
    with pytest.raises(ProviderError):
        extracted(answer)


def test_an_object_in_a_string_or_a_list_of_one_is_taken() -> None:
    for text in (json.dumps(json.dumps(TOLD)), json.dumps([TOLD])):
        assert len(of_type(extracted(text), "Fact")) == 4


def test_a_cut_answer_is_asked_for_again_in_halves() -> None:
    def model(seen: Seen) -> Answer:
        numbers = [n for n in range(3) if f"[{n}] " in seen.said]
        facts = [{"text": f"fact of {n}", "message": n} for n in numbers]
        told = json.dumps({"summary": f"part {numbers}", "facts": facts})
        return Cut(told[:-12]) if len(numbers) > 1 else told

    with serving(model) as server:
        draft = LlmExtractor(chat_at(server, structured=False)).extract(CHAT, NOON)
    assert [node.content for node in of_type(draft, "Fact")] == [f"fact of {n}" for n in range(3)]
    (summary,) = of_type(draft, "Summary")
    assert summary.content == "part [0]\npart [1]\npart [2]"
    assert len(server.seen) == 5


@pytest.mark.parametrize(("splits", "requests"), [(0, 1), (1, 3), (2, 5), (9, 5)])
def test_how_often_a_conversation_is_halved_can_be_bounded(splits: int, requests: int) -> None:
    with serving(lambda _: Cut('{"facts": [{"text": "whole"}, {"text": "hal')) as server:
        chat = chat_at(server, structured=False)
        draft = LlmExtractor(chat, splits_max=splits).extract(CHAT, NOON)
        assert len(server.seen) == requests
    assert of_type(draft, "Fact"), "what was answered is kept"


def test_of_a_cut_answer_about_one_message_the_whole_facts_are_kept() -> None:
    draft = extracted('{"facts": [{"text": "whole"}, {"text": "hal', CHAT[:1])
    assert [node.content for node in of_type(draft, "Fact")] == ["whole"]


def test_a_long_conversation_is_read_in_portions_that_share_their_names() -> None:
    long = [Message(text=f"Rachel Adams said {n}. " + "word " * 150) for n in range(8)]
    asked: list[str] = []

    def model(messages: list[dict[str, str]]) -> str:
        asked.append(messages[-1]["content"])
        said = {"name": "Rachel Adams", "kind": "person", "aliases": []}
        return json.dumps({"facts": [{"text": f"part {len(asked)}"}], "entities": [said]})

    draft = LlmExtractor(model, portion_chars_max=2_000).extract(long, NOON)
    assert len(asked) == 4
    assert all(len(text) < 2_500 for text in asked)
    assert "Names used so far" not in asked[0]
    assert "Names used so far: Rachel Adams" in asked[1]
    assert len(of_type(draft, "Fact")) == 4
    assert len(of_type(draft, "Entity")) == 1


def test_one_message_that_is_too_long_is_read_piece_by_piece() -> None:
    text = "".join(f"Day {n}: nothing. " for n in range(400))
    asked: list[str] = []

    def model(messages: list[dict[str, str]]) -> str:
        asked.append(messages[-1]["content"].split("user: ")[1].split("\n</messages>")[0])
        return json.dumps({"facts": [{"text": f"f{len(asked)}", "quote": "Day 399: nothing."}]})

    draft = LlmExtractor(model, portion_chars_max=1_000).extract([Message(text=text)], NOON)
    assert "".join(asked) == text
    assert draft.nodes[0].content == text
    assert of_type(draft, "Fact")[0].spans[0].start == text.index("Day 399")


@pytest.mark.parametrize(
    "fault", [Fault(500), Fault(body=b"<html>"), Fault(reset=True), Fault(429), Fault(401)]
)
def test_a_failing_endpoint_is_a_provider_error(fault: Fault) -> None:
    with serving(in_turn(fault)) as server, pytest.raises(ProviderError):
        LlmExtractor(chat_at(server, retries_max=1)).extract(CHAT, NOON)


def test_no_messages_ask_nobody() -> None:
    assert LlmExtractor(lambda said: 1 / 0).extract([], NOON) == Draft()  # type: ignore[arg-type, return-value]


def test_the_fallback_is_verbatim_or_as_said() -> None:
    assert isinstance(LlmExtractor(lambda said: "").fallback, VerbatimExtractor)
    assert isinstance(LlmExtractor(lambda said: "", fallback="rules").fallback, RulesExtractor)
    with pytest.raises(InvalidInputError):
        LlmExtractor(lambda said: "", fallback="magic")
    with pytest.raises(InvalidInputError, match="chat"):
        LlmExtractor("gpt")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="portion_chars_max"):
        LlmExtractor(lambda said: "", portion_chars_max=3)
