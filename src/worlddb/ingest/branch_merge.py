"""Branch merge: writes the commits of a branch to its trunk, as one commit.

    branch ──BranchWork(reader)──▶ commits since the fork ──apply──▶ tx ──flag_conflicts──▶ Merged

M1  Nodes keep their ids, so a trunk without commits since the fork gets the state of the branch. A
    text that both sides wrote in one world is one node, as if it had been written twice.
M2  Edges are written through their handlers again, in the order of the branch. The effects of
    handlers on the branch are not copied, because they happen again, unless the trunk has changed.
M3  An edge that a handler refuses here is left out and reported as a conflict; the rest is merged.
M4  What both sides have changed is reported (`merge_conflicts.py`); nothing of it ends silently.
M5  The journal names the branch, its last merged commit, and both parents. A second merge continues
    from there; `undo` takes a merge back like any commit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from worlddb.errors import ConflictError, NotFoundError, RejectedError
from worlddb.ingest.merge_conflicts import MergeConflict, TrunkWork, flag_conflicts
from worlddb.model.address import ROOT_ID, Id, content_key
from worlddb.model.inputs import Limits, Plain, from_micros
from worlddb.model.records import NOW, Branch, Change, Commit, NodeDraft, decode_changes
from worlddb.ontology.registry import Registry
from worlddb.store.backends import find_branch
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, CommitRow, EdgeScan, NodeScan, NoteRow
from worlddb.view.visibility import moment_of
from worlddb.write.transaction import Transaction, transact

MERGE = "merge"
"""The kind of the journal change that names the branch that a commit merged."""
REFUSED_MAX = 100  # refused edges; with more, the branch does not fit the trunk
NODES_AT_ONCE = 20_000  # inserted together; bounds the memory of a merge
TWINS_MAX = 8  # equal texts of one world that are read; usually there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged(Plain):
    """The result of a merge; `commit` is None in a dry run, and if nothing was new.

    The commits of the branch after `since`, up to `until`, were merged; `nodes` and `edges` count
    what was new to the trunk. `proposals` are `same_as` edges between names that both sides have
    written; `conflicts` are the contradictions between the sides.
    """

    branch: str
    fork: int
    since: int
    until: int
    nodes: int
    edges: int
    conflicts: tuple[MergeConflict, ...]
    proposals: tuple[Id, ...]
    commit: Commit | None
    root_state: Id
    dry_run: bool = False


class _CommitWork(NamedTuple):
    """The writes of one commit of the branch."""

    nodes: list[NodeScan]
    notes: list[NoteRow]
    edges: list[EdgeScan]
    changes: tuple[Change, ...]


class BranchWork:
    """The writes of a branch after commit `since`, read on one snapshot."""

    def __init__(self, reader: Reader, since: int) -> None:
        self._reader = reader
        self._rows = reader.commits(since, None, False)
        self._before = reader.commits(since - 1, 1, False)[0]
        self.since, self.until = since, self._rows[-1].seq if self._rows else since
        self.hash = self._rows[-1].hash if self._rows else self._before.hash
        every = [change for row in self._rows for change in decode_changes(row.changes)]
        self.closed = {change.id for change in every if change.kind == "close_node"}
        self.placed = {change.id for change in every if change.kind == "place"}
        self.ended_edges = {change.id for change in every if change.kind == "close_edge"}
        self._ids: dict[int, Id] = {ROOT_ROW: ROOT_ID}

    def commits(self) -> Iterator[_CommitWork]:
        """Yield the writes of each commit, in order."""
        scan, before = self._reader.scan, self._before
        for row in self._rows:
            yield _CommitWork(
                list(scan.nodes(before.nodes + 1, row.nodes)),
                list(scan.notes(before.notes + 1, row.notes)),
                list(scan.edges(before.edges + 1, row.edges)),
                decode_changes(row.changes),
            )
            before = row

    def expect(self, rows: Iterable[int]) -> None:
        """Look up the ids of nodes at once."""
        missing = {row for row in rows if row not in self._ids}
        found = self._reader.worlds(missing) if missing else {}
        self._ids.update({row: Id(world.id) for row, world in found.items()})

    def id_of(self, row: int) -> Id:
        """Return the id of a node of the branch."""
        if row not in self._ids:
            self.expect([row])
        return self._ids[row]


class _RefusedEdgeError(Exception):
    """A handler has refused an edge of the branch, so this attempt ends."""

    def __init__(self, ident: bytes, ends: tuple[Id, Id], type_: str, cause: RejectedError) -> None:
        super().__init__(str(cause))
        self.ident = ident
        self.conflict = MergeConflict(
            kind="refused",
            left=ends[0],
            right=ends[1],
            reason=f"{type_} was refused on the trunk: {cause}",
        )


class _DryRunError(Exception):
    """Rolls a dry run back."""


@dataclass(slots=True, kw_only=True)
class _Merger:
    """One attempt to write the commits of a branch in a transaction."""

    tx: Transaction
    work: BranchWork
    trunk: TrunkWork
    refused: dict[bytes, MergeConflict]
    known_as: dict[Id, Id] = field(default_factory=dict)
    conflicts: list[MergeConflict] = field(default_factory=list)

    def apply(self) -> None:
        """Write the branch's writes, commit by commit."""
        for part in self.work.commits():
            rows = {end for edge in part.edges for end in (edge.source, edge.target)}
            rows |= {note.node for note in part.notes}
            self.work.expect(rows | {node.parent for node in part.nodes if node.parent is not None})
            self._write_nodes(part.nodes)
            for note in part.notes:
                self._write_note(note)
            deleted = {bytes(one.id) for one in part.changes if one.kind == "delete_edge"}
            for edge in part.edges:
                if edge.id not in self.refused:
                    self._write_edge(edge, deleted)
            for change in part.changes:
                self._repeat(change)

    def _here(self, ident: Id) -> Id:
        return self.known_as.get(ident, ident)

    # -- nodes and notes ---------------------------------------------------------------------------

    def _write_nodes(self, nodes: list[NodeScan]) -> None:
        waiting: dict[Id, tuple[NodeDraft, bytes]] = {}

        def write() -> None:
            if waiting:
                drafts, blinds = zip(*waiting.values(), strict=True)
                self.tx.replay_nodes(drafts, blinds)
                waiting.clear()

        for node in nodes:
            ident, parent = Id(node.id), self.work.id_of(node.parent or ROOT_ROW)
            # A moved node was born in the root; the edge that moved it does so again.
            world = ROOT_ID if ident in self.work.placed else self._here(parent)
            # A world must be written before the nodes that live in it.
            if world in waiting or len(waiting) == NODES_AT_ONCE:
                write()
            twin = None if world in waiting else self._twin(node, world)
            if twin is not None:
                self.known_as[ident] = twin
            elif self.tx.reader.node_row(ident) is None:
                is_open = node.valid_to is None or ident in self.work.closed
                draft = NodeDraft(
                    type=node.type,
                    name=node.name,
                    content=node.content,
                    parent=world,
                    created_at=from_micros(node.created_at),
                    valid_from=from_micros(node.valid_from),
                    valid_to=None if is_open else from_micros(node.valid_to or 0),
                )
                waiting[ident] = draft, node.blind
        write()

    def _twin(self, node: NodeScan, world: Id) -> Id | None:
        """Return the node that the trunk has written since the fork with exactly this text."""
        row = self.tx.reader.node_row(world)
        if not self.trunk.has_moved or not node.content or row is None:
            return None
        key = content_key(node.type, node.name, node.content, row)
        found = self.tx.reader.alike([key], node.created_at, TWINS_MAX)
        for body in self.tx.reader.bodies([one for one in found if self.trunk.wrote_node(one)]):
            said = (body.type, body.name, body.content, body.parent)
            if said == (node.type, node.name, node.content, row):
                return Id(body.id)
        return None

    def _write_note(self, note: NoteRow) -> None:
        ident = self._here(self.work.id_of(note.node))
        text = note.text
        if note.kind == "metadata" and self.trunk.has_moved:
            said = json.loads(text)
            for key in self.trunk.metadata_changed(ident, said):
                reason = f"metadata {key!r}: the trunk has another value since the fork; it stays"
                self.conflicts.append(MergeConflict(kind="metadata", left=ident, reason=reason))
                del said[key]
            if not said:
                return
            text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.tx.replay_note(ident, note.kind, text)

    # -- edges and decisions -----------------------------------------------------------------------

    def _write_edge(self, edge: EdgeScan, deleted: set[bytes]) -> None:
        source, target = (self._here(self.work.id_of(row)) for row in (edge.source, edge.target))
        if source == target and edge.source != edge.target:
            return  # Both ends are one node here.
        is_open = edge.valid_to is None or edge.id in self.work.ended_edges
        for _ in range(2):
            try:
                written = self.tx.write_edge(
                    edge.type,
                    source,
                    target,
                    valid_from=from_micros(edge.valid_from),
                    valid_to=None if is_open else from_micros(edge.valid_to or 0),
                    metadata=None if edge.metadata == "{}" else json.loads(edge.metadata),
                )
            except RejectedError as error:
                raise _RefusedEdgeError(edge.id, (source, target), edge.type, error) from error
            if written.id == edge.id or written.id not in deleted:
                return
            self.tx.delete_edge(written.id)  # The branch had deleted it and written it again.

    def _repeat(self, change: Change) -> None:
        """Repeat changes that no handler makes: ends, deletions, decisions and registrations."""
        kind, detail = change.kind, change.detail
        try:
            if kind == "close_node" and "by" not in detail:
                self.tx.retire(self._here(change.id), at=from_micros(detail["valid_to"]))
            elif kind == "close_edge" and "by" not in detail:
                self.tx.end_edge(change.id, from_micros(detail["valid_to"]))
            elif kind == "delete_edge":
                self._delete(change.id)
            elif kind == "decide" and detail["status"] != "withdrawn":
                self.tx.decide_merge(change.id, detail["status"])
            elif kind == "register" and self.trunk.has_other_type(change.id, detail):
                reason = (
                    f"edge type {detail['type']!r}: the trunk has another since the fork; it stays"
                )
                self.conflicts.append(MergeConflict(kind="type", left=change.id, reason=reason))
            elif kind == "register":
                self.tx.register(change.id, detail["type"], detail["version"], detail["functional"])
        except NotFoundError:
            pass  # A handler has deleted it, or the edge was refused and reported.
        except ConflictError as error:
            reason = f"the branch says {detail.get('status', kind)}: {error}"
            self.conflicts.append(MergeConflict(kind="decision", left=change.id, reason=reason))

    def _delete(self, ident: Id) -> None:
        row = self.tx.reader.edge_row(ident)
        if row is None or ident in self.refused:
            return
        edge = self.tx.reader.edges([row])[0].edge
        if edge.known_to is None:
            try:
                self.tx.delete_edge(ident)
            except RejectedError as error:
                ends = edge.source, edge.target
                raise _RefusedEdgeError(ident, ends, f"deleting {edge.type}", error) from error


