"""Recall asks the ontology: types are widened, order is told, and rewrites hold in full."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ontology.handler_stage import Quiet
from recall.search_stage import edge, fact, facts, found, hold_at_most, open_store
from worlddb import AsOf, Id, ProviderError, Query, WorldDB
from worlddb.model.records import Op

HELD, WIDE = 1 << 20, 0


class Rewrites(Quiet):
    """A handler that does one thing to every query."""

    def __init__(self, change: Callable[[Query], Query], type_: str = "rewrites") -> None:
        super().__init__(type_)
        self.change = change

    def on_query_rewrite(self, query: Query) -> Query:
        return self.change(query)


def ask(db: WorldDB, question: str, **options: Any) -> set[Id]:
    return set(found(db.recall(question, **options)))


@pytest.mark.parametrize("most", [HELD, WIDE], ids=["held", "wide"])
def test_a_type_includes_its_subtypes_and_instances(most: int) -> None:
    db = hold_at_most(open_store(), most)
    animal, dog = (fact(db, "", type="Type", name=name) for name in ("Animal", "Dog"))
    edge(db, "subtype_of", dog, animal)
    rex = fact(db, "rex barks loudly", type="Dog")
    otto = fact(db, "otto barks softly", type="Note")
    fact(db, "the door barks, too", type="Note")
    instance = edge(db, "instance_of", otto, dog)
    assert ask(db, "who barks?", types=["Animal"]) == {rex, otto}
    assert ask(db, "who barks?", types=["Dog"]) == {rex, otto}
    assert ask(db, "who barks?", types=["Cat"]) == set()
    then = db.log()[-1].time
    with db.transaction() as tx:
        tx.delete_edge(instance)
    assert ask(db, "who barks?", types=["Animal"]) == {rex}
    assert ask(db, "who barks?", types=["Animal"], as_of=AsOf(known=then)) == {rex, otto}


def test_the_types_of_another_world_widen_nothing_here() -> None:
    db = open_store()
    mine, other = (fact(db, "", type="Scope", name=name) for name in ("mine", "other"))
    animal, dog = (fact(db, "", type="Type", name=n, parent=other) for n in ("Animal", "Dog"))
    edge(db, "subtype_of", dog, animal)
    rex = fact(db, "rex barks", type="Dog", parent=mine)
    assert ask(db, "who barks?", types=["Animal"], scope=mine) == set()
    assert ask(db, "who barks?", types=["Dog"], scope=mine) == {rex}


@pytest.mark.parametrize("most", [HELD, WIDE], ids=["held", "wide"])
def test_what_a_handler_makes_of_the_question_holds(most: int) -> None:
    db = hold_at_most(open_store(), most)
    old = fact(db, "the apple is red", valid_to="2020-06-01T00:00:00Z", created_at=day(2020))
    apple, pear = facts(db, ["the apple is green", "the pear is green"], created_at=day(2021))
    note = fact(db, "a note on the apple", type="Note")
    assert ask(db, "apple") == {apple, note, pear} - ({pear} - ask(db, "apple"))
    seen: list[Query] = []

    def look(query: Query) -> Query:
        seen.append(query)
        return query

    db.ontology().register(Rewrites(look))
    db.recall("apple", types=["Fact"], k=3)
    assert (seen[-1].text, seen[-1].limit) == ("apple", 3)
    assert seen[-1].ops == (Op(kind="filter_type", types=("Fact",)),)

    def told(change: Callable[[Query], Query], **options: Any) -> set[Id]:
        db.ontology().register(Rewrites(change))
        return ask(db, "apple", **options)

    only_notes = (Op(kind="filter_type", types=("Note",)),)
    assert told(lambda query: replace(query, ops=only_notes)) == {note}
    both = (*only_notes, Op(kind="filter_type", types=("Fact",)))
    assert told(lambda query: replace(query, ops=both)) == set()
    early = (Op(kind="filter_time", end="2020-12-01T00:00:00Z"),)
    ended = told(lambda query: replace(query, ops=early, include_superseded=True))
    assert ended == {old}
    assert pear in told(lambda query: replace(query, text="pear"))
    assert found(db.recall("apple"))[0] == pear
    assert len(told(lambda query: replace(query, limit=1))) == 1
    then = told(lambda query: replace(query, as_of=AsOf(valid="2020-03-01T00:00:00Z")))
    assert then == {old}


def day(year: int) -> str:
    return f"{year}-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "change",
    [
        lambda query: replace(query, ops=(Op(kind="traverse", types=("refers_to",)),)),
        lambda query: replace(query, text=None),
        lambda query: replace(query, text=" "),
        lambda query: replace(query, seeds=(Id(bytes(32)),)),
    ],
)
def test_what_is_no_question_any_more_is_an_error(change: Callable[[Query], Query]) -> None:
    db = open_store()
    fact(db, "apple")
    db.ontology().register(Rewrites(change))
    with pytest.raises(ProviderError, match="rewrite"):
        db.recall("apple")


def test_the_handlers_of_every_scope_rewrite() -> None:
    db = open_store()
    one, two = (fact(db, "", type="Scope", name=name) for name in "ab")
    inside = [fact(db, "apple", parent=world) for world in (one, two)]
    assert ask(db, "apple", scope=[one, two]) == set(inside)
    db.ontology(one).register(Rewrites(lambda query: replace(query, limit=1)))
    assert len(ask(db, "apple", scope=[one, two])) == 1
    assert ask(db, "apple", scope=two) == {inside[1]}
    assert len(ask(db, "apple", scope=two, within=[[one, two]])) == 1


def test_order_is_told_by_hits() -> None:
    db = open_store()
    war, peace = facts(db, ["the long war", "the peace"])
    world = fact(db, "", type="Scope", name="W")
    vote = fact(db, "the vote", parent=world)
    edge(db, "precedes", war, peace)
    edge(db, "causes", peace, vote)
    hits = {hit.node.id: hit for hit in db.recall("war, peace and vote")}
    assert [item.source for item in hits[peace].order] == [war]
    assert hits[peace].text.endswith(f"the peace (after {war.short})")
    assert hits[vote].text.endswith(f"the vote (caused by {peace.short})")
    assert hits[war].order == ()
    # From inside a world, what caused it outside is not told.
    (inside,) = db.recall("vote", scope=world)
    assert inside.order == ()
