"""`--tools graph`: a handful of tools beside the nine, over real stdio."""

from __future__ import annotations

from pathlib import Path

import pytest

import worlddb

from .talking import talking

pytestmark = pytest.mark.anyio

GRAPH = {
    "memory_query",
    "memory_link",
    "memory_context",
    "memory_erase",
    "memory_export",
    "memory_pin",
    "memory_proposals",
    "memory_unpin",
    "memory_decide_merge",
    "memory_history",
    "memory_undo",
    "memory_declare",
    "memory_grants",
    "memory_grant",
    "memory_revoke",
    "memory_refuse",
}


async def test_graph_tools_come_with_the_option_alone(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with talking(path, era="legacy") as talk:
        assert len((await talk.client.list_tools()).tools) == 9
    async with talking(path, "--tools", "graph", era="2026-07-28") as talk:
        tools = {tool.name: tool for tool in (await talk.client.list_tools()).tools}
        assert len(tools) == 9 + len(GRAPH)
        assert tools.keys() >= GRAPH
        for name in GRAPH:
            assert len(tools[name].description or "") > 50
            assert tools[name].input_schema["additionalProperties"] is False
            assert "{" not in (tools[name].description or "")
        rain = await talk.call("memory_write", text="It rained all night.")
        flood = await talk.call("memory_write", text="The cellar was flooded.")
        edge = await talk.call("memory_link", type="causes", source=rain["id"], target=flood["id"])
        assert edge["type"] == "causes"
        found = await talk.call("memory_query", query=f"seeds {rain['id']} | traverse causes")
        assert [node["content"] for node in found["nodes"]] == ["The cellar was flooded."]
        assert [node["id"] for node in found["nodes"]] == [flood["id"]]
        assert [one["id"] for one in found["edges"]] == [edge["id"][:8]]
        history = await talk.call("memory_history", limit=1)
        undone = await talk.call("memory_undo", commit=history["commits"][0]["seq"])
        assert undone["unlinked"] == [edge["id"]]
        declared = await talk.call("memory_declare", type="wets", inverse="wetted_by")
        assert declared["inverse"] == "wetted_by"
        await talk.call("memory_link", type="wets", source=rain["id"], target=flood["id"])
        back = await talk.call("memory_query", query=f"seeds {flood['id']} | traverse wetted_by")
        assert [node["content"] for node in back["nodes"]] == ["It rained all night."]
        assert (await talk.call("memory_proposals"))["proposals"] == []
        await talk.call("memory_write", text="I live in Rome.", user_id="ada")
        asked = {"to": "user:bob", "right": "read", "user_id": "ada"}
        assert "confirm='ada'" in await talk.refused("memory_grant", **asked)
        given = await talk.call("memory_grant", **asked, confirm="ada")
        listed = await talk.call("memory_grants", user_id="bob")
        assert [one["id"] for one in listed["grants"]] == [given["id"]]
        assert (await talk.call("memory_revoke", id=given["id"]))["ended"]
        assert "confirm='ada'" in await talk.refused("memory_export", user_id="ada")
        export = await talk.call("memory_export", user_id="ada", confirm="ada", receipt=True)
        assert "I live in Rome." in [one["text"] for one in export["memories"]]
        assert "confirm='ada'" in await talk.refused("memory_erase", user_id="ada")
        erased = await talk.call("memory_erase", user_id="ada", confirm="ada", receipt=True)
        assert erased["cleaned"]
        assert "no such argument" in await talk.refused("memory_erase", id=rain["id"])
    with worlddb.Memory(path) as memory:
        assert memory.db.check() == []
        # What a model was handed verifies on the store, as it came over the wire.
        assert memory.verify_receipt(export["receipt"], again=False).signed
        assert memory.verify_receipt(erased)


async def test_file_tools_come_with_the_option_alone(tmp_path: Path) -> None:
    async with talking(tmp_path / "m.db", "--tools", "files", era="2026-07-28") as talk:
        tools = {tool.name for tool in (await talk.client.list_tools()).tools}
        assert len(tools) == 9 + 8
        path = "/notes/tea.md"
        made = await talk.call("memory_write_file", path=path, text="Green tea: 80 degrees")
        # Ids are as short as in other answers, and what is empty or a hash is left out.
        assert made.keys() == {"path", "version", "created", "commit"}
        assert (len(made["version"]), made["commit"]) == (8, 1)
        await talk.call("memory_edit_file", path=path, old="80", new="75", version=made["version"])
        assert (await talk.call("memory_read_file", path=path))["text"].endswith("75 degrees")
        said = await talk.refused("memory_delete_file", path=path, version=made["version"])
        assert "read it and try again" in said
        found = await talk.call("memory_grep_files", pattern="TEA", ignore_case=True)
        assert [one["line"] for one in found["matches"]] == [1]
        await talk.call("memory_delete_file", path="/notes")
        await talk.call("memory_write_file", path="/x", text="")
        assert (await talk.call("memory_read_file", path="/x"))["text"] == ""
        await talk.call("memory_delete_file", path="/x")
        assert (await talk.call("memory_list_files"))["entries"] == []


async def test_the_consolidator_runs_beside_the_tools(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with worlddb.Memory(path, embedder="none") as memory:
        for number in range(3):
            memory.write(f"Project Apollo reached milestone {number}.", at="2026-01-01T10:00:00Z")
    async with talking(path, "--consolidate-every-s", "3600", era="legacy") as talk:
        assert len((await talk.call("memory_list"))["memories"]) == 3
    with worlddb.open(path) as db:
        assert db.check() == []
