"""`worlddb recall`: what is remembered about a question, and why."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
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
from worlddb.faces.cli.scoping import add_scope_options, nothing_found, scope_ids, scopes_text
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.terminal import iso, one_line, paint, print_json

if TYPE_CHECKING:
    from worlddb import Hit, Recall
    from worlddb.memory.memory import Memory
    from worlddb.model.address import Id

WIDTH = 240
LEAST = 0.005
"""What would be shown as 0.00 is not shown."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "recall",
        arguments="QUESTION",
        summary="find what is remembered about a question",
        description=(
            "Rank what can be seen by its words, by its meaning and by the names the question\n"
            "says, and show the best; --explain adds its place and score in each of the three\n"
            "and where it is from. No model is asked but the embedder, which runs on this\n"
            "machine unless you chose another.\n"
            "\n"
            "A hit is in a scope of every kind that is named. Without any it is one of the user\n"
            "that $WORLDDB_SCOPE or the settings file names, else of the user 'default', as in\n"
            "'worlddb list'; with --everyone it may be anywhere in the store."
        ),
        examples=(
            ('worlddb recall "Where does Anna work?"', "what is remembered for you"),
            ('worlddb recall "tea or coffee?" --user-id ada', "what is remembered for Ada"),
            ('worlddb recall "What did we decide?" --scope 3f2a -k 3', "inside one world"),
            ('worlddb recall "Who knows Anna?" --everyone', "in the whole store"),
            ('worlddb recall "price" --known-at 2026-01-31T00:00:00Z', "as it was known then"),
            ('worlddb recall "launch date" --explain', "with ranks, scores and conflicts"),
        ),
    )
    parser.add_argument("question", metavar="QUESTION", help="any text; no word of it is syntax")
    parser.add_argument(
        "--scope", metavar="ID", action="append", help="look inside this world; may be repeated"
    )
    add_scope_options(parser)
    parser.add_argument(
        "--everyone", action="store_true", help="look in the whole store, also in no scope at all"
    )
    parser.add_argument(
        "-k", "--k", type=count, default=10, metavar="N", help="how many (default: 10)"
    )
    parser.add_argument("--max-tokens", type=count, metavar="N", help="of about so many tokens")
    parser.add_argument("--type", metavar="TYPE", action="append", help="only nodes of this type")
    parser.add_argument(
        "--include-retired", "--ended", action="store_true", help="find what has ended, too"
    )
    parser.add_argument("--explain", action="store_true", help="show why each hit is there")
    add_as_of_options(parser)
    add_embedder_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Ask, and print the hits."""
    if (args.scope is not None) + bool(scope_ids(args)) + args.everyone > 1:
        raise InvalidInputError(
            "recall: give only one of --scope ID, --everyone, and --user-id and its like"
        )
    with open_memories(args, asks=True) as memory:
        found = _ask(memory, args)
        whose = _whose(memory, found) if args.everyone else {}
        everywhere = args.scope or args.everyone
        nothing = "nothing found" if found or everywhere else nothing_found(memory, args)
    if wants_json(args):
        print_json(found.to_json())
    else:
        for number, hit in enumerate(found, 1):
            _print_hit(number, found, hit, args.explain, whose.get(hit.node.id, ""))
        if not found:
            print(nothing, file=sys.stderr)
    return 0


def _ask(memory: Memory, args: argparse.Namespace) -> Recall:
    moment = as_of(args)
    limits = {"k": args.k, "max_tokens": args.max_tokens, "types": args.type}
    if args.scope or args.everyone:
        return memory.db.recall(
            args.question,
            scope=args.scope,
            as_of=moment,
            include_superseded=args.include_retired,
            **limits,
        )
    return memory.recall(
        args.question,
        as_of=moment.valid,
        known_at=moment.known,
        include_retired=args.include_retired,
        **limits,
        **scope_ids(args),
    )


def _whose(memory: Memory, found: Recall) -> dict[Id, str]:
    """Return in which scopes the hits are that are somebody's."""
    from worlddb.errors import NotFoundError

    told: dict[Id, str] = {}
    for hit in found:
        with suppress(NotFoundError):
            told[hit.node.id] = scopes_text(memory.read(hit.node.id).scopes)
    return told


def _print_hit(number: int, found: Recall, hit: Hit, explain: bool, whose: str) -> None:
    node = hit.node
    until = f" to {iso(node.valid_to)}" if node.valid_to else ""
    name = f" {one_line(node.name)}" if node.name and node.content else ""
    head = f"{number}. {node.id.short}  {node.type}{name}  {iso(node.valid_from)}{until}"
    print(paint(f"{head}  {one_line(whose)}".rstrip(), "bold"))
    print(f"   {one_line(found.snippet(hit, width=WIDTH).text)}")
    if hit.conflicts:
        sides = {side for one in hit.conflicts for side in (one.left, one.right)} - {node.id}
        print(f"   contradicted by {', '.join(sorted(side.short for side in sides))}")
    for old in hit.outdated:
        print(f"   {old.why}: {one_line(old.text)}")
    if explain:
        lanes = [f"{lane} #{at.rank} ({at.score:.3f})" for lane, at in hit.lanes.items()]
        print(f"   score {hit.score:.3f}, fused {hit.fused:.4f}: {', '.join(lanes)}")
        if parts := _parts(hit):
            print(f"   score = {parts}")
        if node.provenance:
            print(f"   from {one_line(', '.join(node.provenance))}")


def _parts(hit: Hit) -> str:
    """Return what a score is the sum of, the most important first."""
    told = {part: f"{value:+.2f}" for part, value in hit.weighed.items() if abs(value) >= LEAST}
    order = sorted(told, key=lambda part: -abs(hit.weighed[part]))
    return " ".join(f"{told[part]} {part}" for part in order)
