"""`worlddb reindex`: embed what has no vector yet, or everything by another embedder."""

from __future__ import annotations

import argparse

from worlddb.faces.cli.options import Subparsers, add_command, add_embedder_option, wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.stores import chosen_embedder, open_to_read, store_path
from worlddb.faces.cli.terminal import one_line, print_json

NO_EMBEDDER = "none"


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "reindex",
        summary="embed the store's texts, or embed them anew",
        description=(
            "Embed every text that has no vector yet; a recall would do the same when it needs\n"
            "them. With --embedder, embed everything by another model: the old vectors serve\n"
            "until the new ones are complete, and a run that was stopped goes on where it was.\n"
            "Words, vectors and keys that somebody deleted from the file are made again."
        ),
        examples=(
            ("worlddb reindex", "after a large import"),
            ("worlddb reindex --embedder arctic-embed-s", "change to a better model"),
        ),
    )
    add_embedder_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Embed, and say by what."""
    embedder = chosen_embedder(args)
    with (
        open_to_read(args, embedder=NO_EMBEDDER if embedder == NO_EMBEDDER else None) as db,
        Progress("embedding", unit="texts") as progress,
    ):

        def show(done: int, total: int) -> None:
            progress.done, progress.total = done, total

        model = db.reindex(None if embedder == NO_EMBEDDER else embedder, on_progress=show)
        # Commit 0 made the root, which is never embedded.
        nodes = sum(commit.nodes for commit in db.log(after=0))
    if wants_json(args):
        print_json({"path": store_path(args), "model": model, "nodes": nodes})
    elif model == NO_EMBEDDER:
        print(
            f"{one_line(store_path(args))}: no embedder is chosen; the rest of its indexes is there"
        )
    else:
        print(f"{one_line(store_path(args))}: all {nodes} nodes are embedded by {model}")
    return 0
