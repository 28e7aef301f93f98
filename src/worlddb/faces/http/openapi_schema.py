"""OpenAPI: the description of the REST API, made from the declared calls."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from worlddb import __version__
from worlddb.faces.call_models import result_class, result_model
from worlddb.faces.calls import Call
from worlddb.faces.http.http_problems import ErrorAnswer
from worlddb.faces.http.rest_routes import REST_CALLS, request_model

REFERENCE = "#/components/schemas/{model}"
PROBLEMS = {
    "400": "an argument is wrong",
    "401": "the token is missing, wrong or expired",
    "403": "outside the scopes of the token",
    "404": "no such memory here",
    "409": "ended already, or another writer was first",
    "413": "the body is too large",
    "415": "the body is not JSON",
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
        if call.one_of:
            model = schemas[request_model(call).__name__]
            model["oneOf"] = [{"required": [name]} for name in call.one_of]
    return schemas


def _operation(call: Call) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": _answer("done", result_model(result_class(call)))}
    for status, meaning in PROBLEMS.items():
        answers[status] = _answer(meaning, ErrorAnswer)
    made: dict[str, Any] = {
        "operationId": call.name,
        "summary": call.summary,
        "description": call.help_with(lambda other: f"`{other.name}`"),
        "parameters": [_in_path(call, name) for name in call.path_parameters()],
        "responses": answers,
    }
    if call.method == "GET":
        made["parameters"] += _query(request_model(call))
    else:
        made["requestBody"] = {"required": True, "content": _content(request_model(call))}
    if any(one.name == "idempotency_key" for one in call.parameters):
        made["parameters"].append(
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}
        )
    return made


def _in_path(call: Call, name: str) -> dict[str, Any]:
    help = call.parameter(name).help
    schema = {"type": "string", "description": help}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(model: type[BaseModel]) -> list[dict[str, Any]]:
    schema = model.model_json_schema(ref_template=REFERENCE)
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": {key: value for key, value in held.items() if key != "title"},
        }
        for name, held in schema["properties"].items()
    ]


def _answer(meaning: str, model: type[BaseModel]) -> dict[str, Any]:
    return {"description": meaning, "content": _content(model)}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(model=model.__name__)}}}
