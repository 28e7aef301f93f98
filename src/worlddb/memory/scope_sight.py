"""Scope sight: which nodes, pairs, changes and commits a caller sees inside scopes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from worlddb.audit.history import commit_row, log
from worlddb.audit.undo import CommitEffects
from worlddb.memory.results import MergeProposal, ToldConflict
from worlddb.model.records import SCOPE, Change, Commit, Conflict, Proposal
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view import visibility as lookup
from worlddb.view.visibility import View


def inside_scopes(view: View, rows: set[int]) -> set[int]:
    """Return those rows that are inside scopes, or are one of these scopes.

    Of scopes of several kinds none is the caller's as a whole: each may be the doing of others.
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
    """Return whether what a change is about is inside scopes."""
    if change.kind in ("close_node", "place", "erase", "register", "undo", "merge"):
        return sees(view, [change.id])
    row = view.reader.edge_row(change.id)
    edge = None if row is None else view.reader.edges([row])[0].edge
    return edge is not None and sees(view, [edge.source, edge.target])


def pairs_inside(view: View, pairs: Sequence[tuple[bytes, bytes]]) -> list[bool]:
    """Return of each pair of nodes whether both can be seen."""
    rows = {one: view.reader.node_row(one) or 0 for pair in pairs for one in pair}
    seen = view.keep_world(set(rows.values()))
    return [rows[left] in seen and rows[right] in seen for left, right in pairs]


def owns(view: View, effects: CommitEffects) -> bool:
    """Return whether everything that commits did is inside scopes."""
    nodes, edges = effects.touched()
    inside = inside_scopes(
        view, nodes | {end for item in edges for end in (item.source, item.target)}
    )
    # A write may have begun scopes that it names; they go only if nothing else is in them.
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
    """Return a commit as the journal has it."""
    return log(reader, seq - 1, 1, False)[0]


def visible_commit(view: View, seq: int) -> Commit | None:
    """Return the part of a commit that can be seen; None if that is nothing."""
    if seq == 0:
        return None
    commit = whole_commit(view.reader, seq)
    before, row = commit_row(view.reader, seq - 1), commit_row(view.reader, seq)
    nodes = inside_scopes(view, set(range(before.nodes + 1, row.nodes + 1)))
    edges = view.reader.edges_between(before.edges + 1, row.edges)
    ends = inside_scopes(view, {end for item in edges for end in (item.source, item.target)})
    seen = [item for item in edges if {item.source, item.target} <= ends]
    changes = tuple(one for one in commit.changes if sees_change(view, one))
    if not nodes and not seen and not changes:
        return None
    return replace(commit, nodes=len(nodes), edges=len(seen), changes=changes)


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
