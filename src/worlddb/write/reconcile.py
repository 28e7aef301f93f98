"""Reconcile: no edge is stored except by its type's handler, inside the transaction.

    draft ──check──▶ row ──▶ handler.on_insert(ctx, edge) ──▶ further writes, through ctx alone

R1  Every new edge row is followed by its handler. Only the replay of a journal also calls
    `insert_edges`; it repeats the effects that handlers once had.
R2  Nothing is removed: deleting sets `gone`, closing sets `valid_to`, and both leave history.
R3  Equal transactions on equal stores have equal effects: handlers have no clock but `ctx.now`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, count, islice
from typing import Any, overload

from worlddb.errors import InvalidInputError, NotFoundError, RejectedError
from worlddb.model.address import (
    ID_BYTES,
    NO_METADATA,
    ROOT_ID,
    Id,
    edge_address,
    edge_address_of,
    edge_addresses,
    edge_head,
    edge_record,
    edge_records,
    edge_tail,
    short_key,
    short_keys,
    trusted_id,
)
from worlddb.model.inputs import encode_metadata, from_micros, premises_of, to_micros
from worlddb.model.records import Edge, EdgeDraft
from worlddb.ontology.edge_types import EdgeHandler
from worlddb.ontology.registry import Registry
from worlddb.store.rows import ROOT_ROW, EdgeRow, NewEdge
from worlddb.view.visibility import whole_id
from worlddb.write.commit import Ledger
from worlddb.write.handler_context import HandlerContext, with_origin
from worlddb.write.node_rows import make_row, refuse_held

EDGES_AT_ONCE = 50_000
"""Drafts held at once: fewer need more statements, more need more memory."""
PLAIN_MIN = 100
"""Drafts that are written column by column; for fewer the loop costs as little."""
ENDS_EDGE = ("close_edge", "delete_edge")
"""Changes of the journal after which an edge is another value."""
CHAIN_MAX = 100
"""How deep handlers may call each other: no ontology needs more, and Python's stack is 1,000."""


