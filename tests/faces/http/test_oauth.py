"""Signing in with an identity provider: a resource server of OAuth 2.1, against a real issuer."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from mcp import Client as McpClient
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from worlddb import Memory
from worlddb.errors import InvalidInputError
from worlddb.faces.face_settings import Settings, settings_from
from worlddb.faces.http import oauth_tokens
from worlddb.faces.http.access_tokens import access_of, make_access, oauth_rules
from worlddb.faces.http.auth_middleware import GUESSES_MAX
from worlddb.faces.http.http_problems import HttpError
from worlddb.faces.http.served_stores import check_tenants, tenant_stores

from .authorization_server import AuthorizationServer, SigningKey, authorization_server, new_key
from .serving import Site, serving, token

KEYS = (new_key("one", "RS256"), new_key("two"))
RESOURCE = "https://memory.example.org"


def rules(issuer: str, **options: Any) -> Any:
    """Return the rules that flags describe."""
    given = Namespace(oauth_issuer=issuer, **{f"oauth_{key}": one for key, one in options.items()})
    return oauth_rules(settings_from(given))


@dataclass
class Signed:
    """A server, its issuer, and its memory."""

    site: Site
    issuer: AuthorizationServer
    memory: Memory

    def as_(self, **claims: Any) -> Site:
        """Return the server as it is called with a token that has these claims."""
        return self.site.as_(self.issuer.token(**({"aud": RESOURCE} | claims)))


@pytest.fixture
def signed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Signed]:
    monkeypatch.setattr(oauth_tokens, "REFRESH_EVERY_S", 0.0)
    with (
        authorization_server(*KEYS) as issuer,
        Memory(":memory:", embedder="none", recluster="off") as memory,
    ):
        sign_in = rules(issuer.issuer, resource=RESOURCE)
        tokens = (token("static-token", bounds={"user_id": ("bob",)}),)
        access = make_access(host="127.0.0.1", tokens=tokens, sign_in=sign_in)
        with serving(memory, access) as site:
            yield Signed(site, issuer, memory)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.algorithm)
def test_a_token_of_the_issuer_opens_the_scope_of_its_subject(
    signed: Signed, key: SigningKey
) -> None:
    ada = signed.site.as_(signed.issuer.token(key, aud=[RESOURCE, "other"]))
    assert ada.post("/v1/memories", text="I like green tea.").status == 200
    assert ada.get("/v1/access").data | {"version": ""} == {
        "version": "",
        "token": "ada (signed in)",
        "role": "write",
        "read_only": False,
        "admin": False,
        "manages_tokens": False,
        "bounds": {"user_id": ["ada"]},
    }
    assert ada.post("/v1/memories", text="x", user_id="bob").status == 403
    assert ada.tool("memory_recall", query="tea")[0]
    [commit] = signed.memory.db.log(limit=1, newest_first=True)
    assert commit.actor == "http ada (signed in)"
    bob = signed.as_(sub="bob")
    assert bob.get("/v1/memories").data["memories"] == []
    assert signed.site.as_("static-token").get("/v1/access").data["bounds"] == {"user_id": ["bob"]}


def test_nobody_is_let_in_without_a_token_and_is_told_where_to_get_one(signed: Signed) -> None:
    for path, end in (("/v1/memories", ""), ("/mcp", "/mcp")):
        answer = signed.site.send("POST", path, b"{}")
        assert answer.status == 401
        place = f"{RESOURCE}/.well-known/oauth-protected-resource{end}"
        assert answer.headers["www-authenticate"] == (
            f'Bearer realm="worlddb", resource_metadata="{place}", '
            'scope="worlddb:read worlddb:write worlddb:curate"'
        )
        told = signed.site.get(urlsplit(place).path)
        assert told.data == {
            "resource": RESOURCE + end,
            "authorization_servers": [signed.issuer.issuer],
            "scopes_supported": [
                *("worlddb:read", "worlddb:write", "worlddb:curate", "worlddb:administer")
            ],
            "bearer_methods_supported": ["header"],
            "resource_name": "WorldDB",
        }
    assert signed.issuer.fetched == []  # Keys are fetched when the first token comes.


def test_scopes_are_roles(signed: Signed) -> None:
    reader = signed.as_(scope="openid worlddb:read")
    assert reader.get("/v1/memories").status == 200
    assert reader.post("/v1/memories", text="x").status == 403
    some = signed.as_().post("/v1/memories", text="I like green tea.").data["id"]
    assert signed.as_().post(f"/v1/memories/{some}/retire").status == 403
    curator = signed.as_(scope=None, scp=["worlddb:curate"])
    assert curator.post(f"/v1/memories/{some}/retire").status == 200
    root = signed.as_(scope="worlddb:read worlddb:administer")
    access = root.get("/v1/access").data
    assert (access["role"], access["admin"], access["bounds"]) == ("administer", True, {})
    for odd in (7, True, {"worlddb:administer": 1}, [["worlddb:administer"]], None):
        assert signed.as_(scope=odd).get("/v1/memories").status == 403
    none = signed.as_(scope="openid profile").get("/v1/memories")
    assert none.error.startswith("403 rejected: this sign-in has none of the scopes")
    assert 'error="insufficient_scope"' in none.headers["www-authenticate"]


def encoded(data: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).rstrip(b"=").decode()


def unsigned(issuer: AuthorizationServer) -> str:
    claims = jwt.decode(issuer.token(aud=RESOURCE), options={"verify_signature": False})
    return f"{encoded({'alg': 'none', 'kid': 'two', 'typ': 'JWT'})}.{encoded(claims)}."


def by_the_public_key(issuer: AuthorizationServer) -> str:
    """Return a token whose secret of HS256 is the public key, which everybody knows."""
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = issuer.keys[0].private.public_key().public_bytes(serialization.Encoding.PEM, kind)
    claims = jwt.decode(issuer.token(aud=RESOURCE), options={"verify_signature": False})
    head = f"{encoded({'alg': 'HS256', 'kid': 'one', 'typ': 'JWT'})}.{encoded(claims)}"
    made = hmac.digest(pem, head.encode(), hashlib.sha256)
    return f"{head}.{base64.urlsafe_b64encode(made).rstrip(b'=').decode()}"


def of_another_kind(issuer: AuthorizationServer) -> str:
    """Return a token that names the id of one key and the algorithm of another."""
    key = issuer.keys[1]
    return issuer.token(SigningKey("one", key.algorithm, key.private), aud=RESOURCE)


def altered(issuer: AuthorizationServer) -> str:
    head, claims, signature = issuer.token(aud=RESOURCE).split(".")
    told = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    return f"{head}.{encoded(told | {'sub': 'bob'})}.{signature}"


NOW = int(time.time())
ATTACKS: dict[str, Callable[[AuthorizationServer], str]] = {
    "another audience": lambda one: one.token(aud="https://other.example.org"),
    "no audience": lambda one: one.token(),
    "another issuer": lambda one: one.token(aud=RESOURCE, iss="https://evil.example.org"),
    "no issuer": lambda one: one.token(aud=RESOURCE, iss=None),
    "expired": lambda one: one.token(aud=RESOURCE, exp=NOW - 3_600),
    "no expiry": lambda one: one.token(aud=RESOURCE, exp=None),
    "not yet valid": lambda one: one.token(aud=RESOURCE, nbf=NOW + 36_000),
    "no subject": lambda one: one.token(aud=RESOURCE, sub=None),
    "an unknown key": lambda one: one.token(new_key("three"), aud=RESOURCE),
    "a key that says it is known": lambda one: one.token(new_key("two"), aud=RESOURCE),
    "no signature": unsigned,
    "the public key as a secret": by_the_public_key,
    "the algorithm of another key": of_another_kind,
    "altered claims": altered,
    "huge": lambda one: one.token(aud=RESOURCE, more="x" * 20_000),
    "no token": lambda _: "a.b.c",
    "binary": lambda _: "\x7f.\x7f.\x7f",
}


def test_a_wrong_token_is_refused(signed: Signed) -> None:
    for name, attack in ATTACKS.items():
        answer = signed.site.as_(attack(signed.issuer)).get("/v1/memories")
        told = "401 unauthorized: this token is not valid here, or has expired"
        assert answer.error == told, name
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert signed.as_().get("/v1/memories").status == 200


def test_a_subject_that_is_no_scope_opens_nothing(signed: Signed) -> None:
    for subject in ("", " ", "a\nb", "x" * 600):
        answer = signed.as_(sub=subject).get("/v1/memories")
        assert answer.error.startswith("403 rejected: this sign-in opens nothing here"), subject


def test_keys_are_kept_and_new_ones_are_found(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = signed.issuer
    for _ in range(3):
        assert signed.as_().get("/v1/memories").status == 200
    assert issuer.fetched == ["/.well-known/openid-configuration", "/jwks"]
    issuer.keys[:] = [new_key("three")]  # Rotated: an unknown key is looked for at once.
    assert signed.as_().get("/v1/memories").status == 200
    assert len(issuer.fetched) == 4
    old = signed.site.as_(issuer.token(KEYS[1], aud=RESOURCE))
    assert old.get("/v1/memories").status == 401
    # Made-up key ids make us ask once, not each time.
    monkeypatch.setattr(oauth_tokens, "REFRESH_EVERY_S", 3_600.0)
    before = len(issuer.fetched)
    for number in range(3):
        made_up = signed.site.as_(issuer.token(new_key(f"new{number}"), aud=RESOURCE))
        assert made_up.get("/v1/memories").status == 401
    assert len(issuer.fetched) == before
    # Old keys are fetched again; while the issuer is silent, they hold.
    monkeypatch.setattr(oauth_tokens, "REFRESH_EVERY_S", 0.0)
    monkeypatch.setattr(oauth_tokens, "KEYS_KEPT_S", 0.0)
    issuer.broken = True
    assert signed.as_().get("/v1/memories").status == 200
    assert len(issuer.fetched) > before
    monkeypatch.setattr(oauth_tokens, "KEYS_HELD_S_MAX", 0.0)
    silent = signed.as_().get("/v1/memories")
    assert silent.error == "503 busy: the identity provider does not answer; try again later"
    issuer.broken = False
    monkeypatch.setattr(oauth_tokens, "KEYS_HELD_S_MAX", 60.0)
    assert signed.as_().get("/v1/memories").status == 200


def test_an_issuer_that_is_silent_holds_up_everybody_once(
    signed: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert signed.as_().get("/v1/memories").status == 200
    monkeypatch.setattr(oauth_tokens, "KEYS_KEPT_S", 0.0)
    monkeypatch.setattr(oauth_tokens, "REFRESH_EVERY_S", 1.0)
    monkeypatch.setattr(oauth_tokens, "FETCH_S_MAX", 1.5)
    time.sleep(1.0)  # Since the keys were fetched.
    before = len(signed.issuer.fetched)
    signed.issuer.silence.clear()
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(signed.as_().get, "/v1/memories") for _ in range(6)]
        assert [call.result().status for call in calls] == [200] * 6
    assert len(signed.issuer.fetched) == before + 1  # Not once for each that waited.


def test_a_slow_issuer_is_given_up_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth_tokens, "FETCH_S_MAX", 1.0)
    asked: list[str] = []

    def slow(address: str) -> dict[str, Any]:
        asked.append(address)
        time.sleep(0.8)
        return {"issuer": "https://login.example.org", "jwks_uri": "https://login.example.org/k"}

    monkeypatch.setattr(oauth_tokens, "_json_at", slow)
    keys = oauth_tokens.SigningKeys(rules("https://login.example.org"))

    async def tries() -> None:
        began = time.monotonic()
        for _ in range(3):
            with pytest.raises(HttpError, match="does not answer"):
                await keys.find("one")
        assert time.monotonic() - began < 1.5  # The second address would have ended at 1.6.

    asyncio.run(tries())
    assert len(asked) == 2


def test_who_guesses_holds_up_nobody_who_signs_in_from_the_same_address(signed: Signed) -> None:
    for number in range(GUESSES_MAX):
        assert signed.site.as_(f"guess-{number}").get("/v1/memories").status == 401
    assert signed.site.as_("one-more").get("/v1/memories").status == 429
    assert signed.site.as_("static-token").get("/v1/memories").status == 429  # Might be a guess.
    for number in range(3):
        assert signed.as_(jti=str(number)).get("/v1/memories").status == 200
    assert signed.as_(aud="elsewhere").get("/v1/memories").status == 429


def test_a_claim_that_the_issuer_has_not_verified_opens_nothing() -> None:
    with authorization_server(KEYS[1]) as issuer, Memory(":memory:", embedder="none") as memory:
        sign_in = rules(issuer.issuer, audience=["api"], bounds=["user_id=email"])
        access = make_access(host="127.0.0.1", tokens=(), sign_in=sign_in)
        with serving(memory, access) as site:
            for verified, status in ((True, 200), (None, 200), (False, 403), ("false", 403)):
                made = issuer.token(aud="api", email="ada@x.org", email_verified=verified)
                answer = site.as_(made).get("/v1/memories")
                assert answer.status == status, verified
            assert answer.error.endswith("the issuer has not verified the claim 'email'")


def test_nobody_signs_in_under_the_name_of_a_token(signed: Signed) -> None:
    for site in (signed.as_(sub="static-token"), signed.site.as_("static-token")):
        site.post("/v1/memories", text="I like green tea.")
    commits = signed.memory.db.log(limit=2, newest_first=True)
    assert [one.actor for one in commits] == [
        "http static-token",
        "http static-token (signed in)",
    ]


def test_settings_name_the_claims_the_scopes_and_the_audience() -> None:
    with authorization_server(KEYS[1]) as issuer, Memory(":memory:", embedder="none") as memory:
        sign_in = rules(
            issuer.issuer,
            audience=["api"],
            jwks_url=f"{issuer.issuer}/jwks",
            roles=["curate=memory"],
            bounds=["user_id=email", "app_id=azp"],
            per_minute="2",
        )
        access = make_access(host="127.0.0.1", tokens=(), sign_in=sign_in)
        with serving(memory, access) as site:
            made = issuer.token(aud="api", scope="memory", email="ada@x.org", azp=["a", "b"])
            ada = site.as_(made)
            told = ada.get("/v1/access").data
            assert told["role"] == "curate"
            assert told["bounds"] == {"user_id": ["ada@x.org"], "app_id": ["a", "b"]}
            assert issuer.fetched == ["/jwks"]
            assert ada.get("/v1/access").status == 200
            assert ada.get("/v1/access").error.startswith("429 too_many_requests")
            poor = site.as_(issuer.token(aud="api", scope="memory", sub="bob"))
            assert "no claim 'email'" in poor.get("/v1/memories").error
            usual = site.as_(issuer.token(aud=site.url, scope="memory", sub="eve"))
            assert usual.get("/v1/memories").status == 401


def test_the_tenant_is_a_claim(tmp_path: Any) -> None:
    folder = str(tmp_path)
    settings = Settings(path="unused.db", stores=folder, embedder="none")
    stores = tenant_stores(settings, folder)
    with authorization_server(KEYS[1]) as issuer:
        sign_in = rules(issuer.issuer, resource=RESOURCE, tenant_claim="org")
        access = make_access(host="127.0.0.1", tokens=(), sign_in=sign_in)
        try:
            with serving(stores, access) as site:  # type: ignore[arg-type]
                acme, other = (
                    site.as_(issuer.token(aud=RESOURCE, org=name)) for name in ("acme", "other")
                )
                assert acme.post("/v1/memories", text="I like green tea.").status == 200
                assert len(acme.get("/v1/memories").data["memories"]) == 1
                assert other.get("/v1/memories").data["memories"] == []
                named = {"WorldDB-Tenant": "acme"}
                assert other.send("GET", "/v1/memories", headers=named).status == 403
                for org in (None, "../acme", 7):
                    wrong = issuer.token(aud=RESOURCE, org=org, scope="worlddb:administer")
                    assert site.as_(wrong).get("/v1/memories").status == 403
        finally:
            stores.close()
        given = settings_from(Namespace(stores=folder))
        check_tenants(given, access)
        with pytest.raises(InvalidInputError, match="belong together"):
            check_tenants(settings_from(Namespace()), access)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"issuer": "http://login.example.org"}, "oauth_issuer: .* has no TLS"),
        ({"issuer": "login"}, "oauth_issuer: give a URL"),
        ({"jwks_url": "file:///etc/passwd"}, "oauth_jwks_url: give a URL"),
        ({"roles": ["king=x"]}, "oauth_roles: 'king=x': write it as read=NAME"),
        ({"bounds": ["user_id"]}, "oauth_bounds: 'user_id': write it as user_id=NAME"),
    ],
)
def test_a_wrong_setting_is_told(options: dict[str, Any], complaint: str) -> None:
    given = {"oauth_issuer": "https://login.example.org"}
    given |= {f"oauth_{key}": one for key, one in options.items()}
    with pytest.raises(InvalidInputError, match=complaint):
        access_of(settings_from(Namespace(**given)))


class Storage:
    """Keeps what a client of MCP has got, for one test."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


