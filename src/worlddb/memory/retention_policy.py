"""Retention policy: how long the memories of a scope are kept, and which must not be erased.

A policy is metadata of the scope's node, so every change of it is a commit that the journal has. It
holds for what lives in the scope; what is only a member of it lives elsewhere. After `keep_days`
without a change a memory is due, unless it is pinned. A *hold* keeps every memory that is in the
scope, also as a member: nothing of it is erased, by a policy or by a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from worlddb.audit.erasure_receipt import Receipt
from worlddb.audit.read_audit import forget_reads
from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.memory.endings import ALL, ends_with
from worlddb.memory.memory_marks import PINNED
from worlddb.memory.results import Page
from worlddb.memory.scope_view import (
    CallerScopes,
    generations,
    inside_memories,
    page,
    view_of,
)
from worlddb.model.address import Id
from worlddb.model.inputs import check_whole, from_micros
from worlddb.model.records import SCOPE, Plain, ScopeName, groups_of, scope_named
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import Moment, View
from worlddb.world_db import WorldDB
from worlddb.write.legal_hold import RETENTION, held_scopes
from worlddb.write.node_rows import erased_with

ACTOR = "retention"
DAYS_MAX = 36_500  # A century; whoever means more means for ever.
SCOPES_PER_READ = 1_000  # Bounds the memory of one read.
Action = Literal["retire", "erase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy(Plain):
    """How long the memories of a scope are kept (None: for ever), what then, and a legal hold."""

    scope: ScopeName
    keep_days: int | None = None
    then: Action = "retire"
    hold: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicies(Page[RetentionPolicy]):
    """The policies of all scopes that have one."""

    policies: tuple[RetentionPolicy, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DueMemories(Plain):
    """What is due in one scope; `pinned` and `held` count what is old enough and stays."""

    scope: ScopeName
    then: Action
    ids: tuple[Id, ...]
    pinned: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionReport(Plain):
    """What policies did, or would do with `dry_run`; `erasure` is the receipt of what was erased.

    `retired` are the memories that ended, with their parts and what rested on them alone.
    """

    dry_run: bool
    due: tuple[DueMemories, ...]
    retired: tuple[Id, ...] = ()
    erasure: Receipt | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionKeeper:
    """Reads, sets and applies the policies of a store."""

    db: WorldDB
    scopes: CallerScopes
    actor: str

    def policies(self) -> RetentionPolicies:
        """Return the policies of all live scopes that have one; see `Memory.retention`."""
        with self._now() as view:
            return RetentionPolicies(policies=tuple(_policies(view.reader, view.moment)))

    def change(
        self,
        keep_days: int | None,
        then: Action | None,
        hold: Literal["on", "off"] | None,
        scope: Mapping[str, Any],
    ) -> RetentionPolicy:
        """Change the policy of one scope; see `Memory.set_retention`."""
        named = _one_scope(scope)
        if keep_days is None and then is None and hold is None:
            raise InvalidInputError("set_retention: give keep_days, then or hold")
        if keep_days is not None:
            check_whole(keep_days, "keep_days", 0, DAYS_MAX)
        if then not in (None, "retire", "erase"):
            raise InvalidInputError(f"then {then!r:.40}: use 'retire' or 'erase'")
        if hold not in (None, "on", "off"):
            raise InvalidInputError(f"hold {hold!r:.40}: use 'on' or 'off'")
        with self.db.transaction(self.actor) as tx:
            with self._now() as view:
                rows = generations(view.reader, named)[-1:]
                if not view.keep_time(rows):
                    raise NotFoundError(f"there is no scope {named}; list them to see them")
                node = view.reader.nodes(rows)[rows[0]]
            old = _policy(named, node.metadata)
            made = RetentionPolicy(
                scope=named,
                keep_days=old.keep_days if keep_days is None else keep_days or None,
                then=old.then if then is None else then,
                hold=old.hold if hold is None else hold == "on",
            )
            kept = {"keep_days": made.keep_days, "then": made.then, "hold": made.hold}
            tx.add_metadata(node.id, {RETENTION: kept})
        return made

    def apply(self, dry_run: bool, scope: Mapping[str, Any]) -> RetentionReport:
        """Retire or erase what is due; see `Memory.apply_retention`."""
        only = {name for group in groups_of(scope) for name in group}
        with self._now() as view:
            due = [
                self._due(view, policy)
                for policy in _policies(view.reader, view.moment)
                if policy.keep_days is not None and (not only or policy.scope in only)
            ]
        if dry_run:
            return RetentionReport(dry_run=True, due=tuple(due))
        retired: list[Id] = []
        ended = [ident for one in due if one.then == "retire" for ident in one.ids]
        if ended:
            with self.db.transaction(ACTOR) as tx:
                # Read inside the transaction: nobody else writes meanwhile.
                with self._now() as view:
                    rows = [row for one in ended if (row := view.reader.node_row(one)) is not None]
                    retired = ends_with(view, rows)
                for ident in retired:
                    tx.retire(ident)
        for policy in self.policies():
            if policy.keep_days is not None and (not only or policy.scope in only):
                self._forget_reads(policy)
        gone = [ident for one in due if one.then == "erase" for ident in one.ids]
        erasure = self.db.erase(gone, actor=ACTOR) if gone else None
        return RetentionReport(
            dry_run=False, due=tuple(due), retired=tuple(retired), erasure=erasure
        )

    def _due(self, view: View, policy: RetentionPolicy) -> DueMemories:
        reader, moment = view.reader, view.moment
        erases = policy.then == "erase"
        inside = view_of(reader, ((policy.scope,),), moment, erases)
        living = set(reader.children_of(generations(reader, policy.scope)[-1:]))
        rows = [row for row in page(inside, None, ALL) if row in living]
        before = moment.now - timedelta(days=policy.keep_days or 0)
        nodes = reader.nodes(rows)
        old = [row for row in rows if _last_change(reader, row) < before]
        pinned = {row for row in old if nodes[row].metadata.get(PINNED) is True}
        kept: set[int] = set()
        if held_scopes(reader, erased_with(reader, old), moment.now):
            held = (held_scopes(reader, erased_with(reader, [row]), moment.now) for row in old)
            kept = {row for row, names in zip(old, held, strict=True) if names}
        due = [nodes[row].id for row in sorted(set(old) - pinned - kept)]
        return DueMemories(
            scope=policy.scope,
            then=policy.then,
            ids=tuple(due),
            pinned=len(pinned),
            held=len(kept - pinned),
        )

    def _forget_reads(self, policy: RetentionPolicy) -> None:
        """Remove what the record of reads keeps longer than the scope keeps memories."""
        now = from_micros(self.db.engine.clock())
        before, name = now - timedelta(days=policy.keep_days or 0), str(policy.scope)
        if not policy.hold:
            forget_reads(
                self.db.engine.store, lambda read: name in read.scopes and read.time < before
            )

    def _now(self) -> AbstractContextManager[View]:
        return self.scopes.viewing(())


def _last_change(reader: Reader, row: int) -> datetime:
    """Return when a memory, or the last part of it, such as a turn of a session, was written."""
    return max(node.known_from for node in reader.nodes(inside_memories(reader, [row])).values())


def _policies(reader: Reader, moment: Moment) -> Iterator[RetentionPolicy]:
    after = 0
    while rows := reader.placed.typed(ROOT_ROW, SCOPE, "", after, SCOPES_PER_READ):
        after = rows[-1]
        for _, node in sorted(reader.nodes(rows).items()):
            if RETENTION in node.metadata and moment.holds(node):
                with suppress(InvalidInputError):  # Somebody's own scope, named as they like.
                    yield _policy(scope_named(node.name), node.metadata)


def _policy(scope: ScopeName, metadata: Mapping[str, Any]) -> RetentionPolicy:
    given = metadata.get(RETENTION)
    return RetentionPolicy(scope=scope, **(given if isinstance(given, Mapping) else {}))


def _one_scope(scope: Mapping[str, Any]) -> ScopeName:
    named: Sequence[ScopeName] = [name for group in groups_of(scope) for name in group]
    if len(named) != 1:
        raise InvalidInputError(
            "set_retention: name one scope: user_id, agent_id, app_id or run_id"
        )
    return named[0]
