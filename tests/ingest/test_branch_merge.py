"""What was written on a branch comes to its trunk: as it is, or told where both sides differ."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import ConflictError, Edge, Id, Memory, Query, WorldDB, WriteContext
from worlddb.write import transaction


@pytest.fixture
def db(tmp_path: Path) -> Iterator[WorldDB]:
    with worlddb.open(tmp_path / "store.db", embedder="none") as opened:
        yield opened


def memory_of(db: WorldDB) -> Memory:
    return Memory(db, user_id="ada", recluster="off")


def texts(db: WorldDB, question: str = "Where do I live?") -> list[str]:
    return [hit.node.content for hit in memory_of(db).recall(question).hits]


def topic(db: WorldDB, name: str, **more: Any) -> Id:
    with db.transaction() as tx:
        return tx.create_node(type="Topic", name=name, **more).id


def link(db: WorldDB, type_: str, source: Id, target: Id, **more: Any) -> Id:
    with db.transaction() as tx:
        return tx.write_edge(type_, source, target, **more).id


def test_a_merge_into_a_trunk_that_stood_still_gives_the_state_of_the_branch(db: WorldDB) -> None:
    memory_of(db).write("I live in London.")
    with db.branch("try") as branch:
        memory_of(branch).write("I moved to Paris.")
        memory_of(branch).write("Sarah Chen likes tea.")
        branch.consolidate()
        assert texts(db) == ["I live in London."]
        merged = db.merge("try", actor="ada")
        assert db.root_state == merged.root_state == branch.root_state
        assert texts(db) == texts(branch)
        head = branch.log()[-1]
    assert merged.commit is not None
    assert merged.commit.actor == "ada"
    assert (merged.conflicts, merged.proposals) == ((), ())
    (mark,) = [change for change in merged.commit.changes if change.kind == "merge"]
    assert mark.detail["parents"] == [str(db.log()[-2].hash), str(head.hash)]
    assert (mark.detail["branch"], mark.detail["until"]) == ("try", head.seq)
    assert db.check() == []


def test_a_diff_tells_what_a_branch_has_and_the_trunk_has_not(db: WorldDB) -> None:
    topic(db, "before")
    with db.branch("try") as branch:
        topic(db, "on the trunk")
        topic(branch, "on the branch")
        assert [node.name for node in db.diff("try").nodes] == ["on the branch"]
        db.merge("try")
        assert db.diff("try").nodes == ()
        topic(branch, "later")
        assert [node.name for node in db.diff("try").nodes] == ["later"]


def test_a_branch_can_be_merged_again_and_only_what_is_new_comes(db: WorldDB) -> None:
    first = topic(db, "first")
    with db.branch("try") as branch:
        second = topic(branch, "second")
        edge = link(branch, "refers_to", first, second)
        assert db.merge("try").nodes == 1
        with db.transaction() as tx:
            tx.delete_edge(edge)
        assert db.merge("try").commit is None
        topic(branch, "third")
        again = db.merge("try")
        assert (again.nodes, again.edges) == (1, 0)
        assert db.edges(first) == []  # What the trunk deleted since does not come back.


def test_a_dry_run_tells_the_same_and_writes_nothing(db: WorldDB) -> None:
    memory_of(db).write("I live in London.")
    with db.branch("try") as branch:
        memory_of(branch).write("I moved to Paris.")
        memory_of(db).write("I moved to Rome.")
        before, commits = db.root_state, len(db.log())
        tried = db.merge("try", dry_run=True)
        assert (db.root_state, len(db.log())) == (before, commits)
        assert tried.dry_run
        assert tried.commit is None
        merged = db.merge("try")
    assert len(tried.conflicts) == len(merged.conflicts) == 1
    assert (tried.nodes, tried.edges) == (merged.nodes, merged.edges)


def test_a_merge_is_undone_as_any_commit(db: WorldDB) -> None:
    memory_of(db).write("I live in London.")
    with db.branch("try") as branch:
        memory_of(branch).write("I moved to Paris.")
    merged = db.merge("try")
    assert merged.commit is not None
    assert texts(db)[0] == "I moved to Paris."
    db.undo(merged.commit.seq)
    assert texts(db) == ["I live in London."]
    assert db.check() == []


def test_two_successors_of_one_memory_contradict_each_other(db: WorldDB) -> None:
    memory_of(db).write("I live in London.")
    with db.branch("try") as branch:
        memory_of(branch).write("I moved to Paris.")
        memory_of(db).write("I moved to Rome.")
    merged = db.merge("try")
    (conflict,) = merged.conflicts
    ends = [db.get(conflict.left).content, db.get(conflict.right or "").content]
    assert ends == ["I moved to Paris.", "I moved to Rome."]
    assert conflict.edge is not None
    assert db.get_edge(conflict.edge).type == "contradicts"
    assert [one.edge for one in db.conflicts()] == [conflict.edge]
    assert set(texts(db)) == {"I moved to Paris.", "I moved to Rome."}  # Nothing ended silently.


def test_two_first_values_of_one_claim_contradict_each_other(db: WorldDB) -> None:
    memory_of(db).write("My brother Tom Stone likes tea.")
    with db.branch("try") as branch:
        memory_of(branch).write("Tom Stone lives in Paris.")
        memory_of(db).write("Tom Stone lives in Rome.")
    merged = db.merge("try")
    assert [one.kind for one in merged.conflicts] == ["claim"]
    assert "Paris" in merged.conflicts[0].reason


def test_two_texts_of_one_frame_contradict_each_other(db: WorldDB) -> None:
    memory_of(db).write("Water is wet.")
    with db.branch("try") as branch:
        memory_of(branch).write("The budget is 40k.")
        memory_of(db).write("The budget is 60k.")
    merged = db.merge("try")
    assert [one.kind for one in merged.conflicts] == ["text"]
    assert len(db.conflicts()) == 1


def test_a_memory_that_one_side_replaced_and_the_other_retired_is_told(db: WorldDB) -> None:
    old = memory_of(db).write("The code is 1234.").id
    with db.branch("try") as branch:
        new = memory_of(branch).amend(old, "The code is 9999.").id
        memory_of(db).retire(old)
    merged = db.merge("try")
    assert [(one.left, one.right) for one in merged.conflicts] == [(new, old)]


@pytest.mark.parametrize("ender", ["branch", "trunk"])
def test_a_world_that_one_side_ended_and_the_other_wrote_in_is_told(
    db: WorldDB, ender: str
) -> None:
    diary = topic(db, "Diary")
    with db.branch("try") as branch:
        sides = {"branch": branch, "trunk": db}
        with sides.pop(ender).transaction() as tx:
            tx.retire(diary)
        (writer,) = sides.values()
        page = topic(writer, "Monday", parent=diary)
        merged = db.merge("try")
    (told,) = merged.conflicts
    assert (told.kind, told.left, told.right, told.edge) == ("world", diary, None, None)
    assert f"the {ender} has ended Topic 'Diary'" in told.reason
    assert db.get(page).valid_to is None
    assert merged.commit is not None
    (mark,) = [change for change in merged.commit.changes if change.kind == "merge"]
    assert mark.detail["untold"] == [told.reason]


def test_one_name_on_both_sides_is_proposed_and_not_merged(db: WorldDB) -> None:
    memory_of(db).write("Water is wet.")
    with db.branch("try") as branch:
        memory_of(branch).write("Bob Stone likes tea.")
        memory_of(db).write("Bob Stone hates coffee.")
    merged = db.merge("try")
    (proposal,) = db.proposals()
    assert merged.proposals == (proposal.edge,)
    assert db.get(proposal.left).name == db.get(proposal.right).name == "Bob Stone"
    assert proposal.left != proposal.right


def test_the_same_text_on_both_sides_is_one_memory(db: WorldDB) -> None:
    memory_of(db).write("I live in London.")
    with db.branch("try") as branch:
        memory_of(branch).write("Water is wet.", source="branch")
        there = memory_of(db).write("Water is wet.", source="trunk").id
    merged = db.merge("try")
    assert merged.nodes == 0
    assert set(db.get(there).provenance) == {"trunk", "branch"}
    assert texts(db, "Is water wet?").count("Water is wet.") == 1


def test_an_edge_that_a_handler_refuses_is_told_and_the_rest_is_merged(db: WorldDB) -> None:
    cause, effect = topic(db, "rain"), topic(db, "flood")
    with db.branch("try") as branch:
        link(branch, "subtype_of", cause, effect)
        topic(branch, "umbrella")
        link(db, "subtype_of", effect, cause)
    merged = db.merge("try")
    (conflict,) = merged.conflicts
    assert (conflict.kind, conflict.left, conflict.right) == ("refused", cause, effect)
    assert "circle" in conflict.reason or "cycle" in conflict.reason
    assert [one.edge for one in db.conflicts()] == [conflict.edge]
    assert "umbrella" in {node.name for node in db.children()}
    assert db.edges(cause, types=["subtype_of"]) == []


def test_two_targets_of_a_functional_type_contradict_each_other(db: WorldDB) -> None:
    db.ontology().declare("manages", newer_ends_older=True)
    team, ada, bob = (topic(db, name) for name in ("team", "ada", "bob"))
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    with db.branch("try") as branch:
        link(branch, "manages", team, ada, valid_from=late)
        link(db, "manages", team, bob, valid_from=early)
    merged = db.merge("try")
    assert [(one.kind, one.left, one.right) for one in merged.conflicts] == [
        ("functional", ada, bob)
    ]


def test_metadata_that_both_sides_changed_stays_the_trunks_and_is_told(db: WorldDB) -> None:
    node = topic(db, "plan")
    with db.branch("try") as branch:
        for side, value in ((branch, "red"), (db, "blue")):
            with side.transaction() as tx:
                tx.add_metadata(node, {"colour": value, side.path[-3:] + str(value): 1})
    merged = db.merge("try")
    assert [one.kind for one in merged.conflicts] == ["metadata"]
    assert merged.commit is not None
    assert merged.commit.changes[-1].detail["untold"] == [merged.conflicts[0].reason]
    found = db.get(node).metadata
    assert found["colour"] == "blue"
    assert len(found) == 3


def test_a_decision_that_the_trunk_took_otherwise_stays_and_is_told(db: WorldDB) -> None:
    edge = link(db, "same_as", topic(db, "a"), topic(db, "b"))
    with db.branch("try") as branch:
        branch.accept_merge(edge)
        db.reject_merge(edge)
    merged = db.merge("try")
    assert [one.kind for one in merged.conflicts] == ["decision"]
    assert [one.status for one in db.proposals(None)] == ["rejected"]


def test_a_type_that_the_branch_declares_and_uses_is_merged(db: WorldDB) -> None:
    mentor, pupil = topic(db, "mentor"), topic(db, "pupil")
    with db.branch("try") as branch:
        branch.ontology().declare("mentors", acyclic=True)
        link(branch, "mentors", mentor, pupil)
        assert db.merge("try", dry_run=True).edges == 1
        assert db.ontology().types() == []
        with pytest.raises(worlddb.InvalidInputError, match="unknown edge type"):
            link(db, "mentors", mentor, pupil)
        assert (db.merge("try").edges, db.root_state) == (1, branch.root_state)
    with pytest.raises(worlddb.RejectedError):
        link(db, "mentors", pupil, mentor)
    assert db.check() == []


@pytest.mark.parametrize(("there", "kinds"), [({"acyclic": True}, ["type"]), ({}, [])])
def test_a_type_that_the_trunk_declared_otherwise_stays_and_is_told(
    db: WorldDB, there: dict[str, Any], kinds: list[str]
) -> None:
    with db.branch("try") as branch:
        branch.ontology().declare("mentors")
        db.ontology().declare("mentors", **there)
    declared = db.ontology().types()
    merged = db.merge("try")
    assert [one.kind for one in merged.conflicts] == kinds
    assert db.ontology().types() == declared
    assert merged.commit is not None
    untold = merged.commit.changes[-1].detail["untold"]
    assert untold == [one.reason for one in merged.conflicts]


class Marks:
    """A custom type whose handler retires the target."""

    type = "marks"
    pierces = False

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Close the target."""
        ctx.close_validity(edge.target, at=edge.valid_from)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Nothing follows."""

    def on_query_rewrite(self, query: Query) -> Query:
        """Nothing changes."""
        return query


def test_programs_of_edges_run_on_the_branch_and_again_when_merged(db: WorldDB) -> None:
    db.ontology().register(Marks())
    old, new = topic(db, "old"), topic(db, "new")
    with db.branch("try") as branch:
        link(branch, "marks", new, old)
        assert branch.get(old).valid_to is not None
        assert db.get(old).valid_to is None
        merged = db.merge("try")
    assert db.get(old).valid_to is not None
    assert merged.commit is not None
    closed = [change for change in merged.commit.changes if change.kind == "close_node"]
    assert [change.id for change in closed] == [old]
    assert "by" in closed[0].detail


def test_a_merge_that_fails_leaves_nothing(db: WorldDB, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_of(db).write("I live in London.")
    with db.branch("try") as branch:
        memory_of(branch).write("I moved to Paris.")
    before = db.root_state, len(db.log())

    def fail(*_: object) -> None:
        raise OSError("the power is gone")

    with monkeypatch.context() as broken:
        broken.setattr(transaction, "seal", fail)
        with pytest.raises(OSError, match="power"):
            db.merge("try")
    assert (db.root_state, len(db.log())) == before
    assert db.check() == []
    assert db.merge("try").commit is not None
    assert texts(db)[0] == "I moved to Paris."


def test_a_merge_is_exported_and_replayed(db: WorldDB) -> None:
    memory_of(db).write("I live in London.")
    with db.branch("try") as branch:
        memory_of(branch).write("I moved to Paris.")
    db.merge("try")
    with worlddb.open(":memory:", embedder="none") as copy:
        copy.replay(list(db.export()))
        assert copy.root_state == db.root_state
        assert copy.check() == []


def test_a_branch_of_another_history_is_not_merged(db: WorldDB) -> None:
    topic(db, "before")
    with db.branch("try") as branch:
        topic(branch, "mine")
    about = Path(branch.path).with_name("branch.json")
    forged = about.read_text().replace(str(db.log()[-1].hash), "00" * 32)
    about.write_text(forged)
    with pytest.raises((ConflictError, worlddb.CorruptionError)):
        db.merge("try")
