"""REST: one route for each declared call. Checks the arguments, calls Memory, answers in JSON."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from worlddb.errors import InvalidInputError
from worlddb.faces.call_models import arguments_model
from worlddb.faces.calls import CALLS, Call
from worlddb.faces.http.auth_middleware import caller_key, memory_for
from worlddb.faces.http.check_stream import stage_stream, wants_stages
from worlddb.faces.http.http_problems import HttpError
from worlddb.faces.http.thread_limits import LONG_TEXT_BYTES, Threads, work_of
from worlddb.faces.http.token_desk import TokenDesk
from worlddb.faces.server_calls import SERVER_CALLS
from worlddb.memory.memory import Memory

KEY_HEADER = "idempotency-key"
MEMORY_CALLS = tuple(call for call in CALLS if call.path)
REST_CALLS = (*MEMORY_CALLS, *SERVER_CALLS)


class RestArguments(BaseModel):
    """What a request may bring. An argument that is not declared is refused."""

    # `strict`: a number is no text and "true" is no truth value. A query string is read leniently.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@cache
def request_model(call: Call) -> type[BaseModel]:
    """Return the model of a call's arguments, without those that are part of the path."""
    in_path = call.path_parameters()
    name = "".join(word.capitalize() for word in call.name.split("_")) + "Request"
    inside = [one for one in call.parameters if one.name not in in_path]
    return arguments_model(name, inside, base=RestArguments)


@cache
def path_model(call: Call) -> type[BaseModel]:
    """Return the model of the arguments that are part of a call's path."""
    inside = [call.parameter(name) for name in call.path_parameters()]
    return arguments_model(f"{call.name}_path", inside, base=RestArguments)


def rest_routes(threads: Threads) -> list[Route]:
    """Return the routes of the calls of Memory."""
    return [
        Route(call.path, _endpoint(call, threads, memory_for), methods=[call.method])
        for call in MEMORY_CALLS
    ]


def server_routes(threads: Threads, desk: TokenDesk) -> list[Route]:
    """Return the routes of the calls of a server on itself."""
    return [
        Route(call.path, _endpoint(call, threads, lambda: desk), methods=[call.method])
        for call in SERVER_CALLS
    ]


def _endpoint(
    call: Call, threads: Threads, source: Callable[[], Memory | TokenDesk]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        path = path_model(call).model_validate(request.path_params).model_dump()
        sent, target = await request.body(), source()
        # A long body is read in the caller's own turn: many of them must not hold up the others.
        is_long = len(sent) > LONG_TEXT_BYTES
        early = None if is_long else _arguments(call, request, sent)

        def run() -> bytes:
            arguments = _arguments(call, request, sent) if early is None else early
            # The JSON is made on this thread, too: a long answer must not hold up other callers.
            result = getattr(target, call.name)(**arguments, **path)
            return json.dumps(result.to_dict(), ensure_ascii=False).encode()

        async def work() -> bytes:
            return await threads.run(run, work_of(call.effect, len(sent)), caller_key())

        if call.name == "check" and wants_stages(request):
            return await stage_stream(work)
        body = await work()
        if isinstance(target, TokenDesk) and not call.reads:
            target.reload()
        return Response(body, media_type="application/json")

    return answer


def _arguments(call: Call, request: Request, body: bytes) -> dict[str, Any]:
    """Return the arguments of a request, checked."""
    model = request_model(call)
    if call.method == "GET":
        # A query string holds nothing but text, so "5" is a number there and "true" a truth value.
        given = model.model_validate(_query(call, request), strict=False)
        return given.model_dump(exclude_unset=True)
    if request.query_params:
        raise InvalidInputError("give the arguments in the body, not in the query string")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HttpError(415, "send JSON, with the header 'Content-Type: application/json'")
    given = model.model_validate_json(body)
    arguments = given.model_dump(exclude_unset=True)
    key = request.headers.get(KEY_HEADER)
    if key is not None and "idempotency_key" in model.model_fields:
        if arguments.get("idempotency_key") not in (None, key):
            raise InvalidInputError("idempotency_key: the body and the header have different keys")
        arguments["idempotency_key"] = key
    if call.destructive and call.question and "id" not in arguments:
        arguments.setdefault("confirm", "")  # Nobody is asked here, so the caller has to say it.
    return arguments


def _query(call: Call, request: Request) -> dict[str, Any]:
    """Return the query string as a mapping; only parameters that take several may be repeated."""
    repeatable = {one.name for one in call.parameters if one.type in ("scope", "names", "texts")}
    lists = {one.name for one in call.parameters if one.type == "names"}
    objects = {one.name for one in call.parameters if one.type == "object"}
    found: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        if len(values) > 1 and name not in repeatable:
            raise InvalidInputError(f"{name:.40}: is given {len(values)} times; give it once")
        found[name] = values if len(values) > 1 or name in lists else values[0]
        if name in objects:
            found[name] = _object(name, values[0])
    return found


def _object(name: str, text: str) -> Any:
    """Return an object that a query string holds as JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInputError(f'{name}: give a JSON object, such as {{"project": "x"}}') from None
