"""REST routes: one route for each declared call, and the OpenAPI description of all of them.

A check of a large store takes minutes. A client that accepts `application/x-ndjson` gets a line for
each stage as it begins, `{"done": 3, "total": 14, "stage": "nodes"}`, and the result as the last.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache, partial
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from worlddb import __version__
from worlddb.audit.store_check import STAGES
from worlddb.errors import InvalidInputError, WorldDBError
from worlddb.faces.call_models import (
    ChatMessage,
    SentDocument,
    arguments_model,
    result_class,
    result_model,
)
from worlddb.faces.call_parts import Call
from worlddb.faces.calls import CALLS
from worlddb.faces.http.auth_middleware import caller_key, memory_for
from worlddb.faces.http.http_problems import ErrorAnswer, HttpError, invalid_arguments
from worlddb.faces.http.request_limits import LONG_TEXT_BYTES, Threads, work_of
from worlddb.faces.http.served_stores import json_of
from worlddb.faces.http.token_desk import TokenDesk
from worlddb.faces.http.write_groups import GroupWriter
from worlddb.faces.server_calls import SERVER_CALLS
from worlddb.memory.memory import Memory
from worlddb.memory.prepared_write import PreparedWrite

READ_AT_ONCE_BYTES = 512
"""Size of a write that is read on the event loop: it takes about a millisecond."""
NDJSON = "application/x-ndjson"


def wants_stages(request: Request) -> bool:
    """Return whether the client accepts lines instead of one answer."""
    return NDJSON in request.headers.get("accept", "")


async def stage_stream(run: Callable[[], Awaitable[bytes]]) -> Response:
    """Run a check; return its stages and its result as a stream.

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
        await work  # It was refused, or had no stages.
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


KEY_HEADER = "idempotency-key"
MEMORY_CALLS = tuple(call for call in CALLS if call.path)
REST_CALLS = (*MEMORY_CALLS, *SERVER_CALLS)


class RestArguments(BaseModel):
    """The arguments of a request. Unknown arguments are refused."""

    # `strict`: a number is not a text, and "true" is not a truth value.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


@cache
def request_model(call: Call) -> type[BaseModel]:
    """Return the model of a call's arguments, without those in the path."""
    in_path = call.path_parameters()
    name = "".join(word.capitalize() for word in call.name.split("_")) + "Request"
    inside = [one for one in call.parameters if one.name not in in_path]
    return arguments_model(name, inside, base=RestArguments)


@cache
def path_model(call: Call) -> type[BaseModel]:
    """Return the model of the arguments in a call's path."""
    inside = [call.parameter(name) for name in call.path_parameters()]
    return arguments_model(f"{call.name}_path", inside, base=RestArguments)


def rest_routes(threads: Threads, groups: GroupWriter | None = None) -> list[Route]:
    """Return the routes of the calls of Memory; short writes go to `groups`, if there are any."""
    return [
        Route(
            _pattern(call),
            _endpoint(call, threads, memory_for, groups if call.name == "write" else None),
            methods=[call.method],
        )
        for call in MEMORY_CALLS
    ]


def server_routes(threads: Threads, desk: TokenDesk) -> list[Route]:
    """Return the routes of the calls of a server on itself."""
    return [
        Route(call.path, _endpoint(call, threads, lambda: desk), methods=[call.method])
        for call in SERVER_CALLS
    ]


def _pattern(call: Call) -> str:
    """Return the path of a call for the router; a name at its end may have slashes ("AC/DC")."""
    name = (call.path_parameters() or ("",))[-1]
    is_said = name and call.parameter(name).type == "text" and call.path.endswith(f"{{{name}}}")
    return f"{call.path[:-1]}:path}}" if is_said else call.path