class Reconciler:
    """Dispatches edges to handlers for one transaction."""

    def __init__(self, ledger: Ledger, registry: Registry) -> None:
        self.ledger = ledger
        self.registry = registry
        self._chain = 0
        self._newest: NewEdge | None = None
        self._recorded_types: set[str] = set()

    # -- writing -----------------------------------------------------------------------------------

    def write(self, type_: str, draft: EdgeDraft) -> Edge:
        """Write one edge through its handler; an equal live edge is returned as it is.

        Raises:
            InvalidInputError: unknown type, or a field is wrong.
            NotFoundError: an end does not exist.
            RejectedError: a handler refused.
        """
        handler = self._find(type_, self.ledger.place(draft.source).world)
        said = draft.metadata
        if self.ledger.guard is not None or (isinstance(said, Mapping) and "premises" in said):
            draft = with_origin(self.ledger, draft)
        before = self.ledger.edge_row
        row = self._insert(type_, [draft])
        if self.ledger.edge_row == before:
            return self._edge(row)
        edge = self._new_edge(draft)
        self._record_type(handler)
        changes = len(self.ledger.changes)
        self._run(handler, "on_insert", edge)
        # The handler may have closed or deleted this very edge; return it as it is now.
        since = self.ledger.changes[changes:]
        ended = (change.id for change in since if change.kind in ENDS_EDGE)
        return self._edge(row) if edge.id in ended else edge

    def _new_edge(self, draft: EdgeDraft) -> Edge:
        """Return the edge that was just written, without reading it from the store."""
        new = self._newest
        assert new is not None
        return Edge(
            id=trusted_id(new.id),
            type=new.type,
            source=self.ledger.resolve(draft.source),
            target=self.ledger.resolve(draft.target),
            valid_from=from_micros(new.valid_from),
            valid_to=None if new.valid_to is None else from_micros(new.valid_to),
            known_from=self.ledger.now,
            known_to=None,
            metadata={} if new.metadata == "{}" else json.loads(new.metadata),
        )

    def write_many(self, type_: str, drafts: Iterable[EdgeDraft]) -> int:
        """Write edges of one type in batches; return how many were new.

        Raises:
            InvalidInputError, NotFoundError, RejectedError: as `write`.
        """
        if not isinstance(drafts, Iterable):
            raise InvalidInputError(f"give a list of EdgeDraft objects, not {drafts!r:.100}")
        first = self.ledger.edge_row
        remaining = iter(drafts)
        while batch := list(islice(remaining, EDGES_AT_ONCE)):
            self._look_up_ends(batch)
            for handler, group in self._by_handler(type_, batch):
                before = self.ledger.edge_row
                self._insert(type_, group)
                if self.ledger.edge_row > before:
                    self._record_type(handler)
                added = NewEdges(self.ledger, before + 1, self.ledger.edge_row)
                self._run_many(handler, added)
        return self.ledger.edge_row - first

    def _look_up_ends(self, batch: Sequence[EdgeDraft]) -> None:
        """Look up the ends of a batch at once, unless this transaction created every node."""
        for draft in batch:
            if type(draft) is not EdgeDraft:
                raise InvalidInputError(f"give EdgeDraft objects, not {draft!r:.100}")
        if self.ledger.head.nodes == ROOT_ROW:
            return
        places = self.ledger.places
        ends = [end for draft in batch for end in (draft.source, draft.target)]
        whole = {end for end in ends if isinstance(end, bytes) and len(end) == ID_BYTES}
        self.ledger.place_all([end for end in whole if end not in places])

    def _by_handler(
        self, type_: str, batch: Sequence[EdgeDraft]
    ) -> Iterator[tuple[EdgeHandler, Sequence[EdgeDraft]]]:
        """Split a batch by the handler that applies where each source lives."""
        if self.registry.is_flat:
            yield self._find(type_, ROOT_ROW), batch
            return
        handlers: dict[int, EdgeHandler] = {}
        groups: dict[int, list[EdgeDraft]] = {}
        for draft in batch:
            world = self.ledger.place(draft.source).world
            if world not in handlers:
                handlers[world] = self._find(type_, world)
            groups.setdefault(world, []).append(draft)
        for world, group in groups.items():
            yield handlers[world], group

    def _insert(self, type_: str, drafts: Sequence[EdgeDraft]) -> int:
        """Check drafts and write their rows; return the row of the last one, new or not."""
        ledger = self.ledger
        places, seen, edges_put = ledger.places, ledger.edges_seen, ledger.edges_put
        # An edge can exist already only if the store has edges and its source is not new.
        old_nodes = ledger.head.nodes if ledger.head.edges else 0
        if len(drafts) >= PLAIN_MIN:
            drafts = self._insert_plain(type_, drafts, old_nodes)
        head, seq = edge_head(type_), ledger.writer.seq
        tails: dict[int, bytes] = {}
        rows: list[NewEdge] = []
        row = 0
        for draft in drafts:
            source_id, target_id = draft.source, draft.target
            if type(source_id) is not Id:
                source_id = ledger.resolve(source_id)
            if type(target_id) is not Id:
                target_id = ledger.resolve(target_id)
            source, world, begins, blind = places.get(source_id) or ledger.place(source_id)
            target, _, _, target_blind = places.get(target_id) or ledger.place(target_id)
            if draft.valid_from is None and draft.valid_to is None and draft.metadata is None:
                valid_from, valid_to, metadata = begins, None, "{}"
                tail = tails.get(valid_from)
                if tail is None:
                    tail = tails[valid_from] = edge_tail(valid_from, NO_METADATA)
                ident = edge_address_of(head, source_id, target_id, tail)
            else:
                valid_from, valid_to, metadata = self._details(draft, begins)
                fields = (type_, source_id, target_id, valid_from, metadata.encode())
                ident = edge_address(*fields, blind=blind + target_blind)
            key = short_key(ident)
            generation = 0
            if key in seen or source <= old_nodes:
                self._flush(rows)
                fields = (type_, source_id, target_id, valid_from, metadata.encode())
                blinds = blind + target_blind
                ident, generation, known = self._next_generation(fields, blinds, ident)
                if known is not None:
                    row = known
                    continue
                key = short_key(ident)
            ledger.edge_row = seen[key] = row = ledger.edge_row + 1
            edges_put[world].append(ident)
            rows.append(
                make_row(
                    NewEdge,
                    (
                        row,
                        key,
                        ident,
                        type_,
                        source,
                        target,
                        world,
                        valid_from,
                        valid_to,
                        metadata,
                        generation,
                        seq,
                    ),
                )
            )
        self._flush(rows)
        return row

    def _insert_plain(
        self, type_: str, drafts: Sequence[EdgeDraft], old_nodes: int
    ) -> Sequence[EdgeDraft]:
        """Write many edges without details of their own; return the drafts that are left.

        The same as the loop of `_insert`, but column by column, which takes less time. Left are
        edges that this transaction may have written before, or all if any draft is not so plain.
        """
        ledger, seq = self.ledger, self.ledger.writer.seq
        if any(map(_has_details, drafts)):
            return drafts
        ends: list[Any] = [(draft.source, draft.target) for draft in drafts]
        try:
            places = [(ledger.places[source], ledger.places[target]) for source, target in ends]
        except (KeyError, TypeError):
            return drafts  # A prefix, a node that is not looked up yet, or no id.
        begins = [source.valid_from for source, _ in places]
        tails = {begin: edge_tail(begin, NO_METADATA) for begin in set(begins)}
        idents = edge_addresses(edge_head(type_), ends, map(tails.__getitem__, begins))
        keys, left = short_keys(idents), list[EdgeDraft]()
        if known := ledger.edges_seen.keys() & keys:
            are_new = [key not in known for key in keys]
            left = [draft for draft, is_new in zip(drafts, are_new, strict=True) if not is_new]
            idents, places = list(compress(idents, are_new)), list(compress(places, are_new))
        found = dict(zip(idents, places, strict=True))  # An edge that is repeated is one edge.
        keys = short_keys(found)
        rows = [
            make_row(
                NewEdge, (row, key, ident, type_, source, target, world, begin, None, "{}", 0, seq)
            )
            for row, key, (ident, ((source, world, begin, _), (target, _, _, _))) in zip(
                count(ledger.edge_row + 1), keys, found.items(), strict=False
            )
        ]
        if not rows or len(set(keys)) < len(keys) or min(new.source for new in rows) <= old_nodes:
            return drafts  # An edge of an older node may be in the store.
        ledger.edges_seen.update(zip(keys, count(ledger.edge_row + 1), strict=False))
        ledger.edge_row += len(rows)
        for new in rows:
            ledger.edges_put[new.world].append(new.id)
        ledger.edges.update(edge_records(found))
        ledger.writer.insert_edges(rows)
        self._newest = rows[-1]
        return left

    def _details(self, draft: EdgeDraft, begins: int) -> tuple[int, int | None, str]:
        """Return the checked validity and metadata of a draft that has its own."""
        valid_from, valid_to = begins, None
        if draft.valid_from is not None:
            valid_from = to_micros(draft.valid_from, "valid_from")
        if draft.valid_to is not None:
            valid_to = to_micros(draft.valid_to, "valid_to")
            if valid_to < valid_from:
                raise InvalidInputError("valid_to is before valid_from; swap them")
        return valid_from, valid_to, encode_metadata(draft.metadata, self.ledger.limits)

    def _flush(self, rows: list[NewEdge]) -> None:
        """Write the collected rows and clear the list."""
        if rows:
            self.ledger.edges.update(b"".join([edge_record(new.id, new.valid_to) for new in rows]))
            self.ledger.writer.insert_edges(rows)
            for new in [new for new in rows if new.metadata != "{}"]:
                keep_premises(self.ledger, new.row, new.metadata)
            self._newest = rows[-1]
            rows.clear()

    def _next_generation(
        self, fields: tuple[str, bytes, bytes, int, bytes], blind: bytes, ident: bytes
    ) -> tuple[bytes, int, int | None]:
        """Return the address, the generation and, if one is live, the row of an equal edge."""
        generation = 0
        writer = self.ledger.writer
        while True:
            # This transaction's edges are found without an index, which a load may have deferred.
            row = self.ledger.edges_seen.get(short_key(ident))
            found = writer.edges([row])[0].edge if row else None
            if row is None or found is None or found.id != ident:
                row = writer.edge_row(ident)
                if row is None:
                    return ident, generation, None
                found = writer.edges([row])[0].edge
            if found.known_to is None:
                return ident, generation, row
            generation += 1
            ident = edge_address(*fields, generation, blind)

    # -- deleting ----------------------------------------------------------------------------------

    def delete(self, given: bytes | str) -> Edge:
        """Close an edge on the known axis and run its handler.

        Raises:
            NotFoundError: no such edge, or it was deleted already.
            RejectedError: its handler refused, or it is a membership in a scope under legal hold.
        """
        found = self.find_edge(given)
        if found.edge.known_to is not None:
            raise NotFoundError(f"edge {found.edge.id.short} was deleted already")
        handler = self._find(found.edge.type, found.world)
        if self.ledger.guard is not None and found.row <= self.ledger.head.edges:
            self.ledger.guard.check(found.edge.source)
        if found.edge.type == "contains" and found.row <= self.ledger.head.edges:
            refuse_held(self.ledger.writer, [found.source])
        self.ledger.writer.delete_edge(found.row)
        self.ledger.edges_lost[found.world].add(found.edge.id)
        self.ledger.change("delete_edge", found.edge.id)
        edge = self._edge(found.row)
        self._run(handler, "on_delete", edge)
        return edge

    def row_of(self, edge: Edge) -> int:
        """Return the row of an edge; of the one that was written last, without reading it."""
        new = self._newest
        return new.row if new is not None and new.id == edge.id else self.find_edge(edge.id).row

    def find_edge(self, given: bytes | str) -> EdgeRow:
        """Return an edge by id or prefix, deleted or not.

        Raises:
            NotFoundError: no such edge.
            InvalidInputError: not an id, or an ambiguous prefix.
        """
        writer = self.ledger.writer
        ident = whole_id(writer, given, "edges")
        row = writer.edge_row(ident)
        if row is None:
            raise NotFoundError(f"no edge has the id {ident}")
        return writer.edges([row])[0]

    def _find(self, type_: str, world: int) -> EdgeHandler:
        """Return the handler of an edge type in a world.

        Raises:
            InvalidInputError: no such type there.
        """
        if not isinstance(type_, str):
            raise InvalidInputError(f"type: give the name of an edge type, not {type_!r:.100}")
        known = self.registry.everywhere.get(type_)
        return self.registry.find(type_, self._worlds(world)) if known is None else known

    def _record_type(self, handler: EdgeHandler) -> None:
        """Record a type that a package offers, with its first edge, like a registered one.

        So a process without that package can say what it lacks.
        """
        wanted = self.registry.unrecorded(handler) if self.registry.offers_types else None
        if wanted is None or wanted.type in self._recorded_types:
            return
        self._recorded_types.add(wanted.type)
        self.ledger.writer.put_registration(
            ROOT_ROW, wanted.type, wanted.version, wanted.functional
        )
        self.ledger.change(
            "register",
            wanted.world,
            type=wanted.type,
            version=wanted.version,
            functional=wanted.functional,
        )

    # -- handlers ----------------------------------------------------------------------------------

    def _run(self, handler: EdgeHandler, hook: str, edge: Edge) -> None:
        """Run a handler; if it fails, the transaction cannot be committed."""
        self._chain += 1
        try:
            if self._chain > CHAIN_MAX:
                raise RejectedError(
                    f"handlers called each other more than {CHAIN_MAX} deep", edge_type=edge.type
                )
            getattr(handler, hook)(HandlerContext(self.ledger, self, edge), edge)
        except BaseException as error:
            self.ledger.failure = error
            raise
        finally:
            self._chain -= 1

    def _run_many(self, handler: EdgeHandler, edges: NewEdges) -> None:
        # Read from the class itself: a subclass may have more to do.
        if not len(edges) or vars(type(handler)).get("is_inert"):
            return
        on_insert_many = getattr(handler, "on_insert_many", None)
        if on_insert_many is None:
            for edge in edges:
                self._run(handler, "on_insert", edge)
            return
        try:
            on_insert_many(HandlerContext(self.ledger, self, None), edges)
        except BaseException as error:
            self.ledger.failure = error
            raise

    def _worlds(self, world: int) -> Iterator[bytes]:
        """Yield the ids of a world and its ancestors, inner first."""
        if self.registry.is_flat:
            yield ROOT_ID
            return
        row: int | None = world
        while row is not None:
            found = self.ledger.writer.world(row)
            yield found.id
            row = found.parent

    def _edge(self, row: int) -> Edge:
        return self.ledger.writer.edges([row])[0].edge


