"""Check stream: a check that says how far it is, as lines of JSON.

A check of a large store takes minutes. A client that accepts `application/x-ndjson` gets a line for
each stage as it begins, `{"done": 3, "total": 14, "stage": "nodes"}`, and the result as the last.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from worlddb.audit.store_check import STAGES
from worlddb.errors import WorldDBError
from worlddb.faces.http.http_problems import HttpError

NDJSON = "application/x-ndjson"


def wants_stages(request: Request) -> bool:
    """Return whether the client takes lines instead of one answer."""
    return NDJSON in request.headers.get("accept", "")


async def stage_stream(run: Callable[[], Awaitable[bytes]]) -> Response:
    """Run a check and return its stages and its result as a stream.

    Raises:
        WorldDBError, HttpError: the check could not begin.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def tell(done: int, total: int, stage: str) -> None:
        line = json.dumps({"done": done, "total": total, "stage": stage}).encode()
        loop.call_soon_threadsafe(lines.put_nowait, line)

    STAGES.set(tell)
    work = asyncio.ensure_future(run())
    work.add_done_callback(lambda _: lines.put_nowait(None))
    first = await lines.get()
    if first is None:
        await work  # It was refused, or had nothing to tell.
    return StreamingResponse(_lines(first, lines, work), media_type=NDJSON)


async def _lines(
    line: bytes | None, lines: asyncio.Queue[bytes | None], work: asyncio.Future[bytes]
) -> AsyncIterator[bytes]:
    while line is not None:
        yield line + b"\n"
        line = await lines.get()
    try:
        yield await work + b"\n"
    except (WorldDBError, HttpError) as error:
        yield json.dumps({"error": {"type": "storage", "message": str(error)}}).encode() + b"\n"
