"""`worlddb log`: the journal."""

from __future__ import annotations

import argparse

from worlddb.faces.cli.options import Subparsers, add_command, count, wants_json
from worlddb.faces.cli.stores import open_to_read
from worlddb.faces.cli.terminal import iso, print_json, print_table


def add_parser(subparsers: Subparsers) -> None:
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
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the commits."""
    with open_to_read(args) as db:
        commits = db.log(after=args.after, limit=args.limit, newest_first=args.newest_first)
    if wants_json(args):
        from worlddb.faces.cli.journal import change_dict

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
