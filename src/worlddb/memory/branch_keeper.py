"""Branch keeper: the calls of `Memory` that create, compare, merge and drop branches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from worlddb.memory.scope_view import refuse_untrusted
from worlddb.model.records import Branch, Branches, Diff
from worlddb.world_db import WorldDB

if TYPE_CHECKING:
    from worlddb.ingest.branch_merge import Merged
    from worlddb.memory.writes import MemoryWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchKeeper:
    """The calls of one caller on branches; a bound caller is refused."""

    db: WorldDB
    writer: MemoryWriter

    def create_branch(self, name: str) -> Branch:
        """Create a branch of the store, and return it with its fork.

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
        self.writer.scopes.refuse_bound("a branch")
        return Branches(branches=tuple(self.db.branches()))

    def branch_diff(self, name: str) -> Diff:
        """Return the changes of a branch that were not merged yet.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            RejectedError: this memory is bound, or not trusted in full.
        """
        self.writer.scopes.refuse_bound("a branch")
        return self.db.branch_diff(name)

    def merge(self, name: str, *, dry_run: bool = False) -> Merged:
        """Write the changes of a branch into the store, as one commit; return what changed.

        What both sides have changed since the fork stays on both sides, and is reported. `undo` can
        undo a merge. `dry_run` rolls the merge back. See `WorldDB.merge`.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            ConflictError: the store was replaced since the fork, or too much was refused.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be written.
        """
        self.refuse_branch()
        return self.db.merge(name, dry_run=dry_run, actor=self.writer.actor)

    def drop_branch(self, name: str) -> Branches:
        """Remove a branch with all its changes; return the remaining branches.

        Raises:
            InvalidInputError, NotFoundError: there is no such branch.
            RejectedError: this memory is bound, or not trusted in full.
            StorageError: the store cannot be written.
        """
        self.refuse_branch()
        self.db.drop_branch(name)
        return self.branches()

    def refuse_branch(self) -> None:
        """Refuse a caller who may not work with branches.

        Raises:
            RejectedError: the caller is bound, or not trusted in full.
        """
        self.writer.scopes.refuse_bound("a branch")
        with self.db.engine.store.read() as reader:
            refuse_untrusted(reader, self.writer.origin, None, "make, merge or drop a branch")
