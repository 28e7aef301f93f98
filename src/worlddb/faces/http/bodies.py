"""Bodies: how much a request may bring, and how long it may take to bring it. Plain ASGI."""

from __future__ import annotations

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worlddb.faces.http.problems import RefusedError, problem_of

BODY_BYTES_MAX = 4 << 20
BODY_S_MAX = 30.0
HEAD_BYTES_MAX = 32 << 10
HEADERS_MAX = 100


class Bodies:
    """Reads the body before any route does, up to a limit, whether or not its length was told."""

    def __init__(
        self, app: ASGIApp, *, bytes_max: int = BODY_BYTES_MAX, seconds_max: float = BODY_S_MAX
    ) -> None:
        self.app = app
        self.bytes_max = bytes_max
        self.seconds_max = seconds_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read one body and hand it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            self._check_told(scope)
            with anyio.fail_after(self.seconds_max):
                body = await self._read(receive)
        except RefusedError as refused:
            await problem_of(refused)(scope, receive, send)
            return
        except TimeoutError:
            late = RefusedError(408, "the body did not come in time", {"Connection": "close"})
            await problem_of(late)(scope, receive, send)
            return
        if body is None:
            return
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        await self.app(scope, again, send)

    def _check_told(self, scope: Scope) -> None:
        # The server's own limit holds only for what does not arrive at once.
        size = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        if size > HEAD_BYTES_MAX or len(scope["headers"]) > HEADERS_MAX:
            raise RefusedError(431, "the address and headers are too many or too long")
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit() and int(value) > self.bytes_max:
                raise self._too_large()
            if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                raise RefusedError(415, "send the body as it is, without Content-Encoding")

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body, or None if the caller went away."""
        read = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            read += message.get("body", b"")
            if len(read) > self.bytes_max:
                raise self._too_large()
            if not message.get("more_body", False):
                return bytes(read)

    def _too_large(self) -> RefusedError:
        # Closing tells the caller to stop sending; reading the rest would be what it wants.
        return RefusedError(
            413, f"the body is larger than {self.bytes_max:,} bytes", {"Connection": "close"}
        )
