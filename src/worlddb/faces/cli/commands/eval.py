"""`worlddb eval`: how well this memory does on public benchmarks, with and without models."""

from __future__ import annotations

import argparse
import sys

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import (
    Parser,
    Subparsers,
    add_command,
    add_embedder_option,
    add_yes_option,
    count,
)

FORMATS = ("longmemeval", "locomo", "dmr")
WHAT = (*FORMATS, "retrieval", "ablate")
MODES = ("retrieval", "qa", "both")
POOLINGS = ("attention", "mean")
KNOBS = ("lanes", "facts", "summaries", "k", "embedder", "pooling", "weighing")
MODEL_KNOBS = ("answerer", "judge", "extractor")
DEFAULTS = {"k": 50, "answer_tokens": 512, "judge_tokens": 8, "extract_tokens": 4096}
FOR_ANSWERS = (
    *("answerer", "judge", "prompts", "per_minute", "context_tokens", *DEFAULTS),
    *("no_summaries", "adversarial"),
)
"""Options that change nothing where nobody answers."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "eval",
        arguments="longmemeval|locomo|dmr|retrieval|ablate --data FILE",
        summary="measure this memory on a benchmark file",
        description=(
            "Write each conversation of a benchmark file into a store in memory and ask its\n"
            "questions. --mode retrieval reports where the gold sessions and turns rank; no\n"
            "language model takes part. --mode qa has one answer and another judge. 'retrieval'\n"
            "takes any of the three formats; 'ablate' repeats a run with one knob turned at a\n"
            "time. With --out, a run that was stopped goes on where it was.\n"
            "\n"
            "A model is provider:model or provider:model@base_url; by default each role is the\n"
            "one that WORLDDB_LLM_PROVIDER, _MODEL, _BASE_URL and _API_KEY describe. Keys of\n"
            "models named here: WORLDDB_ANSWERER_KEY, WORLDDB_JUDGE_KEY, WORLDDB_EXTRACTOR_KEY;\n"
            "else, at a provider's own address, OPENAI_API_KEY or ANTHROPIC_API_KEY."
        ),
        examples=(
            ("worlddb eval longmemeval --data longmemeval_s.json", "where the gold ranks"),
            ("worlddb eval locomo --data locomo10.json --mode both --out run", "and answers, too"),
            ("worlddb eval dmr --data msc.jsonl --mode qa --sample 50 --out r", "some questions"),
            ("worlddb eval ablate --data f.json --knob lanes --knob embedder", "a table of runs"),
            ("worlddb eval retrieval --data f.json --lanes text --plain", "one lane, no weighing"),
        ),
    )
    parser.add_argument("what", metavar="WHAT", choices=WHAT, help=", ".join(WHAT))
    parser.add_argument(
        "--data", metavar="FILE", required=True, help="JSON, JSON Lines; may be packed"
    )
    parser.add_argument("--mode", choices=MODES, default=MODES[0], help="default: retrieval")
    parser.add_argument("--out", metavar="FOLDER", help="keep every question, and write reports")
    _add_choice_of_questions(parser)
    _add_engine(parser)
    _add_models(parser)
    parser.set_defaults(run=run)


def _add_choice_of_questions(parser: Parser) -> None:
    parser.add_argument(
        "--format", choices=FORMATS, help="of the file, for retrieval and ablate (default: seen)"
    )
    parser.add_argument(
        "--limit",
        type=count,
        metavar="N",
        help="only the first N questions; with --sample, of those",
    )
    parser.add_argument(
        "--sample",
        type=count,
        metavar="N",
        help="N questions, some of each category; more of them hold those of fewer",
    )
    parser.add_argument("--seed", type=count, metavar="N", help="which ones --sample draws")
    parser.add_argument(
        "--adversarial", action="store_true", help="answer LoCoMo's category 5, too"
    )
    parser.add_argument("--workers", type=count, metavar="N", help="at once (default: 1; qa: 4)")


def _add_engine(parser: Parser) -> None:
    parser.add_argument("--lanes", metavar="LANES", help="some of text,vector,graph")
    parser.add_argument("--plain", action="store_true", help="order by fused ranks alone")
    parser.add_argument("--no-facts", action="store_true", help="no facts and entities")
    parser.add_argument(
        "--no-summaries", action="store_true", help="none of a model's summaries; both: flat"
    )
    parser.add_argument(
        "--pooling", choices=POOLINGS, default=POOLINGS[0], help="of worlds' vectors"
    )
    parser.add_argument("--k", type=count, metavar="N", help="memories for an answer (default: 50)")
    parser.add_argument(
        "--context-tokens", type=count, metavar="N", help="together at most N tokens"
    )
    parser.add_argument(
        "--knob",
        action="append",
        default=[],
        metavar="KNOB[=V,…]",
        help=f"for ablate: {', '.join(KNOBS)} (default: all); lanes=LANE leaves that one out; "
        f"{', '.join(MODEL_KNOBS)}=MODEL,…",
    )
    add_embedder_option(parser)


def _add_models(parser: Parser) -> None:
    parser.add_argument("--answerer", metavar="MODEL", help="who answers")
    parser.add_argument("--judge", metavar="MODEL", help="who judges; none: only scored")
    parser.add_argument(
        "--extractor",
        metavar="MODEL",
        dest="reader",
        help="who reads; or rules; or verbatim (default of retrieval)",
    )
    parser.add_argument("--prompts", metavar="FOLDER", help="extract.txt, answer.txt, judge.txt")
    parser.add_argument(
        "--answer-tokens", type=count, metavar="N", help="of an answer (default: 512)"
    )
    parser.add_argument("--judge-tokens", type=count, metavar="N", help="of a verdict (default: 8)")
    parser.add_argument(
        "--extract-tokens",
        type=count,
        metavar="N",
        help="of a reading (default: 4096)",
    )
    parser.add_argument("--per-minute", type=count, metavar="N", help="requests of each role")
    parser.add_argument(
        "--price",
        action="append",
        default=[],
        metavar="ROLE=IN,OUT",
        help="for a million tokens, for the estimate; also embedder=IN",
    )
    add_yes_option(parser)


def run(args: argparse.Namespace) -> int:
    """Measure, and print the figures.

    Raises:
        InvalidInputError: an option is wrong.
        ProviderError: a model failed.
    """
    from worlddb.faces.cli.evaluation import ablate, measure

    for name in ("limit", "sample", "workers", "context_tokens", "per_minute", *DEFAULTS):
        if getattr(args, name) == 0:
            raise InvalidInputError(f"{_option(name)}: give at least 1")
    if args.out == "":
        raise InvalidInputError("--out: give the name of a folder")
    if args.format is not None and args.what in FORMATS and args.format != args.what:
        raise InvalidInputError(f"--format {args.format}: but {args.what} is what was asked for")
    if args.what == "retrieval" and args.mode != "retrieval":
        raise InvalidInputError("retrieval: asks no model; name the benchmark to use --mode")
    if args.knob and args.what != "ablate":
        raise InvalidInputError("--knob: is for ablate")
    if args.mode == "retrieval":
        _tell_idle(args)
    for name, usual in DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, usual)
    return ablate(args) if args.what == "ablate" else measure(args)


def _tell_idle(args: argparse.Namespace) -> None:
    """Tell what somebody has given for answers where none are asked for: it does no harm."""
    given = [_option(name) for name in FOR_ANSWERS if getattr(args, name)]
    given += [f"--price {price}" for price in args.price if not price.startswith("embedder=")]
    if given:
        print(f"{', '.join(given)}: changes nothing where nobody answers", file=sys.stderr)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
