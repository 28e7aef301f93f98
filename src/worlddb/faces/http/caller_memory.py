"""CallerMemory: the calls of a Memory that one token allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from worlddb.errors import RejectedError
from worlddb.faces.calls import CALLS, Call
from worlddb.faces.http.access_tokens import AccessToken
from worlddb.faces.http.http_problems import too_many
from worlddb.faces.http.server_metrics import ServerMetrics
from worlddb.faces.http.token_uses import TokenUses
from worlddb.memory.memory import Memory
from worlddb.memory.results import Retired, Written
from worlddb.model.origin import Origin

# What one write makes: it is counted by the same measure.
WRITTEN_TYPES = ("Memory", "Session", "Document")
_CALLS = {call.name: call for call in CALLS}


def declared_call(name: str) -> Call:
    """Return the declared call of a name.

    Raises:
        AttributeError: there is none.
    """
    try:
        return _CALLS[name]
    except KeyError:
        told = f"a caller has no {name!r}; it has the declared calls of Memory"
        raise AttributeError(told) from None


def bound_memory(memory: Memory, token: AccessToken | None) -> Memory:
    """Return a memory as a token opens it: in its name, and within its scopes."""
    if token is None:
        return memory
    signed = memory.signed(f"http {token.name}", origin=token.origin)
    if token.bounds:
        scope: Any = token.bounds
        return signed.bound(writes_into=token.writes_into, **scope)
    return signed


class CallerMemory:
    """The declared calls of a Memory, and nothing else of it, as one token allows them.

    Counts what is written and ended; refuses what the role of the token does not allow.
    """

    def __init__(
        self,
        memory: Memory,
        token: AccessToken | None,
        metrics: ServerMetrics,
        uses: TokenUses | None = None,
    ) -> None:
        self._memory = memory
        self._token = token
        self._metrics = metrics
        self._uses = uses or TokenUses()

    def signed(self, *, origin: Origin) -> CallerMemory:
        """Return the same calls for what an origin brings in at best."""
        signed = self._memory.signed(origin=origin)
        return CallerMemory(signed, self._token, self._metrics, self._uses)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a declared call."""
        declared = declared_call(name)
        call: Callable[..., Any] = getattr(self._memory, name)
        return call if declared.reads else self._writing(call, declared.effect)

    def _writing(self, call: Callable[..., Any], effect: str) -> Callable[..., Any]:
        def write(*given: Any, **options: Any) -> Any:
            if self._token is not None and self._token.read_only:
                raise RejectedError("this token may only read; use one that may write")
            if self._token is not None and effect not in self._token.effects:
                raise RejectedError("this token may only read and write; use one that may curate")
            if self._token is None or effect != "add":
                return self._counted(call(*given, **options))
            return self._within_quota(self._token, lambda: call(*given, **options))

        return write

    def _within_quota(self, token: AccessToken, write: Callable[[], Any]) -> Any:
        """Write a memory if its token may write another one today."""
        if wait_s := self._uses.take(token):
            told = f"this token may write {token.memories_per_day:,} memories a day"
            raise too_many(f"{told}; the next day begins at midnight UTC", wait_s)
        written = False
        try:
            result = self._counted(write())
            written = getattr(result, "created", True)
        finally:
            if not written:
                self._uses.give_back(token)
        return result

    def _counted(self, result: Any) -> Any:
        if isinstance(result, Retired):
            self._metrics.add("worlddb_memories_retired_total", self._memories(result))
        elif isinstance(result, Written) and result.created:
            self._metrics.add("worlddb_memories_written_total")
        return result

    def _memories(self, ended: Retired) -> int:
        """Return how many memories ended: without their turns and what was derived from them."""
        with self._memory.db.engine.store.read() as reader:
            rows = (reader.node_row(ident) for ident in ended.ids)
            bodies = reader.bodies(row for row in rows if row is not None)
            return sum(body.type in WRITTEN_TYPES for body in bodies)
