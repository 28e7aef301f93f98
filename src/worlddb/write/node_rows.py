"""Nodes: from a draft to a row. Batches and single nodes take the same way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from worlddb.errors import ConflictError, InvalidInputError
from worlddb.model.address import ROOT_ID, Id, node_address, short_key, trusted_id
from worlddb.model.inputs import check_notes, check_type, encode_text, from_micros, to_micros
from worlddb.model.journal import node_record
from worlddb.model.records import Node, NodeDraft
from worlddb.store.rows import ROOT_ROW, NewNode, NewText
from worlddb.write.commit import Ledger

BATCH = 20_000
ROOT_PARENT = (ROOT_ROW, ROOT_ID)


class _Ready(NamedTuple):
    """A checked draft with its address."""

    ident: bytes
    draft: NodeDraft
    name: bytes
    content: bytes
    created_at: int
    valid_from: int
    valid_to: int | None
    parent: tuple[int, bytes]
    notes: tuple[tuple[str, ...], tuple[str, ...]]


NO_NOTES: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


def create_nodes(ledger: Ledger, drafts: Iterable[NodeDraft]) -> list[Id]:
    """Write drafts as nodes and return their ids, in order.

    A draft with the type, name, content and `created_at` of an existing node is that node: its
    aliases and sources are added, nothing else. Without `created_at` a draft is always a new node.

    Raises:
        InvalidInputError: a draft is wrong; nothing of its batch was written.
        NotFoundError: a parent does not exist.
        ConflictError: the same node already lives in another world.
    """
    ids: list[Id] = []
    if not isinstance(drafts, Iterable):
        raise InvalidInputError(f"give a list of NodeDraft objects, not {drafts!r:.100}")
    remaining = iter(drafts)
    while batch := list(islice(remaining, BATCH)):
        ids += _create_batch(ledger, batch)
    return ids


def _create_batch(ledger: Ledger, drafts: Sequence[NodeDraft]) -> list[Id]:
    ready = _check(ledger, drafts)
    if ledger.head.nodes > ROOT_ROW:
        ledger.place_all([item[0] for item in ready])
    _check_homes(ledger, ready)
    rows: list[NewNode] = []
    records, notes, ids = [], [], []
    places, children, seq = ledger.places, ledger.children_put, ledger.writer.seq
    for item in ready:
        if item[0] in places:
            if item[1].created_at is not None:
                notes.append((item, places[item[0]][0], False))
                ids.append(trusted_id(item[0]))
                continue
            item = _make_distinct(ledger, item)
        ident, draft, _, _, created_at, valid_from, valid_to, (world, world_id), noted = item
        ledger.node_row = row = ledger.node_row + 1
        places[ident] = (row, world, valid_from)
        children[world].append(ident)
        rows.append(
            NewNode(
                row,
                short_key(ident),
                ident,
                draft.type,
                draft.name,
                draft.content,
                created_at,
                world,
                valid_from,
                valid_to,
                seq,
            )
        )
        records.append(node_record(ident, world_id, valid_from, valid_to))
        if noted is not NO_NOTES:
            notes.append((item, row, True))
        ids.append(trusted_id(ident))
        ledger.last_node = item
    ledger.nodes.update(b"".join(records))
    ledger.writer.insert_nodes(rows)
    ledger.writer.insert_texts([NewText(new.row, new.name, new.content) for new in rows])
    for item, row, fresh in notes:
        ledger.add_notes(item.ident, row, "alias", item.notes[0], fresh=fresh)
        ledger.add_notes(item.ident, row, "source", item.notes[1], fresh=fresh)
    return ids


def new_node(ledger: Ledger) -> Node:
    """Return the node that was just created, without asking the store for it."""
    item: _Ready = ledger.last_node
    ends = item.valid_to
    ident = trusted_id(item.ident)
    return Node(
        id=ident,
        state=ident,
        type=item.draft.type,
        name=item.draft.name,
        content=item.draft.content,
        created_at=from_micros(item.created_at),
        parent=trusted_id(item.parent[1]),
        valid_from=from_micros(item.valid_from),
        valid_to=None if ends is None else from_micros(ends),
        known_from=ledger.now,
        aliases=item.notes[0],
        provenance=item.notes[1],
    )


def _check(ledger: Ledger, drafts: Sequence[NodeDraft]) -> list[_Ready]:
    """Check every draft before anything is written; return them with their addresses."""
    limits, now = ledger.limits, ledger.writer.time
    name_max, content_max = limits.name_bytes_max, limits.content_bytes_max
    types: set[str] = set()
    ready = []
    for draft in drafts:
        if type(draft) is not NodeDraft:
            raise InvalidInputError(f"give NodeDraft objects, not {draft!r:.100}")
        type_ = draft.type
        if type(type_) is not str or type_ not in types:
            check_type(type_, limits)
            types.add(type_)
        name = encode_text(draft.name, "name", name_max)
        content = encode_text(draft.content, "content", content_max)
        created_at, valid_from, valid_to = now, now, None
        if draft.created_at is not None:
            created_at = valid_from = to_micros(draft.created_at, "created_at")
        if draft.valid_from is not None or draft.valid_to is not None:
            valid_from, valid_to = _validity(draft, created_at)
        notes = NO_NOTES
        if draft.aliases != () or draft.source is not None:
            notes = (
                check_notes(draft.aliases, "aliases", limits),
                check_notes(draft.source, "source", limits),
            )
        parent = ROOT_PARENT
        if draft.parent is not None:
            parent = ledger.place(draft.parent)[0], ledger.resolve(draft.parent)
        ready.append(
            _Ready(
                node_address(type_, name, content, created_at),
                draft,
                name,
                content,
                created_at,
                valid_from,
                valid_to,
                parent,
                notes,
            )
        )
    return ready


def _validity(draft: NodeDraft, created_at: int) -> tuple[int, int | None]:
    """Return when a node begins (by default when it was created) and when it ends."""
    valid_from = created_at
    if draft.valid_from is not None:
        valid_from = to_micros(draft.valid_from, "valid_from")
    if draft.valid_to is None:
        return valid_from, None
    valid_to = to_micros(draft.valid_to, "valid_to")
    if valid_to < valid_from:
        raise InvalidInputError("valid_to is before valid_from; swap them or leave one out")
    return valid_from, valid_to


def _make_distinct(ledger: Ledger, item: _Ready) -> _Ready:
    """Return the draft with the latest free `created_at` before now.

    Two calls without `created_at` mean two nodes; the same type, name, content and microsecond
    would make them one.
    """
    ident, created_at = item.ident, item.created_at
    while ident in ledger.places or ledger.writer.node_row(ident) is not None:
        created_at -= 1
        ident = node_address(item.draft.type, item.name, item.content, created_at)
    valid_from = created_at if item.draft.valid_from is None else item.valid_from
    return item._replace(ident=ident, created_at=created_at, valid_from=valid_from)


def _check_homes(ledger: Ledger, ready: Sequence[_Ready]) -> None:
    """Refuse drafts of nodes that exist, before anything of a batch is written.

    Raises:
        ConflictError: a draft asks for another home than the node has, or the node was erased.
    """
    homes: dict[bytes, int] = {}
    for item in ready:
        if item.draft.created_at is None:
            continue
        place = ledger.places.get(item.ident)
        if place is not None:
            refuse_erased(ledger, item.ident, place[0])
        home = place[1] if place is not None else homes.setdefault(item.ident, item.parent[0])
        if item.draft.parent is not None and item.parent[0] != home:
            raise ConflictError(
                f"node {Id(item.ident).short} already lives in another world; make it a member of "
                "this one too with write_edge('contains', world, node)"
            )


def refuse_erased(ledger: Ledger, ident: bytes, row: int) -> None:
    """Refuse to say anything of a node that was erased: no second erasure would find it.

    Raises:
        ConflictError: it was erased.
    """
    if ledger.writer.is_erased(row):
        raise ConflictError(
            f"node {Id(ident).short} was erased; to say it anew, make a node with another "
            "created_at"
        )
