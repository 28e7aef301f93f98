"""Store check: hashes everything again, and compares projections and indexes with the journal.

Five questions, in this order:
    1. Do the rows hash to their addresses?
    2. Does the hash of each commit follow from the rows it wrote and the commit before it?
    3. Do validity, parents, deletions, proposals and conflicts follow from the journal's changes?
    4. Do states, set pages, words, embeddings and keys of names follow from nodes and edges?
    5. Do the rows of the derived tables have the sums that WorldDB's transactions recorded?
A flipped bit in any row fails at least one of them.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable
from contextvars import ContextVar
from itertools import pairwise

from blake3 import blake3

from worlddb.audit.derived_check import check_lookups
from worlddb.audit.history import BEFORE_FIRST, erasures
from worlddb.audit.projection_check import StoreImage, check_projections, check_sets, label_of
from worlddb.errors import CorruptionError, WorldDBError
from worlddb.index.name_index import NameIndex
from worlddb.model.address import (
    ERASED,
    GENESIS,
    ROOT_ID,
    commit_hash,
    content_key,
    edge_address,
    edge_record,
    has_address,
    node_record,
    note_record,
    short_key,
    state_digest,
)
from worlddb.model.records import Problem, decode_changes
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, CommitRow, NodeScan

STAGE_COUNT = 14  # the file itself, and the stages of `check`
PROBLEMS_MAX = 200
"""Problems that `check` returns; more would not help: the store needs a backup."""
STAGES: ContextVar[Callable[[int, int, str], None]] = ContextVar(
    "worlddb_check_stages", default=lambda done, total, stage: None
)
"""Called before each stage of a check: stages done, number of stages, name of the stage."""
BEFORE_ALL = -(1 << 63)  # below every commit number, also one that damage made negative
UNREADABLE = (WorldDBError, ValueError, TypeError, KeyError, IndexError, struct.error)
"""Errors that a stage may raise on damaged rows."""


def check(store: Store, names: NameIndex | None = None) -> list[Problem]:
    """Return all inconsistencies; an intact store has none.

    With `names`, the keys of the name index are computed again.
    """
    tell = STAGES.get()
    tell(0, STAGE_COUNT, "file")
    try:
        problems = [Problem(place="file", message=text) for text in store.verify()]
    except CorruptionError as error:
        problems = [Problem(place="file", message=str(error))]
    if problems:
        return problems
    image = StoreImage()
    with store.read() as reader:
        stages: list[tuple[str, Callable[[Reader, StoreImage], None]]] = [
            ("schema", _check_schema),
            ("journal", _load_erasures),
            ("history", _load_history),
            ("nodes", _check_nodes),
            ("edges", _check_edges),
            ("notes", _check_notes),
            ("journal", _check_journal),
            ("projections", check_projections),
            ("sets", check_sets),
            ("texts", _check_texts),
            ("vectors", _check_vectors),
            ("lookups", lambda reader, image: check_lookups(reader, image, names)),
            ("sums", _check_sums),
        ]
        for number, (place, stage) in enumerate(stages, 1):
            tell(number, STAGE_COUNT, place)
            try:
                with store.using():
                    stage(reader, image)
            except UNREADABLE as error:
                image.report(place, f"unreadable: {type(error).__name__}: {error}")
    return image.problems[:PROBLEMS_MAX]


def _check_schema(reader: Reader, image: StoreImage) -> None:
    for text in reader.scan.schema_problems():
        image.report("schema", f"{text}; another program changed the file")


def _check_sums(reader: Reader, image: StoreImage) -> None:
    for table in reader.scan.edited_tables():
        image.report(table, "another program changed its rows; run 'worlddb reindex'")


def _check_texts(reader: Reader, image: StoreImage) -> None:
    for text in reader.scan.text_problems():
        image.report("texts", text)


def _check_vectors(reader: Reader, image: StoreImage) -> None:
    # Imported here because numpy is slow to import.
    from worlddb.audit.derived_check import check_vectors

    check_vectors(reader, image)


def _load_erasures(reader: Reader, image: StoreImage) -> None:
    image.erasures = erasures(reader)


def _load_history(reader: Reader, image: StoreImage) -> None:
    for field, row, seq, was in reader.scan.history():
        image.history.setdefault((field, row), []).append((seq, was))


# -- 1. rows and their addresses -------------------------------------------------------------------


def _check_nodes(reader: Reader, image: StoreImage) -> None:
    for node in reader.scan.nodes():
        fields = node.type, node.name, node.content, node.created_at, node.blind
        if node.created_at == ERASED:
            _check_erased(image, node)
        else:
            if not has_address(node.id, *fields) or short_key(node.id) != node.key:
                image.report(label_of("node", node.id), "its fields do not hash to its id")
            world = image.first_value("node.parent", node.row, node.parent)
            key = None
            if world is not None:
                key = content_key(node.type, node.name, node.content, world)
            if node.content_key != key:
                image.report(label_of("node", node.id), "the content index has another key for it")
        image.add_node(node)
    erased = {node.id for node in image.nodes.values() if node.created_at == ERASED}
    for ident in image.erasures.nodes - erased:
        label = label_of("node", ident)
        image.report(label, "the journal has its erasure, but its fields are there")
    if image.node_rows.get(ROOT_ID) != ROOT_ROW:
        image.report("nodes", "the root world is missing")


def _check_erased(image: StoreImage, node: NodeScan) -> None:
    """Check the remains of an erased node: the journal must say so, and no text may be left."""
    label = label_of("node", node.id)
    if node.id not in image.erasures.nodes or short_key(node.id) != node.key:
        image.report(label, "its fields are gone, but the journal has no erasure")
    if node.name or node.content or node.blind or node.content_key is not None:
        image.report(label, "it was erased, but text, its blind or its key is left")


def _check_edges(reader: Reader, image: StoreImage) -> None:
    for edge in reader.scan.edges():
        label = label_of("edge", edge.id)
        source, target = image.nodes.get(edge.source), image.nodes.get(edge.target)
        image.add_edge(edge)
        if source is None or target is None:
            image.report(label, "its source or target does not exist")
            continue
        hashed = edge.valid_from, edge.metadata.encode(), edge.generation
        blind = source.blind + target.blind
        address = edge_address(edge.type, source.id, target.id, *hashed, blind)
        if edge.id in image.erasures.edges:
            address = edge.id  # Its metadata was erased, so it cannot be hashed again.
        if address != edge.id or short_key(edge.id) != edge.key:
            image.report(label, "its fields do not hash to its id")
        if edge.world != (source.parent or edge.source):
            image.report(label, "it is not in the world that its source lives in")


def _check_notes(reader: Reader, image: StoreImage) -> None:
    for row, node, kind, text, born in reader.scan.notes():
        if node not in image.nodes:
            image.report(f"note {row}", "its node does not exist")
            continue
        image.notes.append((row, note_record(image.nodes[node].id, kind, text), born))


# -- 2. commits and their hashes -------------------------------------------------------------------


def _check_journal(reader: Reader, image: StoreImage) -> None:
    image.commits = reader.commits(BEFORE_ALL, None, False)
    if not _has_sound_numbers(image):
        return
    if image.states.pop(ROOT_ROW, None) is not None:
        image.report("root", "it has a stored state; only the journal may hold the root's states")
    states = _states_by_commit(image)
    image.states[ROOT_ROW] = image.commits[-1].root_state
    for before, commit in pairwise([BEFORE_FIRST, *image.commits]):
        digests = {
            "nodes": _digest_nodes(image, before.nodes, commit),
            "edges": _digest_edges(image, before.edges, commit),
            "notes": _digest_notes(image, before.notes, commit),
            "states": state_digest(states.get(commit.seq, ())),
        }
        seq, time, actor, root = commit[:4]
        expected = commit_hash(
            before.hash, seq, time, actor, root, digests, commit.changes, commit.blind
        )
        if commit.seq in image.erasures.commits:
            if commit.blind:
                image.report(f"commit {commit.seq}", "parts were erased, but its blind is left")
        elif expected != commit.hash:
            image.report(f"commit {commit.seq}", "its hash does not follow from what it wrote")
        image.changes += [(commit.seq, change) for change in decode_changes(commit.changes)]


def _has_sound_numbers(image: StoreImage) -> bool:
    """Return whether commits and rows are numbered well enough to hash the journal again."""
    commits = image.commits
    if not commits or commits[0].seq != 0 or min(_row_counts(commits[0])) < 0:
        image.report("journal", "it does not begin with commit 0")
        return False
    for before, after in pairwise(commits):
        if after.seq != before.seq + 1 or after.time <= before.time:
            image.report(f"commit {after.seq}", "its number or time does not follow the one before")
        counts = zip(_row_counts(before), _row_counts(after), strict=True)
        if any(new < old for old, new in counts):
            image.report(f"commit {after.seq}", "it has fewer rows than the one before")
            return False
    numbers = ([*image.nodes], [*image.edges], [row for row, _, _ in image.notes])
    counted = zip(("node", "edge", "note"), numbers, _row_counts(commits[-1]), strict=True)
    for what, found, count in counted:
        # Rows are numbered from 1 without gaps, so a lost row and a row of no commit are noticed.
        if found != list(range(1, len(found) + 1)) or len(found) != count:
            image.report("journal", f"{what} rows are missing, or no commit wrote some of them")
            return False
    return True


def _row_counts(commit: CommitRow) -> tuple[int, int, int]:
    return commit.nodes, commit.edges, commit.notes


def _digest_nodes(image: StoreImage, low: int, commit: CommitRow) -> bytes:
    hasher = blake3()
    for row in range(low + 1, commit.nodes + 1):
        node = image.nodes[row]
        if node.born != commit.seq:
            image.report(label_of("node", node.id), "it names another commit")
        parent = image.nodes.get(image.first_value("node.parent", row, node.parent))
        valid_to = image.first_value("node.valid_to", row, node.valid_to)
        above = GENESIS if parent is None else parent.id
        hasher.update(node_record(node.id, above, node.valid_from, valid_to))
    return hasher.digest()


def _digest_edges(image: StoreImage, low: int, commit: CommitRow) -> bytes:
    hasher = blake3()
    for row in range(low + 1, commit.edges + 1):
        edge = image.edges[row]
        if edge.born != commit.seq:
            image.report(label_of("edge", edge.id), "it names another commit")
        valid_to = image.first_value("edge.valid_to", row, edge.valid_to)
        hasher.update(edge_record(edge.id, valid_to))
    return hasher.digest()


def _digest_notes(image: StoreImage, low: int, commit: CommitRow) -> bytes:
    hasher = blake3()
    for row, record, born in image.notes[low : commit.notes]:
        if born != commit.seq:
            image.report(f"note {row}", "it names another commit")
        hasher.update(record)
    return hasher.digest()


def _states_by_commit(image: StoreImage) -> dict[int, list[tuple[bytes, bytes]]]:
    """Return the (id, state) pairs that each commit set, from the history and the present."""
    found: defaultdict[int, list[tuple[bytes, bytes]]] = defaultdict(list)
    for (field, row), past in image.history.items():
        if field != "node.state":
            continue
        place = f"history of node row {row}"
        if row not in image.nodes:
            image.report(place, "there is no such node")
            continue
        if row == ROOT_ROW:
            image.report("history of the root", "only the journal may hold the root's states")
            continue
        if past[0][1] is not None:
            image.report(place, "its first state is not that of a leaf")
        after = [was for _, was in past[1:]] + [image.states.get(row)]
        for (seq, _), state in zip(past, after, strict=True):
            if state is None:
                image.report(place, f"no state after commit {seq}")
            else:
                found[seq].append((image.nodes[row].id, state))
    for before, commit in pairwise(image.commits):
        if commit.root_state != before.root_state:
            found[commit.seq].append((ROOT_ID, commit.root_state))
    return found
