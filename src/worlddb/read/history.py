"""History: the journal as values. `diff` costs what changed, not what is there."""

from __future__ import annotations

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.model.address import Id
from worlddb.model.inputs import check_whole, from_micros
from worlddb.model.journal import GENESIS, decode_changes
from worlddb.model.records import Change, Commit, Diff, Node
from worlddb.store.protocol import CommitRow, Reader, to_commit

CHUNK = 10_000


def log(reader: Reader, after: int, limit: int | None, newest_first: bool) -> list[Commit]:
    """Return commits above number `after`, oldest first unless asked otherwise."""
    if isinstance(after, bool) or not isinstance(after, int):
        raise InvalidInputError(f"after: give a commit's number, not {after!r}")
    if limit is not None:
        limit = min(check_whole(limit, "limit", 0), reader.head().seq + 1)
    if after >= reader.head().seq:
        return []
    rows = reader.commits(max(after, -1), limit, newest_first)
    ordered = sorted(rows, key=lambda row: row.seq)
    if not ordered:
        return []
    previous = _before(reader, ordered[0])
    commits = []
    for row in ordered:
        commits.append(to_commit(row, previous) if previous else _genesis(row))
        previous = row
    return commits[::-1] if newest_first else commits


def _before(reader: Reader, row: CommitRow) -> CommitRow | None:
    return commit_row(reader, row.seq - 1) if row.seq else None


def _genesis(row: CommitRow) -> Commit:
    return Commit(
        seq=row.seq,
        time=from_micros(row.time),
        actor=row.actor,
        root_state=Id(row.root_state),
        hash=Id(row.hash),
        previous=GENESIS,
        nodes=row.nodes,
        edges=row.edges,
        changes=decode_changes(row.changes),
    )


def commit_row(reader: Reader, seq: int) -> CommitRow:
    """Return the journal's row of commit `seq`.

    Raises:
        NotFoundError: there is no such commit.
    """
    last = reader.head().seq
    if not 0 <= seq <= last:
        raise NotFoundError(f"there is no commit {seq}; the last is {last}")
    return reader.commits(seq - 1, 1, False)[0]


def diff(reader: Reader, first: int, last: int) -> Diff:
    """Return what commits `first + 1` to `last` did.

    Raises:
        InvalidInputError: `first` is after `last`.
        NotFoundError: there is no such commit.
    """
    for seq in (first, last):
        if isinstance(seq, bool) or not isinstance(seq, int):
            raise InvalidInputError(f"diff: give the numbers of two commits, not {seq!r}")
    if first > last:
        raise InvalidInputError(f"diff({first}, {last}): give the earlier commit first")
    start, end = commit_row(reader, first), commit_row(reader, last)
    nodes: list[Node] = []
    for low in range(start.nodes + 1, end.nodes + 1, CHUNK):
        rows = range(low, min(low + CHUNK, end.nodes + 1))
        found = reader.nodes(rows, last)
        nodes += [found[row] for row in rows]
    rows = range(start.edges + 1, end.edges + 1)
    edges = tuple(item.edge for item in reader.edges_between(rows.start, rows.stop - 1, last))
    changes: list[Change] = []
    if last > first:
        for row in reader.commits(first, last - first, False):
            changes += decode_changes(row.changes)
    return Diff(nodes=tuple(nodes), edges=edges, changes=tuple(changes))
