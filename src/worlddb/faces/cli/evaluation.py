"""Evaluation: from the options of `worlddb eval` to the models and runs, and what is printed.

    --answerer anthropic:claude-x     --judge openai:m@http://localhost:8000/v1     --judge none

An API key is sent only to the address it was given for. Before a run asks models, it prints what
that will cost, and somebody has to agree.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.faces.cli.command_options import agreed_at_terminal, wants_json
from worlddb.faces.cli.terminal import Progress, print_json, print_table

if TYPE_CHECKING:
    from worlddb import ChatSettings
    from worlddb.evaluate.benchmark_cases import RunSettings
    from worlddb.evaluate.benchmark_run import Finished
    from worlddb.evaluate.model_answers import Roles
    from worlddb.evaluate.question_plan import PlannedQuestion, QuestionPlan
    from worlddb.evaluate.run_folder import ReplyCache
    from worlddb.evaluate.run_report import Table
    from worlddb.faces.face_settings import Settings
    from worlddb.models.chat_client import ModelName


Rest: TypeAlias = "tuple[RunSettings, Roles | None, Sequence[PlannedQuestion]]"
"""A run, its models, and the questions it has still to ask."""
NONE = "none"
ROLES = ("answerer", "judge", "extractor")
WITHOUT_MODEL = ("verbatim", "rules")
PROVIDER_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
WORKERS_MAX = 64  # connections to one endpoint; more are refused by most


def reading_of(args: argparse.Namespace, usual: str) -> str:
    """Return the extractor of a run: rules, verbatim or model; `usual` is the data set's own."""
    if args.reader in WITHOUT_MODEL:
        return str(args.reader)
    if args.reader == NONE:
        return "verbatim"
    if args.mode == "retrieval":
        if args.reader is not None:
            raise InvalidInputError("--extractor: a model reads only with --mode qa or both")
        return usual
    return "model" if args.reader is not None or _is_configured(args) else "rules"


def model_settings(args: argparse.Namespace, reading: str) -> dict[str, dict[str, Any]]:
    """Return the settings of a run that concern its models: name, address and limit of each."""
    chats = {role: _chat_settings(args, role, spec) for role, spec in _specs(args, reading).items()}
    return {
        "roles": {role: f"{one.provider}:{one.model}" for role, one in chats.items()},
        # Settings of a chat refuse an address with a password in it.
        "addresses": {role: one.base_url.rstrip("/") for role, one in chats.items()},
        "limits": {role: one.max_output_tokens for role, one in chats.items()},
    }


def model_of(spec: str) -> tuple[str, str]:
    """Return the name and the address of a model from `provider:model[@base_url]`."""
    from worlddb.models.chat_client import parse_model_name

    named = parse_model_name(spec)
    return f"{named.provider}:{named.model}", (named.address or "").rstrip("/")


def options_of_row(
    args: argparse.Namespace, base: RunSettings, settings: RunSettings
) -> argparse.Namespace:
    """Return the options of one row of an ablation, whose models a knob may have changed.

    A model of the same name as in the first row is asked where that one is.
    """
    changed = {}
    for text in args.knob:
        role, _, values = text.partition("=")
        for spec in map(str.strip, values.split(",")) if role in ROLES else ():
            if base.roles.get(role) != model_of(spec)[0] == settings.roles.get(role):
                changed["reader" if role == "extractor" else role] = spec
    return argparse.Namespace(**{**vars(args), **changed})


def make_roles(
    args: argparse.Namespace, settings: RunSettings, calls: ReplyCache | None
) -> Roles | None:
    """Return the models of a run, whose replies go to `calls`; None if it asks none."""
    if calls is None:
        return None
    from worlddb.evaluate.model_answers import Roles, load_prompts
    from worlddb.evaluate.run_folder import CachedChat

    chats: dict[str, Any] = {
        role: CachedChat(_chat_settings(args, role, spec), role, calls)
        for role, spec in _specs(args, settings.reading).items()
    }
    return Roles(prompts=load_prompts(args.prompts), calls=calls, **chats)


def _specs(args: argparse.Namespace, reading: str) -> dict[str, str | None]:
    """Return the roles that take part, each with the model that the options name for it."""
    if args.answerer is None and not _is_configured(args):
        raise InvalidInputError(
            "no model answers: give --answerer provider:model, or set WORLDDB_LLM_PROVIDER and "
            "WORLDDB_LLM_MODEL"
        )
    specs: dict[str, str | None] = {"answerer": args.answerer}
    if args.judge != NONE and (args.judge is not None or _is_configured(args)):
        specs["judge"] = args.judge
    if reading == "model":
        specs["extractor"] = args.reader
    return specs


