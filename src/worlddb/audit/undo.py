"""Undo: reverses commits by a compensating commit.

    commits ──plan_undo(reader)──▶ UndoPlan ──apply_undo(tx)──▶ Undone

U1  Nothing is edited. Nodes that the commits wrote are retired from their beginning on; nodes that
    they ended are restored by successors with the same text and time (`write/revival.py`).
U2  Nodes used since by others stay: a name that a later memory mentions, a world with later nodes.
    `Undone.kept` lists them, with reasons.
U3  The journal names the undone commits. Undoing the undo brings them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from worlddb.audit.history import check_commit_number, commit_row
from worlddb.claims.claim_ends import Supersession, by_text, crossing, end_again
from worlddb.errors import ConflictError, InvalidInputError
from worlddb.model.address import Id
from worlddb.model.inputs import SCOPE, Plain, from_micros
from worlddb.model.records import NOW, Change, Commit, Node, ProposalStatus, decode_changes
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, EdgeRow
from worlddb.view.visibility import Moment, is_name_only, moment_of
from worlddb.write.revival import (
    EdgeCopy,
    Restored,
    Revival,
    copies,
    plan_revivals,
    present_form,
    restored,
    revive,
    take_back,
    transfer,
    write_copies,
)
from worlddb.write.transaction import Transaction

UNDO = "undo"
"""The kind of the journal change that names the undone commits."""
COMMITS_MAX = 10_000  # for more, restore a backup instead
SUMMARY = "Summary"
NO_USE = ("contains", "same_as", "supersedes")
"""Edge types that place, identify or replace a node; a node does not need them to stay."""

CommitNumbers = int | Commit | Iterable[int | Commit]
"""One commit or several, by number or as returned by `db.log()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept(Plain):
    """Something that the undone commits changed and an undo leaves as it is, with the reason."""

    id: Id
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone(Plain):
    """The result of an undo; `commit` is None in a dry run, and if nothing was left to do.

    `unlinked` are the deleted edges, `linked` the edges that were written again.
    """

    commits: tuple[int, ...]
    restored: tuple[Restored, ...]
    retired: tuple[Id, ...]
    unlinked: tuple[Id, ...]
    linked: tuple[Id, ...]
    kept: tuple[Kept, ...]
    commit: Commit | None
    root_state: Id
    dry_run: bool = False


@dataclass(slots=True, kw_only=True)
class UndoPlan:
    """The plan of an undo of `commits`."""

    commits: tuple[int, ...]
    retires: dict[int, Node] = field(default_factory=dict)
    revivals: list[Revival] = field(default_factory=list)
    transfers: list[tuple[Id, EdgeRow]] = field(default_factory=list)
    deletes: list[EdgeRow] = field(default_factory=list)
    rewrites: list[EdgeCopy] = field(default_factory=list)
    decisions: list[tuple[Id, ProposalStatus]] = field(default_factory=list)
    ends: list[Supersession] = field(default_factory=list)
    metadata: list[tuple[Id, dict[str, Any]]] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing left to do."""
        steps = (self.retires, self.revivals, self.deletes, self.rewrites, self.decisions)
        return not any(steps) and not self.metadata

    def keep(self, ident: Id, reason: str) -> None:
        """Record that a node or edge stays, and why."""
        self.kept.append(Kept(id=ident, reason=reason))


Inside = Callable[[set[int]], set[int]]
"""Returns those of the given rows that a caller may see."""


def commit_numbers(given: CommitNumbers) -> tuple[int, ...]:
    """Return the numbers of the commits to undo, in order."""
    if isinstance(given, str | bytes | Mapping):
        raise InvalidInputError(f"undo: give a commit number or several, not {given!r:.80}")
    several = [given] if isinstance(given, int | Commit) else given
    if not isinstance(several, Iterable):
        raise InvalidInputError(f"undo: give a commit number or several, not {given!r:.80}")
    found = {one.seq if isinstance(one, Commit) else one for one in several}
    for seq in found:
        check_commit_number(seq, "undo")
    if not 0 < len(found) <= COMMITS_MAX:
        raise InvalidInputError(f"undo: give 1 to {COMMITS_MAX:,} commits")
    if 0 in found:
        raise InvalidInputError("undo: commit 0 made the store; it cannot be undone")
    return tuple(sorted(found))


class CommitEffects:
    """The combined effects of some commits."""

    def __init__(self, reader: Reader, seqs: tuple[int, ...]) -> None:
        self.reader = reader
        self.seqs = seqs
        self.nodes: set[int] = set()
        self.edges: set[int] = set()
        self.notes: list[tuple[int, int]] = []
        self.changes: list[tuple[int, Change]] = []
        for seq in seqs:
            row = commit_row(reader, seq)
            before = commit_row(reader, seq - 1)
            self.nodes.update(range(before.nodes + 1, row.nodes + 1))
            self.edges.update(range(before.edges + 1, row.edges + 1))
            self.notes.append((before.notes + 1, row.notes))
            self.changes += [(seq, change) for change in decode_changes(row.changes)]

    def of_kind(self, kind: str) -> dict[Id, tuple[int, Change]]:
        """Return the last change of a kind to each id, and the first commit that made one."""
        found: dict[Id, tuple[int, Change]] = {}
        for seq, change in self.changes:
            if change.kind == kind:
                first = found[change.id][0] if change.id in found else seq
                found[change.id] = (first, change)
        return found

    def touched(self) -> tuple[set[int], list[EdgeRow]]:
        """Return the rows of all nodes that were written or ended, and all edges touched."""
        nodes, edges = set(self.nodes), set(self.edges)
        for _, change in self.changes:
            if change.kind in ("close_node", "place", "erase", "register"):
                nodes.add(self.reader.node_row(change.id) or ROOT_ROW)
            elif change.kind != UNDO and (row := self.reader.edge_row(change.id)) is not None:
                edges.add(row)
        for first, last in self.notes:
            nodes.update(note.node for note in self.reader.scan.notes(first, last))
        return nodes, self.reader.edges(sorted(edges))


def undone_by(reader: Reader, seqs: Iterable[int]) -> dict[int, int]:
    """Return the undone ones of some commits, each with the commit that undid it."""
    wanted = set(seqs)
    marks: dict[int, list[int]] = {}
    for row in reader.commits(min(wanted), None, False):
        if f'["{UNDO}",' in row.changes:
            for change in decode_changes(row.changes):
                if change.kind == UNDO:
                    marks[row.seq] = list(change.detail["commits"])
    gone: dict[int, int] = {}
    for seq in sorted(marks, reverse=True):  # A later undo may have undone an earlier one.
        if seq not in gone:
            gone.update(dict.fromkeys(marks[seq], seq))
    return {seq: by for seq, by in gone.items() if seq in wanted}


def plan_undo(
    reader: Reader, effects: CommitEffects, moment: Moment, inside: Inside = lambda rows: rows
) -> UndoPlan:
    """Return the plan of an undo, on one snapshot.

    A node that is not `inside` the bounds of the caller neither keeps a name nor ends with its
    source.
    """
    seqs = effects.seqs
    for seq, by in sorted(undone_by(reader, seqs).items()):
        raise ConflictError(f"commit {seq} was undone by commit {by}; undo {by} to bring it back")
    for seq, change in effects.changes:
        if change.kind == "erase":
            raise ConflictError(f"commit {seq} erased texts; an erasure cannot be undone")
    plan = UndoPlan(commits=seqs)
    written = {present_form(reader, row) for row in effects.nodes}
    _plan_retirements(reader, effects, written, moment, plan, inside)
    _plan_deletions(reader, effects, written, plan)
    _plan_decisions(reader, effects, moment, plan)
    _plan_revivals(reader, effects, plan)
    _plan_rewrites(reader, effects, moment, plan)
    _plan_metadata(reader, effects, plan)
    for ident in effects.of_kind("register"):
        plan.keep(ident, "an edge type that was registered stays registered")
    return plan


def _holds(moment: Moment, node: Node) -> bool:
    return moment.holds(node) and not node.erased


# -- what was written ------------------------------------------------------------------------------


def _plan_retirements(
    reader: Reader,
    effects: CommitEffects,
    written: set[int],
    moment: Moment,
    plan: UndoPlan,
    inside: Inside,
) -> None:
    """Choose which written nodes are retired, and what ends with them."""
    nodes = reader.nodes(written)
    # A scope stays, even if empty: others may write into it next.
    written = {row for row in written if nodes[row].type != SCOPE}
    names = {body.row for body in reader.bodies(sorted(written)) if is_name_only(body)}
    gone = {row for row in written if row not in names}
    # Inner worlds first: a session without turns left is empty.
    for row in sorted(written, reverse=True):
        if _others_inside(reader, row, gone | names, effects, moment):
            gone.discard(row)
            names.discard(row)
            plan.keep(nodes[row].id, "later memories are in it")
    used = _used_by_others(reader, names, gone | names, effects.edges, moment, inside)
    for row in sorted(used):
        plan.keep(nodes[row].id, "other memories mention it")
    gone |= names - used
    gone |= inside(derived_alone(reader, gone, lambda rows: _live(reader, rows, moment)))
    plan.retires = {
        row: node
        for row, node in sorted(reader.nodes(gone).items())
        if node.valid_to is None or node.valid_to > node.valid_from
    }


def _live(reader: Reader, rows: Iterable[int], moment: Moment) -> set[int]:
    return {row for row, node in reader.nodes(rows).items() if _holds(moment, node)}


def _others_inside(
    reader: Reader, row: int, gone: set[int], effects: CommitEffects, moment: Moment
) -> bool:
    """Return whether a world has live nodes that are neither retired nor moved with it."""
    members = reader.edges_at([row], "out", ("contains",))
    leaving = {item.target for item in members if item.row in effects.edges}
    inside = {*reader.children_of([row]), *(item.target for item in members)} - leaving
    return bool(_live(reader, inside - gone, moment))


def _used_by_others(
    reader: Reader,
    names: set[int],
    gone: set[int],
    edges: set[int],
    moment: Moment,
    inside: Inside,
) -> set[int]:
    """Return the names that live nodes outside `gone` are linked to, by edges that stay."""
    ends: dict[int, set[int]] = {}
    for item in reader.edges_at(sorted(names), "both"):
        if item.row in edges or item.edge.type in NO_USE:
            continue
        for name, other in ((item.source, item.target), (item.target, item.source)):
            if name in names and other not in gone:
                ends.setdefault(name, set()).add(other)
    live = _live(reader, inside(set(chain(*ends.values()))), moment)
    return {name for name, others in ends.items() if others & live}


def derived_alone(
    reader: Reader, gone: set[int], keep_live: Callable[[set[int]], set[int]]
) -> set[int]:
    """Return the nodes derived from retired nodes that are retired with them.

    A summary is retired with any of its sources, because it repeats them; it can be made again.
    Other derived nodes are retired with the last of their sources.
    """
    found: set[int] = set()
    todo = set(gone)
    while todo:
        edges = reader.edges_at(sorted(todo), "in", ("derived_from",))
        derived = sorted({item.source for item in edges} - gone - found)
        types = {body.row: body.type for body in reader.bodies(derived)}
        left: dict[int, set[int]] = {row: set() for row in derived}
        for item in reader.edges_at(derived, "out", ("derived_from",)):
            left[item.source].add(item.target)
        todo = {
            row
            for row in derived
            if types[row] == SUMMARY or not keep_live(left[row] - gone - found)
        }
        found |= todo
    return found


def _plan_deletions(
    reader: Reader, effects: CommitEffects, written: set[int], plan: UndoPlan
) -> None:
    """Choose the edges to delete: all written ones, except those that place a retired node."""
    for item in reader.edges(sorted(effects.edges)):
        if item.edge.known_to is not None:
            continue
        if item.edge.type == "contains" and item.target in written:
            continue  # A retired node stays readable in its world.
        plan.deletes.append(item)


# -- what was ended --------------------------------------------------------------------------------


def _plan_revivals(reader: Reader, effects: CommitEffects, plan: UndoPlan) -> None:
    """Choose the nodes to restore, and what has replaced their replacement since."""
    ends: dict[int, datetime | None] = {}
    by: dict[int, str] = {}
    known = {one.node.id for one in plan.revivals}
    for ident, (first, change) in effects.of_kind("close_node").items():
        row = reader.node_row(ident)
        if row is None or row in effects.nodes:
            continue
        before = reader.nodes([row], first - 1)[row]
        row = _closed_at(reader, row, change.detail["valid_to"])
        now = reader.nodes([row])[row]
        if now.erased or row in plan.retires or now.id in known:
            continue
        if now.valid_to != from_micros(change.detail["valid_to"]):
            plan.keep(now.id, "a later commit has ended it, too")
            continue
        ends[row] = before.valid_to
        by[row] = str(change.detail.get("by", ""))
    edges_gone = effects.edges | {item.row for item in plan.deletes}
    plan.revivals += plan_revivals(
        reader, ends, edges_gone=edges_gone, nodes_gone=plan.retires.keys()
    )
    for row, edge_id in by.items():
        edge_row = reader.edge_row(Id(edge_id)) if edge_id else None
        if edge_row is None:
            continue
        replacement = present_form(reader, reader.edges([edge_row])[0].source)
        if replacement not in plan.retires:
            continue
        for item in reader.edges_at([replacement], "in", ("supersedes",)):
            if item.row not in edges_gone and item.source not in plan.retires:
                plan.transfers.append((reader.nodes([row])[row].id, item))


def _closed_at(reader: Reader, row: int, valid_to: int) -> int:
    """Return the row of a node, or of its successor, that ended at a time."""
    last = present_form(reader, row)
    node = reader.nodes([last])[last]
    return last if node.valid_to == from_micros(valid_to) else row


def _plan_rewrites(reader: Reader, effects: CommitEffects, moment: Moment, plan: UndoPlan) -> None:
    """Choose the edges to write again: deleted ones, and those whose validity was closed."""
    revived = {one.node.id for one in plan.revivals}
    for ident, (first, _) in effects.of_kind("delete_edge").items():
        row = reader.edge_row(ident)
        if row is None or row in effects.edges:
            continue
        item = reader.edges([row], first - 1)[0]
        ends = reader.nodes({item.source, item.target})
        is_place = item.edge.type in ("supersedes", "contains")
        if all(_holds(moment, node) or node.id in revived for node in ends.values()) or is_place:
            plan.rewrites += copies(reader, [item], first - 1)
    for ident, (first, change) in effects.of_kind("close_edge").items():
        row = reader.edge_row(ident)
        if row is None or row in effects.edges:
            continue
        now, before = reader.edges([row])[0], reader.edges([row], first - 1)[0]
        if now.edge.known_to is None and now.edge.valid_to == from_micros(
            change.detail["valid_to"]
        ):
            plan.deletes.append(now)
            plan.rewrites += copies(reader, [before], first - 1)


def _plan_decisions(reader: Reader, effects: CommitEffects, moment: Moment, plan: UndoPlan) -> None:
    """Choose the merge proposals that get their former status back."""
    for ident, (first, change) in effects.of_kind("decide").items():
        row = reader.edge_row(ident)
        if row is None or row in effects.edges or change.detail["status"] == "withdrawn":
            continue
        source = reader.edges([row])[0].source
        now = next(one for one in reader.proposals(rows=[source]) if one.edge == row)
        before = [
            one for one in reader.proposals(rows=[source], known=first - 1) if one.edge == row
        ]
        if now.status != change.detail["status"] or not before:
            plan.keep(ident, f"the merge was decided again since; it is {now.status}")
            continue
        plan.decisions.append((ident, before[0].status))
        if now.status == "accepted":
            _take_back_merge(reader, reader.edges([row])[0], moment, plan)


def _take_back_merge(reader: Reader, merge: EdgeRow, moment: Moment, plan: UndoPlan) -> None:
    """Undo the ends that a merge caused."""
    found = crossing(reader, merge, moment)
    known = {item.row for item in plan.deletes}
    plan.deletes += [item for item in found.edges if item.row not in known]
    made = {node.id for node in plan.retires.values()}
    for node in found.made:
        if node.id not in made and (row := reader.node_row(node.id)) is not None:
            plan.retires[row] = node
    plan.revivals += restored(reader, found.ended, plan.deletes)
    plan.rewrites += map(by_text, found.handed_on)
    plan.ends += found.ends


def _plan_metadata(reader: Reader, effects: CommitEffects, plan: UndoPlan) -> None:
    """Choose the metadata that get their former values back; other notes stay."""
    first = effects.seqs[0]
    noted = {
        (note.node, note.kind)
        for start, end in effects.notes
        if start <= end
        for note in reader.scan.notes(start, end)
        if note.node not in effects.nodes
    }
    rows = {row for row, _ in noted}
    before, now = reader.nodes(rows, first - 1), reader.nodes(rows)
    for row, kind in sorted(noted):
        if row not in before:
            continue
        if kind != "metadata":
            plan.keep(now[row].id, f"a further {kind} stays")
            continue
        had, has = before[row].metadata, now[row].metadata
        values = {key: had[key] for key in had if has.get(key) != had[key]}
        if values:
            plan.metadata.append((now[row].id, values))
        if has.keys() - had.keys():
            plan.keep(now[row].id, "further metadata stay")


# -- apply -----------------------------------------------------------------------------------------


def apply_undo(tx: Transaction, plan: UndoPlan) -> tuple[dict[Id, Id], list[Id], list[Id]]:
    """Carry out a plan; return the successors, the deleted edges and the edges written again."""
    if plan.is_empty:
        return {}, [], []
    deleted = take_back(tx, plan.deletes, ())
    for decided, status in plan.decisions:
        tx.decide_merge(decided, status, reopens=True)
    take_back(tx, (), plan.retires.values())
    # Not which commits: the number would tell a bound caller how many others have written.
    done, linked = revive(tx, plan.revivals, {UNDO: True})
    linked += write_copies(tx, plan.rewrites, done)
    linked += transfer(tx, plan.transfers, {ident: done[ident] for ident, _ in plan.transfers})
    end_again(tx, plan.ends, done)
    for ident, values in plan.metadata:
        tx.add_metadata(ident, values)
    tx.mark(UNDO, commits=list(plan.commits))
    return done, deleted, linked


def planned(plan: UndoPlan, root: Id) -> Undone:
    """Return the effects of a plan."""
    return Undone(
        commits=plan.commits,
        restored=tuple(Restored(old=one.node.id, new=None) for one in plan.revivals),
        retired=tuple(node.id for node in plan.retires.values()),
        unlinked=tuple(item.edge.id for item in plan.deletes),
        linked=(),
        kept=tuple(plan.kept),
        commit=None,
        root_state=root,
        dry_run=True,
    )


def undo_commits(
    store: Store,
    clock: Callable[[], int],
    transaction: AbstractContextManager[Transaction],
    given: CommitNumbers,
    *,
    dry_run: bool = False,
    check: Callable[[Reader, CommitEffects], Inside] = lambda reader, effects: set,
) -> Undone:
    """Undo commits in one transaction; see `WorldDB.undo`.

    `check` may refuse commits that the caller must not touch; it returns what the caller may see.
    """
    seqs = commit_numbers(given)
    if dry_run:
        with store.read() as reader:
            plan, root = _checked_plan(reader, seqs, clock, check), reader.head().root_state
        return planned(plan, Id(root))
    with transaction as tx:
        # Planned inside the transaction: no other writer can interfere.
        with store.read() as reader:
            plan, root = _checked_plan(reader, seqs, clock, check), reader.head().root_state
        done, deleted, linked = apply_undo(tx, plan)
    would = planned(plan, Id(root))
    return replace(
        would,
        restored=tuple(replace(one, new=done[one.old]) for one in would.restored),
        unlinked=tuple(deleted),
        linked=tuple(linked),
        commit=tx.commit,
        root_state=would.root_state if tx.commit is None else tx.commit.root_state,
        dry_run=False,
    )


def _checked_plan(
    reader: Reader,
    seqs: tuple[int, ...],
    clock: Callable[[], int],
    check: Callable[[Reader, CommitEffects], Inside],
) -> UndoPlan:
    effects = CommitEffects(reader, seqs)
    inside = check(reader, effects)
    return plan_undo(reader, effects, moment_of(reader, NOW, clock()), inside)
