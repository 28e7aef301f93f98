"""Journal export: the whole journal as JSON Lines, and the rebuilding of a store from it.

    {"worlddb": 2}
    {"commit": 1, "time": …, "actor": …, "root_state": …, "hash": …, "nodes": 2, "edges": 1, …}
    {"node": id, "type": …, "name": …, "content": …, "created_at": …, "parent": id, …}
    {"edge": id, "type": …, "source": id, "target": id, "valid_from": …, "metadata": {…}, …}
    {"note": node id, "kind": "alias", "source" or "metadata", "text": …}
    {"end": 1}

Each commit line is followed by its nodes, edges and notes as they were first written. Later changes
to them are in the `changes` of later commits. Times are microseconds since 1970 UTC. Nodes and
commits have their "blind", random bytes that their hashes cover; exports of version 1 have none.
The texts of erased nodes are missing: such lines have "erased", and a commit line lists the states
that the commit gave to worlds that were erased later.

Replay does not run edge handlers again, because their effects are in the journal. Instead every
commit must come out with its original hash, which covers ids, both clocks and the root state. If a
line was changed, the hash differs, and nothing of its commit is written.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any

from worlddb.audit.history import BEFORE_FIRST, Erasures, check_commit_number, erasures
from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
)
from worlddb.model.address import BLIND_BYTES, ERASED, Id, edge_address, edge_record, short_key
from worlddb.model.inputs import Limits, encode_metadata, from_micros
from worlddb.model.records import Change, NodeDraft
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import CommitRow, ConflictRow, NewEdge, ProposalRow
from worlddb.write.commit import Ledger, seal
from worlddb.write.node_rows import insert_erased, replay_nodes, scrub
from worlddb.write.reconcile import keep_premises

EXPORT_VERSION = 2  # rises when an older reader would misread a line
READ_VERSIONS = (1, EXPORT_VERSION)  # version 1 has no blinds
DAMAGED = (NotFoundError, InvalidInputError, LookupError, TypeError, ValueError, AttributeError,
           OverflowError, struct.error)  # fmt: skip
"""Errors that writing a damaged record may raise."""
LINES_PER_HOLD = 256  # lines read under one hold of the store, so that closing it never waits long
ROWS_PER_WRITE = 20_000  # rows inserted at once; bounds the memory of a large commit
BULK_ROWS_MIN = 50_000
"""Rows of a commit from which it is loaded without indexes, which are then built at its end."""
RESTORE_ACTOR = "restore"
"""Actor of the commit that repeats erasures when an old sealed backup is restored."""
NO_LIMITS = Limits(
    type_bytes_max=1 << 30,
    name_bytes_max=1 << 30,
    content_bytes_max=1 << 30,
    metadata_bytes_max=1 << 30,
    note_bytes_max=1 << 30,
)
"""An export may come from a store with higher limits and must still be replayed in full."""

Record = dict[str, Any]


# -- export ----------------------------------------------------------------------------------------


def export(reader: Reader, after: int = -1) -> Iterator[str]:
    """Yield the lines of an export of the commits above number `after`.

    Raises:
        InvalidInputError: `after` is not a whole number.
    """
    yield from map(_line, export_records(reader, after))


def export_records(
    reader: Reader, after: int = -1, *, every_state: bool = False
) -> Iterator[Record]:
    """Yield the records of an export; with `every_state`, commits have the states of all worlds."""
    check_commit_number(after, "after")
    yield {"worlddb": EXPORT_VERSION}
    exporter = _Exporter(reader, erasures(reader), every_state=every_state)
    last = -1
    for before, commit in pairwise(_commits(reader)):
        last = commit.seq
        if last > after:
            yield from exporter.records(before, commit)
    yield {"end": last}


def _commits(reader: Reader) -> Iterator[CommitRow]:
    """Yield the commit before the journal, then each commit: changes can be large."""
    commit = BEFORE_FIRST
    yield commit
    while found := reader.commits(commit.seq, 1, False):
        commit = found[0]
        yield commit


def _line(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


class _Exporter:
    """Turns the rows of a commit into records, with their values at that commit."""

    def __init__(self, reader: Reader, erased: Erasures, *, every_state: bool) -> None:
        self._reader = reader
        self._erased = erased
        self._ids: dict[int, str] = {}
        self._first_values: dict[tuple[str, int], Any] = {}
        for changed, row, _, was in reader.scan.history():
            self._first_values.setdefault((changed, row), was)
        self._states = _given_states(reader, None if every_state else erased)

    def records(self, before: CommitRow, commit: CommitRow) -> Iterator[Record]:
        """Yield a commit, then its nodes, edges and notes; `before` is the commit it follows."""
        scan, first = self._reader.scan, self._first_values
        yield self._commit(before, commit)
        for node in scan.nodes(before.nodes + 1, commit.nodes):
            parent = first.get(("node.parent", node.row), node.parent)
            self._ids[node.row] = node.id.hex()
            yield {
                "node": node.id.hex(),
                "type": node.type,
                "name": node.name,
                "content": node.content,
                "created_at": node.created_at,
                "parent": None if parent is None else self._id(parent),
                "valid_from": node.valid_from,
                "valid_to": first.get(("node.valid_to", node.row), node.valid_to),
                **({"blind": node.blind.hex()} if node.blind else {}),
                **({"erased": True} if node.created_at == ERASED else {}),
            }
        for edge in scan.edges(before.edges + 1, commit.edges):
            yield {
                "edge": edge.id.hex(),
                "type": edge.type,
                "source": self._id(edge.source),
                "target": self._id(edge.target),
                "valid_from": edge.valid_from,
                "valid_to": first.get(("edge.valid_to", edge.row), edge.valid_to),
                "metadata": json.loads(edge.metadata),
                "generation": edge.generation,
                **({"erased": True} if edge.id in self._erased.edges else {}),
            }
        for _, node_row, kind, text, _ in scan.notes(before.notes + 1, commit.notes):
            yield {"note": self._id(node_row), "kind": kind, "text": text}

    def _commit(self, before: CommitRow, commit: CommitRow) -> Record:
        states = self._states.get(commit.seq)
        return {
            "commit": commit.seq,
            "time": commit.time,
            "actor": commit.actor,
            "root_state": commit.root_state.hex(),
            "hash": commit.hash.hex(),
            "nodes": commit.nodes - before.nodes,
            "edges": commit.edges - before.edges,
            "notes": commit.notes - before.notes,
            "changes": json.loads(commit.changes),
            **({"blind": commit.blind.hex()} if commit.blind else {}),
            **({"erased": True} if commit.seq in self._erased.commits else {}),
            **({"states": states} if states else {}),
        }

    def _id(self, row: int) -> str:
        if row not in self._ids:
            self._ids[row] = self._reader.world(row).id.hex()
        return self._ids[row]


def _given_states(reader: Reader, erased: Erasures | None) -> dict[int, dict[str, str]]:
    """Return by commit the states of worlds that were erased later, or of all worlds.

    The fields that these states were hashed from are gone. The commit hashes still cover them.
    """
    rows = None
    if erased is not None:
        rows = {row for ident in erased.nodes if (row := reader.node_row(ident)) is not None}
    past: dict[int, list[tuple[int, Any]]] = {}
    for changed, row, seq, was in reader.scan.history() if rows or rows is None else ():
        if changed == "node.state" and (rows is None or row in rows):
            past.setdefault(row, []).append((seq, was))
    states: dict[int, dict[str, str]] = {}
    for row, changes in past.items():
        world = reader.world(row)
        after = [was for _, was in changes[1:]] + [world.state]
        for (seq, _), state in zip(changes, after, strict=True):
            states.setdefault(seq, {})[world.id.hex()] = (state or world.id).hex()
    return states


# -- replay ----------------------------------------------------------------------------------------


def replay(store: Store, lines: Iterable[str], on_commit: Callable[[int], None]) -> int:
    """Write the commits of an export into a store; return how many commits were added.

    Commits that the store has already are compared and skipped, so an export can be continued.

    Raises:
        FormatError: the lines are not an export, or its version is newer.
        CorruptionError: a commit does not come out with its hash. That commit and all later ones
            are not written.
        ConflictError: the store has a different history.
    """
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        raise InvalidInputError("give the lines of an export: an open file, or a list of texts")
    return replay_records(store, _parsed(lines), on_commit)


def replay_records(
    store: Store,
    given: Iterator[Record],
    on_commit: Callable[[int], None],
    *,
    confirms: bool = False,
) -> int:
    """Write the commits in some records into a store; see `replay`.

    With `confirms`, records marked as erased that no commit erased are erased by one more commit at
    the end. The caller must know that they were erased.
    """
    with store.read():
        pass  # Raises if the store is closed; later that would look like a damaged export.
    records = _ExportRecords(given)
    records.read_header()
    added = 0
    last: int | None = None
    for head in records:
        if "end" in head:
            left = set(records.unconfirmed) if confirms else set()
            records.unconfirmed -= left
            records.check_end(head["end"], _unchanged_end(store, head["end"], last))
            if left:
                _confirm(store, left)
            return added
        try:
            added += _replay_commit(store, head, records)
            records.unconfirmed -= _erased_by(head["changes"])
        except (FormatError, CorruptionError, ConflictError, StorageError):
            raise
        except DAMAGED as error:
            raise CorruptionError(f"commit {head.get('commit')} is damaged: {error}") from error
        last = head["commit"]
        on_commit(head["commit"])
    raise CorruptionError(
        f"the export ends after commit {last} without an end line; it was cut off"
    )


@dataclass(slots=True)
class _ExportRecords:
    """The records of an export in order.

    A record with "erased" cannot be hashed. It is accepted, and kept in `unconfirmed` until a later
    commit says that it erased this record.
    """

    records: Iterator[Record]
    unconfirmed: set[str] = field(default_factory=set)

    def __iter__(self) -> Iterator[Record]:
        return self

    def __next__(self) -> Record:
        record = next(self.records)
        if record.get("erased") is True:
            kind = next((kind for kind in ("commit", "node", "edge") if kind in record), None)
            if kind is None:
                raise CorruptionError("a line cannot be marked as erased; the export was changed")
            self.unconfirmed.add(f"{kind} {record[kind]}")
        return record

    def read_header(self) -> None:
        """Read the first line."""
        header = next(self.records, None)
        if header is None or "worlddb" not in header:
            raise FormatError(
                'this is not a WorldDB export: its first line must be {"worlddb": 2}; '
                "a file of another program is read by 'worlddb import --from KIND'"
            )
        if header["worlddb"] not in READ_VERSIONS:
            raise FormatError(
                f"export version {header['worlddb']!r} is not supported; this worlddb reads up to "
                f"version {EXPORT_VERSION}"
            )

    def take(self, count: int, kind: str) -> Iterator[Record]:
        """Yield exactly `count` records of a kind."""
        for _ in range(count):
            record = next(self, None)
            if record is None or kind not in record:
                raise CorruptionError(f"a {kind} is missing; the export was cut off or changed")
            yield record

    def check_end(self, end: Any, last: int | None) -> None:
        """Compare the end line with the last commit; every erased record must be confirmed."""
        if end != last or next(self, None) is not None:
            raise CorruptionError("commits are missing at the end of this export")
        if self.unconfirmed:
            raise CorruptionError(
                f"{min(self.unconfirmed)} is marked as erased, but no commit erased it; the export "
                "was changed, do not use this store"
            )


def _parsed(lines: Iterable[str]) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError, TypeError):
                raise FormatError(f"line {number} is not JSON; the export is damaged") from None
            if not isinstance(record, dict):
                raise FormatError(f"line {number} is not a JSON object; the export is damaged")
            yield record


def _unchanged_end(store: Store, end: Any, last: int | None) -> int | None:
    """Return the last commit of an export; if it has none, `end` if the store has that commit.

    An export that continues an earlier one and found nothing new has no commits.
    """
    if last is not None or isinstance(end, bool) or not isinstance(end, int) or end < 0:
        return last
    with store.read() as reader:
        seq = reader.head().seq
    if seq < end:
        raise ConflictError(f"commit {seq + 1} is missing in this export")
    return end


def _erased_by(changes: Iterable[tuple[str, str, Mapping[str, Any]]]) -> set[str]:
    """Return the records that a commit erased."""
    found: set[str] = set()
    for kind, ident, detail in changes:
        if kind == "erase":
            found.add(f"node {ident}")
            found.update(f"edge {edge}" for edge in detail.get("edges", ()))
            found.update(f"commit {seq}" for seq in detail.get("commits", ()))
    return found


def _confirm(store: Store, erased: set[str]) -> None:
    """Write a commit that names what was erased, so that the journal accounts for it."""
    found: dict[str, list[str]] = {"node": [], "edge": [], "commit": []}
    for record in sorted(erased):
        kind, named = record.split(" ")
        found[kind].append(named)
    nodes = [Id(ident) for ident in found["node"]]
    if not nodes:
        raise CorruptionError("parts are marked as erased, and no node is; do not use this store")
    with store.write() as writer:
        ledger = Ledger(writer, NO_LIMITS)
        rows = sorted(ledger.place(ident).row for ident in nodes)
        for ident in nodes:
            ledger.close_validity(ident, ledger.now, by=None)
        scrub(ledger, rows)
        told = {"edges": found["edge"], "commits": sorted(map(int, found["commit"]))}
        for place, ident in enumerate(nodes):
            ledger.change("erase", ident, **({} if place else told))
        seal(ledger, RESTORE_ACTOR)


def _replay_commit(store: Store, head: Record, records: _ExportRecords) -> int:
    """Write one commit; return 1, or 0 if the store has that commit already."""
    with store.read() as reader:
        last = reader.head()
        known = reader.commits(head["commit"] - 1, 1, False)
    counts = {kind: head[f"{kind}s"] for kind in ("node", "edge", "note")}
    if head["commit"] <= last.seq:
        if known[0].hash.hex() != head["hash"]:
            raise ConflictError(
                f"this store has another commit {head['commit']}; import into a new store"
            )
        for kind, count in counts.items():
            for _ in records.take(count, kind):
                pass
        return 0
    if head["commit"] != last.seq + 1:
        raise ConflictError(f"commit {last.seq + 1} is missing in this export")
    with store.write() as writer:
        writer.time = head["time"]
        ledger = Ledger(writer, NO_LIMITS)
        if counts["node"] + counts["edge"] > BULK_ROWS_MIN:
            writer.defer_indexes()
        _replay_nodes(ledger, records.take(counts["node"], "node"))
        _replay_edges(ledger, records.take(counts["edge"], "edge"))
        for record in records.take(counts["note"], "note"):
            ident = Id(record["note"])
            row = ledger.place(ident).row
            ledger.add_notes(ident, row, record["kind"], (record["text"],), fresh=True)
        for kind, ident, detail in head["changes"]:
            _replay_change(ledger, Change(kind=kind, id=Id(ident), detail=detail))
        ledger.given_states = {
            bytes.fromhex(ident): bytes.fromhex(state)
            for ident, state in head.get("states", {}).items()
        }
        # A commit that lost parts to an erasure cannot be hashed again; it is `unconfirmed`.
        given = bytes.fromhex(head["hash"]) if head.get("erased") is True else None
        sealed = seal(ledger, head["actor"], _blind(head), given)
        if sealed.hash.hex() != head["hash"] or sealed.root_state.hex() != head["root_state"]:
            raise CorruptionError(
                f"commit {head['commit']} does not come out with its hash; the export was changed"
            )
    return 1


def _blind(record: Record) -> bytes:
    """Return the blind of a node or a commit; empty if it has none."""
    blind = bytes.fromhex(record.get("blind", ""))
    if len(blind) not in (0, BLIND_BYTES):
        raise CorruptionError(f"a blind has {BLIND_BYTES} bytes, not {len(blind)}")
    return blind


def _replay_nodes(ledger: Ledger, records: Iterator[Record]) -> None:
    batch: list[NodeDraft] = []
    blinds: list[bytes] = []
    waiting: set[str] = set()

    def write_batch() -> None:
        replay_nodes(ledger, batch, blinds)
        batch.clear()
        blinds.clear()
        waiting.clear()

    for record in records:
        if record.get("erased") is True:
            write_batch()
            insert_erased(ledger, record)
            continue
        # A world must be written before the nodes that live in it.
        if record["parent"] in waiting or len(batch) == ROWS_PER_WRITE:
            write_batch()
        waiting.add(record["node"])
        ends = record["valid_to"]
        blinds.append(_blind(record))
        batch.append(
            NodeDraft(
                type=record["type"],
                name=record["name"],
                content=record["content"],
                parent=record["parent"],
                created_at=from_micros(record["created_at"]),
                valid_from=from_micros(record["valid_from"]),
                valid_to=None if ends is None else from_micros(ends),
            )
        )
    write_batch()


def _replay_edges(ledger: Ledger, records: Iterator[Record]) -> None:
    while batch := list(islice(records, ROWS_PER_WRITE)):
        rows = []
        metadata_of: dict[int, str] = {}
        for record in batch:
            source, target = Id(record["source"]), Id(record["target"])
            type_, generation = record["type"], record["generation"]
            valid_from, valid_to = record["valid_from"], record["valid_to"]
            metadata = encode_metadata(record["metadata"], NO_LIMITS)
            source_row, world, _, blind = ledger.place(source)
            target_row, _, _, target_blind = ledger.place(target)
            said = valid_from, metadata.encode(), generation
            ident = edge_address(type_, source, target, *said, blind + target_blind)
            if record.get("erased") is True:
                ident = Id(record["edge"])
            ledger.edge_row += 1
            ledger.edges_put[world].append(ident)
            ledger.edges.update(edge_record(ident, valid_to))
            metadata_of[ledger.edge_row] = metadata
            ends = source_row, target_row, world, valid_from, valid_to
            address = ledger.edge_row, short_key(ident), ident, type_
            rows.append(NewEdge(*address, *ends, metadata, generation, ledger.writer.seq))
        ledger.writer.insert_edges(rows)
        for row, metadata in metadata_of.items():
            keep_premises(ledger, row, metadata)


def _replay_change(ledger: Ledger, change: Change) -> None:
    """Repeat one recorded effect."""
    writer, detail, kind = ledger.writer, change.detail, change.kind
    ledger.changes.append(change)
    if kind in ("undo", "merge"):
        return  # It only names commits or a branch; its effects are separate changes.
    if kind in ("erase", "close_node", "place", "register"):
        row = ledger.place(change.id).row
        if kind == "erase":
            scrub(ledger, [row])
        elif kind == "close_node":
            writer.set_valid_to("node", row, detail["valid_to"])
        elif kind == "place":
            ledger.move(change.id, ledger.place(Id(detail["world"])).row)
        else:
            writer.put_registration(row, detail["type"], detail["version"], detail["functional"])
        return
    found = writer.edge_row(change.id)
    if found is None:
        raise CorruptionError(f"change {kind!r} names an edge that does not exist: {change.id}")
    edge = writer.edges([found])[0]
    low, high = sorted((edge.source, edge.target))
    if kind == "close_edge":
        writer.set_valid_to("edge", found, detail["valid_to"])
    elif kind == "delete_edge":
        writer.delete_edge(found)
        ledger.edges_lost[edge.world].add(change.id)
    elif kind == "propose":
        staged = (detail["tier"], detail["score"], detail["evidence"])
        writer.put_proposal(ProposalRow(found, low, high, "pending", *staged))
    elif kind == "decide":
        writer.set_status(found, detail["status"])
    elif kind == "flag":
        writer.put_conflict(ConflictRow(found, low, high, detail["reason"], None))
    elif kind == "settle":
        writer.settle_conflict(found)
    else:
        raise FormatError(f"unknown change {kind!r}; install a newer worlddb")


def export_lines(store: Store, after: int) -> Iterator[str]:
    """Yield the journal of a store as JSON Lines, on one snapshot."""
    with store.snapshot() as reader:
        lines = export(reader, after)
        while True:
            with store.using():
                batch = list(islice(lines, LINES_PER_HOLD))
            if not batch:
                return
            yield from batch
