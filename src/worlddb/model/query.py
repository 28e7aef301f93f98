"""Query: a question as plain data, before it is planned and run.

The upper half is what the caller asked. The lower half are switches that only edge handlers turn,
in `on_query_rewrite`: a store whose ontology lacks a type does not get that type's behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from worlddb.model.id import Id
from worlddb.model.instant import Instant
from worlddb.model.values import NOW, AsOf, Direction

TextMatch = Literal["any", "all", "phrase"]
OpKind = Literal["traverse", "filter_type", "filter_time", "where_connected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One step of the pipeline; which fields count depends on `kind`."""

    kind: OpKind
    types: tuple[str, ...] = ()
    direction: Direction = "out"
    hops: int = 1
    id: Id | None = None
    start: Instant | None = None
    end: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A start set, the steps over it, and how the ontology says to read it."""

    seeds: tuple[Id, ...] = ()
    text: str | None = None
    match: TextMatch = "any"
    vector: tuple[float, ...] | None = None
    ops: tuple[Op, ...] = ()
    world: Id | None = None
    as_of: AsOf = NOW
    include_superseded: bool = False
    prefer_summaries: bool = False
    limit: int | None = None

    hides_closed: bool = False
    widens_to_members: bool = False
    follows_classes: bool = False
    shows_conflicts: bool = False
    orders_by_time: bool = False
    pierces: frozenset[str] = frozenset()
    type_edges: frozenset[str] = frozenset()
    summary_edges: frozenset[str] = frozenset()
