"""`worlddb query`, `ontology` and `proposals`: ask the graph, and decide which nodes are one."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.call_parts import PAGE_MAX
from worlddb.faces.calls import call_named
from worlddb.faces.cli.command_files import open_memories
from worlddb.faces.cli.command_options import (
    action_of,
    call_arguments,
    call_options,
    command,
    flag,
    nothing_found,
    open_for,
    option,
    report_rows,
    scope_ids,
    scope_options,
    wants_json,
)
from worlddb.faces.cli.terminal import (
    one_line,
    preview,
    print_hint,
    print_json,
    print_result,
    print_table,
)
from worlddb.faces.graph_calls import TRAITS

if TYPE_CHECKING:
    from worlddb import Proposal, WorldDB
    from worlddb.memory.memory import Memory


# `worlddb proposals`: which nodes may be the same, and deciding it, one or many at once.

STATUSES = ("pending", "accepted", "rejected", "withdrawn", "all")
ACTIONS = ("list", "accept", "reject", "undo", "split")
TIERS = ("exact", "fuzzy", "phonetic", "embedding", "tiebreaker", "given")


@command(
    "proposals [list | accept | reject | undo | split] [ID ...]",
    action_of(*ACTIONS, help=None),
    option(
        "ids", "ID", "the proposal's edge, or its start; for split a name and memories", nargs="*"
    ),
    option(
        "--status", None, "only proposals with this status (default: pending)", choices=STATUSES
    ),
    option("--tier", "TIER", "only proposals that this tier found"),
    option("--min-score", "X", "only a score of X or more", type=float),
    option("--max-score", "X", "only a score of X or less", type=float),
    option("--name", "TEXT", "only if one of the two names contains TEXT"),
    *scope_options(),
    flag("--dry-run", "show what would be decided, and change nothing"),
    flag("--yes", "decide all proposals that the filters choose"),
    option("--actor", None, "the name in the journal (default: cli)", default="cli"),
)
def run(args: argparse.Namespace) -> int:
    """Decide which nodes are the same.

    List merge proposals, or decide them: those named by the id of their edge, or all
    that the filters choose. Nothing is merged physically, and an accepted merge can be
    undone. 'split' tells two people of one name apart: give the name or its id, then
    the memories that refer to the second one. A name is looked up in the scope: the
    default user unless one is named.

    Examples:
      worlddb proposals                                                 # what waits for a decision, surest first
      worlddb proposals accept 3f2a                                     # these two are one
      worlddb proposals accept --tier exact --min-score 0.95 --dry-run  # what would be
      worlddb proposals reject --tier phonetic --yes                    # many at once
      worlddb proposals split 'Sarah Chen' 3f2a 90aa                    # a second one, who two memories mean
    """  # noqa: E501
    with open_memories(args, actor=args.actor) as memory:
        if args.action == "split":
            return _split(memory, args)
        db = memory.db
        _check_tier(db, args.tier)
        chosen = [item for item in _found(memory, args) if _passes(db, args, item)]
        chosen.sort(key=lambda item: (-item.score, item.edge))
        if args.action != "list" and not args.dry_run:
            if not args.ids and not args.yes:
                raise InvalidInputError(
                    f"{args.action}: name proposals by id, or add --yes to decide all "
                    f"{len(chosen)} that the filters choose (--dry-run shows them)"
                )
            _decide(db, args, chosen)
            now = {item.edge: item for item in db.proposals(None)}
            chosen = [now[item.edge] for item in chosen]
        rows = [_row(db, item) for item in chosen]
    if wants_json(args):
        print_json({"action": args.action, "decided": _was_done(args), "proposals": rows})
        return 0
    if rows:
        _print_rows(rows)
    elif args.action == "list":
        print("no proposals", file=sys.stderr)
    if args.action != "list":
        word = "decided" if _was_done(args) else "would be decided"
        print(one_line(f"{len(rows)} {word}: {args.action}"))
    return 0


def _split(memory: Memory, args: argparse.Namespace) -> int:
    if len(args.ids) < 2:
        raise InvalidInputError("split: give a name or its id, then the memories of the second one")
    done = memory.split(args.ids[0], args.ids[1:], **scope_ids(args))
    if wants_json(args):
        print_json(done.to_dict())
        return 0
    seq = "" if done.commit is None else f"; to take it back: worlddb undo {done.commit.seq}"
    print(one_line(f"split {done.entity.short}: the second one is {done.new.short}{seq}"))
    if done.restored:
        rows = [(one.old.short, one.new.short if one.new else "") for one in done.restored]
        print_table(("had ended", "lives as"), rows)
    return 0


def _print_rows(rows: list[dict[str, Any]]) -> None:
    print_table(
        ("edge", "status", "tier", "score", "left", "right", "world"),
        [
            (
                row["edge"][:12],
                row["status"],
                row["tier"],
                f"{row['score']:.3f}",
                preview(row["left_name"]),
                preview(row["right_name"]),
                preview(" | ".join(dict.fromkeys(row["world_names"]))),
            )
            for row in rows
        ],
    )


def _check_tier(db: WorldDB, tier: str | None) -> None:
    """Refuse the name of a tier that neither exists nor occurs in the store's proposals."""
    if tier is None or tier in TIERS or any(item.tier == tier for item in db.proposals(None)):
        return
    raise InvalidInputError(f"--tier {tier!r}: no such tier; use one of {', '.join(TIERS)}")