def _endpoint(
    call: Call,
    threads: Threads,
    source: Callable[[], Memory | TokenDesk],
    groups: GroupWriter | None = None,
) -> Callable[[Request], Awaitable[Response]]:
    has_path = bool(call.path_parameters())

    async def answer(request: Request) -> Response:
        path: dict[str, Any] = {}
        if has_path:
            path = path_model(call).model_validate(request.path_params).model_dump()
        sent, target = await request.body(), source()
        # A long body is parsed on the caller's share of threads, so that it does not block others.
        is_long = len(sent) > LONG_TEXT_BYTES
        early = None if is_long else _arguments(call, request, sent)

        def run() -> bytes:
            arguments = _arguments(call, request, sent) if early is None else early
            # The JSON is made on this thread, too: a long answer must not block other callers.
            return json_of(getattr(target, call.name)(**arguments, **path))

        async def work() -> bytes:
            return await threads.run(run, work_of(call.effect, len(sent)), caller_key())

        if call.name == "check" and wants_stages(request):
            return await stage_stream(work)
        body = None
        if groups is not None and early is not None:
            prepared = await _prepared_write(target, early, len(sent), threads)
            if prepared is not None:
                body = await threads.in_turn(partial(groups.write, target, prepared), caller_key())
        if body is None:
            body = await work()
        if isinstance(target, TokenDesk) and not call.reads:
            target.reload()
        return Response(body, media_type="application/json")

    return answer


async def _prepared_write(
    target: Any, arguments: dict[str, Any], size: int, threads: Threads
) -> PreparedWrite | None:
    """Return a write for a group, if it can be one; a text of some size is read on a thread."""
    if size <= READ_AT_ONCE_BYTES:
        return cast("PreparedWrite | None", target.prepare_write(**arguments))
    prepare = partial(target.prepare_write, **arguments)
    return await threads.run(prepare, "write", caller_key())


def _arguments(call: Call, request: Request, body: bytes) -> dict[str, Any]:
    """Return the arguments of a request, checked.

    Raises:
        HttpError, InvalidInputError: they are wrong.
    """
    model = request_model(call)
    try:
        return _checked(call, model, request, body)
    except ValidationError as error:
        raise HttpError(400, invalid_arguments(error, model.model_fields)) from None


def _checked(call: Call, model: type[BaseModel], request: Request, body: bytes) -> dict[str, Any]:
    if call.method == "GET":
        return model.model_validate(_query(call, request)).model_dump(exclude_unset=True)
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
        arguments.setdefault("confirm", "")  # REST cannot ask, so the caller has to confirm.
    return arguments


def _query(call: Call, request: Request) -> dict[str, Any]:
    """Return the query string as a mapping; only parameters that take several may be repeated.

    A query string has only text. Numbers and truth values are written as in JSON, so that exactly
    the documented forms are accepted: `5` and `true`, not `05`, `1` or `yes`.
    """
    repeatable = {one.name for one in call.parameters if one.type in ("scope", "names", "texts")}
    lists = {one.name for one in call.parameters if one.type == "names"}
    objects = {one.name for one in call.parameters if one.type == "object"}
    scalars = {one.name for one in call.parameters if one.type in ("whole", "share", "flag")}
    found: dict[str, Any] = {}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        if len(values) > 1 and name not in repeatable:
            raise InvalidInputError(f"{name:.40}: is given {len(values)} times; give it once")
        found[name] = values if len(values) > 1 or name in lists else values[0]
        if name in objects:
            found[name] = _object(name, values[0])
        elif name in scalars:
            found[name] = _scalar(values[0])
    return found


def _scalar(text: str) -> Any:
    """Return a number or a truth value of a query string; other text unchanged."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, bool | int | float) and text == text.strip() else text


def _object(name: str, text: str) -> Any:
    """Return an object that is JSON in a query string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInputError(f'{name}: give a JSON object, such as {{"project": "x"}}') from None


REFERENCE = "#/components/schemas/{model}"
PROBLEMS = {
    "400": "an argument is wrong",
    "401": "the token is missing, wrong or expired",
    "403": "outside the scopes of the token",
    "404": "no such memory here",
    "405": "this URL takes another method",
    "408": "the body did not arrive in time",
    "409": "ended already, a whole session, or another writer was first",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "421": "this Host name is not allowed",
    "429": "too many wrong tokens from this address, or the token is beyond its limits",
    "431": "the URL or the headers are too large",
    "500": "the store is damaged, or a bug",
    "502": "a model or an embedding endpoint failed",
    "503": "too busy, or the store cannot be used; try again",
}


