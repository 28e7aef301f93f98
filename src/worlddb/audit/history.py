"""History: the journal as public values, and what it says was erased.

The cost of `diff` depends on what changed between two commits, not on the size of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.model.inputs import check_whole
from worlddb.model.records import (
    GENESIS,
    Change,
    Commit,
    Diff,
    Edge,
    Node,
    decode_changes,
    has_erased,
)
from worlddb.store.interface import Reader
from worlddb.store.rows import CommitRow
from worlddb.write.commit import to_commit

DIFF_ROWS_PER_READ = 10_000
"""Nodes or edges that `diff` reads at once. Bounds the memory of one call; not measured."""
BEFORE_FIRST = CommitRow(
    seq=-1, time=0, actor="", root_state=b"", hash=GENESIS, nodes=0, edges=0, notes=0, changes="[]"
)
"""What stands before commit 0, so that the first commit is counted like any other."""


class Erasures(NamedTuple):
    """What the journal says was erased: whole nodes, the metadata of edges, parts of commits."""

    nodes: set[bytes]
    edges: set[bytes]
    commits: set[int]


def erasures(reader: Reader) -> Erasures:
    """Return everything that any commit erased."""
    found = Erasures(set(), set(), set())
    for commit in reader.commits(-1, None, False):
        if not has_erased(commit.changes):
            continue
        for change in decode_changes(commit.changes):
            if change.kind == "erase":
                found.nodes.add(bytes(change.id))
                found.edges.update(map(bytes.fromhex, change.detail.get("edges", ())))
                found.commits.update(change.detail.get("commits", ()))
    return found


def log(reader: Reader, after: int, limit: int | None, newest_first: bool) -> list[Commit]:
    """Return the commits above number `after`, oldest first unless `newest_first` is set.

    Raises:
        InvalidInputError: `after` or `limit` is not a whole number.
    """
    check_commit_number(after, "after")
    last = reader.head().seq
    if limit is not None:
        limit = min(check_whole(limit, "limit", 0), last + 1)
    if after >= last:
        return []
    rows = sorted(reader.commits(max(after, -1), limit, newest_first), key=lambda row: row.seq)
    if not rows:
        return []
    first = rows[0].seq
    before = commit_row(reader, first - 1) if first else BEFORE_FIRST
    commits = [to_commit(row, previous) for previous, row in pairwise([before, *rows])]
    return commits[::-1] if newest_first else commits


def commit_row(reader: Reader, seq: int) -> CommitRow:
    """Return the journal row of commit `seq`; NotFoundError without one."""
    last = reader.head().seq
    if not 0 <= seq <= last:
        raise NotFoundError(f"there is no commit {seq}; the last is {last}")
    return reader.commits(seq - 1, 1, False)[0]


class Sight(NamedTuple):
    """What of a difference is told: all of it, or what a caller can see."""

    sees: Callable[[Sequence[bytes]], bool] = lambda ids: True
    sees_change: Callable[[Change], bool] = lambda change: True


EVERYTHING = Sight()


def diff(
    reader: Reader,
    first: int | str,
    last: int | None,
    limit: int | None = None,
    sight: Sight = EVERYTHING,
) -> Diff:
    """Return what commits `first + 1` to `last` (default: the last there is) wrote and changed.

    With `limit`, at most so many nodes, edges and changes each, the earliest; no more are read.

    Raises:
        InvalidInputError: `first` is after `last`, or one of them is not a whole number.
        NotFoundError: there is no such commit.
    """
    first = check_commit_number(first, "diff")
    last = reader.head().seq if last is None else check_commit_number(last, "diff")
    if first > last:
        raise InvalidInputError(f"diff({first}, {last}): give the earlier commit first")
    start, end = commit_row(reader, first), commit_row(reader, last)
    part = DIFF_ROWS_PER_READ if limit is None else min(limit + 1, DIFF_ROWS_PER_READ)

    def nodes() -> Iterator[Node]:
        for rows in _parts(start.nodes + 1, end.nodes + 1, part):
            found = reader.nodes(rows, last)
            yield from (found[row] for row in rows if sight.sees([found[row].id]))

    def edges() -> Iterator[Edge]:
        for rows in _parts(start.edges + 1, end.edges + 1, part):
            found = [item.edge for item in reader.edges_between(rows[0], rows[-1], known=last)]
            yield from (edge for edge in found if sight.sees([edge.source, edge.target]))

    def changes() -> Iterator[Change]:
        for row in reader.commits(first, last - first, False) if last > first else ():
            yield from (one for one in decode_changes(row.changes) if sight.sees_change(one))

    most = None if limit is None else limit + 1
    found = [*islice(nodes(), most)], [*islice(edges(), most)], [*islice(changes(), most)]
    return Diff(
        nodes=tuple(found[0][:limit]),
        edges=tuple(found[1][:limit]),
        changes=tuple(found[2][:limit]),
        cut=limit is not None and any(len(one) > limit for one in found),
    )


def _parts(first: int, end: int, size: int) -> Iterator[range]:
    """Return the numbers from `first` up to `end`, some at a time."""
    return (range(low, min(low + size, end)) for low in range(first, end, size))


def check_commit_number(given: object, parameter: str) -> int:
    """Return a commit number; InvalidInputError for what is none."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidInputError(f"{parameter}: give a commit number, not {given!r}")
    return given
