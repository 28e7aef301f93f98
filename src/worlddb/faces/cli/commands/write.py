"""`worlddb write` and `worlddb amend`: remember a text, and replace a memory by a new one."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import call_arguments, call_options, open_for, run_call
from worlddb.faces.cli.command_files import opened
from worlddb.faces.cli.command_options import command, flag, option, report
from worlddb.faces.cli.progress import Progress

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory

WRITE, AMEND = call_named("write"), call_named("amend")


@command("amend ID TEXT | -", *call_options(AMEND))
def run_amend(args: argparse.Namespace) -> int:
    """Replace a memory by a new one; the old one ends.

    Write a new memory that supersedes the one whose id begins with ID, in the same
    scopes. The old one ends when the new one begins, and can still be read. With a
    scope, only memories inside it are found.

    Examples:
      worlddb amend 3f2a "Sarah likes black coffee"              # from now on
      worlddb amend 3f2a "Lives in Rome" --at 2026-03-01T00:00Z  # since then
    """
    return run_call(AMEND, args)


@command(
    "write TEXT | -",
    *call_options(WRITE),
    option("--lines", "FILE", "one memory for each line; '-' reads stdin"),
    flag("--retire-missing", "with a folder: retire its documents whose files are gone"),
    flag("--dry-run", "with a folder: say what would be written, and write nothing"),
)
def run_write(args: argparse.Namespace) -> int:
    """Remember something.

    Remember a text, the messages of a chat, a document, or each line of a file, and
    print what that did. The store is created if it does not exist. Without a scope it is a memory
    of the user that $WORLDDB_SCOPE or the settings file names, else of the user
    'default'. What is known already is not written twice, so an interrupted write can
    be repeated.

    Examples:
      worlddb write "My manager Sarah likes green tea"    # for you
      worlddb write "Prefers metric units" --user-id ada  # for somebody else
      pbpaste | worlddb write - --source clipboard        # what stdin says
      worlddb write --messages chat.json --run-id r42     # a whole conversation
      worlddb write --lines notes.txt                     # one memory for each line
      worlddb write --document docs                       # every document of a folder
      worlddb write --document docs --retire-missing --dry-run  # what has changed there?
    """
    ways = (args.text, args.messages, args.lines, args.document)
    if sum(way is not None for way in ways) != 1:
        raise InvalidInputError(
            "write: give one of TEXT ('-' reads stdin), --messages FILE, --document PATH and "
            "--lines FILE"
        )
    if args.document is not None and os.path.isdir(args.document):
        from worlddb.faces.cli.document_folder import write_folder

        return write_folder(args)
    if args.dry_run or args.retire_missing:
        raise InvalidInputError("write: --dry-run and --retire-missing need --document FOLDER")
    return run_call(WRITE, args) if args.lines is None else _write_lines(args)


def _write_lines(args: argparse.Namespace) -> int:
    if args.idempotency_key is not None:
        raise InvalidInputError("--idempotency-key: is for one memory, not for --lines")
    options = call_arguments(WRITE, args)
    counts: dict[str, Any] = {"lines": 0, "created": 0, "known": 0, "commit": None}
    with opened(args.lines) as file, Progress("writing", unit="bytes") as progress:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            progress.total = status.st_size
        with open_for(WRITE, args) as memory:
            for number, line in _lines(file, args.lines, progress):
                _write_line(memory, line, f"{args.lines}: line {number}", options, counts)
    text = "{lines:,} lines: {created:,} remembered, {known:,} known already"
    return report(args, counts, text.format(**counts))


def _write_line(
    memory: Memory, line: str, where: str, options: dict[str, Any], counts: dict[str, Any]
) -> None:
    try:
        done = memory.write(line, **options)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}; the lines before it are written") from None
    counts["lines"] += 1
    counts["created" if done.created else "known"] += 1
    if done.commit is not None:
        counts["commit"] = done.commit.seq


def _lines(file: BinaryIO, name: str, progress: Progress) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers."""
    for number, data in enumerate(file, 1):
        progress.done += len(data)
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise InvalidInputError(
                f"{name}: line {number}: is not UTF-8 text; the lines before it are written"
            ) from None
        if line:
            yield number, line
