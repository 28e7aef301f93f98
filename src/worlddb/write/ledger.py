"""Ledger: what the open transaction has done so far.

It numbers rows, remembers where nodes are, feeds the commit's digests as records are written, and
notes which sets of which worlds must be hashed again at the end.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Any

from blake3 import blake3

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.index.ids import whole_id
from worlddb.model.address import ROOT_ID
from worlddb.model.id import Id
from worlddb.model.instant import from_micros
from worlddb.model.journal import note_record
from worlddb.model.limits import Limits
from worlddb.model.values import Change
from worlddb.store.protocol import ROOT_ROW, Writer


class Ledger:
    """The running account of one transaction."""

    def __init__(self, writer: Writer, limits: Limits) -> None:
        head = writer.head()
        self._writer: Writer | None = writer
        self.broken: BaseException | None = None
        self.limits = limits
        self.head = head
        self.node_row, self.edge_row, self.note_row = head.nodes, head.edges, head.notes
        self.nodes, self.edges, self.notes = blake3(), blake3(), blake3()
        self.changes: list[Change] = []
        self.places: dict[bytes, tuple[int, int, int]] = {ROOT_ID: (ROOT_ROW, ROOT_ROW, 0)}
        self.edges_seen: dict[int, int] = {}
        self.moved: dict[bytes, int] = {}
        self.last_node: Any = None
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
        """End the account; whoever still holds the transaction or a context can do no harm."""
        self._writer = None

    @property
    def now(self) -> datetime:
        """The commit's time."""
        return from_micros(self.writer.time)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written, so that there is nothing to commit."""
        written = (self.node_row, self.edge_row, self.note_row)
        return not self.changes and written == (self.head.nodes, self.head.edges, self.head.notes)

    def resolve(self, given: bytes | str) -> Id:
        """Return the id of a node of this transaction's view from an id or a prefix.

        Raises:
            InvalidInputError: not an id, too short, or the start of several.
            NotFoundError: no node has it.
        """
        return given if type(given) is Id else whole_id(self.writer, given, "nodes")

    def place(self, given: bytes | str) -> tuple[int, int, int]:
        """Return (row, world, valid_from) of a node.

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
        self.changes.append(Change(kind=kind, id=Id(ident), detail=detail))

    def add_notes(
        self, ident: bytes, row: int, kind: str, texts: tuple[str, ...], *, fresh: bool
    ) -> None:
        """Attach aliases or sources to a node; those it has already are left out."""
        rows = []
        for text in texts:
            if fresh or not self.writer.has_note(row, kind, text):
                self.note_row += 1
                rows.append((self.note_row, row, kind, text, self.writer.seq))
                self.notes.update(note_record(ident, kind, text))
        if rows:
            self.writer.insert_notes(rows)

    def move(self, ident: bytes, world: int) -> None:
        """Move a node, and its outgoing edges with it, from one world's sets to another's."""
        row, before, valid_from = self.place(ident)
        moved = self.writer.set_parent(row, world)
        self.places[ident] = (row, world, valid_from)
        self.moved[ident] = row
        self.children_lost[before].add(ident)
        self.children_lost[world].discard(ident)
        self.children_put[world].append(ident)
        self.edges_lost[before].update(moved)
        self.edges_lost[world].difference_update(moved)
        self.edges_put[world].extend(moved)
