"""`worlddb amend`: say a memory anew."""

from __future__ import annotations

import argparse

from worlddb.faces.cli.given import given_mapping, given_text
from worlddb.faces.cli.options import Subparsers, add_command, add_writing_options, wants_json
from worlddb.faces.cli.scoping import add_scope_options, scope_ids
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.told import print_written


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "amend",
        arguments="ID TEXT | -",
        summary="say a memory anew; the old one ends",
        description=(
            "Write a new memory that supersedes the one whose id begins with ID, in the same\n"
            "scopes. The old one ends when the new one begins, and can still be read. With a\n"
            "scope, only what is inside it is found."
        ),
        examples=(
            ('worlddb amend 3f2a "Sarah likes black coffee"', "from now on"),
            ('worlddb amend 3f2a "Lives in Rome" --at 2026-03-01T00:00Z', "since then"),
        ),
    )
    parser.add_argument("id", metavar="ID", help="a memory's id, or the start of it")
    parser.add_argument("text", metavar="TEXT", help="what it says now; '-' is stdin")
    add_scope_options(parser)
    add_writing_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Amend, and say what that did."""
    text = given_text(args.text)
    metadata = given_mapping(args.metadata, "--metadata")
    with open_memories(args, reads=True) as memory:
        done = memory.amend(
            args.id, text, at=args.at, source=args.source, metadata=metadata, **scope_ids(args)
        )
    print_written(done, as_json=wants_json(args))
    return 0