def _is_configured(args: argparse.Namespace) -> bool:
    from worlddb.faces.face_settings import settings_from

    told = settings_from(args)
    return bool(told.llm_provider and told.llm_model)


def _chat_settings(args: argparse.Namespace, role: str, spec: str | None) -> ChatSettings:
    """Return how to reach the model of a role."""
    from worlddb import chat_from
    from worlddb.faces.face_settings import chat_of, settings_from

    told = settings_from(args)
    longest = {
        "answerer": args.answer_tokens,
        "judge": args.judge_tokens,
        "extractor": args.extract_tokens,
    }
    more: dict[str, Any] = {
        "max_output_tokens": longest[role],
        "requests_per_minute": args.per_minute,
        "requests_at_once_max": min(args.workers or 4, WORKERS_MAX),
    }
    if spec is None:
        return replace(chat_of(told).settings, **more)
    named = _named(role, spec)
    key = _key(role, named.provider.casefold(), named.base_url, told)
    return chat_from(named.provider, named.base_url, named.model, key, **more).settings


def _named(role: str, spec: str) -> ModelName:
    from worlddb.models.chat_client import parse_model_name

    try:
        return parse_model_name(spec)
    except InvalidInputError as error:
        raise InvalidInputError(f"--{role}: {error}") from None


def _key(role: str, provider: str, base_url: str | None, told: Settings) -> str | None:
    """Return the API key of a named model: its role's own, else that of the same address."""
    own = os.environ.get(f"WORLDDB_{role.upper()}_KEY")
    if own:
        return own
    if provider == (told.llm_provider or "").casefold() and base_url == told.llm_base_url:
        return told.llm_api_key
    if base_url is None:
        return os.environ.get(PROVIDER_KEYS.get(provider, "")) or None
    return None


# What a run costs.


def paid(args: argparse.Namespace, roles: Roles | None) -> dict[str, str]:
    """Return the tokens and the cost of the models so far, for the report."""
    if roles is None:
        return {}
    from worlddb.evaluate.question_plan import price_of, read_prices

    prices = read_prices(args.price)
    told = {}
    for role, (tokens_in, tokens_out) in sorted(roles.calls.total.tokens.items()):
        price = price_of(role, tokens_in, tokens_out, prices)
        cost = "" if price is None else f", cost {price:,.2f}"
        told[f"{role}, all calls"] = f"{tokens_in:,} tokens in, {tokens_out:,} out{cost}"
    return told


def agreed(args: argparse.Namespace, runs: Sequence[Rest]) -> bool:
    """Print what the rest of some runs will cost, and ask at the terminal for agreement.

    Raises:
        InvalidInputError: nobody is there to ask, and --yes was not given.
    """
    told = _cost_lines(args, runs)
    for line in told:
        sys.stderr.write(f"{line}\n")
    # Only what leaves this machine has a line, and needs a yes.
    if args.yes or not told:
        return True
    agrees = agreed_at_terminal("ask them")
    if agrees is None:
        raise InvalidInputError(
            "this run asks models: give --yes if there is no terminal to confirm at"
        )
    return agrees


def _cost_lines(args: argparse.Namespace, runs: Sequence[Rest]) -> list[str]:
    """Return a line for each model: what it will be asked, and what that costs."""
    from worlddb.evaluate.model_answers import READING_SPLITS_MAX
    from worlddb.evaluate.question_plan import context_scale, estimates, read_prices

    prices = read_prices(args.price)
    told: dict[tuple[str, str], list[float]] = {}
    guessed: set[str] = set()
    for settings, roles, left in runs:
        if not left:
            continue
        scale = context_scale(args.data, settings, left) if roles is not None else 1.0
        for one in estimates(left, settings, roles, prices, scale=scale):
            guessed.update({one.role} if not one.is_bound else ())
            parts = [one.requests, one.input_tokens, one.output_tokens, one.price or 0.0]
            before = told.setdefault((one.role, one.model), [0.0] * 4)
            # What a model has read once is read for every row of a table.
            joined = max if one.role == "extractor" else sum
            told[one.role, one.model] = [joined(pair) for pair in zip(before, parts, strict=True)]
    lines = []
    for (role, name), (requests, tokens_in, tokens_out, price) in told.items():
        cost = f", cost {price:,.2f}" if role in prices else ", no price given"
        lines.append(
            f"{role} {name}: about {requests:,.0f} requests, {tokens_in:,.0f} tokens in, "
            f"{'about' if role in guessed else 'at most'} {tokens_out:,.0f} out{cost}"
        )
    if guessed:
        more = 2 * READING_SPLITS_MAX
        lines.append(f"extractor: a session whose reading is cut takes up to {more} requests more")
    kept = {
        role: f"{role} {count:,}"
        for _, roles, left in runs
        if roles is not None and left
        for role, count in roles.calls.kept.items()
    }
    if kept:
        told_kept = ", ".join(kept.values())
        lines.append(f"replies from before are kept, and not paid for again: {told_kept}")
    if len(told) > 1 and all(role in prices for role, _ in told):
        lines.append(f"all together: cost {sum(parts[3] for parts in told.values()):,.2f}")
    return lines


