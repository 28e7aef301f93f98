"""Commit: give every touched world its new state, once, and chain the journal.

Worlds are hashed from the inside out: a world waits until all its changed children have their
states. No recursion, so depth costs time and never a stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from worlddb.index.pages import digest_of
from worlddb.index.sets import Laid, lay_out
from worlddb.model.address import ERASED, ROOT_ID, erased_state, node_address
from worlddb.model.journal import commit_hash, encode_changes, state_digest
from worlddb.store.protocol import CHILDREN, EDGES, CommitRow, SetChange, World
from worlddb.write.ledger import Ledger
from worlddb.write.sets import catch_up, update

LAY_OUT_MIN = 10_000
Ahead = dict[tuple[int, int], Laid]
"""Sets worked out ahead, by world and kind."""


def seal(ledger: Ledger, actor: str, hash_: bytes | None = None) -> CommitRow:
    """Compute states, write the journal's row, and return it.

    `hash_` is the hash of a commit that is played again and of which something was erased.
    """
    writer = ledger.writer
    states = restate(ledger, _build_and_lay_out(ledger))
    root_state = states.get(ROOT_ID, ledger.head.root_state)
    digests = {
        "nodes": ledger.nodes.digest(),
        "edges": ledger.edges.digest(),
        "notes": ledger.notes.digest(),
        "states": state_digest(states.items()),
    }
    changes = encode_changes(ledger.changes)
    row = CommitRow(
        seq=writer.seq,
        time=writer.time,
        actor=actor,
        root_state=root_state,
        hash=hash_
        or commit_hash(
            ledger.head.hash, writer.seq, writer.time, actor, root_state, digests, changes
        ),
        nodes=ledger.node_row,
        edges=ledger.edge_row,
        notes=ledger.note_row,
        changes=changes,
    )
    writer.insert_commit(row)
    return row


def _build_and_lay_out(ledger: Ledger) -> Ahead:
    """Build deferred indexes; meanwhile, on the other core, analyse words and lay out large sets.

    SQLite builds without holding Python up, and neither of the two needs the store. One thread does
    both: words first, because SQLite waits for them, then the layout while SQLite takes them in.
    """
    if not ledger.writer.is_deferred:
        return {}
    if ledger.moved:
        ledger.writer.build_indexes()
        return {}
    with ThreadPoolExecutor(max_workers=1) as pool:
        ledger.writer.analyse_texts(pool)
        laying = pool.submit(_lay_out_large, ledger)
        ledger.writer.build_indexes()
        return laying.result()


def _lay_out_large(ledger: Ledger) -> Ahead:
    """Lay out the sets that are worth it, as if every new child were a leaf."""
    ahead: Ahead = {}
    for world, idents in ledger.edges_put.items():
        if len(idents) > LAY_OUT_MIN:
            ahead[world, EDGES] = lay_out(idents)
    for world, idents in ledger.children_put.items():
        if len(idents) > LAY_OUT_MIN:
            ahead[world, CHILDREN] = lay_out([ident + ident for ident in idents])
    return ahead


def restate(ledger: Ledger, ahead: Ahead) -> dict[bytes, bytes]:
    """Give new states to all touched worlds and their ancestors; return id → state of each."""
    worlds = _with_ancestors(ledger)
    if worlds:
        catch_up(ledger.writer)
    waiting = dict.fromkeys(worlds, 0)
    for world in worlds.values():
        if world.parent is not None:
            waiting[world.parent] += 1
    ready = [row for row, count in waiting.items() if not count]
    restated: dict[int, dict[bytes, bytes]] = {}
    work = _Work(ledger, ahead)
    while ready:
        world = worlds[ready.pop()]
        state = work.restate(world, restated.pop(world.row, {}))
        if world.parent is not None:
            if state is not None:
                restated.setdefault(world.parent, {})[world.id] = state
            waiting[world.parent] -= 1
            if not waiting[world.parent]:
                ready.append(world.parent)
    ledger.writer.keep_changes(work.sets)
    ledger.writer.set_states(work.changes)
    return work.states


def _with_ancestors(ledger: Ledger) -> dict[int, World]:
    """Return every touched world and every world above one."""
    sets = (ledger.children_put, ledger.children_lost, ledger.edges_put, ledger.edges_lost)
    frontier = {world for touched in sets for world, ids in touched.items() if ids}
    frontier |= ledger.touched
    worlds: dict[int, World] = {}
    while frontier:
        found = ledger.writer.worlds(frontier)
        worlds.update(found)
        above = {world.parent for world in found.values() if world.parent is not None}
        frontier = above - worlds.keys()
    return worlds


class _Work:
    """What restating has worked out so far; written at the end, in one go."""

    def __init__(self, ledger: Ledger, ahead: Ahead) -> None:
        self.ledger = ledger
        self.ahead = ahead
        self.states: dict[bytes, bytes] = {}
        self.changes: list[tuple[int, bytes | None, bytes]] = []
        self.sets: list[SetChange] = []

    def restate(self, world: World, restated: dict[bytes, bytes]) -> bytes | None:
        """Hash one world again; return its state if that is a new one."""
        children = self._children(world.row, restated)
        edges = self._edges(world.row)
        if world.created_at == ERASED:
            given = self.ledger.given_states.get(world.id)
            state = given or erased_state(world.id, children, edges)
        else:
            name, content = world.name.encode(), world.content.encode()
            state = node_address(world.type, name, content, world.created_at, children, edges)
        if state == (world.state or world.id):
            return None
        self.states[world.id] = state
        self.changes.append((world.row, world.state, state))
        return state

    def _children(self, row: int, restated: dict[bytes, bytes]) -> bytes:
        ledger = self.ledger
        put, lost = ledger.children_put.get(row, ()), ledger.children_lost.get(row, ())
        if not (put or lost or restated):
            return digest_of(ledger.writer, row, CHILDREN)
        members = self._members(put, restated)
        laid = None if restated else self.ahead.get((row, CHILDREN))
        return self._change(row, CHILDREN, members, lost, laid)

    def _edges(self, row: int) -> bytes:
        ledger = self.ledger
        put, lost = ledger.edges_put.get(row, ()), ledger.edges_lost.get(row, ())
        if not (put or lost):
            return digest_of(ledger.writer, row, EDGES)
        idents = list(dict.fromkeys(put) if ledger.moved else put)
        laid = self.ahead.get((row, EDGES))
        return self._change(row, EDGES, idents, lost, laid)

    def _change(
        self, row: int, kind: int, put: list[bytes], lost: Iterable[bytes], laid: Laid | None
    ) -> bytes:
        writer = self.ledger.writer
        self.sets.append(SetChange(writer.seq, row, kind, put, list(lost)))
        return update(writer, row, kind, put, lost, laid)

    def _members(self, put: Iterable[bytes], restated: dict[bytes, bytes]) -> list[bytes]:
        """Return the children to put as `id ‖ state`.

        A new child is a leaf unless it was restated; one that moved here keeps the state it has.
        """
        moved = self.ledger.moved
        if not restated and not moved:
            return [ident + ident for ident in put]
        new = dict.fromkeys(put)
        states = dict(restated)
        for ident in new.keys() & moved.keys():
            before = self.ledger.writer.world(moved[ident]).state
            states.setdefault(ident, self.states.get(ident) or before or ident)
        return [ident + states.pop(ident, ident) for ident in new] + [
            ident + state for ident, state in states.items()
        ]
