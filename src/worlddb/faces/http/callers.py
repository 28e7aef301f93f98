"""Callers: the Memory that each token opens, and which of them the present request may use.

The doors set `CALLER` for one request. Tasks and worker threads that a request starts inherit it,
so a tool that runs on another thread asks `memory_for()` and gets its own caller's Memory.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from typing import Any, NoReturn

from worlddb.errors import RejectedError
from worlddb.faces.http.access import Token
from worlddb.faces.http.metrics import Tally
from worlddb.memory.memory import Memory
from worlddb.memory.results import Retired, Written

CALLER: ContextVar[Memory] = ContextVar("worlddb_caller")


def memory_for() -> Memory:
    """Return the Memory of whoever sent the request that is being answered.

    Raises:
        RejectedError: nobody came through the doors.
    """
    try:
        return CALLER.get()
    except LookupError:
        raise RejectedError("no request is being answered here") from None


class CallerMemory(Memory):
    """A Memory that counts what is written, and refuses to write for a token that only reads."""

    def __init__(
        self, memory: Memory, tally: Tally, *, read_only: bool = False, actor: str | None = None
    ) -> None:
        # The same open store and the same bounds; closing it stays with who opened it.
        vars(self).update(vars(memory))
        self._owns = False
        self._actor = actor or memory._actor
        self._tally = tally
        self._read_only = read_only

    def write(self, *given: Any, **options: Any) -> Written:
        """Remember, as `Memory.write`."""
        return self._counted(super().write(*self._may_write(given), **options))

    def amend(self, *given: Any, **options: Any) -> Written:
        """Say anew, as `Memory.amend`."""
        return self._counted(super().amend(*self._may_write(given), **options))

    def retire(self, *given: Any, **options: Any) -> Retired:
        """End one, as `Memory.retire`."""
        return self._ended_too(super().retire(*self._may_write(given), **options))

    def retire_all(self, *given: Any, **options: Any) -> Retired:
        """End all of a scope, as `Memory.retire_all`."""
        return self._ended_too(super().retire_all(*self._may_write(given), **options))

    def purge_scope(self, *given: Any, **options: Any) -> Retired:
        """End a scope, as `Memory.purge_scope`."""
        return self._ended_too(super().purge_scope(*self._may_write(given), **options))

    def bound(self, **_: Any) -> NoReturn:
        """Refuse: a bound copy would forget that this one only reads.

        Raises:
            RejectedError: always.
        """
        raise RejectedError("what a token opens is not bound any further")

    def _may_write(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        if self._read_only:
            raise RejectedError("this token only reads; ask for one that may write")
        return given

    def _counted(self, written: Written) -> Written:
        if written.created:
            self._tally.add("worlddb_memories_written_total")
        # A memory that is shared is in scopes that a token may not be told of.
        shown = tuple(scope for scope in written.scopes if self._may_name(scope))
        return replace(written, scopes=shown)

    def _ended_too(self, retired: Retired) -> Retired:
        self._tally.add("worlddb_memories_retired_total", len(retired))
        return retired


def caller_memory(memory: Memory, token: Token | None, tally: Tally) -> CallerMemory:
    """Return what a token opens; without one, everything.

    Raises:
        InvalidInputError: the token's scopes are badly named.
    """
    if token is None:
        return CallerMemory(memory, tally)
    actor = f"http {token.name}"
    if token.bounds:
        memory = memory.bound(actor=actor, **token.bounds)
    return CallerMemory(memory, tally, read_only=token.read_only, actor=actor)
