"""`worlddb extract`: let a language model read what it could not when it was written."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.faces.cli.options import Subparsers, add_command, count, wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.stores import open_to_read, store_path
from worlddb.faces.cli.terminal import iso, one_line, preview, print_json, print_table

if TYPE_CHECKING:
    from worlddb.bridge.chat import Chat
    from worlddb.bridge.extractor import LlmExtractor
    from worlddb.model.drafts import Extracted, Pending
    from worlddb.world_db import WorldDB


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "extract",
        arguments="--pending",
        summary="extract what a failing model left waiting",
        description=(
            "A text is written even if the language model that should read it fails; then its\n"
            "facts wait. This asks the model again, memory by memory, each as one commit. The\n"
            "model is the one that WORLDDB_LLM_PROVIDER (openai, anthropic, ollama, vllm,\n"
            "llamacpp), WORLDDB_LLM_MODEL, WORLDDB_LLM_BASE_URL and WORLDDB_LLM_API_KEY describe."
        ),
        examples=(
            ("worlddb extract --pending --dry-run", "what waits, and why"),
            ("worlddb extract --pending", "all of it"),
            ("worlddb extract --pending --limit 100 --prompt mine.txt", "some, in your words"),
        ),
    )
    parser.add_argument(
        "--pending", action="store_true", required=True, help="what waits in this store"
    )
    parser.add_argument("--limit", type=count, metavar="N", help="at most N memories")
    parser.add_argument("--prompt", metavar="FILE", help="instructions in place of our own")
    parser.add_argument("--dry-run", action="store_true", help="say what waits, ask no model")
    parser.add_argument("--actor", default="extract", help="who extracts, for the journal")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Extract what waits, or list it."""
    if args.limit == 0:
        raise InvalidInputError("--limit: give at least 1")
    if args.dry_run:
        with open_to_read(args) as db:
            _list(args, db, db.pending()[: args.limit])
        return 0
    extractor, chat = _extractor(args)
    with open_to_read(args) as db, Progress("extracting", unit="memories") as progress:

        def show(done: int, total: int) -> None:
            progress.done, progress.total = done, total

        told = db.extract_pending(extractor, limit=args.limit, actor=args.actor, on_progress=show)
    _report(args, told, chat)
    if told.failed:
        raise ProviderError(
            f"{len(told.failed)} could not be extracted and still wait: {told.failed[-1].error}"
        )
    return 0


def _extractor(args: argparse.Namespace) -> tuple[LlmExtractor, Chat]:
    from pathlib import Path

    from worlddb.faces.config import settings_from
    from worlddb.faces.opening import chat_of

    chat = chat_of(settings_from(args))
    from worlddb.bridge.extractor import LlmExtractor

    prompt = None if args.prompt is None else Path(args.prompt)
    return LlmExtractor(chat, prompt=prompt), chat


def _list(args: argparse.Namespace, db: WorldDB, found: list[Pending]) -> None:
    if wants_json(args):
        pending = [item.to_dict() for item in found]
        print_json({"path": store_path(args), "pending": pending})
        return
    rows = [
        (item.id.short, iso(item.since), item.attempts, preview(_text(db, item)), item.error)
        for item in found
    ]
    print_table(("id", "since", "attempts", "text", "error"), rows)


def _text(db: WorldDB, item: Pending) -> str:
    node = db.get(item.id)
    return node.content or node.name


def _report(args: argparse.Namespace, told: Extracted, chat: Chat) -> None:
    usage = chat.usage
    if wants_json(args):
        used = {
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }
        print_json({"path": store_path(args), **told.to_dict(), "usage": used})
        return
    print(
        f"{one_line(store_path(args))}: {len(told.done)} extracted, {len(told.failed)} failed, "
        f"{told.left} left; {usage.input_tokens:,} tokens read, {usage.output_tokens:,} written"
    )
