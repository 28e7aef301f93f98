"""Check: hash everything again, and hold every projection and index against the journal.

Four questions, in this order:
    1. Do the rows hash to their addresses?
    2. Does each commit's hash follow from the rows it wrote and the commit before it?
    3. Do validity, parents, deletions, proposals and conflicts follow from the journal's changes?
    4. Do states, set pages, the text index and embeddings follow from nodes and edges?
A flipped bit in any row fails at least one of them; of a vector, if it is more than rounding.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise

from blake3 import blake3

from worlddb.errors import CorruptionError, WorldDBError
from worlddb.model.address import ERASED, ROOT_ID, edge_address, node_address, short_key
from worlddb.model.journal import (
    GENESIS,
    commit_hash,
    decode_changes,
    edge_record,
    node_record,
    note_record,
    state_digest,
)
from worlddb.model.records import Problem
from worlddb.read.check_projections import check_projections
from worlddb.read.check_rows import Rows
from worlddb.read.check_sets import check_sets
from worlddb.store.protocol import ROOT_ROW, CommitRow, NodeScan, Reader, Store

PROBLEMS_MAX = 200
BEFORE_ALL = -(1 << 63)
UNREADABLE = (WorldDBError, ValueError, TypeError, KeyError, IndexError, struct.error)


def check(store: Store) -> list[Problem]:
    """Return everything that does not fit together; an empty list is a sound store."""
    try:
        problems = [Problem(place="file", message=text) for text in store.verify()]
    except CorruptionError as error:
        problems = [Problem(place="file", message=str(error))]
    if problems:
        return problems
    rows = Rows()
    with store.read() as reader:
        stages: list[tuple[str, Callable[[], None]]] = [
            ("schema", lambda: _check_schema(reader, rows)),
            ("journal", lambda: rows.load_erased(reader)),
            ("nodes", lambda: _check_nodes(reader, rows)),
            ("edges", lambda: _check_edges(reader, rows)),
            ("notes", lambda: _check_notes(reader, rows)),
            ("history", lambda: rows.load_history(reader)),
            ("journal", lambda: _check_journal(reader, rows)),
            ("projections", lambda: check_projections(reader, rows)),
            ("sets", lambda: check_sets(reader, rows)),
            ("texts", lambda: _check_texts(reader, rows)),
            ("vectors", lambda: _check_vectors(reader, rows)),
        ]
        for place, stage in stages:
            try:
                with store.using():
                    stage()
            except UNREADABLE as error:
                rows.report(place, f"unreadable: {type(error).__name__}: {error}")
    return rows.problems[:PROBLEMS_MAX]


def _check_schema(reader: Reader, rows: Rows) -> None:
    for text in reader.scan.schema_problems():
        rows.report("schema", f"{text}; somebody changed the file by other means")


def _check_texts(reader: Reader, rows: Rows) -> None:
    for text in reader.scan.text_problems():
        rows.report("texts", text)


def _check_vectors(reader: Reader, rows: Rows) -> None:
    from worlddb.read.check_vectors import check_vectors

    check_vectors(reader, rows)


def _check_nodes(reader: Reader, rows: Rows) -> None:
    for node in reader.scan.nodes():
        if node.created_at == ERASED:
            _check_erased(rows, node)
            continue
        address = node_address(
            node.type, node.name.encode(), node.content.encode(), node.created_at
        )
        if address != node.id or short_key(node.id) != node.key:
            rows.report(f"node {node.id.hex()[:12]}", "its fields do not hash to its id")
        rows.add_node(node)
    for ident in rows.erased - {rows.node_ids[row] for row in rows.blank}:
        rows.report(f"node {ident.hex()[:12]}", "the journal says it was erased, and it is there")
    if rows.node_ids.get(1) != ROOT_ID:
        rows.report("nodes", "the root world is missing")


def _check_erased(rows: Rows, node: NodeScan) -> None:
    """Check what is left of an erased node: the journal must say so, and no text may be there."""
    place = f"node {node.id.hex()[:12]}"
    if node.id not in rows.erased or short_key(node.id) != node.key:
        rows.report(place, "its fields are gone, and the journal does not say so")
    if node.name or node.content:
        rows.report(place, "it was erased, and there is text")
    rows.blank.add(node.row)
    rows.add_node(node)


def _check_edges(reader: Reader, rows: Rows) -> None:
    for edge in reader.scan.edges():
        place = f"edge {edge.id.hex()[:12]}"
        ends = rows.node_ids.get(edge.source), rows.node_ids.get(edge.target)
        rows.add_edge(edge)
        if ends[0] is None or ends[1] is None:
            rows.report(place, "one of its ends does not exist")
            continue
        address = edge_address(
            edge.type,
            ends[0],
            ends[1],
            edge.valid_from,
            edge.metadata.encode(),
            edge.generation,
        )
        if edge.id in rows.erased_edges:
            address = edge.id  # Its metadata is gone; the journal says so.
        if address != edge.id or short_key(edge.id) != edge.key:
            rows.report(place, "its fields do not hash to its id")
        if edge.world != (rows.parents[edge.source] or edge.source):
            rows.report(place, "it is not in the world its source lives in")


def _check_notes(reader: Reader, rows: Rows) -> None:
    for row, node, kind, text, born in reader.scan.notes():
        if node not in rows.node_ids:
            rows.report(f"note {row}", "its node does not exist")
            continue
        rows.notes.append((row, note_record(rows.node_ids[node], kind, text), born))


def _check_journal(reader: Reader, rows: Rows) -> None:
    commits = reader.commits(BEFORE_ALL, None, False)
    rows.commits = commits
    if not commits or commits[0].seq != 0 or min(commits[0][5:8]) < 0:
        rows.report("journal", "it does not begin with commit 0")
        return
    for before, after in pairwise(commits):
        if after.seq != before.seq + 1 or after.time <= before.time:
            rows.report(f"commit {after.seq}", "its number or time does not follow the one before")
        if any(new < old for old, new in zip(before[5:8], after[5:8], strict=True)):
            rows.report(f"commit {after.seq}", "it has fewer rows than the one before")
            return
    last = commits[-1]
    numbers = ([*rows.node_ids], [*rows.edge_ids], [note[0] for note in rows.notes])
    for what, found, count in zip(("node", "edge", "note"), numbers, last[5:8], strict=True):
        # Numbered without a gap from 1: what no commit wrote stands out, and so does what is lost.
        if found != list(range(1, len(found) + 1)) or len(found) != count:
            rows.report("journal", f"{what} rows are missing, or there are some no commit wrote")
            return
    if rows.states.pop(ROOT_ROW, None) is not None:
        rows.report("root", "its state belongs into the journal alone")
    states = _states_by_commit(rows)
    rows.states[ROOT_ROW] = last.root_state
    previous: bytes = GENESIS
    low = CommitRow(-1, 0, "", b"", GENESIS, 0, 0, 0, "[]")
    for commit in commits:
        digests = {
            "nodes": _digest_nodes(rows, low.nodes, commit),
            "edges": _digest_edges(rows, low.edges, commit),
            "notes": _digest_notes(rows, low.notes, commit),
            "states": state_digest(states.get(commit.seq, ())),
        }
        expected = commit_hash(
            previous,
            commit.seq,
            commit.time,
            commit.actor,
            commit.root_state,
            digests,
            commit.changes,
        )
        if expected != commit.hash and commit.seq not in rows.erased_commits:
            rows.report(f"commit {commit.seq}", "its hash does not follow from what it wrote")
        rows.changes += [(commit.seq, change) for change in decode_changes(commit.changes)]
        previous, low = commit.hash, commit


def _digest_nodes(rows: Rows, low: int, commit: CommitRow) -> bytes:
    hasher = blake3()
    for row in range(low + 1, commit.nodes + 1):
        if row not in rows.node_ids:
            rows.report(f"commit {commit.seq}", f"node row {row} is missing")
            continue
        if rows.node_born[row] != commit.seq:
            rows.report(f"node {rows.node_ids[row].hex()[:12]}", "it names another commit")
        parent = rows.first("node.parent", row, rows.parents[row])
        hasher.update(
            node_record(
                rows.node_ids[row],
                GENESIS if parent is None else rows.node_ids.get(parent, b""),
                rows.node_valid_from[row],
                rows.first("node.valid_to", row, rows.node_valid_to[row]),
            )
        )
    return hasher.digest()


def _digest_edges(rows: Rows, low: int, commit: CommitRow) -> bytes:
    hasher = blake3()
    for row in range(low + 1, commit.edges + 1):
        if row not in rows.edge_ids:
            rows.report(f"commit {commit.seq}", f"edge row {row} is missing")
            continue
        if rows.edge_born[row] != commit.seq:
            rows.report(f"edge {rows.edge_ids[row].hex()[:12]}", "it names another commit")
        valid_to = rows.first("edge.valid_to", row, rows.edge_valid_to[row])
        hasher.update(edge_record(rows.edge_ids[row], valid_to))
    return hasher.digest()


def _digest_notes(rows: Rows, low: int, commit: CommitRow) -> bytes:
    hasher = blake3()
    for row, record, born in rows.notes[low : commit.notes]:
        if born != commit.seq:
            rows.report(f"note {row}", "it names another commit")
        hasher.update(record)
    return hasher.digest()


def _states_by_commit(rows: Rows) -> dict[int, list[tuple[bytes, bytes]]]:
    """Return the (id, state) pairs each commit set, put together from history and the present."""
    found: defaultdict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
    for (field, row), past in rows.history.items():
        if field != "node.state":
            continue
        if row not in rows.node_ids:
            rows.report(f"history of node row {row}", "there is no such node")
            continue
        if row == ROOT_ROW:
            rows.report("history of the root", "its states belong into the journal alone")
            continue
        if past[0][1] is not None:
            rows.report(f"history of node row {row}", "its first state is not that of a leaf")
        after = [was for _, was in past[1:]] + [rows.states.get(row)]
        for (seq, _), state in zip(past, after, strict=True):
            if state is None:
                rows.report(f"history of node row {row}", f"no state after commit {seq}")
            else:
                found[seq].append((rows.node_ids[row], state))
    for before, after_it in pairwise(rows.commits):
        if after_it.root_state != before.root_state:
            found[after_it.seq].append((ROOT_ID, after_it.root_state))
    return found
