"""Replay: play an exported journal into a store, commit by commit, effect by effect.

Handlers do not run again: their effects are in the journal. Instead every commit must come out with
the very hash it had, which covers ids, both clocks and the root state; a line that was changed on
the way fails there, and nothing of its commit is kept.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
)
from worlddb.model.address import Id, edge_address, short_key
from worlddb.model.inputs import Limits, encode_metadata, from_micros
from worlddb.model.journal import edge_record
from worlddb.model.records import Change, NodeDraft
from worlddb.store.protocol import ConflictRow, ProposalRow, Store
from worlddb.write.commit import Ledger, seal
from worlddb.write.erasure import insert_erased, scrub
from worlddb.write.node_rows import create_nodes
from worlddb.write.reconcile import keep_premises

EXPORT_VERSION = 1
WRONG = (
    NotFoundError,
    InvalidInputError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    struct.error,
)
BATCH = 20_000
BULK_MIN = 50_000
NO_LIMITS = Limits(
    type_bytes_max=1 << 30,
    name_bytes_max=1 << 30,
    content_bytes_max=1 << 30,
    metadata_bytes_max=1 << 30,
    note_bytes_max=1 << 30,
)
"""What a store accepted under other limits must come back whole."""


def replay(store: Store, lines: Iterable[str], on_commit: Callable[[int], None]) -> int:
    """Play the lines of an export; return how many commits were added.

    Commits the store has already are compared and skipped, so an export can be continued.

    Raises:
        FormatError: the lines are no export, or of a newer version.
        CorruptionError: a commit does not come out with its hash; it and all after it are left out.
        ConflictError: the store has another history.
    """
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        raise InvalidInputError("give the lines of an export: an open file, or a list of texts")
    with store.read():
        pass  # A closed store is the caller's mistake, not the export's.
    records = _records(lines)
    header = next(records, None)
    if header is None or "worlddb" not in header:
        raise FormatError('this is no WorldDB export: its first line must be {"worlddb": 1}')
    if header["worlddb"] != EXPORT_VERSION:
        raise FormatError(
            f"export version {header['worlddb']!r} is not one this version reads; it reads "
            f"{EXPORT_VERSION}"
        )
    added = 0
    last: int | None = None
    trusted: set[str] = set()
    records = _noting_erased(records, trusted)
    for head in records:
        if "end" in head:
            if last is None:
                last = _nothing_new(store, head["end"])
            if head["end"] != last or next(records, None) is not None:
                raise CorruptionError("commits are missing at the end of this export")
            if trusted:
                raise CorruptionError(
                    f"{min(trusted)} is said to be erased, and no commit says so; the export was "
                    "changed, do not use this store"
                )
            return added
        try:
            added += _replay_commit(store, head, records)
            trusted -= _erased_by(head["changes"])
        except (FormatError, CorruptionError, ConflictError, StorageError):
            raise
        except WRONG as error:
            raise CorruptionError(f"commit {head.get('commit')} is damaged: {error}") from error
        last = head["commit"]
        on_commit(head["commit"])
    raise CorruptionError(
        f"the export ends after commit {last} without an end line; it was cut off"
    )


def _nothing_new(store: Store, end: Any) -> int | None:
    """Return the last commit of an export without any, if this store has it already.

    Such is the continuation of an export after which nobody wrote.

    Raises:
        ConflictError: the store has not come that far.
    """
    if isinstance(end, bool) or not isinstance(end, int) or end < 0:
        return None
    with store.read() as reader:
        seq = reader.head().seq
    if seq < end:
        raise ConflictError(f"commit {seq + 1} is missing in this export")
    return end


def _noting_erased(
    records: Iterable[dict[str, Any]], trusted: set[str]
) -> Iterator[dict[str, Any]]:
    """Pass records on, and note what is taken on trust until a commit says that it was erased."""
    for record in records:
        if record.get("erased") is True:
            kind = next(kind for kind in ("commit", "node", "edge", "end") if kind in record)
            trusted.add(f"{kind} {record[kind]}")
        yield record


def _erased_by(changes: Iterable[tuple[str, str, Mapping[str, Any]]]) -> set[str]:
    """Return what a commit says it has erased."""
    found: set[str] = set()
    for kind, ident, detail in changes:
        if kind == "erase":
            found.add(f"node {ident}")
            found.update(f"edge {edge}" for edge in detail.get("edges", ()))
            found.update(f"commit {seq}" for seq in detail.get("commits", ()))
    return found


def _records(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError, TypeError):
                raise FormatError(f"line {number} is not JSON; the export is damaged") from None
            if not isinstance(record, dict):
                raise FormatError(f"line {number} is not a JSON object; the export is damaged")
            yield record


def _replay_commit(store: Store, head: dict[str, Any], records: Iterator[dict[str, Any]]) -> int:
    with store.read() as reader:
        last = reader.head()
        known = reader.commits(head["commit"] - 1, 1, False)
    counts = {kind: head[f"{kind}s"] for kind in ("node", "edge", "note")}
    if head["commit"] <= last.seq:
        if known[0].hash.hex() != head["hash"]:
            raise ConflictError(
                f"commit {head['commit']} of this store is another one; import into a new store"
            )
        for kind, count in counts.items():
            for _ in _take(records, count, kind):
                pass
        return 0
    if head["commit"] != last.seq + 1:
        raise ConflictError(f"commit {last.seq + 1} is missing in this export")
    with store.write() as writer:
        writer.time = head["time"]
        ledger = Ledger(writer, NO_LIMITS)
        if counts["node"] + counts["edge"] > BULK_MIN:
            writer.defer_indexes()
        _replay_nodes(ledger, _take(records, counts["node"], "node"))
        _replay_edges(ledger, _take(records, counts["edge"], "edge"))
        for record in _take(records, counts["note"], "note"):
            ident = Id(record["note"])
            row = ledger.place(ident)[0]
            ledger.add_notes(ident, row, record["kind"], (record["text"],), fresh=True)
        for kind, ident, detail in head["changes"]:
            _replay_change(ledger, Change(kind=kind, id=Id(ident), detail=detail))
        ledger.given_states = {
            bytes.fromhex(ident): bytes.fromhex(state)
            for ident, state in head.get("states", {}).items()
        }
        # What was erased of a commit can't be hashed again; a later commit has to vouch for it.
        given = bytes.fromhex(head["hash"]) if head.get("erased") is True else None
        sealed = seal(ledger, head["actor"], given)
        if sealed.hash.hex() != head["hash"] or sealed.root_state.hex() != head["root_state"]:
            raise CorruptionError(
                f"commit {head['commit']} does not come out with its hash; the export was changed"
            )
    return 1


def _take(records: Iterator[dict[str, Any]], count: int, kind: str) -> Iterator[dict[str, Any]]:
    """Yield exactly `count` records of a kind."""
    for _ in range(count):
        record = next(records, None)
        if record is None or kind not in record:
            raise CorruptionError(f"a {kind} is missing; the export was cut or changed")
        yield record


def _replay_nodes(ledger: Ledger, records: Iterator[dict[str, Any]]) -> None:
    batch: list[NodeDraft] = []
    waiting: set[str] = set()
    for record in records:
        if record.get("erased") is True:
            create_nodes(ledger, batch)
            batch, waiting = [], set()
            insert_erased(ledger, record)
            continue
        # A world must be written before what lives in it.
        if record["parent"] in waiting or len(batch) == BATCH:
            create_nodes(ledger, batch)
            batch, waiting = [], set()
        waiting.add(record["node"])
        ends = record["valid_to"]
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
    create_nodes(ledger, batch)


def _replay_edges(ledger: Ledger, records: Iterator[dict[str, Any]]) -> None:
    while batch := list(islice(records, BATCH)):
        rows = []
        for record in batch:
            source, target = Id(record["source"]), Id(record["target"])
            metadata = encode_metadata(record["metadata"], NO_LIMITS)
            valid_from, valid_to = record["valid_from"], record["valid_to"]
            ident = edge_address(
                record["type"],
                source,
                target,
                valid_from,
                metadata.encode(),
                record["generation"],
            )
            if record.get("erased") is True:
                ident = Id(record["edge"])
            place = ledger.place(source)
            ledger.edge_row += 1
            ledger.edges_put[place[1]].append(ident)
            ledger.edges.update(edge_record(ident, valid_to))
            rows.append(
                (
                    ledger.edge_row,
                    short_key(ident),
                    ident,
                    record["type"],
                    place[0],
                    ledger.place(target)[0],
                    place[1],
                    valid_from,
                    valid_to,
                    metadata,
                    record["generation"],
                    ledger.writer.seq,
                )
            )
        ledger.writer.insert_edges(rows)
        for row in rows:
            keep_premises(ledger, row[0], row[9])


def _replay_change(ledger: Ledger, change: Change) -> None:
    """Repeat one recorded effect."""
    writer, detail, kind = ledger.writer, change.detail, change.kind
    ledger.changes.append(change)
    if kind == "erase":
        scrub(ledger, [ledger.place(change.id)[0]])
        return
    if kind in ("close_node", "place", "register"):
        row = ledger.place(change.id)[0]
        if kind == "close_node":
            writer.set_valid_to("node", row, detail["valid_to"])
        elif kind == "place":
            ledger.move(change.id, ledger.place(Id(detail["world"]))[0])
        else:
            writer.put_registration(row, detail["type"], detail["version"], detail["functional"])
        return
    found = writer.edge_row(change.id)
    if found is None:
        raise CorruptionError(f"change {kind!r} names an edge that is not there: {change.id}")
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