QA_WORKERS = 4  # most of the time is waiting for models
FAILED_SHOWN = 3  # errors in the last line; all are in the folder


def measure(args: argparse.Namespace) -> int:
    """Run a benchmark once, and print its figures."""
    from worlddb.evaluate.benchmark_run import questions_left
    from worlddb.evaluate.run_folder import locked_folder
    from worlddb.evaluate.run_report import tables_of

    settings = _settings(args)
    plan = _plan(args, settings)
    with locked_folder(args.out):
        roles = make_roles(args, settings, _calls(args, settings))
        left = questions_left(args.data, settings, plan=plan, out=args.out)
        if not agreed(args, [(settings, roles, left)]):
            return 1
        finished = _run(args, settings, roles, plan, args.out, "asking")
    tables = tables_of(finished.summary, settings.benchmark)
    if wants_json(args):
        notes = {name: text for table in tables for name, text in table.notes.items()}
        told = {"data": args.data, "questions": plan.description, "definitions": notes}
        failed = {"failed": finished.failed} if finished.failed else {}
        print_json(told | finished.summary.to_dict() | failed)
    else:
        for table in tables:
            print_table(table.headers, table.means, is_figures=True)
            if table.intervals:
                print(f"\n  95 % intervals of all: {table.intervals}")
            _print_notes(table)
            print()
        if plan.is_part or plan.left_out:
            print(f"questions: {plan.description}")
        print(", ".join(f"{name} {value:,.1f}" for name, value in finished.summary.spent.items()))
    _complain([finished], plan)
    return 0


def ablate(args: argparse.Namespace) -> int:
    """Run a benchmark once as asked for and once for each change of a knob; print the table."""
    from worlddb.evaluate.ablation import changes, table_of
    from worlddb.evaluate.benchmark_run import questions_left
    from worlddb.evaluate.run_folder import locked_folder
    from worlddb.evaluate.run_report import write_pages

    base = _settings(args)
    rows = changes(base, args.knob, model_of)
    plan = _plan(args, base)
    with ExitStack() as stack:
        folders = [args.out, *(_folder(args.out, title) for title, _ in rows)]
        for folder in dict.fromkeys(folders):
            stack.enter_context(locked_folder(folder))
        calls = _calls(args, base)
        runs = [
            (title, one, make_roles(options_of_row(args, base, one), one, calls))
            for title, one in rows
        ]
        left = [
            (one, roles, questions_left(args.data, one, plan=plan, out=_folder(args.out, title)))
            for title, one, roles in runs
        ]
        if not agreed(args, left):
            return 1
        finished = {} if base.asks_model else _run_rows(args, rows, plan, args.out, "asking")
        for number, (title, settings, roles) in enumerate(runs if not finished else (), 1):
            label = f"{number} of {len(runs)}: {title}"
            finished[title] = _run(args, settings, roles, plan, _folder(args.out, title), label)
        table = table_of(finished, plan.description)
        if args.out:
            heading = f"{base.benchmark}: {base.mode}, ablated"
            write_pages(Path(args.out), "ablation", heading, [table])
    if wants_json(args):
        _print_differences(args, finished, plan)
    else:
        print_table(table.headers, table.rows, is_figures=True)
        print()
        _print_notes(table)
    _complain(list(finished.values()), plan)
    return 0


def overview(args: argparse.Namespace) -> int:
    """Run every benchmark file of a folder, beside simpler rankings; print one table."""
    from worlddb.evaluate.ablation import files_in, overview_rows, variants

    rows: list[list[str]] = []
    for path, form in files_in(args.data).items():
        # As the memory of an agent reads what it is told: without a model, by the rules.
        one = _options_of(args, path, form, reader=args.reader or "rules")
        base = _settings(one)
        plan = _plan(one, base)
        runs = _run_rows(one, list(variants(base)), plan, None, form)
        rows += overview_rows(form, {title: run.records for title, run in runs.items()})
    _print_rankings(args, rows)
    return 0


