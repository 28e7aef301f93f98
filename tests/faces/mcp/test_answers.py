"""What answers carry beyond the usual: conflicts, merges to decide on, and long lists cut short."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from mcp import Client

import worlddb
from worlddb.faces.mcp.mcp_server import make_server
from worlddb.faces.mcp.tool_answers import IDS_SHOWN

from .talking import Talk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def both() -> AsyncIterator[tuple[worlddb.Memory, Talk]]:
    """A memory, and a client of a server in this process that has it."""
    with worlddb.Memory(":memory:") as memory:
        async with Client(make_server(lambda: memory)) as client:
            yield memory, Talk(client, None)


async def test_a_hit_names_the_memories_that_contradict_it(
    both: tuple[worlddb.Memory, Talk],
) -> None:
    memory, talk = both
    blue, red = (memory.write(f"The boat is {colour}").id for colour in ("blue", "red"))
    with memory.db.transaction(actor="test") as tx:
        tx.write_edge("contradicts", blue, red)
    hits = (await talk.call("memory_recall", query="Which colour is the boat?"))["hits"]
    against = {hit["id"]: [one["id"] for one in hit["conflicts"]] for hit in hits}
    assert against == {str(blue): [str(red)], str(red): [str(blue)]}


async def test_a_write_tells_which_names_may_be_one(both: tuple[worlddb.Memory, Talk]) -> None:
    memory, talk = both
    first = memory.write("I met Katherine Johnson at the station")
    told = await talk.call("memory_write", text="I wrote to Katharine Johnson yesterday")
    ids = {str(one.id) for one in first.entities} | {one["id"] for one in told["entities"]}
    [proposed] = told["proposals"]
    assert {proposed["left"], proposed["right"]} <= ids
    assert 0 < proposed["score"] <= 1


async def test_of_many_that_end_only_the_first_are_named(
    both: tuple[worlddb.Memory, Talk],
) -> None:
    memory, talk = both
    for number in range(IDS_SHOWN + 5):
        memory.write(f"note {number}", user_id="ada")
    told = await talk.call("memory_retire_all", user_id="ada", confirm="ada")
    assert (told["count"], len(told["ids"])) == (IDS_SHOWN + 5, IDS_SHOWN)


async def test_a_memory_that_is_bound_answers_for_its_own_scope_alone() -> None:
    with worlddb.Memory(":memory:") as memory:
        memory.write("hers", user_id="ada")
        async with Client(make_server(lambda: memory.bound(user_id="bob"))) as client:
            talk = Talk(client, None)
            assert (await talk.call("memory_list"))["memories"] == []
            assert "not yours" in await talk.refused("memory_list", user_id="ada")
            assert (await talk.page("worlddb://scopes"))["scopes"] == []
