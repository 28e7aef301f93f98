"""OAuth rules: whose tokens a server accepts, and which role and scopes a token opens here.

    issuer, audience ─▶ is the token for us     scope ─▶ role     claims ─▶ user_id, tenant

The server is a resource server (OAuth 2.1): people sign in at the issuer, never here. This module
imports nothing of the extra `server`, so that a wrong setting is reported at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from worlddb.errors import InvalidInputError
from worlddb.faces.face_settings import Settings
from worlddb.faces.server_calls import ROLES
from worlddb.model.records import KINDS

USUAL_ROLES = {role: f"worlddb:{role}" for role in ROLES}
USUAL_BOUNDS = {"user_id": "sub"}
METADATA_PATH = "/.well-known/oauth-protected-resource"
MCP_PATH = "/mcp"


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthRules:
    """What a token must say. `roles` are by the scope of OAuth, `bounds` name the claims."""

    issuer: str
    resource: str | None
    audiences: tuple[str, ...]
    jwks_url: str | None
    roles: Mapping[str, str]
    bounds: Mapping[str, str]
    tenant_claim: str | None
    per_minute: int | None

    def accepted_audiences(self, resource: str) -> tuple[str, ...]:
        """Return what `aud` may name: what the settings say, else this server and its MCP."""
        return self.audiences or (resource, f"{resource}/", resource + MCP_PATH)

    def metadata(self, resource: str) -> dict[str, object]:
        """Return the metadata of a protected resource (RFC 9728)."""
        return {
            "resource": resource,
            "authorization_servers": [self.issuer],
            "scopes_supported": list(self.roles),
            "bearer_methods_supported": ["header"],
            "resource_name": "WorldDB",
        }


def oauth_rules(settings: Settings) -> OAuthRules | None:
    """Return the rules that the settings describe; None if nobody signs in by OAuth.

    Raises:
        InvalidInputError: a setting is wrong.
    """
    if settings.oauth_issuer is None:
        return None
    resource = settings.oauth_resource
    roles = _pairs("oauth_roles", settings.oauth_roles, ROLES) or USUAL_ROLES
    kinds = [f"{kind}_id" for kind in KINDS]
    return OAuthRules(
        issuer=safe_url(settings.oauth_issuer, "oauth_issuer"),
        resource=None if resource is None else safe_url(resource, "oauth_resource").rstrip("/"),
        audiences=settings.oauth_audience,
        jwks_url=settings.oauth_jwks_url and safe_url(settings.oauth_jwks_url, "oauth_jwks_url"),
        roles={scope: role for role, scope in roles.items()},
        bounds=_pairs("oauth_bounds", settings.oauth_bounds, kinds) or USUAL_BOUNDS,
        tenant_claim=settings.oauth_tenant_claim,
        per_minute=settings.oauth_per_minute,
    )


def safe_url(given: str, name: str) -> str:
    """Return a URL whose answers nobody on the way can change.

    Raises:
        InvalidInputError: it is no URL, or one without TLS of another machine.
    """
    try:
        parts = urlsplit(given)
        host = parts.hostname or ""
        plain = host and parts.port != 0 and not (parts.username or parts.query or parts.fragment)
    except ValueError:
        plain = False
    if not plain or parts.scheme not in ("http", "https"):
        raise InvalidInputError(f"{name}: give a URL such as https://login.example.org")
    if parts.scheme == "http" and not _is_this_machine(host):
        raise InvalidInputError(f"{name}: {given:.100} has no TLS; give an https URL")
    return given


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _pairs(name: str, given: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return settings such as "read=memory.read" as a mapping."""
    found = {}
    for one in given:
        key, _, value = (part.strip() for part in one.partition("="))
        if key not in known or not value or " " in value:
            raise InvalidInputError(
                f"{name}: {one!r:.80}: write it as {known[0]}=NAME; known are {', '.join(known)}"
            )
        found[key] = value
    return found
