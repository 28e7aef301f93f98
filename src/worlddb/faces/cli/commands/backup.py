"""`worlddb backup`: a copy of the store, while others read and write."""

from __future__ import annotations

import argparse
import os

from worlddb.faces.cli.files import landing, refuse_store
from worlddb.faces.cli.options import Subparsers, add_command, wants_json
from worlddb.faces.cli.progress import Progress, amount
from worlddb.faces.cli.stores import open_to_read, store_path
from worlddb.faces.cli.terminal import one_line, print_json
from worlddb.faces.places import checked_path


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "backup",
        arguments="TARGET",
        summary="copy the store to a new file",
        description=(
            "Copy the store as of now to a new file, while others read and write it. The copy\n"
            "is a store like any other and can be opened; 'worlddb restore' puts it in the place\n"
            "of the old one."
        ),
        examples=(
            ("worlddb backup monday.db", "copy your store"),
            ("worlddb log --db monday.db", "look into the copy"),
        ),
    )
    parser.add_argument("target", metavar="TARGET", help="the new file; it must not exist yet")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Copy, then say what the copy holds."""
    target = checked_path(args.target)
    path = store_path(args)
    refuse_store(target, path)
    with open_to_read(args) as db, landing(target, replace=False) as temporary:
        total = os.path.getsize(path) if os.path.exists(path) else None
        with Progress("copying", unit="bytes", total=total) as progress:
            progress.measure = lambda: _size(temporary)
            db.backup(temporary)
    size = os.path.getsize(target)
    from worlddb.world_db import open as open_store

    # Read from the copy itself: what it holds is what was saved.
    with open_store(target, create=False) as copy:
        last = copy.log(limit=1, newest_first=True)[0]
    if wants_json(args):
        root = str(last.root_state)
        print_json({"path": target, "bytes": size, "commit": last.seq, "root_state": root})
    else:
        print(
            f"copied up to commit {last.seq} to {one_line(target)} "
            f"({amount(size, 'bytes')}), root state {last.root_state}"
        )
    return 0


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
