"""Origin: who brought a text in, and how much that is trusted.

    face ──stamps──▶ origins of a node ──settings of its scope──▶ trust

A node keeps every origin that it rests on, as notes that are only ever added. Its trust is that of
the least trusted one, so nothing can raise it later. A node without an origin is the user's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from worlddb.errors import InvalidInputError, RejectedError

Origin: TypeAlias = Literal["user", "assistant", "import", "model", "tool", "web"]
Trust: TypeAlias = Literal["full", "limited", "low", "quarantine"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
"""All origins, most trusted first; a caller may name its own or one further down."""
LEVELS: dict[Trust, int] = {"quarantine": 0, "low": 1, "limited": 2, "full": 3}
FULL = LEVELS["full"]
USER: Origin = "user"
USUAL_TRUST: dict[str, Trust] = {
    "user": "full",
    "assistant": "full",
    "import": "full",
    "model": "full",
    "tool": "limited",
    "web": "low",
}
"""Trust levels of a scope without settings. An assistant speaks for its user; the output of a tool
may be by strangers; anybody can write a web page."""
INDEPENDENT = frozenset({"user", "import"})
"""Origins that speak for themselves instead of repeating a memory, so they can confirm one."""
NOTE = "origin"
"""The kind of note that holds an origin of a node."""
SECRETS = "secrets"
"""Key of the trust settings that says what to do with secrets in texts."""
SETTINGS = "trust"
"""Metadata key with the trust settings of a scope; on the root, for all scopes."""


def check_origin(given: object) -> Origin:
    """Return an origin after a check.

    Raises:
        InvalidInputError: there is no such origin.
    """
    for origin in ORIGINS:
        if given == origin:
            return origin
    raise InvalidInputError(f"origin {given!r:.40}: use one of {', '.join(ORIGINS)}")


def least(origins: Iterable[str]) -> str:
    """Return the origin furthest from the user; the user's own if there are none."""
    return max(origins, key=_place, default=USER)


def _place(origin: str) -> int:
    # An origin of a later version is trusted as little as the least trusted one.
    return ORIGINS.index(origin) if origin in ORIGINS else len(ORIGINS)


def lowered(given: Origin | None, most: Origin | None) -> Origin | None:
    """Return the origin of a write: `given`, else `most` of the face; None for the user's own.

    Raises:
        InvalidInputError: there is no such origin.
        RejectedError: it is more trusted than the face allows.
    """
    chosen = most if given is None else check_origin(given)
    if most is not None and chosen is not None and _place(chosen) < _place(most):
        raise RejectedError(
            f"origin {chosen!r}: what comes in here is {most!r} at best; leave origin out"
        )
    return None if chosen == USER else chosen


def at_most(origin: str | None, most: Origin | None) -> Origin | None:
    """Return the one of two origins that is further from the user; None for the user's own.

    Raises:
        InvalidInputError: there is no such origin.
    """
    found = check_origin(least(one for one in (origin, most) if one is not None))
    return None if found == USER else found


def level_of(origins: Sequence[str], settings: Mapping[str, Any] | None = None) -> int:
    """Return the trust level of several origins together: that of the least trusted one."""
    if not origins:
        return FULL
    trust: Mapping[str, Any] = {**USUAL_TRUST, **(settings or {})}
    return min(LEVELS.get(trust.get(origin, "low"), LEVELS["low"]) for origin in origins)


def check_trust(given: Mapping[str, str]) -> dict[str, Trust]:
    """Return trust settings after a check.

    Raises:
        InvalidInputError: no such origin or trust level, or a lower one for the user.
    """
    if not isinstance(given, Mapping):
        raise InvalidInputError(f"trust: give {{'web': 'low'}} or the like, not {given!r:.40}")
    found: dict[str, Trust] = {}
    for origin, trust in given.items():
        if check_origin(origin) == USER and trust != "full":
            raise InvalidInputError("trust: the user's own words are always trusted in full")
        if trust not in LEVELS:
            raise InvalidInputError(f"trust {trust!r:.40}: use one of {', '.join(LEVELS)}")
        found[origin] = trust
    return found
