"""`worlddb retire`: end memories. Nothing is deleted."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.confirming import add_yes_option, confirmed
from worlddb.faces.cli.exit_codes import FOUND
from worlddb.faces.cli.options import Subparsers, add_command, wants_json
from worlddb.faces.cli.scoping import add_scope_options, scope_ids
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.told import print_retired

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory
    from worlddb.memory.results import Retired
    from worlddb.model.scopes import ScopeIds

PAGE = 1_000


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "retire",
        arguments="ID... | --all",
        summary="end memories",
        description=(
            "End memories by their ids, or all of a scope, with what was derived from them alone.\n"
            "They can still be read, and nothing is deleted. With ids, either all are there or\n"
            "nothing is ended. --all needs a scope, and asks unless --yes is given; where nobody\n"
            "can be asked it is refused. To end a scope itself, see 'worlddb scopes purge'."
        ),
        examples=(
            ("worlddb retire 3f2a 77c1", "two memories"),
            ("worlddb retire 3f2a --at 2026-01-31T00:00Z", "it was true until then"),
            ("worlddb retire --all --user-id ada --run-id r42", "all of Ada's in that run"),
        ),
    )
    parser.add_argument("ids", metavar="ID", nargs="*", help="a memory's id, or the start of it")
    parser.add_argument("--all", action="store_true", help="every memory of the named scope")
    add_scope_options(parser)
    parser.add_argument("--at", metavar="TIME", help="when they end (default: now)")
    add_yes_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Retire, and say what ended."""
    if bool(args.ids) == args.all:
        raise InvalidInputError("retire: give the IDs of memories, or --all with a scope")
    scope = scope_ids(args)
    if args.all and not scope:
        raise InvalidInputError(
            "retire --all: name the scope: --user-id, --agent-id, --app-id or --run-id"
        )
    with open_memories(args) as memory:
        if args.all:
            if not confirmed(args, _question(memory, scope)):
                return FOUND
            done = [memory.retire_all(confirm=True, at=args.at, **scope)]
        else:
            done = _retire(memory, args, scope)
    print_retired(done, as_json=wants_json(args))
    return 0


def _retire(memory: Memory, args: argparse.Namespace, scope: ScopeIds) -> list[Retired]:
    # A typo in the last id must not be found after the first has ended.
    found = dict.fromkeys(memory.read(ident, **scope).id for ident in args.ids)
    return [memory.retire(ident, at=args.at, **scope) for ident in found]


def _question(memory: Memory, scope: ScopeIds) -> str:
    page = memory.list(limit=PAGE, **scope)
    many = f"more than {PAGE:,}" if page.next_cursor else str(len(page))
    names = ", ".join(
        f"{key.removesuffix('_id')}:{value}"
        for key, values in scope.items()
        for value in (values if isinstance(values, list) else [values])
    )
    return f"retire all memories of {names} ({many})"
