"""`worlddb recall`: what is remembered about a question, and why."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.options import (
    Subparsers,
    add_as_of_options,
    add_command,
    add_embedder_option,
    as_of,
    count,
    wants_json,
)
from worlddb.faces.cli.scoping import add_scope_options, meant_scopes, scope_ids
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.terminal import iso, one_line, paint, print_json

if TYPE_CHECKING:
    from worlddb import Hit, Recall

WIDTH = 240


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "recall",
        arguments="QUESTION",
        summary="find what is remembered about a question",
        description=(
            "Rank what can be seen by its words, by its meaning and by the names the question\n"
            "says, and show the best with its place in each of the three. No model is asked but\n"
            "the embedder, which runs on this machine unless you chose another.\n"
            "\n"
            "Without a scope, look in the whole store; or, if $WORLDDB_SCOPE or the settings file\n"
            "names a user, only in what is theirs. A hit is in a scope of every kind that is named."
        ),
        examples=(
            ('worlddb recall "Where does Anna work?"', "in the whole store"),
            ('worlddb recall "tea or coffee?" --user-id ada', "what is remembered for Ada"),
            ('worlddb recall "What did we decide?" --scope 3f2a -k 3', "inside one world"),
            ('worlddb recall "price" --known 2026-01-31T00:00:00Z', "as it was known then"),
            ('worlddb recall "launch date" --explain', "with ranks, scores and conflicts"),
        ),
    )
    parser.add_argument("question", metavar="QUESTION", help="any text; no word of it is syntax")
    parser.add_argument(
        "--scope", metavar="ID", action="append", help="look inside this world; may be repeated"
    )
    add_scope_options(parser)
    parser.add_argument("-k", type=count, default=10, metavar="N", help="how many (default: 10)")
    parser.add_argument("--max-tokens", type=count, metavar="N", help="of about so many tokens")
    parser.add_argument("--type", metavar="TYPE", action="append", help="only nodes of this type")
    parser.add_argument("--ended", action="store_true", help="what has ended, too")
    parser.add_argument("--explain", action="store_true", help="show why each hit is there")
    add_as_of_options(parser)
    add_embedder_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ask, and print the hits."""
    found = _ask(args)
    if wants_json(args):
        print_json(found.to_json())
    else:
        for number, hit in enumerate(found, 1):
            _print_hit(number, found, hit, args.explain)
        if not found:
            print("nothing found", file=sys.stderr)
    return 0


def _ask(args: argparse.Namespace) -> Recall:
    if args.scope and scope_ids(args):
        raise InvalidInputError("recall: give --scope ID or --user-id and its like, not both")
    limits = {"k": args.k, "max_tokens": args.max_tokens, "types": args.type}
    with open_memories(args, asks=True) as memory:
        if not args.scope and (scope := meant_scopes(args)):
            return memory.recall(
                args.question,
                as_of=args.valid,
                known_at=args.known,
                include_retired=args.ended,
                **limits,
                **scope,
            )
        return memory.db.recall(
            args.question,
            scope=args.scope,
            as_of=as_of(args),
            include_superseded=args.ended,
            **limits,
        )


def _print_hit(number: int, found: Recall, hit: Hit, explain: bool) -> None:
    node = hit.node
    until = f" to {iso(node.valid_to)}" if node.valid_to else ""
    name = f" {one_line(node.name)}" if node.name and node.content else ""
    head = f"{number}. {node.id.short}  {node.type}{name}  {iso(node.valid_from)}{until}"
    print(paint(head, "bold"))
    print(f"   {one_line(found.snippet(hit, width=WIDTH).text)}")
    if hit.conflicts:
        sides = {side for one in hit.conflicts for side in (one.left, one.right)} - {node.id}
        print(f"   contradicted by {', '.join(sorted(side.short for side in sides))}")
    for old in hit.outdated:
        print(f"   no longer so, see {old.by.short}: {one_line(old.text)}")
    if explain:
        lanes = [f"{lane} #{at.rank} ({at.score:.3f})" for lane, at in hit.lanes.items()]
        print(f"   score {hit.score:.3f}, fused {hit.fused:.4f}: {', '.join(lanes)}")
        if node.provenance:
            print(f"   from {one_line(', '.join(node.provenance))}")
