"""The graph on the command line: query, link, ontology, conflicts, identity, undo, split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import worlddb as package

from .command import in_process as inside

JAN, FEB = "2026-01-01T10:00:00Z", "2026-02-01T10:00:00Z"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "a.db"
    with package.Memory(path, embedder="none", recluster="now") as memory:
        memory.write("Sarah Chen lives in Rome.", at=JAN)
        memory.write("Sarah Chen moved to Oslo.", at=FEB)
        memory.write("Bob eats apples.", user_id="bob", at=JAN)
    return path


def data(store: Path, *arguments: object) -> Any:
    done = inside(*arguments, "--db", store, "--json")
    assert (done.code, done.err) == (0, ""), done.err
    return done.data


def test_a_query_is_a_line_or_json(store: Path) -> None:
    found = data(store, "query", "text Oslo | filter_type Memory")
    assert [node["content"] for node in found["nodes"]] == ["Sarah Chen moved to Oslo."]
    same = data(store, "query", '{"text": "Oslo", "steps": [{"op": "limit", "n": 1}]}')
    assert len(same["nodes"]) == 1
    assert data(store, "query", "text apples")["nodes"] == []
    assert len(data(store, "query", "text apples", "--user-id", "bob")["nodes"]) == 1
    assert len(data(store, "query", "text apples", "--everyone")["nodes"]) == 1
    shown = inside("query", "text Oslo", "--db", store)
    assert "Sarah Chen moved to Oslo." in shown.out
    plan = inside("query", "text Oslo | limit 3", "--explain", "--db", store)
    assert plan.out.startswith("start: the words 'Oslo'")
    wrong = inside("query", "fetch Oslo", "--db", store)
    assert wrong.code == 2
    assert "unknown step 'fetch'" in wrong.err


def test_a_recall_tells_the_path_of_each_hit_with_its_edges(store: Path) -> None:
    hit = data(store, "recall", "Who moved to Oslo?")["hits"][0]
    name, step = hit["path"]
    walked = f"{name['name']} —{step['relation']} {step['edge'][:12]}→ {step['name']}"
    told = inside("recall", "Who moved to Oslo?", "--explain", "--db", store).out
    assert f"   by {walked}" in told.splitlines()


def test_edges_are_linked_and_unlinked(store: Path) -> None:
    memories = data(store, "list", "--include-retired")["memories"]
    rome, oslo = (
        next(one["id"] for one in memories if word in one["text"]) for word in ("Rome", "Oslo")
    )
    edge = data(store, "link", "precedes", rome, oslo, "--metadata", '{"a": 1}')
    assert (edge["type"], edge["metadata"]) == ("precedes", {"a": 1})
    shown = inside("unlink", edge["id"][:12], "--db", store)
    assert shown.out.startswith("unlinked ")
    assert inside("unlink", edge["id"], "--db", store).code != 0


def test_a_commit_is_undone_and_brought_back(store: Path) -> None:
    with package.open(store) as db:
        last = next(one.seq for one in db.log(newest_first=True) if one.nodes and one.seq < 3)
    would = data(store, "undo", last, "--dry-run")
    assert would["dry_run"]
    shown = inside("undo", last, "--db", store)
    assert f"commit {last} was undone; to bring it back: worlddb undo" in shown.out
    assert "restored" in shown.out
    texts = [one["text"] for one in data(store, "list")["memories"]]
    assert texts == ["Sarah Chen lives in Rome."]
    again = shown.out.splitlines()[0].rpartition(" ")[2]
    assert data(store, "undo", again)["commits"] == [int(again)]
    assert inside("undo", last, last, "--dry-run", "--db", store).code == 0
    assert inside("undo", "x", "--db", store).code == 2
    refused = inside("undo", 99, "--db", store)
    assert "there is no commit 99" in refused.err


def test_names_are_shown_and_split(store: Path) -> None:
    with package.Memory(store) as memory:
        [sarah] = [node for node in memory.query("text Sarah") if node.name == "Sarah Chen"]
        [oslo] = [one.id for one in memory.list()]
    shown = inside("identity", str(sarah.id)[:12], "--db", store)
    assert "Sarah Chen" in shown.out
    for said in (sarah.id, "Sarah Chen", "sarah"):
        assert data(store, "identity", said)["names"] == ["Sarah Chen"]
    assert "no memory or name here is 'Bob'" in inside("identity", "Bob", "--db", store).err
    done = inside("proposals", "split", sarah.id, oslo, "--db", store)
    assert "the second one is" in done.out
    assert "worlddb undo" in done.out
    few = inside("proposals", "split", sarah.id, "--db", store)
    assert "give a name or its id, then the memories" in few.err


def test_two_people_of_one_name_are_told_apart_by_that_name(store: Path) -> None:
    oslo = data(store, "list")["memories"][0]["id"]
    done = data(store, "proposals", "split", "Sarah Chen", oslo[:12])
    assert done["memories"] == [oslo]
    again = inside("proposals", "split", "Sarah Chen", oslo, "--db", store)
    assert "may mean several" in again.err
    strange = inside("proposals", "split", "Bob", oslo, "--db", store)
    assert "no memory or name here is 'Bob'" in strange.err  # Bob is in another scope.


def test_history_proposals_and_consolidating_can_be_of_one_scope(store: Path) -> None:
    bob = ("--user-id", "bob")
    [first] = data(store, "log", *bob)
    assert data(store, "log", "--after", first["seq"], *bob) == []
    last = data(store, "log")[-1]["seq"]
    texts = [node["content"] for node in data(store, "diff", 0, last, *bob)["nodes"]]
    assert "Bob eats apples." in texts
    assert "Sarah Chen lives in Rome." not in texts
    with package.Memory(store, recluster="now") as memory:
        memory.write("Sara Chen called.")
        memory.write("Ann Brown called.", user_id="bob")
        memory.write("Anne Brown called.", user_id="bob")
    theirs = data(store, "proposals", *bob)["proposals"]
    every = data(store, "proposals")["proposals"]
    assert ["Ann" in one["left_name"] for one in theirs] == [True]
    assert len(every) == 2
    decided = data(store, "proposals", "reject", "--yes", *bob)
    assert len(decided["proposals"]) == len(theirs)
    assert len(data(store, "proposals")["proposals"]) == 1
    done = data(store, "consolidate", *bob)
    assert [one["title"] for one in done["summaries"]] == ["user:bob"]
    two = inside("consolidate", *bob, "--user-id", "ada", "--db", store)
    assert "give only one of --world ID and a scope" in two.err
    nobody = inside("consolidate", "--user-id", "eve", "--db", store)
    assert "there is no scope eve" in nobody.err


def test_a_memory_has_an_identity_without_names(store: Path) -> None:
    memory = data(store, "list")["memories"][0]["id"]
    shown = inside("identity", memory, "--db", store)
    assert (shown.code, shown.err) == (0, ""), shown.err
    assert memory[:12] in shown.out


def test_conflicts_are_listed_with_their_texts(store: Path) -> None:
    with package.Memory(store) as memory:
        one, two = (memory.write(text) for text in ("The hall seats ten.", "Eight chairs stand."))
        memory.link("contradicts", one.id, two.id, metadata={"reason": "ten or eight"})
    shown = inside("conflicts", "--db", store)
    assert "The hall seats ten." in shown.out
    assert "ten or eight" in shown.out
    assert len(data(store, "conflicts")["conflicts"]) == 1


def test_an_edge_type_is_declared(store: Path) -> None:
    declared = data(store, "ontology", "declare", "manages", "--acyclic", "--inverse", "managed_by")
    assert (declared["type"], declared["acyclic"]) == ("manages", True)
    shown = inside("ontology", "--db", store)
    rows = {row.split()[0]: row for row in shown.rows}
    assert "acyclic" in rows["manages"]
    assert "ships" in rows["causes"]
    assert inside("ontology", "declare", "--db", store).code == 2
    assert inside("ontology", "declare", "causes", "--db", store).code == 2


def test_an_empty_answer_says_of_what_there_is_nothing(tmp_path: Path) -> None:
    store = ("--db", tmp_path / "m.db")
    inside("write", "Ada likes tea.", *store)
    for command, told in (
        ("conflicts", "no conflicts for user:default"),
        ("quarantine", "the quarantine is empty for user:default"),
        ("reads", "no reads are recorded"),
    ):
        assert inside(command, *store).err.startswith(told)
    assert inside("trust", *store).out.splitlines()[0].split() == ["user", "full"]
    ident = inside("list", "--json", *store).data["memories"][0]["id"]
    pinned = inside("pin", ident, *store).out
    assert ["pinned", "True"] in [line.split() for line in pinned.splitlines()]
    assert "nothing was written after commit 2" in inside("diff", "2", *store).err
