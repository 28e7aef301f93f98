"""OAuth tokens: a JWT of the authorisation server as an access token of this server.

    JWT ─▶ algorithm, key ─▶ signature, issuer, audience, times ─▶ role, bounds ─▶ AccessToken

O1  Only algorithms with a public key are accepted, whatever algorithm the token names.
O2  Keys are fetched at the first token, never from an address in a token. They are fetched again
    when they are old, and for an unknown key id at most once in `REFRESH_EVERY_S`.
O3  A provider that does not answer delays one request by at most `FETCH_S_MAX`, then none for
    `REFRESH_EVERY_S`; earlier keys stay valid for a day.
O4  The actor of a person who signed in is marked as such, so nobody can take the name of a token in
    the file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio.to_thread
import jwt

from worlddb.embed.json_client import EndpointRefusedError, JsonClient, JsonServer
from worlddb.errors import InvalidInputError, ProviderError
from worlddb.faces.http.access_tokens import (
    MCP_PATH,
    METADATA_PATH,
    AccessToken,
    OAuthRules,
    checked_tenant,
    safe_url,
    token_digest,
)
from worlddb.faces.http.http_problems import HttpError
from worlddb.faces.server_calls import ROLES
from worlddb.model.inputs import groups_of

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
TOKEN_BYTES_MAX = 16 << 10  # Tokens with many groups have some kilobytes.
LEEWAY_S = 30.0  # The clocks of two machines differ by less.
KEYS_KEPT_S = 600.0  # Providers announce a new key longer in advance.
KEYS_HELD_S_MAX = 86_400.0  # A withdrawn key must expire.
REFRESH_EVERY_S = 10.0  # Invented key ids must not cause many requests to the provider.
FETCH_S_MAX = 5.0  # A client waits for 30.
ANSWER_BYTES_MAX = 1 << 20  # A set of keys has some kilobytes.
NAME_CHARS_MAX = 100  # As in the tokens file.
SIGNED_IN = " (signed in)"  # Suffix of the actor; some providers let people choose the subject.
SIGN_IN_SCOPES = ROLES[:-1]
"""The roles that a client is told to ask for; administering is for those who ask by themselves."""

log = logging.getLogger("worlddb.http")


class SigningKeys:
    """The public keys of an authorisation server, by their ids."""

    def __init__(self, rules: OAuthRules) -> None:
        self._rules = rules
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched: float | None = None
        self._tried: float | None = None
        self._turn = asyncio.Lock()

    async def find(self, ident: str) -> jwt.PyJWK | None:
        """Return the key with an id; None if the server has no such key.

        Raises:
            HttpError: the keys could not be fetched.
        """
        if ident not in self._keys or self._age() > KEYS_KEPT_S:
            async with self._turn:
                if self._tried is None or time.monotonic() - self._tried >= REFRESH_EVERY_S:
                    await self._refresh()
        if self._age() > KEYS_HELD_S_MAX:
            raise HttpError(
                503,
                "the identity provider does not answer; try again later",
                {"Retry-After": str(int(REFRESH_EVERY_S))},
            )
        return self._keys.get(ident)

    def _age(self) -> float:
        return float("inf") if self._fetched is None else time.monotonic() - self._fetched

    async def _refresh(self) -> None:
        why: object = "no answer in time"
        try:
            # There may be three requests, and each may be slow.
            with anyio.move_on_after(FETCH_S_MAX):
                self._keys = await anyio.to_thread.run_sync(self._fetch, abandon_on_cancel=True)
                self._fetched = time.monotonic()
                return
        except (ProviderError, InvalidInputError, ValueError, KeyError, TypeError) as error:
            why = error
        finally:
            # From the end of the attempt: requests that waited for it must not repeat it.
            self._tried = time.monotonic()
        log.warning("the keys of %s cannot be fetched: %s", self._rules.issuer, why)

    def _fetch(self) -> dict[str, jwt.PyJWK]:
        found = _json_at(self._rules.jwks_url or self._announced())
        public = [one for one in found["keys"] if one["kty"] != "oct"]
        keys = jwt.PyJWKSet.from_dict({"keys": public}).keys if public else []
        wanted = [one for one in keys if one.key_id and one.public_key_use in ("sig", None)]
        return {str(one.key_id): one for one in wanted}

    def _announced(self) -> str:
        """Return the address of the keys from the server's metadata."""
        issuer = self._rules.issuer
        parts = urlsplit(issuer)
        inserted = f"{parts.scheme}://{parts.netloc}/.well-known/oauth-authorization-server"
        addresses = (
            f"{issuer.rstrip('/')}/.well-known/openid-configuration",
            inserted + parts.path.rstrip("/"),
        )
        for number, address in enumerate(addresses, 1):
            try:
                told = _json_at(address)
            except EndpointRefusedError:
                if number == len(addresses):
                    raise
                continue
            if told["issuer"] == issuer:
                return safe_url(told["jwks_uri"], "jwks_uri")
            raise ProviderError(f"{address}: tells of another issuer: {told['issuer']!r:.100}")
        raise AssertionError  # There is at least one address.


