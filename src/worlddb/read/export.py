"""Export: the journal as JSON Lines, commit by commit, complete enough to be played again.

    {"worlddb": 1}
    {"commit": 1, "time": …, "actor": …, "root_state": …, "hash": …, "nodes": 2, "edges": 1, …}
    {"node": id, "type": …, "name": …, "content": …, "created_at": …, "parent": id, …}
    {"edge": id, "type": …, "source": id, "target": id, "valid_from": …, "metadata": {…}, …}
    {"note": node id, "kind": "alias", "source" or "metadata", "text": …}

Each commit line is followed by its nodes, edges and notes as they were written; what later commits
changed about them is in those commits' `changes`. Times are microseconds since 1970 UTC.

The texts of what was erased are missing; such lines say "erased", and a commit's line says which
states it gave to worlds that are erased now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from worlddb.errors import InvalidInputError
from worlddb.model.address import ERASED
from worlddb.model.journal import GENESIS
from worlddb.read.check_rows import Rows
from worlddb.store.protocol import CommitRow, Reader

EXPORT_VERSION = 1


def export(reader: Reader, after: int = -1) -> Iterator[str]:
    """Yield the lines of an export of the commits above number `after`."""
    if isinstance(after, bool) or not isinstance(after, int):
        raise InvalidInputError(f"after: give a commit's number, not {after!r}")
    yield _line({"worlddb": EXPORT_VERSION})
    first = _first_values(reader)
    erased = Rows()
    erased.load_erased(reader)
    states = _erased_states(reader, erased)
    ids: dict[int, str] = {}
    low = CommitRow(-1, 0, "", b"", GENESIS, 0, 0, 0, "[]")
    seq = -1
    while commits := reader.commits(seq, 1, False):
        commit = commits[0]
        seq = commit.seq
        if seq > after:
            yield from _commit(reader, commit, low, first, ids, erased, states.get(seq, {}))
        low = commit
    yield _line({"end": seq})


def _commit(
    reader: Reader,
    commit: CommitRow,
    low: CommitRow,
    first: dict[tuple[str, int], Any],
    ids: dict[int, str],
    erased: Rows,
    states: dict[str, str],
) -> Iterator[str]:
    def hex_id(row: int) -> str:
        if row not in ids:
            ids[row] = reader.world(row).id.hex()
        return ids[row]

    yield _line(
        {
            "commit": commit.seq,
            "time": commit.time,
            "actor": commit.actor,
            "root_state": commit.root_state.hex(),
            "hash": commit.hash.hex(),
            "nodes": commit.nodes - low.nodes,
            "edges": commit.edges - low.edges,
            "notes": commit.notes - low.notes,
            "changes": json.loads(commit.changes),
            **({"erased": True} if commit.seq in erased.erased_commits else {}),
            **({"states": states} if states else {}),
        }
    )
    scan = reader.scan
    for node in scan.nodes(low.nodes + 1, commit.nodes):
        parent = first.get(("node.parent", node.row), node.parent)
        ids[node.row] = node.id.hex()
        yield _line(
            {
                "node": node.id.hex(),
                "type": node.type,
                "name": node.name,
                "content": node.content,
                "created_at": node.created_at,
                "parent": None if parent is None else hex_id(parent),
                "valid_from": node.valid_from,
                "valid_to": first.get(("node.valid_to", node.row), node.valid_to),
                **({"erased": True} if node.created_at == ERASED else {}),
            }
        )
    for edge in scan.edges(low.edges + 1, commit.edges):
        yield _line(
            {
                "edge": edge.id.hex(),
                "type": edge.type,
                "source": hex_id(edge.source),
                "target": hex_id(edge.target),
                "valid_from": edge.valid_from,
                "valid_to": first.get(("edge.valid_to", edge.row), edge.valid_to),
                "metadata": json.loads(edge.metadata),
                "generation": edge.generation,
                **({"erased": True} if edge.id in erased.erased_edges else {}),
            }
        )
    for _, node_row, kind, text, _ in scan.notes(low.notes + 1, commit.notes):
        yield _line({"note": hex_id(node_row), "kind": kind, "text": text})


def _first_values(reader: Reader) -> dict[tuple[str, int], Any]:
    """Return what each changed projection said at birth."""
    first: dict[tuple[str, int], Any] = {}
    for field, row, _, was in reader.scan.history():
        first.setdefault((field, row), was)
    return first


def _erased_states(reader: Reader, erased: Rows) -> dict[int, dict[str, str]]:
    """Return the states that commits gave to worlds that were erased later, by commit.

    They were hashed from fields that are gone. The commits' hashes vouch for them.
    """
    rows = {row for ident in erased.erased if (row := reader.node_row(ident)) is not None}
    past: dict[int, list[tuple[int, Any]]] = {}
    for field, row, seq, was in reader.scan.history() if rows else ():
        if field == "node.state" and row in rows:
            past.setdefault(row, []).append((seq, was))
    states: dict[int, dict[str, str]] = {}
    for row, changes in past.items():
        world = reader.world(row)
        after = [was for _, was in changes[1:]] + [world.state]
        for (seq, _), state in zip(changes, after, strict=True):
            states.setdefault(seq, {})[world.id.hex()] = (state or world.id).hex()
    return states


def _line(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
