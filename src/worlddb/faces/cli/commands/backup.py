"""`worlddb backup`, `restore`, `migrate`, `copy`, `rekey`, `export`, `import`: whole stores."""

from __future__ import annotations

import argparse
import io
import os
import stat
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from worlddb.errors import (
    ConflictError,
    CorruptionError,
    FormatError,
    InvalidInputError,
    StorageError,
)
from worlddb.faces.cli.command_files import (
    given_key,
    landing,
    open_to_read,
    open_to_write,
    opened,
    private_opener,
    refuse_store,
    store_path,
)
from worlddb.faces.cli.command_options import command, flag, number, option, report, user_of
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
    from worlddb.world_db import WorldDB


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

    source, target = (
        existing_store(checked_path(args.source), "give another SOURCE"),
        checked_path(args.target),
    )
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


@command(
    "backup TARGET",
    option("target", "TARGET", "the new file; it must not exist yet"),
    flag("--sealed", "encrypt each text by keys beside the store, which 'erase' destroys"),
)
def run_backup(args: argparse.Namespace) -> int:
    """Copy the store to a new file.

    Copy the store as of now to a new file, while others read and write it. The copy
    is a store like any other and can be opened; 'worlddb restore' puts it in the place
    of the old one. The copy of an encrypted store is encrypted by the same key.

    With --sealed, what is erased later is lost to this backup, too. Its keys lie beside
    the store, in a file that ends in -backup-keys; those of a store on a server, where
    backup_keys=FILE in its address says. Keep that file apart from the backups: without
    it nobody can read them. 'worlddb restore' opens them; other commands cannot.

    Examples:
      worlddb backup monday.db    # copy your store
      worlddb backup --sealed monday.sealed
      worlddb log --db monday.db  # look into the copy
    """
    target = checked_path(args.target)
    path = store_path(args)
    refuse_store(target, path)
    if args.sealed:
        return _backup_sealed(args, target)
    if not is_file(path):
        raise StorageError("a server has its own backups; copy it to a file by 'worlddb copy'")
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


def _backup_sealed(args: argparse.Namespace, target: str) -> int:
    from worlddb.audit.backup_keys import keys_of

    with (
        open_to_read(args) as db,
        landing(target, replace=False) as temporary,
        Progress("sealing", unit="bytes") as progress,
    ):
        progress.measure = lambda: _size(temporary)
        db.backup(temporary, sealed=True)
        keys = keys_of(db.engine.store) or ""  # Without a place for them it was refused.
    size = os.path.getsize(target)
    return report(
        args,
        {"path": target, "bytes": size, "keys": keys},
        f"sealed to {one_line(target)} ({amount(size, 'bytes')}); its keys are in "
        f"{one_line(keys)}: keep that file, and not with the backups",
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
    option("--keys", "PATH", "the keys of a sealed backup (default: those beside the store)"),
)
def run_restore(args: argparse.Namespace) -> int:
    """Put a backup in the place of the store.

    Check every byte of a backup, bring it to the present format, and put what it holds
    in the place of the store, all of it or nothing. Logs that a crash left beside the
    store go with what it held. The backup stays as it is. The store must not be open
    in another program, and one that exists is replaced only by --force. From a sealed
    backup, what was erased since comes back as erased.

    Examples:
      worlddb restore monday.db                       # into a store that is gone
      worlddb restore monday.db --db work.db --force  # in the place of what it holds
    """
    backup, path = (
        existing_store(checked_path(args.backup), "give another BACKUP"),
        store_path(args),
    )
    if not (is_file(backup) and is_file(path)):
        raise StorageError("only a file is restored, from a file; give --db PATH")
    refuse_store(backup, path)
    if os.path.exists(path) and not args.force:
        raise StorageError(f"{path}: exists already; give --force to replace what it holds")
    from worlddb.audit.store_files import repeated_erasures, restore

    keys = None if args.keys is None else checked_path(args.keys)
    into, key = creatable_store(path), given_key(args)
    with Progress("restoring"):
        last = restore(backup, into, replace=args.force, key=key, keys=keys)
    root, gone = str(last.root_state), repeated_erasures(last)
    done = f"restored {one_line(path)} up to commit {last.seq}, root state {root}"
    facts = {"path": path, "commit": last.seq, "root_state": root}
    if gone:
        done += f"; {gone} nodes were erased since the backup, and came back as erased"
        facts["erased"] = gone
    return report(args, facts, done)


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


STDOUT = "-"
COMMIT = '{"commit":'


