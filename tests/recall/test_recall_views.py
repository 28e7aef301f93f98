"""Recall sees what may be seen: where, of which kind, true when, and known when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recall.search_stage import (
    delete,
    edge,
    fact,
    found,
    hit_of,
    hold_at_most,
    lanes,
    open_store,
)
from worlddb import AsOf, Id, WorldDB


@pytest.fixture(params=[1 << 20, 0], ids=["held", "wide"])
def db(request: pytest.FixtureRequest) -> Iterator[WorldDB]:
    """Yield a store whose worlds are all held in memory, and then one where none is."""
    with open_store() as db:
        yield hold_at_most(db, request.param)


# -- where, and of which kind ----------------------------------------------------------------------


def test_only_nodes_of_the_asked_types_are_found(db: WorldDB) -> None:
    made = {kind: fact(db, "a pear", type=kind) for kind in ("Fact", "Memory", "Turn")}
    assert set(found(db.recall("pear"))) == set(made.values())
    assert found(db.recall("pear", types=["Memory"])) == [made["Memory"]]
    assert found(db.recall("pear", types="Turn")) == [made["Turn"]]
    both = db.recall("pear", types=("Fact", "Memory", "Unheard of"))
    assert set(found(both)) == {made["Fact"], made["Memory"]}
    assert len(db.recall("pear", types=["Unheard of"])) == 0


def test_what_is_only_a_name_is_found_by_who_asks_for_its_type(db: WorldDB) -> None:
    topic = fact(db, "", type="Topic", name="Tesla")
    fact(db, "", type="Topic", name="Gardening")
    fact(db, "", type="Topic", name="Tesla", valid_from=day(1), valid_to=day(2))
    said = fact(db, "the Tesla is charged")
    by_words: Any = {"settings": lanes("text")}
    assert found(db.recall("Tesla", **by_words)) == [said]
    assert found(db.recall("Tesla", types=["Topic"], **by_words)) == [topic]
    assert set(found(db.recall("Tesla", types=["Topic", "Fact"], **by_words))) == {topic, said}
    answer = db.recall("Tesla", types=["Topic"], k=1)
    assert found(answer) == [topic]
    assert answer.snippet(answer[0]).marked() == "**Tesla**"
    assert "Tesla" in answer.to_text()


def test_what_says_nothing_at_all_is_found_by_nobody(db: WorldDB) -> None:
    erased = fact(db, "", type="Topic", name="Tesla")
    fact(db, "the Tesla is charged", parent=erased)
    db.erase(erased)
    assert found(db.recall("Tesla", types=["Topic"])) == []


def test_a_scope_is_a_world_or_several_and_all_that_is_inside(db: WorldDB) -> None:
    mine, yours = (fact(db, "", type="Scope", name=name) for name in ("mine", "yours"))
    inner = fact(db, "a pear of the inner world", type="Topic", name="inner", parent=mine)
    pears = {
        "mine": fact(db, "a pear", parent=mine),
        "inner": fact(db, "a pear", parent=inner),
        "yours": fact(db, "a pear", parent=yours),
        "nobody's": fact(db, "a pear"),
    }
    edge(db, "contains", yours, pears["inner"])

    def seen(scope: Any) -> set[Id]:
        return set(found(db.recall("pear", scope=scope)))

    assert seen(mine) == {inner, pears["mine"], pears["inner"]}
    assert seen(yours) == {pears["yours"], pears["inner"]}
    assert seen(inner) == {pears["inner"]}
    assert seen([mine, yours]) == seen(mine) | seen(yours)
    assert seen((inner, yours)) == seen(yours)
    assert seen([mine, inner]) == seen([inner, mine, mine]) == seen(mine)
    assert seen(None) == seen(db.root_id) == seen([db.root_id, mine]) == {inner, *pears.values()}
    assert seen(str(mine)) == seen(str(mine)[:12]) == seen(bytes(mine)) == seen([str(mine)[:12]])
    assert seen(pears["mine"]) == set()


# -- when ------------------------------------------------------------------------------------------


def day(number: int) -> datetime:
    return datetime(2024, 1, number, tzinfo=UTC)


def seen(db: WorldDB, scope: Id | None = None, ended: bool = False, **when: Any) -> set[Id]:
    """Return what is found of pears at a moment."""
    as_of = AsOf(**when)
    return set(found(db.recall("pear", scope=scope, as_of=as_of, include_superseded=ended)))


def test_as_of_answers_as_it_would_have_been_answered_then(db: WorldDB) -> None:
    old = fact(db, "a pear, unripe", valid_from=day(1))
    first = db.log()[-1].time
    new = fact(db, "a pear, ripe", valid_from=day(5))
    second = db.log()[-1].time
    edge(db, "supersedes", new, old, valid_from=day(5))
    third = db.log()[-1].time
    assert seen(db) == {new}
    assert seen(db, valid=day(3)) == {old}
    assert seen(db, valid=day(5)) == seen(db, valid=day(9)) == {new}
    assert seen(db, valid=day(1) - timedelta(days=1)) == set()
    assert seen(db, known=first) == seen(db, known=first, ended=True) == {old}
    assert seen(db, known=second) == seen(db, known=second, valid=day(9)) == {old, new}
    assert seen(db, known=third) == {new}
    assert seen(db, known=first - timedelta(microseconds=1)) == set()
    assert seen(db, ended=True) == seen(db, ended=True, valid=day(9)) == {old, new}
    assert seen(db, ended=True, valid=day(5)) == {old, new}
    assert seen(db, ended=True, valid=day(3)) == {old}
    assert seen(db, ended=True, valid=day(1) - timedelta(days=1)) == set()
    everything = db.recall("pear", include_superseded=True)
    assert hit_of(everything, old).node.valid_to == day(5)
    then = db.recall("pear", as_of=AsOf(known=second))
    assert hit_of(then, old).node.valid_to is None


def test_a_membership_counts_from_when_to_when_it_held_and_was_known(db: WorldDB) -> None:
    scope = fact(db, "", type="Scope", name="scope")
    home = fact(db, "", type="Topic", name="home")
    pear = fact(db, "a pear", parent=home, valid_from=day(1))
    before = db.log()[-1].time
    member = edge(db, "contains", scope, pear, valid_from=day(5), valid_to=day(9))
    during = db.log()[-1].time
    assert (
        seen(db, scope, valid=day(4)) == seen(db, scope, valid=day(9)) == seen(db, scope) == set()
    )
    assert seen(db, scope, valid=day(5)) == seen(db, scope, valid=day(8)) == {pear}
    assert seen(db, scope, valid=day(5), known=before) == set()
    delete(db, member)
    assert seen(db, scope, valid=day(5)) == set()
    assert seen(db, scope, valid=day(5), known=during) == {pear}


def test_a_merge_counts_from_when_it_was_accepted_until_it_was_undone(db: WorldDB) -> None:
    bob, robert = (fact(db, "", type="Entity", name=name) for name in ("Bob", "Robert"))
    said = fact(db, "likes fish")
    edge(db, "refers_to", said, robert)
    proposal = edge(db, "same_as", bob, robert)
    times = {"proposed": db.log()[-1].time}
    db.accept_merge(proposal)
    times["accepted"] = db.log()[-1].time
    db.undo_merge(proposal)
    times["undone"] = db.log()[-1].time
    db.reject_merge(proposal)
    times["rejected"] = db.log()[-1].time
    for when, expected in (
        ("proposed", []),
        ("accepted", [said]),
        ("undone", []),
        ("rejected", []),
    ):
        as_of = AsOf(known=times[when])
        assert found(db.recall("Bob?", settings=lanes("graph"), as_of=as_of)) == expected
    assert found(db.recall("Bob?", settings=lanes("graph"))) == []


def test_when_a_question_is_asked_moves_the_near_ahead_and_hides_nothing(db: WorldDB) -> None:
    days = [datetime(2024, 3, number, 12, tzinfo=UTC) for number in (1, 8, 15, 22, 29)]
    went = [fact(db, "I went for a swim", valid_from=moment) for moment in days]
    assert len({hit.score for hit in db.recall("Where did I swim?")}) == 1
    for moment, expected in zip(days, went, strict=True):
        answer = db.recall("Where did I swim two days ago?", at=moment + timedelta(days=2))
        assert found(answer)[0] == expected
        assert set(found(answer)) == set(went)
        same = db.recall(
            "Where did I swim two days ago?", at=(moment + timedelta(days=2)).isoformat()
        )
        assert same == answer
        then = AsOf(valid=moment + timedelta(days=2))
        assert found(db.recall("Where did I swim two days ago?", as_of=then))[0] == expected
    long_ago = db.recall("Where did I swim two days ago?", at="0001-01-01T00:00:00+00:00")
    assert set(found(long_ago)) == set(went)
