"""Node rows: how a draft becomes a node, and how a node is erased.

One node and a batch are written the same way: check every draft, look for existing nodes, insert
rows.

An erasure removes the texts from the file; addresses, validity and edges stay. The tree still
verifies, because an id stands for the fields that it was computed from. Nodes, edges and commits
that can no longer be hashed are listed in the journal, and the hash of the erasing commit covers
that list.

While a scope is under *legal hold*, nothing in it is erased or taken out, whoever asks. The hold is
part of the scope's retention policy, which is metadata of its node. It covers everything that lives
in the scope, its members at any depth, and all other nodes that an erasure would remove with them.
It outlives a purge, and holds for what a later scope of the name has, until it is lifted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from worlddb.errors import ConflictError, CorruptionError, InvalidInputError, RejectedError
from worlddb.model.address import (
    BLIND_BYTES,
    ERASED,
    ROOT_ID,
    ROOT_NAME,
    ROOT_TYPE,
    Id,
    content_key,
    node_address,
    node_record,
    short_key,
    trusted_id,
)
from worlddb.model.inputs import SCOPE, check_notes, check_type, encode_text, from_micros, to_micros
from worlddb.model.records import Node, NodeDraft
from worlddb.model.text_safety import NOTE, USER, check_origin
from worlddb.store.interface import Reader, Writer
from worlddb.store.rows import ROOT_ROW, NewNode, NewText, NodePlace
from worlddb.write.commit import DatedText, Ledger

RETENTION = "retention"  # metadata key of a scope's policy
HOLD = "hold"
HELD = (
    "{} is under legal hold, so nothing of it is erased or taken out; an administrator lifts it by "
    "set_retention(hold='off')"
)


def is_held(scope: Node) -> bool:
    """Return whether a scope is under legal hold, also if it has ended."""
    policy = scope.metadata.get(RETENTION)
    return isinstance(policy, Mapping) and policy.get(HOLD) is True


def held_scopes(reader: Reader, rows: Iterable[int]) -> list[str]:
    """Return the names of the scopes under hold that some nodes are, or live in."""
    found: set[int] = set()
    frontier = set(rows)
    while frontier:
        found |= frontier
        parents = reader.parents(frontier).values()
        above = {parent for parent in parents if parent is not None}
        above |= {item.source for item in reader.edges_at(sorted(frontier), "in", ("contains",))}
        frontier = above - found
    names = {body.name for body in reader.bodies(sorted(found)) if body.type == SCOPE}
    scopes = reader.rows_named(sorted(names)) if names else []
    held = (node for _, node in sorted(reader.nodes(scopes).items()) if node.type == SCOPE)
    return list(dict.fromkeys(node.name for node in held if is_held(node)))


class HeldError(RejectedError):
    """A node is in a scope under legal hold; `name` is that of the scope."""

    def __init__(self, name: str) -> None:
        super().__init__(HELD.format(name))
        self.name = name


def refuse_held(reader: Reader, rows: Iterable[int]) -> None:
    """Refuse to erase nodes of a scope under hold, or to take them out of it.

    Raises:
        HeldError: one of them is in such a scope.
    """
    for name in held_scopes(reader, rows):
        raise HeldError(name)


NODES_AT_ONCE = 20_000
"""Drafts held at once: fewer need more statements, more need more memory."""
TWINS_MAX = 100
"""Nodes with one text, world and time that are read: only the newest few can be live."""
make_row = tuple.__new__
"""Makes a named tuple without the Python call of its constructor: a load makes millions."""
KEY = "Key"
NAME_ONLY_TYPES = ("Entity", "Date")
"""Types of nodes that a text creates by naming them; such a node is erased with its last text."""
NAMED_TYPES = (SCOPE, ROOT_TYPE)  # types of nodes whose ids follow from their names
RESTORES = "restores"
"""Metadata key of a `supersedes` edge whose source restores its target (`write/revival.py`)."""
NO_MENTION = ("contains", "same_as")
"""Edge types that place or identify a node and say nothing else about it."""


class _ReadyNode(NamedTuple):
    """A checked draft with its address; `key` is its key in the content index."""

    id: bytes
    draft: NodeDraft
    created_at: int
    valid_from: int
    valid_to: int | None
    world: int
    world_id: bytes
    aliases: tuple[str, ...]
    sources: tuple[str, ...]
    blind: bytes
    key: int
    origins: tuple[str, ...]

    @property
    def dated(self) -> DatedText:
        """The key of a draft with a time of creation within a transaction."""
        return self.key, self.created_at, self.draft.name


def create_node(ledger: Ledger, draft: NodeDraft) -> Node:
    """Write one draft as a node and return the node; see `create_nodes`."""
    before = ledger.node_row
    ready = _create_batch(ledger, [draft], reuse=True)[0]
    if ledger.node_row == before:
        row = ledger.places[ready.id].row
        return ledger.writer.nodes([row])[row]
    ident = trusted_id(ready.id)
    return Node(
        id=ident,
        state=ident,
        type=draft.type,
        name=draft.name,
        content=draft.content,
        created_at=from_micros(ready.created_at),
        parent=trusted_id(ready.world_id),
        valid_from=from_micros(ready.valid_from),
        valid_to=None if ready.valid_to is None else from_micros(ready.valid_to),
        known_from=ledger.now,
        aliases=ready.aliases,
        provenance=ready.sources,
        origins=ready.origins,
    )


def create_nodes(ledger: Ledger, drafts: Iterable[NodeDraft], *, reuse: bool = True) -> list[Id]:
    """Write drafts as nodes and return their ids, in order.

    A draft with a `created_at`, and with the type, name and content of a live node of the same
    world and time, is that node: its aliases and sources are added, nothing else. Without
    `created_at` a draft is always a new node. With `reuse` off, so is every draft except a scope;
    the caller has searched for equal nodes.

    Raises:
        InvalidInputError: a draft is wrong; nothing of its batch was written.
        NotFoundError: a parent does not exist.
        ConflictError: the same scope already lives in another world, or was erased.
    """
    ids: list[Id] = []
    if not isinstance(drafts, Iterable):
        raise InvalidInputError(f"give a list of NodeDraft objects, not {drafts!r:.100}")
    remaining = iter(drafts)
    while batch := list(islice(remaining, NODES_AT_ONCE)):
        ids += [trusted_id(ready.id) for ready in _create_batch(ledger, batch, reuse=reuse)]
    return ids


def replay_nodes(ledger: Ledger, drafts: Sequence[NodeDraft], blinds: Sequence[bytes]) -> None:
    """Write the drafts of an export as nodes with their original blinds.

    Raises:
        CorruptionError: one of the nodes is in the store already.
    """
    checked = _check(ledger, drafts, blinds)
    ledger.place_all([ready.id for ready in checked])
    _insert(ledger, checked)


def _create_batch(ledger: Ledger, drafts: Sequence[NodeDraft], *, reuse: bool) -> list[_ReadyNode]:
    checked = _check(ledger, drafts)
    if ledger.head.nodes > ROOT_ROW:
        ledger.place_all([ready.id for ready in checked if not ready.blind])
    _check_worlds(ledger, checked)
    written: list[_ReadyNode] = []
    new: list[_ReadyNode] = []
    known: list[_ReadyNode] = []
    fresh: dict[DatedText, _ReadyNode] = {}
    for ready in checked:
        is_dated = ready.draft.created_at is not None and (reuse or not ready.blind)
        there = _same_node(ledger, ready, fresh) if is_dated else None
        if there is not None:
            ready = ready._replace(id=there)
            known.append(ready)
        else:
            new.append(ready)
            if is_dated:
                fresh[ready.dated] = ready
        written.append(ready)
    _insert(ledger, new)
    for ready in known:
        if ledger.guard is None or ledger.guard.allows(ready.id):
            # The origin of a node is fixed when it is created.
            _add_notes(ledger, ready._replace(origins=()), fresh=False)
    return written


def _same_node(
    ledger: Ledger, ready: _ReadyNode, fresh: Mapping[DatedText, _ReadyNode]
) -> bytes | None:
    """Return the id of the existing node that equals a draft with a time of creation, if any.

    `fresh` are the nodes of the same batch, which are not inserted yet.
    """
    draft, key = ready.draft, ready.dated
    twin = fresh.get(key)
    if not ready.blind:
        return ready.id if ready.id in ledger.places or twin is not None else None
    if twin is not None and (twin.draft.type, twin.draft.content) == (draft.type, draft.content):
        return twin.id
    row = ledger.dated.get(key)
    found = [] if row is None else list(ledger.writer.bodies([row]))
    if row is None and ledger.head.nodes > ROOT_ROW:
        # A node that was born in the root world may live in the draft's world by now.
        moved = content_key(draft.type, draft.name, draft.content, ROOT_ROW)
        found = ledger.writer.twins((ready.key, moved), ready.created_at, TWINS_MAX)
    now = ledger.writer.time
    for body in found:
        said = (body.type, body.name, body.content) == (draft.type, draft.name, draft.content)
        placed = draft.parent is None or body.parent == ready.world
        ended = body.valid_to is not None and body.valid_to <= now
        if said and placed and (not ended or body.valid_to == ready.valid_to):
            ledger.place(trusted_id(body.id))
            return body.id
    return None


def _insert(ledger: Ledger, checked: Sequence[_ReadyNode]) -> None:
    """Insert new nodes with their texts, aliases and sources."""
    rows: list[NewNode] = []
    texts, records = [], []
    places, children, seq = ledger.places, ledger.children_put, ledger.writer.seq
    for ready in checked:
        (ident, draft, created_at, valid_from, valid_to, world, world_id, _, _, blind,
         key, _) = ready  # fmt: skip
        name, content = draft.name, draft.content
        if ident in places:
            raise CorruptionError(f"node {Id(ident).short} is there twice: its blind is not random")
        ledger.node_row = row = ledger.node_row + 1
        places[ident] = make_row(NodePlace, (row, world, valid_from, blind))
        children[world].append(ident)
        if draft.created_at is not None:
            ledger.dated[key, created_at, name] = row
        fields = (row, short_key(ident), ident, draft.type, name, content, created_at, world)
        rows.append(make_row(NewNode, (*fields, valid_from, valid_to, seq, blind, key)))
        texts.append(make_row(NewText, (row, name, content)))
        records.append(node_record(ident, world_id, valid_from, valid_to))
    ledger.nodes.update(b"".join(records))
    ledger.writer.insert_nodes(rows)
    ledger.writer.insert_texts(texts)
    for ready in checked:
        if ready.aliases or ready.sources or ready.origins:
            _add_notes(ledger, ready, fresh=True)


def _add_notes(ledger: Ledger, ready: _ReadyNode, *, fresh: bool) -> None:
    row = ledger.places[ready.id].row
    ledger.add_notes(ready.id, row, "alias", ready.aliases, fresh=fresh)
    ledger.add_notes(ready.id, row, "source", ready.sources, fresh=fresh)
    ledger.add_notes(ready.id, row, NOTE, ready.origins, fresh=fresh)


def _check(
    ledger: Ledger, drafts: Sequence[NodeDraft], blinds: Sequence[bytes] | None = None
) -> list[_ReadyNode]:
    """Check every draft before anything is written; return them with their addresses."""
    limits, now = ledger.limits, ledger.writer.time
    name_max, content_max = limits.name_bytes_max, limits.content_bytes_max
    types: set[str] = set()
    checked = []
    if blinds is None:
        blinds = _blinds(ledger, drafts)
    for draft, blind in zip(drafts, blinds, strict=True):
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
        aliases: tuple[str, ...] = ()
        sources: tuple[str, ...] = ()
        if draft.aliases != () or draft.source is not None:
            aliases = check_notes(draft.aliases, "aliases", limits)
            sources = check_notes(draft.source, "source", limits)
        world, world_id = ROOT_ROW, ROOT_ID
        if draft.parent is not None:
            world, world_id = ledger.place(draft.parent).row, ledger.resolve(draft.parent)
        origins = () if ledger.guard is None and not draft.origins else _origins(ledger, draft)
        ident = node_address(type_, name, content, created_at, None, None, blind)
        key = content_key(type_, draft.name, draft.content, world)
        times = created_at, valid_from, valid_to
        checked.append(
            make_row(
                _ReadyNode,
                (ident, draft, *times, world, world_id, aliases, sources, blind, key, origins),
            )
        )
    return checked


def _origins(ledger: Ledger, draft: NodeDraft) -> tuple[str, ...]:
    """Return the origins of a node: those of its draft and the caller's. A scope has none."""
    caller = () if ledger.guard is None else (ledger.guard.origin,)
    given = dict.fromkeys(map(check_origin, (*draft.origins, *caller)))
    return () if draft.type == SCOPE else tuple(one for one in given if one != USER)