@command(
    "export [FILE]",
    option("file", "FILE", "where to; '-' is stdout (default)", nargs="?", default=STDOUT),
    number("--after", "SEQ", "only commits above this number", default=-1),
    flag("--force", "replace FILE if it exists"),
    option("--to", "KIND", "one user's memories alone: mif or person", choices=("mif", "person")),
    option("--user-id", "ID", "with --to: whose memories (default: $WORLDDB_SCOPE)"),
    flag("--receipt", "with --to person: with a signed receipt"),
)
def run_export(args: argparse.Namespace) -> int:
    """Write everything as JSON Lines.

    Write the whole journal as JSON Lines, commit by commit, on one snapshot: to FILE
    (compressed if its name ends in .gz) or to stdout. 'import' takes it back in with
    every id, both clocks and every hash as they were.

    With --to person, write what is remembered for one user, retired or not, to hand it
    over; --to mif is for other programs.

    Examples:
      worlddb export --to person --user-id ada --receipt ada.json # to hand over
      worlddb export memory.jsonl.gz                             # into a file that must not exist yet
      worlddb export --force memory.jsonl                        # replace the last export, all or nothing
      worlddb export --after 41 | worlddb import - --db copy.db  # update a copy
      worlddb export --to mif memories.json                      # for other programs
    """  # noqa: E501
    if args.receipt and args.to != "person":
        raise InvalidInputError("export: --receipt belongs to --to person")
    if args.to is not None:
        return _export_user(args)
    with open_to_read(args) as db:
        if args.file == STDOUT:
            if sys.stdout is None:
                raise StorageError("stdout is closed; give a FILE")
            _export(db, sys.stdout.buffer, args.after)
            return 0
        refuse_store(args.file, store_path(args))
        with landing(args.file, replace=args.force) as temporary, _writing(temporary, args) as out:
            commits, lines = _export(db, out, args.after)
    size = os.path.getsize(args.file)
    found = {"path": args.file, "commits": commits, "lines": lines, "bytes": size}
    text = f"exported {commits} commits in {lines} lines to {one_line(args.file)}"
    return report(args, found, text)


def _export_user(args: argparse.Namespace) -> int:
    import json

    from worlddb.faces.cli.command_files import open_memories
    from worlddb.faces.interchange import mif_document

    with open_memories(args) as memory:
        if args.to == "person":
            user = args.user_id or user_of(args)
            document = memory.export(user_id=user, receipt=args.receipt).to_dict()
        else:
            document = mif_document(memory, {"user_id": args.user_id} if args.user_id else {})
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if args.file == STDOUT:
        sys.stdout.write(text)
        return 0
    refuse_store(args.file, store_path(args))
    with landing(args.file, replace=args.force) as temporary, _writing(temporary, args) as out:
        out.write(text.encode())
    count = len(document["memories"])
    found = {"path": args.file, "memories": count}
    return report(args, found, f"exported {count} memories to {one_line(args.file)}")


@contextmanager
def _writing(temporary: str, args: argparse.Namespace) -> Iterator[IO[bytes]]:
    """Yield a stream into the file; when the block ends, what was written is on disk."""
    with open(temporary, "xb", buffering=1 << 20, opener=private_opener) as file:
        if args.file.endswith(".gz"):
            import gzip

            # No name and no time in it: equal stores give equal files.
            with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                yield packed  # type: ignore[misc]
        else:
            yield file
        file.flush()
        os.fsync(file.fileno())


def _export(db: WorldDB, out: IO[bytes], after: int) -> tuple[int, int]:
    """Write the lines; return how many commits and lines there were."""
    last = db.log(limit=1, newest_first=True)[0].seq
    commits = lines = 0
    source = cast("Generator[str, None, None]", db.export(after=after))
    # The snapshot of the export has to end before the store is closed.
    with closing(source), Progress("exporting", unit="commits", total=max(last - after, 0)) as bar:
        for line in _followed(source, bar):
            out.write(line.encode())
            out.write(b"\n")
            lines += 1
            commits += line.startswith(COMMIT)
        out.flush()
    return commits, lines


def _followed(lines: Iterable[str], progress: Progress) -> Iterable[str]:
    """Yield the lines and keep the progress: commits, and the part of a long one that is done."""
    if not progress.visible:
        yield from lines
        return
    import json

    commits, size, done = -1, 1, 0
    for line in lines:
        if line.startswith(COMMIT):
            head = json.loads(line)
            size = 1 + head["nodes"] + head["edges"] + head["notes"]
            commits, done = commits + 1, 0
        done += 1
        progress.done = max(commits, 0) + done / size
        yield line


GZIP_MAGIC = b"\x1f\x8b"


KINDS = (
    "claude-code",
    "codex",
    "chatgpt",
    "claude",
    "mem0",
    "mcp-memory",
    "basic-memory",
    "graphiti",
    "mif",
)


