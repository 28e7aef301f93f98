"""Field index: evaluates filters on columns of metadata, sources, types and times.

    notes of the store ──follow──▶ columns ──row_filter(condition)──▶ RowFilter

The index is derived and held in memory: the first filter of a process reads the notes once, later
filters read the new ones. A column has one entry for each value of a key, with the note that states
it and the commit of that note. So a filter is a few array operations, at any known time. From the
database it needs only the notes.

F1  If several notes of one node have the same key, the latest up to the requested commit counts.
F2  `valid_to`, which changes, and `known_from` have no column. They are compared node by node, for
    the nodes that the rest of the filter leaves open; `valid_to` only for nodes that have or had an
    end.
"""

from __future__ import annotations

import json
import math
import threading
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worlddb.model.conditions import RANGES, Condition, comparison, flat, matches
from worlddb.model.inputs import said_by
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, Head

Mask = NDArray[np.bool_]
ERASE = '"erase"'
"""Field of a commit that records an erasure; the index is then built again."""
PLAIN = (str, int, float, bool)
SOURCE, TYPE, SPEAKER, START, END = "source", "type", "speaker", "valid_from", "valid_to"
NODES_BATCH = 100_000
"""Nodes read per statement: few enough to hold, so many that the statement costs nothing."""


class Column:
    """The values of one key: entries of (row, note, commit, number of the distinct value)."""

    def __init__(self) -> None:
        self._entries = array("q")
        self._held: NDArray[np.int64] = np.zeros((0, 4), dtype=np.int64)
        self._floats: NDArray[np.float64] = np.zeros(0)
        self.values: list[tuple[Any, bool]] = []
        self._numbers: dict[tuple[bool, Any, bool], int] = {}

    def add(self, row: int, note: int, born: int, value: Any, listed: bool = False) -> None:
        """Add an entry; notes must come in the order of writing."""
        key = (isinstance(value, bool), value, listed)
        number = self._numbers.setdefault(key, len(self.values))
        if number == len(self.values):
            self.values.append((value, listed))
        self._entries.extend((row, note, born, number))

    def add_all(self, rows: Sequence[int], values: Sequence[Any]) -> None:
        """Add values of nodes that come from no note and are valid at every commit."""
        numbers = self._numbers
        for value in dict.fromkeys(values):
            if numbers.setdefault((False, value, False), len(self.values)) == len(self.values):
                self.values.append((value, False))
        block = np.zeros((len(rows), 4), dtype=np.int64)
        block[:, 0] = rows
        block[:, 3] = [numbers[False, value, False] for value in values]
        self._entries.frombytes(block.tobytes())

    def entries(self) -> NDArray[np.int64]:
        """Return all entries, one per row of the array."""
        if 4 * len(self._held) != len(self._entries):
            self._held = np.array(self._entries, dtype=np.int64).reshape(-1, 4)
        return self._held

    def numbers_of(self, condition: Condition) -> Mask:
        """Return for which distinct values a comparison is true."""
        found = np.zeros(len(self.values), dtype=np.bool_)
        wanted = {"$eq": (condition.value,), "$in": condition.value}.get(condition.operator)
        if wanted is not None:
            both = ((one, listed) for one in wanted for listed in (False, True))
            keys = ((isinstance(one, bool), one, listed) for one, listed in both)
            found[[self._numbers[key] for key in keys if key in self._numbers]] = True
        elif condition.operator in RANGES and not isinstance(condition.value, str):
            return RANGES[condition.operator](self._numeric(), _as_float(condition.value))  # type: ignore[return-value]
        else:
            holds = comparison(condition)
            found[[number for number, one in enumerate(self.values) if holds(*one)]] = True
        return found

    def _numeric(self) -> NDArray[np.float64]:
        """Return the distinct values as numbers; NaN, which compares as false, for other values."""
        held = len(self._floats)
        if held < len(self.values):
            more = (
                _as_float(one)
                if isinstance(one, int | float) and not isinstance(one, bool)
                else np.nan
                for one, _ in self.values[held:]
            )
            self._floats = np.concatenate((self._floats, np.fromiter(more, np.float64)))
        return self._floats


