"""`worlddb backup`, `restore` and `migrate`: a copy of the store, and back; the present format."""

from __future__ import annotations

import argparse
import os

from worlddb.errors import StorageError
from worlddb.faces.cli.command_files import landing, refuse_store
from worlddb.faces.cli.command_options import command, flag, option, report
from worlddb.faces.cli.command_store import given_key, open_to_read, store_path
from worlddb.faces.cli.progress import Progress, amount
from worlddb.faces.cli.terminal import one_line
from worlddb.faces.user_paths import (
    checked_path,
    creatable_store,
    existing_store,
    is_file,
    shown_store,
)


@command("backup TARGET", option("target", "TARGET", "the new file; it must not exist yet"))
def run_backup(args: argparse.Namespace) -> int:
    """Copy the store to a new file.

    Copy the store as of now to a new file, while others read and write it. The copy
    is a store like any other and can be opened; 'worlddb restore' puts it in the place
    of the old one. The copy of an encrypted store is encrypted by the same key.

    Examples:
      worlddb backup monday.db    # copy your store
      worlddb log --db monday.db  # look into the copy
    """
    target = checked_path(args.target)
    path = store_path(args)
    if not is_file(path):
        raise StorageError(
            "a server is backed up by its own tools; 'worlddb copy' writes a store to a file"
        )
    refuse_store(target, path)
    with open_to_read(args) as db, landing(target, replace=False) as temporary:
        total = os.path.getsize(path) if os.path.exists(path) else None
        with Progress("copying", unit="bytes", total=total) as progress:
            progress.measure = lambda: _size(temporary)
            db.backup(temporary)
    size = os.path.getsize(target)
    from worlddb.world_db import open as open_store

    # Read from the copy itself: what it holds is what was saved.
    with open_store(target, create=False, key=given_key(args)) as copy:
        last = copy.log(limit=1, newest_first=True)[0]
    root = str(last.root_state)
    return report(
        args,
        {"path": target, "bytes": size, "commit": last.seq, "root_state": root},
        f"copied up to commit {last.seq} to {one_line(target)} "
        f"({amount(size, 'bytes')}), root state {root}",
    )


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


@command(
    "restore BACKUP",
    option("backup", "BACKUP", "a file that 'worlddb backup' wrote"),
    flag("--force", "replace the store if it exists"),
)
def run_restore(args: argparse.Namespace) -> int:
    """Put a backup in the place of the store.

    Check every byte of a backup, bring it to the present format, and put what it holds
    in the place of the store, all of it or nothing. Logs that a crash left beside the
    store go with what it held. The backup stays as it is. The store must not be open
    in another program, and one that exists is replaced only by --force.

    Examples:
      worlddb restore monday.db                       # into a store that is gone
      worlddb restore monday.db --db work.db --force  # in the place of what it holds
    """
    backup, path = existing_store(checked_path(args.backup)), store_path(args)
    if not (is_file(backup) and is_file(path)):
        raise StorageError("only a file is restored, from a file; give --db PATH")
    refuse_store(backup, path)
    if os.path.exists(path) and not args.force:
        raise StorageError(f"{path}: exists already; give --force to replace what it holds")
    from worlddb.audit.backup_restore import restore

    with Progress("restoring"):
        last = restore(backup, creatable_store(path), replace=args.force, key=given_key(args))
    root = str(last.root_state)
    done = f"restored {one_line(path)} up to commit {last.seq}, root state {root}"
    return report(args, {"path": path, "commit": last.seq, "root_state": root}, done)


@command("migrate")
def run_migrate(args: argparse.Namespace) -> int:
    """Bring a store to the present format; keep a copy.

    Bring a store that an older version wrote to the format of this version. A copy of
    the store as it was is kept beside it. Ids, hashes and the journal stay. Commands that
    only read never do this. 'worlddb write' and the servers do, and say so.

    Examples:
      worlddb migrate               # your store
      worlddb migrate --db work.db  # another one
    """
    from worlddb.audit.backup_restore import migrate

    path = existing_store(store_path(args))
    before, present = migrate(path, key=given_key(args))
    done = f"brought from format {before} to format {present}"
    said = done if before < present else f"has format {present} already"
    path = shown_store(path)
    facts = {"path": path, "was": before, "format": present}
    return report(args, facts, f"{one_line(path)}: {said}")
