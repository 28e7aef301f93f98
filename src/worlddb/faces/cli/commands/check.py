"""`worlddb check`, `prove` and `verify`: is the store sound, is a node in it, does a proof hold?"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from worlddb.errors import CorruptionError, FormatError, InvalidInputError
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
    command,
    flag,
    number,
    option,
    report,
    wants_json,
)
from worlddb.faces.cli.terminal import (
    Progress,
    paint,
    preview,
    print_fields,
    print_json,
    print_table,
)

if TYPE_CHECKING:
    from worlddb.model.address import Id
    from worlddb.model.proof import Proof
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
