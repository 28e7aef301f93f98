"""Memory on edges, identity and history: what a caller reaches, and what a bound one does not."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import worlddb
from patience import until
from worlddb import InvalidInputError, Memory, NotFoundError, RejectedError

JAN, FEB, MAR = (f"2026-0{month}-01T10:00:00Z" for month in (1, 2, 3))


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", user_id="ada", embedder="none", recluster="now") as made:
        yield made
        assert made.db.check() == []


@pytest.fixture
def bob(memory: Memory) -> Memory:
    memory.write("Bob Stone eats apples.", user_id="bob", at=JAN)
    return memory.bound(user_id="bob")


def test_a_query_is_a_line_or_json_and_stays_in_its_scope(memory: Memory, bob: Memory) -> None:
    mine = memory.write("Ada eats apples.", at=JAN)
    for query in (
        "text apples | filter_type Memory | limit 5",
        {"text": "apples", "steps": [{"op": "filter_type", "types": ["Memory"]}]},
        worlddb.QuerySpec(text="apples"),
    ):
        assert memory.query(query).ids == {mine.id}
        assert {node.content for node in bob.query(query)} == {"Bob Stone eats apples."}
    assert len(memory.query("text apples", user_id=["ada", "bob"])) == 2
    assert len(memory.query("text apples", user_id="nobody")) == 0
    assert "apples" in str(memory.explain("text apples | limit 5"))
    with pytest.raises(InvalidInputError, match="unknown step"):
        memory.query("fetch apples", user_id="nobody")
    with pytest.raises(InvalidInputError, match="ops; known are seeds, text"):
        memory.query({"text": "apples", "ops": []})
    with pytest.raises(InvalidInputError, match="step limit: it takes n, and was given count"):
        memory.query({"text": "apples", "steps": [{"op": "limit", "count": 3}]})
    with pytest.raises(RejectedError):
        bob.query("text apples", user_id="ada")
    with pytest.raises(NotFoundError):
        bob.query(f"seeds {mine.id}")


def test_the_ends_of_an_edge_may_be_names_of_the_scope(memory: Memory, bob: Memory) -> None:
    ada = memory.write("Ada Stone met Carl Berg.", at=JAN)
    names = {one.name: one.id for one in ada.entities}
    memory.declare("manages", acyclic=True)
    edge = memory.link("manages", "ada stone", names["Carl Berg"].short)
    assert (edge.source, edge.target) == (names["Ada Stone"], names["Carl Berg"])
    with pytest.raises(NotFoundError, match="Bob Stone"):
        memory.link("manages", "Ada Stone", "Bob Stone")
    with pytest.raises(NotFoundError, match="Ada Stone"):
        bob.link("manages", "Bob Stone", "Ada Stone")


def test_edges_are_written_and_deleted_between_what_can_be_seen(
    memory: Memory, bob: Memory
) -> None:
    rain = memory.write("It rained all night.", at=JAN)
    flood = memory.write("The cellar was full of water.", at=FEB)
    edge = memory.link("causes", rain.id, flood.id, metadata={"sure": True})
    assert (edge.type, edge.source, edge.target) == ("causes", rain.id, flood.id)
    assert memory.query(f"seeds {rain.id} | traverse causes").ids == {flood.id}
    with pytest.raises(RejectedError, match="circle"):
        memory.link("causes", flood.id, rain.id)
    with pytest.raises(InvalidInputError):
        memory.link("hurts", rain.id, flood.id)
    with pytest.raises(NotFoundError):
        bob.link("causes", rain.id, flood.id)
    with pytest.raises(NotFoundError):
        bob.unlink(edge.id)
    assert memory.unlink(str(edge.id)[:12]).known_to is not None
    assert not memory.query(f"seeds {rain.id} | traverse causes")
    with pytest.raises(NotFoundError):
        memory.unlink(edge.id)


def test_proposals_are_listed_and_decided_in_scope(memory: Memory, bob: Memory) -> None:
    memory.write("Sarah Chen lives in Rome.", at=JAN)
    memory.write("Sara Chen moved to Oslo.", at=FEB)
    [one] = memory.proposals()
    assert {one.left_name, one.right_name} == {"Sarah Chen", "Sara Chen"}
    assert (one.status, one.tier != "", one.score > 0) == ("pending", True, True)
    assert (len(bob.proposals()), len(memory.proposals(user_id="bob"))) == (0, 0)
    with pytest.raises(NotFoundError):
        bob.accept_merge(one.edge)
    assert memory.accept_merge(one.edge).status == "accepted"
    assert not memory.proposals()
    assert [item.status for item in memory.proposals(status="accepted")] == ["accepted"]
    assert set(memory.identity(one.left).names) == {"Sarah Chen", "Sara Chen"}
    with pytest.raises(NotFoundError):
        bob.identity(one.left)
    assert memory.undo_merge(one.edge).status == "pending"
    assert memory.decide_merge(one.edge, "reject").status == "rejected"
    with pytest.raises(InvalidInputError, match="use one of accept, reject, undo"):
        memory.decide_merge(one.edge, "maybe")  # type: ignore[arg-type]
    assert memory.db.log()[-1].actor == "memory"


def test_a_split_names_what_the_caller_sees(memory: Memory, bob: Memory) -> None:
    rome = memory.write("Sarah Chen lives in Rome.", at=JAN)
    oslo = memory.write("Sarah Chen moved to Oslo.", at=FEB)
    sarah = next(one.id for one in rome.entities if one.name == "Sarah Chen")
    with pytest.raises(NotFoundError):
        bob.split(sarah, [oslo.id])
    done = memory.split(sarah, [oslo.id])
    assert memory.query(f"seeds {done.new} | traverse refers_to in").ids == {oslo.id}
    memory.undo(done.commit)  # type: ignore[arg-type]
    assert not memory.query(f"seeds {done.new} | traverse refers_to in")


def test_conflicts_come_with_their_texts(memory: Memory, bob: Memory) -> None:
    left = memory.write("The meeting room seats ten people.", at=JAN)
    right = memory.write("There are eight chairs at the table.", at=FEB)
    edge = memory.link("contradicts", left.id, right.id, metadata={"reason": "ten or eight"})
    [one] = [item for item in memory.conflicts() if item.edge == edge.id]
    assert {one.left_text, one.right_text} == {
        "The meeting room seats ten people.",
        "There are eight chairs at the table.",
    }
    assert one.reason == "ten or eight"
    assert len(bob.conflicts()) == 0
    memory.unlink(edge.id)
    assert edge.id not in [item.edge for item in memory.conflicts()]
    assert edge.id in [item.edge for item in memory.conflicts(include_settled=True)]


def test_a_difference_is_cut_where_it_is_asked_to_be(memory: Memory, bob: Memory) -> None:
    for number in range(3):
        memory.write(f"Ada meets Kim Lee, visit {number}.")
    last = memory.db.log()[-1].seq
    whole = memory.diff(0, last, user_id="ada")
    assert not whole.cut
    for limit in (1, 2, len(whole.nodes) + len(whole.edges), sys.maxsize, 1 << 64):
        part = memory.diff(0, last, limit=limit, user_id="ada")
        assert (part.nodes, part.edges) == (whole.nodes[:limit], whole.edges[:limit])
        assert part.cut == (limit < max(len(whole.nodes), len(whole.edges)))
    assert {node.id for node in bob.diff(0, 1, limit=1).nodes} <= {
        n.id for n in bob.diff(0, 1).nodes
    }
    with pytest.raises(InvalidInputError, match="limit"):
        memory.diff(0, last, limit=0)


def test_counts_of_a_large_commit_are_those_of_each_caller(
    memory: Memory, bob: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.write("Ada meets Kim Lee.")
    told = [memory.log(user_id="ada"), bob.log()]
    monkeypatch.setattr("worlddb.memory.scope_sight.LARGE_COMMIT", 0)
    for _ in range(2):  # Counted, then kept.
        assert [memory.log(user_id="ada"), bob.log()] == told
    memory.write("Ada meets Kim Lee again.")
    assert len(memory.log(user_id="ada").commits) == len(told[0].commits) + 1


def test_history_is_told_as_far_as_it_is_the_callers(memory: Memory, bob: Memory) -> None:
    tea = memory.write("Ada drinks tea.", at=JAN)
    memory.retire(tea.id)
    last = memory.db.log()[-1].seq
    whole = memory.log()
    assert [one.seq for one in whole] == list(range(last, -1, -1))
    page = memory.log(limit=2)
    assert page.next_cursor is not None
    older = memory.log(limit=50, cursor=page.next_cursor)
    assert [one.seq for one in (*page, *older)] == [one.seq for one in whole]
    assert older.next_cursor is None
    assert {one.seq for one in page} == {last, last - 1}
    mine = {one.time for one in memory.log(user_id="ada")}
    theirs = {one.time for one in bob.log()}
    assert mine
    assert theirs
    assert not mine & theirs
    assert [one.seq for one in bob.log()] == [1]  # Its own number, not that of the store.
    assert memory.db.root_state not in {one.root_state for one in bob.log()}
    assert [change.id for change in memory.log(user_id="ada")[0].changes] == [tea.id]
    assert tea.id in {node.id for node in memory.diff(0, last).nodes}
    assert tea.id not in {node.id for node in bob.diff(0, last).nodes}
    assert len(bob.diff(0, 1).nodes) >= 1
    assert not bob.diff(1, 1).nodes
    proven = memory.prove(tea.id)
    assert proven.root_state == memory.db.root_state
    assert worlddb.verify_proof(proven.proof, proven.root_state)
    assert memory.check().sound
    for call in (lambda: bob.prove(tea.id), bob.check):
        with pytest.raises(RejectedError, match="whole store"):
            call()


def test_a_scope_is_consolidated_and_its_summaries_come_first(memory: Memory, bob: Memory) -> None:
    for number in range(3):
        memory.write(f"Project Apollo reached milestone {number}.", at=JAN)
        memory.write(f"Bob watered garden bed {number}.", user_id="bob", at=JAN)
    assert memory.consolidate(dry_run=True, user_id="ada").written == 1
    assert bob.consolidate().written == 1
    assert not [hit for hit in memory.recall("Apollo milestone") if hit.node.type == "Summary"]
    memory.consolidate(user_id="ada")
    plain = memory.recall("Apollo milestone 2")
    first = memory.recall("Apollo milestone 2", summaries="first")
    assert plain[0].node.type == "Memory" or len(plain) > 1
    assert [hit.node.type for hit in first] == ["Summary"]
    assert "milestone 2" in first[0].node.content
    memory.write("Project Apollo was cancelled.", at=FEB)
    later = memory.recall("Apollo", summaries="first")
    assert later[0].node.type == "Summary"
    assert "Project Apollo was cancelled." in [hit.node.content for hit in later]
    with pytest.raises(InvalidInputError, match="summaries"):
        memory.recall("Apollo", summaries="last")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="one scope"):
        memory.consolidate(user_id=["ada", "bob"])


def test_an_edge_type_is_declared_for_a_scope(memory: Memory, bob: Memory) -> None:
    one, two = (memory.write(f"Node {number} of the org chart.") for number in range(2))
    declared = memory.declare("manages", acyclic=True, inverse="managed_by", user_id="ada")
    assert (declared.type, declared.acyclic) == ("manages", True)
    memory.link("manages", one.id, two.id)
    assert memory.query(f"seeds {two.id} | traverse managed_by").ids == {one.id}
    with pytest.raises(RejectedError):
        memory.link("manages", two.id, one.id)
    mine = {kind.type: kind for kind in memory.edge_types(user_id="ada")}
    assert mine["manages"].declaration == declared
    assert mine["causes"].ships
    assert "manages" not in {kind.type for kind in bob.edge_types()}
    bob.declare("likes", symmetric=True)
    assert "likes" not in {kind.type for kind in memory.edge_types()}


def test_the_list_can_be_of_some_types(memory: Memory) -> None:
    memory.write("Tea is hot.")
    memory.write([{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}])
    assert [one.type for one in memory.list(types=["Session"])] == ["Session"]
    assert [one.type for one in memory.list(types=["Memory"])] == ["Memory"]
    with pytest.raises(InvalidInputError):
        memory.list(types=[])


def test_the_consolidator_runs_in_the_background_until_the_memory_is_closed() -> None:
    memory = Memory(":memory:", embedder="none", recluster="off", consolidate_every_s=3_600)
    assert memory.background is not None
    runs = memory.background.runs
    until(lambda: runs)
    assert memory.background.runs[0].error is None
    assert memory.background.is_running
    memory.close()
    assert not memory.background.is_running
    with pytest.raises(InvalidInputError, match="every_s"):
        Memory(":memory:", consolidate_every_s=0)


def test_an_identity_is_found_by_a_name(memory: Memory, bob: Memory) -> None:
    done = memory.write("Sarah Chen plays in AC/DC.", names=["Sarah Chen"], aliases=["SC"], at=JAN)
    [sarah] = [one.id for one in done.entities if one.name == "Sarah Chen"]
    for said in ("Sarah Chen", "sarah chen", "SC", "Sarah", str(sarah)[:8], str(sarah), sarah):
        assert memory.identity(said).ids == (sarah,), said
    for wrong in ("Nobody", "Bob Stone", "", "abcd"):
        with pytest.raises(NotFoundError, match="no memory or name here"):
            memory.identity(wrong)
    with pytest.raises(NotFoundError):
        bob.identity("Sarah Chen")
    assert memory.identity("Bob Stone", user_id="bob").names == ("Bob Stone",)


def test_a_name_of_several_is_nobodys_until_they_are_one(memory: Memory) -> None:
    memory.write("Sarah Chen lives in Rome.", at=JAN)
    oslo = memory.write("Sarah Chen moved to Oslo.", at=FEB)
    sarah = memory.identity("Sarah Chen").ids[0]
    second = memory.split(sarah, [oslo.id]).new
    with pytest.raises(InvalidInputError, match=r"may mean several .*; give an id"):
        memory.identity("Sarah Chen")
    assert memory.identity(second).ids == (second,)
    memory.accept_merge(memory.link("same_as", second, sarah).id)
    assert set(memory.identity("Sarah Chen").ids) == {sarah, second}


def test_a_name_that_is_also_the_start_of_an_id_is_asked_about(memory: Memory) -> None:
    first = memory.write("Sarah Chen lives in Rome.", at=JAN)
    start = str(first.id)[:4]
    memory.write("A tag of the shelf.", names=[start], at=FEB)
    with pytest.raises(InvalidInputError, match="may mean several"):
        memory.identity(start)
    assert memory.identity(str(first.id)).ids == (first.id,)
