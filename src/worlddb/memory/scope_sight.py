"""Scope sight: the nodes, pairs, changes and commits that a caller can see inside scopes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from threading import Lock
from typing import Any

from worlddb.audit.history import commit_row, log
from worlddb.audit.undo import CommitEffects
from worlddb.errors import ConflictError, InvalidInputError, RejectedError
from worlddb.memory.results import MergeProposal, ToldConflict
from worlddb.memory.scope_view import CallerScopes, generations
from worlddb.model.address import GENESIS, Id
from worlddb.model.inputs import SCOPE, Groups, to_micros
from worlddb.model.records import Change, Commit, Conflict, Proposal
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, CommitRow
from worlddb.view import visibility as lookup
from worlddb.view.visibility import View

LARGE_COMMIT = 10_000  # Nodes and edges; counting fewer takes some milliseconds.
COUNTS_KEPT = 100  # Counts of large commits; a store has few of them.


def inside_scopes(view: View, rows: set[int]) -> set[int]:
    """Return those rows that are inside scopes, or are one of these scopes.

    With scopes of several kinds, no scope belongs to the caller as a whole.
    """
    own = set() if view.within else set(view.worlds)
    return view.keep_world(rows) | (rows & own)


def _rows(view: View, ids: Iterable[bytes]) -> set[int]:
    return {view.reader.node_row(one) or lookup.NOWHERE for one in ids}


def sees(view: View, ids: Sequence[bytes]) -> bool:
    """Return whether all of some nodes are inside scopes."""
    rows = _rows(view, ids)
    return inside_scopes(view, rows) == rows


def sees_change(view: View, change: Change) -> bool:
    """Return whether the nodes of a change are inside scopes."""
    if change.kind in ("close_node", "place", "erase", "register", "undo", "merge"):
        return sees(view, [change.id])
    row = view.reader.edge_row(change.id)
    edge = None if row is None else view.reader.edges([row])[0].edge
    return edge is not None and sees(view, [edge.source, edge.target])


def pairs_inside(view: View, pairs: Sequence[tuple[bytes, bytes]]) -> list[bool]:
    """Return for each pair of nodes whether both can be seen."""
    rows = {one: view.reader.node_row(one) or 0 for pair in pairs for one in pair}
    seen = view.keep_world(set(rows.values()))
    return [rows[left] in seen and rows[right] in seen for left, right in pairs]


def owns(view: View, effects: CommitEffects) -> bool:
    """Return whether all effects of commits are inside scopes."""
    nodes, edges = effects.touched()
    inside = inside_scopes(
        view, nodes | {end for item in edges for end in (item.source, item.target)}
    )
    # A write may have created scopes; undoing it removes them only if they are empty.
    bodies = view.reader.bodies(sorted(effects.nodes))
    begun = {body.row for body in bodies if body.type == SCOPE}
    if nodes - inside - begun:
        return False
    return all(
        item.source in inside
        or (item.target in inside and (item.edge.type == "contains" or item.source == ROOT_ROW))
        for item in edges
    )


def whole_commit(reader: Reader, seq: int) -> Commit:
    """Return a commit as it is in the journal."""
    return log(reader, seq - 1, 1, False)[0]


def visible_commit(view: View, seq: int) -> Commit | None:
    """Return the visible part of a commit; None if nothing is visible."""
    if seq == 0:
        return None
    commit = whole_commit(view.reader, seq)
    nodes, edges = COUNTS.of(view, seq)
    changes = tuple(one for one in commit.changes if sees_change(view, one))
    if not nodes and not edges and not changes:
        return None
    return replace(commit, nodes=nodes, edges=edges, changes=changes)


class CommitCounts:
    """Counts the visible nodes and edges of commits.

    Counts of large commits are cached until the next commit, at most for a minute: an import has a
    million nodes, and a growth curve asks for the same commits many times. The hash of the last
    commit identifies the store and its content.
    """

    def __init__(self) -> None:
        self._counting = Lock()
        self._kept: dict[tuple[Any, ...], tuple[int, int]] = {}

    def of(self, view: View, seq: int) -> tuple[int, int]:
        """Return the counts of commit `seq`."""
        before, row = commit_row(view.reader, seq - 1), commit_row(view.reader, seq)
        if row.nodes - before.nodes + row.edges - before.edges < LARGE_COMMIT:
            return self._count(view, before, row)
        when = int(view.moment.now.timestamp() // 60), view.moment.valid, view.moment.known
        where = tuple(view.worlds), tuple(map(tuple, view.within))
        key = view.reader.head().hash, seq, *where, *when
        with self._counting:  # Concurrent callers wait for one count.
            if key not in self._kept:
                if len(self._kept) >= COUNTS_KEPT:
                    self._kept.clear()
                self._kept[key] = self._count(view, before, row)
            return self._kept[key]

    def _count(self, view: View, before: CommitRow, row: CommitRow) -> tuple[int, int]:
        nodes = inside_scopes(view, set(range(before.nodes + 1, row.nodes + 1)))
        edges = view.reader.edges_between(before.edges + 1, row.edges)
        ends = inside_scopes(view, {end for item in edges for end in (item.source, item.target)})
        return len(nodes), sum({item.source, item.target} <= ends for item in edges)


COUNTS = CommitCounts()


def _text_of(reader: Reader, ident: bytes) -> str:
    row = reader.node_row(ident)
    node = None if row is None else reader.nodes([row])[row]
    return "" if node is None else node.content or node.name


def merge_proposal(reader: Reader, one: Proposal) -> MergeProposal:
    """Return a proposal with the names of its two sides."""
    return MergeProposal(
        edge=one.edge,
        left=one.left,
        right=one.right,
        left_name=_text_of(reader, one.left),
        right_name=_text_of(reader, one.right),
        status=one.status,
        tier=one.tier,
        score=one.score,
        evidence=one.evidence,
    )


def told_conflict(reader: Reader, one: Conflict) -> ToldConflict:
    """Return a conflict with the texts of its two sides."""
    return ToldConflict(
        edge=one.edge,
        left=one.left,
        right=one.right,
        left_text=_text_of(reader, one.left),
        right_text=_text_of(reader, one.right),
        reason=one.reason,
        settled=one.settled,
    )


# Own history: the commits of a bound caller, by its own numbers.
#
# The numbers of the store would tell a bound caller when others write. So a commit has the number
# of the caller's own scope: how often the state of that scope had changed by then. A commit that
# only ends memories changes no state and shares the number of the commit before.

COMMITS_LOOKED_AT = 10_000  # Per call; most of them may be of other callers.


class OwnHistory:
    """The commits that changed something inside a caller's bounds, the latest first."""

    def __init__(self, scopes: CallerScopes, reader: Reader, view: View) -> None:
        self._reader = reader
        self._view = view
        # The intersection of two scopes is not a world, so it has no numbers.
        one_kind = len(scopes.bounds) == 1
        self._rows = generations(reader, scopes.bounds[0][0])[-1:] if one_kind else []

    def walk(self, last: int | None = None) -> Iterator[tuple[int, Commit]]:
        """Yield the commits up to number `last` of the store, with their visible parts."""
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
        """Return the store's numbers of the caller's commit numbers: the latest not undone.

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
        """Return the store's last commit for a commit number of the caller."""
        return next((seq for seq, commit in self.walk() if commit.seq <= number), 0)


def not_yours() -> RejectedError:
    """Return the error for a commit that a caller may not undo; it reveals nothing else."""
    return RejectedError("no such commit is yours alone; undo only what changed your own scope")


def rows_at_home(reader: Reader, bounds: Groups, rows: Iterable[int]) -> set[int]:
    """Return the memories that live inside bounds, not only as members."""
    if not bounds:
        return set(rows)
    worlds = {row for scope in chain(*bounds) for row in generations(reader, scope)}
    at, found = {row: row for row in rows}, set[int]()
    while at:
        parents = reader.parents(set(at.values()))
        up = {row: parent for row, here in at.items() if (parent := parents[here]) is not None}
        found |= {row for row, parent in up.items() if parent in worlds}
        at = {row: parent for row, parent in up.items() if parent not in worlds}
    return found
