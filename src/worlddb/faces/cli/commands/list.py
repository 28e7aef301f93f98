"""`worlddb list`: the memories of a scope, the latest first."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from worlddb.faces.cli.options import (
    Subparsers,
    add_as_of_options,
    add_command,
    as_of,
    count,
    wants_json,
)
from worlddb.faces.cli.scoping import add_scope_options, nothing_found, scope_ids, scopes_text
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.terminal import iso, preview, print_json, print_table

if TYPE_CHECKING:
    from worlddb.memory.results import Remembered


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "list",
        summary="list memories, the latest first",
        description=(
            "List the memories of a scope, the latest first. A memory is listed if it is in a\n"
            "scope of every kind that is named. Without any it is those of the user that\n"
            "$WORLDDB_SCOPE or the settings file names, else of the user 'default'."
        ),
        examples=(
            ("worlddb list", "yours"),
            ("worlddb list --user-id ada --agent-id helper", "what the helper knows of Ada"),
            ("worlddb list --include-retired --limit 10", "also what has ended"),
            ("worlddb scopes", "whose memories there are"),
        ),
    )
    add_scope_options(parser)
    parser.add_argument("--limit", type=count, default=50, metavar="N", help="at most (50)")
    parser.add_argument("--cursor", metavar="CURSOR", help="go on where the last page ended")
    parser.add_argument("--include-retired", action="store_true", help="list what has ended, too")
    add_as_of_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print one page."""
    moment = as_of(args)
    with open_memories(args) as memory:
        page = memory.list(
            limit=args.limit,
            cursor=args.cursor,
            include_retired=args.include_retired,
            as_of=moment.valid,
            known_at=moment.known,
            **scope_ids(args),
        )
        nothing = "nothing found" if page or args.cursor else nothing_found(memory, args)
    if wants_json(args):
        print_json(page.to_dict())
        return 0
    if page:
        headers, rows = _table(page.memories, args.include_retired)
        print_table(headers, rows)
    else:
        print(nothing, file=sys.stderr)
    if page.next_cursor:
        print(f"there are more: --cursor {page.next_cursor}", file=sys.stderr)
    return 0


def _table(
    memories: tuple[Remembered, ...], ended: bool
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the headers and the rows; the column of ends only where some may have one."""
    until = ("valid_to",) if ended else ()
    rows = [
        (
            memory.id.short,
            iso(memory.valid_from),
            *((iso(memory.valid_to),) if ended else ()),
            scopes_text(memory.scopes),
            preview(memory.text),
        )
        for memory in memories
    ]
    return ("id", "valid_from", *until, "scopes", "text"), rows
