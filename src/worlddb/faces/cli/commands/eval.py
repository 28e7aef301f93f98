"""`worlddb eval`, `test` and `bench`: how well and how fast this memory answers."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_files import (
    given_json,
    landing,
    open_memories,
    opened,
    private_opener,
)
from worlddb.faces.cli.command_options import (
    EMBEDDER,
    FOUND,
    OK,
    YES,
    command,
    flag,
    number,
    option,
    wants_json,
)
from worlddb.faces.cli.terminal import (
    Cell,
    Progress,
    amount,
    one_line,
    paint,
    print_json,
    print_table,
)
from worlddb.model.text_safety import visible

if TYPE_CHECKING:
    import random

    from worlddb.evaluate.memory_tests import TestVerdict


# `worlddb test`: whether a store answers what a file of memory tests expects.

YAML_ENDS = (".yaml", ".yml")


@command(
    "test FILE...",
    option("files", "FILE", "memory tests, JSON or YAML; '-' is stdin", nargs="+"),
    option("--junit", "PATH", "also write the report as JUnit XML, for a CI system"),
    EMBEDDER,
)
def run_test(args: argparse.Namespace) -> int:
    """Test what the store answers.

    Ask the questions of a file and compare the answers: a memory is among the first
    hits, another one is never a hit, the confidence is above or below a number. The
    exit code is 0 if every test passes and 1 if one does not. Nothing is written, and
    the recalls are not counted. A file is JSON; with PyYAML (the extra 'yaml'), it may
    be YAML. docs/testing.md has the format.

    Examples:
      worlddb test beliefs.json                      # on your own store
      worlddb test *.yaml --db team.db --junit r.xml # in CI
    """
    from worlddb.evaluate.memory_tests import read_tests, run_tests

    files = {name: read_tests(_read(name), name) for name in args.files}
    with open_memories(args, asks=True) as memory:
        # What is tested must not change by being tested: recalls are counted no more.
        memory.db.engine.recalls.close()
        found = {name: run_tests(memory, tests) for name, tests in files.items()}
    if args.junit is not None:
        with (
            landing(args.junit, replace=True) as path,
            open(path, "w", encoding="utf-8", opener=private_opener) as file,
        ):
            file.write(junit_xml(found))
    verdicts = [one for suite in found.values() for one in suite]
    failed = sum(not one.passed for one in verdicts)
    if wants_json(args):
        suites = {name: [_data(one) for one in suite] for name, suite in found.items()}
        print_json({"tests": len(verdicts), "failed": failed, "files": suites})
    else:
        for one in verdicts:
            _print(one)
        print(f"{len(verdicts) - failed} passed, {failed} failed")
    return FOUND if failed else OK


def _read(name: str) -> Any:
    with opened(name) as file:
        try:
            text = file.read().decode()
        except UnicodeDecodeError:
            raise InvalidInputError(f"{name}: is not UTF-8 text") from None
    if not name.endswith(YAML_ENDS):
        return given_json(text, name)
    try:
        # A reader of our own would understand a part of YAML and read the rest differently.
        import yaml
    except ImportError:
        raise InvalidInputError(
            f'{name}: YAML needs PyYAML (not installed); run: pip install "worlddb[yaml]", or '
            "write the tests as JSON"
        ) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidInputError(f"{name}: is not YAML: {one_line(str(error))}") from None


def _data(one: TestVerdict) -> dict[str, Any]:
    return {"name": one.name, "passed": one.passed} | asdict(one)


def _print(one: TestVerdict) -> None:
    mark = paint("ok  ", "green") if one.passed else paint("FAIL", "red")
    print(f"{mark}  {one_line(one.name)}")
    for failure in one.failures if one.error is None else (one.error,):
        print(f"      {one_line(failure)}")
    for place, hit in enumerate(() if one.passed else one.hits, 1):
        print(f"      {place:>2}. {one_line(hit)}")


def junit_xml(found: dict[str, list[TestVerdict]]) -> str:
    """Return a report in the format of JUnit, which CI systems read."""
    from xml.etree import ElementTree

    top = ElementTree.Element("testsuites")
    for name, verdicts in found.items():
        counts = {
            "tests": len(verdicts),
            "failures": sum(bool(one.failures) for one in verdicts),
            "errors": sum(one.error is not None for one in verdicts),
        }
        counted = {key: str(value) for key, value in counts.items()}
        suite = ElementTree.SubElement(top, "testsuite", {"name": visible(name), **counted})
        for one in verdicts:
            names = {"name": visible(one.name), "classname": "worlddb"}
            case = ElementTree.SubElement(suite, "testcase", names)
            if one.failures:
                told = {"message": visible("; ".join(one.failures))}
                failure = ElementTree.SubElement(case, "failure", told)
                failure.text = visible("\n".join((*one.failures, "hits:", *one.hits)))
            elif one.error is not None:
                ElementTree.SubElement(case, "error", {"message": visible(one.error)})
    ElementTree.indent(top)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return f"{head}{ElementTree.tostring(top, 'unicode')}\n"


# `worlddb bench`: how fast writes and recalls are on this machine.

SEED = 20_260_101  # Any fixed number: two runs write the same memories.
PEOPLE = ("Ada", "Sarah Chen", "Tom Baker", "Ines Duarte", "Yuki Mori", "Omar Haddad")
PLACES = ("Paris", "Lisbon", "Kyoto", "Oslo", "Nairobi", "Quito")
THINGS = ("green tea", "chess", "old maps", "sailing", "jazz", "sourdough", "cycling", "opera")
SHAPES = (
    "{person} moved to {place} in {year}",
    "{person} likes {thing} more than {other}",
    "In {year} {person} and I talked about {thing} in {place}",
    "Remember that {person} prefers {thing} on day {number}",
)


@command(
    "bench",
    number("--memories", "N", "memories to write (default: 1000)", default=1_000),
    number("--recalls", "N", "recalls to measure (default: 200)", default=200),
    option("--folder", "PATH", "folder of the temporary store (default: that of the system)"),
    EMBEDDER,
)
def run_bench(args: argparse.Namespace) -> int:
    """Measure writes and recalls on this machine.

    Write made-up memories to a temporary store, one durable commit each, and recall
    them. Your own store is not touched. The first recall embeds everything, so it has
    a row of its own. --folder chooses the disk; in a folder in memory, writes look too
    fast.

    Examples:
      worlddb bench                              # a thousand memories, a few seconds
      worlddb bench --memories 10000 --folder ~  # more, on the disk of your home
      worlddb bench --embedder none --json       # without vectors, for a script
    """
    import platform
    import tempfile

    if not args.memories or not args.recalls:
        raise InvalidInputError("bench: give at least 1 of --memories and of --recalls")
    folder = None if args.folder is None else os.path.expanduser(args.folder)
    with tempfile.TemporaryDirectory(prefix="worlddb-bench-", dir=folder) as place:
        figures, size, model = _measure(args, os.path.join(place, "bench.db"))
        where = os.path.dirname(place)
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "folder": where,
        "embedder": model,
        "bytes": size,
    }
    if wants_json(args):
        print_json({"memories": args.memories, "machine": machine, "figures": figures})
        return 0
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            int(row["n"]),
            *(f"{row[key]:.2f}" for key in ("p50_ms", "p95_ms", "max_ms")),
            f"{row['per_s']:,.0f}",
        )
        for name, row in figures.items()
    ]
    print_table(("what", "n", "P50 ms", "P95 ms", "max ms", "per second"), rows)
    print(
        f"\n{args.memories:,} memories, {amount(size, 'bytes')} in {one_line(where)}; "
        f"{model}; {machine['system']}, {machine['cores']} cores, Python {machine['python']}"
    )
    return 0


def _measure(args: argparse.Namespace, path: str) -> tuple[dict[str, dict[str, float]], int, str]:
    import random

    from worlddb.faces.cli.command_files import chosen_embedder
    from worlddb.memory.memory import Memory

    chance = random.Random(SEED)
    total = args.memories + args.recalls + 1
    embedder = chosen_embedder(args)
    with (
        Progress("measuring", unit="calls", total=total) as progress,
        Memory(path, embedder=embedder, user_id="bench", recluster="off") as memory,
    ):

        def timed(work: Callable[[], Any]) -> float:
            began = time.perf_counter()
            work()
            took = time.perf_counter() - began
            progress.count()
            return took

        texts = [_sentence(chance) for _ in range(args.memories)]
        writes = [timed(partial(memory.write, text)) for text in texts]
        questions = [_question(chance) for _ in range(args.recalls + 1)]
        first = timed(partial(memory.recall, questions[0]))
        recalls = [timed(partial(memory.recall, query)) for query in questions[1:]]
        model = "no embedder" if embedder == "none" else memory.db.reindex()
    size = os.path.getsize(path)  # Once it is closed, and what was beside it is in it.
    found = {"write": writes, "first recall": [first], "recall": recalls}
    return {name: _figures(times) for name, times in found.items()}, size, model


def _sentence(chance: random.Random) -> str:
    thing, other = chance.sample(THINGS, 2)
    return chance.choice(SHAPES).format(
        person=chance.choice(PEOPLE),
        place=chance.choice(PLACES),
        thing=thing,
        other=other,
        year=chance.randint(1990, 2025),
        number=chance.randint(1, 100_000),
    )


def _question(chance: random.Random) -> str:
    person, thing = chance.choice(PEOPLE), chance.choice(THINGS)
    return chance.choice((f"Where does {person} live?", f"Who likes {thing}?", f"{thing} when?"))


def _figures(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "n": len(ordered),
        "p50_ms": 1000 * ordered[len(ordered) // 2],
        "p95_ms": 1000 * ordered[int(len(ordered) * 0.95)],
        "max_ms": 1000 * ordered[-1],
        "per_s": len(ordered) / sum(ordered),
    }


# `worlddb eval`: how well this memory does on public benchmarks, with and without models.

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
def run_eval(args: argparse.Namespace) -> int:
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
    """Warn about options that have no effect without answers."""
    given = [_option(name) for name in FOR_ANSWERS if getattr(args, name)]
    given += [f"--price {price}" for price in args.price if not price.startswith("embedder=")]
    if given:
        print(
            f"{', '.join(given)}: no effect with --mode retrieval, which asks for no answers",
            file=sys.stderr,
        )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
