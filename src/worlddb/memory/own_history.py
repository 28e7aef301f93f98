"""Own history: the commits of a bound caller, by its own numbers.

The numbers of the store would tell a bound caller when others write. So a commit has the number of
the caller's own scope: how often the state of that scope has changed by then. A commit that only
ends memories changes no state and shares its number with the one before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from worlddb.errors import ConflictError, InvalidInputError, RejectedError
from worlddb.memory.scope_sight import visible_commit
from worlddb.memory.scope_view import CallerScopes, generations
from worlddb.model.address import Id
from worlddb.model.inputs import to_micros
from worlddb.model.records import GENESIS, Commit
from worlddb.store.interface import Reader
from worlddb.view.visibility import View

COMMITS_LOOKED_AT = 10_000  # By one call; most of them may be of others.


class OwnHistory:
    """The commits that changed something inside a caller's bounds, the latest first."""

    def __init__(self, scopes: CallerScopes, reader: Reader, view: View) -> None:
        self._reader = reader
        self._view = view
        # What is inside bounds of two kinds is no world, so there are no numbers.
        one_kind = len(scopes.bounds) == 1
        self._rows = generations(reader, scopes.bounds[0][0])[-1:] if one_kind else []

    def walk(self, last: int | None = None) -> Iterator[tuple[int, Commit]]:
        """Yield commits up to number `last` of the store: that number, and what the caller sees."""
        reader = self._reader
        head = reader.head().seq
        number = reader.state_count(self._rows[0]) if self._rows else 0
        for seq in range(head, max(head - COMMITS_LOOKED_AT, 0), -1):
            commit = visible_commit(self._view, seq)
            if commit is None:
                continue
            state = self._state(seq)
            if last is None or seq <= last:
                own = {"seq": number, "root_state": state, "hash": state, "previous": GENESIS}
                yield seq, replace(commit, **own)  # type: ignore[arg-type]
            if self._rows and state != self._state(seq - 1):
                number -= 1

    def _state(self, seq: int) -> Id:
        """Return the state of the caller's scope after a commit of the store."""
        for node in self._reader.nodes(self._rows, seq).values():
            return node.state
        return GENESIS

    def numbers(self, given: Iterable[int | Commit], undone: set[int]) -> list[int]:
        """Return the numbers in the store of the caller's commits: the latest not undone of each.

        Raises:
            RejectedError: there is no such commit of the caller.
            ConflictError: it was undone already.
            InvalidInputError: it is neither a number nor a commit.
        """
        found: list[int] = []
        for one in given:
            if isinstance(one, Commit):
                seq = self._reader.commit_at(to_micros(one.time, "time"))
                found += [] if seq is None else [seq]
                continue
            if isinstance(one, bool) or not isinstance(one, int):
                raise InvalidInputError(f"undo: give a commit number, not {one!r:.80}")
            same = [seq for seq, commit in self.walk() if commit.seq == one and one > 0]
            if not same:
                raise not_yours()
            left = [seq for seq in same if seq not in undone]
            if not left:
                raise ConflictError(f"commit {one} was undone already; undo the undo")
            found.append(left[0])
        return found

    def upper(self, number: int) -> int:
        """Return the last commit of the store that belongs to a number of the caller."""
        return next((seq for seq, commit in self.walk() if commit.seq <= number), 0)


def not_yours() -> RejectedError:
    """Return the refusal of what a caller may not undo; it tells nothing of what there is."""
    return RejectedError("no such commit is yours alone; undo only what changed your own scope")