class OAuthTokens:
    """Makes access tokens from JWTs, and names the server that issues them."""

    def __init__(self, rules: OAuthRules, url: str) -> None:
        self._rules = rules
        self._keys = SigningKeys(rules)
        self._resource = rules.resource or url
        self._audiences = rules.accepted_audiences(self._resource)

    def challenge(self, path: str) -> str:
        """Return the WWW-Authenticate header, which says where to get a token."""
        end = MCP_PATH if path == MCP_PATH else ""
        wanted = [scope for scope, role in self._rules.roles.items() if role in SIGN_IN_SCOPES]
        where = f'resource_metadata="{self._resource}{METADATA_PATH}{end}"'
        return f'{where}, scope="{" ".join(wanted)}"'

    def metadata(self, end: str) -> dict[str, object]:
        """Return the metadata of the server, or of its MCP endpoint."""
        return self._rules.metadata(self._resource + end)

    async def token_of(self, presented: bytes) -> AccessToken | None:
        """Return the access token of a JWT; None if the JWT is not valid here.

        Raises:
            HttpError: it is valid and opens nothing, or the keys could not be fetched.
        """
        if len(presented) > TOKEN_BYTES_MAX or presented.count(b".") != 2:
            return None
        try:
            header = jwt.get_unverified_header(presented)
            ident = header.get("kid")
            if header["alg"] not in ALGORITHMS or not isinstance(ident, str):
                return None
            key = await self._keys.find(ident)
            if key is None:
                return None
            claims = jwt.decode(
                presented,
                key,
                algorithms=ALGORITHMS,
                audience=self._audiences,
                issuer=self._rules.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return None
        try:
            return self._opened_by(claims)
        except InvalidInputError as error:
            raise HttpError(403, f"this sign-in opens nothing here: {error}") from None

    def _opened_by(self, claims: Mapping[str, Any]) -> AccessToken:
        rules, subject = self._rules, str(claims["sub"])
        role = self._role(claims)
        admin = role == "administer"
        bounds = {} if admin else {kind: _texts(claims, one) for kind, one in rules.bounds.items()}
        groups_of(bounds)  # Raises for values that are not scopes.
        for claim in rules.bounds.values() if bounds else ():
            # OpenID Connect has `email_verified`: an unverified address proves nothing.
            if claims.get(f"{claim}_verified", True) is not True:
                raise InvalidInputError(f"the issuer has not verified the claim {claim!r:.80}")
        tenant = None
        if rules.tenant_claim is not None:
            tenant = checked_tenant(_texts(claims, rules.tenant_claim)[0])
        name = "".join(one if one.isprintable() else "?" for one in subject)[:NAME_CHARS_MAX]
        return AccessToken(
            name=f"{name or '?'}{SIGNED_IN}",
            digest=token_digest(json.dumps([rules.issuer, subject, tenant]).encode()),
            bounds=bounds,
            read_only=role == "read",
            admin=admin,
            tenant=tenant,
            curates=role in ("curate", "administer"),
            per_minute=rules.per_minute,
            is_listed=False,
        )

    def _role(self, claims: Mapping[str, Any]) -> str:
        """Return the highest role of a token's scopes."""
        granted: set[str] = set()
        for name in ("scope", "scp"):  # Some providers use the second name.
            held = claims.get(name)
            said = held.split() if isinstance(held, str) else held if isinstance(held, list) else ()
            granted.update(one for one in said if isinstance(one, str))
        roles = {role for scope, role in self._rules.roles.items() if scope in granted}
        if not roles:
            wanted = " ".join(self._rules.roles)
            raise HttpError(
                403,
                f"this sign-in has none of the scopes that open something here: {wanted}",
                {"WWW-Authenticate": f'Bearer error="insufficient_scope", {self.challenge("")}'},
            )
        return max(roles, key=ROLES.index)


def _texts(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the texts of a claim: one, or a list of them."""
    held = claims.get(name)
    found = (held,) if isinstance(held, str) else tuple(held) if isinstance(held, list) else ()
    if not found or any(not isinstance(one, str) for one in found):
        raise InvalidInputError(f"the token has no claim {name!r:.80} that is a text")
    return found


def _json_at(address: str) -> dict[str, Any]:
    server = JsonServer(
        base_url=address,
        name=address,
        timeout_s=FETCH_S_MAX,
        retries=0,
        answer_bytes_max=ANSWER_BYTES_MAX,
    )
    found = json.loads(JsonClient(server, {}).send("", None))
    if not isinstance(found, dict):
        raise ValueError("the answer is not a JSON object")
    return found
