"""Governance: what a memory can prove, whom it trusts, and how long it keeps what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack

from worlddb.memory.scope_view import CallerScopes
from worlddb.model.records import ScopeIds
from worlddb.world_db import WorldDB

if TYPE_CHECKING:
    from worlddb.ingest.branch_merge import Merged
    from worlddb.memory.listings import FadingPage, Interior, PendingPage
    from worlddb.memory.reads import MemoryReader
    from worlddb.memory.receipts import ScopeExport, Verification
    from worlddb.memory.results import MemoryPage, ReadPage, Remembered, Retired
    from worlddb.memory.scope_grants import Grant, GrantKeeper, Grants
    from worlddb.memory.scope_policies import (
        RetentionKeeper,
        RetentionPolicies,
        RetentionPolicy,
        RetentionReport,
        TrustKeeper,
        TrustSettings,
    )
    from worlddb.memory.writes import MemoryWriter
    from worlddb.model.inputs import Instant
    from worlddb.model.proof import HistoryProof
    from worlddb.model.records import Branch, Branches, Diff


@dataclass(frozen=True, slots=True, kw_only=True)
class Governance:
    """The calls of one caller on receipts, proofs, retention, branches, grants and trust."""

    db: WorldDB
    writer: MemoryWriter
    reader: MemoryReader

    @property
    def _scopes(self) -> CallerScopes:
        return self.writer.scopes

    def verify_receipt(
        self,
        receipt: Mapping[str, Any],
        *,
        public_key: bytes | str | None = None,
        again: bool = True,
    ) -> Verification:
        """Check the signature of a receipt, and whether what it says is still so.

        The question of a recall is asked again as of then, and the answers are compared. What a
        receipt of `erase` names must be erased, by its commit. A receipt of `export` must fit the
        export; give that whole. `public_key` is the key that must have signed it, as 32 bytes or 64
        hex digits; by default the key of this store. With `again=False` only the signature is
        checked.

        Raises:
            FormatError: it is no receipt.
            InvalidInputError: there is nothing to compare with, or the key is no key.
            RejectedError: its scope is outside the bounds of this memory.
            StorageError: the key of the store cannot be read.
        """
        from worlddb.memory.receipts import verified

        return verified(self.db, self._scopes, receipt, public_key, again)

    def prove_history(self, since: int = 0) -> HistoryProof:
        """Return a proof that nothing was rewritten up to commit `since`.

        `worlddb.verify_history` checks it, with the log heads that you kept.

        Raises:
            InvalidInputError, NotFoundError: there is no such commit.
            RejectedError: this memory is bound; the journal is about the whole store.
        """
        self._scopes.refuse_bound("a proof")
        return self.db.prove_history(since)

    def export(
        self,
        *,
        receipt: bool = False,
        confirm: str | bool | None = None,
        **scope: Unpack[ScopeIds],
    ) -> ScopeExport:
        """Return everything that is remembered in one scope, retired or not, to be handed over.

        With `receipt` it has a signed receipt of what was exported. `confirm`, if given, has to be
        True or the scope's value. To remove it, see `erase`.

        Raises:
            InvalidInputError: not exactly one scope is named, or another one is confirmed.
            NotFoundError: there is no such scope.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError: the key for receipts cannot be made or read.
        """
        from worlddb.memory.receipts import export_scope

        return export_scope(self.reader, scope, receipt, confirm)

    def reads(self, *, limit: int = 100, **scope: Unpack[ScopeIds]) -> ReadPage:
        """Return who recalled what, the latest first: of all scopes, or of those that are named.

        Only a store that was opened with `audit_reads=True` records reads.

        Raises:
            InvalidInputError: a scope is badly named, or the limit is no number from 1 to 1,000.
            RejectedError: this memory is bound; the record is for administrators.
            StorageError: the record cannot be read.
        """
        from worlddb.memory.results import read_page

        self._scopes.refuse_bound("the record of reads")
        return read_page(self.db.engine.store, limit, scope)

    def retention(self) -> RetentionPolicies:
        """Return the retention policies of all scopes that have one.

        Raises:
            RejectedError: this memory is bound; policies are for administrators.
        """
        return self._retention().policies()

    def set_retention(
        self,
        *,
        keep_days: int | None = None,
        then: Literal["retire", "erase"] | None = None,
        hold: Literal["on", "off"] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> RetentionPolicy:
        """Change how long the memories that live in one scope are kept, as a commit.

        `keep_days` after a memory was written (0: for ever) it is due, unless it is pinned; `then`
        it is retired, or erased for good. With `hold="on"` nothing of the scope is erased, by a
        policy or by a call, until `hold="off"`. What is left out stays as it was.

        Raises:
            InvalidInputError: not exactly one scope, or an argument is wrong.
            NotFoundError: there is no such scope.
            RejectedError: this memory is bound; policies are for administrators.
            StorageError, ConflictError: the store cannot be written.
        """
        return self._retention().change(keep_days, then, hold, scope)

    def apply_retention(
        self, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> RetentionReport:
        """Retire or erase what is due by the policies, of all scopes or of those that are named.

        With `dry_run`, say what is due and change nothing. The commits have the actor `retention`.

        Raises:
            InvalidInputError: a scope is badly named.
            RejectedError: this memory is bound; policies are for administrators.
            StorageError, ConflictError: the store cannot be written.
        """
        return self._retention().apply(dry_run, scope)

    def _retention(self) -> RetentionKeeper:
        from worlddb.memory.scope_policies import RetentionKeeper

        self._scopes.refuse_bound("a retention policy")
        return RetentionKeeper(db=self.db, scopes=self._scopes, actor=self.writer.actor)

    # -- what waits for a decision -----------------------------------------------------------------

    def fading(
        self, *, below: float = 0.25, limit: int = 50, **scope: Unpack[ScopeIds]
    ) -> FadingPage:
        """Return memories that fade, the worst first: old, seldom recalled and hardly linked.

        Retention falls from 1 towards 0 since a memory was made or last recalled. What is pinned
        does not fade. This is a report: nothing is retired because of it.

        Raises:
            InvalidInputError: an argument is wrong.
            RejectedError: the scope is outside the bounds of this memory.
        """
        from worlddb.memory.listings import fading_page

        return fading_page(self.reader, limit, below, scope)

    def pending(self, *, limit: int = 50, **scope: Unpack[ScopeIds]) -> PendingPage:
        """Return memories that are written and not read yet: too long, or a model failed.

        Their text is there and recalled; names and facts come later. See `db.extract_pending`.

        Raises:
            InvalidInputError: an argument is wrong.
            RejectedError: the scope is outside the bounds of this memory.
        """
        from worlddb.memory.listings import pending_page

        return pending_page(self.reader, limit, scope)

    def interior(
        self,
        id: bytes | str | None = None,
        *,
        type: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
        as_of: Instant | None = None,
        known_at: Instant | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Interior:
        """Return a page of what lives in a world, with the size of each world.

        `id` is a world that can be seen; by default the first scope. With `type` only its nodes of
        that type, such as "Entity".

        Raises:
            InvalidInputError: an argument is wrong.
            NotFoundError: there is no such world here.
            RejectedError: the scope is outside the bounds of this memory.
        """
        from worlddb.memory.listings import interior_page

        return self.reader.by_grant(
            scope,
            lambda reader: interior_page(
                reader,
                id,
                type=type,
                limit=limit,
                cursor=cursor,
                as_of=as_of,
                known_at=known_at,
                scope=scope,
            ),
        )

    # -- branches ----------------------------------------------------------------------------------

    def create_branch(self, name: str) -> Branch:
        """Make a branch of the store, and return where it was forked from.

        Raises:
            InvalidInputError: the name is none.
            ConflictError: there is a branch of that name.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be branched, or not be written.
        """
        self.refuse_branch()
        return self.db.engine.store.fork(name, self.writer.actor)

    def branches(self) -> Branches:
        """Return the branches of the store, by name.

        Raises:
            RejectedError: this memory is bound, or not trusted in full.
        """
        from worlddb.model.records import Branches

        self._scopes.refuse_bound("a branch")
        return Branches(branches=tuple(self.db.branches()))

    def branch_diff(self, name: str) -> Diff:
        """Return what was written to a branch and not merged yet.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            RejectedError: this memory is bound, or not trusted in full.
        """
        self._scopes.refuse_bound("a branch")
        return self.db.branch_diff(name)

    def merge(self, name: str, *, dry_run: bool = False) -> Merged:
        """Write what a branch says into the store, as one commit; say what that did.

        What both sides have changed since the fork stays as both say it, and is told. `undo` takes
        a merge back. `dry_run` tries it and writes nothing. See `WorldDB.merge`.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            ConflictError: the store was replaced since the fork, or too much was refused.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be written.
        """
        self.refuse_branch()
        return self.db.merge(name, dry_run=dry_run, actor=self.writer.actor)

    def drop_branch(self, name: str) -> Branches:
        """Remove a branch with all that was written to it; return those that are left.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be written.
        """
        self.refuse_branch()
        self.db.drop_branch(name)
        return self.branches()

    # -- grants ------------------------------------------------------------------------------------

    def grant(
        self,
        to: str,
        right: Literal["read", "write"],
        *,
        until: Instant | None = None,
        confirm: str | bool | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Grant:
        """Let callers who are bound to another scope, such as "user:bob", read or write in one.

        The grant is a memory of that scope. It opens recall, context, list, read and query to those
        who name the scope, or lets them write into it: what they write lives in their own scope, is
        a member of this one, and is trusted as a tool is. It ends when it is revoked, or `until`
        then. The same grant again takes the place of the old one. `confirm`, if given, has to be
        True or the scope's value.

        Raises:
            InvalidInputError: no such right or scope, not exactly one scope, or `until` is over.
            RejectedError: the scope is not the caller's as a whole, or the caller is not trusted
                in full.
            StorageError, ConflictError: the store cannot be written.
        """
        return self._grants().give(to, right, until, confirm, scope)

    def grants(self, *, include_ended: bool = False, **scope: Unpack[ScopeIds]) -> Grants:
        """Return the grants that scopes have given or got; without a scope, all the caller may see.

        Raises:
            InvalidInputError: a scope is badly named.
            RejectedError: the scope is outside the bounds of this memory.
        """
        return self._grants().grants(include_ended, scope)

    def revoke(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Grant:
        """End a grant, or a refusal, that one's own scope has given; both can still be read.

        Raises:
            InvalidInputError, NotFoundError: there is no such grant here.
            RejectedError: the scope is outside the bounds, or the caller is not trusted in full.
            StorageError, ConflictError: the store cannot be written.
        """
        return self._grants().revoke(id, scope)

    def refuse(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Retired:
        """Take a memory that somebody else wrote into a scope out of it, and take no more of them.

        The memory stays in the scope that it lives in. The grants to write here that this scope had
        end, and a refusal takes their place, until it is revoked or another grant is given.

        Raises:
            InvalidInputError: not an id, or not exactly one scope.
            NotFoundError: there is no such memory here.
            ConflictError: the memory lives in this scope; or the store is busy.
            RejectedError: the scope is not the caller's as a whole, or the caller is not trusted
                in full.
            StorageError: the store cannot be written.
        """
        return self._grants().refuse(id, scope)

    def _grants(self) -> GrantKeeper:
        from worlddb.memory.scope_grants import GrantKeeper

        return GrantKeeper(
            db=self.db, scopes=self._scopes, actor=self.writer.actor, origin=self.writer.origin
        )

    # -- trust -------------------------------------------------------------------------------------

    def trust(self, **scope: Unpack[ScopeIds]) -> TrustSettings:
        """Return how far a scope trusts each origin, and what it does with secrets in texts.

        Raises:
            InvalidInputError: a scope is badly named.
            RejectedError: the scope is outside the bounds of this memory.
        """
        return self._trust().settings(scope)

    def set_trust(
        self,
        trust: Mapping[str, str] | None = None,
        *,
        secrets: str | None = None,
        everywhere: bool = False,
        **scope: Unpack[ScopeIds],
    ) -> TrustSettings:
        """Change how far a scope trusts origins, such as `{"web": "quarantine"}`, as a commit.

        A trust is full, limited, low or quarantine. `secrets` says what becomes of keys, tokens,
        passwords and card numbers in texts: keep, warn, mask, leave_out or refuse. With
        `everywhere` it holds for all scopes that say nothing else.

        Raises:
            InvalidInputError: there is no such origin, trust or rule, or nothing is given.
            RejectedError: this memory is bound, or of another origin than the user.
            StorageError, ConflictError: the store cannot be written.
        """
        return self._trust().change(trust, secrets, everywhere, scope)

    def quarantine(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> MemoryPage:
        """Return what waits in quarantine, the latest first: written, and not recalled.

        Raises:
            InvalidInputError: an argument is wrong.
            RejectedError: the scope is outside the bounds of this memory.
        """
        return self._trust().quarantined(limit, cursor, scope)

    def decide_quarantined(
        self,
        id: bytes | str,
        decision: Literal["release", "reject", "wait"],
        **scope: Unpack[ScopeIds],
    ) -> Remembered:
        """Release what waits in quarantine, as a memory that holds from now on, or reject it.

        A memory that is released keeps its origin, and with it its trust. `wait` takes a rejection
        back: the memory waits again.

        Raises:
            InvalidInputError: no such decision, or not an id.
            NotFoundError, ConflictError: there is no such memory here, or it does not wait.
            RejectedError: the scope is outside the bounds, or the caller is not trusted in full.
            StorageError: the store cannot be written.
        """
        return self._trust().decide(id, decision, scope)

    def _trust(self) -> TrustKeeper:
        from worlddb.memory.scope_policies import TrustKeeper

        return TrustKeeper(writer=self.writer, reader=self.reader)

    def refuse_branch(self) -> None:
        """Refuse a caller who may not work with branches.

        Raises:
            RejectedError: the caller is bound, or not trusted in full.
        """
        from worlddb.memory.scope_view import refuse_untrusted

        self._scopes.refuse_bound("a branch")
        with self.db.engine.store.read() as reader:
            refuse_untrusted(reader, self.writer.origin, None, "make, merge or drop a branch")
