"""The MCP server: tools, resources, prompt and completion, for any transport and both eras.

Open subscriptions: `subscriptions/listen` has no answer until it ends, so a server must end it.

Clients keep one open as long as they run. A server that stops would wait for it as for a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.mcpserver import Context, RequestStateSecurity
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    GetPromptResult,
    InputRequiredResult,
    SubscriptionsListenResult,
)

from worlddb import __version__
from worlddb.faces.mcp.mcp_resources import (
    INSTRUCTIONS,
    add_completion,
    add_guide,
    add_resources,
    search_fetch_tools,
)
from worlddb.faces.mcp.memory_tools import CallRunner, MemorySource, memory_tools, run_on_any_thread

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory


LISTEN = "subscriptions/listen"


class OpenSubscriptions:
    """The subscriptions that are open: a middleware of the server that can end them all."""

    def __init__(self) -> None:
        self._open: set[anyio.CancelScope] = set()

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Pass a request on; a subscription ends when it is told to."""
        if ctx.method != LISTEN:
            return await call_next(ctx)
        with anyio.CancelScope() as scope:
            self._open.add(scope)
            try:
                return await call_next(ctx)
            finally:
                self._open.discard(scope)
        # The last frame of the stream: it ended on purpose.
        return SubscriptionsListenResult(_meta={SUBSCRIPTION_ID_META_KEY: ctx.request_id})

    def end(self) -> None:
        """End them all. Each client is told, and may subscribe anew."""
        for scope in list(self._open):
            scope.cancel()


NAME = "worlddb"

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]


class MemoryServer(MCPServer):
    """The SDK's server, whose subscriptions can be ended, and whose prompts are told if missing."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.open_subscriptions = OpenSubscriptions()
        self.middleware.append(self.open_subscriptions)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt.

        Raises:
            MCPError: there is no prompt of that name.
        """
        known = [prompt.name for prompt in await self.list_prompts()]
        if name not in known:
            message = f"there is no prompt {name!r:.80}; known are {', '.join(known)}"
            raise MCPError(code=INVALID_PARAMS, message=message)
        return await super().get_prompt(name, arguments, context)


def make_server(
    memory_for: MemorySource,
    *,
    runner: CallRunner = run_on_any_thread,
    search_fetch: bool = False,
    tools: str = "memory",
    state_key: bytes | None = None,
    log_level: LogLevel = "WARNING",
) -> MemoryServer:
    """Return a server over the memory that `memory_for` gives.

    `memory_for` is called for each tool call, in the context of the request, on a worker thread, so
    it may give each caller a memory bound to its own scopes. `runner` runs what blocks.
    `search_fetch` adds `search` and `fetch`; `tools` adds a set: graph, files or all of them.
    Servers with the same `state_key` understand the answers to each other's questions.
    """

    def assistants() -> Memory:
        # Whatever a tool writes, a model has said it.
        return memory_for().signed(origin="assistant")

    offered = memory_tools(assistants, runner, tools=tools)
    if search_fetch:
        offered += search_fetch_tools(memory_for, runner)
    server = MemoryServer(
        NAME,
        title="WorldDB memory",
        description="A lasting memory for agents: what is true, since when, and who said so.",
        instructions=INSTRUCTIONS,
        version=__version__,
        tools=[*offered],
        log_level=log_level,
        request_state_security=RequestStateSecurity(keys=[state_key]) if state_key else None,
    )
    add_resources(server, memory_for, runner)
    add_guide(server)
    add_completion(server, memory_for, runner)
    return server