def _blinds(ledger: Ledger, drafts: Sequence[NodeDraft]) -> list[bytes]:
    """Return a random blind per draft; none for the root and scopes, which are found by name."""
    size = BLIND_BYTES
    drawn = ledger.writer.random_bytes(size * len(drafts))
    blinds = [drawn[at : at + size] for at in range(0, len(drawn), size)]
    for place, draft in enumerate(drafts):
        if type(draft) is NodeDraft and draft.type in NAMED_TYPES:
            is_named = draft.type == SCOPE or draft.name == ROOT_NAME
            if is_named and draft.created_at is not None and not draft.content:
                blinds[place] = b""
    return blinds


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


def _check_worlds(ledger: Ledger, checked: Sequence[_ReadyNode]) -> None:
    """Check drafts of existing scopes before anything of a batch is written.

    Raises:
        ConflictError: a draft asks for another world than the scope's own, or the scope was erased.
    """
    worlds: dict[bytes, int] = {}
    for ready in checked:
        if ready.blind:
            continue
        place = ledger.places.get(ready.id)
        if place is not None:
            refuse_erased(ledger, ready.id, place.row)
        world = place.world if place is not None else worlds.setdefault(ready.id, ready.world)
        if ready.draft.parent is not None and ready.world != world:
            raise ConflictError(
                f"node {Id(ready.id).short} already lives in another world; make it a member of "
                "this one too with write_edge('contains', world, node)"
            )


