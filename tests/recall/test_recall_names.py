"""Recall by names: what a question names leads to what refers to it, and is itself no answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from recall.search_stage import (
    delete,
    edge,
    fact,
    facts,
    found,
    hit_of,
    hold_at_most,
    lanes,
    open_store,
)
from worlddb import AsOf, Id, WorldDB
from worlddb.index.ranking_numbers import SCALARS
from worlddb.recall.activation import Spreading

BY_NAME = lanes("graph")
MENTION = SCALARS.mention_share
"""What a text gets that only mentions a name of the question."""


@pytest.fixture(params=[1 << 20, 0], ids=["held", "wide"])
def db(request: pytest.FixtureRequest) -> Iterator[WorldDB]:
    """Yield a store whose worlds are all held in memory, and then one where none is."""
    with open_store() as db:
        yield hold_at_most(db, request.param)


def named(db: WorldDB, name: str, **fields: Any) -> tuple[Id, Id]:
    """Make an entity, and a fact that refers to it and says nothing of its name."""
    entity = fact(db, "", type="Entity", name=name, **fields)
    said = fact(db, "something else entirely")
    edge(db, "refers_to", said, entity)
    return entity, said


def leads_to(db: WorldDB, question: str, **options: Any) -> list[Id]:
    return found(db.recall(question, settings=BY_NAME, **options))


# -- how a name is said ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("Ada", "What did Ada say?"),
        ("Ada", "ada"),
        ("Ada", "Is this Ada's book?"),
        ("Ada", "Is this Ada’s book?"),
        ("Ada", "(Ada), 'Ada', Ada: Ada!"),
        ("Ada King", "what about ADA KING’S work"),
        ("Ada King", "Ada  King"),
        ("Dr. Smith", "When did Dr. Smith call?"),
        ("Dr. Smith", "When is dr smith's birthday?"),
        ("J. R. R. Tolkien", "a book by J.R.R. Tolkien and by J. R. R. Tolkien"),
        ("McDonald's", "Did we eat at McDonald's?"),
        ("O'Brien", "Who is O’Brien?"),
        ("O’Brien", "Who is O'Brien's sister?"),
        ("Zoë", "ZOË?"),
        ("Jürgen Müller", "wann kommt jürgen müller"),
        ("Москва", "что в москва"),
        ("C++", "Is C++ fast?"),
        ("AT&T", "who works for AT&T?"),
        ("Node.js", "with Node.js."),
        ("Jean-Luc", "Jean-Luc!"),
        ("GPT-4", "is GPT-4 good"),
        ("3M", "3M shares"),
        ("Yahoo!", "Yahoo! or not"),
        ("Tesla, Inc.", "is Tesla, Inc. well"),
        ("東京", "東京"),
        ("The Lord of the Rings", "the lord of the rings?"),
    ],
)
def test_a_name_is_heard_however_it_is_said(db: WorldDB, name: str, question: str) -> None:
    _, said = named(db, name)
    named(db, "Somebody Else")
    assert leads_to(db, question) == [said]


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("Ada", "What about Adas or Madams or A.d.a or Ad a?"),
        ("Tesla Motors", "Tesla, and then motors"),
        ("Zoë", "Zoe"),
        ("C++", "C and C#"),
        ("", "nothing at all"),
        ("!!!", "!!!"),
        ("one two three four five six seven", "one two three four five six seven"),
        ("x" * 81, "x" * 81),
    ],
)
def test_what_is_not_said_is_not_heard(db: WorldDB, name: str, question: str) -> None:
    named(db, name)
    assert leads_to(db, question) == []


def test_an_alias_is_a_name_from_birth_or_later(db: WorldDB) -> None:
    sarah, said = named(db, "Sarah Chen", aliases=["my manager", "The Boss"])
    assert leads_to(db, "When does my manager like meetings?") == [said]
    assert leads_to(db, "MY MANAGER'S office") == [said]
    assert leads_to(db, "the boss of it all") == [said]
    assert leads_to(db, "Sally") == []
    with db.transaction() as tx:
        tx.add_aliases(sarah, ["Sally"])
    assert leads_to(db, "Sally") == [said]


def test_a_last_name_means_the_one_person_who_has_it(db: WorldDB) -> None:
    _, said = named(db, "Sarah Chen")
    named(db, "Jordan River")
    assert leads_to(db, "What does Chen drink?") == [said]
    assert leads_to(db, "How long is River?") == leads_to(db, "Where is Jordan?") == []
    named(db, "Peter Chen")
    assert leads_to(db, "What does Chen drink?") == []


def test_the_longest_name_wins(db: WorldDB) -> None:
    _, of_york = named(db, "York")
    _, of_new_york = named(db, "New York")
    _, of_times = named(db, "New York Times")
    assert leads_to(db, "the New York Times") == [of_times]
    assert leads_to(db, "New York") == [of_new_york]
    # "new york" in lower case is less surely a name.
    assert leads_to(db, "Is York in new york?") == [of_york, of_new_york]
    assert leads_to(db, "the York Times") == [of_york]


def test_a_name_may_end_with_a_small_word_that_is_written_as_part_of_it(db: WorldDB) -> None:
    _, said = named(db, "She Hate Me")
    assert leads_to(db, "Who directed She Hate Me?") == [said]
    assert leads_to(db, "Does she hate me?") == []


def test_a_word_in_lower_case_is_the_less_a_name_the_more_texts_have_it(db: WorldDB) -> None:
    _, of_power = named(db, "Power")
    _, of_murray = named(db, "Murray")
    facts(db, (f"power of engine {number}" for number in range(20)))
    said = db.recall("What did Murray think of power?", settings=lanes("graph"))
    assert [hit.node.id for hit in said] == [of_murray, of_power]
    capital, small = (hit.lanes["graph"].score for hit in said)
    assert capital > 1.4 * small


def test_several_names_count_together_and_a_rare_one_more(db: WorldDB) -> None:
    ada, of_ada = named(db, "Ada")
    bob, of_bob = named(db, "Bob")
    for said in facts(db, ["another thing"] * 5):
        edge(db, "refers_to", said, bob)
    edge(db, "refers_to", of_ada, bob)
    answer = db.recall("Ada and Bob", settings=BY_NAME, k=20)
    scores = {hit.node.id: hit.lanes["graph"].score for hit in answer}
    assert found(answer)[0] == of_ada
    assert len(answer) == 7
    assert scores[of_ada] == pytest.approx(MENTION + scores[of_bob])
    assert hit_of(db.recall("Ada", settings=BY_NAME), of_ada).lanes["graph"].score == MENTION
    assert ada


def test_two_nodes_of_one_name_both_lead_on(db: WorldDB) -> None:
    expected = [named(db, "Paris")[1] for _ in range(2)]
    assert leads_to(db, "Paris") == sorted(expected)


# -- where a name leads ----------------------------------------------------------------------------


def test_what_is_accepted_as_the_same_is_followed_and_nothing_else(db: WorldDB) -> None:
    bob, of_bob = named(db, "Bob")
    robert, of_robert = named(db, "Robert")
    rob, of_rob = named(db, "Rob")
    first, second = edge(db, "same_as", bob, robert), edge(db, "same_as", robert, rob)
    assert leads_to(db, "Bob") == [of_bob]
    db.accept_merge(first)
    assert leads_to(db, "Bob") == leads_to(db, "Robert") == sorted([of_bob, of_robert])
    db.accept_merge(second)
    assert leads_to(db, "Rob") == sorted([of_bob, of_robert, of_rob])
    db.undo_merge(first)
    assert leads_to(db, "Bob") == [of_bob]
    assert leads_to(db, "Rob") == sorted([of_robert, of_rob])
    db.reject_merge(first)
    assert leads_to(db, "Bob") == [of_bob]


def test_a_named_world_leads_to_what_lives_in_it(db: WorldDB) -> None:
    topic = fact(db, "", type="Topic", name="Gardening")
    one, other = facts(db, ["sow in March", "prune in May"], parent=topic)
    shed = fact(db, "", type="Topic", name="Shed", parent=topic)
    tool = fact(db, "a spade", parent=shed)
    fact(db, "prune in May")
    assert leads_to(db, "what about gardening?") == sorted([one, other])
    assert leads_to(db, "the shed") == [tool]
    assert leads_to(db, "gardening in the shed")[0] == tool


def test_a_reference_counts_while_it_holds(db: WorldDB) -> None:
    entity, said = named(db, "Ada")
    other = fact(db, "another thing", valid_from="2020-01-01T00:00:00Z")
    ended = edge(
        db,
        "refers_to",
        other,
        entity,
        valid_from="2020-01-01T00:00:00Z",
        valid_to="2021-01-01T00:00:00Z",
    )
    assert leads_to(db, "Ada") == [said]
    then = AsOf(valid="2020-06-01T00:00:00Z")
    assert leads_to(db, "Ada", as_of=then) == [other]
    before = db.log()[-1].time
    delete(db, ended)
    delete(db, db.edges(said)[0].id)
    assert leads_to(db, "Ada") == []
    assert leads_to(db, "Ada", as_of=AsOf(known=before)) == [said]


def test_what_ended_or_is_of_another_kind_is_not_led_to_and_not_counted(db: WorldDB) -> None:
    entity, said = named(db, "Ada")
    gone, note = fact(db, "another thing"), fact(db, "a third thing", type="Note")
    door = fact(db, "", type="Entity", name="A door")
    for other in (gone, note, door):
        edge(db, "refers_to", other, entity)
    with db.transaction() as tx:
        tx.retire(gone)
    assert leads_to(db, "Ada") == sorted([said, note])
    (hit,) = db.recall("Ada", settings=BY_NAME, types=["Fact"])
    assert hit.node.id == said
    assert hit.lanes["graph"].score == MENTION
    assert set(leads_to(db, "Ada", include_superseded=True)) == {said, note, gone}


def test_a_name_that_has_ended_still_leads_on(db: WorldDB) -> None:
    entity, said = named(db, "Ada")
    with db.transaction() as tx:
        tx.retire(entity)
    assert leads_to(db, "Ada") == [said]


# -- names are not answers -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Entity", "Topic", "Scope", "Session"])
def test_what_is_only_a_name_is_never_a_hit(db: WorldDB, kind: str) -> None:
    bare = fact(db, "", type=kind, name="ripe pears")
    told = fact(db, "they are sweet", type=kind, name="ripe pears")
    inner = fact(db, "ripe pears")
    edge(db, "refers_to", told, bare)
    edge(db, "refers_to", bare, told)
    answer = db.recall("ripe pears")
    assert set(found(answer)) == {told, inner}
    assert set(found(db.query().text("ripe pears").execute())) == {bare, told, inner}


@pytest.mark.parametrize("kind", ["Fact", "Memory", "Event", "Turn", "Anything"])
def test_a_name_of_any_other_kind_is_an_answer(db: WorldDB, kind: str) -> None:
    named_only = fact(db, "", type=kind, name="ripe pears")
    assert found(db.recall("ripe pears")) == [named_only]


def test_a_question_that_repeats_a_name_looks_at_its_texts_once(
    db: WorldDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        named(db, "Ann Berg")
    looked: list[set[int]] = []
    texts = Spreading._texts

    def count(spreading: Spreading, rows: set[int]) -> Any:
        looked.append(rows)
        return texts(spreading, rows)

    monkeypatch.setattr(Spreading, "_texts", count)
    once = found(db.recall("Ann Berg", settings=BY_NAME))
    assert len(looked) == 1
    looked.clear()
    assert found(db.recall("Ann Berg " * 500, settings=BY_NAME)) == once
    assert len(looked) == 1
