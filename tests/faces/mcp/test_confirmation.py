"""Ending whole scopes: a person is asked where the client can, else the model names it again."""

from __future__ import annotations

import pytest
from mcp.types import ElicitResult

from .talking import Talk

pytestmark = pytest.mark.anyio

YES = ElicitResult(action="accept", content={"agree": True})
ENDING = ("memory_retire_all", "memory_purge_scope")


async def left(talk: Talk, user: str) -> int:
    return len((await talk.call("memory_list", user_id=user))["memories"])


@pytest.mark.parametrize("tool", ENDING)
async def test_a_person_who_agrees_is_asked_once_and_it_ends(
    talk: Talk, user: str, tool: str
) -> None:
    await talk.call("memory_write", text="one", user_id=user)
    talk.person.questions.clear()
    talk.person.answer = YES
    told = await talk.call(tool, user_id=user)
    [question] = talk.person.questions
    assert repr(user) in question.message
    assert list(question.requested_schema["properties"]) == ["agree"]
    assert told["count"] == 1
    assert told.get("scopes") == ([f"user:{user}"] if tool == "memory_purge_scope" else None)
    assert await left(talk, user) == 0


@pytest.mark.parametrize(
    "answer",
    [
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
        ElicitResult(action="accept", content={"agree": False}),
    ],
    ids=["declined", "cancelled", "not ticked"],
)
@pytest.mark.parametrize("tool", ENDING)
async def test_a_person_who_does_not_agree_is_obeyed(
    talk: Talk, user: str, tool: str, answer: ElicitResult
) -> None:
    await talk.call("memory_write", text="one", user_id=user)
    talk.person.answer = answer
    assert "did not agree; nothing was done" in await talk.refused(tool, user_id=user)
    assert await left(talk, user) == 1


@pytest.mark.parametrize("tool", ENDING)
async def test_a_client_that_cannot_ask_has_to_name_the_scope_again(
    mute: Talk, user: str, tool: str
) -> None:
    await mute.call("memory_write", text="one", user_id=user)
    assert f"confirm={user!r}" in await mute.refused(tool, user_id=user)
    assert f"confirm={user!r}" in await mute.refused(tool, user_id=user, confirm="another")
    assert f"confirm={user!r}" in await mute.refused(tool, user_id=user, confirm="")
    assert await left(mute, user) == 1
    assert (await mute.call(tool, user_id=user, confirm=user))["count"] == 1
    assert await left(mute, user) == 0


@pytest.mark.parametrize("confirm", ["named", True])
@pytest.mark.parametrize("tool", ENDING)
async def test_no_confirm_overrides_a_person_who_can_be_asked(
    talk: Talk, user: str, tool: str, confirm: str | bool
) -> None:
    await talk.call("memory_write", text="one", user_id=user)
    given = user if confirm == "named" else confirm
    talk.person.questions.clear()
    talk.person.answer = ElicitResult(action="decline")
    assert "did not agree" in await talk.refused(tool, user_id=user, confirm=given)
    assert len(talk.person.questions) == 1
    assert await left(talk, user) == 1
    talk.person.answer = YES
    assert "confirm=" in await talk.refused(tool, user_id=user, confirm="another")
    assert await left(talk, user) == 1
    assert (await talk.call(tool, user_id=user, confirm=given))["count"] == 1


@pytest.mark.parametrize("tool", ENDING)
async def test_true_confirms_where_nobody_can_be_asked_and_asks_where_somebody_can(
    mute: Talk, talk: Talk, user: str, tool: str
) -> None:
    await mute.call("memory_write", text="one", user_id=user)
    assert f"confirm={user!r}" in await mute.refused(tool, user_id=user, confirm=False)
    assert await left(mute, user) == 1
    assert (await mute.call(tool, user_id=user, confirm=True))["count"] == 1
    await talk.call("memory_write", text="two", user_id=user)
    talk.person.questions.clear()
    talk.person.answer = ElicitResult(action="decline")
    assert "did not agree" in await talk.refused(tool, user_id=user, confirm=True)
    assert len(talk.person.questions) == 1
    assert await left(talk, user) == 1


async def test_without_a_scope_nobody_is_asked_and_nothing_ends(talk: Talk, user: str) -> None:
    talk.person.questions.clear()
    talk.person.answer = YES
    assert "name the scope" in await talk.refused("memory_retire_all")
    assert "name one scope" in await talk.refused("memory_purge_scope")
    both = {"user_id": user, "agent_id": "helper"}
    assert "name one scope" in await talk.refused("memory_purge_scope", **both)
    assert talk.person.questions == []


async def test_retiring_all_of_two_scopes_ends_what_is_in_both(talk: Talk, user: str) -> None:
    await talk.call("memory_write", text="in both", user_id=user, run_id=user)
    await talk.call("memory_write", text="in one", user_id=user)
    talk.person.answer = YES
    assert (await talk.call("memory_retire_all", user_id=user, run_id=user))["count"] == 1
    [kept] = (await talk.call("memory_list", user_id=user))["memories"]
    assert kept["text"] == "in one"
    assert " and " in talk.person.questions[-1].message


async def test_a_purged_scope_can_be_written_to_again_and_begins_empty(
    talk: Talk, user: str
) -> None:
    await talk.call("memory_write", text="before", user_id=user)
    talk.person.answer = YES
    await talk.call("memory_purge_scope", user_id=user, confirm=user)
    await talk.call("memory_write", text="after", user_id=user)
    [only] = (await talk.call("memory_list", user_id=user))["memories"]
    assert only["text"] == "after"
