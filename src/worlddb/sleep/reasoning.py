"""Reasoning: write what follows from edges, flag what cannot both be; one commit each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from worlddb.errors import InvalidInputError, NotFoundError, RejectedError
from worlddb.model.address import Id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Node
from worlddb.sleep.closure import Inference, closure_of
from worlddb.sleep.conflicts import Clash, clashes_of
from worlddb.sleep.report import Contradiction, InferredEdge
from worlddb.sleep.run import Run
from worlddb.store.protocol import Reader
from worlddb.write.transaction import Transaction

TRIES = 5
"""Looks without a lock; then, in a store that never rests, one with it."""
REFUSED_MAX = 20
"""Edges that handlers refuse before a run gives up."""


class Plan(NamedTuple):
    """What to write, the nodes it is about, what to withdraw, and whether there is more."""

    inferences: list[Inference]
    clashes: list[Clash]
    withdrawn: list[Id]
    nodes: dict[int, Node]
    is_cut: bool


def reason(run: Run, *, closure: bool, conflicts: bool) -> None:
    """Infer what follows, flag what contradicts; as far as the bounds allow."""
    if closure:
        _settle(run, _follows)
    if conflicts:
        _settle(run, _contradicts)


def _follows(run: Run, reader: Reader, avoided: set[tuple[object, ...]]) -> Plan:
    moment, now = run.moment(reader)
    inside = run.inside(reader, moment)
    found = closure_of(reader, now, inside, run.bounds.edges_max, avoided)
    rows = {row for item in found.inferences for row in (item.source, item.target)}
    return Plan(found.inferences, [], found.withdrawn, reader.nodes(rows), found.is_cut)


def _contradicts(run: Run, reader: Reader, avoided: set[tuple[object, ...]]) -> Plan:
    moment, now = run.moment(reader)
    inside = run.inside(reader, moment)
    found, is_cut = clashes_of(reader, moment, now, inside, run.bounds.edges_max, avoided)
    rows = {row for item in found for row in (item.source, item.left, item.right)}
    return Plan([], found, [], reader.nodes(rows), is_cut)


Look = Callable[[Run, Reader, set[tuple[object, ...]]], Plan]


def _settle(run: Run, look: Look) -> None:
    """Look and write until no handler objects; what one refuses is left out, and told."""
    avoided: set[tuple[object, ...]] = set()
    while True:
        writing = _Writing(run)
        try:
            plan = _landed(run, lambda reader: look(run, reader, avoided), writing)
        except (RejectedError, InvalidInputError) as error:
            refused = writing.refused()
            if refused is None or len(avoided) == REFUSED_MAX:
                raise
            avoided.add(refused[0])
            run.done.refused.append(f"{refused[1]}: {error}")
            continue
        _report(run, plan, writing.ids)
        return


def _landed(run: Run, look: Callable[[Reader], Plan], writing: _Writing) -> Plan:
    """Write what a look found, if nobody has written since; else look again."""
    for left in reversed(range(TRIES)):
        with run.store.read() as reader:
            seen, plan = reader.head().seq, look(reader)
        if run.bounds.dry_run or not (plan.inferences or plan.clashes or plan.withdrawn):
            return plan
        with run.transaction() as tx:
            if tx.follows != seen:
                if left:
                    continue
                with run.store.read() as reader:
                    plan = look(reader)
            writing.write(tx, plan)
        run.landed(tx)
        return plan
    raise AssertionError("the last look is written whatever happens")


class _Writing:
    """Writes a plan, and knows how far it has come."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._plan: Plan | None = None
        self.ids: list[Id] = []

    def write(self, tx: Transaction, plan: Plan) -> None:
        """Write everything in one transaction."""
        self._plan, self.ids = plan, []
        for edge in plan.withdrawn:
            # One may have fallen with another.
            with suppress(NotFoundError):
                tx.delete_edge(edge)
        for item in plan.inferences:
            self.ids.append(self._infer(tx, item, plan.nodes))
        for clash in plan.clashes:
            self.ids.append(_flag(tx, clash, plan.nodes))

    def _infer(self, tx: Transaction, item: Inference, nodes: dict[int, Node]) -> Id:
        premises = [self.ids[it] if isinstance(it, int) else Id(it) for it in item.premises]
        edge = tx.write_edge(
            item.type,
            nodes[item.source].id,
            nodes[item.target].id,
            valid_from=from_micros(item.valid_from),
            valid_to=None if item.valid_to is None else from_micros(item.valid_to),
            metadata={"inferred": True, "premises": [str(premise) for premise in premises]},
        )
        return edge.id

    def refused(self) -> tuple[tuple[object, ...], str] | None:
        """Return which item was not written, as a key and in words; None if it was none."""
        plan = self._plan
        if plan is None:
            return None
        items: list[Inference | Clash] = [*plan.inferences, *plan.clashes]
        if len(self.ids) >= len(items):
            return None
        item = items[len(self.ids)]
        ends = (item.source, item.target) if isinstance(item, Inference) else item[2:]
        source, target = (plan.nodes[row].id.short for row in ends)
        word = item.type if isinstance(item, Inference) else "contradicts"
        return item.key, f"{word} {source} → {target}"


def _flag(tx: Transaction, clash: Clash, nodes: dict[int, Node]) -> Id:
    source = nodes[clash.source]
    reason = f"{clash.type} of {source.name or source.id.short}: there can be one only"
    edge = tx.write_edge(
        "contradicts",
        nodes[clash.left].id,
        nodes[clash.right].id,
        metadata={"reason": reason, "functional": clash.type, "source": str(source.id)},
    )
    return edge.id


def _report(run: Run, plan: Plan, ids: list[Id]) -> None:
    """Add what was written, or in a dry run would be, to what is told."""
    made: list[Id | None] = (
        list(ids) if ids else [None] * (len(plan.inferences) + len(plan.clashes))
    )
    done, nodes = run.done, plan.nodes
    done.withdrawn += plan.withdrawn
    done.edges_left |= plan.is_cut
    for item, edge in zip(plan.inferences, made, strict=False):
        done.inferred.append(
            InferredEdge(
                type=item.type,
                source=nodes[item.source].id,
                target=nodes[item.target].id,
                valid_from=from_micros(item.valid_from),
                valid_to=None if item.valid_to is None else from_micros(item.valid_to),
                edge=edge,
            )
        )
    for clash, edge in zip(plan.clashes, made, strict=False):
        done.contradictions.append(
            Contradiction(
                type=clash.type,
                source=nodes[clash.source].id,
                left=nodes[clash.left].id,
                right=nodes[clash.right].id,
                edge=edge,
            )
        )