def openapi(*, with_tokens: bool) -> dict[str, Any]:
    """Return the description as OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for call in REST_CALLS:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call)
    components: dict[str, Any] = {"schemas": _schemas()}
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "WorldDB",
            "version": __version__,
            "description": "Memory for AI agents: write, recall, list, read, amend and retire.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": components,
    }
    if with_tokens:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
    return described


def _schemas() -> dict[str, Any]:
    models: list[type[BaseModel]] = [ErrorAnswer]
    for call in REST_CALLS:
        models.append(result_model(result_class(call)))
        if call.method != "GET":
            models.append(request_model(call))
    unique = dict.fromkeys(models)
    _, made = models_json_schema([(one, "validation") for one in unique], ref_template=REFERENCE)
    schemas: dict[str, Any] = made["$defs"]
    for call in REST_CALLS:
        name = request_model(call).__name__
        if call.method != "GET":
            _say_plainly(schemas[name])
            schemas |= dict(zip(_body_names(call), _bodies(call, schemas.pop(name)), strict=True))
    for sent in (ChatMessage, SentDocument):
        _say_plainly(schemas[sent.__name__])
    return schemas


def _say_plainly(schema: dict[str, Any]) -> None:
    """Simplify a schema of arguments for code generators.

    Optional arguments get no default, because generators would take one as a promise that the field
    is always there.
    """
    for name, held in schema["properties"].items():
        schema["properties"][name] = _plain_property(held)


def _plain_property(held: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in held.items() if key not in ("title", "default")}
    if held.get("default") is not None:
        plain["description"] = f"{held['description']} Default: {json.dumps(held['default'])}."
    return plain


def _body_names(call: Call) -> list[str]:
    """Return the names of a call's request bodies: one for each alternative."""
    name = request_model(call).__name__
    start = name.removesuffix("Request")
    return [f"{start}{one.capitalize()}Request" for one in call.one_of] or [name]


def _bodies(call: Call, schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the bodies, each complete: generators do not read conditions."""
    found = []
    for chosen, title in zip(call.one_of, _body_names(call), strict=False):
        properties = {
            name: held
            for name, held in schema["properties"].items()
            if name == chosen or name not in call.one_of
        }
        required = [*schema.get("required", ()), chosen]
        found.append(schema | {"title": title, "properties": properties, "required": required})
    return found or [schema]


def _operation(call: Call) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": _answer("done", result_model(result_class(call)))}
    for status, meaning in PROBLEMS.items():
        answers[status] = _answer(meaning, ErrorAnswer)
    made: dict[str, Any] = {
        "operationId": call.name,
        "summary": call.summary,
        "description": call.help_with(lambda other: f"`{other.name}`"),
        "parameters": _parameters(path_model(call), "path"),
        "responses": answers,
    }
    if call.method == "GET":
        made["parameters"] += _parameters(request_model(call), "query")
    else:
        bodies = [{"$ref": REFERENCE.format(model=name)} for name in _body_names(call)]
        body = bodies[0] if len(bodies) == 1 else {"oneOf": bodies}
        content = {"application/json": {"schema": body}}
        made["requestBody"] = {"required": True, "content": content}
    if any(one.name == "idempotency_key" for one in call.parameters):
        made["parameters"].append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "schema": {"type": "string", "minLength": 1},
            }
        )
    return made


def _parameters(model: type[BaseModel], place: str) -> list[dict[str, Any]]:
    schema = model.model_json_schema(ref_template=REFERENCE)
    return [
        {
            "name": name,
            "in": place,
            "required": name in schema.get("required", ()),
            **_written(_plain_property(held)),
        }
        for name, held in schema["properties"].items()
    ]


def _written(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the form of a query parameter: an object is JSON."""
    if schema.get("type") == "object":
        return {"content": {"application/json": {"schema": schema}}}
    return {"schema": schema}


def _answer(meaning: str, model: type[BaseModel]) -> dict[str, Any]:
    return {"description": meaning, "content": _content(model)}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(model=model.__name__)}}}
