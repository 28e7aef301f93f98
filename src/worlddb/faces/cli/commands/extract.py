"""`worlddb extract` and `worlddb reindex`: facts and vectors that are still missing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.faces.cli.command_options import (
    EMBEDDER,
    command,
    flag,
    number,
    option,
    report,
    wants_json,
)
from worlddb.faces.cli.command_store import chosen_embedder, open_to_read, store_path
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.terminal import iso, one_line, preview, print_json, print_table
from worlddb.faces.user_paths import shown_store

if TYPE_CHECKING:
    from worlddb.model.drafts import Extracted, Pending
    from worlddb.models.chat_client import Chat
    from worlddb.models.model_tasks import LlmExtractor
    from worlddb.world_db import WorldDB


@command(
    "extract --pending",
    flag("--pending", "extract the memories that wait (required)", required=True),
    number("--limit", "N", "at most N memories"),
    option("--prompt", "FILE", "your own instructions for the model"),
    flag("--dry-run", "list what waits, and ask no model"),
    option("--actor", None, "the name in the journal (default: extract)", default="extract"),
)
def run_extract(args: argparse.Namespace) -> int:
    """Extract what waits: long texts, and what a failing model left.

    A text is stored at once; what is read out of it waits if the text is long or if the
    language model fails. This command reads it, memory by memory, one commit each: by the
    rules, or by the model that WORLDDB_LLM_PROVIDER (openai, anthropic, ollama, vllm,
    llamacpp), WORLDDB_LLM_MODEL, WORLDDB_LLM_BASE_URL and WORLDDB_LLM_API_KEY describe.

    Examples:
      worlddb extract --pending --dry-run                      # what waits, and why
      worlddb extract --pending                                # all of it
      worlddb extract --pending --limit 100 --prompt mine.txt  # some, in your words
    """
    if args.limit == 0:
        raise InvalidInputError("--limit: give at least 1")
    if args.dry_run:
        with open_to_read(args) as db:
            _list(args, db, db.pending()[: args.limit])
        return 0
    extractor, chat = _extractor(args)
    with open_to_read(args) as db, Progress("extracting", unit="memories") as progress:
        done = db.extract_pending(
            extractor, limit=args.limit, actor=args.actor, on_progress=progress.show
        )
    _show(args, done, chat)
    if done.failed:
        raise ProviderError(
            f"{len(done.failed)} could not be extracted and still wait: {done.failed[-1].error}"
        )
    return 0


def _extractor(args: argparse.Namespace) -> tuple[LlmExtractor | str, Chat | None]:
    """Return the configured model's extractor and its client.

    Without a model, return the rules, unless all that waits is for a model.
    """
    from pathlib import Path

    from worlddb.faces.face_settings import chat_of, settings_from

    settings = settings_from(args)
    if not settings.llm_provider and args.prompt is None:
        with open_to_read(args) as db:
            waiting = {item.extractor for item in db.pending()}
        if not waiting or RULES in waiting:
            return RULES, None
    chat = chat_of(settings)
    from worlddb.models.model_tasks import LlmExtractor

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


def _show(args: argparse.Namespace, done: Extracted, chat: Chat | None) -> None:
    names = ("requests", "input_tokens", "output_tokens")
    used = {name: 0 if chat is None else getattr(chat.usage, name) for name in names}
    path = shown_store(store_path(args))
    report(
        args,
        {"path": path, **done.to_dict(), "usage": used},
        f"{one_line(path)}: {len(done.done)} extracted, {len(done.failed)} failed, {done.left} "
        f"left; {used['input_tokens']:,} tokens read, {used['output_tokens']:,} written",
    )


NO_EMBEDDER = "none"
RULES = "rules"


@command("reindex", EMBEDDER)
def run_reindex(args: argparse.Namespace) -> int:
    """Embed the store's texts, or embed them anew.

    Embed every text that has no vector yet; a recall would do the same when it needs
    them. With --embedder, embed everything by another model: the old vectors serve
    until the new ones are complete, and a run that was stopped goes on where it was.
    Words, vectors and keys that were deleted from the file are made again.

    Examples:
      worlddb reindex                            # after a large import
      worlddb reindex --embedder arctic-embed-s  # change to a better model
    """
    embedder = chosen_embedder(args)
    with (
        open_to_read(args, embedder=NO_EMBEDDER if embedder == NO_EMBEDDER else None) as db,
        Progress("embedding", unit="texts") as progress,
    ):
        model = db.reindex(None if embedder == NO_EMBEDDER else embedder, on_progress=progress.show)
        # Commit 0 made the root, which is never embedded.
        nodes = sum(commit.nodes for commit in db.log(after=0))
    path = shown_store(store_path(args))
    text = f"all {nodes} nodes are embedded by {model}"
    if model == NO_EMBEDDER:
        text = "no embedder is chosen; the rest of its indexes is there"
    found = {"path": path, "model": model, "nodes": nodes}
    return report(args, found, f"{one_line(path)}: {text}")
