"""Doors: nothing behind them is reached by a wrong name, a strange page or without a token."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from worlddb.faces.http.access_tokens import make_access
from worlddb.memory.memory import Memory

from .serving import JSON, ROUTES, Site, serving, token

OPEN = ("/health", "/openapi.json")
PAGE = "https://app.example.org"


@pytest.fixture(scope="module")
def guarded(memory: Memory) -> Iterator[Site]:
    """A server with tokens, one allowed name and one allowed page."""
    past = datetime.now(UTC) - timedelta(seconds=1)
    tokens = [
        token("root-token", admin=True),
        token("ada-token", bounds={"user_id": ("ada",)}),
        token("old-token", admin=True, expires=past),
    ]
    access = make_access(
        host="127.0.0.1",
        tokens=tokens,
        allowed_hosts=["memory.example.org"],
        allowed_origins=[PAGE],
    )
    with serving(memory, access) as made:
        yield made


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_route_answers_to_a_name_that_is_not_the_servers(
    site: Site, guarded: Site, method: str, path: str
) -> None:
    for server in (site, guarded.as_("root-token")):
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost@evil.example"):
            answer = server.send(method, path, b"{}", JSON | {"Host": host})
            assert answer.error.startswith("421 misdirected"), host


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_route_answers_to_a_page_of_another_place(
    site: Site, guarded: Site, method: str, path: str
) -> None:
    for server in (site, guarded.as_("root-token")):
        for origin in ("https://evil.example", "null", "http://localhost:1", "file://"):
            answer = server.send(method, path, b"{}", JSON | {"Origin": origin})
            assert answer.error.startswith("403 rejected"), origin
            assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if route[1] not in OPEN])
def test_no_route_answers_without_a_token_that_opens(guarded: Site, method: str, path: str) -> None:
    absent = guarded.send(method, path, b"{}", JSON)
    assert absent.error.startswith("401 unauthorized: send a token")
    assert absent.headers["www-authenticate"] == 'Bearer realm="worlddb"'
    for wrong in ("Bearer nonsense", "Bearer", "Bearer ", "Bearer old-token", "Basic root-token"):
        answer = guarded.send(method, path, b"{}", JSON | {"Authorization": wrong})
        assert answer.error.startswith("401 unauthorized: this token is not valid here"), wrong
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_health_and_the_description_need_no_token_and_tell_no_secret(guarded: Site) -> None:
    assert guarded.get("/health").data["status"] == "ok"
    assert guarded.get("/openapi.json").data["components"]["securitySchemes"]
    assert guarded.get("/.well-known/oauth-protected-resource").status == 404
    assert set(guarded.get("/health").data) == {"status", "version"}


def test_the_kind_of_a_token_may_be_written_in_any_case(guarded: Site) -> None:
    for written in ("bearer root-token", "BEARER  root-token "):
        answer = guarded.send("GET", "/v1/scopes", headers={"Authorization": written})
        assert answer.status == 200


def test_metrics_of_everybody_need_a_token_that_opens_everything(guarded: Site) -> None:
    assert guarded.as_("root-token").get("/metrics").status == 200
    for path in ("/metrics", "/metrics%0A", "/metrics?x=1"):
        assert guarded.as_("ada-token").get(path).status in (403, 404), path


def test_an_allowed_name_and_an_allowed_page_come_in(guarded: Site) -> None:
    named = {"Host": "memory.example.org", "Authorization": "Bearer root-token"}
    assert guarded.send("GET", "/v1/scopes", headers=named).status == 200
    answer = guarded.send("GET", "/v1/scopes", headers=named | {"Origin": PAGE})
    assert answer.status == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    own = guarded.send(
        "GET", "/v1/scopes", headers=named | {"Origin": "https://memory.example.org"}
    )
    assert own.status == 200
    assert "access-control-allow-origin" not in own.headers


def test_a_browser_may_ask_first_whether_an_allowed_page_may_call(guarded: Site) -> None:
    asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
    answer = guarded.send("OPTIONS", "/v1/memories", headers=asked)
    assert answer.status == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "Authorization" in answer.headers["access-control-allow-headers"]
    refused = guarded.send("OPTIONS", "/v1/memories", headers=asked | {"Origin": "https://evil"})
    assert refused.status == 403
    absent = guarded.send("GET", "/v1/scopes", headers={"Origin": PAGE})
    assert absent.status == 401
    assert absent.headers["access-control-allow-origin"] == PAGE


def test_two_names_or_none_are_refused(site: Site) -> None:
    twice = b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n"
    none = b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"
    old = b"GET /health HTTP/1.0\r\n\r\n"
    assert site.raw(twice).startswith(b"HTTP/1.1 400")
    assert site.raw(none).startswith(b"HTTP/1.1 400")
    assert site.raw(old).startswith(b"HTTP/1.1 421")


def test_two_tokens_are_refused(guarded: Site) -> None:
    answer = guarded.raw(
        b"GET /v1/scopes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Authorization: Bearer root-token\r\nAuthorization: Bearer ada-token\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 401")


def test_a_path_with_a_name_in_it_does_not_pass_for_the_host(site: Site) -> None:
    answer = site.raw(
        b"GET http://localhost/health HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 421")


def test_answers_are_not_kept_by_anybody_on_the_way(site: Site) -> None:
    for path in ("/health", "/v1/scopes", "/nowhere"):
        headers = site.get(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