def _has_details(draft: EdgeDraft) -> bool:
    """Return whether a draft has a time or metadata of its own."""
    return draft.valid_from is not None or draft.valid_to is not None or draft.metadata is not None


def keep_premises(ledger: Ledger, row: int, metadata: str) -> None:
    """Record the premises of an inferred edge, so that it ends with them.

    Premises are the ids of edges in hex; any other value is the caller's own data.
    """
    if '"inferred":true' not in metadata:
        return
    found = [ledger.writer.edge_row(ident) for ident in premises_of(metadata)]
    # Only older edges count as premises; a batch has written all its rows by now.
    earlier = [(premise, row) for premise in found if premise is not None and premise < row]
    ledger.writer.insert_premises(earlier)


class NewEdges(Sequence[Edge]):
    """The edges a batch added, read only if the handler looks at them."""

    def __init__(self, ledger: Ledger, first: int, last: int) -> None:
        self._ledger = ledger
        self._first = first
        self._last = last
        self._loaded: list[Edge] | None = None

    def __len__(self) -> int:
        return self._last - self._first + 1

    @property
    def _edges(self) -> list[Edge]:
        if self._loaded is None:
            found = self._ledger.writer.edges_between(self._first, self._last)
            self._loaded = [item.edge for item in found]
        return self._loaded

    @overload
    def __getitem__(self, index: int) -> Edge: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Edge]: ...
    def __getitem__(self, index: int | slice) -> Edge | Sequence[Edge]:
        return self._edges[index]
