"""Sets: work out every world's state from its nodes and edges alone, and every page with it.

Where changes wait to be written, the pages are those of an earlier commit: then they must fit
together and hold the states of that time, and with the changes laid over them, the set of today.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from worlddb.index.set_pages import WIDTH, digest_and_pages, members_of, merge
from worlddb.model.address import ERASED, erased_state, node_address
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
    pages = _Pages(reader, rows)
    states: dict[int, bytes] = {}
    for world in _inside_out(rows, children, edges):
        _check_world(reader, rows, world, children[world], edges[world], states, pages)
    pages.report_the_rest()
    root = states.get(ROOT_ROW, rows.node_ids.get(ROOT_ROW))
    if rows.commits and root != rows.commits[-1].root_state:
        rows.report("root", "its state is not the one of the last commit")


class _Pages:
    """The pages in the file, and what waits beside them."""

    def __init__(self, reader: Reader, rows: Rows) -> None:
        changes = reader.waiting()
        self._rows = rows
        self._waiting = merge(changes)
        self._written = changes[0].seq - 1 if changes else None
        self._stored = {
            key: {path: (fork, body) for _, _, path, fork, body in group}
            for key, group in groupby(reader.scan.pages(), key=lambda page: page[:2])
        }
        seqs = {commit.seq for commit in rows.commits}
        if not {change.seq for change in changes} <= seqs:
            rows.report("waiting", "it has changes of a commit that is not there")

    def check(self, world: int, kind: int, content: list[bytes], expected: Pages) -> None:
        """Report if a set is not what the file says, or will say once all is written."""
        stored = self._stored.pop((world, kind), {})
        waiting = self._waiting.pop((world, kind), None)
        place = f"pages of world row {world}, kind {kind}"
        if waiting is None:
            if stored != expected:
                self._rows.report(place, "they do not hold its set")
            return
        leaves = [members_of(body, WIDTH[kind]) for fork, body in stored.values() if not fork]
        held = {member[:32]: member for leaf in leaves for member in leaf}
        fits = digest_and_pages(sorted(held.values()))[1] == stored
        if not fits or (kind == CHILDREN and not all(map(self._is_of_then, held.values()))):
            self._rows.report(place, "they do not fit together")
        held.update((member[:32], member) for member in waiting[0])
        if sorted(member for ident, member in held.items() if ident not in waiting[1]) != content:
            self._rows.report(place, "with what waits they do not hold its set")

    def _is_of_then(self, member: bytes) -> bool:
        """Return whether a child's state is the one it had when its page was written."""
        row = self._rows.node_rows.get(member[:32])
        if row is None or self._written is None:
            return False
        state = self._rows.states.get(row)
        for seq, was in reversed(self._rows.history.get(("node.state", row), [])):
            if seq > self._written:
                state = was
        return member[32:] == (state or member[:32])

    def report_the_rest(self) -> None:
        """Report pages and changes of sets that nothing is in."""
        # To drop from a set what never was in it, as a move there and back does, is no harm.
        waiting = {key for key, (put, _) in self._waiting.items() if put}
        for world, kind in self._stored.keys() | waiting:
            self._rows.report(f"pages of world row {world}, kind {kind}", "they belong to no set")


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
    pages: _Pages,
) -> None:
    members = sorted(rows.node_ids[row] + states.get(row, rows.node_ids[row]) for row in children)
    digests = []
    for kind, content in ((CHILDREN, members), (EDGES, sorted(edges))):
        digest, expected = digest_and_pages(content)
        digests.append(digest)
        pages.check(world, kind, content, expected)
    if world not in rows.node_ids:
        rows.report(f"world row {world}", "it does not exist")
        return
    found = reader.world(world)
    if found.created_at == ERASED:
        state = erased_state(found.id, *digests)
    else:
        fields = (found.type, found.name.encode(), found.content.encode(), found.created_at)
        state = node_address(*fields, *digests)
    states[world] = state
    if rows.states.get(world, rows.node_ids[world]) != state:
        rows.report(
            f"node {rows.node_ids[world].hex()[:12]}", "its interior does not hash to its state"
        )
