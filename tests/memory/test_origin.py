"""Origins: what is less trusted is recalled and marked, and ends nothing that is more trusted."""

from __future__ import annotations

from typing import Any

import pytest

import worlddb
from worlddb import Memory
from worlddb.errors import InvalidInputError, RejectedError
from worlddb.ontology.edge_types import LESS_TRUSTED


def hits(memory: Memory, question: str = "Where do I live?") -> list[str]:
    return [hit.node.content for hit in memory.recall(question)]


def test_what_has_no_origin_is_the_users(memory: Memory) -> None:
    done = memory.write("I live in Oslo.")
    assert memory.read(done.id).origin == "user"
    assert memory.read(memory.write("I like tea.", origin="user").id).origin == "user"
    assert memory.db.get(done.id).origins == ()


def test_an_origin_is_kept_and_told(memory: Memory) -> None:
    done = memory.write("The shop opens at nine.", origin="web")
    assert (memory.read(done.id).origin, memory.read(done.id).trust) == ("web", "low")
    (hit,) = memory.recall("When does the shop open?").hits[:1]
    assert hit.node.origin == "web"
    assert "(from web)" in hit.text
    with pytest.raises(InvalidInputError, match="use one of user"):
        memory.write("Hello there.", origin="pope")  # type: ignore[arg-type]


def test_the_less_trusted_ends_nothing(memory: Memory) -> None:
    own = memory.write("I live in Berlin.")
    done = memory.write("I live in Paris.", origin="web")
    assert done.superseded == ()
    assert any(LESS_TRUSTED in one for one in done.left_out)
    assert not memory.read(own.id).retired
    (conflict,) = memory.conflicts()
    assert {conflict.left, conflict.right} == {own.id, done.id}
    assert hits(memory)[0] == "I live in Berlin."
    newer = memory.write("I live in Rome.")
    assert set(newer.superseded) == {own.id, done.id}
    assert hits(memory)[:1] == ["I live in Rome."]


def test_equals_end_each_other_as_ever(memory: Memory) -> None:
    first = memory.write("I live in Berlin.", origin="web")
    assert memory.write("I live in Paris.", origin="web").superseded == (first.id,)
    old = memory.write("I work at Acme.")
    assert memory.write("I work at Initech.", origin="assistant").superseded == (old.id,)


def test_a_trusted_voice_takes_over_what_it_confirms(memory: Memory) -> None:
    heard = memory.write("The code of the gate is 4711.", origin="web")
    assert memory.write("The code of the gate is 4711.", origin="assistant").id == heard.id
    own = memory.write("The code of the gate is 4711.")
    assert own.id != heard.id
    assert memory.read(heard.id).superseded_by == (own.id,)
    again = memory.write("The code of the gate is 4711.", origin="web", pin=True, tags=["gate"])
    assert again.id == own.id
    assert memory.read(own.id).metadata == {}


@pytest.mark.parametrize(
    "deed",
    [
        lambda web, it: web.retire(it),
        lambda web, it: web.erase(it),
        lambda web, it: web.pin(it),
        lambda web, it: web.retire_all(user_id="default"),
        lambda web, it: web.purge_scope(confirm=True, user_id="default"),
        lambda web, it: web.undo(1),
    ],
)
def test_a_less_trusted_caller_changes_nothing_of_the_users(memory: Memory, deed: Any) -> None:
    own = memory.write("I live in Berlin.")
    web = memory.signed(origin="web")
    with pytest.raises(RejectedError, match="trusted"):
        deed(web, own.id)
    assert hits(memory) == ["I live in Berlin."]
    heard = web.write("The weather is fine.")
    assert memory.read(heard.id).origin == "web"
    assert web.retire(heard.id).ids == (heard.id,)


def test_an_amendment_is_trusted_no_more_than_what_it_amends(memory: Memory) -> None:
    heard = memory.write("The gate opens at nine.", origin="web")
    assert memory.read(memory.amend(heard.id, "The gate opens at ten.").id).origin == "web"
    own = memory.write("I live in Berlin.", pin=True)
    done = memory.amend(own.id, "I live in Paris.", origin="tool")
    assert not memory.read(own.id).retired
    assert memory.read(done.id).origin == "tool"
    assert "amend" in done.left_out[0]


def test_a_caller_may_lower_and_never_raise(memory: Memory) -> None:
    tool = memory.signed(origin="tool")
    assert memory.read(tool.write("Rain is coming.", origin="web").id).origin == "web"
    assert memory.read(tool.signed(origin="user").write("Snow is coming.").id).origin == "tool"
    bound = tool.bound(user_id="ada", origin="assistant")
    assert memory.read(bound.write("Hail is coming.").id).origin == "tool"
    with pytest.raises(RejectedError, match="more trusted than 'tool'"):
        tool.write("I am the user.", origin="user")


