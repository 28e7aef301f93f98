"""History: commits and their differences, erasures, and proofs of nodes and of the journal.

The cost of `diff` depends on what changed between two commits, not on the size of the store.
`prove` gives the path from a node to the root state; `prove_history` shows that the journal has
only grown since a commit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.index.set_pages import PageSource, PresentPages, digest_of, leaf_and_forks
from worlddb.model.address import ERASED, GENESIS, Id, trusted_id
from worlddb.model.inputs import check_integer
from worlddb.model.proof import Checkpoint, HistoryProof, Proof, Step, log_fork, log_leaf
from worlddb.model.records import Change, Commit, Diff, Edge, Node, decode_changes, has_erased
from worlddb.store.interface import Reader
from worlddb.store.rows import CHILDREN, EDGES, CommitRow, World
from worlddb.write.commit import to_commit

DIFF_ROWS_PER_READ = 10_000
"""Nodes or edges that `diff` reads at once; bounds the memory of one call."""
BEFORE_FIRST = CommitRow(
    seq=-1, time=0, actor="", root_state=b"", hash=GENESIS, nodes=0, edges=0, notes=0, changes="[]"
)
"""The commit before commit 0, so that the first commit is counted like any other."""


class Erasures(NamedTuple):
    """Everything the journal records as erased: nodes, metadata of edges, parts of commits."""

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
        limit = min(check_integer(limit, "limit", 0), last + 1)
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
    """The part of a difference that a caller may see; by default all."""

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
    """Return the writes and changes of commits `first + 1` to `last` (default: the last one).

    With `limit`, at most that many nodes, edges and changes each, the earliest; no more are read.

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

    # `islice` takes no larger number.
    most = None if limit is None or limit >= sys.maxsize else limit + 1
    found = [*islice(nodes(), most)], [*islice(edges(), most)], [*islice(changes(), most)]
    return Diff(
        nodes=tuple(found[0][:limit]),
        edges=tuple(found[1][:limit]),
        changes=tuple(found[2][:limit]),
        cut=limit is not None and any(len(one) > limit for one in found),
    )


def _parts(first: int, end: int, size: int) -> Iterator[range]:
    """Yield the numbers from `first` up to `end` as ranges of limited size."""
    return (range(low, min(low + size, end)) for low in range(first, end, size))


def check_commit_number(given: object, parameter: str) -> int:
    """Return a commit number; InvalidInputError if it is not one."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidInputError(f"{parameter}: give a commit number, not {given!r}")
    return given


# Proof path: the hashes from one node up to the root state, for anyone to verify.
#
# `worlddb.verify_proof` checks a proof with blake3 alone; it needs no store.


def prove(reader: Reader, row: int) -> Proof:
    """Return the proof that the node at `row` is part of the current root state."""
    node = reader.world(row)
    pages = PresentPages(reader)
    steps = []
    child = node
    while child.parent is not None:
        parent = reader.world(child.parent)
        steps.append(_step(pages, parent, child))
        child = parent
    return Proof(id=node.id.hex(), state=(node.state or node.id).hex(), steps=tuple(steps))


def _step(pages: PageSource, world: World, child: World) -> Step:
    """Return the fields needed to hash `world` again from the state of its child."""
    members, forks = leaf_and_forks(pages, world.row, CHILDREN, child.id)
    return Step(
        id=world.id.hex(),
        type=world.type,
        name=world.name,
        content=world.content,
        created_at=world.created_at,
        blind=world.blind.hex(),
        erased=world.created_at == ERASED,
        edges=digest_of(pages, world.row, EDGES).hex(),
        bucket=tuple(member.hex() for member in members),
        forks=tuple(tuple(part.hex() for part in fork) for fork in reversed(forks)),
    )


# The log of commits.

COMMITS_PER_READ = 10_000  # bounds the memory of one read: a commit's changes may be long


def prove_history(reader: Reader, since: int) -> HistoryProof:
    """Return a proof that the commits up to `since` were not changed.

    Raises:
        InvalidInputError: `since` is not a commit number.
        NotFoundError: there is no such commit.
    """
    check_commit_number(since, "since")
    first, last = commit_row(reader, since), commit_row(reader, reader.head().seq)
    if first.seq > last.seq:
        raise InvalidInputError(f"since {since}: the last commit is {last.seq}")
    tree = _LogTree(reader, last.seq + 1)
    checkpoints = [
        Checkpoint(
            commit=row.seq,
            hash=Id(row.hash),
            root_state=Id(row.root_state),
            log_head=Id(tree.head(0, row.seq + 1)),
            path=tuple(map(trusted_id, tree.left_parts(row.seq + 1))),
        )
        for row in (first, last)
    ]
    path = tree.growth(first.seq + 1, 0, last.seq + 1, True)
    return HistoryProof(
        first=checkpoints[0], last=checkpoints[1], path=tuple(map(trusted_id, path))
    )


class _LogTree:
    """The hash tree over the first `count` commits: the complete parts, level by level."""

    def __init__(self, reader: Reader, count: int) -> None:
        leaves: list[bytes] = []
        while len(leaves) < count:
            most = min(COMMITS_PER_READ, count - len(leaves))
            rows = reader.commits(len(leaves) - 1, most, False)
            leaves += [log_leaf(row.hash, row.root_state) for row in rows]
        self.levels = [leaves]
        while len(below := self.levels[-1]) > 1:
            pairs = zip(below[::2], below[1::2], strict=False)
            self.levels.append([log_fork(left, right) for left, right in pairs])

    def head(self, start: int, end: int) -> bytes:
        """Return the head of the commits from `start` up to `end`; `start` divides by the size."""
        size = end - start
        if size & (size - 1) == 0:
            return self.levels[size.bit_length() - 1][start // size]
        middle = start + _cut(size)
        return log_fork(self.head(start, middle), self.head(middle, end))

    def left_parts(self, end: int) -> list[bytes]:
        """Return the parts to the left of the last of `end` commits, the nearest part first."""
        parts, start = [], 0
        while end - start > 1:
            middle = start + _cut(end - start)
            parts.append(self.head(start, middle))
            start = middle
        return parts[::-1]

    def growth(self, first: int, start: int, end: int, is_whole: bool) -> list[bytes]:
        """Return the path from the first `first` commits to all up to `end` (RFC 9162, 2.1.4.1)."""
        if first == end:
            return [] if is_whole else [self.head(start, end)]
        middle = start + _cut(end - start)
        if first <= middle:
            return [*self.growth(first, start, middle, is_whole), self.head(middle, end)]
        return [*self.growth(first, middle, end, False), self.head(start, middle)]


def _cut(size: int) -> int:
    """Return the largest power of 2 below a size."""
    return 1 << ((size - 1).bit_length() - 1)
