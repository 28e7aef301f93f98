"""Projections: play the journal's changes again and compare with what the tables say."""

from __future__ import annotations

from typing import Any

from worlddb.model.records import Change
from worlddb.read.check_rows import Rows
from worlddb.store.protocol import Reader


class _Replay:
    """The projections as the journal alone says they are."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.now: dict[tuple[str, int], Any] = {}
        self.history: dict[tuple[str, int], list[tuple[int, Any]]] = {}
        self.gone: dict[int, int] = {}
        self.proposals: dict[int, tuple[Any, ...]] = {}
        self.conflicts: dict[int, tuple[Any, ...]] = {}
        self.registrations: dict[tuple[int, str], tuple[Any, ...]] = {}

    def _set(self, field: str, row: int, seq: int, value: Any, before: Any) -> None:
        was = self.now.get((field, row), before)
        past = self.history.setdefault((field, row), [])
        if not past or past[-1][0] != seq:
            past.append((seq, was))
        self.now[field, row] = value

    def play(self, seq: int, change: Change) -> None:
        """Repeat one change."""
        rows, detail, kind = self.rows, change.detail, change.kind
        if kind == "erase":
            return
        if kind in ("close_node", "place", "register"):
            row = rows.node_rows[change.id]
        else:
            row = rows.edge_rows[change.id]
        if kind == "close_node" or kind == "close_edge":
            field = f"{kind.removeprefix('close_')}.valid_to"
            present = rows.node_valid_to if kind == "close_node" else rows.edge_valid_to
            self._set(field, row, seq, detail["valid_to"], rows.first(field, row, present[row]))
        elif kind == "place":
            before = rows.first("node.parent", row, rows.parents[row])
            world = rows.node_rows[bytes.fromhex(detail["world"])]
            self._set("node.parent", row, seq, world, before)
        elif kind == "delete_edge":
            self.gone[row] = seq
        elif kind == "propose":
            low, high = sorted(rows.edge_ends[row])
            staged = (detail["tier"], detail["score"], detail["evidence"], seq)
            self.proposals[row] = (low, high, "pending", *staged)
        elif kind == "decide":
            self._set("proposal.status", row, seq, detail["status"], self.proposals[row][2])
            self.proposals[row] = (
                *self.proposals[row][:2],
                detail["status"],
                *self.proposals[row][3:],
            )
        elif kind == "flag":
            low, high = sorted(rows.edge_ends[row])
            self.conflicts[row] = (low, high, detail["reason"], seq, None)
        elif kind == "settle":
            self.conflicts[row] = (*self.conflicts[row][:4], seq)
        elif kind == "register":
            self.registrations[row, detail["type"]] = (
                detail["version"],
                int(detail["functional"]),
                seq,
            )
        else:
            rows.report(f"commit {seq}", f"it has an unknown change {kind!r}")


def check_projections(reader: Reader, rows: Rows) -> None:
    """Report every projection that the journal does not account for."""
    replay = _Replay(rows)
    for seq, change in rows.changes:
        replay.play(seq, change)
    _compare_fields(rows, replay)
    if replay.gone != rows.edge_gone:
        for row in replay.gone.keys() ^ rows.edge_gone.keys() or replay.gone.keys():
            if replay.gone.get(row) != rows.edge_gone.get(row):
                rows.report(f"edge row {row}", "its deletion is not what the journal says")
    scan = reader.scan
    _compare_table(rows, "proposal", replay.proposals, {r[0]: r[1:] for r in scan.proposals()})
    _compare_table(rows, "conflict", replay.conflicts, {r[0]: r[1:] for r in scan.conflicts()})
    rests = {
        (rows.edge_rows[premise], row): True
        for row, premises in rows.inferred.items()
        for premise in premises
        if rows.edge_rows.get(premise, row) < row
    }
    _compare_table(rows, "premise", rests, dict.fromkeys(scan.premises(), True))
    stored = {(row[0], row[1]): row[2:] for row in scan.registrations()}
    _compare_table(rows, "registration", replay.registrations, stored)


def _compare_fields(rows: Rows, replay: _Replay) -> None:
    """Compare validity, parents and statuses, present and past."""
    stored = {key: past for key, past in rows.history.items() if key[0] != "node.state"}
    for key in stored.keys() | replay.history.keys():
        if stored.get(key) != replay.history.get(key):
            rows.report(f"history of {key[0]} row {key[1]}", "it is not what the journal says")
    present = {
        "node.valid_to": rows.node_valid_to,
        "edge.valid_to": rows.edge_valid_to,
        "node.parent": rows.parents,
    }
    for (field, row), value in replay.now.items():
        if field in present and present[field].get(row) != value:
            rows.report(f"{field} row {row}", "it is not what the journal says")
    for row, parent in rows.parents.items():
        if parent is not None and parent not in rows.node_ids:
            rows.report(f"node {rows.node_ids[row].hex()[:12]}", "its parent does not exist")


def _compare_table(rows: Rows, what: str, expected: dict[Any, Any], stored: dict[Any, Any]) -> None:
    for key in expected.keys() | stored.keys():
        if expected.get(key) != stored.get(key):
            rows.report(f"{what} {key}", "it is not what the journal says")
