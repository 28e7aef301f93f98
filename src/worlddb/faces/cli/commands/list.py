"""`worlddb list` and `worlddb children`: the memories of a scope, and the nodes of a world."""

from __future__ import annotations

import argparse

from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import call_options, run_call
from worlddb.faces.cli.command_options import AS_OF, as_of, command, flag, option, wants_json
from worlddb.faces.cli.command_store import open_to_read
from worlddb.faces.cli.terminal import iso, preview, print_json, print_table


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
    if wants_json(args):
        print_json([node.to_dict() for node in nodes])
        return 0
    rows = [
        (
            node.id.short,
            node.type,
            iso(node.valid_from),
            iso(node.valid_to),
            preview(node.name or node.content),
        )
        for node in nodes
    ]
    print_table(("id", "type", "valid_from", "valid_to", "name or content"), rows)
    return 0
