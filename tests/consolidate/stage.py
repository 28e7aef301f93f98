"""What every test of the consolidator needs: a store with its own clock, and worlds to fill it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import worlddb
from worlddb import EdgeHandler, Id, Node, Subgraph, WorldDB
from worlddb.model.records import Message

START = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z
SECOND = 1_000_000
DAY = 86_400 * SECOND


class Clock:
    """A clock that is a second later each time it is read, and can be turned on."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> int:
        self.now += SECOND
        return self.now


def open_store(
    path: str | Path = ":memory:",
    *,
    clock: Clock | None = None,
    handlers: Iterable[EdgeHandler] = (),
    **options: Any,
) -> WorldDB:
    """Open a store that knows no wall clock and no embedder."""
    return worlddb.open(
        path,
        clock=clock or Clock(),
        handlers=handlers,
        durability="normal",
        busy_timeout_s=60,
        **{"embedder": "none"} | options,
    )


def world(db: WorldDB, name: str, texts: Sequence[str] = (), parent: Id | None = None) -> Id:
    """Make a topic with a fact for each text, in one commit."""
    with db.transaction() as tx:
        made = tx.create_node(type="Topic", name=name, parent=parent).id
        for text in texts:
            tx.create_node(type="Fact", content=text, parent=made)
    return made


def fact(db: WorldDB, text: str, parent: Id | None = None) -> Id:
    with db.transaction() as tx:
        return tx.create_node(type="Fact", content=text, parent=parent).id


def retire(db: WorldDB, *ids: Id) -> None:
    with db.transaction() as tx:
        for ident in ids:
            tx.retire(ident)


def summaries(db: WorldDB, inside: Id) -> list[Node]:
    """Return the live summaries that live in a world."""
    return [node for node in db.children(inside) if node.type == "Summary"]


def details(db: WorldDB, summary: Node) -> set[Id]:
    """Return what a summary was derived from."""
    return {edge.target for edge in db.edges(summary.id, "out", ["derived_from"])}


def texts(found: Iterable[Node] | Subgraph) -> list[str]:
    return sorted(node.content or node.name for node in found)


class Noting:
    """A summarizer that tells what it was given, and can be made to fail or to do mischief."""

    name = "noting"

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[Message]]] = []

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        self.asked.append((title, list(messages)))
        return f"{title}: " + " | ".join(message.text for message in messages)


def shape(db: WorldDB) -> Any:
    """Return everything a store holds that does not depend on when it was consolidated."""
    names = {}
    found = [db.get(db.root_id), *db.query().include_superseded().execute().nodes]
    for node in found:
        names[node.id] = (node.type, node.name, node.content)
    live = {node.id for node in found if node.valid_to is None}
    nodes = sorted(
        (*names[node.id], names[node.parent] if node.parent else None)
        for node in found
        if node.id in live
    )
    edges = []
    for node in found:
        for edge in db.edges(node.id):
            premises = [
                (names[db.get_edge(it).source], names[db.get_edge(it).target])
                for it in edge.metadata.get("premises", ())
            ]
            if edge.source in live and edge.target in live:
                ends = names[edge.source], names[edge.target]
                edges.append((edge.type, *ends, bool(edge.metadata.get("inferred")), premises))
    return nodes, sorted(edges)
