"""Ledger and commit: what the open transaction has done so far, and how it becomes a commit.

The `Ledger` numbers rows, keeps the world of each node, updates the commit's digests as records are
written, and notes which sets of which worlds must be hashed again. `seal` then gives every touched
world its new state, once, and chains the journal. Worlds are hashed from the inside out: a world
waits until all its changed children have their states. There is no recursion, so a deep tree costs
time but no stack.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.index.set_pages import SetLayout, change, digest_of, lay_out, merge
from worlddb.model.address import (
    BLIND_BYTES,
    ERASED,
    ROOT_ID,
    Id,
    commit_hash,
    erased_state,
    node_address,
    note_record,
    state_digest,
    trusted_id,
)
from worlddb.model.inputs import Instant, Limits, from_micros, to_micros
from worlddb.model.records import Change, Commit, Edge, decode_changes, encode_changes
from worlddb.store.interface import Writer
from worlddb.store.rows import (
    CHILDREN,
    EDGES,
    ROOT_ROW,
    CommitRow,
    Head,
    NodePlace,
    NoteRow,
    SetChange,
    StateChange,
    World,
)
from worlddb.view.visibility import whole_id

if TYPE_CHECKING:
    from worlddb.write.handler_context import TrustGuard

LAY_OUT_MIN = 10_000
"""New members from which a set is laid out ahead, while the store builds its indexes. For a smaller
set a thread costs more than it saves."""
DatedText = tuple[int, int, str]
"""A node by content key, time of creation and name."""
SetsAhead = dict[tuple[int, int], SetLayout]
"""Sets laid out ahead, by world and kind."""


class Ledger:
    """The state of one open transaction.

    `places` has the nodes looked up or created so far; `edges_seen` the rows of new edges by short
    key. `children_put`, `children_lost`, `edges_put` and `edges_lost` are the changes of the
    worlds' sets, by the row of the world; `touched` are further worlds to hash again, and `moved`
    the rows of moved nodes. `given_states` are states that cannot be computed because fields were
    erased: a replay takes them from its export. `failure` is the error that broke the transaction,
    `landed` the commit it became. `dated` has the rows of new nodes with a given time of creation.
    `guard` checks the transaction of a less trusted caller. `equals` are two nodes found to have
    the same origins, and the last note at that time.
    """

    def __init__(self, writer: Writer, limits: Limits) -> None:
        head = writer.head()
        self._writer: Writer | None = writer
        self.failure: BaseException | None = None
        self.landed: CommitRow | None = None
        self.guard: TrustGuard | None = None
        self.equals: tuple[bytes, bytes, int] | None = None
        self.limits = limits
        self.head = head
        self.node_row, self.edge_row, self.note_row = head.nodes, head.edges, head.notes
        self.nodes, self.edges, self.notes = blake3(), blake3(), blake3()
        self.changes: list[Change] = []
        self.places: dict[bytes, NodePlace] = {ROOT_ID: NodePlace(ROOT_ROW, ROOT_ROW, 0)}
        self.dated: dict[DatedText, int] = {}
        self.edges_seen: dict[int, int] = {}
        self.moved: dict[bytes, int] = {}
        self.touched: set[int] = set()
        self.given_states: dict[bytes, bytes] = {}
        self.children_put: defaultdict[int, list[bytes]] = defaultdict(list)
        self.children_lost: defaultdict[int, set[bytes]] = defaultdict(set)
        self.edges_put: defaultdict[int, list[bytes]] = defaultdict(list)
        self.edges_lost: defaultdict[int, set[bytes]] = defaultdict(set)

    @property
    def writer(self) -> Writer:
        """The store's write session.

        Raises:
            InvalidInputError: the transaction is over.
        """
        if self._writer is None:
            raise InvalidInputError("this transaction has ended; open another one")
        return self._writer

    def close(self) -> None:
        """End the ledger, so that a transaction or context still held somewhere cannot write."""
        self._writer = None

    @property
    def now(self) -> datetime:
        """The commit's time."""
        return from_micros(self.writer.time)

    @property
    def size(self) -> tuple[int, int, int, int]:
        """The last row of each kind and the number of changes; grows with every write."""
        return self.node_row, self.edge_row, self.note_row, len(self.changes)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written, so that there is nothing to commit."""
        return self.size == (self.head.nodes, self.head.edges, self.head.notes, 0)

    def resolve(self, given: bytes | str) -> Id:
        """Return the id of a node from an id or a prefix; nodes of this transaction count.

        Raises:
            InvalidInputError: not an id, too short, or an ambiguous prefix.
            NotFoundError: no node has it.
        """
        return given if type(given) is Id else whole_id(self.writer, given, "nodes")

    def place(self, given: bytes | str) -> NodePlace:
        """Return the row and the world of a node.

        Raises:
            NotFoundError: no such node.
        """
        ident = given if type(given) is Id else self.resolve(given)
        place = self.places.get(ident)
        if place is None:
            place = self.writer.lookup([ident]).get(ident)
            if place is None:
                raise NotFoundError(f"no node has the id {ident}; create it first")
            self.places[ident] = place
        return place

    def place_all(self, idents: list[bytes]) -> None:
        """Look up many nodes at once, so that `place` finds them in memory."""
        if idents:
            self.places.update(self.writer.lookup(idents))

    def change(self, kind: str, ident: bytes, **detail: Any) -> None:
        """Record an effect in the journal."""
        detail = dict(sorted(detail.items()))  # In the order in which the journal is read.
        self.changes.append(Change(kind=kind, id=Id(ident), detail=detail))

    def add_notes(
        self, ident: bytes, row: int, kind: str, texts: tuple[str, ...], *, fresh: bool
    ) -> None:
        """Attach aliases, sources, origins or metadata to a node.

        Texts that the node has already are left out, unless all are `fresh`.
        """
        rows = []
        for text in texts:
            if fresh or not self.writer.has_note(row, kind, text):
                self.note_row += 1
                rows.append(NoteRow(self.note_row, row, kind, text, self.writer.seq))
                self.notes.update(note_record(ident, kind, text))
        if rows:
            self.writer.insert_notes(rows)

    def close_validity(self, target: bytes, at: Instant, by: Edge | None) -> None:
        """Tighten `valid_to` of a node or an edge; a later or equal end changes nothing.

        `by` is the edge whose handler asks for it.

        Raises:
            NotFoundError: no node or edge has this id.
            InvalidInputError: `at` is not a time with a time zone.
            RejectedError: the node is more trusted than the caller.
        """
        end, writer = to_micros(at, "valid_to"), self.writer
        try:
            kind, row = "node", self.place(target).row
            before = next(iter(writer.bodies([row]))).valid_to
        except NotFoundError:
            edge_row = writer.edge_row(target)
            if edge_row is None:
                raise NotFoundError(f"no node or edge has the id {Id(target)}") from None
            kind, row = "edge", edge_row
            closed = writer.edges([row])[0].edge.valid_to
            before = None if closed is None else to_micros(closed, "valid_to")
        if before is not None and before <= end:
            return
        if kind == "node" and self.guard is not None:
            self.guard.check(target)
        writer.set_valid_to(kind, row, end)
        detail = {"by": str(by.id)} if by else {}
        self.change(f"close_{kind}", target, valid_to=end, **detail)

    def close_world(self, target: bytes, at: Instant, by: Edge | None) -> None:
        """Tighten `valid_to` of a node and of everything that lives inside it.

        Raises:
            NotFoundError, InvalidInputError: as `close_validity`.
        """
        self.close_validity(target, at, by)
        below = [self.place(target).row]
        while below := sorted(self.writer.children_of(below)):
            for node in self.writer.nodes(below).values():
                self.close_validity(node.id, at, by)

    def move(self, ident: bytes, world: int) -> None:
        """Move a node, and its outgoing edges with it, from one world's sets to another's."""
        place = self.place(ident)
        moved = self.writer.set_parent(place.row, world)
        self.places[ident] = place._replace(world=world)
        self.moved[ident] = place.row
        self.children_lost[place.world].add(ident)
        self.children_lost[world].discard(ident)
        self.children_put[world].append(ident)
        self.edges_lost[place.world].update(moved)
        self.edges_lost[world].difference_update(moved)
        self.edges_put[world].extend(moved)


def update_set(
    writer: Writer,
    world: int,
    kind: int,
    put: list[bytes],
    drop: Iterable[bytes],
    laid: SetLayout | None = None,
) -> bytes:
    """Change a set in the transaction's view of its pages, and return the set's digest."""
    digest, changed = change(writer, world, kind, put, drop, laid)
    writer.put_pages(world, kind, changed)
    return digest


def seal(
    ledger: Ledger, actor: str, blind: bytes | None = None, hash_: bytes | None = None
) -> CommitRow:
    """Compute states, write the commit's row in the journal, and return that row.

    A replay gives the `blind` of the commit and, if something of that commit was erased, its
    `hash_`, which cannot be computed again.
    """
    writer = ledger.writer
    blind = writer.random_bytes(BLIND_BYTES) if blind is None else blind
    states = _restate(ledger, _build_and_lay_out(ledger))
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
            ledger.head.hash, writer.seq, writer.time, actor, root_state, digests, changes, blind
        ),
        nodes=ledger.node_row,
        edges=ledger.edge_row,
        notes=ledger.note_row,
        changes=changes,
        blind=blind,
    )
    writer.insert_commit(row)
    return row


def _build_and_lay_out(ledger: Ledger) -> SetsAhead:
    """Build the indexes that a load deferred; meanwhile analyse words and lay out large sets.

    SQLite builds without blocking Python, and neither analysis nor layout needs the store. One
    thread does both: first the words, which SQLite waits for, then the layout.
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


