"""Confirmation: a person is asked before a whole scope ends or leaves, where the client can ask.

Where a person can be asked, only the person's answer counts: `confirm` changes nothing. Otherwise
the model has to name the scope once more, or say `true`. This guards against accidents. It is not a
permission: whoever may call the tool may confirm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

from worlddb.faces.calls import Call


class Agreement(BaseModel):
    """What the person is asked for."""

    agree: bool = Field(description="Yes, do it")


class Unasked(BaseModel):
    """Nobody was asked: the call names no scope, or the client cannot ask."""


AskedPerson = ElicitationResult[Agreement | Unasked]


def confirmed_by(call: Call) -> Callable[..., None]:
    """Return a function whose parameter `asked` the SDK fills by asking the call's question."""

    async def ask(
        ctx: Context[Any, Any],
        user_id: str | None,
        agent_id: str | None,
        app_id: str | None,
        run_id: str | None,
    ) -> Unasked | Elicit[Agreement]:
        scopes = _named(user=user_id, agent=agent_id, app=app_id, run=run_id)
        wrong_scope = not scopes or (call.one_scope and len(scopes) != 1)
        if wrong_scope or not can_ask(ctx):
            return Unasked()
        return Elicit(call.question.format(scope=" and ".join(scopes)), Agreement)

    def consumer(asked: Any) -> None: ...

    consumer.__annotations__["asked"] = Annotated[AskedPerson, Resolve(ask)]
    return consumer


def can_ask(ctx: Context[Any, Any]) -> bool:
    """Return whether the client can ask its user by a form."""
    capabilities = ctx.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    # Older clients send an empty capability, which means a form.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def confirmation(asked: Any, confirm: str | bool | None) -> str | bool:
    """Return the `confirm` for Memory: what the model gave, else True if the person agreed.

    What the model gave is checked by Memory even if the person agreed: a wrong name is a mistake.

    Raises:
        ToolError: the person did not agree.
    """
    if isinstance(asked, AcceptedElicitation):
        if isinstance(asked.data, Unasked):
            return "" if confirm is None else confirm
        if asked.data.agree:
            return True if confirm is None else confirm
    raise ToolError("the user did not agree; nothing was done. Do not try again unasked")


def _named(**scopes: str | None) -> list[str]:
    return [f"{kind} {value!r}" for kind, value in scopes.items() if value is not None]
