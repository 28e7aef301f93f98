"""same_as: staged, decided by somebody, undone; and readers that follow the accepted class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ontology.handler_stage import delete, fact, facts, names, open_store, refused, write
from worlddb import AsOf, ConflictError, Edge, EdgeDraft, Id, NotFoundError, WorldDB


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def merged(db: WorldDB, one: Id, other: Id) -> Edge:
    edge = write(db, "same_as", one, other)
    db.accept_merge(edge.id)
    return edge


# -- on_insert -------------------------------------------------------------------------------------


def test_same_as_stages_a_pending_proposal_and_merges_nothing(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    evidence = {"tier": "fuzzy", "score": 0.93, "names": ["a", "b"]}
    edge = write(db, "same_as", one, two, metadata=evidence)
    (proposal,) = db.proposals()
    assert (proposal.edge, proposal.left, proposal.right) == (edge.id, one, two)
    assert (proposal.status, proposal.tier, proposal.score) == ("pending", "fuzzy", 0.93)
    assert proposal.evidence == {"names": ["a", "b"]}
    assert db.equivalence_class(one) == {one}
    assert len(db.query().execute()) == 2


def test_without_evidence_the_tier_is_given_and_the_score_one(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    write(db, "same_as", one, two)
    (proposal,) = db.proposals()
    assert (proposal.tier, proposal.score, proposal.evidence) == ("given", 1.0, {})


def test_there_is_one_proposal_for_an_unordered_pair(db: WorldDB) -> None:
    one, two, three = facts(db, "abc")
    first = write(db, "same_as", one, two)
    again = write(db, "same_as", two, one)
    more = write(db, "same_as", one, two, metadata={"tier": "fuzzy", "score": 0.9})
    assert len({first.id, again.id, more.id}) == 3
    assert [item.edge for item in db.proposals(None)] == [first.id]
    write(db, "same_as", one, three)
    assert len(db.proposals()) == 2
    assert db.check() == []


def test_a_batch_stages_one_proposal_for_an_unordered_pair(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    drafts = [EdgeDraft(source=one, target=two), EdgeDraft(source=two, target=one)]
    with db.transaction() as tx:
        assert tx.write_edges("same_as", drafts) == 2
    assert len(db.proposals(None)) == 1


def test_a_node_is_not_proposed_to_be_itself(db: WorldDB) -> None:
    (one,) = facts(db, "a")
    with refused(db, "same_as: a node is already the same as itself"):
        write(db, "same_as", one, one)


@pytest.mark.parametrize("score", ["high", None, True, [1], {"a": 1}])
def test_a_score_that_is_no_number_is_refused(db: WorldDB, score: Any) -> None:
    one, two = facts(db, "ab")
    with refused(db, "same_as: the score must be a number"):
        write(db, "same_as", one, two, metadata={"score": score})


def test_a_score_too_large_for_a_number_is_refused(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    with refused(db, "same_as: the score"):
        write(db, "same_as", one, two, metadata={"score": 10**400})


# -- deciding --------------------------------------------------------------------------------------


def test_accepting_unites_the_class_and_both_keep_their_rows(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    before = db.get(one), db.get(two)
    edge = write(db, "same_as", one, two)
    assert db.accept_merge(edge.id, actor="reviewer").status == "accepted"
    assert db.log()[-1].actor == "reviewer"
    assert db.equivalence_class(one) == db.equivalence_class(two) == {one, two}
    assert (db.get(one), db.get(two)) == before
    assert db.proposals() == []
    assert [item.status for item in db.proposals("accepted")] == ["accepted"]


def test_classes_are_transitive(db: WorldDB) -> None:
    a, b, c, d, e = facts(db, "abcde")
    for one, other in ((a, b), (c, b), (c, d)):
        merged(db, one, other)
    for node in (a, b, c, d):
        assert db.equivalence_class(node) == {a, b, c, d}
    assert db.equivalence_class(e) == {e}


def test_undoing_splits_the_class_where_it_was_joined(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    merged(db, a, b)
    edge = merged(db, b, c)
    assert db.undo_merge(edge.id).status == "pending"
    assert db.equivalence_class(a) == {a, b}
    assert db.equivalence_class(c) == {c}
    db.accept_merge(edge.id)
    assert db.equivalence_class(c) == {a, b, c}
    assert db.check() == []


def test_a_decision_can_be_made_through_any_edge_of_the_pair(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    first = write(db, "same_as", one, two)
    other = write(db, "same_as", two, one)
    assert db.accept_merge(other.id).edge == first.id
    assert db.equivalence_class(one) == {one, two}


def test_deciding_the_same_again_writes_nothing(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    edge = merged(db, one, two)
    commits = len(db.log())
    db.accept_merge(edge.id)
    assert len(db.log()) == commits


def test_a_decision_is_not_turned_around_in_silence(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    accepted, rejected = merged(db, a, b), write(db, "same_as", a, c)
    db.reject_merge(rejected.id)
    with pytest.raises(ConflictError, match="accepted already; undo it first with undo_merge"):
        db.reject_merge(accepted.id)
    with pytest.raises(ConflictError, match="rejected already; write a new same_as edge"):
        db.accept_merge(rejected.id)
    with pytest.raises(ConflictError, match="rejected already"):
        db.undo_merge(rejected.id)


def test_an_edge_without_a_proposal_cannot_be_decided(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    edge = write(db, "refers_to", one, two)
    with pytest.raises(NotFoundError, match="has no merge proposal"):
        db.accept_merge(edge.id)
    with pytest.raises(NotFoundError):
        db.accept_merge(one)


def test_a_rejected_pair_comes_back_only_with_new_evidence(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    edge = write(db, "same_as", one, two, metadata={"tier": "fuzzy", "score": 0.9, "x": 1})
    db.reject_merge(edge.id)
    write(db, "same_as", two, one, metadata={"tier": "fuzzy", "score": 0.8, "x": 1})
    assert [item.status for item in db.proposals(None)] == ["rejected"]
    new = write(db, "same_as", two, one, metadata={"tier": "fuzzy", "score": 0.8, "x": 2})
    assert [item.status for item in db.proposals(None)] == ["rejected", "pending"]
    db.accept_merge(new.id)
    assert db.equivalence_class(one) == {one, two}
    assert db.check() == []


# -- on_delete -------------------------------------------------------------------------------------


def test_deleting_the_edge_withdraws_a_pending_proposal(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    edge = write(db, "same_as", one, two)
    delete(db, edge)
    assert [item.status for item in db.proposals(None)] == ["withdrawn"]
    with pytest.raises(ConflictError, match="withdrawn already; write a new same_as edge"):
        db.accept_merge(edge.id)
    again = write(db, "same_as", one, two)
    assert [item.edge for item in db.proposals()] == [again.id]
    assert db.check() == []


def test_deleting_the_edge_splits_an_accepted_merge(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    edge = merged(db, one, two)
    together = db.log()[-1].time
    delete(db, edge)
    assert db.equivalence_class(one) == {one}
    assert db.equivalence_class(one, as_of=AsOf(known=together)) == {one, two}
    assert [item.status for item in db.proposals(None)] == ["withdrawn"]


def test_deleting_a_rejected_edge_leaves_the_decision(db: WorldDB) -> None:
    one, two = facts(db, "ab")
    edge = write(db, "same_as", one, two)
    db.reject_merge(edge.id)
    delete(db, edge)
    assert [item.status for item in db.proposals(None)] == ["rejected"]
    assert db.check() == []


# -- on_query_rewrite ------------------------------------------------------------------------------


def test_a_seed_stands_for_its_accepted_class(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    merged(db, a, b)
    assert set(names(db.query().seeds(a).execute())) == {"a", "b"}
    assert set(names(db.query().seeds(b).execute())) == {"a", "b"}
    write(db, "same_as", b, c)  # Pending: it does not count.
    assert set(names(db.query().seeds(b).execute())) == {"a", "b"}


def test_a_hop_starts_from_the_whole_class(db: WorldDB) -> None:
    a, b, x, y = facts(db, "abxy")
    write(db, "refers_to", a, x)
    write(db, "refers_to", b, y)
    query = db.query().seeds(a).traverse("refers_to")
    assert names(query.execute()) == ["x"]
    merged(db, a, b)
    assert set(names(query.execute())) == {"x", "y"}


def test_every_further_hop_acts_on_classes_too(db: WorldDB) -> None:
    start, middle, twin, end = facts(db, "smte")
    write(db, "refers_to", start, middle)
    write(db, "refers_to", twin, end)
    merged(db, middle, twin)
    assert "e" in names(db.query().seeds(start).traverse("refers_to", hops=2).execute())
    again = db.query().seeds(start).traverse("refers_to").traverse("refers_to").execute()
    assert "e" in names(again)
    back = db.query().seeds(end).traverse("refers_to", "in", hops=2).execute()
    assert "s" in names(back)


def test_where_connected_takes_any_node_of_the_class(db: WorldDB) -> None:
    a, b, x, y = facts(db, "abxy")
    write(db, "refers_to", x, a)
    write(db, "refers_to", y, b)
    merged(db, a, b)
    found = db.query().where_connected("refers_to", "out", a).execute()
    assert set(names(found)) == {"x", "y"}


def test_classes_are_those_of_the_known_time(db: WorldDB) -> None:
    a, b, x, y = facts(db, "abxy")
    write(db, "refers_to", a, x)
    write(db, "refers_to", b, y)
    edge = write(db, "same_as", a, b)
    times = {"proposed": db.log()[-1].time}
    db.accept_merge(edge.id)
    times["accepted"] = db.log()[-1].time
    db.undo_merge(edge.id)
    times["undone"] = db.log()[-1].time
    db.accept_merge(edge.id)
    delete(db, edge)
    times["deleted"] = db.log()[-1].time
    expected = {"proposed": {"x"}, "accepted": {"x", "y"}, "undone": {"x"}, "deleted": {"x"}}
    for moment, seen in expected.items():
        found = db.query().seeds(a).as_of(known=times[moment]).traverse("refers_to").execute()
        assert set(names(found)) == seen, moment
        seeds = set(names(db.query().seeds(a).as_of(known=times[moment]).execute()))
        assert seeds == ({"a", "b"} if "y" in seen else {"a"}), moment


def test_a_class_does_not_lead_out_of_a_world(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = fact(tx, "world")
        inside, target = fact(tx, "inside", parent=world), fact(tx, "target", 2, parent=world)
        twin, hidden = fact(tx, "twin"), fact(tx, "hidden", 3)
        tx.write_edge("causes", twin, hidden)
        tx.write_edge("causes", twin, target)
        tx.write_edge("causes", inside, target)
    merged(db, inside, twin)
    query = db.query().in_world(world).seeds(inside)
    assert names(query.execute()) == ["inside"]
    found = query.traverse("causes").execute()
    assert names(found) == ["target"]
    shown = {end for edge in found.edges for end in (edge.source, edge.target)}
    assert shown <= {inside, target}


def test_the_second_edge_of_a_pair_proposes_it_when_the_first_is_deleted(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    one, two = write(db, "same_as", a, b), write(db, "same_as", b, a)
    assert len(db.proposals()) == 1
    delete(db, one)
    (left,) = db.proposals()
    assert left.edge == two.id
    db.accept_merge(two.id)
    assert db.equivalence_class(a) == {a, b}
    delete(db, two)
    assert [it.status for it in db.proposals(None)] == ["withdrawn", "withdrawn"]
    assert db.check() == []


def test_a_rejected_pair_is_not_proposed_again_by_a_deletion(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    one = write(db, "same_as", a, b)
    write(db, "same_as", b, a, metadata={"why": "another"})
    db.reject_merge(one.id)
    delete(db, one)
    assert db.proposals() == []
