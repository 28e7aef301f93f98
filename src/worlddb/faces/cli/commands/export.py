"""`worlddb export` and `worlddb import`: the whole journal as JSON Lines, and back again."""

from __future__ import annotations

import argparse
import io
import os
import stat
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import chain
from typing import IO, TYPE_CHECKING, BinaryIO

from worlddb.errors import CorruptionError, FormatError, InvalidInputError, StorageError
from worlddb.faces.cli.command_files import (
    landing,
    open_to_read,
    open_to_write,
    opened,
    private_opener,
    refuse_store,
    store_path,
)
from worlddb.faces.cli.command_options import command, flag, number, option, report
from worlddb.faces.cli.terminal import Progress, one_line
from worlddb.faces.user_paths import shown_store

if TYPE_CHECKING:
    from worlddb.world_db import WorldDB

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
    from worlddb.faces.cli.command_options import DEFAULT_USER
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.interchange import mif_document

    with open_memories(args) as memory:
        if args.to == "person":
            user = args.user_id or settings_from(args).user_id or DEFAULT_USER
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
    source = db.export(after=after)
    try:
        with Progress("exporting", unit="commits", total=max(last - after, 0)) as progress:
            for line in _followed(source, progress):
                out.write(line.encode())
                out.write(b"\n")
                lines += 1
                commits += line.startswith(COMMIT)
            out.flush()
    finally:
        # The snapshot has to end before the store is closed.
        if isinstance(source, Generator):
            source.close()
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
    """Take in what 'export' wrote.

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

        def count_item() -> None:
            progress.done += 1

        def refuse(why: str) -> None:
            print(f"left out: {one_line(why)}", file=sys.stderr)

        counts = import_items(
            memory, args.kind, items, scope, on_item=count_item, on_refused=refuse
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
