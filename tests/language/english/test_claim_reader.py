"""Claims: what the rules take for something that a later statement may replace, and what not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from language.english.claim_sentences import CLAIMS, ME, NO_CLAIMS_IN_CHAT
from language.english.scoring import drafted
from worlddb.claims.claim import Claim
from worlddb.claims.claim_ends import claims_of
from worlddb.language.english.english_reader import claims_in

LIVES, WORKS = ("lives in", "Rome", ""), ("works at", "Kolibri", "")


def found(text: str) -> list[Claim]:
    return list(claims_of(drafted(text)))


def told(claim: Claim) -> tuple[str, str, str, str]:
    return claim.subject, claim.relation, claim.value, claim.was


@pytest.mark.parametrize(("text", "whose", "relation", "value", "was"), CLAIMS)
def test_a_sentence_claims_what_a_careful_reader_would_say_it_does(
    text: str, whose: str, relation: str, value: str, was: str
) -> None:
    assert [told(claim) for claim in found(text)] == [(whose, relation, value, was)]
    assert all(claim.functional and claim.evidence for claim in found(text))


PAIRS: list[tuple[str, list[tuple[str, str, str]]]] = [
    ("I live in Rome and work at Kolibri.", [LIVES, WORKS]),
    ("User lives in Rome and works at Kolibri", [LIVES, WORKS]),
    ("The user is based in Rome and works for Kolibri as a designer.", [LIVES, WORKS]),
    ("Lives in Rome and works at Kolibri.", [LIVES, WORKS]),
    ("I work at Kolibri and live in Rome.", [WORKS, LIVES]),
    ("I live in Rome, and work at Kolibri.", [LIVES, WORKS]),
    ("I live in Rome and I work at Kolibri.", [LIVES, WORKS]),
    ("I live in Rome, and I work at Kolibri.", [LIVES, WORKS]),
    ("I live in Rome but work for Kolibri in Milan.", [LIVES, WORKS]),
    ("I moved to Rome last week and started a new job at Kolibri.", [LIVES, WORKS]),
    ("I've lived in Rome since 2020 and work at Kolibri.", [LIVES, WORKS]),
    ("I live in Rome and no longer work at Kolibri.", [LIVES, ("works at", "", "Kolibri")]),
    ("I live in Rome, and I don't work at Kolibri anymore.", [LIVES, ("works at", "", "Kolibri")]),
    (
        "I live in Rome and work at Kolibri and am 31 years old.",
        [LIVES, WORKS, ("age", "31", "")],
    ),
    ("I live in Rome and work from home.", [LIVES]),
    ("I live in Rome and work at a bakery.", [LIVES]),
    ("I live in Rome and work at Google and Meta.", [LIVES]),
]


@pytest.mark.parametrize(("text", "wanted"), PAIRS)
def test_what_one_subject_is_said_to_do_in_two_clauses_is_two_claims(
    text: str, wanted: list[tuple[str, str, str]]
) -> None:
    assert [told(claim) for claim in found(text)] == [(ME, *one) for one in wanted]


def test_each_of_two_claims_of_a_sentence_quotes_its_own_clause_and_its_own_subject() -> None:
    claims = found("Sarah lives in Rome and works at Google. I live in Oslo and work at Kolibri.")
    assert [(claim.subject, claim.text) for claim in claims] == [
        ("entity:sarah", "Sarah lives in Rome"),
        ("entity:sarah", "works at Google."),
        (ME, "I live in Oslo"),
        (ME, "work at Kolibri."),
    ]
    for text in (
        "Tom lives in Rome and I work at Google.",
        "Tom lives in Rome and we live in Oslo.",
    ):
        assert [claim.subject for claim in found(text)] == ["entity:tom"]


def test_a_sentence_of_many_clauses_is_read_in_no_time() -> None:
    text = "I live in Rome" + " and live in Rome" * 22
    assert {told(claim) for claim in found(text)} == {(ME, "lives in", "Rome", "")}


@pytest.mark.parametrize("text", NO_CLAIMS_IN_CHAT)
def test_what_is_not_surely_so_now_claims_nothing(text: str) -> None:
    assert found(text) == []


def test_every_claim_the_rules_make_of_the_set_is_right_and_few_are_missed() -> None:
    assert (
        len({text for text, *_ in CLAIMS} | set(NO_CLAIMS_IN_CHAT))
        == len(CLAIMS) + len(NO_CLAIMS_IN_CHAT)
        >= 170
    )
    right = wrong = missed = 0
    for text, *wanted in [*CLAIMS, *((text, "", "", "", "") for text in NO_CLAIMS_IN_CHAT)]:
        expected = {tuple(wanted)} if wanted[0] else set()
        claims = {told(claim) for claim in found(text)}
        right += len(claims & expected)
        wrong += len(claims - expected)
        missed += len(expected - claims)
    assert right / (right + wrong) == 1.0
    assert right / (right + missed) >= 0.95


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("I moved to Oslo last week.", "2023-04-30"),
        ("I moved to Oslo yesterday.", "2023-05-02"),
        ("I've lived in Berlin since 2020.", "2020-12-31"),
        ("I moved to Oslo in March 2022.", "2022-03-31"),
        ("I live in Oslo.", ""),
    ],
)
def test_a_date_says_since_when_it_was_surely_so(text: str, since: str) -> None:
    (claim,) = found(text)
    wanted = datetime.fromisoformat(since).replace(tzinfo=UTC) if since else None
    assert claim.since == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("I live in Oslo.", "I live in Oslo."),
        ("Hi! I live in Oslo. I like tea.", "I live in Oslo."),
        ("I live in Oslo with my two cats.", "I live in Oslo"),
        ("Well, I now live in Oslo, and I love it.", "Well, I now live in Oslo"),
        ("I like rain, and I live in Oslo.", "I live in Oslo."),
    ],
)
def test_the_evidence_is_the_sentence_or_the_clause_that_says_it(text: str, said: str) -> None:
    (claim,) = found(text)
    (span,) = claim.evidence
    assert claim.text == span.text == said
    assert text[span.start : span.end] == said


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("I live in Oslo. I live in Rome.", []),
        ("I live in Oslo. My colleague asked. I live in Oslo, Norway.", ["Oslo", "Oslo, Norway"]),
        ("I live in Oslo. I work at Google.", ["Oslo", "Google"]),
        ("I live in Oslo. Sarah lives in Rome.", ["Oslo", "Rome"]),
    ],
)
def test_two_claims_of_one_text_that_exclude_each_other_are_none(
    text: str, values: list[str]
) -> None:
    assert [claim.value for claim in found(text)] == values


@pytest.mark.parametrize(
    "text",
    [
        "I moved to Oslo in 2019 but no longer live in Oslo.",
        "I've lived in Oslo for two years. I don't live in Oslo anymore.",
        "I no longer live in Oslo. I don't live in Oslo any more.",
    ],
)
def test_what_a_text_says_to_be_over_by_its_end_is_over_and_no_more(text: str) -> None:
    assert {told(claim) for claim in found(text)} == {(ME, "lives in", "", "Oslo")}


def test_what_a_text_says_to_be_over_and_then_to_be_so_is_neither() -> None:
    assert found("I no longer live in Oslo. I moved to Oslo.") == []


def test_what_is_told_of_another_time_does_not_hide_what_is_so_now() -> None:
    (claim,) = found("As a child, I moved to Rome, but I live in Oslo now.")
    assert claim.value == "Oslo"


def test_a_day_that_lies_ahead_is_a_value_like_any_other() -> None:
    (claim,) = found("My birthday is on June 5.")
    assert claim.value


def test_each_speaker_claims_for_themselves_and_an_assistant_nothing() -> None:
    draft = drafted(
        ("Caroline", "I moved to Boston."),
        ("Melanie", "I live in Chicago."),
        ("assistant", "I live in Oslo."),
    )
    assert [(claim.fact, claim.subject, claim.value) for claim in claims_of(draft)] == [
        ("turn:0", "entity:caroline", "Boston"),
        ("turn:1", "entity:melanie", "Chicago"),
    ]


@pytest.mark.parametrize("text", ["Ich wohne in Oslo.", "`I live in Oslo.`", "Vivo en Oslo."])
def test_nothing_is_claimed_in_code_or_another_language(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Translate this to French:\nI moved to Oslo.",
        "Can you proofread my letter: I live in Rome and work at Acme.",
        "Please rewrite the following:\n\nI now work at Tern.",
    ],
)
def test_what_was_pasted_to_be_worked_on_claims_nothing(text: str) -> None:
    assert claims_in(text, text, [], []) == []
