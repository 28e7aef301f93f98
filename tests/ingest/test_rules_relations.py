"""Relations between names that the rules read in a text, and the many texts that state none."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import worlddb
from worlddb.ingest.extractors import RulesExtractor
from worlddb.model.records import RELATION_TYPES, Message

NOON = datetime(2026, 5, 20, 12, tzinfo=UTC)


def stated(text: str) -> list[tuple[str, str, str]]:
    draft = RulesExtractor().extract([Message(text=text)], NOON)
    names = {node.key: node.name for node in draft.nodes}
    found = [edge for edge in draft.edges if edge.type in RELATION_TYPES]
    for edge in found:
        assert text[edge.spans[0].start : edge.spans[0].end] == edge.metadata["text"]
    return [(names[edge.source], edge.type, names[edge.target]) for edge in found]


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("Brexit Accord led to Lisbon Treaty.", ("Brexit Accord", "causes", "Lisbon Treaty")),
        (
            "Lisbon Treaty was caused by Brexit Accord.",
            ("Brexit Accord", "causes", "Lisbon Treaty"),
        ),
        (
            "Brexit Accord came before Lisbon Treaty.",
            ("Brexit Accord", "precedes", "Lisbon Treaty"),
        ),
        (
            "Lisbon Treaty was preceded by Brexit Accord in 2019.",
            ("Brexit Accord", "precedes", "Lisbon Treaty"),
        ),
        (
            "Brexit Accord is a kind of Lisbon Treaty.",
            ("Brexit Accord", "subtype_of", "Lisbon Treaty"),
        ),
        (
            "Brexit Accord is a Lisbon Treaty.",
            ("Brexit Accord", "instance_of", "Lisbon Treaty"),
        ),
        (
            "The Brexit Accord contradicts the Lisbon Treaty.",
            ("Brexit Accord", "contradicts", "Lisbon Treaty"),
        ),
        (
            "The Brexit Accord implies the Lisbon Treaty.",
            ("Brexit Accord", "implies", "Lisbon Treaty"),
        ),
        # Ends that are not names by themselves, but are written like names, or are kinds.
        (
            "The Great Storm of London led to the Severn Flood in 1703.",
            ("Great Storm of London", "causes", "Severn Flood"),
        ),
        ("Rex is a Labrador.", ("Rex", "instance_of", "Labrador")),
        ("A Labrador is a kind of dog.", ("Labrador", "subtype_of", "dog")),
        ("Project Atlas follows Project Reed.", ("Project Reed", "precedes", "Project Atlas")),
    ],
)
def test_a_plain_statement_is_an_edge(text: str, relation: tuple[str, str, str]) -> None:
    assert stated(text) == [relation]


@pytest.mark.parametrize(
    "text",
    [
        "Brexit Accord led to Lisbon Treaty?",
        "Brexit Accord led to Lisbon Treaty, or maybe it never did.",
        "If Brexit Accord led to Lisbon Treaty, we pay.",
        "The manager of Brexit Accord led to Lisbon Treaty.",
        "Brexit Accord led to Lisbon Treaty's delay.",
        "Brexit Accord led to Lisbon Treaty delays.",
        "Brexit Accord didn't lead to Lisbon Treaty.",
        'Tom said: "Brexit Accord led to Lisbon Treaty."',
        "Sarah Chen came before Tom Baker.",
        "Sarah Chen works with Lisbon Treaty.",
        "It is a kind of magic.",
        "This led to the Lisbon Treaty.",
        "Sarah is a nurse.",
        "Sarah is a German.",
        "Tom is a Toyota dealer.",
        "Today is a Monday.",
    ],
)
def test_where_a_text_is_not_sure_there_is_no_edge(text: str) -> None:
    assert stated(text) == []


def test_the_edge_holds_since_the_text_was_said_and_a_refused_one_is_told() -> None:
    with worlddb.open(":memory:", embedder="hash") as db:
        db.ingest("The Brexit Accord implies the Lisbon Treaty.", at=NOON, recluster="off")
        back = db.ingest("The Lisbon Treaty implies the Brexit Accord.", at=NOON, recluster="off")
        assert db.get(back.memories[0]).content == "The Lisbon Treaty implies the Brexit Accord."
        assert ["circle" in one for one in back.left_out] == [True]
        entities = db.query().filter_type("Entity").execute()
        edges = [edge for node in entities for edge in db.edges(node.id, types=["implies"])]
        assert [edge.valid_from for edge in edges] == [NOON]


def test_kinds_that_texts_state_widen_the_types_of_a_question() -> None:
    with worlddb.Memory(":memory:", user_id="u", embedder="hash", recluster="off") as memory:
        for text in ("Rex is a Labrador.", "A Labrador is a kind of dog.", "Tom has a cat."):
            memory.write(text)
        assert [hit.node.name for hit in memory.recall("Rex", types=["dog"])] == ["Rex"]
        assert [node.name for node in memory.query("filter_type dog")] == ["Rex"]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("The Berlin summit led to the Geneva treaty.", ["Berlin summit", "Geneva treaty"]),
        ("The Oslo talks triggered the Bergen protests.", ["Oslo talks", "Bergen protests"]),
        ("The Oslo talks almost triggered the Bergen protests.", []),
        ("The Oslo talks triggered the Bergen protests of 1994.", []),
        ("Oslo talks triggered the Bergen protests.", []),
        ("The Berlin summit led to a headache.", []),
    ],
)
def test_a_name_before_a_common_noun_is_a_thing_and_the_name_is_said(
    text: str, ends: list[str]
) -> None:
    assert [end for source, _, target in stated(text) for end in (source, target)] == ends
    draft = RulesExtractor().extract([Message(text=text)], NOON)
    names = {node.name for node in draft.nodes if node.type == "Entity"}
    assert {end.split()[0] for end in ends} <= names
