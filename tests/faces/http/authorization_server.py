"""A small authorisation server for tests: real keys, real signatures, PKCE, on a real socket."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from patience import PATIENCE_S

METADATA = ("/.well-known/openid-configuration", "/.well-known/oauth-authorization-server")


@dataclass
class SigningKey:
    """A private key with its id."""

    ident: str
    algorithm: str
    private: Any

    def public(self) -> dict[str, Any]:
        """Return the public key as a JWK."""
        make = RSAAlgorithm.to_jwk if self.algorithm.startswith("RS") else ECAlgorithm.to_jwk
        told: dict[str, Any] = make(self.private.public_key(), as_dict=True)
        return told | {"kid": self.ident, "alg": self.algorithm, "use": "sig"}


def new_key(ident: str, algorithm: str = "ES256") -> SigningKey:
    """Return a new key."""
    if algorithm.startswith("RS"):
        return SigningKey(ident, algorithm, rsa.generate_private_key(65_537, 2_048))
    return SigningKey(ident, algorithm, ec.generate_private_key(ec.SECP256R1()))


@dataclass
class AuthorizationServer:
    """Issues tokens, at its endpoints or directly to a test."""

    issuer: str
    keys: list[SigningKey]
    fetched: list[str] = field(default_factory=list)
    """The paths that were asked for."""
    broken: bool = False
    silence: threading.Event = field(default_factory=threading.Event)
    """While it is cleared, nothing is answered."""
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    subject: str = "ada"

    def token(self, key: SigningKey | None = None, **claims: Any) -> str:
        """Return a signed token; a claim of None is left out."""
        key = key or self.keys[-1]
        now = int(time.time())
        told = {"iss": self.issuer, "sub": self.subject, "iat": now, "exp": now + 600}
        told |= {"scope": "worlddb:read worlddb:write", **claims}
        told = {name: value for name, value in told.items() if value is not None}
        return jwt.encode(told, key.private, key.algorithm, headers={"kid": key.ident})

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/jwks",
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }

    def authorize(self, url: str) -> str:
        """Agree in the name of the person, and return where the browser is sent."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def exchange(self, sent: dict[str, str]) -> dict[str, Any]:
        asked = self.codes.pop(sent["code"])
        digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
        expected = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        assert asked["code_challenge"] == expected
        # RFC 8707: the token is for the resource that was asked for.
        made = self.token(aud=sent["resource"], scope=asked["scope"])
        return {"access_token": made, "token_type": "Bearer", "expires_in": 600}


@contextmanager
def authorization_server(*keys: SigningKey) -> Iterator[AuthorizationServer]:
    """Run an authorisation server."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held.fetched.append(self.path)
            held.silence.wait(PATIENCE_S)
            if held.broken:
                self._say(500, {})
            elif (
                self.path == "/.well-known/openid-configuration"
                or self.path == "/.well-known/oauth-authorization-server"
            ):
                self._say(200, held.metadata())
            elif self.path == "/jwks":
                self._say(200, {"keys": [one.public() for one in held.keys]})
            else:
                self._say(404, {})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self.path == "/register":
                self._say(201, json.loads(body) | {"client_id": "client-1"})
            else:
                sent = {name: values[0] for name, values in parse_qs(body).items()}
                self._say(200, held.exchange(sent))

        def _say(self, status: int, data: object) -> None:
            body = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    held = AuthorizationServer(f"http://127.0.0.1:{server.server_port}", list(keys))
    held.silence.set()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield held
    finally:
        held.silence.set()
        server.shutdown()
        thread.join()
        server.server_close()