def _as_float(number: float) -> float:
    """Return a number as a float; infinite if it is larger than any float."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


class RowFilter:
    """The rows of one snapshot that match a condition; see `view.node_filters.RowJudge`."""

    def __init__(self, reader: Reader, condition: Condition, known: int | None) -> None:
        self._reader = reader
        self._condition = condition
        self._known = known
        self.surely: Mask = np.zeros(0, dtype=np.bool_)
        self.maybe: Mask = self.surely

    def mask(self, rows: NDArray[np.int64]) -> Mask:
        inside = rows < len(self.maybe)
        found: Mask = np.zeros(len(rows), dtype=np.bool_)
        found[inside] = self.surely[rows[inside]]
        open_ = ~inside
        open_[inside] = (self.maybe & ~self.surely)[rows[inside]]
        if open_.any():
            nodes = self._reader.nodes(rows[open_].tolist(), self._known)
            true = [row for row, node in nodes.items() if matches(node, self._condition)]
            found |= open_ & np.isin(rows, true)
        return found

    def keep(self, rows: Iterable[int]) -> set[int]:
        wanted = np.fromiter(rows, np.int64)
        return set(wanted[self.mask(wanted)].tolist())

    def few(self, most: int, among: NDArray[np.int64] | None = None) -> list[int] | None:
        rows = np.flatnonzero(self.maybe)
        if among is not None:
            rows = rows[np.isin(rows, among, assume_unique=True)]
        return None if len(rows) > most else rows[self.mask(rows)].tolist()


class FieldIndex:
    """The columns of one open store, kept up to date from its journal."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._head: Head | None = None
        # By path, then by the outermost key.
        self._columns: dict[str, dict[str, Column]] = defaultdict(lambda: defaultdict(Column))
        self._noted: set[int] = set()
        # Outermost keys in notes after a node's first one.
        self._again: dict[str, Column] = defaultdict(Column)
        self._sources = Column()
        self._of_nodes: dict[str, Column] = {}
        self._nodes = ROOT_ROW
        self._ends: list[int] = []  # Nodes that had an end when written.
        self._ends_nodes = 0

    def row_filter(self, reader: Reader, condition: Condition, known: int | None) -> RowFilter:
        """Return the filter for a condition on the rows of a snapshot."""
        found = RowFilter(reader, condition, known)
        head = reader.head()
        with self._lock:
            self._follow(reader, head)
            fields = {field for field, of_node in condition.fields() if of_node}
            if fields & {TYPE, SPEAKER, START}:
                self._follow_nodes(reader, head)
            ends = self._with_ends(reader, head) if END in fields else []
            at = head.seq if known is None else min(known, head.seq)
            found.surely, found.maybe = self._masks(condition, at, head.nodes + 1, ends)
        return found

    def _follow(self, reader: Reader, head: Head) -> None:
        """Read the notes up to a commit."""
        before = self._head
        if before is not None and before.seq < head.seq:
            commits = reader.commits(before.seq, head.seq - before.seq, False)
            if any(ERASE in commit.changes for commit in commits):
                self._forget()
                before = None
        elif before is not None and before.hash != head.hash and before.seq == head.seq:
            self._forget()  # A backup was restored.
            before = None
        if before is not None and before.seq >= head.seq:
            return
        first = 1 if before is None else before.notes + 1
        for note in reader.scan.notes(first, head.notes):
            if note.kind == "source" and note.text:
                self._sources.add(note.node, note.row, note.born, note.text)
            elif note.kind == "metadata":
                self._take_in(note.node, note.row, note.born, json.loads(note.text))
        self._head = head

    def _take_in(self, node: int, note: int, born: int, metadata: dict[str, Any]) -> None:
        is_again = node in self._noted
        self._noted.add(node)
        for top, value in metadata.items():
            if is_again:
                self._again[top].add(node, note, born, None)
            plain = ((top, value, False),) if isinstance(value, PLAIN) else flat({top: value})
            for path, one, listed in plain:
                self._columns[path][top].add(node, note, born, one, listed)

    def _follow_nodes(self, reader: Reader, head: Head) -> None:
        """Read the types, speakers and beginnings of new nodes; these never change."""
        columns = {
            name: self._of_nodes.setdefault(name, Column()) for name in (TYPE, SPEAKER, START)
        }
        for first in range(self._nodes + 1, head.nodes + 1, NODES_BATCH):
            found = reader.placed.traits(first, min(first + NODES_BATCH - 1, head.nodes))
            if not found:
                continue
            rows, types, starts, speakers = zip(*found, strict=True)
            columns[TYPE].add_all(rows, types)
            columns[START].add_all(rows, starts)
            turns = [at for at, type_ in enumerate(types) if type_ == "Turn"]
            columns[SPEAKER].add_all(
                [rows[at] for at in turns], [said_by(speakers[at]) for at in turns]
            )
        self._nodes = max(self._nodes, head.nodes)

    def _with_ends(self, reader: Reader, head: Head) -> list[int]:
        """Return the nodes that have or had an end; a comparison is false for all others."""
        if self._ends_nodes < head.nodes:
            self._ends += reader.placed.ending(self._ends_nodes + 1, head.nodes)
            self._ends_nodes = head.nodes
        return [*self._ends, *reader.placed.ended_later()]

    # -- evaluation --------------------------------------------------------------------------------

    def _masks(
        self, condition: Condition, at: int, size: int, ends: Sequence[int]
    ) -> tuple[Mask, Mask]:
        """Return the rows that match a condition for certain, and the rows that may match."""
        if condition.parts:
            surely, maybe = zip(
                *(self._masks(part, at, size, ends) for part in condition.parts), strict=True
            )
            if condition.operator == "$not":
                return ~maybe[0], ~surely[0]
            join = np.logical_and if condition.operator == "$and" else np.logical_or
            return join.reduce(surely), join.reduce(maybe)
        found = np.zeros(size, dtype=np.bool_)
        if not condition.of_node:
            for top, column in self._columns.get(condition.field, {}).items():
                self._mark(found, column, condition, at, self._latest(top, at, size))
        elif condition.field == SOURCE:
            self._mark(found, self._sources, condition, at)
        elif condition.field in self._of_nodes:
            self._mark(found, self._of_nodes[condition.field], condition, at)
        elif condition.field == END:
            maybe_ended = found.copy()
            maybe_ended[[row for row in ends if row < size]] = True
            return found, maybe_ended
        else:
            return found, ~found
        return found, found

    def _latest(self, top: str, at: int, size: int) -> NDArray[np.int64] | None:
        """Return for each row the last note up to a commit that states an outermost key again."""
        if top not in self._again:
            return None
        rows, notes, borns, _ = self._again[top].entries().T
        latest = np.zeros(size, dtype=np.int64)
        chosen = (borns <= at) & (rows < size)
        latest[rows[chosen]] = notes[chosen]  # Notes are ordered, so the last one wins.
        return latest

    def _mark(
        self,
        found: Mask,
        column: Column,
        condition: Condition,
        at: int,
        latest: NDArray[np.int64] | None = None,
    ) -> None:
        """Mark the rows that have a value for which a comparison is true."""
        rows, notes, borns, numbers = column.entries().T
        chosen = column.numbers_of(condition)[numbers] & (borns <= at) & (rows < len(found))
        rows = rows[chosen]
        if latest is not None:
            rows = rows[latest[rows] <= notes[chosen]]
        found[rows] = True
