"""Undo: a commit that brings back what another had ended, and retires what it had written."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import worlddb
from worlddb import AsOf, ConflictError, InvalidInputError, Memory, NotFoundError, RejectedError

JAN, FEB, MAR = (f"2026-0{month}-01T10:00:00Z" for month in (1, 2, 3))
WHERE = "Where do I live?"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user_id="ada", embedder="none", recluster="off") as made:
        yield made
        assert made.db.check() == []
        copy = worlddb.open(":memory:", embedder="none")
        copy.replay(made.db.export())
        assert copy.root_state == made.db.root_state
        assert copy.check() == []


def lives(memory: Memory, as_of: str | None = None) -> list[str]:
    return sorted(hit.node.content for hit in memory.recall(WHERE, as_of=as_of))


def seq(written: worlddb.Written | worlddb.Retired | worlddb.Undone) -> int:
    assert written.commit is not None
    return written.commit.seq


def test_a_wrong_supersession_is_taken_back_with_text_and_time(memory: Memory) -> None:
    rome = memory.write("I live in Rome.", at=JAN, source="chat 1", metadata={"topic": "home"})
    oslo = memory.write("I moved to Oslo.", at=FEB)
    assert lives(memory) == ["I moved to Oslo."]
    undone = memory.undo(seq(oslo))
    assert lives(memory) == ["I live in Rome."]
    [restored] = undone.restored
    assert restored.old == rome.id
    assert restored.new is not None
    again, before = memory.read(restored.new), memory.read(rome.id)
    assert (again.text, again.valid_from, again.valid_to) == (before.text, before.valid_from, None)
    assert (again.provenance, again.metadata) == (("chat 1",), {"topic": "home"})
    assert again.supersedes == (rome.id,)
    assert oslo.id in undone.retired
    assert memory.read(oslo.id).retired
    assert [one.id for one in memory.list()] == [restored.new]


def test_both_clocks_tell_the_story(memory: Memory) -> None:
    memory.write("I live in Rome.", at=JAN)
    oslo = memory.write("I moved to Oslo.", at=FEB)
    before = memory.db.log(limit=1, newest_first=True)[0].time
    memory.undo(seq(oslo))
    assert lives(memory, "2026-01-15T00:00:00Z") == ["I live in Rome."]
    assert lives(memory, "2026-02-15T00:00:00Z") == ["I live in Rome."]
    then = memory.recall(WHERE, known_at=before)
    assert [hit.node.content for hit in then] == ["I moved to Oslo."]


def test_an_undo_can_be_undone_as_often_as_one_likes(memory: Memory) -> None:
    memory.write("I live in Rome.", at=JAN)
    oslo = memory.write("I moved to Oslo.", at=FEB)
    last = seq(oslo)
    for wanted in ("I live in Rome.", "I moved to Oslo.") * 2:
        last = seq(memory.undo(last))
        assert lives(memory) == [wanted]
        assert lives(memory, "2026-01-15T00:00:00Z") == ["I live in Rome."]
    seq(memory.undo(seq(oslo)))
    assert lives(memory) == ["I live in Rome."]


def test_a_commit_is_undone_once(memory: Memory) -> None:
    first = memory.write("I live in Rome.", at=JAN)
    undone = memory.undo(seq(first))
    with pytest.raises(ConflictError, match=rf"undone by commit {seq(undone)}; undo {seq(undone)}"):
        memory.undo(seq(first))


def test_a_dry_run_says_what_would_be_and_writes_nothing(memory: Memory) -> None:
    rome = memory.write("I live in Rome.", at=JAN)
    oslo = memory.write("I moved to Oslo.", at=FEB)
    head = memory.db.root_state
    would = memory.undo(seq(oslo), dry_run=True)
    assert (would.dry_run, would.commit, memory.db.root_state) == (True, None, head)
    assert [one.old for one in would.restored] == [rome.id]
    done = memory.undo(seq(oslo))
    assert (done.retired, done.kept) == (would.retired, would.kept)


def test_what_replaced_the_replacement_still_holds(memory: Memory) -> None:
    memory.write("I live in Rome.", at=JAN)
    oslo = memory.write("I moved to Oslo.", at=FEB)
    memory.write("I moved to Lima.", at=MAR)
    memory.undo(seq(oslo))
    assert lives(memory) == ["I moved to Lima."]
    assert lives(memory, "2026-02-15T00:00:00Z") == ["I live in Rome."]


def test_an_amendment_and_a_retirement_are_taken_back(memory: Memory) -> None:
    tea = memory.write("Ada drinks tea.", at=JAN)
    coffee = memory.amend(tea.id, "Ada drinks coffee.", at=FEB)
    memory.undo(seq(coffee))
    [left] = memory.list()
    assert left.text == "Ada drinks tea."
    memory.undo(seq(memory.retire(left.id)))
    assert [one.text for one in memory.list()] == ["Ada drinks tea."]


def test_a_purged_scope_comes_back_with_its_memories_and_names(memory: Memory) -> None:
    memory.write("Sarah Chen works at Initech.", user_id="bob", at=JAN)
    memory.write([{"role": "user", "content": "We met Mr Poe."}] * 2, user_id="bob", at=FEB)
    before = [one.text for one in memory.list(user_id="bob")]
    purged = memory.purge_scope(user_id="bob", confirm="bob")
    assert not memory.list(user_id="bob")
    memory.undo(seq(purged))
    assert [one.text for one in memory.list(user_id="bob")] == before
    assert "Sarah Chen works at Initech." in [
        hit.node.content for hit in memory.recall("Sarah Chen", user_id="bob")
    ]
    again = memory.write("Sarah Chen likes cake.", user_id="bob")
    assert [one.created for one in again.entities if one.name == "Sarah Chen"] == [False]


def test_names_that_others_mention_stay(memory: Memory) -> None:
    first = memory.write("Sarah Chen works at Initech.", at=JAN)
    memory.write("Sarah Chen likes cake.", at=FEB)
    undone = memory.undo(seq(first))
    sarah = next(one.id for one in first.entities if one.name == "Sarah Chen")
    assert sarah in [one.id for one in undone.kept]
    assert memory.db.get(sarah).valid_to is None
    initech = next((one.id for one in first.entities if one.name == "Initech"), None)
    assert initech is None or initech in undone.retired
    assert [one.text for one in memory.list()] == ["Sarah Chen likes cake."]


def test_the_scope_of_later_memories_stays(memory: Memory) -> None:
    first = memory.write("Tea is hot.", at=JAN)
    memory.write("Coffee is hot.", at=FEB)
    memory.undo(seq(first))
    assert [one.text for one in memory.list()] == ["Coffee is hot."]


def test_an_idempotency_key_is_free_after_an_undo(memory: Memory) -> None:
    first = memory.write("Tea is hot.", at=JAN, idempotency_key="k1")
    memory.undo(seq(first))
    again = memory.write("Tea is hot, she said.", at=FEB, idempotency_key="k1")
    assert again.created
    assert memory.write("Tea is hot, she said.", idempotency_key="k1").id == again.id


def test_a_run_of_the_consolidator_is_taken_back(memory: Memory) -> None:
    for number in range(4):
        memory.write(f"Project Apollo reached milestone {number}.", at=JAN)
    start = memory.db.log(limit=1, newest_first=True)[0].seq
    memory.db.consolidate()
    runs = memory.db.log(after=start)
    assert runs
    undone = memory.undo([commit.seq for commit in runs])
    assert undone.commits == tuple(commit.seq for commit in runs)
    kinds = {memory.db.get(ident).type for ident in undone.retired}
    assert kinds == {"Summary"}
    assert len(memory.list()) == 4


def test_a_summary_of_what_is_undone_ends_with_it(memory: Memory) -> None:
    written = [memory.write(f"Apollo reached milestone {one}.", at=JAN) for one in range(3)]
    memory.db.consolidate()
    undone = memory.undo(seq(written[1]))
    assert "Summary" in {memory.db.get(ident).type for ident in undone.retired}


def test_an_import_of_many_commits_is_taken_back_together(memory: Memory) -> None:
    kept = memory.write("I live in Rome.", at=JAN)
    many = [memory.write(f"Note {number} of the import.") for number in range(5)]
    many.append(memory.write("I moved to Oslo.", at=FEB))
    memory.undo([seq(one) for one in many])
    assert [one.text for one in memory.list()] == ["I live in Rome."]
    assert memory.read(kept.id).retired  # Its successor lives.


def test_edges_proposals_and_conflicts_go_back() -> None:
    db = worlddb.open(":memory:", embedder="none")
    with db.transaction() as tx:
        a, b, c = (tx.create_node(type="Entity", name=name) for name in "abc")
        kept = tx.write_edge("causes", a.id, b.id)
    with db.transaction() as tx:
        same = tx.write_edge("same_as", a.id, b.id)
        tx.write_edge("contradicts", a.id, c.id, metadata={"reason": "no"})
    staged = db.log()[-1].seq
    db.accept_merge(same.id)
    accepted = db.log()[-1].seq
    db.undo(accepted)
    assert [one.status for one in db.proposals(None)] == ["pending"]
    db.reject_merge(same.id)
    db.undo(db.log()[-1])
    assert [one.status for one in db.proposals(None)] == ["pending"]
    undone = db.undo(staged)
    assert (db.proposals(), db.conflicts()) == ([], [])
    db.undo(undone.commit)  # type: ignore[arg-type]
    assert len(db.proposals()) == len(db.conflicts()) == 1
    with db.transaction() as tx:
        tx.delete_edge(kept.id)
    db.undo(db.log()[-1].seq)
    assert [edge.type for edge in db.edges(a.id, types=["causes"])] == ["causes"]
    assert db.check() == []


def test_a_moved_node_goes_back_and_metadata_too() -> None:
    db = worlddb.open(":memory:", embedder="none")
    with db.transaction() as tx:
        node = tx.create_node(type="Memory", content="a stone")
        tx.add_metadata(node.id, {"colour": "red", "size": 1})
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name="stones", content="all about stones")
        tx.write_edge("contains", world.id, node.id)
        tx.add_metadata(node.id, {"colour": "blue", "new": True})
    undone = db.undo(db.log()[-1].seq)
    found = db.get(node.id)
    assert found.parent == db.root_id
    assert (found.metadata["colour"], found.metadata["size"]) == ("red", 1)
    assert world.id in undone.retired
    assert [one.id for one in undone.kept] == [node.id]  # A further key cannot be removed.
    assert db.check() == []


def test_what_cannot_be_undone_says_why(memory: Memory) -> None:
    first = memory.write("Tea is hot.", at=JAN)
    memory.erase(first.id)
    with pytest.raises(ConflictError, match="an erasure cannot be undone"):
        memory.undo(memory.db.log()[-1].seq)
    with pytest.raises(InvalidInputError, match="commit 0 made the store"):
        memory.undo(0)
    with pytest.raises(NotFoundError, match="there is no commit 99"):
        memory.undo(99)
    wrongs: list[object] = ["3", True, [], None, {}, [1.5]]
    for wrong in wrongs:
        with pytest.raises(InvalidInputError):
            memory.undo(wrong)  # type: ignore[arg-type]


def test_the_successor_of_an_erased_text_is_erased_with_it(memory: Memory) -> None:
    first = memory.write("My secret is 42.", at=JAN)
    undone = memory.undo(seq(memory.retire(first.id)))
    assert undone.restored[0].new is not None
    memory.erase(undone.restored[0].new)
    assert "secret" not in json.dumps([json.loads(line) for line in memory.db.export()])


def test_a_bound_caller_undoes_only_what_is_its_own(memory: Memory) -> None:
    memory.write("I live in Rome.", user_id="bob", at=FEB)
    bound = memory.bound(user_id="ada", writes_into=["app_id"])
    mine = bound.write("I live in Rome.", at=JAN)
    theirs = memory.write("I moved to Oslo.", user_id="bob", at=MAR)
    assert theirs.commit is not None
    for foreign in (seq(theirs), 99, theirs.commit, [seq(mine), 99]):
        with pytest.raises(RejectedError, match="yours alone"):
            bound.undo(foreign)
    with pytest.raises(RejectedError):
        memory.undo(seq(theirs), user_id="ada")
    assert len(memory.list(user_id="bob")) == 1
    shared = bound.write("We meet in the shop.", app_id="shop")
    assert (seq(mine), seq(shared)) == (1, 2)  # Its own numbers, not those of the store.
    undone = bound.undo(seq(shared))
    assert undone.commits == (2,)
    assert undone.root_state != memory.db.root_state
    bound.undo(undone.commit)  # type: ignore[arg-type]
    assert {one.text for one in bound.list()} == {"I live in Rome.", "We meet in the shop."}
    ended = bound.retire(mine.id)
    bound.undo(ended.commit)  # type: ignore[arg-type]
    assert len(bound.list()) == 2
    with pytest.raises(ConflictError, match="undone already"):
        bound.undo(ended.commit)  # type: ignore[arg-type]
    bound.undo(seq(mine))
    assert {one.text for one in bound.list()} == {"We meet in the shop."}
    assert memory.db.log()[-1].actor == "memory"
    assert [one.seq for one in bound.log()] == sorted(
        (one.seq for one in bound.log()), reverse=True
    )
    assert max(one.seq for one in bound.log()) < memory.db.log()[-1].seq


def test_known_time_before_an_undo_is_untouched(memory: Memory) -> None:
    first = memory.write("Tea is hot.", at=JAN)
    before = memory.db.log()[-1].time
    memory.undo(seq(first))
    assert memory.db.get(first.id, as_of=AsOf(known=before)).valid_to is None
