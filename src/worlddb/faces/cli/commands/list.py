"""`worlddb list` and `worlddb children`: the memories of a scope, and the nodes of a world."""

from __future__ import annotations

import argparse

from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import add_call_command
from worlddb.faces.cli.command_options import (
    Subparsers,
    add_as_of_options,
    add_command,
    as_of,
    wants_json,
)
from worlddb.faces.cli.command_store import open_to_read
from worlddb.faces.cli.terminal import iso, preview, print_json, print_table


def add_list(subparsers: Subparsers) -> None:
    """Add the command."""
    add_call_command(
        subparsers,
        call_named("list"),
        summary="list memories, the latest first",
        description=(
            "List the memories of a scope, the latest first. A memory is listed if it is in a\n"
            "scope of every kind that is named. Without a scope, list those of the user that\n"
            "$WORLDDB_SCOPE or the settings file names, else of the user 'default'."
        ),
        examples=(
            ("worlddb list", "yours"),
            ("worlddb list --user-id ada --agent-id helper", "what the helper knows of Ada"),
            ("worlddb list --include-retired --limit 10", "also what has ended"),
            ("worlddb scopes", "whose memories there are"),
        ),
    )


def add_children(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "children",
        arguments="[ID]",
        summary="list the nodes that live in a world",
        description=(
            "List the nodes that live in a world, in the order of writing: the root world,\n"
            "or the one whose id begins with ID. What has ended is left out unless you ask."
        ),
        examples=(
            ("worlddb children", "what lives in the root world"),
            ("worlddb children 3f2a --include-superseded", "also what has ended"),
            ("worlddb children --as-of 2025-06-01T00:00:00Z", "what was true that day"),
        ),
    )
    parser.add_argument("id", metavar="ID", nargs="?", help="a world's id, or the start of it")
    parser.add_argument(
        "--include-superseded", action="store_true", help="list what has ended as well"
    )
    add_as_of_options(parser)
    parser.set_defaults(run=run_children)


def run_children(args: argparse.Namespace) -> int:
    """Print the children."""
    with open_to_read(args) as db:
        nodes = db.children(args.id, as_of=as_of(args), include_superseded=args.include_superseded)
    if wants_json(args):
        print_json([node.to_dict() for node in nodes])
        return 0
    rows = [
        (
            node.id.short,
            node.type,
            iso(node.valid_from),
            iso(node.valid_to),
            preview(node.name or node.content),
        )
        for node in nodes
    ]
    print_table(("id", "type", "valid_from", "valid_to", "name or content"), rows)
    return 0
