"""Writing: transactions, the ontology, and decisions about identity."""

from __future__ import annotations

from contextlib import AbstractContextManager

from worlddb.api.opened import Opened
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.records import Proposal, ProposalStatus
from worlddb.view import lookup
from worlddb.write.transaction import DEFAULT_ACTOR, Ontology, Transaction, transact


class Writing(Opened):
    """The part of WorldDB that writes."""

    def transaction(
        self, actor: str = DEFAULT_ACTOR, *, bulk: bool = False
    ) -> AbstractContextManager[Transaction]:
        """Open a transaction: `with db.transaction(actor="me") as tx:` is one commit.

        It lands when the block ends and is lost whole when the block raises. `bulk` builds
        indexes once at the end: for loads that are large beside what is there already.

        Raises:
            StorageError: the store is read-only, or the disk refused.
            ConflictError: another writer kept the lock longer than `busy_timeout_s`.
            InvalidInputError: this thread already has a transaction open.
        """
        return transact(self._store, self._registry, actor=actor, bulk=bulk, limits=self._limits)

    def ontology(self, world_id: bytes | str | None = None) -> Ontology:
        """Return the edge types of a world (default: the root world), to register more.

        Raises:
            NotFoundError, InvalidInputError: no such world.
        """
        world = ROOT_ID if world_id is None else self._world(world_id)
        return Ontology(self._store, self._registry, world, self._limits)

    def accept_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Unite the two ends of a `same_as` edge into one identity; both keep their rows.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was rejected or withdrawn.
        """
        return self._decide(edge_id, "accepted", actor)

    def reject_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Decide that the two ends of a `same_as` edge are different.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was accepted or withdrawn.
        """
        return self._decide(edge_id, "rejected", actor)

    def undo_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Take an accepted merge back; the proposal is pending again.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was not accepted.
        """
        return self._decide(edge_id, "pending", actor)

    def _decide(self, edge_id: bytes | str, status: ProposalStatus, actor: str) -> Proposal:
        with self.transaction(actor) as tx:
            return tx.decide_merge(edge_id, status)

    def _world(self, world_id: bytes | str) -> Id:
        with self._store.read() as reader:
            return Id(reader.world(lookup.find(reader, world_id, "nodes")).id)
