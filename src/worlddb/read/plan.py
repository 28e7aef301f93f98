"""Plan: how a query will be answered, for people who want to see it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from worlddb.errors import NotFoundError
from worlddb.model.id import Id
from worlddb.model.query import Op, Query
from worlddb.model.values import Plain
from worlddb.read.moment import Moment
from worlddb.read.search import Search
from worlddb.store.protocol import ROOT_ROW, Reader

SWITCHES = {
    "hides_closed": "what has ended is hidden (supersedes)",
    "widens_to_members": "members of the world count as inside (contains)",
    "follows_classes": "nodes accepted as the same stand for each other (same_as)",
    "shows_conflicts": "open conflicts come with the answer (contradicts)",
    "orders_by_time": "the answer is ordered by time (precedes)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Plain):
    """Where a query starts, through which index, its steps, and what the ontology adds."""

    start: str
    index: str
    world: Id | None
    valid: datetime | None
    known: int | None
    steps: tuple[str, ...]
    rules: tuple[str, ...]
    limit: int | None

    def __str__(self) -> str:
        place = "the whole store" if self.world is None else f"world {self.world.short}"
        lines = [f"start: {self.start}, by {self.index}, inside {place}"]
        lines += [f"then:  {step}" for step in self.steps]
        if self.valid is not None:
            lines.append(f"as of: what was true at {self.valid.isoformat()}")
        if self.known is not None:
            lines.append(f"as of: what was known after commit {self.known}")
        lines += [f"rule:  {rule}" for rule in self.rules]
        if self.limit is not None:
            lines.append(f"limit: {self.limit}")
        return "\n".join(lines)


def plan(reader: Reader, search: Search, query: Query, moment: Moment) -> Plan:
    """Return the plan of a query that its ontology has rewritten.

    Raises:
        NotFoundError: its world does not exist at that time.
    """
    world = ROOT_ROW if query.world is None else reader.node_row(query.world)
    if world is None or not reader.parents([world], moment.known):
        raise NotFoundError(f"no node has the id {query.world} at that time")
    start, index = _start(reader, search, query, world, moment)
    rules = [text for switch, text in SWITCHES.items() if getattr(query, switch)]
    if query.pierces:
        rules.append(f"these lead out of the world: {', '.join(sorted(query.pierces))}")
    if query.type_edges:
        rules.append("a type includes its subtypes and instances")
    if query.prefer_summaries and query.summary_edges:
        rules.append("summaries stand for their details")
    if query.include_superseded:
        rules.append("what has ended is shown, too")
    return Plan(
        start=start,
        index=index,
        world=query.world,
        valid=moment.valid,
        known=moment.known,
        steps=tuple(map(_step, query.ops)),
        rules=tuple(rules),
        limit=query.limit,
    )


def _start(
    reader: Reader, search: Search, query: Query, world: int, moment: Moment
) -> tuple[str, str]:
    if query.seeds:
        return f"{len(query.seeds)} seeds", "id"
    if query.text is None and query.vector is None:
        return "everything that can be seen", "containment"
    with search.interior(reader, [world], moment, query.widens_to_members) as held:
        is_wide = held is None
    if query.text is not None:
        name = f"the words {query.text!r}"
        return name, "the store's full-text index" if is_wide else "words held in memory"
    name = f"a vector of {len(query.vector or ())} numbers"
    return name, "the store's vector index" if is_wide else "vectors held in memory"


def _step(op: Op) -> str:
    if op.kind == "traverse":
        return f"traverse {', '.join(op.types)} {op.direction}, up to {op.hops} hops"
    if op.kind == "filter_type":
        return f"keep {', '.join(op.types)}"
    if op.kind == "filter_time":
        return f"keep what is valid in [{op.start or '…'}, {op.end or '…'})"
    other = op.id.short if op.id is not None else "?"
    return f"keep what is connected by {op.types[0]} {op.direction} with {other}"
