"""`worlddb write`, `amend` and `demo`: remember texts and folders, replace one, write a sample."""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any, BinaryIO

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.command_files import opened
from worlddb.faces.cli.command_options import (
    call_arguments,
    call_options,
    command,
    flag,
    open_for,
    option,
    report,
    run_call,
    scope_ids,
)
from worlddb.faces.cli.terminal import Progress, one_line

if TYPE_CHECKING:
    from worlddb.ingest.document_text import DocumentText
    from worlddb.memory.memory import Memory
    from worlddb.memory.results import Remembered


# `worlddb demo`: sample data, so that a newcomer sees something alive.

SAMPLE_USER = "sample"


@command(
    "demo",
    option("--user-id", "ID", f"whose memories the sample becomes (default: {SAMPLE_USER})"),
)
def run(args: argparse.Namespace) -> int:
    """Write sample data to look at.

    Write a handful of memories of half a year: a move, a changed budget, colleagues
    and a wish. They are those of the button in the explorer, for the user 'sample'
    and thus apart from your own. To write them twice changes nothing.

    Examples:
      worlddb demo && worlddb open                                       # look at it in the browser
      worlddb recall "Where do I live?" --user-id sample                 # ask
      worlddb erase --scope user:sample                                  # remove it for good
    """
    from worlddb.faces.cli.command_files import open_memories

    page = files("worlddb.faces.http") / "pages" / "sample.json"
    user = args.user_id or SAMPLE_USER
    with open_memories(args, create=True, reads=True) as memory:
        done = [
            memory.write(one["text"], at=one["at"], source="sample data", user_id=user)
            for one in json.loads(page.read_text(encoding="utf-8"))
        ]
    data = {"user_id": user, "memories": len(done), "created": sum(one.created for one in done)}
    new = f"{data['created']} of {len(done)} memories" if data["created"] else "nothing new"
    ask = f'worlddb recall "Where do I live?" --user-id {user}'
    text = f"{new} written for the user {user!r}; see: worlddb open; ask: {ask}"
    return report(args, data, text)


# Document folder: the documents of a folder into a store, and those whose files are gone.
#
# Each file is new, changed, unchanged or refused; a document without a file is missing.

DOCUMENT = "Document"
PAGE = 500  # Documents listed at a time.
MISSING_SHOWN = 20  # Names on the terminal; --json has all of them.


def write_folder(args: argparse.Namespace) -> int:
    """Remember the documents of a folder and its folders; one that is refused holds up no other.

    Raises:
        InvalidInputError: the options do not fit a folder, or it has no document at all and those
            of an earlier run were to be retired.
    """
    from worlddb.ingest.document_text import read_document

    if args.idempotency_key is not None:
        raise InvalidInputError("--idempotency-key: is for one document, not for a folder")
    paths = list(_documents(args.document))
    options = call_arguments(call_named("write"), args, without=("document",))
    counts: dict[str, Any] = dict.fromkeys(("documents", "new", "changed", "unchanged"), 0)
    counts |= {"refused": 0}
    with Progress("writing", unit="files") as progress, _opened(args) as memory:
        progress.total = len(paths)
        kept = _kept(memory, args.document, scope_ids(args))
        for path in paths:
            progress.count()
            counts["documents"] += 1
            try:
                document = read_document(path)
                if args.dry_run:
                    state = _compared(memory, document, kept.get(document.name))
                else:
                    done = memory.write(document=document, **options)
                    state = "unchanged" if done.commit is None else "changed"
                    state = "new" if done.created else state
                counts[state] += 1
            except InvalidInputError as error:
                counts["refused"] += 1
                print(one_line(f"worlddb: {error}"), file=sys.stderr)
        missing = {name: kept[name] for name in sorted(kept) if not os.path.lexists(name)}
        if missing:
            counts["missing"] = list(missing)
            counts["retired"] = _retire(memory, list(missing.values()), paths, args)
    return report(args, counts, _told(counts, args))


def _opened(args: argparse.Namespace) -> Memory:
    """Open the store; a dry run makes none where there is none."""
    from worlddb.faces.cli.command_files import open_memories, store_path
    from worlddb.faces.user_paths import is_file
    from worlddb.memory.memory import Memory

    if not args.dry_run:
        return open_for(call_named("write"), args)
    path = store_path(args)
    if is_file(path) and not os.path.exists(path):
        return Memory(":memory:", embedder="none")
    return open_memories(args)


def _documents(folder: str) -> Iterator[str]:
    """Yield the paths of the documents below a folder, but for hidden folders such as .git."""
    from worlddb.ingest.document_text import MEDIA_TYPES

    for place, inner, names in os.walk(folder):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        for name in sorted(names):
            if os.path.splitext(name)[1].lower() in MEDIA_TYPES:
                yield os.path.join(place, name)


def _kept(memory: Memory, folder: str, scope: Mapping[str, Any]) -> dict[str, Remembered]:
    """Return the live documents of a scope whose names lie below a folder."""
    below, found = os.path.join(folder, ""), dict[str, "Remembered"]()
    cursor: str | None = None
    while True:
        page = memory.list(types=[DOCUMENT], limit=PAGE, cursor=cursor, **scope)
        named = {str(one.metadata["document"]): one for one in page}
        found |= {name: one for name, one in named.items() if name.startswith(below)}
        cursor = page.next_cursor
        if cursor is None:
            return found


def _compared(memory: Memory, document: DocumentText, there: Remembered | None) -> str:
    """Return what writing a document would do: new, changed or unchanged, by its passages."""
    from dataclasses import replace

    from worlddb.ingest.document_text import document_of, passages_of
    from worlddb.model.records import WHOLES
    from worlddb.model.text_safety import without_secrets

    document = document_of(document)
    if there is None:
        return "new"
    parts = [one for one in memory.db.children(there.id) if one.type == WHOLES[DOCUMENT]]
    parts.sort(key=lambda part: part.metadata["number"])
    held = [(part.name, part.content) for part in parts]
    # A scope may have masked what looks like a secret.
    for text in (document.text, without_secrets(document.text)):
        passages = passages_of(replace(document, text=text))
        if held == [(passage.path, passage.text) for passage in passages]:
            return "unchanged"
    return "changed"


def _retire(
    memory: Memory, missing: list[Remembered], paths: list[str], args: argparse.Namespace
) -> int:
    """Retire documents whose files are gone, if that was asked for; return how many were."""
    if not args.retire_missing or args.dry_run:
        return 0
    if not paths:
        raise InvalidInputError(
            f"--retire-missing: {args.document} has no document at all; is it the right folder? "
            f"'worlddb retire' ends single documents"
        )
    for one in missing:
        memory.retire(one.id)
    return len(missing)


def _told(counts: dict[str, Any], args: argparse.Namespace) -> str:
    text = "{documents:,} documents: {new:,} new, {changed:,} changed, {unchanged:,} unchanged"
    text += ", {refused:,} refused" if counts["refused"] else ""
    told = text.format(**counts) + (" (dry run: nothing was written)" if args.dry_run else "")
    gone: list[str] = counts.get("missing", [])
    if not gone:
        return told
    lines = [f"  {one_line(name)}" for name in gone[:MISSING_SHOWN]]
    lines += ["  …"] if len(gone) > MISSING_SHOWN else []
    if counts["retired"]:
        what = "retired"
    else:
        what = "would be retired" if args.retire_missing else "--retire-missing retires them"
    return "\n".join([told, f"{len(gone):,} with no file any more; {what}:", *lines])


# `worlddb write` and `worlddb amend`: remember a text, and replace a memory by a new one.

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
