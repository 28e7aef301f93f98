"""`worlddb check`: hash everything again."""

from __future__ import annotations

import argparse

from worlddb.faces.cli.exit_codes import FOUND, OK
from worlddb.faces.cli.options import Subparsers, add_command, wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.stores import open_to_read, store_path
from worlddb.faces.cli.terminal import paint, print_json, print_table


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "check",
        summary="check that the store is sound",
        description=(
            "Hash every node, edge and commit again and compare it with every index and the\n"
            "journal. The exit code is 0 for a sound store and 1 if anything does not fit."
        ),
        examples=(
            ("worlddb check", "say what does not fit, if anything"),
            ("worlddb check --db backup.db --json", "check a backup, for a script"),
        ),
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check, and print the problems."""
    with open_to_read(args) as db:
        with Progress("checking"):
            problems = db.check()
        # Of a damaged journal nothing more can be said.
        last = None if problems else db.log(limit=1, newest_first=True)[0]
    if wants_json(args):
        print_json(
            {
                "path": store_path(args),
                "sound": not problems,
                "commit": last and last.seq,
                "root_state": last and str(last.root_state),
                "problems": [problem.to_dict() for problem in problems],
            }
        )
    elif last is not None:
        print(f"{paint('sound', 'green')}: up to commit {last.seq}, root state {last.root_state}")
    else:
        print(f"{paint('not sound', 'red')}: problems found: {len(problems)}")
        print_table(("place", "problem"), [(found.place, found.message) for found in problems])
    return FOUND if problems else OK
