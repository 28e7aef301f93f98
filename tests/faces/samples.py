"""Stores to run commands on, the same in every run: their clock is a counter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import worlddb
from worlddb import Edge, Id, Node

BEGIN = 1_767_225_600_000_000  # 2026-01-01 in microseconds.
SECOND = 1_000_000
HOSTILE = "red \x1b[31m alert \u202e reversed\nsecond line\ttab \u2028 end"


@dataclass(frozen=True)
class Sample:
    """A store on disk, closed, and what is in it."""

    path: Path
    topic: Node
    old: Node
    new: Node
    person: Node
    hostile: Node
    scope: Node
    supersedes: Edge
    refers: Edge
    root_state: Id
    lines: list[str]


def ticking() -> Callable[[], int]:
    """Return a clock that moves one second each time it is read."""
    now = BEGIN

    def clock() -> int:
        nonlocal now
        now += SECOND
        return now

    return clock


def make_sample(path: Path) -> Sample:
    """Make a store that has every kind of record and change in its journal."""
    with worlddb.open(path, clock=ticking()) as db:
        with db.transaction(actor="ann") as tx:
            topic = tx.create_node(
                type="Topic",
                name="Tesla",
                valid_from="2003-07-01T00:00Z",
                aliases=("TSLA", "特斯拉"),
                source="mail/1",
            )
            old = tx.create_node(
                type="Fact", content="the CEO is A", parent=topic.id, valid_from="2020-01-01T00:00Z"
            )
            person = tx.create_node(type="Entity", name="Ada Lovelace", content="née Byron")
            for number in range(40):
                tx.create_node(
                    type="Fact", content=f"filler {number} {'and so on ' * 5}", parent=topic.id
                )
        with db.transaction(actor="bob") as tx:
            new = tx.create_node(
                type="Fact", content="the CEO is B", parent=topic.id, valid_from="2025-01-01T00:00Z"
            )
            supersedes = tx.write_edge(
                "supersedes", new.id, old.id, metadata={"why": "press", "n": [1.5, None, True]}
            )
            refers = tx.write_edge("refers_to", new.id, person.id)
            hostile = tx.create_node(type="Memory", name="", content=HOSTILE)
            scope = tx.create_node(type="Scope", name="日本語のスコープ")
            placed = tx.write_edge("contains", scope.id, person.id)
            tx.write_edge("contradicts", old.id, new.id)
            same = tx.write_edge("same_as", person.id, topic.id)
        db.accept_merge(same.id, actor="cyd")
        with db.transaction(actor="dee") as tx:
            tx.delete_edge(placed.id)
            tx.retire(hostile.id)
            tx.add_aliases(person.id, ["Countess"])
        assert db.check() == []
        return Sample(
            path=path,
            topic=topic,
            old=old,
            new=new,
            person=person,
            hostile=hostile,
            scope=scope,
            supersedes=supersedes,
            refers=refers,
            root_state=db.root_state,
            lines=list(db.export()),
        )
