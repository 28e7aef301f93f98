"""What a client is shown before it calls anything: names, schemas, annotations."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import tokenizers
from jsonschema import (  # type: ignore[import-untyped]
    Draft202012Validator,
    FormatChecker,
)
from mcp import Client
from mcp.types import Tool

import worlddb
from worlddb.embed.embedder import TOKENIZER, model_folder
from worlddb.faces.mcp.mcp_server import make_server

pytestmark = pytest.mark.anyio

READS = {"memory_recall", "memory_list", "memory_read", "memory_list_scopes", "search", "fetch"}
ENDS = {"memory_retire", "memory_retire_all", "memory_purge_scope"}
ADDS = {"memory_write", "memory_amend"}
SCOPED = {"user_id", "agent_id", "app_id", "run_id"}
TOLD_BY_NAME = SCOPED | {"k", "limit", "kind", "idempotency_key", "tags", "source"}


@pytest.fixture
async def tools() -> dict[str, Tool]:
    with worlddb.Memory(":memory:") as memory:
        server = make_server(lambda: memory, search_fetch=True)
        return {tool.name: tool for tool in await server.list_tools()}


async def test_the_nine_tools_have_the_names_of_the_paper(tools: dict[str, Tool]) -> None:
    assert set(tools) == READS | ENDS | ADDS


async def test_every_tool_says_by_all_four_hints_what_it_may_do(tools: dict[str, Tool]) -> None:
    for name, tool in tools.items():
        hints = tool.annotations
        assert hints is not None
        assert hints.read_only_hint is (name in READS)
        assert hints.destructive_hint is (name in ENDS)
        assert hints.idempotent_hint is (name != "memory_amend")
        assert hints.open_world_hint is False
        assert tool.title


async def test_every_argument_is_described_and_no_other_is_taken(tools: dict[str, Tool]) -> None:
    for tool in tools.values():
        assert tool.input_schema["additionalProperties"] is False
        for name, schema in tool.input_schema["properties"].items():
            # A model pays for each word, so what a name tells by itself has none.
            assert len(schema.get("description", "")) > 10 or name in TOLD_BY_NAME, name
        assert "asked" not in tool.input_schema["properties"]
        assert len(tool.description or "") > 50


async def test_arguments_are_named_as_in_python(tools: dict[str, Tool]) -> None:
    wanted = {
        "memory_write": SCOPED
        | {"text", "messages", "at", "source", "metadata", "idempotency_key", "names", "aliases"}
        | {"tags", "pin", "ttl", "expires_at", "document", "origin"},
        "memory_recall": SCOPED
        | {"query", "names", "k", "max_tokens", "as_of", "known_at", "include_retired"}
        | {"where", "explain", "min_confidence"},
        "memory_list": SCOPED
        | {"limit", "cursor", "include_retired", "as_of", "known_at", "where"},
        "memory_read": SCOPED | {"id", "as_of", "known_at"},
        "memory_amend": SCOPED
        | {"id", "text", "at", "source", "metadata", "tags", "ttl", "expires_at"},
        "memory_retire": SCOPED | {"id", "at"},
        "memory_retire_all": SCOPED | {"confirm", "at", "where"},
        "memory_purge_scope": SCOPED | {"confirm"},
        "memory_list_scopes": {"kind", "limit", "cursor", "include_retired"},
        "search": {"query"},
        "fetch": {"id"},
    }
    assert {name: set(tool.input_schema["properties"]) for name, tool in tools.items()} == wanted
    required = {name: set(tool.input_schema.get("required", ())) for name, tool in tools.items()}
    assert {name: names for name, names in required.items() if names} == {
        "memory_read": {"id"},
        "memory_amend": {"id", "text"},
        "memory_retire": {"id"},
        "search": {"query"},
        "fetch": {"id"},
    }


async def test_the_default_tools_cost_a_model_at_most_1_900_tokens(tools: dict[str, Tool]) -> None:
    folder = model_folder()
    assert folder is not None
    # The vocabulary of Llama 2 is small: the models of today count fewer.
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / TOKENIZER))
    read = [
        {"name": name, "description": tool.description, "inputSchema": tool.input_schema}
        for name, tool in tools.items()
        if name not in ("search", "fetch")
    ]
    sent = json.dumps(read, ensure_ascii=False, separators=(",", ":"))
    assert len(tokenizer.encode(sent).ids) <= 1_900


async def test_a_limit_that_no_schema_tells_is_told_by_the_error() -> None:
    from mcp import Client

    with worlddb.Memory(":memory:") as memory:
        async with Client(make_server(lambda: memory)) as client:
            result = await client.call_tool("memory_recall", {"query": "a", "k": 5_000})
    assert result.is_error
    assert "k: input should be less than or equal to 1000, not 5000" in str(result)


async def test_every_answer_has_a_schema_of_an_object(tools: dict[str, Tool]) -> None:
    for tool in tools.values():
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"


async def test_every_answer_is_as_its_schema_says_formats_included() -> None:
    shape = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
    formats = FormatChecker(())
    formats.checks("date-time")(lambda value: bool(shape.fullmatch(str(value))))
    with worlddb.Memory(":memory:") as memory:
        done = memory.write("The gate opens at nine.", at="2026-03-01", ttl="900d")
        calls: dict[str, dict[str, Any]] = {
            "memory_recall": {"query": "gate", "explain": True},
            "memory_list": {},
            "memory_read": {"id": str(done.id)},
            "memory_list_scopes": {},
            "memory_query": {"query": "text gate"},
            "memory_history": {},
        }
        async with Client(make_server(lambda: memory, tools="all")) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            for name, arguments in calls.items():
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result
                schema = tools[name].output_schema
                Draft202012Validator(schema, format_checker=formats).validate(
                    result.structured_content
                )


async def test_descriptions_name_only_tools_that_are_there(tools: dict[str, Tool]) -> None:
    for tool in tools.values():
        named = set(re.findall(r"\bmemory_[a-z_]+\b", str(tool.description)))
        assert named <= set(tools)


async def test_a_bug_is_masked_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    from mcp import Client

    def memory_for() -> worlddb.Memory:
        raise RuntimeError("the password is hunter2")

    async with Client(make_server(memory_for)) as client:
        result = await client.call_tool("memory_recall", {"query": "a"})
        assert result.is_error
        assert "hunter2" not in str(result)
    assert "hunter2" in caplog.text


async def test_no_schema_spends_words_on_repeating_names(tools: dict[str, Tool]) -> None:
    for tool in tools.values():
        for schema in (tool.input_schema, tool.output_schema):
            assert '"title": "' not in json.dumps(schema), tool.name
    found = (tools["search"].output_schema or {})["$defs"].values()
    assert any("title" in one["properties"] for one in found)
