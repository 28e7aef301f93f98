"""View: a naive world as a question sees it; what holds, what is inside, what a query finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from worlddb import Id
from worlddb.model.records import Direction

from .naive import ROOT, NaiveEdge, NaiveNode, World


@dataclass(frozen=True, kw_only=True)
class View:
    """A world as it is seen at a valid time (None: not ended by `now`) and inside `inside`."""

    world: World
    now: int
    valid: int | None = None
    inside: Id | None = None
    include_superseded: bool = False

    def holds(self, thing: NaiveNode | NaiveEdge) -> bool:
        """Return whether a node or an edge is true at the view's valid time."""
        if self.valid is None:
            if thing.type == "contains" and thing.valid_from > self.now:
                return False
            return thing.valid_to is None or self.now < thing.valid_to
        return thing.valid_from <= self.valid and (
            thing.valid_to is None or self.valid < thing.valid_to
        )

    def counts(self, thing: NaiveNode | NaiveEdge) -> bool:
        """Return whether a thing is shown: it holds, or it is over and that was asked for."""
        if not self.include_superseded:
            return self.holds(thing)
        return self.valid is None or thing.valid_from <= self.valid

    def interior(self, ident: Id) -> set[Id]:
        """Return everything inside a world: its children and members, and theirs."""
        world = self.world
        seen: set[Id] = set()
        frontier = {ident}
        while frontier:
            below = {node.id for node in world.nodes.values() if node.parent in frontier}
            below |= {
                edge.target
                for edge in world.live(("contains",))
                if edge.source in frontier and self.holds(edge)
            }
            frontier = below - seen - {ident}
            seen |= frontier
        return seen

    def visible(self) -> set[Id]:
        """Return what may be seen without piercing: the interior, or everything from outside."""
        return set(self.world.nodes) if self.inside is None else self.interior(self.inside)

    def shown(self, idents: Iterable[Id]) -> set[Id]:
        """Return the nodes that are known and count."""
        nodes = self.world.nodes
        return {ident for ident in idents if ident in nodes and self.counts(nodes[ident])}

    def everything(self) -> set[Id]:
        """Return what a query without a start finds."""
        return self.shown(self.interior(self.inside or ROOT))

    def classes(self, idents: set[Id]) -> set[Id]:
        """Return `idents` and what was accepted as the same, as far as it can be seen."""
        return idents | (self.world.same_as(idents) & self.visible())

    def seeds(self, idents: Iterable[Id]) -> set[Id]:
        """Return what a query that starts at `idents` begins with: ended or not, but visible."""
        return self.world.same_as(idents) & self.visible()

    def text(self, words: Iterable[str]) -> set[Id]:
        """Return the visible nodes whose name or content has one of the words."""
        wanted = set(words)
        found = {
            node.id
            for node in self.world.nodes.values()
            if wanted & set(f"{node.name} {node.content}".split())
        }
        return self.shown(found & self.visible())

    def traverse(
        self, rows: set[Id], types: Iterable[str], direction: Direction, hops: int
    ) -> set[Id]:
        """Return what up to `hops` edges lead to; only `refers_to` leaves the world."""
        visible = self.visible()
        edges = [edge for edge in self.world.live(types) if self.counts(edge)]
        reached: set[Id] = set()
        frontier = self.classes(rows)
        for _ in range(hops):
            found: set[Id] = set()
            for edge in edges:
                ends = set()
                if direction in ("out", "both") and edge.source in frontier:
                    ends.add(edge.target)
                if direction in ("in", "both") and edge.target in frontier:
                    ends.add(edge.source)
                found |= ends if edge.type == "refers_to" else ends & visible
            found = self.shown(found)
            frontier = self.classes(found)
            reached |= found
        return reached

    def where_connected(self, rows: set[Id], type_: str, direction: Direction, to: Id) -> set[Id]:
        """Return those of `rows` with an edge to or from a node; both act as their classes."""
        others = self.classes({to})
        if type_ != "refers_to":
            others &= self.visible()
        kept: set[Id] = set()
        for edge in self.world.live((type_,)):
            if self.counts(edge):
                if direction in ("out", "both") and edge.target in others:
                    kept.add(edge.source)
                if direction in ("in", "both") and edge.source in others:
                    kept.add(edge.target)
        return rows & set().union(*(self.classes({ident}) for ident in kept))

    def kinds(self, wanted: Iterable[str]) -> set[Id]:
        """Return the nodes that stand for these types, and for their subtypes.

        They are looked for inside the world, and right inside each world around it.
        """
        world, names = self.world, set(wanted)
        around = [self.inside or ROOT]
        while (parent := world.nodes[around[-1]].parent) is not None:
            around.append(parent)
        near = self.visible() | {node.id for node in world.nodes.values() if node.parent in around}
        kinds = {ident for ident in near if world.nodes[ident].name in names}
        while True:
            below = {
                edge.source
                for edge in world.live(("subtype_of",))
                if edge.target in kinds and edge.source in near and self.counts(edge)
            }
            if below <= kinds:
                return kinds
            kinds |= below

    def filter_type(self, rows: set[Id], wanted: Iterable[str]) -> set[Id]:
        """Return those of `rows` that are of a type, of a subtype, or an instance of one."""
        world, kinds = self.world, self.kinds(wanted)
        names = set(wanted) | {world.nodes[ident].name for ident in kinds}
        instances = {
            edge.source
            for edge in world.live(("instance_of",))
            if edge.target in kinds and self.counts(edge)
        }
        return {ident for ident in rows if world.nodes[ident].type in names} | (rows & instances)

    def with_summaries(self, rows: set[Id]) -> set[Id]:
        """Return `rows` with every detail replaced by the visible summaries derived from it."""
        visible = self.shown(self.visible())
        summaries = [
            edge
            for edge in self.world.live(("derived_from",))
            if self.holds(edge)
            and edge.source in visible
            and self.world.nodes[edge.source].type == "Summary"
        ]
        found = set(rows)
        while True:
            above = {edge.source for edge in summaries if edge.target in found}
            if above <= found:
                return found - {edge.target for edge in summaries}
            found |= above

    def filter_time(self, rows: set[Id], start: int | None, end: int | None) -> set[Id]:
        """Return those of `rows` that are valid at some time in `[start, end)`."""
        kept = set()
        for ident in rows:
            node = self.world.nodes[ident]
            ends = node.valid_to
            low = max(node.valid_from, start) if start is not None else node.valid_from
            high = min(x for x in (ends, end, 1 << 62) if x is not None)
            if low < high:
                kept.add(ident)
        return kept