def _lay_out_large(ledger: Ledger) -> SetsAhead:
    """Lay out the large sets, as if every new child were a leaf."""
    ahead: SetsAhead = {}
    for world, idents in ledger.edges_put.items():
        if len(idents) > LAY_OUT_MIN:
            ahead[world, EDGES] = lay_out(idents)
    for world, idents in ledger.children_put.items():
        if len(idents) > LAY_OUT_MIN:
            ahead[world, CHILDREN] = lay_out([ident + ident for ident in idents])
    return ahead


def _restate(ledger: Ledger, ahead: SetsAhead) -> dict[bytes, bytes]:
    """Give new states to all touched worlds and their ancestors; return id → state of each."""
    worlds = _with_ancestors(ledger)
    if worlds:
        # Earlier commits may have left their pages to be written later.
        for (holder, kind), (put, drop) in merge(ledger.writer.unseen()).items():
            update_set(ledger.writer, holder, kind, put, drop)
    waiting = dict.fromkeys(worlds, 0)
    for world in worlds.values():
        if world.parent is not None:
            waiting[world.parent] += 1
    ready = [row for row, count in waiting.items() if not count]
    restated: dict[int, dict[bytes, bytes]] = {}
    update = _StateUpdate(ledger, ahead)
    while ready:
        world = worlds[ready.pop()]
        state = update.restate(world, restated.pop(world.row, {}))
        if world.parent is not None:
            if state is not None:
                restated.setdefault(world.parent, {})[world.id] = state
            waiting[world.parent] -= 1
            if not waiting[world.parent]:
                ready.append(world.parent)
    ledger.writer.keep_changes(update.sets)
    ledger.writer.set_states(update.changes)
    return update.states


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


