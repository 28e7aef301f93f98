"""Declared edge types: an edge type as plain data, and the handler that carries it out.

    {"type": "manages", "acyclic": true, "inverse": "managed_by"}  ──▶ EdgeDeclaration ──▶ handler

A declaration needs no program: the store records it as the version of the registration, so a store
that is opened anywhere can be written. A handler in Python stays for everything else.

D1  `inverse` and `symmetric` write a mirror edge: inferred, with the stated edge as its premise. So
    the mirror falls with the stated edge, and a mirror has no mirror.
D2  `newer_ends_older` gives one time line per source, whatever the order of writing: of two edges,
    the one that begins earlier ends where the other begins.
D3  `transitive` is the consolidator's work; `functional` without `newer_ends_older`, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from worlddb.errors import InvalidInputError
from worlddb.model.inputs import Limits, check_type
from worlddb.model.records import Edge, Plain, Query
from worlddb.ontology.edge_types import (
    WriteContext,
    refuse_circles,
    refuse_cycle,
    retire_inferred,
)

DECLARED = "declared:"
"""Begins the recorded version of a declared type; the declaration as JSON follows."""
MIRROR = "mirror"
"""Metadata key of the edges that `inverse` and `symmetric` write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDeclaration(Plain):
    """An edge type as plain data.

    `functional`: a source has one live target; more are flagged as contradictions.
    `newer_ends_older`: a newer edge of a source ends the older ones; includes `functional`.
    `symmetric`: the edge holds in both directions. `inverse`: the type of the same edge read from
    its target. `transitive`: a → b and b → c give a → c when the store is consolidated. `acyclic`:
    an edge that closes a circle is refused. `pierces`: a traversal may leave the active world.

    Raises:
        InvalidInputError: a trait is of the wrong kind, or two traits exclude each other.
    """

    type: str
    functional: bool = False
    newer_ends_older: bool = False
    symmetric: bool = False
    transitive: bool = False
    acyclic: bool = False
    inverse: str | None = None
    pierces: bool = False

    def __post_init__(self) -> None:
        check_type(self.type, Limits())
        if self.inverse is not None:
            check_type(self.inverse, Limits())
        for name in TRAITS:
            if not isinstance(getattr(self, name), bool):
                raise InvalidInputError(f"{name}: give true or false, not {getattr(self, name)!r}")
        if self.symmetric and self.acyclic:
            raise InvalidInputError("a symmetric type runs in circles; leave out acyclic")
        if self.symmetric and self.inverse not in (None, self.type):
            raise InvalidInputError("a symmetric type is its own inverse; leave out inverse")
        if self.newer_ends_older and not self.functional:
            object.__setattr__(self, "functional", True)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EdgeDeclaration:
        """Return the declaration that JSON data or a table of a settings file describes.

        Raises:
            InvalidInputError: no type, an unknown trait, or a wrong value.
        """
        if not isinstance(data, Mapping) or "type" not in data:
            raise InvalidInputError(f"an edge type is an object with a type, not {data!r:.100}")
        names = {field.name for field in fields(cls)}
        unknown = sorted({str(key) for key in data} - names)
        if unknown:
            raise InvalidInputError(
                f"unknown trait {', '.join(unknown)}; use {', '.join(sorted(names - {'type'}))}"
            )
        return cls(**data)

    @property
    def version(self) -> str:
        """The declaration as the store records it: its traits in canonical JSON."""
        traits = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("type", "functional")
            and getattr(self, field.name) not in (False, None)
        }
        return DECLARED + json.dumps(traits, sort_keys=True, separators=(",", ":"))

    @property
    def turned(self) -> EdgeDeclaration | None:
        """The declaration of the inverse type; None if there is none."""
        if self.inverse is None or self.inverse == self.type:
            return None
        return replace(
            self,
            type=self.inverse,
            inverse=self.type,
            functional=False,
            newer_ends_older=False,
        )


TRAITS = ("functional", "newer_ends_older", "symmetric", "transitive", "acyclic", "pierces")


def recorded_declaration(type_: str, version: str, functional: bool) -> EdgeDeclaration | None:
    """Return the declaration that a recorded version holds; None if it is a program's version.

    Traits of a newer release are left out: the store can be read, and the rest holds.
    """
    if not version.startswith(DECLARED):
        return None
    try:
        traits = json.loads(version.removeprefix(DECLARED))
        known = {key: traits[key] for key in traits if key in (*TRAITS, "inverse")}
        return EdgeDeclaration(**{"type": type_, "functional": functional} | known)
    except (ValueError, TypeError, AttributeError):
        return None  # A handler of somebody's own whose version begins alike.


class DeclaredType:
    """The handler of a declared edge type."""

    def __init__(self, declaration: EdgeDeclaration) -> None:
        self.declaration = declaration
        self.type = declaration.type
        self.pierces = declaration.pierces
        self.version = declaration.version

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None:
        """Refuse a circle; end older edges; write the mirror."""
        if self.declaration.acyclic:
            refuse_cycle(ctx, edge)
        self._follow_up(ctx, edge)

    def on_insert_many(self, ctx: WriteContext, edges: Sequence[Edge]) -> None:
        """The same for a batch."""
        if self.declaration.acyclic:
            refuse_circles(ctx, edges)
        if self.declaration.newer_ends_older or self._mirror is not None:
            for edge in edges:
                self._follow_up(ctx, edge)

    def on_delete(self, ctx: WriteContext, edge: Edge) -> None:
        """Retire the mirror, and the inferred edges that rest on this one."""
        retire_inferred(ctx, edge)

    def on_query_rewrite(self, query: Query) -> Query:
        """A declared type does not change how a question is read, but for piercing."""
        return query

    @property
    def _mirror(self) -> str | None:
        """The type of the mirror edges."""
        return self.type if self.declaration.symmetric else self.declaration.inverse

    def _follow_up(self, ctx: WriteContext, edge: Edge) -> None:
        if self.declaration.newer_ends_older:
            self._one_time_line(ctx, edge)
        if self._mirror is not None and not edge.metadata.get("inferred"):
            self._write_mirror(ctx, ctx.get_edge(edge.id), self._mirror)

    def _one_time_line(self, ctx: WriteContext, edge: Edge) -> None:
        """Let the edges of one source follow each other; what begins at the same time is older."""
        for other in ctx.edges(edge.source, "out", (self.type,)):
            if other.id == edge.id or other.target == edge.target:
                continue
            older, newer = sorted((other, edge), key=lambda it: (it.valid_from, it is edge))
            if ctx.edge_outranks(older, newer):
                continue
            if older.valid_to is None or older.valid_to > newer.valid_from:
                for ended in (older, *ctx.resting_on(older.id)):
                    ctx.close_validity(ended.id, at=newer.valid_from)

    def _write_mirror(self, ctx: WriteContext, edge: Edge, type_: str) -> None:
        """Write the same edge as seen from its target, unless somebody has stated it."""
        there = ctx.edges(edge.target, "out", (type_,))
        if edge.source == edge.target or any(
            it.target == edge.source and it.valid_from <= edge.valid_from and it.valid_to is None
            for it in there
        ):
            return
        ctx.write_edge(
            type_,
            edge.target,
            edge.source,
            valid_from=edge.valid_from,
            valid_to=edge.valid_to,
            metadata={"inferred": True, MIRROR: True, "premises": [str(edge.id)]},
        )
