"""Ending memories: retire one, all of a scope, or the scope itself. Nothing is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack

from worlddb.api.erasing import Receipt
from worlddb.errors import ConflictError, InvalidInputError, NotFoundError, RejectedError
from worlddb.memory.results import Retired
from worlddb.memory.scope_view import (
    Scoping,
    find_memory,
    generations,
    inside_memories,
    page,
    successors,
)
from worlddb.model.address import Id
from worlddb.model.inputs import Instant, to_micros
from worlddb.model.scopes import ScopeIds, ScopeName, groups_of
from worlddb.view.visibility import View
from worlddb.write.transaction import Transaction

ALL = 1 << 40
SUMMARY = "Summary"


class EndingMemories(Scoping):
    """The part of Memory that ends memories."""

    def retire(
        self, id: bytes | str, *, at: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired:
        """End one memory, now or `at`, with what was derived from it alone.

        Of a session, all turns end. It can still be read, and never comes back.

        Raises:
            InvalidInputError: not an id, the start of several, or a bad time.
            NotFoundError: there is no such memory here.
            RejectedError: the scope is outside the bounds of this memory.
            ConflictError: it was superseded by another, which goes on; or the store is busy.
            StorageError: the store cannot be written.
        """
        reach = self._reach(scope)
        _check_time(at)
        with self.db.transaction(self._actor) as tx:
            # Read inside the transaction: nobody else writes meanwhile.
            with self._viewing(reach, ended=True) as view:
                row, node = find_memory(view, id)
            with self._viewing(reach) as view:
                ends = _ends(view, [row])
                newer = () if ends else successors(view, row)
            if newer:
                by = ", ".join(one.short for one in newer)
                raise ConflictError(f"memory {node.id.short} was superseded by {by}; retire that")
            _end(tx, ends, at)
        return self._ended(tx, ends, ())

    def retire_all(
        self,
        *,
        confirm: str | bool | None = None,
        at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Retired:
        """End every memory in a scope, as `retire` does; the scope stays.

        `confirm`, if given, has to be True or the scope's value.

        Raises:
            InvalidInputError: no scope is named, or it is confirmed as another.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        groups = self._named(scope, "retire_all")
        named = [name for group in groups_of(scope) for name in group]
        if confirm is not None:
            check_confirmed(confirm, named, "retire_all")
        _check_time(at)
        with self.db.transaction(self._actor) as tx:
            with self._viewing(groups) as view:
                ends = _ends(view, page(view, None, ALL))
            _end(tx, ends, at)
        return self._ended(tx, ends, ())

    def purge_scope(
        self, *, confirm: str | bool | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired:
        """End a scope with every memory and every name in it, also of those in other scopes.

        Nothing is deleted; to remove text from the file, erase it. A scope of the same name can be
        written to again and begins empty.

        Raises:
            InvalidInputError: not exactly one scope is named, or it is not confirmed.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        named = self._one_scope(scope, "purge_scope")
        check_confirmed(confirm, [named], "purge_scope")
        with self.db.transaction(self._actor) as tx:
            with self._viewing(((named,),)) as view:
                rows = generations(view.reader, named)
                inside = view.keep(view.reader.children_of(rows)) if rows else ()
                ends = _ends(view, {*page(view, None, ALL), *inside})
                ended = [Id(view.reader.world(row).id) for row in sorted(view.keep_time(rows))]
            _end(tx, [*ends, *ended], None)
        return self._ended(tx, ends, (named,) if ended else ())

    def erase(
        self,
        id: bytes | str | None = None,
        *,
        confirm: str | bool | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Receipt:
        """Remove the text of one memory for good, or everything that lives in a scope.

        With an id: that memory, and what was derived from it. Without: the one scope that is named
        and confirmed, with every memory and every name that lives in it, and its own name; what is
        only a member of it lives elsewhere and stays. See `WorldDB.erase`.

        Raises:
            InvalidInputError: not an id, not exactly one scope, or it is not confirmed.
            NotFoundError: there is no such memory or scope here.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        if id is not None:
            with self._viewing(self._reach(scope), ended=True) as view:
                found = find_memory(view, id)[1].id
            return self.db.erase(found, actor=self._actor)
        named = self._one_scope(scope, "erase")
        check_confirmed(confirm, [named], "erase")
        with self.db._store.read() as reader:
            worlds = [Id(reader.world(row).id) for row in generations(reader, named)]
        if not worlds:
            raise NotFoundError(f"there is no scope {named}; list them to see them")
        return self.db.erase(worlds, actor=self._actor)

    def _one_scope(self, given: ScopeIds, what: str) -> ScopeName:
        """Return the one scope that a call names; within bounds, one's own."""
        named = [name for group in groups_of(given) for name in group]
        if len(named) != 1:
            raise InvalidInputError(f"{what}: name one scope: user_id, agent_id, app_id or run_id")
        # Within bounds of two kinds nobody owns a whole scope of either: others are in it, too.
        if self._bounds and (len(self._bounds) > 1 or named[0] not in self._bounds[0]):
            raise RejectedError(f"{named[0]} is not yours to end")
        return named[0]

    def _ended(self, tx: Transaction, ends: Sequence[Id], scopes: tuple[ScopeName, ...]) -> Retired:
        commit = tx.commit
        root = self.db.root_state if commit is None else commit.root_state
        return Retired(ids=tuple(ends), scopes=scopes, commit=commit, root_state=root)


def check_confirmed(confirm: str | bool | None, scopes: Sequence[ScopeName], what: str) -> None:
    """Check that the caller knows what it ends.

    Raises:
        InvalidInputError: it said nothing, or another scope.
    """
    names = {text for scope in scopes for text in (scope.value, str(scope))}
    # Kinds narrow what is ended, so one value will do; several values of one kind widen it.
    one_each = len({scope.kind for scope in scopes}) == len(scopes)
    if confirm is True or (one_each and isinstance(confirm, str) and confirm in names):
        return
    wanted = repr(scopes[0].value) if one_each else "True"
    raise InvalidInputError(f"{what}: to confirm, pass confirm={wanted}; nothing was ended")


def _check_time(at: Instant | None) -> None:
    if at is not None:
        to_micros(at, "at")


def _end(tx: Transaction, ends: Iterable[Id], at: Instant | None) -> None:
    for ident in ends:
        tx.retire(ident, at=at)


def _ends(view: View, rows: Iterable[int]) -> list[Id]:
    """Return the live nodes that end with some memories: their parts, and what rests on them.

    A summary ends with any of its sources, for it says what they said; it can be made again. What
    else was derived ends with the last of its sources.
    """
    reader = view.reader
    gone: set[int] = set()
    todo = set(rows)
    while todo:
        gone |= inside_memories(reader, todo)
        todo = set()
        found = reader.edges_at(sorted(gone), "in", ("derived_from",))
        derived = sorted({item.source for item in found} - gone)
        types = {body.row: body.type for body in reader.bodies(derived)}
        left: dict[int, set[int]] = {row: set() for row in derived}
        for item in reader.edges_at(derived, "out", ("derived_from",)):
            left[item.source].add(item.target)
        for row in derived:
            if types[row] == SUMMARY or not view.keep_time(left[row] - gone):
                todo.add(row)
    live = view.keep_time(gone)
    return [Id(world.id) for _, world in sorted(reader.worlds(live).items())]
