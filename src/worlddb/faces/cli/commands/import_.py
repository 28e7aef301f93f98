"""`worlddb import`: play an export into a store."""

from __future__ import annotations

import argparse
import io
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from itertools import chain
from typing import BinaryIO

from worlddb.errors import CorruptionError, FormatError
from worlddb.faces.cli.given import opened
from worlddb.faces.cli.options import Subparsers, add_command, wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.stores import open_to_write, store_path
from worlddb.faces.cli.terminal import one_line, print_json

GZIP_MAGIC = b"\x1f\x8b"


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "import",
        arguments="FILE",
        summary="take in what 'export' wrote",
        description=(
            "Play an export into a store, which is made if it is new. Every commit must come out\n"
            "with the hash it had; one that was changed on the way ends the import, and those\n"
            "before it stay. Commits that are there already are compared and skipped, so an\n"
            "import can be repeated or continued. Compressed exports are recognised."
        ),
        examples=(
            ("worlddb import memory.jsonl.gz --db new.db", "a store from an export"),
            ("worlddb export | worlddb import - --db new.db", "a copy that shares no byte"),
        ),
    )
    parser.add_argument("file", metavar="FILE", help="the export; '-' is stdin")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Import, and say what was added."""
    path = store_path(args)
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
    # Commit 0 is in every store; that it was there already is no news.
    skipped = sum(seq > 0 for seq in seen) - added
    root = last.root_state
    if wants_json(args):
        found = {"path": path, "added": added, "skipped": skipped}
        print_json(found | {"commit": last.seq, "root_state": str(root)})
    else:
        print(
            f"added {added} commits to {one_line(path)}, {skipped} were there already; "
            f"now at commit {last.seq}, root state {root}"
        )
    return 0


def _lines(file: BinaryIO, name: str, progress: Progress) -> Generator[str, None, None]:
    """Yield the lines of an export, compressed or not.

    Raises:
        FormatError: the bytes are no text, or cut off.
    """
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
        raise FormatError(f"{name}: is not UTF-8 text, so it is no export") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(f"{name}: the compressed file is damaged: {error}") from None
    finally:
        text.detach()  # Or it would close the file under the progress line.


def _checked(lines: Iterator[str]) -> Iterator[str]:
    """Return all the lines, having seen that they begin an export.

    Otherwise a wrong file would be refused only after an empty store was made for it.

    Raises:
        FormatError: they do not.
    """
    from worlddb.world_db import open as open_store

    first = next(lines, "")
    # That a first line alone is no whole export does not matter here.
    with open_store(":memory:") as nothing, suppress(CorruptionError):
        nothing.replay([first])
    return chain([first], lines)
