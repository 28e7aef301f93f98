"""REST: one route for each operation. Checks what is given, calls Memory on a thread, answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from worlddb.errors import InvalidInputError
from worlddb.faces.http.callers import memory_for
from worlddb.faces.http.models import Given
from worlddb.faces.http.operations import OPERATIONS, Operation
from worlddb.faces.http.problems import RefusedError
from worlddb.faces.http.threads import Threads

KEY_HEADER = "idempotency-key"


def rest_routes(threads: Threads) -> list[Route]:
    """Return the routes of all operations."""
    return [
        Route(
            operation.path,
            _endpoint(operation, threads),
            methods=[operation.method],
            name=operation.name,
        )
        for operation in OPERATIONS
    ]


def _endpoint(operation: Operation, threads: Threads) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        given = await _given(operation, request)
        arguments = given.model_dump(exclude_unset=True) | request.path_params
        memory = memory_for()

        def call() -> bytes:
            # Written as JSON here as well: a long answer must not hold up the other callers.
            result = getattr(memory, operation.name)(**arguments)
            return json.dumps(result.to_dict(), ensure_ascii=False).encode()

        body = await threads.run(call, operation.work)
        return Response(body, media_type="application/json")

    return answer


async def _given(operation: Operation, request: Request) -> Given:
    """Return what a request brings, checked.

    Raises:
        ValidationError: it is not what the operation takes.
        RefusedError: the body is not JSON by its own account.
        InvalidInputError: two idempotency keys, or an argument is given twice.
    """
    if operation.method == "GET":
        # An address holds nothing but text, so "5" is a number there and "true" a truth.
        return operation.given.model_validate(_query(request), strict=False)
    if request.query_params:
        raise InvalidInputError("give the arguments in the body, none in the address")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "send JSON, with the header 'Content-Type: application/json'")
    given = operation.given.model_validate_json(await request.body())
    key = request.headers.get(KEY_HEADER)
    if key is None or "idempotency_key" not in operation.given.model_fields:
        return given
    said = getattr(given, "idempotency_key", None)
    if said not in (None, key):
        raise InvalidInputError("idempotency_key: the body and the header say different keys")
    return given.model_copy(update={"idempotency_key": key})


def _query(request: Request) -> dict[str, Any]:
    """Return the query as a mapping; only scopes may be given several times."""
    found: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        if len(values) > 1 and not name.endswith("_id"):
            raise InvalidInputError(f"{name:.40}: is given {len(values)} times; give it once")
        found[name] = values[0] if len(values) == 1 else values
    return found
