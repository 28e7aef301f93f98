"""Memory corrections: take commits back, inside the scopes of one caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from worlddb.audit.undo import CommitEffects, CommitNumbers, Undone, undo_commits
from worlddb.errors import NotFoundError, RejectedError
from worlddb.memory.scope_view import CallerScopes
from worlddb.model.records import NOW, SCOPE, Groups
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import View, moment_of
from worlddb.world_db import WorldDB


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCorrector:
    """Corrects the memories of one caller."""

    db: WorldDB
    scopes: CallerScopes
    actor: str

    def undo(self, commit: CommitNumbers, *, dry_run: bool, scope: Mapping[str, Any]) -> Undone:
        """Take commits back; see `Memory.undo`."""
        reach = self.scopes.reach(scope)

        def check(reader: Reader, effects: CommitEffects) -> None:
            if reach and not self.owns(reader, effects, reach):
                raise _not_yours(effects.seqs)

        try:
            return undo_commits(
                self.db.engine.store,
                self.db.engine.clock,
                self.db.transaction(self.actor),
                commit,
                dry_run=dry_run,
                check=check,
            )
        except NotFoundError:
            if not reach:
                raise
            # A bound caller learns nothing of how many commits there are.
            raise _not_yours(()) from None

    def owns(self, reader: Reader, effects: CommitEffects, reach: Groups) -> bool:
        """Return whether everything that commits did is inside scopes."""
        moment = moment_of(reader, NOW, self.scopes.clock())
        view = self.scopes.view(reader, reach, moment, ended=True)
        nodes, edges = effects.touched()
        inside = _inside(
            view, nodes | {end for item in edges for end in (item.source, item.target)}
        )
        # A write may have begun scopes that it names; they go only if nothing else is in them.
        begun = {body.row for body in reader.bodies(sorted(effects.nodes)) if body.type == SCOPE}
        if nodes - inside - begun:
            return False
        return all(
            item.source in inside
            or (item.target in inside and (item.edge.type == "contains" or item.source == ROOT_ROW))
            for item in edges
        )


def _inside(view: View, rows: set[int]) -> set[int]:
    """Return those rows that are inside scopes, or are one of these scopes."""
    own = {row for group in (view.worlds, *view.within) for row in group}
    return view.keep_world(rows) | (rows & own)


def _not_yours(seqs: tuple[int, ...]) -> RejectedError:
    named = f"commit {seqs[0]} is" if len(seqs) == 1 else "these commits are"
    return RejectedError(f"{named} not yours alone; undo only what changed your own scope")
