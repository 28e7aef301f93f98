"""`worlddb read`: one node."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import call_arguments, call_options, open_for, scope_ids
from worlddb.faces.cli.command_options import as_of, command, flag, wants_json
from worlddb.faces.cli.result_printer import scopes_text
from worlddb.faces.cli.terminal import iso, print_fields, print_json, print_table
from worlddb.model.visible_text import visible

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory
    from worlddb.memory.results import Remembered
    from worlddb.model.address import Id
    from worlddb.model.records import Edge, Node

READ = call_named("read")


@command("read ID", *call_options(READ), flag("--edges", "list its edges, too"))
def run(args: argparse.Namespace) -> int:
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
        print_json(node.to_dict() | _memory_dict(remembered) | listed)
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


def _memory_dict(memory: Remembered | None) -> dict[str, Any]:
    if memory is None:
        return {}
    plain = memory.to_dict()
    return {key: plain[key] for key in ("text", "scopes", "supersedes", "superseded_by")}


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