def _options_of(args: argparse.Namespace, path: str, form: str, **more: Any) -> argparse.Namespace:
    """Return the options of a run over a folder for one of its files."""
    return argparse.Namespace(**{**vars(args), "what": form, "data": path, **more})


def _print_rankings(args: argparse.Namespace, rows: list[list[str]]) -> None:
    headers = ["set", "ranking", "questions", "figures with their 95 % intervals"]
    if wants_json(args):
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    else:
        print_table(headers, rows)
        print("\n  star: the interval of the difference to the first row of the set leaves out 0")


def fit_weights(args: argparse.Namespace) -> int:
    """Fit the weights of recall to the files of a folder, or to one file; print the table."""
    from worlddb.evaluate.ablation import files_in, overview_rows
    from worlddb.evaluate.data_sets import format_of
    from worlddb.evaluate.weight_fit import GatheredQuestion, compared, fit, gather, set_of

    folder = Path(args.data).is_dir()
    files = files_in(args.data) if folder else {args.data: format_of(args.data)}
    sets: dict[str, list[GatheredQuestion]] = {}
    for embedder in args.embedder.split(",") if args.embedder else [None]:
        for path, form in files.items():
            one = _options_of(args, path, form, embedder=embedder)
            settings = _settings(one)
            plan = _plan(one, settings)
            name = f"{Path(path).name.partition('.')[0]}/{embedder or 'default'}"
            label = f"{form}: gathering"
            with Progress(label, unit="questions", total=len(plan.questions)) as progress:
                kept: list[GatheredQuestion] = []
                for found in gather(path, settings, plan):
                    kept.append(found)
                    progress.show(len(kept))
            sets[name] = kept
    weights = fit(sets)
    forms = {Path(path).name.partition(".")[0]: form for path, form in files.items()}
    rows: list[list[str]] = []
    for name, records in compared(sets, weights):
        rows += [[name, *row[1:]] for row in overview_rows(forms[set_of(name)], records)]
    _print_rankings(args, rows)
    if not wants_json(args):
        told = ", ".join(f"{name}={value:.4f}" for name, value in weights.items())
        print(f"\n  worlddb.Weights({told})")
    if args.out:
        _write_weights(args, files, weights, rows)
    return 0


def _write_weights(
    args: argparse.Namespace,
    files: Mapping[str, str],
    weights: Mapping[str, float],
    rows: Sequence[Sequence[str]],
) -> None:
    """Write fitted weights and where they come from into a file."""
    import json

    from worlddb.evaluate.benchmark_cases import SEED
    from worlddb.evaluate.run_folder import file_digest

    given = ("sample", "limit", "seed", "embedder")
    options = [f"--{name} {getattr(args, name)}" for name in given if getattr(args, name)]
    provenance = {
        "command": " ".join(["worlddb eval fit --data", Path(args.data).name, *options]),
        "seed": SEED if args.seed is None else args.seed,
        "embedders": (args.embedder or "default").split(","),
        "data": [
            {"file": Path(path).name, "format": form, "sha256": file_digest(path)}
            for path, form in files.items()
        ],
        "rankings": [" | ".join(row) for row in rows],
    }
    told = {"weights": {name: round(value, 4) for name, value in weights.items()}}
    text = json.dumps({**told, "provenance": provenance}, indent=2, ensure_ascii=False)
    Path(args.out).write_text(text + "\n", encoding="utf-8")


def _folder(out: str | None, title: str) -> str | None:
    """Return the folder of one row of a table."""
    return out and f"{out}/{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}"


def _print_differences(
    args: argparse.Namespace, finished: Mapping[str, Finished], plan: QuestionPlan
) -> None:
    from worlddb.evaluate.ablation import BASE, differences, row_of

    changed = {
        title: differences(finished[BASE].records, one.records)
        for title, one in finished.items()
        if title != BASE
    }
    print_json(
        {
            "data": args.data,
            "n": len(plan.questions),
            "questions": plan.description,
            "rows": {title: row_of(one.summary) for title, one in finished.items()},
            "differences": {
                title: {name: [one.value, one.low, one.high] for name, one in means.items()}
                for title, means in changed.items()
            },
        }
    )


def _plan(args: argparse.Namespace, settings: RunSettings) -> QuestionPlan:
    """Return the questions to ask; in a large file it takes a while to find them."""
    from worlddb.evaluate.question_plan import plan_of

    with Progress("looking for questions", unit="questions", tells=True) as progress:
        return plan_of(
            args.data, settings, sample=args.sample, limit=args.limit, on_found=progress.show
        )


