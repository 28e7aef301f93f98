"""`worlddb read`: one node."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.faces.cli.options import (
    Subparsers,
    add_as_of_options,
    add_command,
    as_of,
    wants_json,
)
from worlddb.faces.cli.stores import open_to_read
from worlddb.faces.cli.terminal import clean, iso, print_fields, print_json, print_table

if TYPE_CHECKING:
    from worlddb.model.values import Edge, Node


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "read",
        arguments="ID",
        summary="show one node",
        description="Show one node. ID is its id or the start of it, at least 4 digits.",
        examples=(
            ("worlddb read 3f2a", "as it is now"),
            ("worlddb read 3f2a --edges", "and what it is connected to"),
            ("worlddb read 3f2a --known 2026-01-31T09:30:00Z", "as it was known then"),
        ),
    )
    parser.add_argument("id", metavar="ID", help="a node's id, or the start of it")
    parser.add_argument("--edges", action="store_true", help="list its edges too")
    add_as_of_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the node."""
    with open_to_read(args) as db:
        moment = as_of(args)
        node = db.get(args.id, as_of=moment)
        edges = db.edges(node.id, "both", as_of=moment) if args.edges else None
    if wants_json(args):
        listed = {} if edges is None else {"edges": [edge.to_dict() for edge in edges]}
        print_json(node.to_dict() | listed)
        return 0
    _print_node(node)
    if edges is not None:
        _print_edges(node, edges)
    return 0


def _print_node(node: Node) -> None:
    print_fields(
        [
            ("id", str(node.id)),
            ("state", str(node.state)),
            ("type", node.type),
            ("name", node.name),
            ("aliases", ", ".join(node.aliases)),
            ("parent", str(node.parent or "")),
            ("created_at", iso(node.created_at)),
            ("valid_from", iso(node.valid_from)),
            ("valid_to", iso(node.valid_to)),
            ("known_from", iso(node.known_from)),
            ("known_to", iso(node.known_to)),
            ("provenance", ", ".join(node.provenance)),
        ]
    )
    if node.content:
        print(f"\n{clean(node.content)}")


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