def test_supersedes_between_two_of_the_users_by_a_less_trusted_caller(memory: Memory) -> None:
    one, two = memory.write("The cat is grey."), memory.write("The dog is brown.")
    edge = memory.signed(origin="web").link("supersedes", one.id, two.id)
    assert edge.known_to is not None
    assert not memory.read(two.id).retired
    (conflict,) = memory.conflicts()
    assert conflict.reason == LESS_TRUSTED


def test_messages_of_a_chat_have_the_origins_of_their_roles(memory: Memory) -> None:
    done = memory.write(
        messages=[
            {"role": "user", "content": "Where is the parcel of Ann Lee?"},
            {"role": "tool", "content": "The parcel of Ann Lee lies in Hamburg at the port."},
            {"role": "assistant", "content": "The parcel of Ann Lee lies in Hamburg."},
            {"role": "assistant", "content": "Shall I remind you?"},
            {"role": "user", "content": "I live in Oslo.", "origin": "web"},
        ]
    )
    turns = memory.db.children(done.id)
    assert [turn.origin for turn in turns] == ["user", "tool", "tool", "assistant", "web"]


def test_a_chat_where_the_user_corrects_a_tool(memory: Memory) -> None:
    own = memory.write("I live in Berlin.")
    memory.write(
        messages=[
            {"role": "user", "content": "I live in Rome."},
            {"role": "tool", "content": "I live in Paris."},
        ]
    )
    assert memory.read(own.id).retired
    assert "I live in Rome." in [hit.node.content for hit in memory.recall("Where do I live?")]


def test_aliases_and_names_are_not_redefined(memory: Memory) -> None:
    memory.write("Sarah Chen likes tea.", names=["Sarah Chen"])
    memory.write("Sarah Chen is fine.", names=["Sarah Chen"], aliases=["Boss"], origin="web")
    (entity,) = [
        node for node in memory.query("text Sarah | limit 20").nodes if node.type == "Entity"
    ]
    assert entity.aliases == ()


def test_origins_survive_export_and_undo(memory: Memory, tmp_path: Any) -> None:
    done = memory.write("The shop opens at nine.", origin="web")
    path = tmp_path / "copy.jsonl"
    with path.open("wb") as out:
        for line in memory.db.export():
            out.write(line.encode() + b"\n" if isinstance(line, str) else line)
    assert memory.db.check() == []
    newer = memory.amend(done.id, "The shop opens at ten.")
    assert newer.commit is not None
    back = memory.undo(newer.commit.seq)
    assert memory.db.get(back.restored[0].new).origin == "web"  # type: ignore[arg-type]


def test_derived_nodes_are_trusted_no_more_than_their_details() -> None:
    db = worlddb.open(":memory:")
    with db.transaction() as tx:
        web = tx.create_node(type="Memory", content="Pay here.", origin="web")
        own = tx.create_node(type="Memory", content="Pay there.")
        made = tx.create_node(type="Summary", content="Pay.")
        tx.write_edge("derived_from", made.id, web.id)
        tx.write_edge("derived_from", made.id, own.id)
    assert db.get(made.id).origin == "web"
    with db.transaction() as tx:
        refused = tx.write_edge("supersedes", made.id, own.id)
    assert refused.known_to is not None
    assert db.get(own.id).valid_to is None
    db.close()


def test_inferred_edges_have_the_least_origin_of_their_premises() -> None:
    db = worlddb.open(":memory:")
    with db.transaction() as tx:
        one, two, three = (tx.create_node(type="Event", name=name).id for name in "abc")
        tx.write_edge("causes", one, two)
    with db.transaction(origin="web") as tx:
        tx.write_edge("causes", two, three)
    db.consolidate(only="closure")
    (inferred,) = [edge for edge in db.edges(one) if edge.target == three]
    assert inferred.metadata["origin"] == "web"
    db.close()


def test_a_declared_time_line_is_not_ended_by_the_less_trusted() -> None:
    db = worlddb.open(":memory:")
    db.ontology().declare("reports_to", functional=True, newer_ends_older=True)
    with db.transaction() as tx:
        one, two, three = (tx.create_node(type="Entity", name=name).id for name in "abc")
        edge = tx.write_edge("reports_to", one, two)
    with db.transaction(origin="web") as tx:
        tx.write_edge("reports_to", one, three)
    assert [each.valid_to for each in db.edges(one) if each.id == edge.id] == [None]
    with db.transaction() as tx:
        tx.write_edge("reports_to", one, three, metadata={"said": "by me"})
    assert [each.valid_to for each in db.edges(one) if each.id == edge.id] != [None]
    db.close()
