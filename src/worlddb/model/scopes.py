"""Scopes: whose memory it is. Each user, agent, app or run has a `Scope` world, found by name.

A scope's id follows from its kind and value alone: its node has no content and is born at the
epoch. A scope that was purged has ended for good; the next one of that name is born a microsecond
later (`generation`), so its id still follows from the name.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict

from worlddb.errors import InvalidInputError
from worlddb.model.address import Id, node_address
from worlddb.model.inputs import encode_text, from_micros
from worlddb.model.records import Plain

ScopeKind = Literal["user", "agent", "app", "run"]
KINDS: tuple[ScopeKind, ...] = ("user", "agent", "app", "run")
"""From the longest-lived to the shortest; a memory lives in the first kind that a call names."""
SCOPE = "Scope"
VALUE_BYTES_MAX = 512
"""Longer than any id or address that names a user; it becomes the name of a node."""
VALUES_MAX = 100
"""How many scopes of a kind one call may name: each costs a look-up."""

Ids = str | Sequence[str] | None


class ScopeIds(TypedDict, total=False):
    """The arguments that name scopes: one value of a kind, or several."""

    user_id: Ids
    agent_id: Ids
    app_id: Ids
    run_id: Ids


@dataclass(frozen=True, slots=True, order=True)
class ScopeName(Plain):
    """One scope: its kind and its value, written `user:ada`."""

    kind: ScopeKind
    value: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.value}"

    def ids(self) -> ScopeIds:
        """Return the argument that names this scope alone."""
        ids: ScopeIds = {f"{self.kind}_id": self.value}  # type: ignore[misc]
        return ids

    def id(self, generation: int = 0) -> Id:
        """Return the id of this scope's node."""
        return Id(node_address(SCOPE, str(self).encode(), b"", generation))


Groups = tuple[tuple[ScopeName, ...], ...]
"""Scopes by kind. A memory must be inside one scope of every group."""


def born(generation: int) -> datetime:
    """Return when the scopes of a generation are created."""
    return from_micros(generation)


def scope_named(name: str) -> ScopeName:
    """Return a scope from the name of its node.

    Raises:
        InvalidInputError: it is no such name.
    """
    kind, colon, value = name.partition(":") if isinstance(name, str) else ("", "", "")
    for scope_kind in KINDS:
        if kind == scope_kind and colon:
            return _scope(scope_kind, value)
    raise InvalidInputError(f"{name!r:.100} is no scope; write it as user:ada, with one of {KINDS}")


def groups_of(given: Mapping[str, Any]) -> Groups:
    """Return the scopes that `user_id=…, agent_id=…, app_id=…, run_id=…` name, by kind.

    Raises:
        InvalidInputError: a value is no text, empty, too long, or has control characters.
        TypeError: there is no such argument.
    """
    unknown = sorted(given.keys() - {f"{kind}_id" for kind in KINDS})
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is no argument here; name scopes by user_id, agent_id, app_id, run_id"
        )
    groups = []
    for kind in KINDS:
        values = given.get(f"{kind}_id")
        if values is None:
            continue
        listed = [values] if isinstance(values, str) else values
        if isinstance(listed, Mapping | bytes) or not isinstance(listed, Iterable):
            raise InvalidInputError(f"{kind}_id: give text or a list of texts, not {values!r:.100}")
        names = tuple(sorted({_scope(kind, value) for value in listed}))
        if not 0 < len(names) <= VALUES_MAX:
            raise InvalidInputError(f"{kind}_id: give 1 to {VALUES_MAX} values, or leave it out")
        groups.append(names)
    return tuple(groups)


def _scope(kind: ScopeKind, value: str) -> ScopeName:
    encode_text(value, f"{kind}_id", VALUE_BYTES_MAX)
    # Two spellings of one letter would be two users that look the same.
    value = unicodedata.normalize("NFC", value)
    if not value or value != value.strip():
        raise InvalidInputError(
            f"{kind}_id: {value!r:.100} is empty or has white space around it; give it without"
        )
    if not value.isprintable():
        raise InvalidInputError(f"{kind}_id: {value!r:.100} has control characters; remove them")
    return ScopeName(kind, value)
