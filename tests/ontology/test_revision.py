"""supersedes and contradicts: how later facts meet earlier ones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import worlddb
from ontology.handler_stage import (
    Clock,
    day,
    delete,
    fact,
    facts,
    names,
    open_store,
    refused,
    write,
)
from worlddb import AsOf, EdgeDraft, NotFoundError, WorldDB


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def at(number: int) -> datetime:
    return datetime.fromisoformat(day(number))


# -- supersedes: on_insert -------------------------------------------------------------------------


def test_the_old_claim_ends_where_the_new_one_begins(db: WorldDB) -> None:
    old, new = facts(db, "ab")
    edge = write(db, "supersedes", new, old)
    assert edge.valid_from == at(2)
    assert db.get(old).valid_to == at(2)
    assert db.get(new).valid_to is None
    closing = [change for change in db.log()[-1].changes if change.kind == "close_node"]
    assert [(change.id, change.detail["by"]) for change in closing] == [(old, str(edge.id))]


def test_the_edge_may_say_when_the_old_claim_ends(db: WorldDB) -> None:
    old, new = facts(db, "ab")
    write(db, "supersedes", new, old, valid_from=day(9))
    assert db.get(old).valid_to == at(9)


def test_an_end_is_only_ever_moved_to_earlier(db: WorldDB) -> None:
    old, new = facts(db, "ab")
    ends: list[datetime | None] = []
    for when in (9, 12, 5, 9, 5, 3):
        write(db, "supersedes", new, old, valid_from=day(when), metadata={"n": len(ends)})
        ends.append(db.get(old).valid_to)
    assert ends == [at(9), at(9), at(5), at(5), at(5), at(3)]
    assert db.check() == []


def test_a_node_that_was_given_an_end_keeps_it_if_it_is_earlier(db: WorldDB) -> None:
    with db.transaction() as tx:
        old = tx.create_node(type="Fact", name="old", created_at=day(1), valid_to=day(3)).id
        new = fact(tx, "new", at=5)
        tx.write_edge("supersedes", new, old)
    assert db.get(old).valid_to == at(3)


def test_what_is_superseded_before_it_began_was_never_valid(db: WorldDB) -> None:
    early, late = facts(db, "ab")
    write(db, "supersedes", early, late)
    assert db.get(late).valid_to == at(1)
    assert db.get(late).valid_from == at(2)
    for when in (1, 2, 3):
        found = db.query().as_of(valid=day(when)).execute()
        assert "b" not in names(found)
        with pytest.raises(NotFoundError, match="was not valid at"):
            db.get(late, as_of=AsOf(valid=day(when)))
    assert db.check() == []


def test_a_node_cannot_supersede_itself(db: WorldDB) -> None:
    (node,) = facts(db, "a")
    with refused(db, "supersedes: a node cannot supersede itself"):
        write(db, "supersedes", node, node)


def test_a_circle_of_revisions_is_refused(db: WorldDB) -> None:
    one, two, three = facts(db, "abc")
    write(db, "supersedes", two, one)
    write(db, "supersedes", three, two)
    for source, target in ((one, two), (one, three), (two, three)):
        with refused(db, "supersedes: the old node already supersedes the new one"):
            write(db, "supersedes", source, target)


def test_a_circle_within_one_transaction_is_refused_with_all_of_it(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    with refused(db), db.transaction() as tx:
        fact(tx, "lost with the rest")
        tx.write_edge("supersedes", two, one)
        tx.write_edge("supersedes", one, two)
    assert db.get(one).valid_to is None


def test_a_refusal_that_the_block_swallows_still_rolls_back(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    with refused(db, "cannot supersede itself"), db.transaction() as tx:
        tx.write_edge("supersedes", two, one)
        with pytest.raises(worlddb.RejectedError):
            tx.write_edge("supersedes", two, two)
        with pytest.raises(worlddb.ConflictError, match="rolled back"):
            fact(tx, "too late")


def test_a_batch_closes_what_single_edges_would(db: WorldDB) -> None:
    a, b, c, d = facts(db, "abcd")
    with db.transaction() as tx:
        pairs = ((b, a), (c, b), (d, c))
        assert tx.write_edges("supersedes", [EdgeDraft(source=s, target=t) for s, t in pairs]) == 3
    assert [db.get(node).valid_to for node in (a, b, c, d)] == [at(2), at(3), at(4), None]


# -- supersedes: on_delete -------------------------------------------------------------------------


def test_an_end_stays_when_the_edge_that_set_it_is_deleted(db: WorldDB) -> None:
    old, new = facts(db, "ab")
    edge = write(db, "supersedes", new, old)
    delete(db, edge)
    assert db.get(old).valid_to == at(2)
    assert names(db.children()) == ["b"]
    # The circle is gone with the edge.
    write(db, "supersedes", old, new)
    assert db.get(new).valid_to == at(1)
    assert db.check() == []


# -- supersedes: on_query_rewrite ------------------------------------------------------------------


def test_what_was_superseded_is_hidden_unless_asked_for(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    write(db, "supersedes", b, a)
    write(db, "supersedes", c, b)
    assert names(db.query().execute()) == ["c"]
    assert set(names(db.query().include_superseded().execute())) == {"a", "b", "c"}
    assert names(db.query().text("a b c").execute()) == ["c"]
    assert names(db.query().seeds([a, b, c]).execute()) == ["c"]
    assert names(db.children()) == ["c"]
    assert names(db.children(include_superseded=True)) == ["a", "b", "c"]
    assert db.get(a).name == "a"  # By its id it is found at any time.


def test_a_traversal_does_not_end_at_what_was_superseded(db: WorldDB) -> None:
    old, new, other = facts(db, "abx")
    write(db, "refers_to", other, old)
    write(db, "refers_to", other, new)
    write(db, "supersedes", new, old)
    query = db.query().seeds(other).traverse("refers_to")
    assert names(query.execute()) == ["b"]
    assert [edge.target for edge in query.execute().edges] == [new]
    shown = db.query().seeds(other).include_superseded().traverse("refers_to")
    assert set(names(shown.execute())) == {"a", "b"}


def test_each_valid_time_shows_the_claim_of_that_time(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    write(db, "supersedes", b, a)
    write(db, "supersedes", c, b)
    for when, seen in ((1, ["a"]), (2, ["b"]), (3, ["c"]), (30, ["c"])):
        assert names(db.query().as_of(valid=day(when)).execute()) == seen
        assert names(db.children(as_of=AsOf(valid=day(when)))) == seen


def test_each_known_time_shows_what_was_believed_then(db: WorldDB) -> None:
    old, new = facts(db, "ab")
    before = db.log()[-1].time
    write(db, "supersedes", new, old)
    assert set(names(db.query().as_of(known=before).execute())) == {"a", "b"}
    assert db.get(old, as_of=AsOf(known=before)).valid_to is None
    assert names(db.query().as_of(known=db.log()[-1].time).execute()) == ["b"]
    # Both clocks: on day 3 the old claim was thought true, and is now known not to have been.
    then = db.query().as_of(valid=day(3), known=before).execute()
    assert set(names(then)) == {"a", "b"}
    assert names(db.query().as_of(valid=day(3)).execute()) == ["b"]


def test_a_revision_in_the_future_hides_nothing_yet() -> None:
    clock = Clock()
    with worlddb.open(":memory:", clock=clock) as db:
        old, new = facts(db, "ab")
        write(db, "supersedes", new, old, valid_from="2026-06-01T00:00:00Z")
        assert set(names(db.query().execute())) == {"a", "b"}
        clock.now += 200 * 86_400 * 1_000_000
        assert names(db.query().execute()) == ["b"]
        assert names(db.children()) == ["b"]


# -- contradicts -----------------------------------------------------------------------------------


def test_both_sides_of_a_contradiction_stay_and_say_so(db: WorldDB) -> None:
    one, two, other = facts(db, "abx")
    edge = write(db, "contradicts", one, two, metadata={"reason": "not both"})
    found = db.query().execute()
    assert set(names(found)) == {"a", "b", "x"}
    assert len(found.conflicts) == 1
    conflict = found.conflicts[0]
    assert (conflict.edge, conflict.left, conflict.right) == (edge.id, one, two)
    assert (conflict.reason, conflict.settled) == ("not both", False)
    assert db.query().seeds(one).execute().conflicts == found.conflicts
    assert db.query().seeds(two).execute().conflicts == found.conflicts
    assert db.query().seeds(other).execute().conflicts == ()
    assert db.conflicts() == [conflict]
    assert db.get(one).valid_to is db.get(two).valid_to is None


def test_a_contradiction_reads_in_the_text_of_the_answer(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    write(db, "contradicts", one, two)
    text = db.query().execute().to_text()
    assert f"contradicted by {two.short}" in text
    assert f"contradicted by {one.short}" in text


def test_a_node_cannot_contradict_itself(db: WorldDB) -> None:
    (node,) = facts(db, "a")
    with refused(db, "contradicts: a node cannot contradict itself"):
        write(db, "contradicts", node, node)
    assert db.conflicts(include_settled=True) == []


def test_deleting_a_contradiction_settles_it(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    edge = write(db, "contradicts", one, two)
    open_then = db.log()[-1].time
    delete(db, edge)
    assert db.conflicts() == []
    assert [item.settled for item in db.conflicts(include_settled=True)] == [True]
    assert db.query().execute().conflicts == ()
    assert len(db.query().as_of(known=open_then).execute().conflicts) == 1
    assert [item.settled for item in db.conflicts(as_of=AsOf(known=open_then))] == [False]
    before = db.log()[1].time
    assert db.conflicts(as_of=AsOf(known=before), include_settled=True) == []
    assert db.check() == []


def test_a_contradiction_can_be_stated_again(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    delete(db, write(db, "contradicts", one, two))
    again = write(db, "contradicts", one, two)
    assert [item.edge for item in db.conflicts()] == [again.id]
    assert len(db.conflicts(include_settled=True)) == 2
    write(db, "contradicts", one, two)  # Equal and alive: nothing new.
    assert len(db.conflicts()) == 1
    assert db.check() == []


def test_one_node_may_contradict_many(db: WorldDB) -> None:
    one, *others = facts(db, "abcd")
    with db.transaction() as tx:
        tx.write_edges("contradicts", [EdgeDraft(source=one, target=other) for other in others])
        tx.write_edge("contradicts", others[0], one, metadata={"reason": "the other way round"})
    assert len(db.query().seeds(one).execute().conflicts) == 4
    assert len(db.query().seeds(others[2]).execute().conflicts) == 1


def test_a_limited_answer_carries_the_conflicts_of_what_it_shows(db: WorldDB) -> None:
    one, two, three, four = sorted(facts(db, "abcd"))
    write(db, "contradicts", one, two)
    write(db, "contradicts", three, four)
    found = db.query().limit(1).execute()
    assert [node.id for node in found] == [one]
    assert [conflict.left for conflict in found.conflicts] == [one]


def test_a_conflict_does_not_show_what_is_outside_the_world(db: WorldDB) -> None:
    """Containment: from inside a world the far side of a contradiction cannot be seen."""
    with db.transaction() as tx:
        world = fact(tx, "world")
        inside, outside = fact(tx, "inside", parent=world), fact(tx, "outside")
        tx.write_edge("contradicts", inside, outside, metadata={"reason": "a secret"})
    found = db.query().in_world(world).execute()
    assert names(found) == ["inside"]
    assert outside not in {end for item in found.conflicts for end in (item.left, item.right)}
    assert str(outside) not in str(found.to_json())


def test_what_lives_in_a_superseded_world_ends_with_it(db: WorldDB) -> None:
    with db.transaction() as tx:
        one = tx.create_node(type="Plan", name="v1", created_at=day(1)).id
        part = fact(tx, "part", parent=one)
        deep = fact(tx, "deep", parent=part)
        guest = fact(tx, "guest")  # A member lives elsewhere and stays.
        tx.write_edge("contains", fact(tx, "elsewhere"), guest)
        tx.write_edge("contains", one, guest)
        two = tx.create_node(type="Plan", name="v2", created_at=day(3)).id
        tx.write_edge("supersedes", two, one)
    for ended in (one, part, deep):
        assert db.get(ended).valid_to == datetime(2025, 1, 3, tzinfo=UTC)
    assert db.get(guest).valid_to is None
    assert {"v1", "part", "deep"}.isdisjoint(names(db.query().execute()))
    then = names(db.query().as_of(valid=day(2)).execute())
    assert {"v1", "part", "deep"} <= set(then)
    assert db.check() == []


def test_a_contradiction_is_over_when_a_side_has_ended(db: WorldDB) -> None:
    one, two, new = facts(db, "abc")
    write(db, "contradicts", one, two)
    open_then = db.log()[-1].time
    write(db, "supersedes", new, two)
    assert db.conflicts() == []
    assert len(db.conflicts(include_settled=True)) == 1
    assert db.query().seeds([one]).execute().conflicts == ()
    assert not any(hit.conflicts for hit in db.recall("a b c"))
    assert len(db.query().include_superseded().execute().conflicts) == 1
    assert len(db.conflicts(as_of=AsOf(known=open_then))) == 1
