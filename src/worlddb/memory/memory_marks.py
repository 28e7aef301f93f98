"""Memory marks: tags, a pin and an end that a caller gives a memory.

Tags and pins are metadata (`tags`, `pinned`), so filters find them and both clocks hold for them.
The end is the end of the memory's validity: after it nothing lists or recalls the memory, and a
question as of an earlier time still does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeAlias

from worlddb.errors import InvalidInputError
from worlddb.ingest.text_origins import QUARANTINE
from worlddb.model.drafts import Draft
from worlddb.model.inputs import Instant, check_names, from_micros, to_micros

TAGS, PINNED = "tags", "pinned"
UNIT_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
MICROS = 1_000_000  # microseconds of a second
_TTL = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*")

Ttl: TypeAlias = float | str | timedelta
"""How long something stays: seconds, a timedelta, or text such as "30d", "12h" or "90s"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """What a memory is marked with; `expires` is a time in microseconds, None for no end."""

    metadata: Mapping[str, Any] | None
    expires: int | None

    def ending(self, draft: Draft) -> Draft:
        """Return a draft of which everything that the text says ends with the memory.

        Raises:
            InvalidInputError: the end is not after the beginning.
        """
        if self.expires is None:
            return draft
        end = from_micros(self.expires)
        begins = draft.nodes[0].valid_from
        if begins is not None and end <= begins:
            raise InvalidInputError(
                f"expires_at: {end.isoformat()} is not after {begins.isoformat()}, when the memory "
                "begins; give a later time"
            )
        nodes = (
            node
            if node.resolvable
            else replace(node, valid_to=end if node.valid_to is None else min(node.valid_to, end))
            for node in draft.nodes
        )
        said = {node.key for node in draft.nodes if not node.resolvable}
        edges = (
            replace(edge, valid_to=end)
            if edge.valid_to is None and edge.source not in said
            else edge
            for edge in draft.edges
        )
        return replace(draft, nodes=tuple(nodes), edges=tuple(edges))


NO_MARKS = Marks(metadata=None, expires=None)


def marks_of(
    metadata: Mapping[str, Any] | None,
    *,
    now: int,
    tags: str | Sequence[str] | None = None,
    pin: bool | None = None,
    expires_at: Instant | None = None,
    ttl: Ttl | None = None,
) -> Marks:
    """Return the marks of a write.

    Raises:
        InvalidInputError: a mark is wrong, or there are two ends.
    """
    more: dict[str, Any] = {}
    if tags is not None:
        more[TAGS] = list(dict.fromkeys(check_names(tags, TAGS)))
    if pin:
        more[PINNED] = True
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata: give a mapping, not {type(metadata).__name__}")
    if metadata and QUARANTINE in metadata:
        # Else a text would seem to wait for a decision, or to have been decided on.
        raise InvalidInputError(f"metadata: {QUARANTINE!r} says what was decided; use another key")
    if expires_at is not None and ttl is not None:
        raise InvalidInputError("give expires_at or ttl, not both")
    expires = None if expires_at is None else to_micros(expires_at, "expires_at")
    if ttl is not None:
        expires = now + round(_seconds(ttl) * MICROS)
        from_micros(expires)
    return Marks(metadata={**(metadata or {}), **more} or None, expires=expires)


def _seconds(ttl: Ttl) -> float:
    """Return how many seconds something stays.

    Raises:
        InvalidInputError: it is no time span above zero.
    """
    seconds: float | None = None
    if isinstance(ttl, timedelta):
        seconds = ttl.total_seconds()
    elif isinstance(ttl, int | float) and not isinstance(ttl, bool):
        seconds = ttl
    elif isinstance(ttl, str) and (found := _TTL.fullmatch(ttl.lower())):
        seconds = float(found[1]) * UNIT_S[found[2]]
    elif isinstance(ttl, str) and ttl.strip().isdecimal():
        seconds = float(ttl)
    # A hundred centuries: beyond that there is no date.
    if seconds is None or not 0 < seconds < 10_000 * 366 * 86_400:
        raise InvalidInputError(
            f"ttl {ttl!r:.40}: give seconds, or a text such as '30d', '12h', '45m' or '2w'"
        )
    return seconds
