"""`worlddb verify`: does a receipt hold, or a proof that nothing was rewritten?"""

from __future__ import annotations

import argparse
from typing import Any

from worlddb.errors import FormatError, InvalidInputError
from worlddb.faces.cli.command_files import given_json, opened
from worlddb.faces.cli.command_options import command, flag, option, report, wants_json
from worlddb.faces.cli.command_store import open_memories
from worlddb.faces.cli.exit_codes import FOUND, OK
from worlddb.faces.cli.terminal import paint, print_json


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
    from worlddb.memory.receipt_verification import receipt_in
    from worlddb.memory.scope_export import KIND as EXPORT

    told = {
        ERASURE: "what it names is erased in this store",
        EXPORT: "the export is as it was signed",
    }
    return told.get(receipt_in(data)["payloadType"], "the recall has the same answer again")


def _verify_history(args: argparse.Namespace, data: dict[str, Any]) -> int:
    from worlddb.model.history_proof import verify_history

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
