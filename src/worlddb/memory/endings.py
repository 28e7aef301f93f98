"""Endings: retire a memory, all memories of a scope, or the scope itself. Nothing is deleted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Unpack

from worlddb.audit.erasure_receipt import Receipt, erase_texts, signed_receipt
from worlddb.audit.read_audit import forget_reads
from worlddb.audit.signed_envelope import signing_key
from worlddb.audit.undo import derived_alone
from worlddb.errors import ConflictError, InvalidInputError, NotFoundError, RejectedError
from worlddb.memory.results import Retired
from worlddb.memory.scope_sight import inside_scopes, rows_at_home
from worlddb.memory.scope_view import (
    CallerScopes,
    filtered_view,
    find_memory,
    generations,
    inside_memories,
    one_scope,
    page,
    successors,
)
from worlddb.model.address import Id
from worlddb.model.inputs import Instant, ScopeIds, ScopeName, groups_of, to_micros
from worlddb.model.text_safety import Origin
from worlddb.view.visibility import NOWHERE, View
from worlddb.world_db import WorldDB
from worlddb.write.node_rows import HELD, HeldError
from worlddb.write.transaction import Transaction

ALL = 1 << 40  # Above the number of nodes of any store.


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEnder:
    """Ends the memories of one caller."""

    db: WorldDB
    scopes: CallerScopes
    actor: str
    origin: Origin | None = None

    def _transaction(self) -> AbstractContextManager[Transaction]:
        return self.db.transaction(self.actor, origin=self.origin)

    def retire(
        self, id: bytes | str, *, at: Instant | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired:
        """End one memory, now or `at`, with everything that was derived from it alone.

        The end of a session ends its turns. A retired memory stays readable and never comes back.

        Raises:
            InvalidInputError: not an id, the start of several, or a bad time.
            NotFoundError: there is no such memory here.
            RejectedError: the scope is outside the bounds of this memory.
            ConflictError: the memory was superseded by a live one; or the store is busy.
            StorageError: the store cannot be written.
        """
        reach = self.scopes.reach(scope)
        _check_time(at)
        with self._transaction() as tx:
            # Read inside the transaction, where nobody else writes.
            with self.scopes.viewing(reach, ended=True) as view:
                row, node = find_memory(view, id)
            with self.scopes.viewing(reach) as view:
                ends = ends_with(view, [row])
                # A stale summary may stay live; the memory itself must have ended.
                newer = () if view.keep_time([row]) else successors(view, row)
            if newer:
                by = ", ".join(one.short for one in newer)
                raise ConflictError(f"memory {node.id.short} was superseded by {by}; retire that")
            _end(tx, ends, at)
        return self._ended(tx, ends, ())

    def retire_all(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        confirm: str | bool | None = None,
        at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Retired:
        """End every memory in a scope, as `retire` does; the scope stays.

        With `where`, only the memories that match the filter, as in `recall`. `confirm`, if given,
        must be True or the scope's value.

        Raises:
            InvalidInputError: no scope is named, or another scope is confirmed.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        groups = self.scopes.named(scope, "retire_all")
        named = [name for group in groups_of(scope) for name in group]
        if confirm is not None:
            check_confirmed(confirm, named, "retire_all")
        _check_time(at)
        with self._transaction() as tx:
            with self.scopes.viewing(groups) as view:
                chosen = filtered_view(self.db.engine, view, where)
                ends = ends_with(view, page(chosen, None, ALL))
            _end(tx, ends, at)
        return self._ended(tx, ends, ())

    def purge_scope(
        self, *, confirm: str | bool | None = None, **scope: Unpack[ScopeIds]
    ) -> Retired:
        """End a scope with every memory and every name in it, also those in other scopes.

        Nothing is deleted; to remove text from the file, use `erase`. A scope of the same name can
        be written to again and begins empty.

        Raises:
            InvalidInputError: not exactly one scope is named, or it is not confirmed.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        named = self._one_scope(scope, "purge_scope")
        check_confirmed(confirm, [named], "purge_scope")
        with self._transaction() as tx:
            with self.scopes.viewing(((named,),)) as view:
                rows = generations(view.reader, named)
                inside = view.keep(view.reader.children_of(rows)) if rows else ()
                ends = ends_with(view, {*page(view, None, ALL), *inside})
                ended = [Id(view.reader.world(row).id) for row in sorted(view.keep_time(rows))]
            _end(tx, [*ends, *ended], None)
        return self._ended(tx, ends, (named,) if ended else ())

    def erase(
        self,
        id: bytes | str | None = None,
        *,
        confirm: str | bool | None = None,
        receipt: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> Receipt:
        """Remove the text of one memory for good, or everything that lives in a scope.

        With an id: that memory, and everything derived from it; a bound caller erases only memories
        that live in its scopes, not memories of others. Without an id: the one scope that is named
        and confirmed, with every memory and name that lives in it, and its own name. Members of the
        scope that live elsewhere stay. See `WorldDB.erase`. With `receipt` the answer has a signed
        envelope, which `verify_receipt` checks.

        Raises:
            InvalidInputError: not an id, not exactly one scope, or it is not confirmed.
            NotFoundError: there is no such memory or scope here.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        engine = self.db.engine
        if receipt:
            signing_key(engine.store)  # Without a key nothing is erased.
        done = self._erase(id, confirm, scope)
        if not receipt:
            return done
        reach = self.scopes.reach(scope)
        named = {f"{group[0].kind}_id": sorted(one.value for one in group) for group in reach}
        is_bound = bool(self.scopes.bounds)
        return signed_receipt(engine.store, done, engine.clock(), named, is_bound=is_bound)

    def _erase(
        self, id: bytes | str | None, confirm: str | bool | None, scope: Mapping[str, Any]
    ) -> Receipt:
        if id is not None:
            with self.scopes.viewing(self.scopes.reach(scope), ended=True) as view:
                row, node = find_memory(view, id)
                if not rows_at_home(view.reader, self.scopes.bounds, [row]):
                    raise RejectedError(
                        f"{node.id.short} lives in its writer's scope, so only the writer can "
                        "erase it; refuse it to take it out of your scope"
                    )
            return self._erased([node.id])
        named = self._one_scope(scope, "erase")
        check_confirmed(confirm, [named], "erase")
        with self.db.engine.store.read() as reader:
            worlds = [Id(reader.world(row).id) for row in generations(reader, named)]
        if not worlds:
            raise NotFoundError(f"there is no scope {named}; list the scopes to see them")
        receipt = self._erased(worlds)
        forget_reads(self.db.engine.store, lambda entry: str(named) in entry.scopes)
        return receipt

    def _erased(self, ids: Sequence[Id]) -> Receipt:
        engine = self.db.engine
        try:
            receipt = erase_texts(engine.store, engine.search, self._transaction(), ids)
        except HeldError as error:
            own = [str(one) for group in self.scopes.bounds for one in group]
            if not own or error.name in own:
                raise
            # A bound caller is not told which other scope a memory is in.
            raise RejectedError(HELD.format("a memory here")) from None
        commit, root = self.scopes.own_commit(receipt.commit)
        return replace(receipt, ids=self._told(receipt.ids), commit=commit, root_state=root)

    def _one_scope(self, given: Mapping[str, Any], what: str) -> ScopeName:
        """Return the one scope that a call names; a bound caller may name only its own."""
        one_scope(given, what)
        return self.scopes.own_scope(given, what)

    def _ended(self, tx: Transaction, ends: Sequence[Id], scopes: tuple[ScopeName, ...]) -> Retired:
        commit, root = self.scopes.own_commit(tx.commit)
        return Retired(ids=self._told(ends), scopes=scopes, commit=commit, root_state=root)

    def _told(self, ids: Sequence[Id]) -> tuple[Id, ...]:
        """Return the ended nodes that are inside the bounds of the caller.

        Nodes that others derived from a memory end with it and are not reported.
        """
        if not self.scopes.bounds:
            return tuple(ids)
        with self.scopes.viewing(self.scopes.bounds, ended=True) as view:
            rows = {ident: view.reader.node_row(ident) or NOWHERE for ident in ids}
            seen = inside_scopes(view, set(rows.values()))
        return tuple(ident for ident in ids if rows[ident] in seen)


