"""Client calls: the calls of Memory on a server and in async programs.

    Client       a method for each declared call ─▶ HTTP ─▶ Memory on the server
    AsyncMemory  the same methods as coroutines ─▶ a thread ─▶ Memory
    AsyncClient  the same methods as coroutines ─▶ a thread ─▶ Client

The methods are made from the declarations in `calls.py`. Their types stand in `client_calls.pyi`,
which `python tests/client_stub.py` writes.
"""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from inspect import Parameter, Signature
from typing import Any

from worlddb.faces.call_parts import Call
from worlddb.faces.calls import CALLS
from worlddb.faces.remote_caller import RemoteCaller
from worlddb.faces.server_calls import SERVER_CALLS

THREADS = 8  # Concurrent calls of one async program; more would wait for the store anyway.
MEMORY_ONLY = (
    "accept_merge",
    "reject_merge",
    "undo_merge",
    "warm",
    "read_pending",
    "verify_receipt",
)
"""Methods of Memory that no server offers by a call of their own."""


class Client:
    """The calls of `Memory` on a server that `worlddb serve` runs. Safe to share between threads.

    `url` is the server's address, such as "http://127.0.0.1:8765"; `token` is a token of the
    server. A try takes at most `timeout_s` seconds. A request that a busy server refuses, or that
    cannot have reached the server, is sent again up to `retries` times, after `backoff_s` seconds,
    then twice that, and so on. After a lost answer only an idempotent call is sent again; `amend`,
    `unlink`, `split` and `undo` are not idempotent.

    Raises:
        InvalidInputError: the address, the token or a number is wrong.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_s: float = 60.0,
        retries: int = 4,
        backoff_s: float = 0.25,
    ) -> None:
        self._caller = RemoteCaller(
            url, token=token, timeout_s=timeout_s, retries=retries, backoff_s=backoff_s
        )

    def close(self) -> None:
        """Close the connections. Calling it twice does nothing."""
        self._caller.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._caller.url!r})"


class AsyncCalls:
    """The calls of an object as coroutines; each runs on a thread, so the event loop is free.

    Cancelling a task does not stop a write that has begun.
    """

    def __init__(self, calls: Any) -> None:
        self.calls = calls
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="worlddb")

    async def _run(self, name: str, *given: Any, **named: Any) -> Any:
        work = partial(getattr(self.calls, name), *given, **named)
        context = contextvars.copy_context()
        return await asyncio.get_running_loop().run_in_executor(self._threads, context.run, work)

    async def close(self) -> None:
        """Wait for the running calls, then close the memory or client."""
        await asyncio.to_thread(self._threads.shutdown)
        await asyncio.to_thread(self.calls.close)

    async def __aenter__(self) -> Any:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.calls!r})"


class AsyncMemory(AsyncCalls):
    """`Memory` for async programs: the same calls, each awaited.

    `store` and `options` are those of `Memory`; `store` may also be an open `Memory`. The store is
    opened at once; `close`, or `async with`, closes it. `calls` is the `Memory` itself.

    Raises:
        InvalidInputError, FormatError, StorageError, ConflictError: as `Memory`.
    """

    def __init__(self, store: Any, **options: Any) -> None:
        from worlddb.memory.memory import Memory

        super().__init__(store if isinstance(store, Memory) else Memory(store, **options))

    def bound(self, **options: Any) -> AsyncMemory:
        """Return this memory bound to scopes, as `Memory.bound`."""
        return AsyncMemory(self.calls.bound(**options))

    def signed(self, actor: str) -> AsyncMemory:
        """Return this memory for another actor, who signs its commits."""
        return AsyncMemory(self.calls.signed(actor))


class AsyncClient(AsyncCalls):
    """`Client` for async programs: the same calls, each awaited. `calls` is the `Client` itself.

    Raises:
        InvalidInputError: the address, the token or a number is wrong.
    """

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(Client(url, **options))


def signature_of(call: Call) -> Signature:
    """Return the parameters of a call as those of a method."""
    made = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for one in sorted(call.parameters, key=lambda one: not one.positional):
        kind = Parameter.POSITIONAL_OR_KEYWORD if one.positional else Parameter.KEYWORD_ONLY
        default = Parameter.empty if one.required else one.default
        made.append(Parameter(one.name, kind, default=default))
    return Signature(made)


def _sent(call: Call) -> Any:
    signature = signature_of(call)

    def method(self: Client, *given: Any, **named: Any) -> Any:
        arguments = signature.bind(self, *given, **named).arguments
        del arguments["self"]
        return self._caller.call(call, arguments)

    return _dressed(method, call, signature)


def _awaited(name: str) -> Any:
    async def method(self: AsyncCalls, *given: Any, **named: Any) -> Any:
        return await self._run(name, *given, **named)

    return method


def _dressed(method: Any, call: Call, signature: Signature) -> Any:
    method.__name__, method.__signature__ = call.name, signature
    method.__doc__ = call.help_with(lambda other: f"`{other.name}`")
    return method


for _call in CALLS:
    setattr(AsyncMemory, _call.name, _dressed(_awaited(_call.name), _call, signature_of(_call)))
for _call in (*(one for one in CALLS if one.path), *SERVER_CALLS):
    setattr(Client, _call.name, _sent(_call))
    setattr(AsyncClient, _call.name, _dressed(_awaited(_call.name), _call, signature_of(_call)))
for _name in MEMORY_ONLY:
    setattr(AsyncMemory, _name, _awaited(_name))
