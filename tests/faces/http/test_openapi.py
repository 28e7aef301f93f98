"""The description of REST: what it allows is accepted, and code generators understand it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from worlddb.faces.call_parts import Call
from worlddb.faces.http.http_problems import TYPE_BY_STATUS
from worlddb.faces.http.rest_routes import REST_CALLS
from worlddb.memory.memory import Memory

from .serving import Site

RIGHT: list[tuple[str, dict[str, Any]]] = [
    ("/v1/memories", {"text": "I like tea"}),
    ("/v1/memories", {"text": "I like milk", "at": "2026-01-31T09:30:00Z", "source": ["a", "b"]}),
    ("/v1/memories", {"messages": [{"content": "I like rum"}], "user_id": ["ada", "bob"]}),
    ("/v1/recall", {"query": "tea", "k": 10.0}),
    ("/v1/recall", {"query": "tea", "k": 10, "types": ["Memory"]}),
    ("/v1/files/write", {"path": "/empty.txt", "text": ""}),
    ("/v1/files/write", {"path": "/plan.txt", "text": "one two"}),
    ("/v1/files/edit", {"path": "/plan.txt", "old": " ", "new": ""}),
]
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("/v1/memories", {}),
    ("/v1/memories", {"text": None}),
    ("/v1/memories", {"text": "a", "messages": [{"content": "a"}]}),
    ("/v1/memories", {"text": "  "}),
    ("/v1/memories", {"text": "a\0b"}),
    ("/v1/memories", {"text": "a", "source": ""}),
    ("/v1/memories", {"text": "a", "idempotency_key": ""}),
    ("/v1/memories", {"text": "a", "user_id": " ada"}),
    ("/v1/memories", {"text": "a", "user_id": "a\0"}),
    ("/v1/memories", {"messages": []}),
    ("/v1/memories", {"messages": [{"content": ""}]}),
    ("/v1/recall", {"query": "tea", "k": 10.5}),
    ("/v1/undo", {"commit": 1, "run_id": None}),
    ("/v1/undo", {"commit": 1 << 63}),
    ("/v1/trust", {"trust": {}, "run_id": None}),
    ("/v1/files/edit", {"path": "/plan.txt", "old": "", "new": "a"}),
]
WRONG_BY_TYPE: dict[str, tuple[Any, ...]] = {
    "text": ("", " ", "\0"),
    "content": ("a\0b",),
    "texts": ("", "a\0b"),
    "id": ("", "xyz", "ab", "a" * 65, "abcd\n"),
    "time": ("", "soon"),
    "whole": ("", -1, 1 << 63),
    "choice": ("", "none of them"),
    "scope": ("", " ", "\0"),
    "names": ("",),
    "input": ("", "\0"),
}
"""What no call takes for a parameter of a type."""


@pytest.fixture(scope="module")
def described(site: Site) -> dict[str, Any]:
    found: dict[str, Any] = site.get("/openapi.json").data
    return found


def body_of(described: dict[str, Any], path: str) -> Draft202012Validator:
    schema = described["paths"][path]["post"]["requestBody"]["content"]["application/json"][
        "schema"
    ]
    return Draft202012Validator(schema | {"components": described["components"]})


@pytest.mark.parametrize(("path", "body"), RIGHT)
def test_what_the_schema_allows_is_accepted(
    site: Site, described: dict[str, Any], path: str, body: dict[str, Any]
) -> None:
    assert list(body_of(described, path).iter_errors(body)) == []
    assert site.post(path, **body).status == 200


@pytest.mark.parametrize(("path", "body"), WRONG)
def test_what_is_refused_is_not_allowed_by_the_schema(
    site: Site, described: dict[str, Any], path: str, body: dict[str, Any]
) -> None:
    assert site.post(path, **body).status == 400
    assert list(body_of(described, path).iter_errors(body))


def test_the_answer_of_a_consolidation_is_described_with_its_counts(
    site: Site, described: dict[str, Any]
) -> None:
    told = site.post("/v1/consolidate", dry_run=True).data
    schema = described["components"]["schemas"]["ConsolidationReport"]
    whole = Draft202012Validator(schema | {"components": described["components"]})
    assert list(whole.iter_errors(told)) == []
    assert {"written", "complete"} <= told.keys() & set(schema["required"])


def test_a_body_is_a_plain_object_that_a_generator_can_make_a_class_of(
    described: dict[str, Any],
) -> None:
    schemas = described["components"]["schemas"]
    for name in (one for one in schemas if one.endswith("Request") or one == "ChatMessage"):
        held = schemas[name]
        assert (held["type"], held["title"]) == ("object", name)
        assert not {"oneOf", "anyOf", "allOf", "not"} & held.keys()
        for one in held["properties"].values():
            # Generators take a default for a promise that the field is there.
            assert "default" not in one
            # OpenAI's messages have a null where a call of a tool says it all; nothing else has.
            assert name == "ChatMessage" or {"type": "null"} not in one.get("anyOf", [])
    assert schemas["WriteTextRequest"]["required"] == ["text"]
    assert schemas["WriteMessagesRequest"]["required"] == ["messages"]
    assert schemas["RecallRequest"]["properties"]["k"]["description"].endswith("Default: 10.")


def test_every_status_the_pattern_of_ids_and_the_server_are_told(described: dict[str, Any]) -> None:
    assert described["servers"] == [{"url": "/"}]
    for path, methods in described["paths"].items():
        for operation in methods.values():
            statuses = {str(status) for status in TYPE_BY_STATUS} | {"200", "409", "502"}
            assert set(operation["responses"]) == statuses
            told = {
                one["name"]: one["schema"] for one in operation["parameters"] if one["in"] == "path"
            }
            if path != "/v1/identity/{id}":  # takes a name, too
                assert told.get("id", {}).get("pattern") in (None, "^[0-9a-fA-F]{4,64}$")
            assert told.get("name", {}).get("maxLength") in (None, 64)


def test_a_method_that_is_not_there_is_told_with_those_that_are(site: Site) -> None:
    assert site.send("DELETE", "/v1/memories").headers["allow"] == "GET, HEAD, POST"
    assert site.send("GET", "/mcp").headers["allow"] == "POST"


def test_a_session_cannot_be_amended_in_its_state(site: Site, memory: Memory) -> None:
    chat = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]
    session = memory.write(messages=chat, user_id="ada").id
    told = site.post(f"/v1/memories/{session}/amend", text="three", user_id="ada").error
    assert told.startswith("409 conflict: ")
    assert "amend one of its turns" in told


def test_a_day_is_its_beginning_in_utc(site: Site) -> None:
    written = site.post("/v1/memories", text="On a day", user_id="day", at="2026-03-01").data
    read = site.get(f"/v1/memories/{written['id']}?user_id=day&as_of=2026-03-02").data
    assert read["valid_from"] == "2026-03-01T00:00:00+00:00"


def test_an_empty_query_is_called_by_its_name(site: Site) -> None:
    told = site.post("/v1/recall", query=" ").error
    assert told == "400 invalid_input: query: give a question of at least one word, or names"


@pytest.mark.parametrize("call", REST_CALLS, ids=lambda call: call.name)
def test_every_call_refuses_what_its_schema_does_not_allow(site: Site, call: Call) -> None:
    path = call.path.format(id="ab" * 32, name="none")
    for one in call.parameters:
        wrong = WRONG_BY_TYPE.get(one.type, ())
        if one.name in call.path_parameters():
            told = [_send(site, call, call.path.format(**{one.name: "%00"}), {})]
        elif call.method == "GET":
            told = [_send(site, call, path, {one.name: value}) for value in wrong]
        else:
            told = [_send(site, call, path, {one.name: value}) for value in (None, *wrong)]
        for error in told:
            assert error.startswith("400 invalid_input: ")
            assert f"{one.name}" in error


def _send(site: Site, call: Call, path: str, given: dict[str, Any]) -> str:
    if call.method == "GET":
        return site.get(f"{path}?{urlencode(given)}").error
    return site.post(path, **given).error


@pytest.mark.parametrize("cursor", ["0", "ab", "zz", "9" * 40, "ab" * 32, "%20", "%00", ""])
@pytest.mark.parametrize(
    "path",
    [call.path for call in REST_CALLS if any(one.name == "cursor" for one in call.parameters)],
)
def test_a_cursor_that_no_page_gave_is_refused(site: Site, path: str, cursor: str) -> None:
    site.post("/v1/memories", text="I like tea")
    if path == "/v1/log" and cursor == "0":
        return  # No commit is before the first.
    assert "cursor" in site.get(f"{path}?cursor={cursor}").error
