"""`worlddb query` and `worlddb ontology`: ask the graph, and the edge types it is made of."""

from __future__ import annotations

import argparse

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import call_arguments, call_options, nothing_found, open_for
from worlddb.faces.cli.command_options import action_of, command, flag, option, wants_json
from worlddb.faces.cli.result_printer import print_result
from worlddb.faces.cli.terminal import print_json, print_table
from worlddb.faces.graph_calls import TRAITS

QUERY, DECLARE, EDGE_TYPES = (call_named(name) for name in ("query", "declare", "edge_types"))


@command(
    "query QUERY",
    *call_options(QUERY),
    flag("--everyone", "search the whole store instead of a scope"),
    flag("--explain", "say how the query would be answered, and do not answer it"),
)
def run_query(args: argparse.Namespace) -> int:
    """Ask the graph.

    Run a query over memories, names and the edges between them. A query is a line of
    steps with | between them, or a JSON object: see the documentation of QuerySpec. It
    stays inside the scope: the default user unless one is named.

    Examples:
      worlddb query 'text apple | limit 5'                           # memories with a word
      worlddb query 'seeds 3f2a | traverse refers_to in 2'           # who speaks of it
      worlddb query 'text budget | filter_type Fact | as_of 2026-01-31T00:00:00Z'
      worlddb query '{"text": "apple", "limit": 5}' --explain        # as JSON; how it runs
    """
    arguments = call_arguments(QUERY, args)
    with open_for(QUERY, args) as memory:
        if args.everyone:
            from worlddb.query.query_spec import QuerySpec

            built = QuerySpec.of(arguments["query"]).apply(memory.db.query())
            result = built.explain() if args.explain else built.execute()
        else:
            result = (memory.explain if args.explain else memory.query)(**arguments)
        empty = nothing_found(memory, args) if not args.explain and not result else ""
    if args.explain and not wants_json(args):
        print(result)
    else:
        print_result(result, as_json=wants_json(args), empty=empty)
    return 0


@command(
    "ontology [list | declare] [TYPE]",
    action_of("list", "declare", help=None),
    option("type", "TYPE", "the name of the edge type to declare", nargs="?"),
    *(flag(f"--{name.replace('_', '-')}", help.removesuffix(".")) for name, help in TRAITS.items()),
    option("--inverse", "TYPE", "the type of the same edge read from its target"),
    *call_options(EDGE_TYPES),
)
def run_ontology(args: argparse.Namespace) -> int:
    """List edge types, or declare one.

    List the edge types that hold in a scope, or in the whole store; or declare one as
    plain data. A declared type needs no program, and holds for everybody who opens the
    store. To give a type rules of its own, register a handler in Python.

    Examples:
      worlddb ontology                                                    # the types there are
      worlddb ontology declare manages --acyclic --inverse managed_by     # for the whole store
      worlddb ontology declare lives_at --newer-ends-older --user-id ada  # for one scope
    """
    if (args.action == "declare") != (args.type is not None):
        raise InvalidInputError("ontology: give a TYPE to declare, or nothing to list them")
    with open_for(DECLARE if args.type else EDGE_TYPES, args) as memory:
        if args.type is not None:
            print_json(memory.declare(**call_arguments(DECLARE, args)).to_dict())
            return 0
        found = memory.edge_types(**call_arguments(EDGE_TYPES, args))
    if wants_json(args):
        print_json(found.to_dict())
        return 0
    rows = [
        (
            one.type,
            "ships" if one.ships else "declared" if one.declaration else "a program's",
            "" if one.declaration is None else _traits(one.declaration.to_dict()),
        )
        for one in found
    ]
    print_table(("type", "origin", "traits"), rows)
    return 0


def _traits(declared: dict[str, object]) -> str:
    held = {name: value for name, value in declared.items() if name != "type" and value}
    return ", ".join(name if value is True else f"{name} {value}" for name, value in held.items())