# -- the merge -------------------------------------------------------------------------------------


def merged_until(reader: Reader, branch: Branch) -> tuple[int, tuple[int, ...]]:
    """Return the last merged commit of a branch, and the commits that merged it."""
    until, commits = branch.fork, []
    for row in reader.commits(branch.fork, None, False):
        for change in decode_changes(row.changes) if f'["{MERGE}",' in row.changes else ():
            if change.kind == MERGE and change.detail["id"] == branch.id:
                until = max(until, change.detail["until"])
                commits.append(row.seq)
    return until, tuple(commits)


def branch_path(path: str, name: str) -> str:
    """Return the address of a branch of the store at `path`.

    Raises:
        InvalidInputError, NotFoundError: there is no such branch.
    """
    return find_branch(path, name).path


def fork_commit(reader: Reader, branch: Branch) -> CommitRow:
    """Return the commit of the trunk that a branch was forked from."""
    found = reader.commits(branch.fork - 1, 1, False)
    if not found or found[0].hash != branch.hash:
        raise ConflictError(
            f"branch {branch.name!r} was forked from commit {branch.fork} of another history: the "
            "store was restored or replaced since; drop the branch"
        )
    return found[0]


def merge_branch(
    store: Store,
    registry: Registry,
    limits: Limits,
    clock: Callable[[], int],
    branch: Branch,
    work_of: Reader,
    *,
    actor: str,
    dry_run: bool = False,
) -> Merged:
    """Write the commits of a branch, read on one snapshot, into its trunk; see `WorldDB.merge`."""
    refused: dict[bytes, MergeConflict] = {}
    while True:
        done: list[Merged] = []
        try:
            with transact(store, registry, actor=actor, bulk=False, limits=limits) as tx:
                done.append(_attempt(tx, clock, branch, work_of, refused))
                if dry_run:
                    raise _DryRunError
        except _DryRunError:
            return replace(done[0], dry_run=True)
        except _RefusedEdgeError as error:
            if len(refused) == REFUSED_MAX:
                raise ConflictError(
                    f"branch {branch.name!r}: more than {REFUSED_MAX} edges do not fit the trunk "
                    f"any more ({error}); nothing was merged"
                ) from error
            refused[error.ident] = error.conflict
            continue
        root = done[0].root_state if tx.commit is None else tx.commit.root_state
        return replace(done[0], commit=tx.commit, root_state=root)


