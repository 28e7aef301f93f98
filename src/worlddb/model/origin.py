"""Origin: who brought a text into the store, and how far that source is trusted.

    face ──stamps──▶ origins of a node ──trust settings of its scope──▶ trust level

A node keeps the origin of every text that it was made from, as notes that are only added. Its trust
level is that of the least trusted origin, so no later write can raise it. A node without an origin
comes from the user.
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
TRUSTS = {level: trust for trust, level in LEVELS.items()}
FULL = LEVELS["full"]
USER: Origin = "user"
DEFAULT_TRUST: dict[str, Trust] = {
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


def check_origin(value: object) -> Origin:
    """Return a caller's origin after a check."""
    for origin in ORIGINS:
        if value == origin:
            return origin
    raise InvalidInputError(f"origin {value!r:.40}: use one of {', '.join(ORIGINS)}")


def least_trusted(origins: Iterable[str]) -> str:
    """Return the least trusted of some origins; "user" if there are none."""
    return max(origins, key=_distrust_rank, default=USER)


def _distrust_rank(origin: str) -> int:
    # An origin that a later version added is trusted as little as the least trusted one.
    return ORIGINS.index(origin) if origin in ORIGINS else len(ORIGINS)


def origin_of_write(requested: Origin | None, face_origin: Origin | None) -> Origin | None:
    """Return the origin of a write: the requested one, else that of the face; None for the user.

    Raises:
        InvalidInputError: the requested origin does not exist.
        RejectedError: the requested origin is more trusted than that of the face.
    """
    chosen = face_origin if requested is None else check_origin(requested)
    if face_origin is not None and chosen is not None:
        if _distrust_rank(chosen) < _distrust_rank(face_origin):
            raise RejectedError(
                f"origin {chosen!r} is more trusted than {face_origin!r}, the origin of all writes"
                " here; leave origin out"
            )
    return None if chosen == USER else chosen


def less_trusted_of(first: str | None, second: Origin | None) -> Origin | None:
    """Return the less trusted of two origins; None for the user.

    Raises:
        InvalidInputError: an origin does not exist.
    """
    found = check_origin(least_trusted(one for one in (first, second) if one is not None))
    return None if found == USER else found


def trust_level(origins: Sequence[str], settings: Mapping[str, Any] | None = None) -> int:
    """Return the trust level of several origins together: that of the least trusted one."""
    if not origins:
        return FULL
    trust: Mapping[str, Any] = {**DEFAULT_TRUST, **(settings or {})}
    return min(LEVELS.get(trust.get(origin, "low"), LEVELS["low"]) for origin in origins)


def check_trust(settings: Mapping[str, str]) -> dict[str, Trust]:
    """Return a caller's trust settings after a check."""
    if not isinstance(settings, Mapping):
        raise InvalidInputError(f"trust {settings!r:.40}: use a mapping such as {{'web': 'low'}}")
    found: dict[str, Trust] = {}
    for origin, trust in settings.items():
        if check_origin(origin) == USER and trust != "full":
            raise InvalidInputError("trust: the user always has full trust; leave 'user' out")
        if trust not in LEVELS:
            raise InvalidInputError(f"trust {trust!r:.40}: use one of {', '.join(LEVELS)}")
        found[origin] = trust
    return found
