"""`worlddb recall`: what is remembered about a question, and why it was found."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import (
    call_arguments,
    call_options,
    nothing_found,
    open_for,
    scope_ids,
)
from worlddb.faces.cli.command_options import as_of, command, flag, option, wants_json
from worlddb.faces.cli.result_printer import scopes_text
from worlddb.faces.cli.terminal import iso, one_line, paint, print_hint, print_json

if TYPE_CHECKING:
    from worlddb import Hit, Recall
    from worlddb.memory.memory import Memory
    from worlddb.model.address import Id

RECALL = call_named("recall")
SNIPPET_CHARS = 240  # About three lines on a terminal.
SHOWN_MIN = 0.005  # A smaller part of a score would be shown as 0.00.


@command(
    "recall QUERY",
    *call_options(RECALL),
    option("--scope", "ID", "search inside this world (may be repeated)", action="append"),
    flag("--everyone", "search the whole store, also what is in no scope"),
    flag("--explain", "show why each hit was found"),
    option("--receipt", "PATH", "write a signed receipt of the answer; see 'worlddb verify'"),
)
def run(args: argparse.Namespace) -> int:
    """Find what is remembered about a question.

    Rank memories by words, by meaning and by the names in the question, and show the
    best. --explain adds the rank and score in each of the three, and the source. No
    language model is asked, only the embedder, which runs on this machine unless you
    chose another.

    A hit is in a scope of every kind that is named. Without a scope, search the
    memories of the user that $WORLDDB_SCOPE or the settings file names, else of the
    user 'default', as in 'worlddb list'; with --everyone search the whole store.

    Examples:
      worlddb recall "Where does Anna work?"                  # what is remembered for you
      worlddb recall "tea or coffee?" --user-id ada           # what is remembered for Ada
      worlddb recall "What did we decide?" --scope 3f2a -k 3  # inside one world
      worlddb recall "Who knows Anna?" --everyone             # in the whole store
      worlddb recall "price" --known-at 2026-01-31T00:00:00Z  # as it was known then
      worlddb recall "launch date" --explain                  # with ranks, scores and conflicts
    """
    if (args.scope is not None) + bool(scope_ids(args)) + args.everyone > 1:
        raise InvalidInputError(
            "recall: give only one of --scope ID, --everyone, and scopes such as --user-id"
        )
    if args.receipt is not None and (args.scope is not None or args.everyone):
        raise InvalidInputError("--receipt: name a scope such as --user-id, or none")
    with open_for(RECALL, args) as memory:
        found = _ask(memory, args)
        whose = _whose(memory, found) if args.everyone else {}
        everywhere = args.scope or args.everyone
        empty = "nothing found" if found or everywhere else nothing_found(memory, args)
    if args.receipt is not None:
        from worlddb.faces.cli.command_files import save_json

        save_json(args.receipt, found.receipt)
    if wants_json(args):
        print_json(found.to_json())
        return 0
    if found and args.explain:
        print(f"confidence that an answer is among the hits: {found.confidence:.2f}")
    for number, hit in enumerate(found, 1):
        _print_hit(number, found, hit, args.explain, whose.get(hit.node.id, ""))
    if not found:
        print_hint(empty)
    return 0


def _ask(memory: Memory, args: argparse.Namespace) -> Recall:
    arguments = call_arguments(RECALL, args)
    if not args.scope and not args.everyone:
        return memory.recall(receipt=args.receipt is not None, **arguments)
    moment = as_of(args)
    limits: dict[str, Any] = {
        name: arguments.get(name)
        for name in ("k", "max_tokens", "min_confidence", "types", "names")
    }
    return memory.db.recall(
        args.query or "",
        scope=args.scope,
        as_of=moment,
        include_superseded=args.include_retired,
        **limits,
    )


def _whose(memory: Memory, found: Recall) -> dict[Id, str]:
    """Return the scopes of the hits that are in one."""
    from worlddb.errors import NotFoundError

    found_in: dict[Id, str] = {}
    for hit in found:
        with suppress(NotFoundError):
            found_in[hit.node.id] = scopes_text(memory.read(hit.node.id).scopes)
    return found_in


def _print_hit(number: int, found: Recall, hit: Hit, explain: bool, whose: str) -> None:
    node = hit.node
    until = f" to {iso(node.valid_to)}" if node.valid_to else ""
    name = f" {one_line(node.name)}" if node.name and node.content else ""
    head = f"{number}. {node.id.short}  {node.type}{name}  {iso(node.valid_from)}{until}"
    head += f"  confidence {hit.confidence:.2f}"
    print(paint(f"{head}  {one_line(whose)}".rstrip(), "bold"))
    print(f"   {one_line(found.snippet(hit, width=SNIPPET_CHARS).text)}")
    if hit.conflicts:
        sides = {side for one in hit.conflicts for side in (one.left, one.right)} - {node.id}
        print(f"   contradicted by {', '.join(sorted(side.short for side in sides))}")
    for old in hit.outdated:
        print(f"   {old.why}: {one_line(old.text)}")
    for doubt in hit.maybe_outdated:
        print(f"   {doubt.why}")
    if explain:
        lanes = [f"{lane} #{at.rank} ({at.score:.3f})" for lane, at in hit.lanes.items()]
        print(f"   score {hit.score:.3f}, fused {hit.fused:.4f}: {', '.join(lanes)}")
        if parts := _parts(hit):
            print(f"   score = {parts}")
        print(f"   written by {one_line(node.actor)}")
        if node.provenance:
            print(f"   from {one_line(', '.join(node.provenance))}")


def _parts(hit: Hit) -> str:
    """Return the parts of a score, the largest first."""
    shown = [(part, value) for part, value in hit.weighed.items() if abs(value) >= SHOWN_MIN]
    shown.sort(key=lambda item: -abs(item[1]))
    return " ".join(f"{value:+.2f} {part}" for part, value in shown)
