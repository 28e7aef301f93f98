"""LlmExtractor: what a model tells becomes a draft, and nothing is made up on the way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worlddb.claims.claim import Claim
from worlddb.claims.claim_ends import claims_of
from worlddb.errors import ProviderError
from worlddb.ingest.extractors import VerbatimExtractor
from worlddb.model.records import Message
from worlddb.models.extraction_draft import EXTRACTION_SCHEMA

from .conversation import CHAT, NOON, TOLD, edges, extracted, of_type

# -- the draft -------------------------------------------------------------------------------------


@pytest.mark.parametrize("messages", [CHAT, CHAT[:1]])
def test_what_was_said_is_kept_exactly_as_verbatim_keeps_it(messages: list[Message]) -> None:
    verbatim = VerbatimExtractor().extract(messages, NOON).nodes
    assert extracted(messages=messages).nodes[: len(verbatim)] == verbatim


def test_facts_are_dated_and_lead_to_what_they_were_read_from() -> None:
    draft = extracted()
    moved, agent, lamps, marry = of_type(draft, "Fact")
    assert moved.content == "On 2026-05-13, the user moved to Oslo."
    assert moved.valid_from == datetime(2026, 5, 13, tzinfo=UTC)
    assert [node.valid_from for node in (agent, lamps, marry)] == [NOON] * 3
    assert {node.parent for node in of_type(draft, "Fact")} == {"session"}
    assert edges(draft, "derived_from", moved.key) == {
        "turn:0": {
            "extractor": "llm",
            "evidence": "quote",
            "span": [0, 25],
            "text": "I moved to Oslo last week",
        }
    }


def test_a_quote_is_found_whatever_its_case_spaces_and_quotes_and_is_the_texts_own() -> None:
    draft = extracted()
    _, agent, lamps, _ = of_type(draft, "Fact")
    assert [span.text for span in agent.spans] == ["Yes, my agent."]
    (span,) = lamps.spans
    assert (span.message, span.text) == (2, "I’ve bought  three lamps")
    assert CHAT[2].text[span.start : span.end] == span.text


def test_a_quote_that_is_nowhere_leaves_the_fact_without_a_span_and_marked() -> None:
    draft = extracted()
    marry = of_type(draft, "Fact")[3]
    assert marry.spans == ()
    assert edges(draft, "derived_from", marry.key) == {
        "session": {"extractor": "llm", "evidence": "none"}
    }


def test_entities_have_the_names_the_text_has_and_no_others() -> None:
    draft = extracted()
    found = {node.name: node.aliases for node in of_type(draft, "Entity")}
    assert found == {"user": (), "Rachel Adams": ("Rachel", "my agent"), "Oslo": ()}
    assert all(node.resolvable and node.parent is None for node in of_type(draft, "Entity"))
    rachel = of_type(draft, "Entity")[1]
    assert {(span.message, span.text) for span in rachel.spans} == {
        (0, "Rachel Adams"),
        (1, "Rachel"),
        (2, "my agent"),
    }


def test_facts_and_turns_refer_to_entities_by_one_key_for_all_their_names() -> None:
    draft = extracted()
    moved, agent, _, marry = of_type(draft, "Fact")
    assert edges(draft, "refers_to", moved.key).keys() == {"entity:user", "entity:oslo"}
    said = edges(draft, "refers_to", agent.key)
    assert said["entity:rachel adams"] == {"role": "about", "kind": "person"}
    assert said["entity:user"] == {"kind": "person"}
    assert edges(draft, "refers_to", marry.key) == {}
    assert edges(draft, "refers_to", "turn:1")["entity:rachel adams"]["text"] == "Rachel"


def test_claims_say_what_could_be_replaced() -> None:
    draft = extracted()
    first, second = claims_of(draft)
    assert first == Claim(
        fact="fact:0",
        subject="entity:user",
        relation="lives in",
        value="Oslo",
        functional=True,
        evidence=of_type(draft, "Fact")[0].spans,
    )
    assert (second.relation, second.value, second.functional) == ("owns", "three lamps", False)


def test_the_summary_is_derived_from_every_turn() -> None:
    draft = extracted()
    (summary,) = of_type(draft, "Summary")
    assert summary.content == TOLD["summary"]
    assert (summary.parent, summary.valid_from) == ("session", NOON)
    assert edges(draft, "derived_from", "summary").keys() == {"turn:0", "turn:1", "turn:2"}


def test_a_single_message_has_its_facts_beside_it_and_a_summary_only_if_that_is_shorter() -> None:
    draft = extracted(messages=CHAT[:1])
    assert of_type(draft, "Summary") == []
    assert {node.parent for node in of_type(draft, "Fact")} == {None}
    assert edges(draft, "derived_from", "fact:0").keys() == {"memory"}
    (summary,) = of_type(extracted(TOLD | {"summary": "Moved."}, CHAT[:1]), "Summary")
    assert summary.parent is None


def test_a_my_that_somebody_else_says_is_no_alias() -> None:
    said = [Message(text="Rachel is my agent, she said.", speaker="assistant")]
    told = {"facts": [], "entities": [{"name": "Rachel", "aliases": ["my agent", "she"]}]}
    (rachel,) = of_type(extracted(told, said), "Entity")
    assert "my agent" not in rachel.aliases


def test_names_without_spaces_around_them_are_found() -> None:
    said = [Message(text="私は東京に住んでいます。")]
    told = {"facts": [{"text": "ユーザーは東京に住む", "subject": "東京"}]}
    (tokyo,) = of_type(extracted(told, said), "Entity")
    assert [span.text for span in tokyo.spans] == ["東京"]


@pytest.mark.parametrize(
    ("date", "begins"),
    [
        ("2024-02-29", datetime(2024, 2, 29, tzinfo=UTC)),
        ("2024/2/9", datetime(2024, 2, 9, tzinfo=UTC)),
        ("2024-02", datetime(2024, 2, 1, tzinfo=UTC)),
        ("2024", datetime(2024, 1, 1, tzinfo=UTC)),
        ("2024-03-01T10:00:00Z", datetime(2024, 3, 1, tzinfo=UTC)),
        ("2026-05-20", NOON),
        ("2024-02-30", NOON),
        ("0000", NOON),
        ("20240301", NOON),
        ("yesterday", NOON),
        (20240301, NOON),
        (None, NOON),
    ],
)
def test_a_date_is_when_a_fact_begins(date: Any, begins: datetime) -> None:
    (fact,) = of_type(extracted({"facts": [{"text": "It rained.", "date": date}]}), "Fact")
    assert fact.valid_from == begins


def test_the_plain_contract_of_texts_and_subjects_is_enough() -> None:
    draft = extracted(
        "```json\n{'summary': 'Lamps.', 'facts': ['It rained', {'fact': 'x', 'subject': 'Oslo'},]}"
    )
    assert [node.content for node in of_type(draft, "Fact")] == ["It rained", "x"]
    assert edges(draft, "refers_to", "fact:1").keys() == {"entity:oslo"}


def test_the_same_fact_twice_is_one() -> None:
    facts = [{"text": "It  rained."}, {"text": "it rained."}]
    assert len(of_type(extracted({"facts": facts}), "Fact")) == 1


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.just("Oslo"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*EXTRACTION_SCHEMA["properties"], "name", "text"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)
FACTS = st.lists(
    st.dictionaries(
        st.sampled_from(list(EXTRACTION_SCHEMA["properties"]["facts"]["items"]["properties"])),
        JSONISH,
    ),
    max_size=4,
)


@settings(max_examples=80, derandomize=True, deadline=None, database=None)
@given(st.fixed_dictionaries({"facts": FACTS | JSONISH, "entities": JSONISH, "summary": JSONISH}))
def test_whatever_the_model_answers_a_draft_or_one_error_comes_of_it(told: Any) -> None:
    try:
        draft = extracted(told)
    except ProviderError:
        return
    keys = [node.key for node in draft.nodes]
    assert len(keys) == len(set(keys))
    assert {end for edge in draft.edges for end in (edge.source, edge.target)} <= set(keys)
    for node in draft.nodes:
        node.content.encode()
        for span in node.spans:
            assert CHAT[span.message].text[span.start : span.end] == span.text
        if node.type == "Entity":
            assert node.spans or node.name == "user" or _is_word_of(node.name)


def _is_word_of(name: str) -> bool:
    said = " ".join(message.text for message in CHAT).casefold()
    return any(word in said for word in name.casefold().split())
