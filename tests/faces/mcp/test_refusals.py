"""Bad calls: refused with what to do instead, and the server goes on."""

from __future__ import annotations

from typing import Any

import pytest

from .talking import Talk

pytestmark = pytest.mark.anyio

BAD: list[tuple[str, dict[str, Any], str]] = [
    ("memory_recall", {}, "query: give a question of at least one word, or names"),
    ("memory_recall", {"query": "a", "top": 3}, "top: there is no such argument; known are query"),
    ("memory_recall", {"query": ["a"]}, "query: input should be a valid string"),
    ("memory_recall", {"query": ""}, "at least one word"),
    ("memory_recall", {"query": "word " * 50_000}, "the limit is"),
    ("memory_recall", {"query": "a", "k": "many"}, "k: input should be a valid integer"),
    ("memory_recall", {"query": "a", "k": 0}, "greater than or equal to 1"),
    ("memory_recall", {"query": "a", "k": 10**30}, "less than or equal to 1000"),
    ("memory_recall", {"query": "a", "include_retired": "maybe"}, "valid boolean"),
    ("memory_recall", {"query": "a", "as_of": "yesterday"}, "as_of: 'yesterday' is not ISO-8601"),
    ("memory_recall", {"query": "a", "known_at": "2026-01-01T00:00:00"}, "has no time zone"),
    ("memory_write", {}, "give either text or messages"),
    ("memory_write", {"text": "a", "messages": []}, "give either text or messages"),
    ("memory_write", {"messages": []}, "no text to remember"),
    ("memory_write", {"text": "  \n "}, "no text to remember"),
    ("memory_write", {"messages": [{"role": "user"}]}, "no text to remember"),
    ("memory_write", {"text": 5}, "text: input should be a valid string, not 5"),
    ("memory_write", {"text": "a\0b"}, "NUL"),
    ("memory_write", {"text": "a", "metadata": "no object"}, "metadata: input should be a valid"),
    ("memory_write", {"text": "a", "at": "soon"}, "at: 'soon' is not ISO-8601"),
    ("memory_write", {"text": "a", "user_id": ["b"]}, "user_id: input should be a valid string"),
    ("memory_list", {"limit": 0}, "limit: input should be greater"),
    ("memory_list", {"cursor": "../../etc/passwd"}, "next_cursor"),
    ("memory_list_scopes", {"kind": "planet"}, "kind: input should be 'user', 'agent'"),
    ("memory_read", {"id": "../../etc/passwd"}, "is not an id"),
    ("memory_amend", {"id": "ffff", "text": "a"}, "no memory"),
    ("memory_amend", {"id": "ffff", "text": ""}, "no text to remember"),
    ("memory_retire", {"id": "ffff"}, "no memory"),
]


@pytest.mark.parametrize(("tool", "arguments", "told"), BAD)
async def test_a_bad_call_says_what_to_change(
    talk: Talk, tool: str, arguments: dict[str, Any], told: str
) -> None:
    said = await talk.refused(tool, **arguments)
    assert told in said
    assert len(said) < 500
    assert "Traceback" not in said
    assert "pydantic" not in said


@pytest.mark.parametrize(
    "name",
    ["", " ", "a\nb", "\ttab", "trailing ", "x" * 600, "\u202eright to left", "nul\0"],
    ids=["empty", "blank", "newline", "tab", "trailing", "long", "override", "nul"],
)
async def test_a_scope_that_cannot_be_told_apart_by_eye_is_refused(talk: Talk, name: str) -> None:
    for kind in ("user_id", "agent_id", "app_id", "run_id"):
        said = await talk.refused("memory_write", text="a", **{kind: name})
        assert kind in said


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "'; DROP TABLE nodes; --", "user:ada", "*", "%", "null", "[1]", "😀", "é"],
)
async def test_an_odd_name_is_a_scope_like_any_other(talk: Talk, name: str) -> None:
    told = await talk.call("memory_write", text=f"for {name}", user_id=name)
    assert told["scopes"] == [f"user:{name}"]
    [only] = (await talk.call("memory_list", user_id=name))["memories"]
    assert only["text"] == f"for {name}"


async def test_an_unknown_tool_is_refused(talk: Talk) -> None:
    assert "memory_wipe" in await talk.refused("memory_wipe", user_id="a")


async def test_ten_megabytes_are_refused_and_the_server_goes_on(talk: Talk, user: str) -> None:
    said = await talk.refused("memory_write", text="x" * 10_000_000, user_id=user)
    assert "text: string should have at most 1048576 characters" in said
    assert len(said) < 500
    assert (await talk.call("memory_write", text="still here", user_id=user))["created"]
