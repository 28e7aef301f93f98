"""`worlddb log` and `worlddb diff`: the commits, and what they changed."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.faces.cli.command_options import Subparsers, add_command, count, wants_json
from worlddb.faces.cli.command_store import open_to_read
from worlddb.faces.cli.terminal import Cell, iso, preview, print_json, print_table

if TYPE_CHECKING:
    from worlddb.model.records import Diff


def add_log(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "log",
        summary="list the commits",
        description=(
            "List the commits: when, by whom, how many nodes and edges each added, how many\n"
            "other changes it made, and the root's state after it. Oldest first."
        ),
        examples=(
            ("worlddb log", "everything since the store was made"),
            ("worlddb log --newest-first --limit 10", "the last ten commits"),
            ("worlddb log --after 41 --json", "commits 42 and up, with their changes"),
        ),
    )
    parser.add_argument(
        "--after", metavar="SEQ", type=count, default=-1, help="only commits above this number"
    )
    parser.add_argument("--limit", metavar="N", type=count, help="at most so many")
    parser.add_argument("--newest-first", action="store_true", help="begin with the last commit")
    parser.set_defaults(run=run_log)


def run_log(args: argparse.Namespace) -> int:
    """Print the commits."""
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


def add_diff(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "diff",
        arguments="FROM [TO]",
        summary="show what happened between two commits",
        description=(
            "Show what the commits after FROM did, up to and with TO (default: the last one):\n"
            "nodes and edges added (+), and every other effect (~)."
        ),
        examples=(
            ("worlddb diff 41 42", "what commit 42 did"),
            ("worlddb diff 41", "everything since commit 41"),
        ),
    )
    parser.add_argument("seq_a", metavar="FROM", type=count, help="a commit's number, see 'log'")
    parser.add_argument("seq_b", metavar="TO", type=count, nargs="?", help="a later one")
    parser.set_defaults(run=run_diff)


def run_diff(args: argparse.Namespace) -> int:
    """Print the difference."""
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
    print_table(("", "kind", "id", "type", "what"), _rows(found))
    return 0


def _rows(found: Diff) -> list[tuple[Cell, ...]]:
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
