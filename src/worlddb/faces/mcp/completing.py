"""Completing: the names of scopes, for clients that help a person to type them."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import anyio.to_thread
from mcp.server import MCPServer
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from worlddb.memory.memory import Memory
from worlddb.model.scopes import ScopeKind

KINDS: tuple[ScopeKind, ...] = get_args(ScopeKind)
VALUES_MAX = 100
"""As many as the protocol allows."""
SCOPES_SEEN = 1_000


def add_completion(server: MCPServer, memory_for: Callable[[], Memory]) -> None:
    """Complete the prompt's user, and the kind and value in a scope's address."""

    @server.completion()  # type: ignore[untyped-decorator, no-untyped-call]
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion | None:
        chosen = (context.arguments or {}) if context is not None else {}
        if argument.name == "kind":
            return _starting(argument.value, list(KINDS))
        kind = "user" if argument.name == "user_id" else chosen.get("kind")
        if kind not in KINDS or argument.name not in ("user_id", "value"):
            return None

        def values() -> list[str]:
            scopes = memory_for().list_scopes(kind=kind, limit=SCOPES_SEEN)
            return [scope.value for scope in scopes]

        return _starting(argument.value, await anyio.to_thread.run_sync(values))


def _starting(start: str, values: list[str]) -> Completion:
    fitting = [value for value in values if value.casefold().startswith(start.casefold())]
    shown = fitting[:VALUES_MAX]
    return Completion(values=shown, total=len(fitting), has_more=len(fitting) > len(shown))
