"""Origin: who brought a text in, and how far that is trusted.

    face ──stamps──▶ origins of a node ──settings of its scope──▶ trust

A node keeps every origin that it rests on, as notes that are only ever added. Its trust is the
least of theirs, so nothing that happens to a node later can raise its trust. A node without an
origin is the user's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from worlddb.errors import InvalidInputError, RejectedError

Origin: TypeAlias = Literal["user", "assistant", "import", "model", "tool", "web"]
Trust: TypeAlias = Literal["full", "limited", "low", "quarantine"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
"""All origins; each may name itself as one that stands further to the right."""
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
"""What holds where a scope has no settings. An assistant speaks for its user; a tool returns what
strangers may have written; anybody can write a page."""
INDEPENDENT = frozenset({"user", "import"})
"""Origins that do not repeat what they have read in a memory, so they can confirm one."""
NOTE = "origin"
"""The kind of the notes that hold the origins of a node."""
SECRETS = "secrets"
"""The key of these settings that says what is done with secrets in texts."""
SETTINGS = "trust"
"""The metadata key of a scope that holds its settings, and of the root for all scopes."""


def check_origin(given: object) -> Origin:
    """Return an origin if it is one.

    Raises:
        InvalidInputError: there is no such origin.
    """
    for origin in ORIGINS:
        if given == origin:
            return origin
    raise InvalidInputError(f"origin {given!r:.40}: use one of {', '.join(ORIGINS)}")


def least(origins: Iterable[str]) -> str:
    """Return the origin that stands furthest from the user; the user's own without any."""
    return max(origins, key=_place, default=USER)


def _place(origin: str) -> int:
    # An origin that a later version knows is trusted as little as any.
    return ORIGINS.index(origin) if origin in ORIGINS else len(ORIGINS)


def lowered(given: Origin | None, most: Origin | None) -> Origin | None:
    """Return the origin of a write: as given, else what the face says; None for the user's own.

    Raises:
        InvalidInputError: there is no such origin.
        RejectedError: it is above what the face allows.
    """
    chosen = most if given is None else check_origin(given)
    if most is not None and chosen is not None and _place(chosen) < _place(most):
        raise RejectedError(
            f"origin {chosen!r}: what comes in here is {most!r} at best; leave origin out"
        )
    return None if chosen == USER else chosen


def at_most(origin: str | None, most: Origin | None) -> Origin | None:
    """Return the one of two origins that stands further from the user; None for the user's own.

    Raises:
        InvalidInputError: there is no such origin.
    """
    found = check_origin(least(one for one in (origin, most) if one is not None))
    return None if found == USER else found


def level_of(origins: Sequence[str], settings: Mapping[str, Any] | None = None) -> int:
    """Return how far some origins are trusted together: as far as the least trusted one."""
    if not origins:
        return FULL
    trust: Mapping[str, Any] = {**USUAL_TRUST, **(settings or {})}
    return min(LEVELS.get(trust.get(origin, "low"), LEVELS["low"]) for origin in origins)


def check_trust(given: Mapping[str, str]) -> dict[str, Trust]:
    """Return settings of trust if they are some.

    Raises:
        InvalidInputError: no such origin or trust, or the user is to be trusted less.
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
