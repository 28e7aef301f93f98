"""Commit: give every touched world its new state, once, and chain the journal.

Worlds are hashed from the inside out: a world waits until all its changed children have their
states. No recursion, so depth costs time and never a stack.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from worlddb.index.pages import digest_of
from worlddb.model.address import node_address
from worlddb.model.journal import commit_hash, encode_changes, state_digest
from worlddb.store.protocol import CHILDREN, EDGES, ROOT_ROW, CommitRow
from worlddb.write.ledger import Ledger
from worlddb.write.sets import Laid, lay_out, update

LAY_OUT_MIN = 10_000
Ahead = dict[tuple[int, int], Laid]
"""Sets worked out ahead, by world and kind."""


def seal(ledger: Ledger, actor: str) -> CommitRow:
    """Compute states, write the journal's row, and return it."""
    writer = ledger.writer
    states = restate(ledger, _build_and_lay_out(ledger))
    root = writer.world(ROOT_ROW)
    digests = {
        "nodes": ledger.nodes.digest(),
        "edges": ledger.edges.digest(),
        "notes": ledger.notes.digest(),
        "states": state_digest(states),
    }
    changes = encode_changes(ledger.changes)
    root_state = root.state or root.id
    row = CommitRow(
        seq=writer.seq,
        time=writer.time,
        actor=actor,
        root_state=root_state,
        hash=commit_hash(
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
    """Build deferred indexes; meanwhile, on the other core, lay out the large new sets.

    SQLite builds without holding Python up, and the layout needs no store.
    """
    if not ledger.writer.is_deferred:
        return {}
    if ledger.moved:
        ledger.writer.build_indexes()
        return {}
    with ThreadPoolExecutor(max_workers=1) as pool:
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


def restate(ledger: Ledger, ahead: Ahead) -> list[tuple[bytes, bytes]]:
    """Give new states to all touched worlds and their ancestors; return (id, state) of each."""
    parents = _with_ancestors(ledger)
    waiting = dict.fromkeys(parents, 0)
    for parent in parents.values():
        if parent is not None:
            waiting[parent] += 1
    ready = [world for world, count in waiting.items() if not count]
    restated: dict[int, dict[bytes, bytes]] = {}
    done: list[tuple[bytes, bytes]] = []
    while ready:
        row = ready.pop()
        parent = parents[row]
        change = _restate(ledger, row, restated.pop(row, {}), ahead)
        if change is not None:
            done.append(change)
            if parent is not None:
                restated.setdefault(parent, {})[change[0]] = change[1]
        if parent is not None:
            waiting[parent] -= 1
            if not waiting[parent]:
                ready.append(parent)
    return done


def _with_ancestors(ledger: Ledger) -> dict[int, int | None]:
    """Return every touched world and every world above one, each with its parent."""
    sets = (ledger.children_put, ledger.children_lost, ledger.edges_put, ledger.edges_lost)
    frontier: set[int] = {world for touched in sets for world, ids in touched.items() if ids}
    parents: dict[int, int | None] = {}
    while frontier:
        parents.update(ledger.writer.parents(frontier))
        frontier = {parents[row] for row in frontier} - parents.keys() - {None}  # type: ignore[assignment]
    return parents


def _restate(
    ledger: Ledger, row: int, restated: dict[bytes, bytes], ahead: Ahead
) -> tuple[bytes, bytes] | None:
    """Hash one world again; return its id and state if the state is a new one."""
    writer = ledger.writer
    put, lost = ledger.children_put.get(row, ()), ledger.children_lost.get(row, ())
    if put or lost or restated:
        members = _members(ledger, put, restated)
        laid = None if restated else ahead.get((row, CHILDREN))
        children = update(writer, row, CHILDREN, members, lost, laid)
    else:
        children = digest_of(writer, row, CHILDREN)
    put, lost = ledger.edges_put.get(row, ()), ledger.edges_lost.get(row, ())
    if put or lost:
        idents = list(dict.fromkeys(put) if ledger.moved else put)
        edges = update(writer, row, EDGES, idents, lost, ahead.get((row, EDGES)))
    else:
        edges = digest_of(writer, row, EDGES)
    world = writer.world(row)
    state = node_address(
        world.type,
        world.name.encode(),
        world.content.encode(),
        world.created_at,
        children,
        edges,
    )
    if state == (world.state or world.id):
        return None
    writer.set_state(row, world.state, state)
    return world.id, state


def _members(ledger: Ledger, put: Iterable[bytes], restated: dict[bytes, bytes]) -> list[bytes]:
    """Return the children to put as `id ‖ state`.

    A new child is a leaf unless it was restated; one that moved here keeps the state it has.
    """
    if not restated and not ledger.moved:
        return [ident + ident for ident in put]
    new = dict.fromkeys(put)
    states = dict(restated)
    for ident in new.keys() & ledger.moved.keys():
        states.setdefault(ident, ledger.writer.world(ledger.moved[ident]).state or ident)
    return [ident + states.pop(ident, ident) for ident in new] + [
        ident + state for ident, state in states.items()
    ]
