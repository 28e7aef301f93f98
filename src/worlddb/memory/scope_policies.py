"""Scope policies: how long a scope keeps memories, which origins it trusts, how it treats secrets.

A policy is metadata of the scope's node, so every change is a commit of the journal. It applies to
memories that live in the scope, not to members. A memory is due `keep_days` after its last change,
unless it is pinned. A legal *hold* protects every memory in the scope, members included: neither a
policy nor a call erases any of them.

A text whose origin has the trust `quarantine` is written with an empty validity: no question finds
it, and nothing is extracted from it. Somebody with full trust releases it, as a successor that is
valid from then on, or rejects it. A rejection can be undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias, Unpack, get_args

from worlddb.audit.erasure_receipt import Receipt, erase_texts
from worlddb.audit.read_audit import forget_reads
from worlddb.errors import ConflictError, InvalidInputError, NotFoundError, RejectedError
from worlddb.ingest.draft_parts import PENDING, QUARANTINE
from worlddb.memory.endings import ALL, ends_with
from worlddb.memory.memory_marks import PINNED
from worlddb.memory.reads import MemoryReader
from worlddb.memory.results import MemoryPage, Page, Remembered
from worlddb.memory.scope_grants import ensure_scope
from worlddb.memory.scope_view import (
    CallerScopes,
    find_memory,
    generations,
    inside_memories,
    one_scope,
    page,
    view_of,
)
from worlddb.memory.writes import MemoryWriter
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.inputs import (
    SCOPE,
    Plain,
    ScopeIds,
    ScopeName,
    check_choice,
    check_integer,
    from_micros,
    groups_of,
    scope_named,
)
from worlddb.model.records import Message
from worlddb.model.text_safety import (
    DEFAULT_TRUST,
    FULL,
    SECRETS,
    SETTINGS,
    Origin,
    check_trust,
    trust_level,
    without_secret_values,
    without_secrets,
    without_sentences,
)
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.node_filters import TrustLevels
from worlddb.view.visibility import Moment, View
from worlddb.world_db import WorldDB
from worlddb.write.node_rows import RETENTION, erased_with, held_scopes, is_held

ACTOR = "retention"
DAYS_MAX = 36_500  # A century; for longer, keep for ever.
SCOPES_PER_READ = 1_000  # Bounds the memory of one read.
Action = Literal["retire", "erase"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionPolicy(Plain):
    """How long the memories of a scope are kept (None: for ever), what happens then, and holds."""

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
    """The memories that are due in one scope; `pinned` and `held` count the protected ones."""

    scope: ScopeName
    then: Action
    ids: tuple[Id, ...]
    pinned: int
    held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionReport(Plain):
    """The effects of policies, or with `dry_run` those they would have.

    `retired` are the ended memories, with their parts and nodes derived from them alone; `erasure`
    is the receipt of an erasure.
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
    origin: Origin | None = None

    def retention(self) -> RetentionPolicies:
        """Return the retention policies of all scopes that have one, and holds of purged ones.

        Raises:
            RejectedError: this memory is bound; policies are for administrators.
        """
        self.scopes.refuse_bound("a retention policy")
        with self._now() as view:
            return RetentionPolicies(policies=tuple(_policies(view.reader, view.moment)))

    def set_retention(
        self,
        *,
        keep_days: int | None = None,
        then: Literal["retire", "erase"] | None = None,
        hold: Literal["on", "off"] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> RetentionPolicy:
        """Set how long the memories that live in one scope are kept, as a commit.

        A memory is due `keep_days` after it was written (0: never), unless it is pinned; `then` it
        is retired, or erased for good. With `hold="on"` nothing in the scope is erased, by a policy
        or by a call, until `hold="off"`, also if the scope is purged. Omitted options stay.

        Raises:
            InvalidInputError: not exactly one scope, or an argument is wrong.
            NotFoundError: there is no such scope.
            RejectedError: this memory is bound, or of another origin than the user; policies are
                for administrators.
            StorageError, ConflictError: the store cannot be written.
        """
        self._refuse_others()
        named = one_scope(scope, "set_retention")
        if keep_days is None and then is None and hold is None:
            raise InvalidInputError("set_retention: give keep_days, then or hold")
        if keep_days is not None:
            check_integer(keep_days, "keep_days", 0, DAYS_MAX)
        if then is not None:
            check_choice(then, "then", ("retire", "erase"))
        if hold is not None:
            check_choice(hold, "hold", ("on", "off"))
        with self.db.transaction(self.actor) as tx:
            with self._now() as view:
                rows = generations(view.reader, named)
                nodes = view.reader.nodes(rows)
                held = [nodes[row] for row in rows if is_held(nodes[row])]
                if not view.keep_time(rows[-1:]) and not (held and hold == "off"):
                    raise NotFoundError(f"there is no scope {named}; list the scopes to see them")
                node = nodes[rows[-1]]
            old = _policy(named, node.metadata)
            made = RetentionPolicy(
                scope=named,
                keep_days=old.keep_days if keep_days is None else keep_days or None,
                then=old.then if then is None else then,
                hold=old.hold if hold is None else hold == "on",
            )
            kept = {"keep_days": made.keep_days, "then": made.then, "hold": made.hold}
            tx.add_metadata(node.id, {RETENTION: kept})
            for purged in held if hold == "off" else ():
                if purged.id != node.id:
                    tx.add_metadata(purged.id, {RETENTION: None})
        return made

    def _refuse_others(self) -> None:
        self.scopes.refuse_bound("a retention policy")
        if self.origin is not None:
            raise RejectedError(f"policies are for administrators, not for {self.origin!r}")

    def apply_retention(
        self, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> RetentionReport:
        """Retire or erase the memories that are due by the policies, of all or of named scopes.

        With `dry_run`, only report them. The commits have the actor `retention`.

        Raises:
            InvalidInputError: a scope is badly named.
            RejectedError: this memory is bound, or of another origin than the user; policies are
                for administrators.
            StorageError, ConflictError: the store cannot be written.
        """
        self._refuse_others()
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
        ends = [one for one in due if one.then == "retire" and one.ids]
        if ends:
            with self.db.transaction(ACTOR) as tx:
                # Read inside the transaction, where nobody else writes.
                with self._now() as view:
                    retired = ends_with(view, self._still_due(view, ends))
                for ident in retired:
                    tx.retire(ident)
        for policy in self.retention():
            if policy.keep_days is not None and (not only or policy.scope in only):
                self._forget_reads(policy)
        goes = [one for one in due if one.then == "erase" and one.ids]
        return RetentionReport(
            dry_run=False,
            due=tuple(due),
            retired=tuple(retired),
            erasure=self._erase(goes) if goes else None,
        )

    def _erase(self, goes: Sequence[DueMemories]) -> Receipt | None:
        def chosen() -> list[Id]:
            with self._now() as view:
                nodes = view.reader.nodes(self._still_due(view, goes))
                return [node.id for node in nodes.values()]

        engine = self.db.engine
        done = erase_texts(engine.store, engine.search, self.db.transaction(ACTOR), chosen)
        return done if done.ids else None

    def _still_due(self, view: View, found: Sequence[DueMemories]) -> list[int]:
        """Return the rows that are still due: not pinned or held since they were found."""
        rows: list[int] = []
        for one in found:
            world = generations(view.reader, one.scope)[-1:]
            policy = _policy(one.scope, view.reader.nodes(world)[world[0]].metadata)
            if policy.keep_days is None or policy.then != one.then:
                continue
            known = (view.reader.node_row(ident) for ident in one.ids)
            chosen = self._chosen(view, policy, [row for row in known if row is not None])
            rows += filter(None, map(view.reader.node_row, chosen.ids))
        return rows

    def _due(self, view: View, policy: RetentionPolicy) -> DueMemories:
        inside = view_of(view.reader, ((policy.scope,),), view.moment, policy.then == "erase")
        living = set(view.reader.children_of(generations(view.reader, policy.scope)[-1:]))
        rows = [row for row in page(inside, None, ALL) if row in living]
        return self._chosen(view, policy, rows)

    def _chosen(self, view: View, policy: RetentionPolicy, rows: Sequence[int]) -> DueMemories:
        """Choose the memories that a policy ends now."""
        reader, moment = view.reader, view.moment
        before = moment.now - timedelta(days=policy.keep_days or 0)
        nodes = reader.nodes(rows)
        old = [row for row in rows if _last_change(reader, row) < before]
        pinned = {row for row in old if nodes[row].metadata.get(PINNED) is True}
        kept: set[int] = set()
        if held_scopes(reader, erased_with(reader, old)):
            held = (held_scopes(reader, erased_with(reader, [row])) for row in old)
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
        """Remove reads from the audit record that are older than the retention of the scope."""
        now = from_micros(self.db.engine.clock())
        before, name = now - timedelta(days=policy.keep_days or 0), str(policy.scope)
        if not policy.hold:
            forget_reads(
                self.db.engine.store, lambda read: name in read.scopes and read.time < before
            )

    def _now(self) -> AbstractContextManager[View]:
        return self.scopes.viewing(())


def _last_change(reader: Reader, row: int) -> datetime:
    """Return when a memory, or its last part, such as a turn, was written."""
    return max(node.known_from for node in reader.nodes(inside_memories(reader, [row])).values())


def _policies(reader: Reader, moment: Moment) -> Iterator[RetentionPolicy]:
    after = 0
    while rows := reader.placed.typed(ROOT_ROW, SCOPE, "", after, SCOPES_PER_READ):
        after = rows[-1]
        for _, node in sorted(reader.nodes(rows).items()):
            is_live = moment.holds(node)
            if RETENTION in node.metadata and (is_live or is_held(node)):
                with suppress(InvalidInputError):  # A caller's node with a scope's type.
                    policy = _policy(scope_named(node.name), node.metadata)
                    yield policy if is_live else replace(policy, keep_days=None)


def _policy(scope: ScopeName, metadata: Mapping[str, Any]) -> RetentionPolicy:
    given = metadata.get(RETENTION)
    return RetentionPolicy(scope=scope, **(given if isinstance(given, Mapping) else {}))


# Secret check: keys, tokens, passwords and card numbers in a text.
#
# Every write looks for a hint (`may_be_secret`), which costs a few microseconds. Only a text with a
# hint is searched for secrets, and only a text with secrets comes here, to the rule of its scope.


def checked(
    writer: MemoryWriter,
    messages: Sequence[Message],
    scope: Mapping[str, Any],
    kinds: tuple[str, ...],
) -> tuple[list[Message], tuple[str, ...]]:
    """Return messages with secrets as the scope's rule requires, and the kinds to report.

    Raises:
        RejectedError: the scope refuses texts with secrets, or nothing is left of them.
    """
    told = ", ".join(kinds)
    rule = _rule(writer, scope, told)
    if rule in ("mask", "leave_out"):
        change = without_secrets if rule == "mask" else without_sentences
        messages = [
            replace(
                one,
                text=change(one.text),
                speaker=without_secrets(one.speaker),
                id=one.id and without_secrets(one.id),
            )
            for one in messages
        ]
        messages = [one for one in messages if one.text.strip()]
        if not messages:
            raise RejectedError(f"the text has nothing but a secret ({told})")
    return list(messages), () if rule == "keep" else kinds


def checked_values(
    writer: MemoryWriter,
    values: tuple[Any, ...],
    scope: Mapping[str, Any],
    kinds: tuple[str, ...],
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return the values beside a text (metadata, names, tags) as the rule requires, and kinds.

    Where a text would lose a sentence with a secret, a value is left out.

    Raises:
        RejectedError: the scope refuses texts with secrets.
    """
    rule = _rule(writer, scope, ", ".join(kinds))
    if rule in ("mask", "leave_out"):
        gone = rule == "leave_out"
        values = tuple(without_secret_values(one, leave_out=gone) for one in values)
    return values, () if rule == "keep" else kinds


def _rule(writer: MemoryWriter, scope: Mapping[str, Any], told: str) -> str:
    """Return the rule of a scope for texts with secrets.

    Raises:
        RejectedError: the scope refuses them.
    """
    rule = settings_in(writer, scope).secrets
    if rule == "refuse":
        raise RejectedError(f"the text has a secret ({told}); leave it out, then write it again")
    return rule


# Trust settings.

SecretRule: TypeAlias = Literal["keep", "warn", "mask", "leave_out", "refuse"]
SECRET_RULES: tuple[SecretRule, ...] = get_args(SecretRule)
USUAL_SECRETS: SecretRule = "warn"
"""What somebody asks to be remembered is kept as it was said, and the answer says so."""
REJECTED = "rejected"
DECISIONS = {"release": PENDING, "reject": PENDING, "wait": REJECTED}
"""The decisions on a text in quarantine, with the state that each needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustSettings(Plain):
    """How far each origin is trusted in a scope, and the rule for secrets in texts."""

    trust: Mapping[str, str] = field(default_factory=dict, hash=False)
    secrets: str = USUAL_SECRETS


def settings_of(held: Mapping[str, Any]) -> TrustSettings:
    """Return settings from metadata, with defaults for missing ones."""
    trust = {origin: str(held.get(origin, usual)) for origin, usual in DEFAULT_TRUST.items()}
    return TrustSettings(trust=trust, secrets=str(held.get(SECRETS, USUAL_SECRETS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustKeeper:
    """Reads and changes the trust settings of scopes, and decides about the quarantine."""

    writer: MemoryWriter
    reader: MemoryReader

    def trust(self, **scope: Unpack[ScopeIds]) -> TrustSettings:
        """Return how far a scope trusts each origin, and its rule for secrets in texts.

        Raises:
            InvalidInputError: a scope is badly named.
            RejectedError: the scope is outside the bounds of this memory.
        """
        with self.writer.engine.store.read() as reader:
            return settings_of(_held(reader, _named(self.writer, scope)))

    def set_trust(
        self,
        trust: Mapping[str, str] | None = None,
        *,
        secrets: str | None = None,
        everywhere: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> TrustSettings:
        """Set how far a scope trusts origins, such as `{"web": "quarantine"}`, as a commit.

        A trust is full, limited, low or quarantine. `secrets` is the rule for keys, tokens,
        passwords and card numbers in texts: keep, warn, mask, leave_out or refuse. With
        `everywhere` the settings apply to all scopes without settings of their own.

        Raises:
            InvalidInputError: there is no such origin, trust or rule, or nothing is given.
            RejectedError: this memory is bound, or of another origin than the user.
            StorageError, ConflictError: the store cannot be written.
        """
        more: dict[str, str] = dict(check_trust(trust or {}))
        if secrets is not None:
            check_choice(secrets, "secrets", SECRET_RULES)
            more[SECRETS] = secrets
        if not more:
            raise InvalidInputError("set_trust: give trust, such as {'web': 'low'}, or secrets")
        if self.writer.scopes.bounds or self.writer.origin is not None:
            raise RejectedError("trust is set by administrators, not by a bound caller")
        named = _named(self.writer, scope)
        with self.writer.engine.ingestion.transact(self.writer.actor) as tx:
            ident = ROOT_ID if everywhere else ensure_scope(tx, named)
            row = tx.reader.node_row(ident) or ROOT_ROW
            own = tx.reader.nodes([row])[row].metadata.get(SETTINGS)
            held = {**(own if isinstance(own, Mapping) else {}), **more}
            tx.add_metadata(ident, {SETTINGS: held})
            return settings_of({**_held(tx.reader, named), **held})

    def quarantine(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> MemoryPage:
        """Return the memories in quarantine, the latest first; they are not recalled.

        Raises:
            InvalidInputError: an argument is wrong.
            RejectedError: the scope is outside the bounds of this memory.
        """
        return self.reader.page(
            limit=limit,
            cursor=cursor,
            include_retired=True,
            as_of=None,
            known_at=None,
            types=None,
            where={QUARANTINE: PENDING},
            scope=scope,
        )

    def decide_quarantined(
        self,
        id: bytes | str,
        decision: Literal["release", "reject", "wait"],
        **scope: Unpack[ScopeIds],
    ) -> Remembered:
        """Release a memory from quarantine, so that it is valid from now on, or reject it.

        A released memory keeps its origin, and so its trust. `wait` undoes a rejection.

        Raises:
            InvalidInputError: no such decision, or not an id.
            NotFoundError, ConflictError: there is no such memory here, or it does not wait.
            RejectedError: the scope is outside the bounds, or the caller is not trusted in full.
            StorageError: the store cannot be written.
        """
        check_choice(decision, "decision", DECISIONS)
        writer, reach = self.writer, self.writer.scopes.reach(scope)
        with writer.scopes.viewing(reach, ended=True) as view:
            node = find_memory(view, id)[1]
            own = () if writer.origin is None else (writer.origin,)
            if trust_level(own, TrustLevels(view.reader).settings(node.parent)) < FULL:
                raise RejectedError("only a caller who is trusted in full may decide that")
            state, needed = node.metadata.get(QUARANTINE), DECISIONS[decision]
            if state != needed:
                told = "does not wait in quarantine" if needed == PENDING else "was not rejected"
                raise ConflictError(f"memory {node.id.short} {told}")
            if decision == "release" and not node.content:
                raise ConflictError(
                    f"{node.id.short} is a whole session; write again what is right in it"
                )
        if decision != "release":
            new = REJECTED if decision == "reject" else PENDING
            with writer.engine.ingestion.transact(writer.actor) as tx:
                tx.add_metadata(node.id, {QUARANTINE: new})
            return self.reader.read(node.id, **scope)
        done = writer.release(node, reach)
        return self.reader.read(done.id, **scope)


def settings_in(writer: MemoryWriter, scope: Mapping[str, Any]) -> TrustSettings:
    """Return the trust settings of the scope that a write goes into."""
    named = writer.scopes.own_scopes(scope)[0][0]
    with writer.engine.store.read() as reader:
        return settings_of(_held(reader, named))


def _named(writer: MemoryWriter, scope: Mapping[str, Any]) -> ScopeName:
    return writer.scopes.groups(scope)[0][0]


def _held(reader: Reader, named: ScopeName) -> Mapping[str, Any]:
    rows = generations(reader, named)
    world = Id(reader.world(rows[-1]).id) if rows else ROOT_ID
    return TrustLevels(reader).settings(world)