def refuse_erased(ledger: Ledger, ident: bytes, row: int) -> None:
    """Refuse to add to an erased node, because no second erasure would find the addition.

    Raises:
        ConflictError: the node was erased.
    """
    if ledger.writer.is_erased(row):
        raise ConflictError(
            f"node {Id(ident).short} was erased; to say it anew, create another node"
        )


def erase_nodes(ledger: Ledger, idents: Iterable[bytes | str]) -> list[Id]:
    """Erase nodes, everything inside them and everything derived from any of it.

    Raises:
        InvalidInputError: one is the root, or not an id.
        NotFoundError: there is no such node.
        RejectedError: one of them, or a node that goes with it, is in a scope under legal hold.
    """
    rows = {ledger.place(ident).row for ident in idents}
    if ROOT_ROW in rows:
        raise InvalidInputError("the root world can't be erased; delete the file instead")
    writer = ledger.writer
    gone = erased_with(writer, rows)
    refuse_held(writer, gone)
    worlds = writer.worlds(gone | _named_only_in(writer, gone))
    chosen = [row for row in sorted(worlds) if not writer.is_erased(row)]
    if not chosen:
        return []
    ids = [Id(worlds[row].id) for row in chosen]
    for ident in ids:
        ledger.close_validity(ident, ledger.now, by=None)
    commits, edges = scrub(ledger, chosen)
    ledger.change("erase", ids[0], edges=edges, commits=commits)
    for ident in ids[1:]:
        ledger.change("erase", ident)
    return ids


