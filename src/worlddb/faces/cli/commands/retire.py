"""`worlddb retire` and `worlddb erase`: end memories, and remove texts for good."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.command_files import open_memories, refuse_target, save_json
from worlddb.faces.cli.command_options import (
    FOUND,
    YES,
    call_arguments,
    call_options,
    command,
    confirmed,
    flag,
    option,
    report,
    scope_ids,
    wants_json,
)
from worlddb.faces.cli.terminal import one_line, print_hint, print_json, print_retired
from worlddb.faces.user_paths import checked_path

if TYPE_CHECKING:
    from worlddb import Receipt
    from worlddb.memory.memory import Memory
    from worlddb.memory.results import Retired
    from worlddb.model.address import Id

RETIRE, RETIRE_ALL = call_named("retire"), call_named("retire_all")
COUNTED_MAX = 1_000  # One page; an exact number beyond that would not change a decision.


@command(
    "retire ID... | --all",
    option("ids", "ID", "a memory's id, or the start of it", nargs="*"),
    flag("--all", "every memory of the named scope"),
    *call_options(RETIRE_ALL),
)
def run_retire(args: argparse.Namespace) -> int:
    """End memories.

    End memories by their ids, or all of a scope, with what was derived from them alone.
    They can still be read, and nothing is deleted. If one of the ids is not found,
    nothing is ended. --all needs a scope, and asks unless --yes is given; without a
    terminal to ask at it is refused. To end a scope itself, see 'worlddb scopes purge'.

    Examples:
      worlddb retire 3f2a 77c1                         # two memories
      worlddb retire 3f2a --at 2026-01-31T00:00Z       # it was true until then
      worlddb retire --all --user-id ada --run-id r42  # all of Ada's in that run
      worlddb retire --all --user-id ada --where '{"project": "x"}'
    """
    if bool(args.ids) == args.all:
        raise InvalidInputError("retire: give the IDs of memories, or --all with a scope")
    if args.ids and args.where is not None:
        raise InvalidInputError("retire: --where chooses among --all, not among IDs")
    scope: dict[str, Any] = scope_ids(args)
    if args.all and not scope:
        raise InvalidInputError(
            "retire --all: name the scope: --user-id, --agent-id, --app-id or --run-id"
        )
    with open_memories(args) as memory:
        if args.all:
            given = call_arguments(RETIRE_ALL, args)
            if not confirmed(args, _question(memory, scope, given.get("where"))):
                return FOUND
            done = [memory.retire_all(confirm=True, **given)]
        else:
            done = _retire(memory, args)
    print_retired(done, wants_json(args))
    return 0


def _retire(memory: Memory, args: argparse.Namespace) -> list[Retired]:
    scope: dict[str, Any] = scope_ids(args)
    # Look up all ids first: a typo in the last one must not be found after the first has ended.
    found = dict.fromkeys(memory.read(ident, **scope).id for ident in args.ids)
    arguments = call_arguments(RETIRE, args, without=["id"])
    return [memory.retire(ident, **arguments) for ident in found]


def _question(memory: Memory, scope: dict[str, Any], where: dict[str, Any] | None) -> str:
    page = memory.list(limit=COUNTED_MAX, where=where, **scope)
    many = f"more than {COUNTED_MAX:,}" if page.next_cursor else str(len(page))
    names = ", ".join(
        f"{key.removesuffix('_id')}:{value}" for key, values in scope.items() for value in values
    )
    which = "" if where is None else " that the filter is true of"
    return f"retire all memories of {names}{which} ({many})"


@command(
    "erase ID... | --scope SCOPE | --tenant NAME",
    option("ids", "ID", "a node's id, or the start of it", nargs="*"),
    option("--scope", "SCOPE", "a scope, such as user:ada"),
    option("--tenant", "NAME", "a tenant of 'worlddb serve --stores': its store and its key"),
    option("--stores", "DIR", "with --tenant: the folder of the stores"),
    option("--stores-keys", "DIR", "with --tenant: the folder of the keys"),
    option("--receipt", "PATH", "write a signed receipt of it; see 'worlddb verify'"),
    option("--new-key-file", "PATH", "also change the key of the store, so that old backups go"),
    YES,
)
def run_erase(args: argparse.Namespace) -> int:
    """Remove texts from the file for good.

    Remove the texts of nodes, of everything inside them and of everything derived from
    any of it: names, contents, aliases, sources, metadata, words and vectors. Ids and
    validity stay, so that the rest still verifies. To end a memory without that, see
    'worlddb retire'. Backups and exports from before still have the texts, unless
    a backup is sealed.
    The file is rewritten, which takes about as long as copying it.

    With --new-key-file, the encrypted store is then written anew under that key, which is
    made if the file does not exist, and the old key file is destroyed: no backup from
    before can be read any more, of anybody in the store. Make a new backup afterwards.

    With --tenant, destroy the key of a tenant and remove its store with all files beside
    it. Without the key, nobody can read a backup of that store any more.

    Examples:
      worlddb erase 3f2a              # asks first
      worlddb erase 3f2a 77b1 --yes   # does not ask
      worlddb erase --scope user:ada  # all that lives in a scope, and its name
      worlddb erase --scope user:ada --receipt erased.json
      worlddb erase --scope user:ada --key-file old.key --new-key-file new.key
      worlddb erase --tenant acme --stores tenants --stores-keys keys
    """
    if sum(map(bool, (args.ids, args.scope, args.tenant))) != 1:
        raise InvalidInputError("erase: give the IDs of nodes, or --scope, or --tenant")
    if args.receipt is not None:
        refuse_target(args.receipt)  # Before anything is erased.
    if args.tenant:
        return _erase_tenant(args)
    old_key = None if args.new_key_file is None else _old_key_file(args)
    with open_memories(args) as memory:
        receipt = _erase(memory, args)
    if receipt is None:
        return FOUND
    if args.receipt is not None:
        save_json(args.receipt, receipt.envelope)
    if wants_json(args):
        print_json(receipt.to_dict())
    elif receipt.commit is None:
        print(
            "all of it had been erased before" + ("; the file is clean" if receipt.cleaned else "")
        )
    else:
        print(f"erased {len(receipt.ids)} nodes in commit {receipt.commit.seq}")
    if not receipt.cleaned:
        print_hint(
            "the file still holds the bytes, because another process reads an older state; erase "
            "again later"
        )
        return FOUND
    if old_key is not None:
        _change_key(args, old_key)
    return 0


def _old_key_file(args: argparse.Namespace) -> Path:
    """Return the present key file of an encrypted store, before anything is erased.

    Raises:
        InvalidInputError: the store is not encrypted, its key is in no file, or is the new one.
    """
    from worlddb.audit.store_files import is_encrypted
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.user_paths import store_key

    settings = settings_from(args)
    old = store_key(settings)
    if not is_encrypted(settings.path) or not isinstance(old, Path):
        raise InvalidInputError(
            "--new-key-file: old backups go with the old key, so the store has to be encrypted by "
            "one in a file: give it as --key-file"
        )
    if os.path.realpath(old) == os.path.realpath(args.new_key_file):
        raise InvalidInputError("--new-key-file: give another file than that of the present key")
    return old


def _change_key(args: argparse.Namespace, old: Path) -> None:
    from worlddb.audit.store_files import destroy_key_file, make_key_file, rekey
    from worlddb.faces.face_settings import settings_from

    new = Path(checked_path(args.new_key_file))
    make_key_file(str(new))
    rekey(settings_from(args).path, key=old, new_key=new, keep=False)
    destroy_key_file(str(old))
    print_hint(
        f"the key is {one_line(str(new))} now, and the old one is destroyed: no backup from before "
        "can be read, of anybody in this store, unless there is another copy of the old key; make "
        "a new backup"
    )


def _erase_tenant(args: argparse.Namespace) -> int:
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.tenant_erasure import erase_tenant

    if not confirmed(args, f"erase the tenant {args.tenant} for good, with its store and its key"):
        return FOUND
    done = erase_tenant(settings_from(args), args.tenant, receipt=args.receipt is not None)
    if args.receipt is not None:
        save_json(args.receipt, done.envelope)
    told = " and its key; no backup of it can be read any more"
    if not done.key_destroyed:
        told = "; it had no key here, so backups of it can still be read"
    return report(args, done.to_dict(), f"erased {done.tenant}: {len(done.files)} files{told}")


def _erase(memory: Memory, args: argparse.Namespace) -> Receipt | None:
    from worlddb.model.inputs import scope_named

    if args.ids:
        # Look up all ids first: a typo in the last one must not be found after an erasure.
        found = [memory.db.get(ident).id for ident in args.ids]
        if not confirmed(args, f"erase {len(found)} for good, with all inside and derived"):
            return None
        return _erase_ids(memory, found, is_signed=args.receipt is not None)
    scope = scope_named(args.scope)
    if not confirmed(args, f"erase {scope} for good, with all that lives in it"):
        return None
    return memory.erase(confirm=True, receipt=args.receipt is not None, **scope.ids())


def _erase_ids(memory: Memory, ids: list[Id], *, is_signed: bool) -> Receipt:
    if not is_signed:
        return memory.db.erase(ids, actor="cli")
    from worlddb.audit.erasure_receipt import signed_receipt
    from worlddb.audit.signed_envelope import signing_key

    engine = memory.db.engine
    signing_key(engine.store)  # Without a key nothing is erased.
    return signed_receipt(engine.store, memory.db.erase(ids, actor="cli"), engine.clock(), {})