@pytest.mark.anyio
async def test_a_client_of_mcp_finds_the_issuer_signs_in_and_remembers() -> None:
    with authorization_server(KEYS[1]) as issuer, Memory(":memory:", embedder="none") as memory:
        access = make_access(host="127.0.0.1", tokens=(), sign_in=rules(issuer.issuer))
        with serving(memory, access) as site:
            came_back: list[str] = []

            async def to_browser(url: str) -> None:
                came_back.append(issuer.authorize(url))

            async def from_browser() -> AuthorizationCodeResult:
                told = parse_qs(urlsplit(came_back[-1]).query)
                return AuthorizationCodeResult(code=told["code"][0], state=told["state"][0])

            storage = Storage()
            provider = OAuthClientProvider(
                server_url=f"{site.url}/mcp",
                client_metadata=OAuthClientMetadata(
                    client_name="test",
                    redirect_uris=["http://127.0.0.1:1/callback"],  # type: ignore[list-item]
                    token_endpoint_auth_method="none",
                ),
                storage=storage,
                redirect_handler=to_browser,
                callback_handler=from_browser,
            )
            async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
                transport = streamable_http_client(f"{site.url}/mcp", http_client=http)
                async with McpClient(transport) as client:
                    done = await client.call_tool("memory_write", {"text": "I like green tea."})
                    assert not done.is_error, done.content
            claims = jwt.decode(storage.tokens.access_token, options={"verify_signature": False})
            assert claims["aud"] == f"{site.url}/mcp"
            assert claims["scope"] == "worlddb:read worlddb:write worlddb:curate"
            assert [one.text for one in memory.list(user_id="ada")] == ["I like green tea."]
