"""REST: the nine operations, what they refuse, and that the description says the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    ProviderError,
    RejectedError,
    StorageError,
)
from worlddb.faces.call_models import result_class, result_model
from worlddb.faces.call_parts import EXTRACTORS, Call
from worlddb.faces.calls import call_named
from worlddb.faces.http.http_problems import problem_of
from worlddb.faces.http.rest_routes import REST_CALLS, request_model
from worlddb.ingest.extractors import CHOICES

from .serving import JSON, Site


def shaped(name: str, data: Any) -> Any:
    """Check an answer against its description and return it."""
    result_model(result_class(call_named(name))).model_validate_json(json.dumps(data))
    return data


def test_a_memory_is_written_found_read_amended_and_retired(site: Site) -> None:
    made = shaped(
        "write",
        site.post(
            "/v1/memories",
            text="My manager Sarah Chen likes green tea",
            user_id="rest",
            agent_id=["helper", "other"],
            source="chat 1",
            at="2026-01-31T09:30:00+01:00",
            metadata={"a": None, "b": [1, {"c": 2}]},
        ).data,
    )
    assert made["created"]
    assert "Sarah Chen" in [entity["name"] for entity in made["entities"]]
    found = shaped("recall", site.post("/v1/recall", query="Who likes tea?", user_id="rest").data)
    assert found["hits"][0]["node"]["id"] == made["id"]
    page = shaped("list", site.get("/v1/memories?user_id=rest&agent_id=other&limit=1").data)
    read = shaped("read", site.get(f"/v1/memories/{made['id'][:12]}").data)
    assert [read] == page["memories"]
    assert read["metadata"] == {"a": None, "b": [1, {"c": 2}]}
    assert read["provenance"] == ["chat 1"]
    assert read["valid_from"] == "2026-01-31T08:30:00+00:00"
    amended = shaped(
        "amend", site.post(f"/v1/memories/{made['id']}/amend", text="Sarah likes coffee").data
    )
    assert amended["superseded"] == [made["id"]]
    ended = shaped("retire", site.post(f"/v1/memories/{amended['id']}/retire").data)
    assert ended["ids"] == [amended["id"]]
    assert site.get("/v1/memories?user_id=rest").data["memories"] == []
    whole = site.get("/v1/memories?user_id=rest&include_retired=true").data["memories"]
    assert [one["id"] for one in whole] == [amended["id"], made["id"]]


def test_a_chat_is_written_as_messages(site: Site) -> None:
    told = [
        {"role": "user", "content": "I moved to Paris", "at": "2026-01-31T09:30:00Z"},
        {"role": "assistant", "content": "Nice!"},
    ]
    made = site.post("/v1/memories", messages=told, user_id="chat").data
    as_text = site.post("/v1/memories", text=told, user_id="chat").data
    assert (as_text["created"], as_text["id"]) == (False, made["id"])
    read = site.get(f"/v1/memories/{made['id']}").data
    assert read["type"] == "Session"
    assert read["text"] == "user: I moved to Paris\nassistant: Nice!"


def test_scopes_are_listed_retired_and_purged(site: Site) -> None:
    for number in range(3):
        site.post("/v1/memories", text=f"fact {number}", user_id="whole", run_id="once")
    names = [one["name"] for one in shaped("list_scopes", site.get("/v1/scopes").data)["scopes"]]
    assert {"user:whole", "run:once"} <= set(names)
    runs = site.get("/v1/scopes?kind=run&limit=1").data
    assert [one["kind"] for one in runs["scopes"]] == ["run"]
    assert site.post("/v1/retire_all").error.startswith("400 invalid_input: retire_all: name")
    unsaid = site.post("/v1/retire_all", user_id="whole").error
    assert unsaid.startswith("400 invalid_input: retire_all: to confirm, pass confirm='whole'")
    ended = shaped("retire_all", site.post("/v1/retire_all", user_id="whole", confirm="whole").data)
    assert len(ended["ids"]) == 3
    missing = site.post("/v1/purge_scope", user_id="whole")
    assert missing.error.startswith("400 invalid_input: purge_scope: to confirm")
    wrong = site.post("/v1/purge_scope", user_id="whole", confirm="other")
    assert wrong.error.startswith("400 invalid_input: purge_scope: to confirm")
    purged = shaped("purge_scope", site.post("/v1/purge_scope", run_id="once", confirm=True).data)
    assert purged["scopes"] == [{"kind": "run", "value": "once"}]


def test_pages_follow_one_another(site: Site) -> None:
    written = [
        site.post("/v1/memories", text=f"page {number}", user_id="pages").data["id"]
        for number in range(5)
    ]
    found: list[str] = []
    cursor = ""
    while cursor is not None:
        page = site.get(f"/v1/memories?user_id=pages&limit=2{cursor and '&cursor='}{cursor}").data
        found += [one["id"] for one in page["memories"]]
        cursor = page["next_cursor"]
    assert found == written[::-1]
    wrong = site.get("/v1/memories?cursor=nonsense")
    assert wrong.error.startswith("400 invalid_input: cursor")


def test_the_same_key_writes_once_in_the_body_and_in_the_header(site: Site) -> None:
    given: dict[str, Any] = {"text": "keyed", "user_id": "keys"}
    first = site.post("/v1/memories", **given, idempotency_key="k1").data
    again = site.post("/v1/memories", {"Idempotency-Key": "k1"}, **given).data
    both = site.post("/v1/memories", {"Idempotency-Key": "k1"}, **given, idempotency_key="k1").data
    assert (first["created"], again["created"], both["created"]) == (True, False, False)
    assert first["id"] == again["id"] == both["id"]
    other = site.post("/v1/memories", {"Idempotency-Key": "k1"}, text="other", user_id="keys")
    assert other.error.startswith("409 conflict: idempotency_key 'k1' was used")
    for empty in ({"headers": {"Idempotency-Key": ""}}, {"idempotency_key": ""}):
        refused = site.post("/v1/memories", text="empty key", user_id="keys", **empty)
        assert refused.error.startswith("400 invalid_input: idempotency_key: is empty")
    split = site.post("/v1/memories", {"Idempotency-Key": "k2"}, **given, idempotency_key="k1")
    assert split.error.startswith("400 invalid_input: idempotency_key")


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/v1/memories", {}, "give either text or messages"),
        ("/v1/memories", {"text": "x", "messages": [{"content": "x"}]}, "give either text or"),
        ("/v1/memories", {"messages": "x"}, "messages"),
        ("/v1/memories", {"messages": []}, "there is no text"),
        ("/v1/memories", {"messages": [{"role": "user"}]}, "there is no text"),
        ("/v1/memories", {"text": 5}, ": text: give a text or a list of messages"),
        ("/v1/memories", {"text": {"a": 1}}, ": text: give a text or a list of messages"),
        ("/v1/memories", {"text": ""}, "there is no text"),
        ("/v1/memories", {"text": "  "}, "there is no text"),
        (
            "/v1/memories",
            {"text": "x", "nonsense": 1},
            "nonsense: there is no such argument; known are text,",
        ),
        ("/v1/memories", {"text": "x", "settings": {}}, "settings: there is no such argument"),
        ("/v1/memories", {"text": "x", "user_id": 5}, "user_id"),
        ("/v1/memories", {"text": "x", "user_id": []}, "user_id"),
        ("/v1/memories", {"text": "x", "user_id": "x" * 600}, "user_id"),
        ("/v1/memories", {"text": "x", "user_id": "a\u0000b"}, "user_id: has a NUL"),
        ("/v1/memories", {"text": "x", "user_id": " a"}, "white space"),
        ("/v1/memories", {"text": "x", "user_id": "a\u202eb"}, "control characters"),
        ("/v1/memories", {"text": "x", "at": "2026-01-31T09:30:00"}, "has no time zone"),
        ("/v1/memories", {"text": "x", "at": "yesterday"}, "not ISO-8601"),
        ("/v1/memories", {"text": "x", "metadata": [1]}, "metadata"),
        ("/v1/memories", {"text": "x", "metadata": {"a": "x" * 70_000}}, "the limit is"),
        ("/v1/memories", {"text": "x" * 1_100_000}, "at most 1048576 characters"),
        ("/v1/memories", {"text": "é" * 600_000}, "the limit is"),
        ("/v1/memories", {"messages": [{"content": "a"}] * 10_001}, "at most 10000 items"),
        ("/v1/memories", {"text": "x", "extractor": "llm"}, "extractor"),
        ("/v1/memories", {"text": [{"role": "user"}]}, "there is no text"),
        ("/v1/memories", {"messages": [{"role": "user", "content": 5}]}, "content"),
        ("/v1/memories", {"messages": [{"role": "user", "content": "x", "at": "now"}]}, "at"),
        ("/v1/recall", {"query": "x", "k": "5"}, "k: Input should be a valid integer"),
        ("/v1/recall", {"query": "x", "k": 0}, "k: Input should be greater"),
        ("/v1/recall", {"query": "x", "k": 1_001}, "k: Input should be less"),
        ("/v1/recall", {"query": "x", "k": True}, "k: Input should be a valid integer"),
        ("/v1/recall", {"query": "x", "include_retired": "yes"}, "include_retired"),
        ("/v1/memories/abcd/amend", {"text": ["x"]}, "text"),
        ("/v1/memories/abcd/amend", {"text": " "}, "text"),
        ("/v1/memories/xyz/retire", {}, "not an id"),
        ("/v1/memories/abc/retire", {}, "too short"),
        ("/v1/memories/abcd/retire", {"id": "abcd"}, "id: there is no such argument"),
    ],
)
def test_a_wrong_argument_is_told_by_its_name(
    site: Site, path: str, body: dict[str, Any], told: str
) -> None:
    answer = site.send("POST", path, json.dumps(body).encode(), JSON)
    assert answer.error.startswith("400 invalid_input: ")
    assert told in answer.error
    assert "x" * 50 not in answer.error


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/v1/memories?limit=0", "limit: Input should be greater"),
        ("/v1/memories?limit=1001", "limit: Input should be less"),
        ("/v1/memories?limit=ten", "limit: Input should be a valid integer"),
        ("/v1/memories?limit=1&limit=2", "limit: is given 2 times"),
        ("/v1/memories?nonsense=1", "nonsense: there is no such argument"),
        *(
            (f"/v1/memories?include_retired={value}", "include_retired: Input should be a valid b")
            for value in ("perhaps", "1", "0", "671", "yes", "on", "t", "True", "+true", "null", "")
        ),
        *(
            (f"/v1/memories?limit={value}", "limit: Input should be a valid integer")
            for value in ("1_0", "05", "+5", "5.5", "true", "null", "[5]", '"5"', "NaN", "", "5 ")
        ),
        *(
            (f"/v1/fading?below={value}", "below: Input should be")
            for value in ("1_0", ".5", "NaN", "Infinity", "1.5", "true", "", "half")
        ),
        ("/v1/memories?user_id=", "user_id"),
        ("/v1/memories?as_of=2026-01-31T09:30:00", "add one, as in 2026-01-31T09:30:00Z"),
        ("/v1/scopes?kind=world", "kind"),
        ("/v1/scopes?user_id=ada", "user_id: there is no such argument"),
        ("/v1/memories/zzzz", "not an id"),
    ],
)
def test_a_wrong_query_is_told_by_its_name(site: Site, path: str, told: str) -> None:
    answer = site.get(path.replace(" ", "%20"))
    assert answer.error.startswith("400 invalid_input: ")
    assert told in answer.error


@pytest.mark.parametrize(
    "call", [one for one in REST_CALLS if one.method == "GET"], ids=lambda call: call.name
)
def test_the_largest_number_is_no_error_of_the_server(site: Site, call: Call) -> None:
    numbers = [one.name for one in call.parameters if one.type == "whole"]
    schema = request_model(call).model_json_schema()
    largest = {name: schema["properties"][name]["maximum"] for name in numbers}
    for chosen in numbers:
        needed = {name: 0 for name in schema.get("required", ()) if name in largest}
        needed |= {name: "x" for name in schema.get("required", ()) if name not in largest}
        answer = site.get(f"{call.path}?{urlencode(needed | {chosen: largest[chosen]})}")
        assert answer.status < 500, (chosen, answer.body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b'"text"',
        b"null",
        b'{"text": "\xff\xfe"}',
        b'{"text": "\\ud800"}',
        b'{"text": "x"} {"text": "y"}',
        b'{"text": "x", "metadata": {"a": NaN}}',
        b"\xff\xfe{\x00}\x00",
        b'{"text": "x", "metadata": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}",
        b"[" * 100_000,
    ],
)
def test_what_is_no_json_object_is_refused_and_the_server_stays(site: Site, body: bytes) -> None:
    answer = site.send("POST", "/v1/memories", body, JSON)
    assert answer.error.startswith("400 invalid_input")
    assert site.get("/health").status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"]
)
def test_a_body_has_to_say_that_it_is_json(site: Site, kind: str) -> None:
    answer = site.send("POST", "/v1/memories", b'{"text": "x"}', {"Content-Type": kind})
    assert answer.error.startswith("415 unsupported_media_type")
    coded = JSON | {"Content-Encoding": "gzip"}
    assert site.send("POST", "/v1/memories", b"\x1f\x8b", coded).status == 415
    lenient = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert site.send("POST", "/v1/recall", b'{"query": "x"}', lenient).status == 200


def test_arguments_of_a_write_do_not_stand_in_the_address(site: Site) -> None:
    answer = site.post("/v1/memories?user_id=ada", text="x")
    assert answer.error.startswith("400 invalid_input: give the arguments in the body")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/memories/..%2f..%2fetc%2fpasswd",
        "/v1/memories/../../etc/passwd",
        "/v1/memories/%2e%2e",
        "/v1/memories/%00",
        "/v1/memories/%ff",
        "/v1/memories/" + "a" * 5_000,
        "/v1/memories/",
        "/v1",
        "//v1/memories",
        "/etc/passwd",
    ],
)
def test_a_path_that_leads_nowhere_is_told_so(site: Site, path: str) -> None:
    answer = site.get(path)
    assert re.match("40[04] (invalid_input|not_found)", answer.error)
    assert b"root:" not in answer.body


def test_a_method_that_is_not_there_is_told_so(site: Site) -> None:
    answer = site.send("DELETE", "/v1/memories")
    assert answer.error == ("405 method_not_allowed: 405 Method Not Allowed: use GET or POST")
    posted = site.send("GET", "/v1/recall")
    assert posted.error.endswith("405 Method Not Allowed: use POST")
    assert set(site.send("PUT", "/health").headers["allow"].split(", ")) == {"GET", "HEAD"}


def test_each_branch_of_the_error_tree_has_its_status() -> None:
    for kind, status in (
        (InvalidInputError, 400),
        (NotFoundError, 404),
        (ConflictError, 409),
        (RejectedError, 403),
        (FormatError, 500),
        (CorruptionError, 500),
        (StorageError, 503),
        (ProviderError, 502),
    ):
        answer = problem_of(kind("/home/ada/memory.db: no"), "/home/ada/memory.db")
        assert answer.status_code == status
        told = json.loads(bytes(answer.body))["error"]
        assert told["message"] == "the store: no"
    bug = problem_of(ZeroDivisionError("inside"))
    assert bug.status_code == 500
    assert b"inside" not in bytes(bug.body)


def test_the_description_names_every_operation_and_nothing_that_is_not_there(site: Site) -> None:
    described = site.get("/openapi.json").data
    assert described["openapi"].startswith("3.1")
    assert "security" not in described
    found = {
        (held["operationId"], method.upper(), path)
        for path, methods in described["paths"].items()
        for method, held in methods.items()
    }
    assert found == {(one.name, one.method, one.path) for one in REST_CALLS}
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described)))
    assert names == set(described["components"]["schemas"])


def test_the_extractors_that_can_be_named_are_those_there_are() -> None:
    assert set(EXTRACTORS) == set(CHOICES)


def test_a_document_is_sent_as_text_and_never_read_from_the_server(
    site: Site, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("# Secret\n\nThe vault opens at noon.\n", encoding="utf-8")
    page = {"name": "a.html", "text": "<h1>Owls</h1><p>The owl sleeps.</p>"}
    made = shaped("write", site.post("/v1/memories", document=page, user_id="doc").data)
    hits = site.post("/v1/recall", query="owl", user_id="doc").data["hits"]
    assert [(hit["node"]["type"], hit["node"]["name"]) for hit in hits] == [("Passage", "Owls")]
    again = site.post("/v1/memories", document=page, user_id="doc").data
    assert (again["id"], again["created"], again["commit"]) == (made["id"], False, None)
    for wrong in (str(secret), {"path": str(secret)}, {"name": str(secret)}, {"text": 5}):
        assert site.post("/v1/memories", document=wrong, user_id="doc").status == 400
    site.post("/v1/memories", document={"text": str(secret), "name": str(secret)}, user_id="doc")
    assert "vault" not in json.dumps(site.get("/v1/memories?user_id=doc").data)


def test_files_are_written_changed_found_and_kept_in_every_version(site: Site) -> None:
    def changed(action: str, **given: Any) -> Any:
        return shaped(f"{action}_file", site.post(f"/v1/files/{action}", user_id="f", **given).data)

    first = changed("write", path="/notes/tea.md", text="Green tea: 80 degrees\n")
    assert first["created"]
    assert site.post("/v1/files/write", path="/notes/tea.md", text="x", new=True).status == 200
    again = site.post("/v1/files/write", path="/notes/tea.md", text="x", new=True, user_id="f")
    assert again.status == 409
    edit: Any = {"path": "/notes/tea.md", "old": "80", "new": "75"}
    changed("edit", **edit, version=first["version"][:8])
    stale = site.post("/v1/files/edit", user_id="f", **edit, version=first["version"])
    assert stale.status == 409
    read = shaped("read_file", site.get("/v1/files/read?path=/notes/tea.md&user_id=f").data)
    assert read["text"] == "Green tea: 75 degrees\n"
    old = f"/v1/files/read?path=/notes/tea.md&user_id=f&version={first['version']}"
    assert site.get(old).data["text"] == "Green tea: 80 degrees\n"
    listed = shaped("list_files", site.get("/v1/files/list?user_id=f&all=true").data)
    assert [one["path"] for one in listed["entries"]] == ["/notes", "/notes/tea.md"]
    found = shaped("glob_files", site.get("/v1/files/glob?pattern=*.md&user_id=f").data)
    assert found["paths"] == ["/notes/tea.md"]
    lines = shaped("grep_files", site.get("/v1/files/grep?pattern=degrees&user_id=f").data)
    assert [(one["path"], one["line"]) for one in lines["matches"]] == [("/notes/tea.md", 1)]
    changed("move", path="/notes", target="/old")
    changed("delete", path="/old/tea.md")
    assert site.get("/v1/files/read?path=/old/tea.md&user_id=f").status == 404
    assert site.get("/v1/files/list?user_id=g").data["entries"] == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"user_id": ""}, "user_id: String should have at least 1 character"),
        ({"user_id": ["a", ""]}, "user_id.1: String should have at least 1 character"),
        (
            {"source": 7},
            "source: Input should be a valid string or Input should be a valid array",
        ),
    ],
)
def test_a_value_of_several_types_is_refused_in_one_sentence(
    site: Site, given: dict[str, Any], told: str
) -> None:
    assert site.post("/v1/memories", text="x", **given).error == f"400 invalid_input: {told}"
