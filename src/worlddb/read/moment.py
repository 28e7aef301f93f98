"""Moment: the (valid, known) pair a question is asked at, in the store's own units.

Known time becomes a commit number: what the engine believed after that commit. Valid time stays a
time; without one, a node or an edge counts unless it has ended by now.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from worlddb.errors import InvalidInputError
from worlddb.model.instant import from_micros, to_micros
from worlddb.model.values import AsOf, Edge, Node
from worlddb.store.protocol import Reader

BEFORE_EVERYTHING = -1


class Moment(NamedTuple):
    """When a question is asked."""

    now: datetime
    valid: datetime | None
    known: int | None

    def holds(self, thing: Node | Edge) -> bool:
        """Return whether a node or an edge is true at this moment.

        Without a valid time only what has ended is left out: what begins later is still a fact.
        """
        ends = thing.valid_to
        if self.valid is None:
            return ends is None or ends > self.now
        return thing.valid_from <= self.valid and (ends is None or self.valid < ends)

    def shows(self, thing: Node | Edge, ended: bool) -> bool:
        """Return whether it is true at this moment or, with `ended`, was true before.

        What had not begun by the valid time asked for is shown to nobody.
        """
        if not ended:
            return self.holds(thing)
        return self.valid is None or thing.valid_from <= self.valid


def moment_of(reader: Reader, as_of: AsOf, now: int) -> Moment:
    """Return the moment that `as_of` names in this snapshot.

    Raises:
        InvalidInputError: a time without a zone, or no time at all.
    """
    if not isinstance(as_of, AsOf):
        raise InvalidInputError(f"as_of: give AsOf(valid=…, known=…), not {as_of!r:.100}")
    # After the clock stepped back, now is still not before the last commit.
    now = max(now, reader.head().time)
    known = None
    if as_of.known is not None:
        found = reader.commit_at(to_micros(as_of.known, "known"))
        known = BEFORE_EVERYTHING if found is None else found
    valid = None
    if as_of.valid is not None:
        valid = from_micros(to_micros(as_of.valid, "valid"))
    return Moment(from_micros(now), valid, known)
