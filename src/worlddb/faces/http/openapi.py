"""OpenAPI: the description of the REST API, made from the table and the models it runs on."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from worlddb import __version__
from worlddb.faces.http.operations import OPERATIONS, Operation
from worlddb.faces.http.problems import Problem
from worlddb.faces.http.shapes import shape_of

REFERENCE = "#/components/schemas/{model}"
PROBLEMS = {
    "400": "an argument is wrong",
    "401": "the token is missing, wrong or expired",
    "403": "outside the scopes of the token",
    "404": "no such memory here",
    "409": "ended already, or somebody else was first",
    "413": "the body is too large",
    "415": "the body is not JSON",
    "503": "too busy, or the store cannot be used; try again",
}


def openapi(*, with_tokens: bool) -> dict[str, Any]:
    """Return the description as OpenAPI 3.1."""
    models: list[type[BaseModel]] = [Problem]
    for operation in OPERATIONS:
        models.append(shape_of(operation.result))
        if operation.method != "GET":
            models.append(operation.given)
    unique = list(dict.fromkeys(models))
    _, schemas = models_json_schema(
        [(model, "validation") for model in unique], ref_template=REFERENCE
    )
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation)
    components: dict[str, Any] = {"schemas": schemas["$defs"]}
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


def _described(operation: Operation) -> dict[str, Any]:
    answers: dict[str, Any] = {"200": _holding("done", shape_of(operation.result))}
    for status, told in PROBLEMS.items():
        answers[status] = _holding(told, Problem)
    made: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"{(\w+)}", operation.path)
        ],
        "responses": answers,
    }
    if operation.method == "GET":
        made["parameters"] += _query(operation.given)
    else:
        made["requestBody"] = {"required": True, "content": _content(operation.given)}
    if "idempotency_key" in operation.given.model_fields:
        made["parameters"].append(
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}
        )
    return made


def _query(given: type[BaseModel]) -> list[dict[str, Any]]:
    schema = given.model_json_schema(ref_template=REFERENCE)
    return [
        {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "schema": {key: value for key, value in held.items() if key != "title"},
        }
        for name, held in schema["properties"].items()
    ]


def _holding(told: str, model: type[BaseModel]) -> dict[str, Any]:
    return {"description": told, "content": _content(model)}


def _content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": REFERENCE.format(model=model.__name__)}}}
