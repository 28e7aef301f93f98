"""`worlddb rekey`: encrypt a store, change its key, or decrypt it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import command, flag, option, report
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.terminal import one_line
from worlddb.faces.user_paths import checked_path, existing_store

if TYPE_CHECKING:
    from worlddb.faces.face_settings import Settings


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
    from worlddb.audit.store_rekey import destroy_key_file, rekey
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.store_keys import store_key

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
        from worlddb.audit.store_rekey import make_key_file

        path = checked_path(args.new_key_file)
        make_key_file(path)
        return Path(path)
    if args.new_keyring is not None:
        from worlddb.faces.store_keys import new_keyring_key

        return new_keyring_key(args.new_keyring)
    return None


def _is_plain(args: argparse.Namespace, settings: Settings) -> bool:
    """Return whether the store has no key yet, though the settings give the one it will have."""
    from worlddb.audit.store_rekey import is_encrypted

    return not args.remove_key and not is_encrypted(settings.path)
