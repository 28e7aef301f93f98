"""`worlddb recall`, `list`, `read` and `children`: what is remembered, and why it was found."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.command_files import open_to_read
from worlddb.faces.cli.command_options import (
    AS_OF,
    as_of,
    call_arguments,
    call_options,
    command,
    flag,
    nothing_found,
    open_for,
    option,
    report_rows,
    run_call,
    scope_ids,
    wants_json,
)
from worlddb.faces.cli.terminal import (
    iso,
    one_line,
    paint,
    preview,
    print_fields,
    print_hint,
    print_json,
    print_table,
    scopes_text,
    second,
)
from worlddb.model.text_safety import visible

if TYPE_CHECKING:
    from worlddb import Hit, Recall
    from worlddb.memory.memory import Memory
    from worlddb.memory.results import Remembered
    from worlddb.model.address import Id
    from worlddb.model.records import Edge, Node


# `worlddb read`: one node.

READ = call_named("read")


@command("read ID", *call_options(READ), flag("--edges", "list its edges, too"))
def run_read(args: argparse.Namespace) -> int:
    """Show one node.

    Show one node. ID is its id or the start of it, at least 4 digits. With a scope,
    only memories inside it are found.

    Examples:
      worlddb read 3f2a                                  # as it is now
      worlddb read 3f2a --edges                          # and what it is connected to
      worlddb read 3f2a --known-at 2026-01-31T09:30:00Z  # as it was known then
    """
    moment = as_of(args)
    with open_for(READ, args) as memory:
        ident: Id | str = args.id
        if scope_ids(args):
            ident = memory.read(**call_arguments(READ, args)).id
        node = memory.db.get(ident, as_of=moment)
        edges = memory.db.edges(node.id, "both", as_of=moment) if args.edges else None
        remembered = _remembered(memory, node, args)
    if wants_json(args):
        listed = {} if edges is None else {"edges": [edge.to_dict() for edge in edges]}
        # What every face says of a memory, and what only a node has.
        told = {} if remembered is None else remembered.to_dict()
        print_json(node.to_dict() | told | listed)
        return 0
    _print_node(node, remembered)
    if edges is not None:
        _print_edges(node, edges)
    return 0


def _remembered(memory: Memory, node: Node, args: argparse.Namespace) -> Remembered | None:
    """Return the node as a memory; None if it is not a memory in a scope."""
    from worlddb.errors import NotFoundError

    try:
        found = memory.read(node.id, as_of=args.as_of, known_at=args.known_at)
    except NotFoundError:
        return None
    return found if found.scopes else None


def _print_node(node: Node, memory: Remembered | None) -> None:
    import json

    print_fields(
        [
            ("id", str(node.id)),
            ("state", str(node.state)),
            ("type", node.type),
            ("name", node.name),
            ("aliases", ", ".join(node.aliases)),
            ("parent", str(node.parent or "")),
            ("scopes", scopes_text(memory.scopes) if memory else ""),
            ("created_at", iso(node.created_at)),
            ("valid_from", iso(node.valid_from)),
            ("valid_to", iso(node.valid_to)),
            ("known_from", iso(node.known_from)),
            ("known_to", iso(node.known_to)),
            ("actor", node.actor),
            ("erased", "yes" if node.erased else ""),
            ("supersedes", ", ".join(map(str, memory.supersedes)) if memory else ""),
            ("superseded_by", ", ".join(map(str, memory.superseded_by)) if memory else ""),
            ("provenance", ", ".join(node.provenance)),
            (
                "metadata",
                json.dumps(dict(node.metadata), ensure_ascii=False) if node.metadata else "",
            ),
        ]
    )
    text = memory.text if memory else node.content
    if text:
        print(f"\n{visible(text)}")


def _print_edges(node: Node, edges: list[Edge]) -> None:
    rows = [
        (
            edge.id.short,
            "out" if edge.source == node.id else "in",
            edge.type,
            (edge.target if edge.source == node.id else edge.source).short,
            iso(edge.valid_from),
            iso(edge.valid_to),
        )
        for edge in edges
    ]
    print()
    print_table(("edge", "way", "type", "node", "valid_from", "valid_to"), rows)


# `worlddb list` and `worlddb children`: the memories of a scope, and the nodes of a world.


@command("list", *call_options(call_named("list")))
def run_list(args: argparse.Namespace) -> int:
    """List memories, the latest first.

    List the memories of a scope, the latest first. A memory is listed if it is in a
    scope of every kind that is named. Without a scope, list those of the user that
    $WORLDDB_SCOPE or the settings file names, else of the user 'default'.

    Examples:
      worlddb list                                  # yours
      worlddb list --user-id ada --agent-id helper  # what the helper knows of Ada
      worlddb list --include-retired --limit 10     # also what has ended
      worlddb scopes                                # whose memories there are
    """
    return run_call(call_named("list"), args)


@command(
    "children [ID]",
    option("id", "ID", "a world's id, or the start of it", nargs="?"),
    flag("--include-superseded", "list what has ended as well"),
    *AS_OF,
)
def run_children(args: argparse.Namespace) -> int:
    """List the nodes that live in a world.

    List the nodes that live in a world, in the order of writing: the root world,
    or the one whose id begins with ID. What has ended is left out unless you ask.

    Examples:
      worlddb children                               # what lives in the root world
      worlddb children 3f2a --include-superseded     # also what has ended
      worlddb children --as-of 2025-06-01T00:00:00Z  # what was true that day
    """
    with open_to_read(args) as db:
        nodes = db.children(args.id, as_of=as_of(args), include_superseded=args.include_superseded)
    data = [node.to_dict() for node in nodes]
    rows = [
        (
            node.id.short,
            node.type,
            second(node.valid_from),
            second(node.valid_to),
            preview(node.name or node.content),
        )
        for node in nodes
    ]
    return report_rows(
        args, data, ("id", "type", "valid_from", "valid_to", "name or content"), rows
    )


# `worlddb recall`: what is remembered about a question, and why it was found.

RECALL = call_named("recall")
SNIPPET_CHARS = 240  # About three lines on a terminal.
UNSURE = 0.1  # Of questions with an answer about one in seventy is below it (docs/evaluation.md).
SHOWN_MIN = 0.005  # A smaller part of a score would be shown as 0.00.


@command(
    "recall QUERY",
    *call_options(RECALL),
    option("--scope", "ID", "search inside this world (may be repeated)", action="append"),
    flag("--everyone", "search the whole store, also what is in no scope"),
    flag("--explain", "show why each hit was found"),
    option("--receipt", "PATH", "write a signed receipt of the answer; see 'worlddb verify'"),
)
def run_recall(args: argparse.Namespace) -> int:
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
    elif args.query and found.confidence < UNSURE:
        print_hint(
            f"perhaps no answer is remembered (confidence {found.confidence:.2f}): these are the "
            "nearest memories; --min-confidence leaves unsure hits out"
        )
    return 0


def _ask(memory: Memory, args: argparse.Namespace) -> Recall:
    arguments = call_arguments(RECALL, args)
    if not args.scope and not args.everyone:
        return memory.recall(receipt=args.receipt is not None, **arguments)
    moment = as_of(args)
    if args.summaries is not None:
        raise InvalidInputError("--summaries: name a scope such as --user-id, or none")
    told = ("query", "as_of", "known_at", "include_retired")
    limits = {name: value for name, value in arguments.items() if name not in told}
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
    until = f" to {second(node.valid_to)}" if node.valid_to else ""
    name = f" {one_line(node.name)}" if node.name and node.content else ""
    head = f"{number}. {node.id.short}  {node.type}{name}  {second(node.valid_from)}{until}"
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
        if hit.path:
            print(f"   by {_walked(hit)}")
        print(f"   written by {one_line(node.actor)}")
        if node.provenance:
            print(f"   from {one_line(', '.join(node.provenance))}")


def _walked(hit: Hit) -> str:
    """Return the path to a hit: names with the relations and edges between them."""
    first, *further = hit.path
    walked = one_line(first.name)
    for step in further:
        edge = f" {step.edge.short}" if step.edge is not None else ""
        walked += f" —{one_line(step.relation)}{edge}→ {one_line(step.name)}"
    return walked


def _parts(hit: Hit) -> str:
    """Return the parts of a score, the largest first."""
    shown = [(part, value) for part, value in hit.weighed.items() if abs(value) >= SHOWN_MIN]
    shown.sort(key=lambda item: -abs(item[1]))
    return " ".join(f"{value:+.2f} {part}" for part, value in shown)
