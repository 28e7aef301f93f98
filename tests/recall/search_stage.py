"""Search stage: small stores for the tests of search, and ways to say how they are searched."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import worlddb
from property.player import Player, Renews, first_turn, random_turn
from worlddb import Hit, Id, Recall, RecallSettings, Subgraph, WorldDB
from worlddb.index.search import HeldWorlds
from worlddb.index.vectors import Vectors

BASE = 1_700_000_000_000_000
HOUR = 3_600_000_000
LANES = ("text", "vector", "graph")


class Clock:
    """A clock that shows what the test says."""

    def __init__(self, now: int = BASE) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def open_store(path: str | os.PathLike[str] = ":memory:", **options: Any) -> WorldDB:
    """Open a store whose vectors depend on spelling alone."""
    return worlddb.open(path, **{"embedder": "hash", **options})


def hold_at_most(db: WorldDB, nodes: int) -> WorldDB:
    """Let worlds with more nodes than these be searched through the whole store's indexes."""
    db.engine.search._interiors = HeldWorlds(held_max=nodes)
    return db


def lanes(*names: str, **options: Any) -> RecallSettings:
    """Return settings that run these lanes and order by their fused ranks alone."""
    return RecallSettings(**{"weights": dict.fromkeys(names, 1.0), "weighing": None, **options})


def fact(db: WorldDB, content: str, **fields: Any) -> Id:
    """Write one fact in a commit of its own."""
    with db.transaction() as tx:
        return tx.create_node(**{"type": "Fact", "content": content, **fields}).id


def facts(db: WorldDB, contents: Iterable[str], **fields: Any) -> list[Id]:
    """Write facts in one commit."""
    with db.transaction() as tx:
        return [
            tx.create_node(**{"type": "Fact", "content": content, **fields}).id
            for content in contents
        ]


def edge(db: WorldDB, type_: str, source: Id, target: Id, **fields: Any) -> Id:
    """Write one edge in a commit of its own."""
    with db.transaction() as tx:
        return tx.write_edge(type_, source, target, **fields).id


def delete(db: WorldDB, ident: Id) -> None:
    """Delete one edge in a commit of its own."""
    with db.transaction() as tx:
        tx.delete_edge(ident)


def found(answer: Recall | Subgraph) -> list[Id]:
    """Return the ids of an answer, best first."""
    return [node.id for node in answer.nodes]


def hit_of(answer: Recall, ident: Id) -> Hit:
    """Return the hit of one node."""
    return next(hit for hit in answer if hit.node.id == ident)


def open_for(player: Player, path: str | os.PathLike[str]) -> WorldDB:
    """Open a store under a player's clock, with its blinds and its edge types."""
    return open_store(
        path,
        clock=lambda: player.clock,
        random_bytes=lambda size: player.blind[:size],
        handlers=[Renews()],
    )


def player_on(path: str | os.PathLike[str] = ":memory:") -> Player:
    """Return a player whose store has vectors by spelling."""
    player = Player()
    player.db.close()
    player.db = open_for(player, path)
    return player


def nested_worlds(seed: int, commits: int = 120) -> Player:
    """Return a store of random worlds inside worlds, with its model."""
    rng = random.Random(seed)
    player = player_on()
    player.play(first_turn(rng, BASE))
    for number in range(commits):
        player.play(random_turn(rng, BASE + number * HOUR // 3))
    player.clock = rng.choice((BASE, player.world.time + HOUR))
    return player


def write_after_catch_up(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Let somebody else write once, right after the next catch-up and before its snapshot."""
    inner = Vectors.catch_up
    left = [act]

    def catch_up(self: Vectors, *given: Any) -> None:
        inner(self, *given)
        if left:
            left.pop()()

    monkeypatch.setattr(Vectors, "catch_up", catch_up)
