"""Subgraph: the answer to a query, shaped like the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from worlddb.errors import ProviderError
from worlddb.model.address import Id
from worlddb.model.records import Conflict, Edge, Node, Plain, node_line, order_told

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True, kw_only=True)
class Subgraph(Plain):
    """The answer to a query, shaped like the data.

    It has the nodes that the query ends at, the edges that it followed, and the open conflicts of
    the nodes. `cut` says how the start set was cut; None if it was complete.
    """

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    cut: str | None = None

    @property
    def ids(self) -> set[Id]:
        """The ids of the nodes."""
        return {node.id for node in self.nodes}

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def to_json(self) -> dict[str, Any]:
        """Return nodes, edges and conflicts as plain JSON data."""
        return self.to_dict()

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return a directed multigraph: nodes by hex id, edges by hex id as their key.

        Raises:
            ProviderError: networkx is not installed.
        """
        try:
            import networkx
        except ImportError as error:
            raise ProviderError(
                'networkx is not installed; run: pip install "worlddb[networkx]"'
            ) from error
        graph: nx.MultiDiGraph[str] = networkx.MultiDiGraph()
        for node in self.nodes:
            graph.add_node(str(node.id), **node.to_dict())
        for edge in self.edges:
            ends = (str(edge.source), str(edge.target))
            graph.add_edge(*ends, key=str(edge.id), **edge.to_dict())
        graph.graph["conflicts"] = [conflict.to_dict() for conflict in self.conflicts]
        return graph

    def to_text(self) -> str:
        """Return the nodes as lines for a prompt: when, what, after what, what speaks against it.

        A last line says how the start set was cut, if it was.
        """
        against: dict[Id, list[Id]] = {}
        for conflict in self.conflicts:
            if not conflict.settled:
                against.setdefault(conflict.left, []).append(conflict.right)
                against.setdefault(conflict.right, []).append(conflict.left)
        order = order_told(self.edges)
        lines = [
            node_line(node, against.get(node.id, []), order.get(node.id, ())) for node in self.nodes
        ]
        return "\n".join(lines if self.cut is None else [*lines, f"({self.cut})"])
