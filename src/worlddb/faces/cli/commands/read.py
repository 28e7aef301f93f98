"""`worlddb read`: one node."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from worlddb.faces.cli.options import Subparsers, add_as_of_options, add_command, as_of, wants_json
from worlddb.faces.cli.scoping import add_scope_options, scope_ids, scopes_text
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.terminal import clean, iso, print_fields, print_json, print_table

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory
    from worlddb.memory.results import Remembered
    from worlddb.model.address import Id
    from worlddb.model.records import Edge, Node


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "read",
        arguments="ID",
        summary="show one node",
        description=(
            "Show one node. ID is its id or the start of it, at least 4 digits. With a scope,\n"
            "only memories inside it are found."
        ),
        examples=(
            ("worlddb read 3f2a", "as it is now"),
            ("worlddb read 3f2a --edges", "and what it is connected to"),
            ("worlddb read 3f2a --known-at 2026-01-31T09:30:00Z", "as it was known then"),
        ),
    )
    parser.add_argument("id", metavar="ID", help="a node's id, or the start of it")
    parser.add_argument("--edges", action="store_true", help="list its edges too")
    add_scope_options(parser)
    add_as_of_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the node."""
    moment = as_of(args)
    scope = scope_ids(args)
    with open_memories(args) as memory:
        ident: Id | str = args.id
        if scope:
            ident = memory.read(args.id, as_of=args.as_of, known_at=args.known_at, **scope).id
        node = memory.db.get(ident, as_of=moment)
        edges = memory.db.edges(node.id, "both", as_of=moment) if args.edges else None
        told = _remembered(memory, node, args)
    if wants_json(args):
        listed = {} if edges is None else {"edges": [edge.to_dict() for edge in edges]}
        print_json(node.to_dict() | _memory_dict(told) | listed)
        return 0
    _print_node(node, told)
    if edges is not None:
        _print_edges(node, edges)
    return 0


def _remembered(memory: Memory, node: Node, args: argparse.Namespace) -> Remembered | None:
    """Return the node as a memory of somebody's, None if it is none."""
    from worlddb.errors import NotFoundError

    try:
        told = memory.read(node.id, as_of=args.as_of, known_at=args.known_at)
    except NotFoundError:
        return None
    return told if told.scopes else None


def _memory_dict(told: Remembered | None) -> dict[str, Any]:
    if told is None:
        return {}
    plain = told.to_dict()
    return {key: plain[key] for key in ("text", "scopes", "supersedes", "superseded_by")}


def _print_node(node: Node, told: Remembered | None) -> None:
    import json

    print_fields(
        [
            ("id", str(node.id)),
            ("state", str(node.state)),
            ("type", node.type),
            ("name", node.name),
            ("aliases", ", ".join(node.aliases)),
            ("parent", str(node.parent or "")),
            ("scopes", scopes_text(told.scopes) if told else ""),
            ("created_at", iso(node.created_at)),
            ("valid_from", iso(node.valid_from)),
            ("valid_to", iso(node.valid_to)),
            ("known_from", iso(node.known_from)),
            ("known_to", iso(node.known_to)),
            ("erased", "yes" if node.erased else ""),
            ("supersedes", ", ".join(map(str, told.supersedes)) if told else ""),
            ("superseded_by", ", ".join(map(str, told.superseded_by)) if told else ""),
            ("provenance", ", ".join(node.provenance)),
            (
                "metadata",
                json.dumps(dict(node.metadata), ensure_ascii=False) if node.metadata else "",
            ),
        ]
    )
    text = told.text if told else node.content
    if text:
        print(f"\n{clean(text)}")


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
