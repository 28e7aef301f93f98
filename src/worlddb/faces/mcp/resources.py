"""Resources: scopes and memories as pages that a client can attach to a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import get_args

from mcp.server import MCPServer
from mcp.server.mcpserver import ResourceSecurity
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from pydantic import BaseModel

from worlddb.errors import InvalidInputError, NotFoundError, WorldDBError
from worlddb.faces.mcp import answers
from worlddb.memory.memory import Memory
from worlddb.model.scopes import ScopeIds, ScopeKind

SCOPES_URI = "worlddb://scopes"
MEMORY_URI = "worlddb://memory/{id}"
SCOPE_URI = "worlddb://scope/{kind}/{value}"
SCOPES_SHOWN = 1_000
MEMORIES_SHOWN = 50
JSON = "application/json"


def memory_uri(ident: str) -> str:
    """Return the address of a memory."""
    return MEMORY_URI.format(id=ident)


def add_resources(server: MCPServer, memory_for: Callable[[], Memory]) -> None:
    """Add the resources to a server."""

    @server.resource(
        SCOPES_URI,
        name="scopes",
        title="Scopes",
        description="Whose memories there are: users, agents, apps and runs.",
        mime_type=JSON,
    )
    def scopes() -> str:
        with _told():
            return _page(answers.scopes_listed(memory_for().list_scopes(limit=SCOPES_SHOWN)))

    @server.resource(
        MEMORY_URI,
        name="memory",
        title="A memory",
        description="One memory by its id, or by the first 4 or more digits of it.",
        mime_type=JSON,
    )
    def memory(id: str) -> str:
        with _told():
            return _page(answers.remembered(memory_for().read(id)))

    @server.resource(
        SCOPE_URI,
        name="memories",
        title="Memories of a scope",
        description=f"The latest {MEMORIES_SHOWN} memories of a user, agent, app or run (kind).",
        mime_type=JSON,
        # A scope's value is no path, whatever it looks like.
        security=ResourceSecurity(exempt_params={"value"}),
    )
    def memories(kind: str, value: str) -> str:
        with _told():
            page = memory_for().list(limit=MEMORIES_SHOWN, **_scope(kind, value))
            return _page(answers.listed(page))


def _scope(kind: str, value: str) -> ScopeIds:
    match kind:
        case "user":
            return ScopeIds(user_id=value)
        case "agent":
            return ScopeIds(agent_id=value)
        case "app":
            return ScopeIds(app_id=value)
        case "run":
            return ScopeIds(run_id=value)
    raise InvalidInputError(f"kind {kind!r:.40}: use one of {', '.join(get_args(ScopeKind))}")


@contextmanager
def _told() -> Iterator[None]:
    """Tell the client what the memory refused; anything else stays on the server.

    Raises:
        ResourceNotFoundError, ResourceError: the memory refused.
    """
    try:
        yield
    except (NotFoundError, InvalidInputError) as error:
        raise ResourceNotFoundError(str(error)) from error
    except WorldDBError as error:
        raise ResourceError(str(error)) from error


def _page(answer: BaseModel) -> str:
    return answer.model_dump_json(indent=2)
