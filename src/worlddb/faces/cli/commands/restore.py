"""`worlddb restore`: what a backup holds, in the place of a store."""

from __future__ import annotations

import argparse
import os

from worlddb.errors import StorageError
from worlddb.faces.cli.files import refuse_store
from worlddb.faces.cli.options import Subparsers, add_command, wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.stores import store_path
from worlddb.faces.cli.terminal import one_line, print_json
from worlddb.faces.places import IN_MEMORY, checked_path, existing_store, roomy_store


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "restore",
        arguments="BACKUP",
        summary="put a backup in the place of the store",
        description=(
            "Check every byte of a backup, bring it to the present format, and put what it holds\n"
            "in the place of the store, all of it or nothing. Logs that a crash left beside the\n"
            "store go with what it held. The backup stays as it is. The store must not be open\n"
            "in another program, and one that exists is replaced only by --force."
        ),
        examples=(
            ("worlddb restore monday.db", "into a store that is gone"),
            ("worlddb restore monday.db --db work.db --force", "in the place of what it holds"),
        ),
    )
    parser.add_argument("backup", metavar="BACKUP", help="a file that 'worlddb backup' wrote")
    parser.add_argument("--force", action="store_true", help="replace the store if it exists")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Restore, and say what the store holds now."""
    backup, path = existing_store(checked_path(args.backup)), store_path(args)
    if IN_MEMORY in (backup, path):
        raise StorageError("a store in memory has no file to restore; give --db PATH")
    refuse_store(backup, path)
    if os.path.exists(path) and not args.force:
        raise StorageError(f"{path}: exists already; give --force to replace what it holds")
    from worlddb.audit.backup_restore import restore

    with Progress("restoring"):
        last = restore(backup, roomy_store(path), replace=args.force)
    if wants_json(args):
        print_json({"path": path, "commit": last.seq, "root_state": str(last.root_state)})
    else:
        print(f"restored {one_line(path)} up to commit {last.seq}, root state {last.root_state}")
    return 0