def _was_done(args: argparse.Namespace) -> bool:
    return args.action != "list" and not args.dry_run


def _found(memory: Memory, args: argparse.Namespace) -> list[Proposal]:
    """Return the proposals that the ids name, or all of the scope with the wanted status."""
    db = memory.db
    if args.ids:
        edges = {db.get_edge(given).id for given in args.ids}
        found = [item for item in db.proposals(None) if item.edge in edges]
        if len(found) < len(edges):
            missing = sorted(edge.short for edge in edges - {item.edge for item in found})
            raise InvalidInputError(f"no proposal has the edge {', '.join(missing)}")
        return found
    usual = "accepted" if args.action == "undo" else "pending"
    status: Any = args.status or usual
    found = db.proposals(None if status == "all" else status)
    if not scope_ids(args):
        return found
    page = memory.proposals(status=status, limit=PAGE_MAX, **scope_ids(args))
    if page.left:
        print_hint(f"only the surest {PAGE_MAX} of the scope are looked at")
    edges = {one.edge for one in page}
    return [one for one in found if one.edge in edges]


def _passes(db: WorldDB, args: argparse.Namespace, item: Proposal) -> bool:
    if args.tier is not None and item.tier != args.tier:
        return False
    if args.min_score is not None and item.score < args.min_score:
        return False
    if args.max_score is not None and item.score > args.max_score:
        return False
    if args.name is not None:
        wanted = args.name.casefold()
        return any(wanted in _name(db, side).casefold() for side in (item.left, item.right))
    return True


def _decide(db: WorldDB, args: argparse.Namespace, chosen: list[Proposal]) -> None:
    """Decide all of them in one commit, or none."""
    status: Any = {"accept": "accepted", "reject": "rejected", "undo": "pending"}[args.action]
    db.decide_merges([item.edge for item in chosen], status, actor=args.actor)


def _name(db: WorldDB, ident: bytes) -> str:
    node = db.get(ident)
    return node.name or node.content


def _row(db: WorldDB, item: Proposal) -> dict[str, Any]:
    sides = [db.get(side) for side in (item.left, item.right)]
    worlds = [db.get(node.parent) for node in sides if node.parent is not None]
    return item.to_dict() | {
        "left_name": _name(db, item.left),
        "right_name": _name(db, item.right),
        "worlds": [str(world.id) for world in worlds],
        "world_names": [world.name or world.id.short for world in worlds],
    }


# `worlddb query` and `worlddb ontology`: ask the graph, and the edge types it is made of.

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
    rows = [
        (
            one.type,
            "ships" if one.ships else "declared" if one.declaration else "a program's",
            "" if one.declaration is None else _traits(one.declaration.to_dict()),
        )
        for one in found
    ]
    return report_rows(args, found.to_dict(), ("type", "origin", "traits"), rows)


def _traits(declared: dict[str, object]) -> str:
    held = {name: value for name, value in declared.items() if name != "type" and value}
    return ", ".join(name if value is True else f"{name} {value}" for name, value in held.items())
