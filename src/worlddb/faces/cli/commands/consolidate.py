"""`worlddb consolidate`, `fading`, `extract` and `reindex`: what is done after writing."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, cast

from worlddb.errors import InvalidInputError, NotFoundError, ProviderError
from worlddb.faces.cli.command_files import (
    chosen_embedder,
    open_memories,
    open_to_read,
    store_path,
)
from worlddb.faces.cli.command_options import (
    EMBEDDER,
    command,
    flag,
    number,
    option,
    report,
    report_rows,
    scope_ids,
    scope_options,
    wants_json,
)
from worlddb.faces.cli.terminal import Progress, iso, one_line, preview, print_json, print_table
from worlddb.faces.user_paths import shown_store

if TYPE_CHECKING:
    from worlddb.consolidate.consolidation_run import ConsolidationReport
    from worlddb.memory.memory import Memory
    from worlddb.model.address import Id
    from worlddb.model.records import Extracted, Pending, Summarizer
    from worlddb.models.chat_client import Chat
    from worlddb.models.model_tasks import LlmExtractor
    from worlddb.world_db import WorldDB


# `worlddb extract` and `worlddb reindex`: facts and vectors that are still missing.


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
    data = {"path": store_path(args), "pending": [item.to_dict() for item in found]}
    rows = [
        (item.id.short, iso(item.since), item.attempts, preview(_text(db, item)), item.error)
        for item in found
    ]
    report_rows(args, data, ("id", "since", "attempts", "text", "error"), rows)


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


# `worlddb consolidate` and `worlddb fading`: what the consolidator does and what it proposes.

PARTS = ("summaries", "closure", "conflicts")
SUMMARIZERS = ("extractive", "llm")
TO_DO = {
    "written": "write",
    "refreshed": "refresh",
    "retired": "retire",
    "inferred": "infer",
    "withdrawn": "withdraw",
    "flagged": "flag",
}
"""What a dry run calls what a run has done."""


@command(
    "consolidate",
    option("--world", "ID", "only this world and the worlds inside it"),
    *scope_options(),
    option("--only", None, "run only this part (may be repeated)", action="append", choices=PARTS),
    number("--min-age", "SECONDS", "skip worlds younger than this (default: 0)", default=0),
    number("--max-worlds", "N", "summarise at most N worlds (default: 1000)", default=1_000),
    number("--max-edges", "N", "infer at most N edges (default: 1000)", default=1_000),
    option(
        "--summarizer",
        None,
        "what writes the summaries (default: extractive)",
        choices=SUMMARIZERS,
        default="extractive",
    ),
    flag("--dry-run", "show what would be done, and change nothing"),
    option(
        "--actor", None, "the name in the journal (default: consolidator)", default="consolidator"
    ),
)
def run_consolidate(args: argparse.Namespace) -> int:
    """Summarise worlds, infer edges, flag contradictions.

    Write a summary of each world, or a newer one if the world has changed. Infer the
    edges that follow from 'causes' and 'subtype_of'. Flag nodes with several edges of a
    type that allows only one. Nothing is deleted or ended. If a run is stopped, the
    next one finishes it.

    Examples:
      worlddb consolidate --dry-run                      # what there is to do
      worlddb consolidate --min-age 3600                 # worlds that are an hour old
      worlddb consolidate --only summaries --world 3f2a  # one world and those inside it
      worlddb consolidate --user-id ada                  # Ada's memories
      worlddb consolidate --summarizer llm               # by the model of WORLDDB_LLM_…
    """
    if not args.max_worlds or not args.max_edges:
        raise InvalidInputError("--max-worlds and --max-edges: give at least 1")
    # A dry run asks no model, so none need be configured.
    summarizer = None if args.dry_run else _summarizer(args)
    with open_memories(args) as memory:
        report = memory.db.consolidate(
            _world(memory, args),
            summarizer=summarizer,
            min_age=args.min_age,
            worlds_max=args.max_worlds,
            edges_max=args.max_edges,
            dry_run=args.dry_run,
            actor=args.actor,
            only=args.only or PARTS,
        )
    if wants_json(args):
        print_json({"path": store_path(args), **report.to_dict()})
    else:
        _print(args, report)
    if report.error is not None:
        raise ProviderError(f"summarising stopped: {report.error}")
    return 0


def _world(memory: Memory, args: argparse.Namespace) -> Id | str | None:
    """Return the world that is meant: by its id or as a scope; None for the whole store."""
    scope: Any = scope_ids(args)
    if not scope:
        return cast("str | None", args.world)
    if args.world is not None or sum(map(len, scope.values())) > 1:
        raise InvalidInputError("consolidate: give only one of --world ID and a scope")
    world = memory.interior(limit=1, **scope).world
    if world is None:
        raise NotFoundError(f"there is no scope {next(iter(scope.values()))[0]}; write to it first")
    return world


def _summarizer(args: argparse.Namespace) -> Summarizer | None:
    if args.summarizer == "extractive":
        return None
    from worlddb.faces.face_settings import chat_of, settings_from
    from worlddb.models.model_tasks import LlmSummarizer

    return LlmSummarizer(chat_of(settings_from(args)))


def _print(args: argparse.Namespace, report: ConsolidationReport) -> None:
    rows: list[tuple[str, str, str, str]] = [
        ("summary", item.action, item.world.short, f"{preview(item.title)} ({item.details})")
        for item in report.summaries
    ]
    rows += [
        ("edge", "inferred", item.source.short, f"{item.type} {item.target.short}")
        for item in report.inferred
    ]
    rows += [("edge", "withdrawn", edge.short, "") for edge in report.withdrawn]
    rows += [
        ("conflict", "flagged", item.left.short, f"{item.right.short} ({item.type})")
        for item in report.contradictions
    ]
    rows += [("world", "skipped", world.short, "it changed meanwhile") for world in report.skipped]
    rows += [("edge", "refused", "", preview(text)) for text in report.refused]
    if report.dry_run:
        rows = [(what, TO_DO.get(done, done), ident, about) for what, done, ident, about in rows]
    if rows:
        print_table(("what", "to do" if report.dry_run else "done", "id", "about"), rows)
    print(one_line(f"{store_path(args)}: {report.worlds} worlds looked at; {_counted(report)}"))


def _counted(report: ConsolidationReport) -> str:
    """Return how much of each was done, or would be."""
    inferred, flagged = len(report.inferred), len(report.contradictions)
    if report.dry_run:
        text = (
            f"nothing was written; a run would write {report.written} summaries, refresh "
            f"{report.refreshed}, retire {report.retired}, infer {inferred} edges, flag {flagged} "
            "contradictions"
        )
    else:
        text = (
            f"summaries written {report.written}, refreshed {report.refreshed}, retired "
            f"{report.retired}; edges inferred {inferred}; contradictions flagged {flagged}"
        )
    return text if report.is_complete else f"{text}, more is left for the next run"


@command(
    "fading",
    option("--world", "ID", "only memories inside this world (default: all)"),
    option("--below", "SHARE", "only a retention below this (default: 0.25)", default="0.25"),
    number("--limit", "N", "list at most N (default: 20)", default=20),
)
def run_fading(args: argparse.Namespace) -> int:
    """List memories that have faded.

    List the memories with the lowest retention: old, seldom recalled and hardly linked.
    This ends nothing; see 'worlddb retire'.

    Examples:
      worlddb fading                            # the 20 that have faded most
      worlddb fading --below 0.05 --world 3f2a  # nearly gone, inside one world
    """
    try:
        below = float(args.below)
    except ValueError:
        raise InvalidInputError(f"--below: give a number, not {args.below!r}") from None
    with open_to_read(args) as db:
        found = db.fading(args.limit, world=args.world, below=below)
    data = [one.to_dict() | {"because": one.because} for one in found]
    rows = [
        (
            one.node.id.short,
            f"{one.retention:.1%}",
            f"{one.age_days:.0f} d",
            one.recalls,
            one.links,
            preview(one.node.content or one.node.name),
        )
        for one in found
    ]
    headers = ("id", "retention", "age", "recalls", "links", "text")
    return report_rows(args, data, headers, rows, "no memory has faded that far")
