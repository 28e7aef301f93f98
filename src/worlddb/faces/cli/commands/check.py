"""`worlddb check`, `prove`, `verify`, `log`, `diff`, `branch`, `merge`: commits and branches."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from worlddb.errors import CorruptionError, FormatError, InvalidInputError
from worlddb.faces.call_parts import PAGE_MAX
from worlddb.faces.cli.command_files import (
    given_json,
    open_memories,
    open_to_read,
    opened,
    store_path,
)
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
    report,
    report_rows,
    scope_ids,
    scope_options,
    wants_json,
)
from worlddb.faces.cli.terminal import (
    Cell,
    Progress,
    change_dict,
    change_text,
    iso,
    paint,
    preview,
    print_fields,
    print_hint,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from worlddb.ingest.branch_merge import Merged
    from worlddb.memory.memory import Memory
    from worlddb.model.address import Id
    from worlddb.model.proof import Proof
    from worlddb.model.records import Branch, Commit, Diff
    from worlddb.world_db import WorldDB


# `worlddb verify`: does a receipt hold, or a proof that nothing was rewritten?


@command(
    "verify [FILE]",
    option("file", "FILE", "a receipt, or a proof of the history; '-' is stdin", nargs="?"),
    option("--key", "HEX", "the public key that must have signed (default: the store's own)"),
    flag("--signature-only", "do not ask the question again"),
    option("--first", "HEAD", "the earlier log head that you kept"),
    option("--last", "HEAD", "the later log head"),
)
def run(args: argparse.Namespace) -> int:
    """Verify a receipt, or a proof of the history.

    Of a receipt, check the signature, and then whether it is still so. The question of a
    recall ('worlddb recall --receipt') is asked again on the store, as of what was known
    then, and the answers are compared byte for byte. What an erasure names ('worlddb
    erase --receipt') must be erased in the store, by its commit. An export ('worlddb
    export --to person --receipt') must be as it was signed.
    Of a proof ('worlddb prove --since'), check that the later log begins with the
    earlier one; this needs no store. The exit code is 0 if it holds and 1 if not.
    Without FILE, print the public key of the store, which others need for receipts.

    Examples:
      worlddb recall "Where does Anna work?" --receipt answer.json
      worlddb verify answer.json               # on the same store, at any later time
      worlddb verify answer.json --key 3f2a…   # on a copy of the store, without its key
      worlddb verify erased.json               # nothing of it came back, as by an old backup
      worlddb verify                           # the public key of the store
      worlddb verify now.json --first 77b1…    # nothing was rewritten since that log head
    """
    data = None if args.file is None else _read(args.file)
    if data is not None and "first" in data:
        return _verify_history(args, data)
    with open_memories(args, asks=True) as memory:
        if data is None:
            from worlddb.audit.signed_envelope import public_bytes, signing_key

            key = public_bytes(signing_key(memory.db.engine.store)).hex()
            return report(args, {"public_key": key}, key)
        found = memory.verify_receipt(data, public_key=args.key, again=not args.signature_only)
    holds = found.signed and found.same is not False
    if wants_json(args):
        print_json({"holds": holds} | found.to_dict())
        return OK if holds else FOUND
    if not found.signed:
        print(f"{paint('does not hold', 'red')}: the key has not signed this receipt")
    elif found.same is None:
        print(f"{paint('holds', 'green')}: the key has signed this receipt")
    elif found.same:
        print(f"{paint('holds', 'green')}: signed, and {_held(data)}")
    else:
        told = ", ".join(found.differences)
        print(f"{paint('does not hold', 'red')}: signed, but not so any more: {told}")
    return OK if holds else FOUND


def _held(data: dict[str, Any]) -> str:
    from worlddb.audit.erasure_receipt import KIND as ERASURE
    from worlddb.memory.receipts import EXPORT, receipt_in

    told = {
        ERASURE: "what it names is erased in this store",
        EXPORT: "the export is as it was signed",
    }
    return told.get(receipt_in(data)["payloadType"], "the recall has the same answer again")


def _verify_history(args: argparse.Namespace, data: dict[str, Any]) -> int:
    from worlddb.model.proof import verify_history

    holds = verify_history(data, args.first, args.last)
    heads = [data[end].get("log_head") for end in ("first", "last")] if holds else ["", ""]
    if wants_json(args):
        print_json({"holds": holds, "first": heads[0], "last": heads[1]})
    elif holds:
        print(f"{paint('holds', 'green')}: nothing was rewritten from {heads[0]} to {heads[1]}")
    else:
        print(f"{paint('does not hold', 'red')}: the later log does not begin with the earlier one")
    return OK if holds else FOUND


def _read(name: str) -> dict[str, Any]:
    with opened(name) as file:
        try:
            found = given_json(file.read().decode(), name)
        except (UnicodeDecodeError, InvalidInputError):
            found = None
    if not isinstance(found, dict):
        raise FormatError(f"{name}: is not a JSON object, so it is neither a receipt nor a proof")
    return found


# `worlddb check` and `worlddb prove`: is the store sound, and is a node in it?


@command("check")
def run_check(args: argparse.Namespace) -> int:
    """Check that the store is sound.

    Hash every node, edge and commit again and compare it with every index and the
    journal. The exit code is 0 for a sound store and 1 if anything does not fit.

    Examples:
      worlddb check                        # say what does not fit, if anything
      worlddb check --db backup.db --json  # check a backup, for a script
    """
    from worlddb.audit.store_check import STAGES

    with open_to_read(args) as db:
        with Progress("checking", unit="stages") as progress:
            STAGES.set(lambda done, total, _: progress.show(done, total))
            problems = db.check()
        # Of a damaged journal nothing more can be said.
        last = None if problems else db.log(limit=1, newest_first=True)[0]
    if wants_json(args):
        print_json(
            {
                "path": store_path(args),
                "sound": not problems,
                "commit": last and last.seq,
                "root_state": last and str(last.root_state),
                "problems": [problem.to_dict() for problem in problems],
            }
        )
    elif last is not None:
        print(f"{paint('sound', 'green')}: up to commit {last.seq}, root state {last.root_state}")
    else:
        print(f"{paint('not sound', 'red')}: problems found: {len(problems)}")
        print_table(("place", "problem"), [(found.place, found.message) for found in problems])
    return FOUND if problems else OK


ATTEMPTS = 10  # A busy writer may change the root between proof and state.


@command(
    "prove ID | --since SEQ | --verify FILE --root-state HEX",
    option("id", "ID", "a node's id, or the start of it", nargs="?"),
    number("--since", "SEQ", "prove that nothing was rewritten up to this commit"),
    option("--verify", "FILE", "check this proof; '-' is stdin"),
    option("--root-state", "HEX", "the root state to check against"),
)
def run_prove(args: argparse.Namespace) -> int:
    """Prove that a node is in the store, or that nothing was rewritten; check a proof.

    Prove that a node stands in the tree under the store's root state. The proof is the
    --json output. Checking one needs no store: only the file, and a root state that you
    have from somewhere you trust. The exit code is 0 if it holds and 1 if not.

    With --since, print the log heads of that commit and of the last one, and a proof
    that the later log begins with the earlier one. Keep the last log head: with it,
    'worlddb verify' shows later that nothing was rewritten since.

    Examples:
      worlddb prove --since 0 --json > then.json            # keep it; say, commit 41
      worlddb prove --since 41 --json > now.json            # later; see 'worlddb verify'
      worlddb prove 3f2a --json > proof.json                # make a proof
      worlddb prove --verify proof.json --root-state f912…  # check it, without a store
    """
    if (args.id, args.since, args.verify).count(None) != 2:
        raise InvalidInputError("prove: give the ID of a node, --since SEQ, or --verify FILE")
    if (args.verify is None) != (args.root_state is None):
        raise InvalidInputError("prove: --verify and --root-state belong together")
    if args.since is not None:
        return _prove_history(args)
    return _prove(args) if args.verify is None else _verify(args)


def _prove_history(args: argparse.Namespace) -> int:
    with open_to_read(args) as db:
        proof = db.prove_history(args.since)
    if wants_json(args):
        print_json(proof.to_dict())
        return OK
    for point in (proof.first, proof.last):
        fields = [("commit", str(point.commit)), ("root_state", str(point.root_state))]
        print_fields([*fields, ("log_head", str(point.log_head))])
    return OK


def _prove(args: argparse.Namespace) -> int:
    with open_to_read(args) as db:
        proof, root = _prove_under(db, args.id)
    if wants_json(args):
        print_json(proof.to_dict() | {"root_state": str(root)})
        return OK
    print_fields([("id", proof.id), ("state", proof.state), ("root_state", str(root))])
    rows = [
        (step.id[:12], step.type, len(step.bucket), len(step.forks), preview(step.name))
        for step in proof.steps
    ]
    print()
    print_table(("in world", "type", "bucket", "forks", "name"), rows)
    return OK


def _prove_under(db: WorldDB, ident: str) -> tuple[Proof, Id]:
    """Return a proof and the root state it holds under; others may commit between the two."""
    from worlddb.model.proof import verify_proof

    for _ in range(ATTEMPTS):
        root = db.root_state
        proof = db.prove(ident)
        if verify_proof(proof, root):
            return proof, root
    raise CorruptionError("the node's proof does not hold; run 'worlddb check'")


def _verify(args: argparse.Namespace) -> int:
    from worlddb.model.address import Id
    from worlddb.model.proof import verify_proof

    try:
        root = Id(args.root_state.strip())
    except InvalidInputError:
        raise InvalidInputError(
            f"--root-state {args.root_state!r:.80}: give the 64 hexadecimal digits of a root "
            "state, as 'worlddb check' prints it"
        ) from None
    proof = _load(args.verify)
    holds = verify_proof(proof, root)
    claim = {"id": proof.get("id"), "state": proof.get("state"), "root_state": str(root)}
    if wants_json(args):
        print_json({"holds": holds} | claim)
    elif holds:
        print(f"{paint('holds', 'green')}: node {claim['id']} stands under {root}")
    else:
        print(f"{paint('does not hold', 'red')}: this does not show a node under {root}")
    return OK if holds else FOUND


def _load(name: str) -> dict[str, Any]:
    import json

    try:
        if name == "-":
            data = json.load(sys.stdin)
        else:
            with open(name, encoding="utf-8") as file:
                data = json.load(file)
    except (ValueError, RecursionError):
        raise FormatError(f"{name}: is not JSON, so it is not a proof") from None
    if not isinstance(data, dict):
        raise FormatError(f"{name}: is not a JSON object, so it is not a proof")
    return data


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
    return report_rows(
        args,
        [one.to_dict() for one in found],
        ("name", "commit", "time", "bytes", "by"),
        [_row(one) for one in found],
        "there are no branches; make one with 'worlddb branch create NAME'",
    )


def _dropped(args: argparse.Namespace, memory: Memory) -> list[Branch]:
    return list(memory.drop_branch(args.name))


def _row(one: Branch) -> tuple[str, int, str, int, str]:
    return one.name, one.fork, iso(one.created_at), one.size_bytes, one.actor


def _print_diff(args: argparse.Namespace, memory: Memory) -> int:
    found = memory.branch_diff(args.name)
    data = {"branch": args.name} | _diff_dict(found)
    return report_rows(args, data, ("", "kind", "id", "type", "what"), diff_rows(found))


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
        if wants_json(args):
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
    number("--limit", "N", "list the last N commits; with --after, the first N after it"),
    flag("--newest-first", "begin with the last commit"),
    *scope_options(),
)
def run_log(args: argparse.Namespace) -> int:
    """List the commits.

    List the commits: when, by whom, how many nodes and edges each added, how many
    other changes it made, and the root's state after it. Oldest first, so the last commit
    stands at the end. Of a scope, list the commits that changed something there, with
    these changes alone.

    Examples:
      worlddb log                            # everything since the store was made
      worlddb log --limit 10                 # the last ten commits
      worlddb log --user-id ada              # what changed for Ada
      worlddb log --after 41 --json          # commits 42 and up, with their changes
    """
    from_end = args.newest_first or args.after < 0  # The side from which `limit` counts.
    with open_memories(args) as memory:
        if scope_ids(args):
            commits = _scoped_log(memory, args, from_end)
        else:
            commits = list(memory.db.log(after=args.after, limit=args.limit, newest_first=from_end))
    if from_end and not args.newest_first:
        commits = commits[::-1]
    data = [
        commit.to_dict() | {"changes": [change_dict(change) for change in commit.changes]}
        for commit in commits
    ]
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
    return report_rows(args, data, headers, rows)


def _scoped_log(memory: Memory, args: argparse.Namespace, from_end: bool) -> list[Commit]:
    """Return the commits that changed something in the scopes that were named."""
    found: list[Commit] = []
    cursor = None
    while not found or (cursor and found[-1].seq > args.after):
        page = memory.log(limit=PAGE_MAX, cursor=cursor, **scope_ids(args))
        found += page.commits
        cursor = page.next_cursor
        if cursor is None:
            break
    found = [commit for commit in found if commit.seq > args.after]
    return (found if from_end else found[::-1])[: args.limit]


@command(
    "diff FROM [TO]",
    number("seq_a", "FROM", "a commit's number, see 'log'"),
    number("seq_b", "TO", "the number of a later commit (default: the last)", nargs="?"),
    *scope_options(),
)
def run_diff(args: argparse.Namespace) -> int:
    """Show what happened between two commits.

    Show what the commits after FROM did, up to and with TO (default: the last one):
    nodes and edges added (+), and every other effect (~).

    Examples:
      worlddb diff 41 42  # what commit 42 did
      worlddb diff 41     # everything since commit 41
      worlddb diff 41 --user-id ada
    """
    scope: Any = scope_ids(args)
    with open_memories(args) as memory:
        last = args.seq_b
        if last is None:
            last = memory.db.log(limit=1, newest_first=True)[0].seq
        found = memory.diff(args.seq_a, last, **scope)
    return report_rows(
        args,
        {"from": args.seq_a, "to": last} | _diff_dict(found),
        ("", "kind", "id", "type", "what"),
        diff_rows(found),
        f"nothing was written after commit {args.seq_a}, up to commit {last}",
    )


def _diff_dict(found: Diff) -> dict[str, Any]:
    return found.to_dict() | {"changes": [change_dict(change) for change in found.changes]}


def diff_rows(found: Diff) -> list[tuple[Cell, ...]]:
    """Return the effects of commits, a row each."""
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
