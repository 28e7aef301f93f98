"""Sets: work out every world's state from its nodes and edges alone, and every page with it."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from worlddb.index.pages import digest_and_pages
from worlddb.model.address import node_address
from worlddb.read.check_rows import Rows
from worlddb.store.protocol import CHILDREN, EDGES, ROOT_ROW, Reader

Pages = dict[str, tuple[int, bytes]]


def check_sets(reader: Reader, rows: Rows) -> None:
    """Report every state and page that does not follow from the rows."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for row, parent in rows.parents.items():
        if parent is not None:
            children[parent].append(row)
    edges: defaultdict[int, list[bytes]] = defaultdict(list)
    for row, world in rows.edge_worlds.items():
        if row not in rows.edge_gone:
            edges[world].append(rows.edge_ids[row])
    stored = {
        key: {path: (fork, body) for _, _, path, fork, body in group}
        for key, group in groupby(reader.scan.pages(), key=lambda page: page[:2])
    }
    states: dict[int, bytes] = {}
    for world in _inside_out(rows, children, edges):
        _check_world(reader, rows, world, children[world], edges[world], states, stored)
    for world, kind in stored:
        rows.report(f"pages of world row {world}, kind {kind}", "they belong to no set")
    root = states.get(ROOT_ROW, rows.node_ids.get(ROOT_ROW))
    if rows.commits and root != rows.commits[-1].root_state:
        rows.report("root", "its state is not the one of the last commit")


def _inside_out(
    rows: Rows, children: dict[int, list[int]], edges: dict[int, list[bytes]]
) -> list[int]:
    """Return the worlds that have or had an interior, each after all worlds inside it."""
    worlds = children.keys() | edges.keys() | rows.states.keys()
    waiting = dict.fromkeys(worlds, 0)
    for world in worlds:
        parent = rows.parents.get(world)
        if parent is not None:
            waiting[parent] = waiting.get(parent, 0) + 1
    ready = [world for world, count in waiting.items() if not count]
    ordered = []
    while ready:
        world = ready.pop()
        ordered.append(world)
        parent = rows.parents.get(world)
        if parent is not None:
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    if len(ordered) != len(waiting):
        rows.report("nodes", "some worlds contain each other in a circle")
    return ordered


def _check_world(
    reader: Reader,
    rows: Rows,
    world: int,
    children: list[int],
    edges: list[bytes],
    states: dict[int, bytes],
    stored: dict[tuple[int, int], Pages],
) -> None:
    members = sorted(rows.node_ids[row] + states.get(row, rows.node_ids[row]) for row in children)
    digests = []
    for kind, content in ((CHILDREN, members), (EDGES, sorted(edges))):
        digest, pages = digest_and_pages(content)
        digests.append(digest)
        if stored.pop((world, kind), {}) != pages:
            rows.report(f"pages of world row {world}, kind {kind}", "they do not hold its set")
    if world not in rows.node_ids:
        rows.report(f"world row {world}", "it does not exist")
        return
    found = reader.world(world)
    state = node_address(
        found.type, found.name.encode(), found.content.encode(), found.created_at, *digests
    )
    states[world] = state
    if rows.states.get(world, rows.node_ids[world]) != state:
        rows.report(
            f"node {rows.node_ids[world].hex()[:12]}", "its interior does not hash to its state"
        )
