"""Closure: what follows from two edges of one type that meet: a → b and b → c, so a → c.

The types have no circles, so one pass from the ends backwards finds everything: when a node's turn
comes, all that its targets lead to is known. The first premise is always an edge that somebody
stated, so the same premises are chosen whether or not an earlier run was cut short.

C1  An inferred edge names its two premises and holds while both do.
C2  What somebody deleted although its premises still hold is not inferred again.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from worlddb.model.address import Id
from worlddb.model.inputs import premises_of
from worlddb.store.protocol import Reader
from worlddb.store.sweep import CauseRow

CLOSED_TYPES = ("causes", "subtype_of")


class Link(NamedTuple):
    """An edge that is there, by its id, or one that is to be, by its place in the list."""

    source: int
    target: int
    valid_from: int
    valid_to: int | None
    premise: bytes | int


class Inference(NamedTuple):
    """An edge to be written, and what it rests on."""

    type: str
    source: int
    target: int
    valid_from: int
    valid_to: int | None
    premises: tuple[bytes | int, bytes | int]

    @property
    def key(self) -> tuple[object, ...]:
        """What it is about, whatever it rests on."""
        return self.type, self.source, self.target


class Closure(NamedTuple):
    """What one look found: edges to write, in order, edges to withdraw, and whether it was cut."""

    inferences: list[Inference]
    withdrawn: list[Id]
    is_cut: bool


def closure_of(
    reader: Reader, now: int, inside: set[int] | None, most: int, avoided: Set[tuple[object, ...]]
) -> Closure:
    """Return what follows, of every closed type, at most `most` edges.

    `avoided` are the keys of those that a handler would not have.
    """
    inferences: list[Inference] = []
    withdrawn: list[Id] = []
    is_cut = False
    for type_ in CLOSED_TYPES:
        edges = list(reader.sweep.typed(type_))
        found = _Type(type_, edges, now, inside)
        withdrawn += found.fallen
        is_cut |= found.infer(inferences, most, avoided)
    return Closure(inferences, withdrawn, is_cut)


class _Type:
    """The edges of one type, as a graph."""

    def __init__(
        self, type_: str, edges: Iterable[CauseRow], now: int, inside: set[int] | None
    ) -> None:
        self.type = type_
        self.inside = inside
        self.live: dict[bytes, CauseRow] = {}
        self.ended: set[bytes] = set()
        gone: list[CauseRow] = []
        for edge in edges:
            if edge.gone is not None:
                gone.append(edge)
            elif edge.valid_to is not None and edge.valid_to <= now:
                self.ended.add(edge.id)
            else:
                self.live[edge.id] = edge
        self.fallen: list[Id] = []
        """Inferred edges that outlive a premise, directly or through one that does."""
        for edge in list(self.live.values()):
            # In the order of writing: premises are older than what rests on them.
            if edge.inferred and any(it in self.ended for it in premises_of(edge.inferred)):
                self.ended.add(edge.id)
                del self.live[edge.id]
                self.fallen.append(Id(edge.id))
        self.taken_back = {
            (edge.source, edge.target)
            for edge in gone
            if edge.inferred and all(it in self.live for it in premises_of(edge.inferred))
        }

    def _is_ours(self, source: int) -> bool:
        return self.inside is None or source in self.inside

    def infer(self, found: list[Inference], most: int, avoided: Set[tuple[object, ...]]) -> bool:
        """Add what follows to `found`, ends first; return whether there is more than `most`."""
        out: dict[int, dict[int, Link]] = {}
        stated: dict[int, list[Link]] = {}
        for edge in sorted(self.live.values(), key=lambda it: (it.inferred is not None, it.row)):
            link = Link(edge.source, edge.target, edge.valid_from, edge.valid_to, edge.id)
            out.setdefault(edge.source, {}).setdefault(edge.target, link)
            if edge.inferred is None:
                stated.setdefault(edge.source, []).append(link)
        for source in _ends_first(out):
            if not self._is_ours(source):
                continue
            for first in stated.get(source, ()):
                for second in list(out.get(first.target, {}).values()):
                    if second.target in out[source] or second.target == source:
                        continue
                    made = self._joined(first, second)
                    if made is None or made.key in avoided:
                        continue
                    if len(found) == most:
                        return True
                    out[source][second.target] = Link(*made[1:5], len(found))
                    found.append(made)
        return False

    def _joined(self, first: Link, second: Link) -> Inference | None:
        """Return what follows from two links, unless they never held at one time."""
        if (first.source, second.target) in self.taken_back:
            return None
        begins = max(first.valid_from, second.valid_from)
        ends = min((it for it in (first.valid_to, second.valid_to) if it is not None), default=None)
        if ends is not None and ends <= begins:
            return None
        premises = first.premise, second.premise
        return Inference(self.type, first.source, second.target, begins, ends, premises)


def _ends_first(out: dict[int, dict[int, Link]]) -> list[int]:
    """Return the sources in an order in which whatever they lead to comes before them."""
    above: dict[int, list[int]] = {}
    waiting = {}
    for source, links in out.items():
        inner = [target for target in links if target in out]
        waiting[source] = len(inner)
        for target in inner:
            above.setdefault(target, []).append(source)
    ready = sorted(source for source, count in waiting.items() if not count)
    order = []
    while ready:
        order += ready
        following = set()
        for row in ready:
            for source in above.get(row, ()):
                waiting[source] -= 1
                if not waiting[source]:
                    following.add(source)
        ready = sorted(following)
    return order
