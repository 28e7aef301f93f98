"""`worlddb eval`: how well this memory does on public benchmarks, with and without models."""

from __future__ import annotations

import argparse
import sys

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import EMBEDDER, YES, command, flag, number, option

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


@command(
    "eval longmemeval|locomo|dmr|retrieval|ablate --data FILE",
    option("what", "WHAT", ", ".join(WHAT), choices=WHAT),
    option("--data", "FILE", "JSON, JSON Lines; may be packed", required=True),
    option("--mode", None, "default: retrieval", choices=MODES, default=MODES[0]),
    option("--out", "FOLDER", "keep every question, and write reports"),
    option(
        "--format", None, "of the file, for retrieval and ablate (default: seen)", choices=FORMATS
    ),
    number("--limit", "N", "only the first N questions; with --sample, of those"),
    number("--sample", "N", "N questions, some of each category; more of them hold those of fewer"),
    number("--seed", "N", "which ones --sample draws"),
    flag("--adversarial", "answer LoCoMo's category 5, too"),
    number("--workers", "N", "at once (default: 1; qa: 4)"),
    option("--lanes", "LANES", "some of text,vector,graph"),
    flag("--plain", "order by fused ranks alone"),
    flag("--no-facts", "no facts and entities"),
    flag("--no-summaries", "none of a model's summaries; both: flat"),
    option("--pooling", None, "of worlds' vectors", choices=POOLINGS, default=POOLINGS[0]),
    number("--k", "N", "memories for an answer (default: 50)"),
    number("--context-tokens", "N", "together at most N tokens"),
    option(
        "--knob",
        "KNOB[=V,…]",
        f"for ablate: {', '.join(KNOBS)} (default: all); lanes=LANE leaves that one out; "
        f"{', '.join(MODEL_KNOBS)}=MODEL,…",
        action="append",
        default=[],
    ),
    EMBEDDER,
    option("--answerer", "MODEL", "who answers"),
    option("--judge", "MODEL", "who judges; none: only scored"),
    option(
        "--extractor",
        "MODEL",
        "who reads; or rules; or verbatim (default of retrieval)",
        dest="reader",
    ),
    option("--prompts", "FOLDER", "extract.txt, answer.txt, judge.txt"),
    number("--answer-tokens", "N", "of an answer (default: 512)"),
    number("--judge-tokens", "N", "of a verdict (default: 8)"),
    number("--extract-tokens", "N", "of a reading (default: 4096)"),
    number("--per-minute", "N", "requests of each role"),
    option(
        "--price",
        "ROLE=IN,OUT",
        "for a million tokens, for the estimate; also embedder=IN",
        action="append",
        default=[],
    ),
    YES,
)
def run(args: argparse.Namespace) -> int:
    """Measure this memory on a benchmark file.

    Write each conversation of a benchmark file into a store in memory and ask its
    questions. --mode retrieval reports where the gold sessions and turns rank; no
    language model takes part. --mode qa has one answer and another judge. 'retrieval'
    takes any of the three formats; 'ablate' repeats a run with one knob turned at a
    time. With --out, a run that was stopped goes on where it was.

    A model is provider:model or provider:model@base_url; by default each role is the
    one that WORLDDB_LLM_PROVIDER, _MODEL, _BASE_URL and _API_KEY describe. Keys of
    models named here: WORLDDB_ANSWERER_KEY, WORLDDB_JUDGE_KEY, WORLDDB_EXTRACTOR_KEY;
    else, at a provider's own address, OPENAI_API_KEY or ANTHROPIC_API_KEY.

    Examples:
      worlddb eval longmemeval --data longmemeval_s.json               # where the gold ranks
      worlddb eval locomo --data locomo10.json --mode both --out run   # and answers, too
      worlddb eval dmr --data msc.jsonl --mode qa --sample 50 --out r  # some questions
      worlddb eval ablate --data f.json --knob lanes --knob embedder   # a table of runs
      worlddb eval retrieval --data f.json --lanes text --plain        # one lane, no weighing

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
