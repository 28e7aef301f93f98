"""`worlddb scopes`: whose memories there are, and ending one's memory altogether."""

from __future__ import annotations

import argparse
import sys

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.faces.cli.confirming import add_yes_option, confirmed
from worlddb.faces.cli.exit_codes import FOUND
from worlddb.faces.cli.options import Subparsers, add_command, count, wants_json
from worlddb.faces.cli.scoping import KINDS
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.terminal import iso, print_json, print_table
from worlddb.faces.cli.told import print_retired


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "scopes",
        arguments="[list | purge SCOPE]",
        summary="list users, agents, apps and runs, or purge one",
        description=(
            "List whose memories there are, or purge one: end the scope with every memory and\n"
            "every name in it, also those that are in other scopes. Nothing is deleted, and a\n"
            "scope of that name can be written to again and begins empty. A purge asks unless\n"
            "--yes is given; where nobody can be asked it is refused."
        ),
        examples=(
            ("worlddb scopes", "everybody"),
            ("worlddb scopes --kind run", "the runs"),
            ("worlddb scopes purge user:ada", "end all of Ada's"),
        ),
    )
    parser.add_argument(
        "action",
        metavar="list | purge",
        nargs="?",
        choices=("list", "purge"),
        default="list",
        help="what to do (default: list)",
    )
    parser.add_argument("scope", metavar="SCOPE", nargs="?", help="the one to purge: user:ada")
    parser.add_argument("--kind", choices=KINDS, help="only this kind")
    parser.add_argument("--limit", type=count, default=100, metavar="N", help="at most (100)")
    parser.add_argument("--cursor", metavar="CURSOR", help="go on where the last page ended")
    parser.add_argument("--include-retired", action="store_true", help="list purged ones, too")
    add_yes_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List or purge."""
    if args.action == "purge":
        return _purge(args)
    if args.scope or args.yes:
        raise InvalidInputError("scopes list: takes no SCOPE and no --yes")
    with open_memories(args) as memory:
        page = memory.list_scopes(
            kind=args.kind,
            limit=args.limit,
            cursor=args.cursor,
            include_retired=args.include_retired,
        )
    if wants_json(args):
        print_json(page.to_dict())
        return 0
    rows = [
        (
            scope.id.short,
            scope.kind,
            iso(scope.known_from),
            "yes" if scope.retired else "no",
            scope.value,
        )
        for scope in page
    ]
    if rows:
        print_table(("id", "kind", "known_from", "purged", "value"), rows)
    else:
        print("nothing found", file=sys.stderr)
    if page.next_cursor:
        print(f"there are more: --cursor {page.next_cursor}", file=sys.stderr)
    return 0


def _purge(args: argparse.Namespace) -> int:
    from worlddb.model.scopes import scope_named

    if not args.scope:
        raise InvalidInputError("scopes purge: give the SCOPE, such as user:ada")
    if args.kind or args.cursor or args.include_retired:
        raise InvalidInputError("scopes purge: takes no --kind, --cursor or --include-retired")
    scope = scope_named(args.scope)
    with open_memories(args) as memory:
        if not confirmed(args, f"purge {scope}: end every memory and every name in it"):
            return FOUND
        done = memory.purge_scope(confirm=True, **scope.ids())
    if not done.scopes:
        raise NotFoundError(f"there is no scope {scope}; see 'worlddb scopes'")
    print_retired([done], as_json=wants_json(args))
    return 0
