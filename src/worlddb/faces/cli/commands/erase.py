"""`worlddb erase`: remove texts for good."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.confirming import add_yes_option, confirmed
from worlddb.faces.cli.exit_codes import FOUND
from worlddb.faces.cli.options import Subparsers, add_command, wants_json
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.terminal import print_json

if TYPE_CHECKING:
    from worlddb import Receipt
    from worlddb.memory.memory import Memory


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "erase",
        arguments="ID... | --scope SCOPE",
        summary="remove texts from the file for good",
        description=(
            "Remove the texts of nodes, of everything inside them and of everything derived from\n"
            "any of it: names, contents, aliases, sources, metadata, words and vectors. Ids and\n"
            "validity stay, so that the rest still verifies. To end a memory without that, see\n"
            "'worlddb retire'. Backups and exports that were made before still have the texts.\n"
            "The file is rewritten, which takes about as long as copying it."
        ),
        examples=(
            ("worlddb erase 3f2a", "asks first"),
            ("worlddb erase 3f2a 77b1 --yes", "does not ask"),
            ("worlddb erase --scope user:ada", "all that lives in a scope, and its name"),
        ),
    )
    parser.add_argument("ids", metavar="ID", nargs="*", help="a node's id, or the start of it")
    parser.add_argument("--scope", metavar="SCOPE", help="a scope, such as user:ada")
    add_yes_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Erase, and print the receipt."""
    if bool(args.ids) == bool(args.scope):
        raise InvalidInputError("erase: give the IDs of nodes, or --scope")
    with open_memories(args) as memory:
        receipt = _erase(memory, args)
    if receipt is None:
        return FOUND
    if wants_json(args):
        print_json(receipt.to_dict())
    elif receipt.commit is None:
        print("all of it was erased before" + ("; the file is clean" if receipt.cleaned else ""))
    else:
        print(f"erased {len(receipt.ids)} nodes in commit {receipt.commit.seq}")
    if not receipt.cleaned:
        told = "the file still has the bytes, for somebody reads from before; erase it again later"
        print(told, file=sys.stderr)
        return FOUND
    return 0


def _erase(memory: Memory, args: argparse.Namespace) -> Receipt | None:
    from worlddb.model.scopes import scope_named

    if args.ids:
        # A typo in the last id must not be found after the first was erased.
        found = [memory.db.get(ident).id for ident in args.ids]
        if not confirmed(args, f"erase {len(found)} for good, with all inside and derived"):
            return None
        return memory.db.erase(found, actor="cli")
    scope = scope_named(args.scope)
    if not confirmed(args, f"erase {scope} for good, with all that lives in it"):
        return None
    return memory.erase(confirm=True, **scope.ids())