def scrub(ledger: Ledger, rows: Sequence[int]) -> tuple[list[int], list[str]]:
    """Remove the texts of nodes from every table.

    Returns the commits, and the ids of the edges, that cannot be hashed again.
    """
    writer = ledger.writer
    chosen = list(rows)
    # Edges first: their evidence is found by the rows of their ends.
    edges = [ident.hex() for _, ident in writer.erase_edges(chosen)]
    commits = writer.erase_nodes(chosen) | writer.erase_staged(chosen)
    writer.erase_derived(chosen)
    for row, world in writer.worlds(chosen).items():
        ledger.places.pop(world.id, None)  # It contained the blind.
        if world.state is not None:
            ledger.touched.add(row)
    return sorted(commits), sorted(edges)


def erased_with(reader: Reader, rows: Iterable[int]) -> set[int]:
    """Return nodes with everything inside them and everything derived from that."""
    found: set[int] = set()
    frontier = set(rows)
    while frontier:
        found |= frontier
        below = set(reader.children_of(frontier))
        derived = reader.edges_at(sorted(frontier), "in", ("derived_from",))
        below.update(item.source for item in derived)
        # A node restored by an undo has the same text again.
        for item in reader.edges_at(sorted(frontier), "both", ("supersedes",)):
            if item.edge.metadata.get(RESTORES) is True:
                below.update((item.source, item.target))
        frontier = below - found - {ROOT_ROW}
    return found


def _named_only_in(writer: Writer, rows: set[int]) -> set[int]:
    """Return the names that came with erased texts and occur nowhere else, and idempotency keys."""
    around = writer.edges_at(sorted(rows), "both", ("refers_to",))
    keys = {item.source for item in around if item.target in rows} - rows
    named = {item.target for item in around if item.source in rows} - rows
    worlds = writer.worlds(keys | named)
    commits = {writer.born(row) for row in rows}
    candidates = {
        row
        for row in named
        if worlds[row].type in NAME_ONLY_TYPES
        and not worlds[row].content
        and writer.born(row) in commits
    }
    elsewhere = {
        item.target
        for item in writer.edges_at(sorted(candidates), "in")
        if item.source not in rows | candidates and item.edge.type not in NO_MENTION
    }
    return {row for row in keys if worlds[row].type == KEY} | (candidates - elsewhere)


def insert_erased(ledger: Ledger, record: Mapping[str, Any]) -> None:
    """Write a node of an export whose texts are gone; its id cannot be checked."""
    ident = Id(record["node"])
    world = ledger.place(record["parent"]).row
    valid_from, valid_to = record["valid_from"], record["valid_to"]
    ledger.node_row = row = ledger.node_row + 1
    ledger.places[ident] = NodePlace(row, world, valid_from)
    ledger.children_put[world].append(ident)
    times = (ERASED, world, valid_from, valid_to, ledger.writer.seq)
    fields = row, short_key(ident), ident, record["type"], "", ""
    ledger.writer.insert_nodes([NewNode(*fields, *times, blind=b"", content_key=None)])
    ledger.writer.insert_texts([NewText(row, "", "")])
    ledger.nodes.update(node_record(ident, Id(record["parent"]), valid_from, valid_to))