@command(
    "import FILE",
    option("file", "FILE", "the export; '-' is stdin"),
    option("--from", "KIND", f"another program's: {', '.join(KINDS)}", choices=KINDS, dest="kind"),
    flag("--dry-run", "with --from: count what is there, and write nothing"),
    option("--user-id", "ID", "with --from: whose memories they become"),
    option("--app-id", "ID", "with --from: and of which app"),
)
def run_import(args: argparse.Namespace) -> int:
    """Take in what 'export' wrote, or what another program remembers.

    Play an export into a store, which is made if it is new. Every commit must come out
    with the hash it had; one that was changed on the way ends the import, and those
    before it stay. Commits that are there already are compared and skipped, so an
    import can be repeated or continued. Compressed exports are recognised.
    With --from, take in what another program remembers, from a file or a folder: each
    item is written once, however often the import is repeated.

    Examples:
      worlddb import memory.jsonl.gz --db new.db                    # a store from an export
      worlddb export | worlddb import - --db new.db                 # a copy that shares no byte
      worlddb import --from chatgpt export.zip --dry-run            # what is in it?
      worlddb import --from claude-code ~/.claude/projects          # all transcripts
      worlddb import --from mem0 memories.json --user-id ada        # for this user
    """
    if args.kind is not None:
        return _import_from(args)
    if args.dry_run or args.user_id or args.app_id:
        raise InvalidInputError("import: --dry-run, --user-id and --app-id need --from KIND")
    path = shown_store(store_path(args))
    seen: list[int] = []
    with (
        opened(args.file) as file,
        Progress("importing", unit="bytes") as progress,
        closing(_lines(file, args.file, progress)) as lines,
    ):
        export = _checked(lines)
        with open_to_write(args) as db:
            added = db.replay(export, on_commit=seen.append)
            last = db.log(limit=1, newest_first=True)[0]
    # Commit 0 is in every store, so it is not counted as skipped.
    skipped = sum(seq > 0 for seq in seen) - added
    root = str(last.root_state)
    found = {"path": path, "added": added, "skipped": skipped}
    return report(
        args,
        found | {"commit": last.seq, "root_state": root},
        f"added {added} commits to {one_line(path)}, {skipped} were there already; "
        f"now at commit {last.seq}, root state {root}",
    )


def _import_from(args: argparse.Namespace) -> int:
    from worlddb.faces.cli.command_files import open_memories
    from worlddb.faces.interchange import READERS, import_items

    if not os.path.exists(args.file):
        raise StorageError(f"{args.file}: does not exist")
    items = READERS[args.kind](args.file)
    first = next(items, None)
    if first is None:
        raise FormatError(
            f"{args.file}: has nothing that --from {args.kind} reads; is it of another KIND? "
            f"known are {', '.join(KINDS)}"
        )
    items = chain([first], items)
    kinds = ("user_id", "app_id")
    scope = {kind: getattr(args, kind) for kind in kinds if getattr(args, kind) is not None}
    if args.dry_run:
        count = sum(1 for _ in items)
        text = f"{count:,} items in {one_line(args.file)}; nothing was written"
        return report(args, {"path": args.file, "items": count}, text)
    with (
        Progress("importing", unit="items", tells=True) as progress,
        open_memories(args, create=True, reads=True) as memory,
    ):
        counts = import_items(
            memory,
            args.kind,
            items,
            scope,
            user_id=user_of(args),
            on_item=progress.count,
            on_refused=lambda why: print(f"left out: {one_line(why)}", file=sys.stderr),
        )
    told = "{items:,} items: {created:,} remembered, {known:,} known already, {refused:,} left out"
    return report(args, counts.to_dict(), told.format(**counts.to_dict()))


def _lines(file: BinaryIO, name: str, progress: Progress) -> Generator[str, None, None]:
    """Yield the lines of an export, compressed or not."""
    import gzip
    import zlib

    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode):
        progress.total = status.st_size
        progress.measure = file.tell
    head = file.peek(len(GZIP_MAGIC)) if isinstance(file, io.BufferedReader) else b""
    unpacked = gzip.GzipFile(fileobj=file) if head.startswith(GZIP_MAGIC) else file
    # Only "\n" ends a line: text may hold other marks that Python would split at.
    text = io.TextIOWrapper(unpacked, encoding="utf-8", newline="\n")
    try:
        for line in text:
            if progress.measure is None:
                progress.done += len(line)
            yield line
    except UnicodeDecodeError:
        raise FormatError(f"{name}: is not UTF-8 text, so it is not an export") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{name}: the compressed file is damaged: {error}") from None
    finally:
        text.detach()  # Or it would close the file under the progress line.


def _checked(lines: Iterator[str]) -> Iterator[str]:
    """Return all the lines, having seen that they begin an export.

    Otherwise a wrong file would be refused only after an empty store was made for it.
    """
    from worlddb.world_db import open as open_store

    first = next(lines, "")
    # A first line alone is not a complete export; that does not matter here.
    with open_store(":memory:") as nothing, suppress(CorruptionError):
        nothing.replay([first])
    return chain([first], lines)