def _attempt(
    tx: Transaction,
    clock: Callable[[], int],
    branch: Branch,
    work_of: Reader,
    refused: dict[bytes, MergeConflict],
) -> Merged:
    reader = tx.reader
    head, fork = reader.head(), fork_commit(reader, branch)
    since, merges = merged_until(reader, branch)
    work = BranchWork(work_of, since)
    trunk = TrunkWork(reader, fork, merges)
    nodes, edges = tx.size
    merger = _Merger(tx=tx, work=work, trunk=trunk, refused=refused)
    moment = moment_of(reader, NOW, clock())
    proposals: list[Id] = []
    if work.until > since:
        merger.apply()
        nodes, edges = (now - before for now, before in zip(tx.size, (nodes, edges), strict=True))
        found, proposals = flag_conflicts(
            tx, trunk, branch.name, moment, closed=work.closed, refused=list(refused.values())
        )
        merger.conflicts += found
        tx.mark(
            MERGE,
            id=branch.id,
            branch=branch.name,
            since=since,
            until=work.until,
            parents=[head.hash.hex(), work.hash.hex()],
            untold=[one.reason for one in merger.conflicts if one.edge is None],
        )
    else:
        nodes = edges = 0
    return Merged(
        branch=branch.name,
        fork=branch.fork,
        since=since,
        until=work.until,
        nodes=nodes,
        edges=edges,
        conflicts=tuple(merger.conflicts),
        proposals=tuple(proposals),
        commit=None,
        root_state=Id(head.root_state),
    )