def check_confirmed(confirm: str | bool | None, scopes: Sequence[ScopeName], what: str) -> None:
    """Check that the caller has confirmed which scope it ends.

    Raises:
        InvalidInputError: it said nothing, or another scope.
    """
    names = {text for scope in scopes for text in (scope.value, str(scope))}
    # Kinds narrow what is ended, so one value is enough; several values of one kind widen it.
    one_each = len({scope.kind for scope in scopes}) == len(scopes)
    if confirm is True or (one_each and isinstance(confirm, str) and confirm in names):
        return
    wanted = repr(scopes[0].value) if one_each else "True"
    raise InvalidInputError(f"{what}: to confirm, pass confirm={wanted}; nothing was done")


def _check_time(at: Instant | None) -> None:
    if at is not None:
        to_micros(at, "at")


def _end(tx: Transaction, ends: Iterable[Id], at: Instant | None) -> None:
    for ident in ends:
        tx.retire(ident, at=at)


def ends_with(view: View, rows: Iterable[int]) -> list[Id]:
    """Return the live nodes that end with some memories: their parts, and what rests on them."""
    reader = view.reader
    gone: set[int] = set()
    todo = set(rows)
    while todo:
        gone |= inside_memories(reader, todo)
        todo = derived_alone(reader, gone, view.keep_time) - gone
    live = view.keep_time(gone)
    return [Id(world.id) for _, world in sorted(reader.worlds(live).items())]
