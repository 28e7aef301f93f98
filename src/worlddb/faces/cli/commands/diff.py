"""`worlddb diff`: what happened between two commits."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.faces.cli.options import Subparsers, add_command, count, wants_json
from worlddb.faces.cli.stores import open_to_read
from worlddb.faces.cli.terminal import Cell, preview, print_json, print_table

if TYPE_CHECKING:
    from worlddb.model.records import Diff


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "diff",
        arguments="FROM [TO]",
        summary="show what happened between two commits",
        description=(
            "Show what the commits after FROM did, up to and with TO (default: the last one):\n"
            "nodes and edges added (+), and every other effect (~)."
        ),
        examples=(
            ("worlddb diff 41 42", "what commit 42 did"),
            ("worlddb diff 41", "everything since commit 41"),
        ),
    )
    parser.add_argument("seq_a", metavar="FROM", type=count, help="a commit's number, see 'log'")
    parser.add_argument("seq_b", metavar="TO", type=count, nargs="?", help="a later one")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the difference."""
    with open_to_read(args) as db:
        last = args.seq_b
        if last is None:
            last = db.log(limit=1, newest_first=True)[0].seq
        found = db.diff(args.seq_a, last)
    if wants_json(args):
        from worlddb.faces.cli.journal import change_dict

        changes = {"changes": [change_dict(change) for change in found.changes]}
        print_json({"from": args.seq_a, "to": last} | found.to_dict() | changes)
        return 0
    print_table(("", "kind", "id", "type", "what"), _rows(found))
    return 0


def _rows(found: Diff) -> list[tuple[Cell, ...]]:
    from worlddb.faces.cli.journal import change_text

    nodes = [
        ("+", "node", node.id.short, node.type, preview(node.name or node.content))
        for node in found.nodes
    ]
    edges = [
        ("+", "edge", edge.id.short, edge.type, f"{edge.source.short} → {edge.target.short}")
        for edge in found.edges
    ]
    changes = [
        ("~", change.kind, change.id.short, "", preview(change_text(change)))
        for change in found.changes
    ]
    return [*nodes, *edges, *changes]
