"""Identity change: merges two entities or splits one, and reconciles their claims.

    decide_merges   accept, reject or undo proposals; claims of both sides are reconciled
    split           a second person of the same name gets a node and the texts about that person

A change is planned on one snapshot and carried out in one transaction. Nothing is moved: edges are
deleted and written again, and nodes that had ended wrongly are restored by successors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from worlddb.claims.claim import FACT, STANDS_FOR, Standing
from worlddb.claims.claim_ends import (
    THROUGH,
    Supersession,
    by_text,
    crossing,
    end_again,
    handed_on,
    reconciliation,
    sides,
)
from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.model.address import Id
from worlddb.model.inputs import Plain
from worlddb.model.records import NOW, Commit, Node, Proposal, ProposalStatus
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import EdgeRow
from worlddb.view.visibility import Moment, find, is_name_only, moment_of
from worlddb.write.handler_context import proposal_of
from worlddb.write.revival import (
    EdgeCopy,
    Restored,
    Revival,
    born_until,
    ended_by_supersession,
    plan_revivals,
    restored,
    revive,
    take_back,
    transfer,
    write_copies,
)
from worlddb.write.transaction import Transaction

SPLIT = "split"
"""The tier of a decision by a split."""
PLACES = ("contains", "same_as")
"""Edge types at an entity that say nothing about it."""
CHAIN_MAX = 1_000  # supersessions in a row; more than any time line has


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Plain):
    """The result of a split: the entity, the new one beside it, and the edges that lead there now.

    `restored` are memories that had ended only because two people were taken for one.
    """

    entity: Id
    new: Id
    memories: tuple[Id, ...]
    linked: tuple[Id, ...]
    restored: tuple[Restored, ...]
    commit: Commit | None
    root_state: Id


# -- merges ----------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _MergePlan:
    """The effects of merge decisions."""

    ended: list[Supersession] = field(default_factory=list)
    conflicts: list[tuple[Standing, Standing]] = field(default_factory=list)
    facts: list[Node] = field(default_factory=list)
    edges: list[EdgeRow] = field(default_factory=list)
    revivals: list[Revival] = field(default_factory=list)
    handed_on: list[tuple[Id, EdgeRow]] = field(default_factory=list)


def decide_merges(
    store: Store,
    clock: Callable[[], int],
    transaction: AbstractContextManager[Transaction],
    edge_ids: Sequence[bytes | str],
    status: ProposalStatus,
) -> list[Proposal]:
    """Accept, reject or undo merges in one commit; see `WorldDB.accept_merge`."""
    with transaction as tx:
        # Planned inside the transaction, before it writes: no other writer can interfere.
        with store.read() as reader:
            moment = moment_of(reader, NOW, clock())
            plan = _plan_merges(reader, edge_ids, status, moment)
        decided = [tx.decide_merge(edge_id, status) for edge_id in edge_ids]
        take_back(tx, plan.edges, plan.facts)
        done, _ = revive(tx, plan.revivals, {"undo_merge": True})
        write_copies(tx, map(by_text, plan.handed_on), done)
        end_again(tx, plan.ended, done)
        for one, other in plan.conflicts:
            said = f"both are {one.relation} of one: {one.value}, {other.value}"
            through = [str(one.subject), str(other.subject)]
            metadata = {"reason": said, THROUGH: through}
            tx.write_edge("contradicts", one.carrier, other.carrier, metadata=metadata)
    return decided


def _plan_merges(
    reader: Reader, edge_ids: Iterable[bytes | str], status: ProposalStatus, moment: Moment
) -> _MergePlan:
    plan = _MergePlan()
    joined: list[set[int]] = []
    for edge_id in edge_ids:
        with suppress(NotFoundError, InvalidInputError):  # The decision itself raises the error.
            given = reader.edges([find(reader, edge_id, "edges")])[0]
            proposal = proposal_of(reader, given)
            if proposal is None:
                continue
            merge = reader.edges([proposal.edge])[0]
            if (proposal.status, status) == ("pending", "accepted"):
                _plan_union(reader, merge, joined, moment, plan)
            elif (proposal.status, status) == ("accepted", "pending"):
                found = crossing(reader, merge, moment)
                plan.edges += found.edges
                plan.facts += found.made
                plan.ended += found.ends
                plan.revivals += restored(reader, found.ended, found.edges)
                plan.handed_on += found.handed_on
    return plan


def _plan_union(
    reader: Reader, merge: EdgeRow, joined: list[set[int]], moment: Moment, plan: _MergePlan
) -> None:
    """Plan the effects of uniting two classes; `joined` are those united by this commit."""
    left, right = sides(reader, merge, moment)
    for group in joined:
        left = left | group if left & group else left
        right = right | group if right & group else right
    if left & right:
        return
    joined.append(left | right)
    found = reconciliation(reader, left, right, moment)
    plan.ended += found.ended
    plan.conflicts += found.conflicts


# -- split -----------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _SplitPlan:
    """The effects of a split: edges that move, and ends that were wrong."""

    entity: Node
    memories: tuple[Id, ...]
    moved: list[EdgeRow]
    places: list[EdgeRow]
    wrong: list[EdgeRow] = field(default_factory=list)
    facts: dict[int, Node] = field(default_factory=dict)
    fact_edges: list[EdgeRow] = field(default_factory=list)
    revivals: list[Revival] = field(default_factory=list)
    transfers: list[tuple[Id, EdgeRow]] = field(default_factory=list)
    handed_on: list[tuple[Id, EdgeRow]] = field(default_factory=list)


def split(
    store: Store,
    clock: Callable[[], int],
    transaction: AbstractContextManager[Transaction],
    entity_id: bytes | str,
    memory_ids: bytes | str | Sequence[bytes | str],
) -> Split:
    """Give the second person of a name a node of their own; see `WorldDB.split`."""
    given = [memory_ids] if isinstance(memory_ids, bytes | str) else list(memory_ids)
    if not given:
        raise InvalidInputError("split: give the memories that refer to the second entity")
    with transaction as tx:
        with store.read() as reader:
            plan = _plan_split(reader, entity_id, given, moment_of(reader, NOW, clock()))
            root = Id(reader.head().root_state)
        old = plan.entity
        made = tx.create_node(
            type=old.type, name=old.name, parent=old.parent, valid_from=old.valid_from
        ).id
        take_back(tx, [*plan.moved, *plan.wrong, *plan.fact_edges], plan.facts.values())
        done, _ = revive(tx, plan.revivals, {SPLIT: True})
        ends = {**done, old.id: made}
        linked = write_copies(tx, map(_by_split, plan.moved), ends)
        linked += write_copies(tx, map(_copy, plan.places), {old.id: made})
        write_copies(tx, map(by_text, plan.handed_on), done)
        transfer(tx, plan.transfers, done)
        # With this edge the pair is not proposed again.
        apart = tx.write_edge("same_as", made, old.id, metadata={"tier": SPLIT, "score": -1.0})
        tx.decide_merge(apart.id, "rejected")
    return Split(
        entity=old.id,
        new=made,
        memories=plan.memories,
        linked=tuple(linked),
        restored=tuple(Restored(old=one.node.id, new=done[one.node.id]) for one in plan.revivals),
        commit=tx.commit,
        root_state=root if tx.commit is None else tx.commit.root_state,
    )


def _copy(item: EdgeRow) -> EdgeCopy:
    return EdgeCopy(edge=item.edge, valid_to=item.edge.valid_to)


def _by_split(item: EdgeRow) -> EdgeCopy:
    """Return an edge to write again, with the split as its evidence."""
    metadata = {**item.edge.metadata, "tier": SPLIT}
    return EdgeCopy(edge=replace(item.edge, metadata=metadata), valid_to=item.edge.valid_to)


def _plan_split(
    reader: Reader, entity_id: bytes | str, memory_ids: Sequence[bytes | str], moment: Moment
) -> _SplitPlan:
    """Return the effects of a split.

    Raises:
        InvalidInputError: not a name, none of the memories mentions it, or all that do were given.
        NotFoundError: there is no such node.
    """
    row = find(reader, entity_id, "nodes")
    entity = reader.nodes([row])[row]
    if not all(map(is_name_only, reader.bodies([row]))):
        raise InvalidInputError(f"split: node {entity.id.short} is a memory; give an entity")
    rows = sorted({find(reader, given, "nodes") for given in memory_ids})
    said = {*rows, *reader.children_of(rows)}
    said |= {item.source for item in reader.edges_at(sorted(said), "in", ("derived_from",))}
    around = [item for item in reader.edges_at([row], "both") if item.edge.type not in PLACES]
    moved = [item for item in around if _other(item, row) in said]
    if not moved:
        raise InvalidInputError(f"split: none of these memories refers to {entity.name!r:.80}")
    own = {_other(item, row) for item in moved}
    others = {_other(item, row) for item in around} - own
    if not others:
        raise InvalidInputError(
            f"split: no other memory refers to {entity.name!r:.80}; leave out those of the first"
        )
    members = reader.edges_at([row], "in", ("contains",))
    nodes = reader.nodes(rows)
    plan = _SplitPlan(
        entity=entity,
        memories=tuple(nodes[one].id for one in rows),
        moved=moved,
        places=[item for item in members if moment.holds(item.edge)],
    )
    _plan_restorations(reader, own, others, plan)
    return plan


def _other(item: EdgeRow, row: int) -> int:
    return item.target if item.source == row else item.source


def _plan_restorations(reader: Reader, own: set[int], others: set[int], plan: _SplitPlan) -> None:
    """Plan the restorations: claims about one person that claims about the other had ended."""
    found = reader.edges_at(sorted(own), "both", ("supersedes",))
    between = {item.row: item for item in found if (item.source in own) != (item.target in own)}
    plan.wrong = [
        item
        for item in between.values()
        if {item.source, item.target} <= own | others and "relation" in item.edge.metadata
    ]
    ends: dict[int, datetime | None] = {}
    targets = reader.nodes({item.target for item in plan.wrong})
    for item in plan.wrong:
        node, side = targets[item.target], own if item.target in own else others
        own_ends = [one for one in _ended_by(reader, [item.target], item) if one.source in side]
        if any(one.edge.valid_from == node.valid_to for one in own_ends):
            continue  # Its own person's claim ended it, too.
        later = list(_later(reader, item, side))
        if node.type == FACT and _stands_for(reader, item.target) and not (later or own_ends):
            plan.facts[item.target] = node
            around = reader.edges_at([item.target], "both")
            plan.fact_edges += [one for one in around if one.edge.type != "contains"]
        elif ended_by_supersession(reader, item.target, node):
            ends[item.target] = born_until(reader, item.target, node)
            plan.transfers += [(node.id, one) for one in later]
    gone = {item.row for item in (*plan.moved, *plan.wrong)}
    plan.handed_on += handed_on(reader, plan.fact_edges, set(plan.facts), gone)
    plan.revivals = plan_revivals(reader, ends, edges_gone=gone)


def _later(reader: Reader, ended_by: EdgeRow, side: set[int]) -> Iterator[EdgeRow]:
    """Yield the supersessions after a given one that are about the person of `side`."""
    frontier, seen = {ended_by.source}, {ended_by.source}
    while frontier and len(seen) < CHAIN_MAX:
        above: set[int] = set()
        quotes = {
            item.source for item in reader.edges_at(sorted(frontier), "in", ("derived_from",))
        }
        facts = {row for row, node in reader.nodes(quotes).items() if node.type == FACT}
        for item in _ended_by(reader, frontier | facts, ended_by):
            if item.source in side:
                yield item
            else:
                above.add(item.source)
        frontier = above - seen
        seen |= frontier


def _ended_by(reader: Reader, rows: Iterable[int], like: EdgeRow) -> Iterator[EdgeRow]:
    """Yield the supersessions of nodes, without those by claims of another relation."""
    relation = like.edge.metadata["relation"]
    for item in reader.edges_at(sorted(rows), "in", ("supersedes",)):
        if item.edge.metadata.get("relation", relation) == relation:
            yield item


def _stands_for(reader: Reader, row: int) -> bool:
    """Return whether a fact quotes one sentence of a longer text."""
    claims = reader.edges_at([row], "out", ("refers_to",))
    return any(STANDS_FOR in item.edge.metadata for item in claims)
