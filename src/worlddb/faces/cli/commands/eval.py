"""`worlddb eval`: how well this memory does on public benchmarks, with and without models."""

from __future__ import annotations

import argparse
import sys

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import EMBEDDER, YES, command, flag, number, option

FORMATS = ("longmemeval", "locomo", "dmr", "beam", "timeqa", "memdaily", "multihop", "facts")
WHAT = (*FORMATS, "retrieval", "ablate", "all", "fit")
MODES = ("retrieval", "qa", "both")
POOLINGS = ("attention", "mean")
KNOBS = ("lanes", "facts", "classes", "summaries", "k", "embedder", "pooling", "weighing")
MODEL_KNOBS = ("answerer", "judge", "extractor")
DEFAULTS = {"k": 50, "answer_tokens": 512, "judge_tokens": 8, "extract_tokens": 4096}
FOR_ANSWERS = (
    *("answerer", "judge", "prompts", "per_minute", "context_tokens", *DEFAULTS),
    *("no_summaries", "adversarial"),
)
"""Options that have no effect without answers."""


@command(
    f"eval {'|'.join(WHAT)} --data FILE",
    option("what", "WHAT", ", ".join(WHAT), choices=WHAT),
    option(
        "--data",
        "FILE",
        "the benchmark file: JSON or JSON Lines, also compressed; for all and fit, a folder of "
        "them",
        required=True,
    ),
    option(
        "--mode",
        None,
        "what to measure: ranks, answers or both (default: retrieval)",
        choices=MODES,
        default=MODES[0],
    ),
    option(
        "--out",
        "FOLDER",
        "keep each question and reply, and write reports; for fit, the file of the weights",
    ),
    option(
        "--format",
        None,
        "format of FILE, for retrieval and ablate (default: recognised)",
        choices=FORMATS,
    ),
    number("--limit", "N", "ask only the first N questions (with --sample, of the sample)"),
    number(
        "--sample",
        "N",
        "ask N questions, drawn from every category; a larger sample contains the smaller",
    ),
    number("--seed", "N", "seed of the random choice of --sample"),
    flag("--adversarial", "also ask the adversarial questions of LoCoMo (category 5)"),
    number("--workers", "N", "conversations at once (default: 1, with --mode qa 4)"),
    option(
        "--lanes",
        "LANES",
        "search only these lanes, such as text,vector (default: text,vector,graph)",
    ),
    flag("--plain", "rank by the fused ranks of the lanes only, without weighing"),
    flag("--no-facts", "store no facts and entities"),
    flag("--no-summaries", "store no summaries that a model wrote"),
    option(
        "--pooling",
        None,
        "how the vector of a world is made (default: attention)",
        choices=POOLINGS,
        default=POOLINGS[0],
    ),
    number("--k", "N", "memories given to the answerer (default: 50)"),
    number("--context-tokens", "N", "limit these memories to N tokens together"),
    option(
        "--knob",
        "KNOB[=V,…]",
        f"for ablate: {', '.join(KNOBS)} (default: all); lanes=LANE leaves that one out; "
        f"{', '.join(MODEL_KNOBS)}=MODEL,…",
        action="append",
        default=[],
    ),
    EMBEDDER,
    option("--answerer", "MODEL", "the model that answers the questions"),
    option("--judge", "MODEL", "the model that judges the answers; none: score them by rules only"),
    option(
        "--extractor",
        "MODEL",
        "the model that reads the conversations, or rules, or verbatim",
        dest="reader",
    ),
    option("--prompts", "FOLDER", "a folder with your own extract.txt, answer.txt or judge.txt"),
    number("--answer-tokens", "N", "limit of an answer (default: 512)"),
    number("--judge-tokens", "N", "limit of a verdict (default: 8)"),
    number("--extract-tokens", "N", "limit of an extraction (default: 4096)"),
    number("--per-minute", "N", "limit of requests per minute to each model"),
    option(
        "--price",
        "ROLE=IN,OUT",
        "price of a million tokens, for the cost estimate; also embedder=IN",
        action="append",
        default=[],
    ),
    YES,
)
def run(args: argparse.Namespace) -> int:
    """Measure this memory on a benchmark file.

    Write each conversation of a benchmark file into a store in memory and ask its
    questions. --mode retrieval reports where the gold sessions and turns rank; no
    language model takes part. With --mode qa one model answers and another judges.
    'retrieval' takes any of the formats. 'ablate' repeats the run with one
    setting changed at a time. 'all' runs every file of a folder, beside simpler rankings
    (plain rank fusion, one lane alone), and prints one table. With --out, a run that was
    stopped can be continued. 'fit' fits the weights of recall to the questions of every
    file, and prints what weights that were fitted without a set find in it; the file may
    be your own, laid out as one of the formats; --embedder takes several, with commas.

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
      worlddb eval all --data folder --sample 200                      # every set, one table
      worlddb eval fit --data folder --sample 200 --out weights.json   # weights of your own

    Raises:
        InvalidInputError: an option is wrong.
        ProviderError: a model failed.
    """
    from worlddb.faces.cli.evaluation import ablate, fit_weights, measure, overview

    for name in ("limit", "sample", "workers", "context_tokens", "per_minute", *DEFAULTS):
        if getattr(args, name) == 0:
            raise InvalidInputError(f"{_option(name)}: give at least 1")
    if args.out == "":
        raise InvalidInputError("--out: give the name of a folder")
    if args.format is not None and args.what in FORMATS and args.format != args.what:
        raise InvalidInputError(f"--format {args.format}: contradicts {args.what}; leave one out")
    if args.what == "retrieval" and args.mode != "retrieval":
        raise InvalidInputError(
            "retrieval: asks no model; for --mode qa or both name the benchmark instead"
        )
    if args.knob and args.what != "ablate":
        raise InvalidInputError("--knob: works only with ablate")
    if args.mode == "retrieval":
        _tell_idle(args)
    for name, usual in DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, usual)
    if args.what == "all":
        if args.mode != "retrieval" or args.out:
            raise InvalidInputError(
                "all: asks no model and keeps no folder; leave --mode and --out"
            )
        return overview(args)
    if args.what == "fit":
        if args.mode != "retrieval":
            raise InvalidInputError("fit: asks no model; leave --mode")
        return fit_weights(args)
    return ablate(args) if args.what == "ablate" else measure(args)


def _tell_idle(args: argparse.Namespace) -> None:
    """Name the options that have no effect without answers; they do no harm."""
    given = [_option(name) for name in FOR_ANSWERS if getattr(args, name)]
    given += [f"--price {price}" for price in args.price if not price.startswith("embedder=")]
    if given:
        print(
            f"{', '.join(given)}: no effect with --mode retrieval, which asks for no answers",
            file=sys.stderr,
        )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
