"""OpenAPI: the description of the REST API, made from the declared calls."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from worlddb import __version__
from worlddb.faces.call_models import ChatMessage, SentDocument, result_class, result_model
from worlddb.faces.calls import Call
from worlddb.faces.http.http_problems import ErrorAnswer
from worlddb.faces.http.rest_routes import REST_CALLS, path_model, request_model

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
    """Change a schema of arguments to what code generators understand.

    Whatever may be left out has no default: generators take one for a promise that the field is
    there.
    """
    for name, held in schema["properties"].items():
        schema["properties"][name] = _plain_property(held)


def _plain_property(held: dict[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in held.items() if key not in ("title", "default")}
    if held.get("default") is not None:
        plain["description"] = f"{held['description']} Default: {json.dumps(held['default'])}."
    return plain


def _body_names(call: Call) -> list[str]:
    """Return the names of the bodies that a call takes: one for each of its alternatives."""
    name = request_model(call).__name__
    start = name.removesuffix("Request")
    return [f"{start}{one.capitalize()}Request" for one in call.one_of] or [name]


def _bodies(call: Call, schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the bodies, each whole: generators do not read conditions."""
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
    """Return how a query parameter is written: an object as JSON."""
    if schema.get("type") == "object":
        return {"content": {"application/json": {"schema": schema}}}
    return {"schema": schema}


def _answer(meaning: str, model: type[BaseModel]) -> dict[str, Any]:
    return {"description": meaning, "content": _content(model)}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(model=model.__name__)}}}
