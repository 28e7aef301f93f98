"""Open subscriptions: `subscriptions/listen` has no answer until it ends, so a server must end it.

Clients keep one open as long as they run. A server that stops would wait for it as for a call.
"""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp.types import SubscriptionsListenResult

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
