"""Merge conflicts: contradictions between a branch and its trunk since the fork.

    fork ──▶ what the trunk wrote (TrunkWork)  ┐
         └─▶ the writes merged just now          ├──▶ contradicts edges, same_as proposals, reports

Fork, trunk and branch are compared. Only what both sides have changed since the fork can be in
conflict, so the cost depends on the changes and not on the store. Both sides stay.

replaced     one node was ended by both sides, by different successors
claim        both sides state another value of one functional claim
text         both sides have written a text of one frame with another value
functional   both sides have written another target under a functional edge type
refused      a handler has refused an edge of the branch
world        one side has ended a world in which the other has written; what it wrote stands
metadata, decision, type   both sides have set another value; the trunk's stays
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from worlddb.claims.claim import CLAIM_EDGE, replaces
from worlddb.claims.claim_ends import claims_about, rivals
from worlddb.model.address import Id
from worlddb.model.inputs import Plain
from worlddb.model.records import DraftNode, decode_changes
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, BodyRow, CommitRow
from worlddb.view.visibility import Moment, accepted_class, is_name_only
from worlddb.write.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeConflict(Plain):
    """A contradiction of both sides: `left` on the branch, `right` on the trunk.

    `edge` is the `contradicts` edge that records it; without one, a change of the commit does.
    """

    kind: str
    left: Id
    right: Id | None = None
    reason: str = ""
    edge: Id | None = None


class TrunkWork:
    """The writes of the trunk since the fork, without merges of this branch."""

    def __init__(self, reader: Reader, fork: CommitRow, merges: Collection[int]) -> None:
        self._reader = reader
        self.fork = fork
        self.head = reader.head()
        self._nodes: list[range] = []
        self._edges: list[range] = []
        self._types: dict[tuple[Id, str], dict[str, Any]] = {}
        before = fork
        for row in reader.commits(fork.seq, None, False):
            if row.seq not in merges:
                self._nodes.append(range(before.nodes + 1, row.nodes + 1))
                self._edges.append(range(before.edges + 1, row.edges + 1))
                for change in decode_changes(row.changes) if '["register",' in row.changes else ():
                    if change.kind == "register":
                        self._types[change.id, change.detail["type"]] = dict(change.detail)
            before = row

    @property
    def has_moved(self) -> bool:
        """Whether the trunk has commits of its own since the fork."""
        return bool(self._nodes)

    @property
    def nodes(self) -> set[int]:
        """The nodes that the trunk has written since the fork."""
        return {row for part in self._nodes for row in part}

    def wrote_node(self, row: int) -> bool:
        """Return whether a node was written on the trunk since the fork."""
        return any(row in part for part in self._nodes)

    def wrote_edge(self, row: int) -> bool:
        """Return whether an edge was written on the trunk since the fork."""
        return any(row in part for part in self._edges)

    def has_other_type(self, world: Id, said: Mapping[str, Any]) -> bool:
        """Return whether the trunk has registered an edge type otherwise since the fork."""
        return self._types.get((world, said["type"]), said) != said

    def ended(self, rows: Iterable[int]) -> set[int]:
        """Return the nodes of the fork that the trunk has ended since."""
        wanted = [row for row in rows if row <= self.fork.nodes]
        then = self._reader.nodes(wanted, self.fork.seq)
        now = self._reader.nodes(wanted, self.head.seq)
        return {row for row in then if then[row].valid_to != now[row].valid_to}

    def metadata_changed(self, ident: Id, said: dict[str, Any]) -> list[str]:
        """Return the keys to which the trunk has given another value than `said` since the fork."""
        row = self._reader.node_row(ident)
        if row is None or row > self.head.nodes:
            return []
        then = self._reader.nodes([row], self.fork.seq)
        had = then[row].metadata if row in then else {}
        has = self._reader.nodes([row], self.head.seq)[row].metadata
        return [key for key in said if has.get(key) != had.get(key) and has.get(key) != said[key]]


def flag_conflicts(
    tx: Transaction,
    trunk: TrunkWork,
    branch: str,
    moment: Moment,
    *,
    closed: Collection[Id],
    refused: Sequence[MergeConflict],
) -> tuple[list[MergeConflict], list[Id]]:
    """Record contradictions of merged writes with the trunk; return conflicts and proposals.

    `closed` are the nodes that the branch has ended.
    """
    sides = _Sides(tx, trunk, moment)
    found = list(refused)
    if trunk.has_moved:
        found += sides.replaced(closed)
        found += sides.claims()
        found += sides.functional()
        found += sides.texts()
        found += sides.worlds(closed)
    told: dict[frozenset[Id], MergeConflict] = {}
    for one in found:
        pair = frozenset((one.left, one.right or one.left))
        if len(pair) == 2 and pair not in told:
            metadata = {"reason": one.reason, "branch": branch, "merge": one.kind}
            edge = tx.write_edge("contradicts", one.left, one.right or one.left, metadata=metadata)
            told[pair] = replace(one, edge=edge.id)
    proposals = [
        tx.write_edge(
            "same_as", left, right, metadata={"tier": "exact", "score": 1.0, "branch": branch}
        ).id
        for left, right in (sides.names() if trunk.has_moved else ())
    ]
    alone = (one for one in found if one.right is None or one.left == one.right)
    return [*told.values(), *alone], proposals


class _Sides:
    """The nodes and edges of both sides, in the transaction that merges them."""

    def __init__(self, tx: Transaction, trunk: TrunkWork, moment: Moment) -> None:
        self._reader = reader = tx.reader
        self._trunk = trunk
        self._moment = moment
        head = trunk.head
        last_node, last_edge = tx.size
        self._new = range(head.nodes + 1, last_node + 1)
        self._edges = reader.edges_between(head.edges + 1, last_edge)

    def _live(self, rows: Iterable[int]) -> dict[int, Id]:
        found = self._reader.nodes(rows)
        return {row: node.id for row, node in found.items() if self._moment.holds(node)}

    def replaced(self, closed: Collection[Id]) -> Iterator[MergeConflict]:
        """Yield the nodes of the fork that both sides have ended in different ways."""
        reader = self._reader
        rows = {row for ident in closed if (row := reader.node_row(ident)) is not None}
        for row in sorted(self._trunk.ended(rows)):
            ours, theirs = [], []
            for item in reader.edges_at([row], "in", ("supersedes",)):
                if item.row > self._trunk.head.edges:
                    ours.append(item.source)
                elif self._trunk.wrote_edge(item.row):
                    theirs.append(item.source)
            node = reader.nodes([row])[row]
            said = f"{node.name or node.content[:60] or node.id.short!r}"
            ids = self._live([*ours, *theirs])
            lefts = [ids[one] for one in ours if one in ids]
            rights = [ids[one] for one in theirs if one in ids]
            if not lefts and not rights:
                continue
            reason = f"both sides have ended what was before: {said}"
            for left, right in product(lefts or [node.id], rights or [node.id]):
                yield MergeConflict(kind="replaced", left=left, right=right, reason=reason)

    def claims(self) -> Iterator[MergeConflict]:
        """Yield functional claims of one subject with another value on each side."""
        reader, trunk = self._reader, self._trunk
        subjects = {item.target for item in self._edges if item.edge.type == CLAIM_EDGE}
        for subject in sorted(subjects):
            about = reader.edges_at([subject], "in", (CLAIM_EDGE,))
            if not any(trunk.wrote_edge(item.row) for item in about):
                continue
            homes = {reader.parents([subject])[subject] or ROOT_ROW}
            same = accepted_class(reader, {subject}, self._moment)
            for home in homes:
                found = claims_about(reader, same, Id(reader.world(home).id), self._moment)
                open_ = [one for one in found if one.ends is None]
                row_of = {one.carrier: reader.node_row(one.carrier) or 0 for one in open_}
                ours = [one for one in open_ if row_of[one.carrier] in self._new]
                theirs = [one for one in open_ if trunk.wrote_node(row_of[one.carrier])]
                for left, right in product(ours, theirs):
                    if replaces(left, right) or replaces(right, left):
                        values = f"{left.value or 'no ' + left.was}, {right.value or right.was}"
                        yield MergeConflict(
                            kind="claim",
                            left=left.carrier,
                            right=right.carrier,
                            reason=f"both are {left.relation} of one: {values}",
                        )

    def functional(self) -> Iterator[MergeConflict]:
        """Yield targets of one source under an edge type that allows one."""
        registered = self._reader.registrations()
        types = {type_ for _, type_, _, is_functional in registered if is_functional}
        for item in self._edges:
            if item.edge.type not in types:
                continue
            for other in self._reader.edges_at([item.source], "out", (item.edge.type,)):
                if self._trunk.wrote_edge(other.row) and other.target != item.target:
                    reason = f"both are the one {item.edge.type} of {item.edge.source.short}"
                    yield MergeConflict(
                        kind="functional",
                        left=item.edge.target,
                        right=other.edge.target,
                        reason=reason,
                    )

    def texts(self) -> Iterator[MergeConflict]:
        """Yield texts of one frame with another value on each side."""
        by_world: dict[int, list[DraftNode]] = {}
        live = self._live(self._new)
        for row, node in self._reader.nodes(live).items():
            world = self._reader.parents([row])[row] or ROOT_ROW
            by_world.setdefault(world, []).append(
                DraftNode(
                    key=str(node.id),
                    type=node.type,
                    name=node.name,
                    content=node.content,
                    created_at=node.created_at,
                    valid_from=node.valid_from,
                )
            )

        def keep(bodies: Sequence[BodyRow]) -> set[int]:
            return {*self._live(one.row for one in bodies if self._trunk.wrote_node(one.row))}

        for world, drafts in sorted(by_world.items()):
            for one, other in rivals(self._reader, drafts, {}, world, 0, keep):
                sides = [(end, isinstance(end, Id)) for end in (one, other)]
                if sides[0][1] == sides[1][1]:
                    continue  # Both are of the branch, which has recorded it.
                left, right = sorted(sides, key=lambda side: side[1])
                yield MergeConflict(
                    kind="text",
                    left=Id(left[0]),
                    right=Id(right[0]),
                    reason="both sides say the same with another value",
                )

    def worlds(self, closed: Collection[Id]) -> Iterator[MergeConflict]:
        """Yield the worlds that one side has ended and in which the other has written."""
        reader, trunk = self._reader, self._trunk
        ours, theirs = (
            {*reader.parents(sorted(self._live(rows))).values()} - {None, ROOT_ROW}
            for rows in (self._new, trunk.nodes)
        )
        ended = {row for ident in closed if (row := reader.node_row(ident)) is not None}
        sides = [(row, "trunk") for row in trunk.ended(row for row in ours if row)]
        sides += [(row, "branch") for row in ended & theirs]
        for row, side in sorted(sides):
            node = reader.nodes([row])[row]
            said = f"{node.type} {node.name or node.content[:60] or node.id.short!r}"
            reason = f"the {side} has ended {said}, and the other side has written in it since"
            yield MergeConflict(kind="world", left=node.id, reason=reason)

    def names(self) -> list[tuple[Id, Id]]:
        """Return the pairs of names that both sides have written in one world, to be proposed."""
        found: list[tuple[Id, Id]] = []
        for body in self._reader.bodies(sorted(self._live(self._new))):
            if not is_name_only(body):
                continue
            rows = [r for r in self._reader.rows_named([body.name]) if self._trunk.wrote_node(r)]
            found += [
                (Id(body.id), Id(other.id))
                for other in self._reader.bodies(sorted(self._live(rows)))
                if (other.type, other.parent) == (body.type, body.parent)
            ]
        return found
