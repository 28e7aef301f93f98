"""Document folder: the documents of a folder into a store, and those whose files are gone.

Each file is new, changed, unchanged or refused; a document without a file is missing.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import call_arguments, open_for, scope_ids
from worlddb.faces.cli.command_options import report
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.terminal import one_line
from worlddb.ingest.document_text import MEDIA_TYPES, read_document
from worlddb.model.records import WHOLES

if TYPE_CHECKING:
    from worlddb.ingest.document_text import DocumentText
    from worlddb.memory.memory import Memory
    from worlddb.memory.results import Remembered

DOCUMENT = "Document"
PAGE = 500  # Documents listed at a time.
MISSING_SHOWN = 20  # Names on the terminal; --json has all of them.


def write_folder(args: argparse.Namespace) -> int:
    """Remember the documents of a folder and its folders; one that is refused holds up no other.

    Raises:
        InvalidInputError: the options do not fit a folder, or it has no document at all and those
            of an earlier run were to be retired.
    """
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
            progress.done += 1
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
    from worlddb.faces.cli.command_store import open_memories, store_path
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
    """Say what a write of a document would do, by what its passages say."""
    from dataclasses import replace

    from worlddb.ingest.document_text import document_of
    from worlddb.ingest.passages import passages_of
    from worlddb.model.secret_patterns import without_secrets

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
