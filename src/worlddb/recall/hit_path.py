"""The path to a hit: by which nodes and edges the graph lane came to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from worlddb.model.address import Id
from worlddb.model.records import Plain
from worlddb.recall.activation import Way
from worlddb.view.visibility import View

NAME_CHARS = 60
"""How much of a text stands for it in a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStep(Plain):
    """One step of the way to a hit: along which relation to which node.

    `relation` is `about`, `mentions`, `inside` or what an edge calls itself ("sister"); `says` is
    a name in the question or in the text before, `found` a text that the other lanes found. `edge`
    is the edge of the step, if there is one. `name` is the node's name, or how its text begins.
    """

    relation: str
    node: Id
    name: str
    edge: Id | None = None


def paths_of(
    view: View, rows: Iterable[int], ways: Mapping[int, Way]
) -> dict[int, tuple[PathStep, ...]]:
    """Return the path to each row that the graph lane reached."""
    chosen = {row: ways[row].steps for row in rows if row in ways}
    passed = {step.row for steps in chosen.values() for step in steps}
    nodes = view.reader.nodes(passed, view.moment.known)
    return {
        row: tuple(
            PathStep(
                relation=step.relation,
                node=nodes[step.row].id,
                name=nodes[step.row].name or nodes[step.row].content[:NAME_CHARS],
                edge=step.edge,
            )
            for step in steps
        )
        for row, steps in chosen.items()
    }
