"""`worlddb copy`: a store into another one, file or database."""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator
from contextlib import closing
from typing import cast

from worlddb.errors import ConflictError, StorageError
from worlddb.faces.cli.command_options import command, option, report
from worlddb.faces.cli.command_store import given_key
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.terminal import one_line
from worlddb.faces.user_paths import checked_path, creatable_store, existing_store, is_file


@command(
    "copy SOURCE TARGET",
    option("source", "SOURCE", "the store: a file, or postgresql://host/database?tenant=NAME"),
    option("target", "TARGET", "where to: another of these; it may be new"),
)
def run_copy(args: argparse.Namespace) -> int:
    """Copy a store between a file and PostgreSQL.

    Play the journal of a store into another one, in either direction. Every commit must
    come out with the hash it had. A copy that was stopped goes on where it ended, and a
    copy of a store that has grown gets what is new. Vectors are made again by the first
    search, or by 'worlddb reindex'. A key is that of the target, and of the source if the
    source is encrypted.

    Examples:
      worlddb copy memory.db 'postgresql://app@localhost/memories?tenant=acme'
      worlddb copy 'postgresql://app@localhost/memories' memory.db
    """
    from worlddb.audit.store_rekey import is_encrypted
    from worlddb.world_db import open as open_store

    source, target = existing_store(checked_path(args.source)), checked_path(args.target)
    is_same = source == target
    if is_file(source) and is_file(target) and os.path.exists(target):
        is_same = os.path.samefile(source, target)
    if is_same:
        raise StorageError(f"{args.target}: is the source itself; choose another target")
    key = given_key(args)
    keys = key if is_encrypted(source) else None, key if is_file(target) else None
    with (
        open_store(source, create=False, migrate=False, embedder="none", key=keys[0]) as old,
        open_store(creatable_store(target), embedder="none", key=keys[1]) as new,
    ):
        last = old.log(limit=1, newest_first=True)[0]
        begun = new.log(limit=1, newest_first=True)[0].seq
        if begun > last.seq:
            raise ConflictError(f"{new.path}: has commits that {old.path} has not; choose another")
        # The last commit that is there comes again, to be compared.
        lines = cast("Generator[str, None, None]", old.export(after=begun - 1))
        with (
            Progress("copying", unit="commits", total=last.seq - begun) as progress,
            closing(lines),
        ):
            added = new.replay(lines, on_commit=lambda seq: progress.show(seq - begun))
        found = new.log(limit=1, newest_first=True)[0]
    # The source may have grown meanwhile; the hash of a commit witnesses all before it.
    if found.seq == last.seq and found != last:
        raise StorageError(f"{new.path}: did not come out as it was; copy it to another target")
    root = str(found.root_state)
    return report(
        args,
        {"path": new.path, "added": added, "commit": found.seq, "root_state": root},
        f"added {added} commits to {one_line(new.path)}; now at commit {found.seq}, "
        f"root state {root}",
    )
