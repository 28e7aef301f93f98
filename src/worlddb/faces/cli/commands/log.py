"""`worlddb log`, `diff`, `branch` and `merge`: the commits, and a branch to try something on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_files import open_memories, open_to_read
from worlddb.faces.cli.command_options import (
    FOUND,
    OK,
    YES,
    action_of,
    command,
    confirmed,
    flag,
    number,
    option,
    wants_json,
)
from worlddb.faces.cli.command_options import wants_json as as_json
from worlddb.faces.cli.terminal import Cell, iso, preview, print_hint, print_json, print_table

if TYPE_CHECKING:
    from worlddb.ingest.branch_merge import Merged
    from worlddb.memory.memory import Memory
    from worlddb.model.records import Branch, Diff


# `worlddb branch` and `worlddb merge`: try something on a branch, look at it, keep it or not.


@command(
    "branch [list | create | diff | drop] [NAME]",
    action_of("list", "create", "diff", "drop"),
    option("name", "NAME", "the name of a branch", nargs="?"),
    YES,
)
def run_branch(args: argparse.Namespace) -> int:
    """Try something on a branch of the store.

    A branch is a store of its own that begins as the store is now, and takes the space
    of what is written to it. Every command works on it with --branch NAME. Look at what
    was written to it ('diff'), then keep it ('worlddb merge') or not ('drop').

    Examples:
      worlddb branch create try
      worlddb --branch try import notes.jsonl      # any command, on the branch
      worlddb --branch try test beliefs.json
      worlddb branch diff try
      worlddb merge try --drop
      worlddb branch drop try --yes
    """
    if (args.name is None) != (args.action == "list"):
        raise InvalidInputError(f"branch {args.action}: give a name to all but 'list'")
    with open_memories(args) as memory:
        if args.action == "diff":
            return _print_diff(args, memory)
        if args.action == "drop" and args.name in {one.name for one in memory.branches()}:
            if not confirmed(args, f"drop branch {args.name} with all that was written to it"):
                return FOUND
        if args.action == "create":
            found = [memory.create_branch(args.name)]
        else:
            found = list(memory.branches() if args.action == "list" else _dropped(args, memory))
    if as_json(args):
        print_json([one.to_dict() for one in found])
    elif found:
        print_table(("name", "commit", "time", "bytes", "by"), [_row(one) for one in found])
    else:
        print_hint("there are no branches; make one with 'worlddb branch create NAME'")
    return OK


def _dropped(args: argparse.Namespace, memory: Memory) -> list[Branch]:
    return list(memory.drop_branch(args.name))


def _row(one: Branch) -> tuple[str, int, str, int, str]:
    return one.name, one.fork, iso(one.created_at), one.size_bytes, one.actor


def _print_diff(args: argparse.Namespace, memory: Memory) -> int:
    from worlddb.faces.cli.terminal import change_dict

    found = memory.branch_diff(args.name)
    if as_json(args):
        changes = {"changes": [change_dict(change) for change in found.changes]}
        print_json({"branch": args.name} | found.to_dict() | changes)
    else:
        print_table(("", "kind", "id", "type", "what"), diff_rows(found))
    return OK


@command(
    "merge NAME",
    option("name", "NAME", "the name of a branch"),
    flag("--dry-run", "say what would be done, and write nothing"),
    flag("--drop", "remove the branch once it is merged"),
)
def run_merge(args: argparse.Namespace) -> int:
    """Write what a branch says into the store.

    Everything that was written to the branch since the last merge is written to the
    store, as one commit; edges go through their handlers again. What both have changed
    stays as both say it: conflicts are flagged and listed, and names that both have
    written are proposed as the same. 'worlddb undo' takes the merge back. The exit code
    is 1 if there are conflicts.

    Examples:
      worlddb merge try --dry-run  # what would be in conflict
      worlddb merge try --drop
    """
    if args.dry_run and args.drop:
        raise InvalidInputError("--dry-run writes nothing, so --drop would lose the branch")
    with open_memories(args) as memory:
        done = memory.merge(args.name, dry_run=args.dry_run)
        if args.drop:
            memory.drop_branch(args.name)
        if as_json(args):
            print_json(done.to_dict())
        else:
            _print_merged(done)
    return FOUND if done.conflicts else OK


def _print_merged(done: Merged) -> None:
    if done.commit is None and not done.dry_run:
        print(f"branch {done.branch}: nothing is new")
        return
    would = "would be merged" if done.commit is None else f"was merged by commit {done.commit.seq}"
    print(f"branch {done.branch} {would}: {done.nodes} nodes, {done.edges} edges")
    rows = [
        (
            one.kind,
            one.left.short,
            "" if one.right is None else one.right.short,
            preview(one.reason),
        )
        for one in done.conflicts
    ]
    if rows:
        print_table(("conflict", "branch", "store", "reason"), rows)
    if done.proposals:
        print_hint(f"{len(done.proposals)} names may be the same: worlddb proposals")
    if done.commit is not None:
        print_hint(f"to take it back: worlddb undo {done.commit.seq}")


# `worlddb log` and `worlddb diff`: the commits, and what they changed.


@command(
    "log",
    number("--after", "SEQ", "only commits above this number", default=-1),
    number("--limit", "N", "list at most N commits"),
    flag("--newest-first", "begin with the last commit"),
)
def run_log(args: argparse.Namespace) -> int:
    """List the commits.

    List the commits: when, by whom, how many nodes and edges each added, how many
    other changes it made, and the root's state after it. Oldest first.

    Examples:
      worlddb log                            # everything since the store was made
      worlddb log --newest-first --limit 10  # the last ten commits
      worlddb log --after 41 --json          # commits 42 and up, with their changes
    """
    with open_to_read(args) as db:
        commits = db.log(after=args.after, limit=args.limit, newest_first=args.newest_first)
    if wants_json(args):
        from worlddb.faces.cli.terminal import change_dict

        changed = [
            commit.to_dict() | {"changes": [change_dict(change) for change in commit.changes]}
            for commit in commits
        ]
        print_json(changed)
        return 0
    rows = [
        (
            commit.seq,
            iso(commit.time),
            commit.nodes,
            commit.edges,
            len(commit.changes),
            commit.root_state.short,
            commit.hash.short,
            commit.actor,
        )
        for commit in commits
    ]
    headers = ("seq", "time", "nodes", "edges", "changes", "root_state", "hash", "actor")
    print_table(headers, rows)
    return 0


@command(
    "diff FROM [TO]",
    number("seq_a", "FROM", "a commit's number, see 'log'"),
    number("seq_b", "TO", "the number of a later commit (default: the last)", nargs="?"),
)
def run_diff(args: argparse.Namespace) -> int:
    """Show what happened between two commits.

    Show what the commits after FROM did, up to and with TO (default: the last one):
    nodes and edges added (+), and every other effect (~).

    Examples:
      worlddb diff 41 42  # what commit 42 did
      worlddb diff 41     # everything since commit 41
    """
    with open_to_read(args) as db:
        last = args.seq_b
        if last is None:
            last = db.log(limit=1, newest_first=True)[0].seq
        found = db.diff(args.seq_a, last)
    if wants_json(args):
        from worlddb.faces.cli.terminal import change_dict

        changes = {"changes": [change_dict(change) for change in found.changes]}
        print_json({"from": args.seq_a, "to": last} | found.to_dict() | changes)
        return 0
    print_table(("", "kind", "id", "type", "what"), diff_rows(found))
    return 0


def diff_rows(found: Diff) -> list[tuple[Cell, ...]]:
    """Return what commits did, a row each."""
    from worlddb.faces.cli.terminal import change_text

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
