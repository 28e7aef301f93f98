"""`worlddb eval`: how well recall finds what a public benchmark asks for."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.options import (
    Subparsers,
    add_command,
    add_embedder_option,
    count,
    wants_json,
)
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.stores import chosen_embedder
from worlddb.faces.cli.terminal import print_json, print_table

if TYPE_CHECKING:
    from worlddb import RecallSettings
    from worlddb.evaluate.retrieval import Outcome

FORMATS = ("longmemeval", "locomo")


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "eval",
        arguments="retrieval",
        summary="measure recall on a benchmark file",
        description=(
            "Write each conversation of a LongMemEval or LoCoMo file into a store in memory, ask\n"
            "its questions, and report where the gold sessions and turns rank. No language model\n"
            "takes part. Questions without an answer are left out."
        ),
        examples=(
            ("worlddb eval retrieval --data longmemeval_s.json", "the whole file"),
            ("worlddb eval retrieval --data locomo10.json --format locomo", "the other format"),
            ("worlddb eval retrieval --data f.json --lanes text --plain", "one lane, no weighing"),
        ),
    )
    parser.add_argument("what", metavar="retrieval", choices=("retrieval",), help="what to measure")
    parser.add_argument("--data", metavar="FILE", required=True, help=".json, .json.gz, .json.xz")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="whose format it is")
    parser.add_argument("--limit", type=count, metavar="N", help="only the first N questions")
    parser.add_argument("--lanes", metavar="LANES", help="some of text,vector,graph")
    parser.add_argument("--plain", action="store_true", help="order by fused ranks alone")
    parser.add_argument("--out", metavar="FILE", help="write one JSON line for each question")
    add_embedder_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Measure, and print the figures by category."""
    from itertools import islice

    from worlddb.evaluate.cases import load_cases
    from worlddb.evaluate.retrieval import evaluate

    if args.limit == 0:
        raise InvalidInputError("--limit: give at least 1")
    outcomes: list[Outcome] = []
    with Progress("asking", unit="questions") as progress, ExitStack() as opened:

        def show(done: int) -> None:
            progress.done = done

        asked = evaluate(
            load_cases(args.data, args.format),
            embedder=chosen_embedder(args),
            settings=_settings(args),
            on_question=show,
        )
        for outcome in islice(asked, args.limit):
            if args.out and not outcomes:
                # Not before the first answer: a wrong FILE must not cost the results of before.
                out = opened.enter_context(open(args.out, "w", encoding="utf-8"))
            if args.out:
                out.write(json.dumps(_record(outcome)) + "\n")
            outcomes.append(outcome)
    if not outcomes:
        raise InvalidInputError(f"{args.data}: has no question with an answer")
    _report(args, outcomes)
    return 0


def _settings(args: argparse.Namespace) -> RecallSettings:
    from worlddb import RecallSettings

    settings = RecallSettings()
    if args.lanes:
        lanes = [lane.strip() for lane in args.lanes.split(",")]
        settings = replace(settings, weights=dict.fromkeys(lanes, 1.0))
    return replace(settings, weighing=None) if args.plain else settings


def _record(outcome: Outcome) -> dict[str, object]:
    return {name: getattr(outcome, name) for name in outcome.__slots__}


def _report(args: argparse.Namespace, outcomes: list[Outcome]) -> None:
    from worlddb.evaluate.retrieval import means

    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.category, []).append(outcome)
    groups = dict(sorted(groups.items())) | {"all": outcomes}
    tables = {name: {"n": len(group), **means(group)} for name, group in groups.items()}
    times = sorted(outcome.seconds for outcome in outcomes)
    spent = {
        "recall_ms_p50": 1000 * times[len(times) // 2],
        "recall_ms_p95": 1000 * times[int(len(times) * 0.95)],
        "tokens_in_10": sum(outcome.tokens for outcome in outcomes) / len(outcomes),
    }
    if wants_json(args):
        print_json({"data": args.data, "figures": tables, **spent})
        return
    names = [name for name in tables["all"] if name != "n"]
    half = names.index("turns@5") if "turns@5" in names else len(names)
    for part in (names[:half], names[half:]):
        if part:
            print_table(
                ("category", "n", *part),
                [
                    (
                        name,
                        int(row["n"]),
                        *(f"{row[one]:.3f}" if one in row else "" for one in part),
                    )
                    for name, row in tables.items()
                ],
            )
            print()
    print(", ".join(f"{name} {value:,.1f}" for name, value in spent.items()))
