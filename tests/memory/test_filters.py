"""`where` filters recall, list and retire_all, in small worlds and in large ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import InvalidInputError, Memory
from worlddb.index import search


def texts(found: Any) -> list[str]:
    return [getattr(one, "node", one).content for one in found]


@pytest.fixture(params=["held", "wide"])
def filled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "a.db", recluster="off", extractor="verbatim") as made:
        if request.param == "wide":
            made.db.engine.search._interiors = search.HeldWorlds(held_max=0)
        for number in range(60):
            made.write(
                f"Note {number}: the vault of team {number % 7} is green.",
                metadata={"number": number, "team": f"t{number % 7}"},
                tags=["even"] if number % 2 == 0 else ["odd", "late"],
                source=f"f{number % 3}.md",
            )
        yield made


def test_a_narrow_filter_loses_no_hit(filled: Memory) -> None:
    found = filled.recall("vault", k=50, where={"number": {"$in": [3, 44, 59]}})
    assert {int(text.split()[1][:-1]) for text in texts(found)} == {3, 44, 59}
    assert len(filled.recall("vault", k=50, where={"team": "t3"})) == 9 - (60 % 7 <= 3)
    assert texts(filled.recall("green team", k=5, where={"number": 17})) == texts(
        filled.list(where={"number": 17})
    )


def test_a_filter_holds_before_ranking_and_in_every_lane(filled: Memory) -> None:
    where = {"tags": {"$contains": "odd"}, "number": {"$gte": 30}}
    for k in (3, 30):
        numbers = [hit.node.metadata["number"] for hit in filled.recall("vault", k=k, where=where)]
        assert len(numbers) == min(k, 15)
        assert all(number % 2 and number >= 30 for number in numbers)
    assert len(filled.recall("vault", k=60, where={"source": "f1.md"})) == 20


def test_a_page_is_filled_from_what_a_filter_leaves(filled: Memory) -> None:
    first = filled.list(limit=4, where={"team": "t1"})
    rest = filled.list(limit=50, where={"team": "t1"}, cursor=first.next_cursor)
    numbers = [one.metadata["number"] for one in (*first, *rest)]
    assert numbers == sorted(range(1, 60, 7), reverse=True)
    assert len(filled.list(where={"missing": 1})) == 0


def test_retire_all_ends_what_a_filter_leaves(filled: Memory) -> None:
    done = filled.retire_all(user_id="default", where={"number": {"$lt": 10}})
    assert len(done) == 10
    assert len(filled.list(limit=100)) == 50
    with pytest.raises(InvalidInputError, match="at least one"):
        filled.retire_all(user_id="default", where={})
    assert len(filled.list(limit=100)) == 50


def test_an_empty_filter_is_none_and_a_wrong_one_is_refused(filled: Memory) -> None:
    assert len(filled.list(where={}, limit=100)) == 60
    with pytest.raises(InvalidInputError, match="operator"):
        filled.list(where={"a": {"$like": 1}})
    with pytest.raises(InvalidInputError, match="operator"):
        filled.recall("x", where={"a": {"$like": 1}})
    with pytest.raises(InvalidInputError, match="operator"):
        filled.recall("x", user_id="nobody", where={"a": {"$like": 1}})


def test_names_lead_to_what_a_filter_leaves() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write("Ada Lovelace lives in London.", metadata={"n": 1})
        memory.write("Ada Lovelace likes tea.", metadata={"n": 2})
        assert texts(memory.recall(names="Ada Lovelace", where={"n": 2})) == [
            "Ada Lovelace likes tea."
        ]


def test_a_chat_is_found_by_its_metadata_turn_by_turn(memory: Memory) -> None:
    chat = [
        {"role": "user", "content": "The vault is in Berlin."},
        {"role": "assistant", "content": "The vault, noted."},
    ]
    memory.write(messages=chat, metadata={"project": "z"}, source="chat.json")
    memory.write("The vault is blue.", metadata={"project": "y"})
    assert texts(memory.recall("vault", where={"project": "z", "speaker": "assistant"})) == [
        "The vault, noted."
    ]
    assert len(memory.recall("vault", where={"project": "z"})) == 2
    (session,) = memory.list(where={"project": "z"})
    assert session.type == "Session"


def test_a_filter_sees_what_was_known_then(memory: Memory) -> None:
    done = memory.write("The vault is blue.", metadata={"n": 1})
    assert done.commit is not None
    memory.write("The vault is blue.", metadata={"n": 2})
    then = done.commit.time
    assert len(memory.list(where={"n": 1})) == 0
    assert len(memory.list(where={"n": 2})) == 1
    assert len(memory.list(where={"n": 1}, known_at=then)) == 1
    assert len(memory.recall("vault", where={"n": 1}, known_at=then)) == 1


def test_numbers_larger_than_any_float_are_compared(memory: Memory) -> None:
    huge = 10**400
    for name, number in (("blue", -huge), ("red", 7), ("green", huge)):
        memory.write(f"The vault is {name}.", metadata={"n": number})
    assert len(memory.list(where={"n": {"$gt": 6}})) == 2
    assert len(memory.list(where={"n": {"$lt": huge}})) == 2
    assert len(memory.list(where={"n": {"$gte": -huge}})) == 3


def test_a_bound_caller_filters_its_own_alone(memory: Memory) -> None:
    memory.write("The vault is blue.", metadata={"n": 1}, user_id="ada")
    memory.write("The vault is red.", metadata={"n": 1}, user_id="bob")
    bound = memory.bound(user_id="ada")
    assert texts(bound.list(where={"n": 1})) == ["The vault is blue."]
    assert texts(bound.recall("vault", where={"n": 1})) == ["The vault is blue."]
    assert len(bound.retire_all(user_id="ada", where={"n": 1})) == 1
    assert len(memory.list(user_id="bob")) == 1


def test_a_query_takes_the_same_filters() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction(actor="t") as tx:
            for number in range(4):
                made = tx.create_node(type="Note", content=str(number))
                tx.add_metadata(made.id, {"n": number})
        assert len(db.query().where({"n": {"$gte": 2}}).execute().ids) == 2
