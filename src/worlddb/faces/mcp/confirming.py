"""Confirming: a person is asked before a whole scope ends, where the client can ask one.

Otherwise the model has to name the scope once more, or say `true`, which asks the person all the
same where there is one. All of it guards against accidents; who may do it at all is decided
elsewhere.
"""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import (
    AcceptedElicitation,
    Context,
    Elicit,
    ElicitationResult,
)
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

RETIRE_ALL = "End every memory in {scope}? They can still be read, but never come back."
PURGE = "End {scope} and every memory in it? They can still be read, but never come back."


class Agreement(BaseModel):
    """What the person is asked for."""

    agree: bool = Field(description="Yes, end them")


class Unasked(BaseModel):
    """Nobody was asked: the call said enough itself, or too little, or the client cannot ask."""


Asked = ElicitationResult[Agreement | Unasked]


def ask_to_retire_all(
    ctx: Context[Any, Any],
    confirm: str | bool | None,
    user_id: str | None,
    agent_id: str | None,
    app_id: str | None,
    run_id: str | None,
) -> Unasked | Elicit[Agreement]:
    """Ask whether all memories of the scopes are to end."""
    scopes = _named(user=user_id, agent=agent_id, app=app_id, run=run_id)
    if _is_named(confirm) or not scopes or not can_ask(ctx):
        return Unasked()
    return Elicit(RETIRE_ALL.format(scope=" and ".join(scopes)), Agreement)


def ask_to_purge(
    ctx: Context[Any, Any],
    confirm: str | bool | None,
    user_id: str | None,
    agent_id: str | None,
    app_id: str | None,
    run_id: str | None,
) -> Unasked | Elicit[Agreement]:
    """Ask whether the scope is to end."""
    scopes = _named(user=user_id, agent=agent_id, app=app_id, run=run_id)
    if _is_named(confirm) or len(scopes) != 1 or not can_ask(ctx):
        return Unasked()
    return Elicit(PURGE.format(scope=scopes[0]), Agreement)


def can_ask(ctx: Context[Any, Any]) -> bool:
    """Return whether the client can ask its user by a form."""
    capabilities = ctx.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    # An empty capability is how clients said it before there were kinds of asking.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def confirmation(asked: Any, confirm: str | bool | None) -> str | bool:
    """Return what the memory is to be told: that it was agreed, or what the model said.

    Raises:
        ToolError: the person did not agree.
    """
    if isinstance(asked, AcceptedElicitation):
        if isinstance(asked.data, Unasked):
            return "" if confirm is None else confirm
        if asked.data.agree:
            return True
    raise ToolError("the user did not agree; nothing was ended. Do not try again unasked")


def _is_named(confirm: str | bool | None) -> bool:
    """Return whether the call says itself what it ends, rightly or not."""
    return confirm is not None and confirm is not True


def _named(**scopes: str | None) -> list[str]:
    return [f"{kind} {value!r}" for kind, value in scopes.items() if value is not None]
