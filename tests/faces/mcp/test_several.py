"""Several servers on one file at once, as desktop clients run them: coherent, and nothing lost."""

from __future__ import annotations

import signal
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

import worlddb

from .talking import ERAS, Talk, lines, talking

pytestmark = pytest.mark.anyio

SERVERS = 3
EACH = 20


async def test_parallel_writes_of_several_servers_are_all_kept_and_all_seen(
    tmp_path: Path,
) -> None:
    path = tmp_path / "shared.db"
    async with AsyncExitStack() as stack:
        talks = [
            await stack.enter_async_context(talking(path, era=ERAS[number % len(ERAS)]))
            for number in range(SERVERS)
        ]
        ids: dict[str, str] = {}

        async def write(talk: Talk, text: str, **more: str) -> None:
            ids[text] = (await talk.call("memory_write", text=text, user_id="ada", **more))["id"]

        async with anyio.create_task_group() as tasks:
            for number, talk in enumerate(talks):
                for item in range(EACH):
                    tasks.start_soon(write, talk, f"server {number} wrote item {item}")
        assert len(ids) == len(set(ids.values())) == SERVERS * EACH

        for talk in talks:
            page = await talk.call("memory_list", user_id="ada", limit=200)
            assert {one["text"]: one["id"] for one in page["memories"]} == ids
        for number, talk in enumerate(talks):
            other = f"server {(number + 1) % SERVERS} wrote item 7"
            found = await talk.call("memory_recall", query=other, user_id="ada", k=3)
            assert found["hits"][0]["text"] == other
    with worlddb.Memory(path) as memory:
        assert memory.db.check() == []
        assert len(memory.list(user_id="ada", limit=200)) == SERVERS * EACH


async def test_one_server_finds_amends_and_misses_what_another_just_did(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    async with talking(path) as left, talking(path, era="legacy") as right:
        question = {"query": "Which colour is the boat?", "user_id": "ada"}
        assert (await right.call("memory_recall", **question))["hits"] == []
        told = await left.call("memory_write", text="The boat is blue", user_id="ada")
        [hit] = (await right.call("memory_recall", **question, explain=True))["hits"]
        assert (hit["id"], {*hit["lanes"]} >= {"text", "vector"}) == (told["id"], True)
        await right.call("memory_amend", id=told["id"], text="The boat is red")
        [hit] = (await left.call("memory_recall", **question))["hits"]
        assert hit["text"] == "The boat is red"
        await left.call("memory_purge_scope", user_id="ada", confirm="ada")
        assert (await right.call("memory_recall", **question))["hits"] == []
        assert (await right.call("memory_list_scopes"))["scopes"] == []


async def test_the_same_text_written_by_two_at_once_is_one_memory(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    async with talking(path) as left, talking(path) as right:
        told: list[tuple[str, bool]] = []

        async def write(talk: Talk, number: int) -> None:
            text = f"The same thing, number {number}"
            done = await talk.call("memory_write", text=text, user_id="ada", idempotency_key=text)
            told.append((done["id"], done["created"]))

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(write, left, number)
                tasks.start_soon(write, right, number)
        assert len({ident for ident, _ in told}) == 10
        assert sum(created for _, created in told) == 10
        assert len((await left.call("memory_list", user_id="ada"))["memories"]) == 10


async def test_a_server_that_is_killed_takes_nothing_with_it(tmp_path: Path) -> None:
    path = tmp_path / "shared.db"
    async with talking(path) as talk:
        with lines(path) as doomed:
            doomed.greet()
            arguments = {"text": "said before the kill", "user_id": "ada"}
            told = doomed.ask(1, "tools/call", name="memory_write", arguments=arguments)
            assert told["result"]["isError"] is False
            doomed.process.send_signal(signal.SIGKILL)
            doomed.process.wait()
        await talk.call("memory_write", text="said after it", user_id="ada")
        page = await talk.call("memory_list", user_id="ada")
        assert [one["text"] for one in page["memories"]] == [
            "said after it",
            "said before the kill",
        ]
