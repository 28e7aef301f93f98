"""The declared calls: what they say is what Memory takes, and what every face offers."""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest

import worlddb
from worlddb.faces.call_models import NUMBER_MAX, arguments_model, result_class
from worlddb.faces.call_parts import Call, ParameterType
from worlddb.faces.calls import CALLS, call_named
from worlddb.faces.cli.command_line import command_names, make_parser
from worlddb.faces.cli.command_options import destination
from worlddb.faces.http.rest_routes import request_model
from worlddb.faces.mcp.mcp_server import make_server
from worlddb.faces.mcp.memory_tools import ToolArguments

from .command import DEADLINE_S, environment

SCOPES = {"user_id", "agent_id", "app_id", "run_id"}
ONLY_PYTHON = {"self", "scope", "settings"}


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_call_is_a_method_of_memory_with_the_same_parameters(call: Call) -> None:
    method = inspect.signature(getattr(worlddb.Memory, call.name))
    declared = {one.name for one in call.parameters}
    assert set(method.parameters) - ONLY_PYTHON == declared - SCOPES
    assert ("scope" in method.parameters) == (declared >= SCOPES) == call.takes_scopes
    assert result_class(call).__name__ == call.result
    for one in call.parameters:
        assert one.type in get_args(ParameterType)
        if one.name in method.parameters:
            held = method.parameters[one.name]
            assert one.required == (held.default is inspect.Parameter.empty), one.name
            assert one.required or one.default == held.default, one.name
            assert one.positional == (held.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)


def limits_of(schema: dict[str, Any]) -> dict[str, int]:
    """Return the limits in a schema, of all its alternatives together."""
    found = {}
    for part in [schema, *schema.get("anyOf", [])]:
        for name in ("minimum", "maximum", "maxLength", "maxItems"):
            if name in part and part[name] != NUMBER_MAX:  # Without a limit of its own.
                found[name] = part[name]
    return found


@pytest.mark.anyio
async def test_rest_and_tools_have_the_same_limits() -> None:
    with worlddb.Memory(":memory:") as memory:
        server = make_server(lambda: memory, tools="all")
        tools = {tool.name: tool for tool in await server.list_tools()}
    for call in CALLS:
        rest = request_model(call).model_json_schema()["properties"]
        for one in call.parameters:
            # A program may give several values where a model gives one.
            many = ("scope", "texts", "input", "numbers")
            if call.tool and one.in_tool and one.name in rest and one.type not in many:
                tool = tools[call.tool].input_schema["properties"][one.name]
                # Of the limits that hold, a model is told those of numbers: each word costs.
                held = arguments_model("Held", [one], base=ToolArguments, for_model=True)
                found = limits_of(held.model_json_schema()["properties"][one.name])
                assert found == limits_of(rest[one.name]), (call.name, one.name)
                if one.type in ("whole", "text", "messages"):
                    most = {"whole": "maximum", "text": "maxLength", "messages": "maxItems"}
                    assert found.get(most[one.type]) == one.most, (call.name, one.name)
                assert rest[one.name]["description"] == one.help
                assert tool.get("description", "") == (one.tool_help or one.help).strip()


def test_commands_have_the_same_limits_and_all_parameters() -> None:
    parsers: dict[str, Any] = {}
    for action in make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers = dict(action.choices)
    for name in ("write", "recall", "list", "read", "amend"):
        call = call_named(name)
        actions = {action.dest: action for action in parsers[call.command]._actions}
        for one in call.parameters:
            if not one.in_command:
                continue
            action = actions[destination(one)]
            if one.type == "whole":
                assert action.default == one.default
                for number in {one.least, one.most} - {None}:
                    assert action.type(str(number)) == number
                for number in ([one.least - 1] if one.least else []) + (
                    [one.most + 1] if one.most else []
                ):
                    with pytest.raises(argparse.ArgumentTypeError, match="whole number"):
                        action.type(str(number))


def test_every_call_is_offered_by_every_face() -> None:
    for call in CALLS:
        assert call.path.startswith("/v1/")
        assert call.tool in ("", "memory_history", f"memory_{call.name}")
        assert call.command in command_names()
    routes = [(call.method, call.path) for call in CALLS]
    assert len(set(routes)) == len(CALLS)


NEW_CALL = """
import asyncio, sys
import worlddb
from worlddb.faces import calls

ERASE = calls.Call(
    name="erase", title="Erase a memory", summary="Erase a memory for good",
    help="Erase a memory. To end it, use {retire}.",
    parameters=(calls.ID, *calls.SCOPES), result="Receipt", effect="end",
    path="/v1/memories/{id}/erase", tool="memory_erase", command="wipe",
)
calls.CALLS = (*(call for call in calls.CALLS if call.name != "erase"), ERASE)

from worlddb.faces.cli import run
from worlddb.faces.http.rest_routes import openapi
from worlddb.faces.http.rest_routes import rest_routes
from worlddb.faces.http.request_limits import Threads
from worlddb.faces.mcp.mcp_server import make_server
from worlddb.faces.mcp.memory_tools import ToolArguments
from mcp import Client

with worlddb.Memory(sys.argv[1]) as memory:
    one, two = (str(memory.write(text).id) for text in ("The first secret", "The second secret"))

assert run(["wipe", one, "--db", sys.argv[1]]) == 0

async def main():
    with worlddb.Memory(sys.argv[1]) as memory:
        async with Client(make_server(lambda: memory)) as client:
            done = await client.call_tool("memory_erase", {"id": two})
            assert not done.is_error, done.content
            assert two in done.structured_content["ids"], done.structured_content
            [tool] = [t for t in (await client.list_tools()).tools if t.name == "memory_erase"]
            assert tool.description == "Erase a memory. To end it, use memory_retire."
            assert tool.annotations.destructive_hint

asyncio.run(main())
described = openapi(with_tokens=False)["paths"]["/v1/memories/{id}/erase"]["post"]
assert described["operationId"] == "erase"
assert "/v1/memories/{id}/erase" in [route.path for route in rest_routes(Threads())]
"""


def test_a_new_call_is_one_entry(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", NEW_CALL, str(tmp_path / "new.db")],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"cleaned": true' in done.stdout


@pytest.mark.parametrize("package", ["mcp", "pydantic", "starlette", "uvicorn"])
@pytest.mark.parametrize("command", ["mcp", "serve"])
def test_a_missing_extra_is_named_with_its_remedy(
    command: str, package: str, tmp_path: Path
) -> None:
    program = (
        f"import sys; sys.modules[{package!r}] = None; "
        f"from worlddb.faces.cli import run; sys.exit(run([{command!r}, '--db', sys.argv[1]]))"
    )
    store = tmp_path / "new.db"
    done = subprocess.run(
        [sys.executable, "-c", program, str(store)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(),
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        f'worlddb: {command}: needs {package} (not installed); run: pip install "worlddb[server]"\n'
    )
    assert not store.exists()
