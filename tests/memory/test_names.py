"""Names and aliases that a caller states, and recall by names."""

from __future__ import annotations

from typing import Any

import pytest

import worlddb
from worlddb import InvalidInputError, Memory


def texts(found: worlddb.Recall) -> list[str]:
    return [hit.node.content for hit in found]


def test_names_say_what_a_text_is_about(memory: Memory) -> None:
    said = memory.write("the quarterly figures are late", names=["Sarah Chen"])
    memory.write("the coffee machine is broken")
    (entity,) = [one for one in said.entities if one.name == "Sarah Chen"]
    edges = memory.db.edges(said.id, types=["refers_to"])
    assert [(edge.target, edge.metadata["role"]) for edge in edges if edge.target == entity.id] == [
        (entity.id, "about")
    ]
    assert texts(memory.recall("What about Sarah Chen?", k=1)) == ["the quarterly figures are late"]


def test_a_name_is_the_entity_that_is_known_already(memory: Memory) -> None:
    first = memory.write("Sarah Chen drinks tea.")
    again = memory.write("no milk, please", names="Sarah Chen")
    known = {one.name: one.id for one in first.entities}["Sarah Chen"]
    assert {one.name: (one.id, one.created) for one in again.entities}["Sarah Chen"] == (
        known,
        False,
    )


def test_a_name_in_the_text_becomes_its_subject_and_is_drafted_once(memory: Memory) -> None:
    said = memory.write("At noon we met Sarah Chen in Oslo.", names=["Sarah Chen"])
    (entity,) = [one for one in said.entities if one.name == "Sarah Chen"]
    edges = [one for one in memory.db.edges(said.id) if one.target == entity.id]
    assert [edge.metadata["role"] for edge in edges] == ["about"]


@pytest.mark.parametrize("aliases", [{"Sarah Chen": ["SC", "Dr Chen"]}, ["SC", "Dr Chen"]])
def test_aliases_lead_to_the_same_entity(memory: Memory, aliases: Any) -> None:
    memory.write("the figures are late", names=["Sarah Chen"], aliases=aliases)
    memory.write("the coffee machine is broken")
    for name in ("SC", "Dr Chen", "Sarah Chen"):
        assert texts(memory.recall(names=[name])) == ["the figures are late"]


def test_an_alias_in_the_text_is_the_entity_itself(memory: Memory) -> None:
    said = memory.write(
        "Yesterday Liz Warren met Bob Stone.", aliases={"Elizabeth Warren": "Liz Warren"}
    )
    assert "Liz Warren" not in {one.name for one in said.entities}
    assert texts(memory.recall("", names=["Elizabeth Warren"]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"aliases": ["SC"]},
        {"names": ["A", "B"], "aliases": ["SC"]},
        {"names": [""]},
        {"names": [1]},
        {"aliases": {"A": [3]}},
        {"names": ["x"] * 101},
    ],
)
def test_wrong_names_are_refused(memory: Memory, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"names|aliases"):
        memory.write("a text", **wrong)
    assert not memory.list().memories


@pytest.mark.parametrize("none", [{"names": []}, {"aliases": []}, {"aliases": {}}])
def test_empty_names_are_no_names(memory: Memory, none: dict[str, Any]) -> None:
    memory.write("a text", **none)
    memory.write("another", names=["Ana"], aliases=[])
    memory.write("a third", aliases={"Ana": []})
    assert set(texts(memory.recall(names=["Ana"]))) == {"a third", "another"}


def test_recall_by_names_alone_is_complete_and_newest_first(memory: Memory) -> None:
    for day in (3, 1, 2):
        memory.write(f"figure {day}", names=["Sarah Chen"], at=f"2026-01-0{day}T00:00:00Z")
    memory.write("Sarah Chen drinks tea.", at="2026-01-04T00:00:00Z")
    memory.write("Yesterday Bob Stone met Sarah Chen.", at="2026-01-05T00:00:00Z")
    memory.write("nothing of it")
    found = texts(memory.recall(names=["Sarah Chen"]))
    assert found == [
        "Sarah Chen drinks tea.",
        "figure 3",
        "figure 2",
        "figure 1",
        "Yesterday Bob Stone met Sarah Chen.",
    ]
    assert texts(memory.recall("", names="Sarah Chen", k=1)) == found[:1]
    assert not memory.recall(names=["Nobody Known"])
    assert not memory.recall(names=["Sarah Chen"], user_id="bob")


def test_names_count_as_said_in_the_question(memory: Memory) -> None:
    memory.write("the report is late", names=["Sarah Chen"])
    memory.write("the report is late, too", names=["Bob Stone"])
    for name, text in (
        ("Sarah Chen", "the report is late"),
        ("Bob Stone", "the report is late, too"),
    ):
        assert texts(memory.recall("the report", names=[name]))[0] == text


@pytest.mark.parametrize("name", ["Sarah Chan", "Sarha Chen", "Chen", "sarah chen"])
def test_a_name_is_found_misspelled_and_inside_a_longer_name(memory: Memory, name: str) -> None:
    memory.write("the figures are late", names=["Sarah Chen"])
    memory.write("the printer is new", names=["Bob Stone"])
    assert texts(memory.recall(names=[name])) == ["the figures are late"]


@pytest.mark.parametrize("name", ["Sarah Chan", "Sarha Chen", "Norwood Chen"])
def test_a_question_finds_a_name_misspelled_and_inside_a_longer_one(
    memory: Memory, name: str
) -> None:
    memory.write("the figures are late", names=["Sarah Chen"], aliases=["Sarah Norwood Chen"])
    memory.write("the printer is new", names=["Bob Stone"])
    (hit,) = memory.recall(f"What do we know of {name}?")
    assert hit.node.content == "the figures are late"
    assert hit.path


def test_a_part_of_two_names_means_neither_in_a_question(memory: Memory) -> None:
    memory.write("the figures are late", names=["Sarah Norwood Chen"])
    memory.write("the printer is new", names=["Peter Norwood Chen"])
    assert not memory.recall("What do we know of Norwood Chen?")


def test_recall_wants_a_question_or_names(memory: Memory) -> None:
    cases: list[dict[str, Any]] = [{}, {"query": " "}, {"names": []}]
    for wrong in cases:
        with pytest.raises(InvalidInputError, match="names"):
            memory.recall(**wrong)
