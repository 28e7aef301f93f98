"""`worlddb fading`: what is hardly kept any more, for somebody to decide about."""

from __future__ import annotations

import argparse
import sys

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.options import Subparsers, add_command, count, wants_json
from worlddb.faces.cli.stores import open_to_read
from worlddb.faces.cli.terminal import preview, print_json, print_table


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "fading",
        summary="list memories that are hardly kept any more",
        description=(
            "List the memories of least retention: old, seldom recalled, hardly linked. Nothing\n"
            "is ended by this; see 'worlddb retire'."
        ),
        examples=(
            ("worlddb fading", "the 20 that have faded most"),
            ("worlddb fading --below 0.05 --world 3f2a", "nearly gone, inside one world"),
        ),
    )
    parser.add_argument("--world", metavar="ID", help="inside this world (default: everywhere)")
    parser.add_argument("--below", metavar="SHARE", default="0.25", help="of less than this (0.25)")
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="at most (20)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List them."""
    try:
        below = float(args.below)
    except ValueError:
        raise InvalidInputError(f"--below: give a number, not {args.below!r}") from None
    with open_to_read(args) as db:
        found = db.fading(args.limit, world=args.world, below=below)
    if wants_json(args):
        print_json([one.to_dict() | {"because": one.because} for one in found])
        return 0
    rows = [
        (
            one.node.id.short,
            f"{one.retention:.1%}",
            f"{one.age_days:.0f} d",
            one.recalls,
            one.links,
            preview(one.node.content or one.node.name),
        )
        for one in found
    ]
    if rows:
        print_table(("id", "retention", "age", "recalls", "links", "text"), rows)
    else:
        print("nothing is fading", file=sys.stderr)
    return 0