def _settings(args: argparse.Namespace) -> RunSettings:
    from worlddb.evaluate.benchmark_cases import LANES, SEED, RunSettings
    from worlddb.evaluate.data_sets import DATA_SETS, format_of
    from worlddb.evaluate.model_answers import load_prompts
    from worlddb.faces.face_settings import settings_from

    told = settings_from(args)
    named = args.format if args.what in ("retrieval", "ablate") else args.what
    benchmark = named or format_of(args.data)
    reading: Any = reading_of(args, DATA_SETS[benchmark].reading)
    lanes = [lane.strip() for lane in args.lanes.split(",")] if args.lanes else LANES
    models: dict[str, Any] = {}
    if args.mode != "retrieval":
        models = {**model_settings(args, reading), "prompts": load_prompts(args.prompts).digests()}
    settings = RunSettings(
        benchmark=benchmark,
        mode=args.mode,
        reading=reading,
        facts=not args.no_facts,
        summaries=not args.no_summaries,
        k=args.k,
        context_tokens=args.context_tokens,
        lanes=tuple(lanes),
        weighed=not args.plain,
        embedder=told.embedder,
        pooling=args.pooling,
        adversarial=args.adversarial,
        seed=SEED if args.seed is None else args.seed,
        models_dir=told.models_dir,
        embedder_key=told.embedder_key,
        **models,
    )
    settings.make_embedder()
    return settings


def _calls(args: argparse.Namespace, settings: RunSettings) -> ReplyCache | None:
    """Return the store of model replies; None if the run asks no model."""
    if not settings.asks_model:
        return None
    if args.out is None:
        raise InvalidInputError("--out: give a folder; the replies of models are kept there")
    from worlddb.evaluate.run_folder import CALLS, ReplyCache

    return ReplyCache(Path(args.out, CALLS))


def _run(
    args: argparse.Namespace,
    settings: RunSettings,
    roles: Roles | None,
    plan: QuestionPlan,
    out: str | None,
    label: str,
) -> Finished:
    from worlddb.evaluate.benchmark_run import run_benchmark
    from worlddb.evaluate.run_report import machine_description

    with _asking(label, len(plan.questions)) as told:
        finished = run_benchmark(
            args.data,
            settings,
            roles,
            plan=plan,
            out=out,
            workers=args.workers or (QA_WORKERS if roles is not None else 1),
            more=lambda: {**machine_description(), **paid(args, roles)},
            **told,
        )
    _tell_kept(finished, out)
    return finished


def _run_rows(
    args: argparse.Namespace,
    rows: Sequence[tuple[str, RunSettings]],
    plan: QuestionPlan,
    out: str | None,
    label: str,
) -> dict[str, Finished]:
    """Return several runs over the same questions, by title; none of them asks a model."""
    from worlddb.evaluate.benchmark_run import BenchmarkRow, run_rows

    given = [BenchmarkRow(settings, _folder(out, title)) for title, settings in rows]
    with _asking(label, len(plan.questions) * len(rows)) as told:
        found = run_rows(args.data, given, plan=plan, workers=args.workers or 1, **told)
    for row, finished in zip(given, found, strict=True):
        _tell_kept(finished, row.out)
    return {title: finished for (title, _), finished in zip(rows, found, strict=True)}


@contextmanager
def _asking(label: str, count: int) -> Iterator[dict[str, Callable[[int], None]]]:
    """Yield the callbacks by which a run reports its progress, and draw that progress."""
    with Progress(label, unit="questions", total=count, tells=True) as progress:

        def begin(left: int) -> None:
            # What was done before took no time now, so it must not count for the time left.
            progress.total = left
            if left < count:
                progress.tell(f"{label}: {count - left} of {count} questions are done already")

        yield {"on_begin": begin, "on_done": progress.show}


def _tell_kept(finished: Finished, out: str | None) -> None:
    if finished.is_report_kept:
        kept = f"{out}: has a report of more questions, which is left as it was"
        sys.stderr.write(f"{kept}; for one of these alone choose another --out\n")


def _complain(runs: Sequence[Finished], plan: QuestionPlan) -> None:
    failed = [error for one in runs for error in one.failed.values()]
    if failed:
        asked = len(plan.questions) * len(runs)
        raise ProviderError(
            f"{len(failed)} of {asked} questions failed and are in no figure; "
            f"run the same command to ask them again ({'; '.join(failed[:FAILED_SHOWN])})"
        )


def _print_notes(table: Table) -> None:
    for name, text in table.notes.items():
        print(f"  {name}: {text}")
