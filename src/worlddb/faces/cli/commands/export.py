"""`worlddb export`: the whole journal as JSON Lines."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from worlddb.errors import StorageError
from worlddb.faces.cli.files import landing, refuse_store
from worlddb.faces.cli.options import Subparsers, add_command, count, wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.stores import open_to_read, store_path
from worlddb.faces.cli.terminal import one_line, print_json

if TYPE_CHECKING:
    from worlddb.world_db import WorldDB

STDOUT = "-"
COMMIT = '{"commit":'


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "export",
        arguments="[FILE]",
        summary="write everything as JSON Lines",
        description=(
            "Write the whole journal as JSON Lines, commit by commit, on one snapshot: to FILE\n"
            "(compressed if its name ends in .gz) or to stdout. 'import' takes it back in with\n"
            "every id, both clocks and every hash as they were."
        ),
        examples=(
            ("worlddb export memory.jsonl.gz", "into a file that must not exist yet"),
            ("worlddb export --force memory.jsonl", "replace the last export, all or nothing"),
            (
                "worlddb export --after 41 | worlddb import - --db copy.db",
                "update a copy",
            ),
        ),
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", default=STDOUT, help="where to; '-' is stdout (default)"
    )
    parser.add_argument(
        "--after", metavar="SEQ", type=count, default=-1, help="only commits above this number"
    )
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the export; to a file, also say what was written."""
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
    if wants_json(args):
        print_json({"path": args.file, "commits": commits, "lines": lines, "bytes": size})
    else:
        print(f"exported {commits} commits in {lines} lines to {one_line(args.file)}")
    return 0


@contextmanager
def _writing(temporary: str, args: argparse.Namespace) -> Iterator[IO[bytes]]:
    """Yield a stream into the file; when the block ends, what was written is on disk."""
    with open(temporary, "xb", buffering=1 << 20) as file:
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
