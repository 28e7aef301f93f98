"""`worlddb backup`, `restore`, `migrate`, `copy` and `rekey`: a store as a whole."""

from __future__ import annotations

import argparse
import os
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

from worlddb.errors import ConflictError, InvalidInputError, StorageError
from worlddb.faces.cli.command_files import (
    given_key,
    landing,
    open_to_read,
    refuse_store,
    store_path,
)
from worlddb.faces.cli.command_options import command, flag, option, report
from worlddb.faces.cli.terminal import Progress, amount, one_line
from worlddb.faces.user_paths import (
    checked_path,
    creatable_store,
    existing_store,
    is_file,
    shown_store,
)

if TYPE_CHECKING:
    from worlddb.faces.face_settings import Settings


# `worlddb copy`: a store into another one, file or database.


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
    from worlddb.audit.store_files import is_encrypted
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


# `worlddb rekey`: encrypt a store, change its key, or decrypt it.


@command(
    "rekey",
    option(
        "--new-key-file", "PATH", "the file of the new key; if it does not exist, a key is made"
    ),
    option("--new-keyring", "NAME", "the new key in the keyring; if there is none, a key is made"),
    flag("--remove-key", "decrypt the store"),
    flag("--discard", "keep no copy of the store as it was"),
    flag("--destroy-old-key", "with --discard: destroy the old key file, and with it old backups"),
)
def run(args: argparse.Namespace) -> int:
    """Encrypt a store, change its key, or decrypt it.

    Write the store anew under another key, check every byte of it, and put it in the
    place of the old file, in one step. The present key is that of --key-file or of the
    settings; a store that is not encrypted has none. A copy of the store as it was,
    under its old key or without one, is kept beside it, unless --discard is given. The
    store must not be open in another program. With --destroy-old-key no backup from before
    can be read any more: erase, change the key so, and make a new backup.

    Examples:
      worlddb rekey --new-key-file memory.key                           # encrypt your store
      worlddb rekey --key-file memory.key --new-key-file new.key        # change the key
      worlddb rekey --key-file memory.key --remove-key --discard        # decrypt it
    """
    from worlddb.audit.store_files import destroy_key_file, rekey
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.user_paths import store_key

    settings = settings_from(args)
    path, new = existing_store(settings.path), _new_key(args)
    old = None if _is_plain(args, settings) else store_key(settings)
    if args.destroy_old_key and not (args.discard and isinstance(old, Path) and old != new):
        raise InvalidInputError("--destroy-old-key: give --discard, and the old key as --key-file")
    with Progress("writing anew"):
        last, kept = rekey(path, key=old, new_key=new, keep=not args.discard)
    if args.destroy_old_key:
        destroy_key_file(str(old))
    done = "decrypted" if new is None else "encrypted by its new key"
    told = f"; the store as it was is kept in {one_line(kept)}, until you remove it" if kept else ""
    return report(
        args,
        {"path": path, "encrypted": new is not None, "commit": last.seq, "kept": kept},
        f"{one_line(path)}: {done}, at commit {last.seq}{told}",
    )


def _new_key(args: argparse.Namespace) -> Path | str | None:
    """Return the new key, made where there is none; None to decrypt the store."""
    chosen = [args.new_key_file, args.new_keyring, args.remove_key or None]
    if sum(one is not None for one in chosen) != 1:
        raise InvalidInputError("give one of --new-key-file, --new-keyring and --remove-key")
    if args.new_key_file is not None:
        from worlddb.audit.store_files import make_key_file

        path = checked_path(args.new_key_file)
        make_key_file(path)
        return Path(path)
    if args.new_keyring is not None:
        from worlddb.faces.user_paths import new_keyring_key

        return new_keyring_key(args.new_keyring)
    return None


def _is_plain(args: argparse.Namespace, settings: Settings) -> bool:
    """Return whether the store has no key yet, though the settings give the one it will have."""
    from worlddb.audit.store_files import is_encrypted

    return not args.remove_key and not is_encrypted(settings.path)


# `worlddb backup`, `restore` and `migrate`: a copy of the store, and back; the present format.


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
    from worlddb.audit.store_files import restore

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
    from worlddb.audit.store_files import migrate

    path = existing_store(store_path(args))
    before, present = migrate(path, key=given_key(args))
    done = f"brought from format {before} to format {present}"
    said = done if before < present else f"has format {present} already"
    path = shown_store(path)
    facts = {"path": path, "was": before, "format": present}
    return report(args, facts, f"{one_line(path)}: {said}")
