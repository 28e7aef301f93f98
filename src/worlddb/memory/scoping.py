"""Scoping: from the ids of a call to the scopes it may see and writes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from worlddb.db import WorldDB
from worlddb.errors import InvalidInputError, RejectedError
from worlddb.model.instant import Instant, to_micros
from worlddb.model.scopes import KINDS, Groups, ScopeName, groups_of
from worlddb.model.values import AsOf
from worlddb.read.memories import view_of
from worlddb.read.moment import moment_of
from worlddb.read.view import View

DEFAULT_USER = "default"


class Scoping:
    """A store, the scopes that are meant where a call names none, and those it may not leave."""

    def __init__(self, db: WorldDB, usual: Groups, bounds: Groups, actor: str) -> None:
        self.db = db
        self._usual = usual
        self._bounds = bounds
        self._actor = actor

    def _groups(self, given: Mapping[str, Any]) -> Groups:
        """Return the scopes of a call, by kind: as it says, else as usual, never beyond bounds.

        Raises:
            InvalidInputError: a scope is badly named.
            RejectedError: it is outside the bounds.
        """
        named = _by_kind(groups_of(given))
        chosen = _by_kind(self._usual) | _by_kind(self._bounds) | named
        for kind, allowed in _by_kind(self._bounds).items():
            for scope in set(chosen[kind]) - set(allowed):
                raise RejectedError(f"{scope} is not yours; leave {kind}_id out")
        if not chosen:
            chosen = _by_kind(groups_of({"user_id": DEFAULT_USER}))
        # One's own kinds first: where a memory lives, names are resolved and texts compared, and a
        # caller may do neither in a scope it does not own.
        own = [kind for kind in KINDS if kind in _by_kind(self._bounds)]
        order = [*own, *(kind for kind in KINDS if kind not in own)]
        return tuple(chosen[kind] for kind in order if kind in chosen)

    def _reach(self, given: Mapping[str, Any]) -> Groups:
        """Return the scopes that a memory named by its id has to be inside of.

        Those that the call names and the bounds; the usual ones hide nothing from who has an id.
        """
        named = _by_kind(groups_of(given)) or _by_kind(self._bounds)
        return self._groups(given) if named else ()

    def _named(self, given: Mapping[str, Any], what: str) -> Groups:
        """Return the scopes of a call that ends memories: it has to name one.

        Raises:
            InvalidInputError: it names none.
        """
        if not groups_of(given):
            raise InvalidInputError(f"{what}: name the scope: user_id, agent_id, app_id or run_id")
        return self._groups(given)

    def _may_name(self, scope: ScopeName) -> bool:
        """Return whether a scope may be told of: not another user's, to one who is bound."""
        for group in self._bounds:
            if group[0].kind == scope.kind:
                return scope in group
        return True

    @contextmanager
    def _viewing(
        self,
        groups: Groups,
        *,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        ended: bool = False,
    ) -> Iterator[View]:
        """Yield what can be seen inside scopes, on one snapshot.

        Raises:
            InvalidInputError: a time without a zone, or no time at all.
        """
        db = self.db
        for name, time in (("as_of", as_of), ("known_at", known_at)):
            if time is not None:
                to_micros(time, name)
        with db._store.read() as reader:
            moment = moment_of(reader, AsOf(valid=as_of, known=known_at), db._clock())
            yield view_of(reader, groups, moment, ended, present=bool(self._bounds))


def _by_kind(groups: Groups) -> dict[str, tuple[ScopeName, ...]]:
    return {group[0].kind: group for group in groups}
