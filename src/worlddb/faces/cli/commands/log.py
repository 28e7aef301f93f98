"""`worlddb log` and `worlddb diff`: the commits, and what they changed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.faces.cli.command_options import command, flag, number, wants_json
from worlddb.faces.cli.command_store import open_to_read
from worlddb.faces.cli.terminal import Cell, iso, preview, print_json, print_table

if TYPE_CHECKING:
    from worlddb.model.records import Diff


@command(
    "log",
    number("--after", "SEQ", "only commits above this number", default=-1),
    number("--limit", "N", "list at most N commits"),
    flag("--newest-first", "begin with the last commit"),
)
def run_log(args: argparse.Namespace) -> int:
    """List the commits.

    List the commits: when, by whom, how many nodes and edges each added, how many
    other changes it made, and the root's state after it. Oldest first.

    Examples:
      worlddb log                            # everything since the store was made
      worlddb log --newest-first --limit 10  # the last ten commits
      worlddb log --after 41 --json          # commits 42 and up, with their changes
    """
    with open_to_read(args) as db:
        commits = db.log(after=args.after, limit=args.limit, newest_first=args.newest_first)
    if wants_json(args):
        from worlddb.faces.cli.result_printer import change_dict

        changed = [
            commit.to_dict() | {"changes": [change_dict(change) for change in commit.changes]}
            for commit in commits
        ]
        print_json(changed)
        return 0
    rows = [
        (
            commit.seq,
            iso(commit.time),
            commit.nodes,
            commit.edges,
            len(commit.changes),
            commit.root_state.short,
            commit.hash.short,
            commit.actor,
        )
        for commit in commits
    ]
    headers = ("seq", "time", "nodes", "edges", "changes", "root_state", "hash", "actor")
    print_table(headers, rows)
    return 0


@command(
    "diff FROM [TO]",
    number("seq_a", "FROM", "a commit's number, see 'log'"),
    number("seq_b", "TO", "the number of a later commit (default: the last)", nargs="?"),
)
def run_diff(args: argparse.Namespace) -> int:
    """Show what happened between two commits.

    Show what the commits after FROM did, up to and with TO (default: the last one):
    nodes and edges added (+), and every other effect (~).

    Examples:
      worlddb diff 41 42  # what commit 42 did
      worlddb diff 41     # everything since commit 41
    """
    with open_to_read(args) as db:
        last = args.seq_b
        if last is None:
            last = db.log(limit=1, newest_first=True)[0].seq
        found = db.diff(args.seq_a, last)
    if wants_json(args):
        from worlddb.faces.cli.result_printer import change_dict

        changes = {"changes": [change_dict(change) for change in found.changes]}
        print_json({"from": args.seq_a, "to": last} | found.to_dict() | changes)
        return 0
    print_table(("", "kind", "id", "type", "what"), diff_rows(found))
    return 0


def diff_rows(found: Diff) -> list[tuple[Cell, ...]]:
    """Return what commits did, a row each."""
    from worlddb.faces.cli.result_printer import change_text

    nodes = [
        ("+", "node", node.id.short, node.type, preview(node.name or node.content))
        for node in found.nodes
    ]
    edges = [
        ("+", "edge", edge.id.short, edge.type, f"{edge.source.short} → {edge.target.short}")
        for edge in found.edges
    ]
    changes = [
        ("~", change.kind, change.id.short, "", preview(change_text(change)))
        for change in found.changes
    ]
    return [*nodes, *edges, *changes]