class _StateUpdate:
    """The new states and set changes of one commit; they are written together at the end."""

    def __init__(self, ledger: Ledger, ahead: SetsAhead) -> None:
        self.ledger = ledger
        self.ahead = ahead
        self.states: dict[bytes, bytes] = {}
        self.changes: list[StateChange] = []
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
            fields = world.type, name, content, world.created_at
            state = node_address(*fields, children, edges, world.blind)
        if state == (world.state or world.id):
            return None
        self.states[world.id] = state
        self.changes.append(StateChange(world.row, world.state, state))
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
        self, row: int, kind: int, put: list[bytes], lost: Iterable[bytes], laid: SetLayout | None
    ) -> bytes:
        writer = self.ledger.writer
        self.sets.append(SetChange(writer.seq, row, kind, put, list(lost)))
        return update_set(writer, row, kind, put, lost, laid)

    def _members(self, put: Iterable[bytes], restated: dict[bytes, bytes]) -> list[bytes]:
        """Return the children to put as `id ‖ state`.

        A new child is a leaf unless it was restated; a child that moved here keeps its state.
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


def to_commit(
    row: CommitRow, before: CommitRow | Head, changes: Sequence[Change] | None = None
) -> Commit:
    """Return a journal row as the public value; `before` is the commit it follows.

    The `changes` are read from the row, unless the caller has just written it.
    """
    return Commit(
        seq=row.seq,
        time=from_micros(row.time),
        actor=row.actor,
        root_state=trusted_id(row.root_state),
        hash=trusted_id(row.hash),
        previous=trusted_id(before.hash),
        nodes=row.nodes - before.nodes,
        edges=row.edges - before.edges,
        changes=decode_changes(row.changes) if changes is None else tuple(changes),
    )
