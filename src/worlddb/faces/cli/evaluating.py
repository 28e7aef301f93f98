"""Evaluating: from the options of `worlddb eval` to a run, and from that to what is printed."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.faces.cli.options import wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.roles import make_roles, reading_of
from worlddb.faces.cli.terminal import print_json, print_table

if TYPE_CHECKING:
    from worlddb.evaluate.answering import Roles
    from worlddb.evaluate.benchmark import Finished
    from worlddb.evaluate.plan import Planned
    from worlddb.evaluate.settings import RunSettings

QA_WORKERS = 4
FAILED_SHOWN = 3


def measure(args: argparse.Namespace) -> int:
    """Run a benchmark once, and print its figures.

    Raises:
        InvalidInputError: an option is wrong, or nobody was there to confirm the cost.
        ProviderError: a model failed.
    """
    from worlddb.evaluate.benchmark import plan_of
    from worlddb.evaluate.report import tables_of

    settings = _settings(args, reading_of(args))
    chosen = plan_of(args.data, settings, sample=args.sample, limit=args.limit)
    roles = make_roles(args, settings, _out(args, settings))
    if roles is not None and not _agreed(args, [(settings, chosen)], roles):
        return 1
    finished = _run(args, settings, roles, chosen, args.out, "asking")
    if wants_json(args):
        print_json({"data": args.data, **finished.summary.to_dict(), **_failures(finished)})
    else:
        for table in tables_of(finished.summary):
            _print(table.headers, table.means)
            print(f"\n  95 % intervals of all: {table.intervals}")
            for name, text in table.notes.items():
                print(f"  {name}: {text}")
            print()
        print(", ".join(f"{name} {value:,.1f}" for name, value in finished.summary.spent.items()))
    _complain([finished], chosen)
    return 0


def ablate(args: argparse.Namespace) -> int:
    """Run a benchmark once as asked for and once for each change of a knob; print the table.

    Raises:
        InvalidInputError: an option is wrong, or nobody was there to confirm the cost.
        ProviderError: a model failed.
    """
    from worlddb.evaluate.ablation import changes, row_of
    from worlddb.evaluate.benchmark import plan_of

    base = _settings(args, reading_of(args, default="rules"))
    rows = changes(base, args.knob)
    chosen = plan_of(args.data, base, sample=args.sample, limit=args.limit)
    roles = make_roles(args, base, _out(args, base))
    if roles is not None and not _agreed(args, [(one, chosen) for _, one in rows], roles):
        return 1
    finished: dict[str, Finished] = {}
    for number, (title, settings) in enumerate(rows, 1):
        folder = f"{args.out}/{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}"
        label = f"{number} of {len(rows)}: {title}"
        out = folder if args.out else None
        finished[title] = _run(args, settings, roles, chosen, out, label)
    table = {title: row_of(one.summary) for title, one in finished.items()}
    if wants_json(args):
        print_json({"data": args.data, "n": len(chosen), "rows": table})
    else:
        _print_ablation(table, len(chosen))
    _complain(list(finished.values()), chosen)
    return 0


def _settings(args: argparse.Namespace, reading: str) -> RunSettings:
    from worlddb.evaluate.cases import format_of
    from worlddb.evaluate.settings import LANES, SEED, RunSettings
    from worlddb.faces.config import settings_from

    told = settings_from(args)
    named = args.format if args.what in ("retrieval", "ablate") else args.what
    lanes = [lane.strip() for lane in args.lanes.split(",")] if args.lanes else LANES
    mode: Any = args.mode
    kind: Any = reading
    settings = RunSettings(
        benchmark=named or format_of(args.data),
        mode=mode,
        reading=kind,
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
        **_told_models(args, reading, mode),
    )
    settings.make_embedder()
    return settings


def _told_models(args: argparse.Namespace, reading: str, mode: str) -> dict[str, Any]:
    """Return what settings say about models: their names, and digests of what they are told."""
    if mode == "retrieval":
        return {}
    from worlddb.evaluate.prompting import load_prompts
    from worlddb.faces.cli.roles import names_of

    return {"roles": names_of(args, reading), "prompts": load_prompts(args.prompts).digests()}


def _out(args: argparse.Namespace, settings: RunSettings) -> str | None:
    out: str | None = args.out
    if settings.asks_model and out is None:
        raise InvalidInputError("--out: say where to keep a run that costs something")
    return out


def _run(
    args: argparse.Namespace,
    settings: RunSettings,
    roles: Roles | None,
    chosen: Sequence[Planned],
    out: str | None,
    label: str,
) -> Finished:
    from worlddb.evaluate.benchmark import run_benchmark

    workers = args.workers or (QA_WORKERS if roles is not None else 1)
    with Progress(label, unit="questions", total=len(chosen)) as progress:

        def begin(left: int) -> None:
            # What was done before took no time now, so it must not count for the time left.
            progress.total = left

        def show(done: int) -> None:
            progress.done = done

        return run_benchmark(
            args.data,
            settings,
            roles,
            chosen=chosen,
            out=out,
            workers=workers,
            on_begin=begin,
            on_done=show,
            more=lambda: {**_machine(), **_paid(args, roles)},
        )


def _machine() -> dict[str, str]:
    """Return where the times of a report were taken."""
    import os
    import platform

    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {"machine": f"{system}, Python {platform.python_version()}"}


def _paid(args: argparse.Namespace, roles: Roles | None) -> dict[str, str]:
    """Return what the models took so far, for the report."""
    if roles is None:
        return {}
    from worlddb.evaluate.cost import price_of, read_prices

    prices = read_prices(args.price)
    told = {}
    for role, (tokens_in, tokens_out) in sorted(roles.calls.total.tokens.items()):
        price = price_of(role, tokens_in, tokens_out, prices)
        cost = "" if price is None else f", cost {price:,.2f}"
        told[f"{role}, all calls"] = f"{tokens_in:,} tokens in, {tokens_out:,} out{cost}"
    return told


def _agreed(
    args: argparse.Namespace,
    runs: Sequence[tuple[RunSettings, Sequence[Planned]]],
    roles: Roles,
) -> bool:
    """Say what a run will take, and ask somebody at the terminal whether it may.

    Raises:
        InvalidInputError: nobody is there to ask, and --yes was not given.
    """
    from worlddb.evaluate.cost import estimates, read_prices

    prices = read_prices(args.price)
    told: dict[str, list[float]] = {}
    for settings, chosen in runs:
        for one in estimates(chosen, settings, roles, prices):
            parts = [one.requests, one.input_tokens, one.output_tokens, one.price or 0.0]
            before = told.get(one.role, [0.0] * 4)
            # What was read once is read for every row of a table.
            grown = before if one.role == "extractor" and any(before) else None
            told[one.role] = grown or [sum(pair) for pair in zip(before, parts, strict=True)]
    for role, (requests, tokens_in, tokens_out, price) in told.items():
        cost = f", {price:,.2f}" if role in prices else ", no price given"
        name = getattr(roles, role).settings.model
        sys.stderr.write(
            f"{role} {name}: about {requests:,.0f} requests, {tokens_in:,.0f} tokens in, "
            f"at most {tokens_out:,.0f} out{cost}\n"
        )
    if args.yes:
        return True
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        raise InvalidInputError("this asks models: give --yes where nobody can be asked")
    sys.stderr.write("ask them? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in {"y", "yes"}


def _failures(finished: Finished) -> dict[str, Any]:
    return {"failed": finished.failed} if finished.failed else {}


def _complain(runs: Sequence[Finished], chosen: Sequence[Planned]) -> None:
    failed = [error for one in runs for error in one.failed.values()]
    if failed:
        raise ProviderError(
            f"{len(failed)} of {len(chosen) * len(runs)} questions failed and are in no figure; "
            f"run the same command to ask them again ({'; '.join(failed[:FAILED_SHOWN])})"
        )


def _print(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of a report; what has numbers alone stands to the right."""
    print_table(
        headers, [[int(cell) if cell.isdecimal() else cell for cell in row] for row in rows]
    )


def _print_ablation(table: Mapping[str, Mapping[str, float]], n: int) -> None:
    first = next(iter(table.values()))
    rows = []
    for title, row in table.items():
        cells = []
        for name, value in row.items():
            if name.startswith("tokens"):
                cells.append(f"{value:,.0f}")
            elif row is first:
                cells.append(f"{value:.3f}")
            else:
                cells.append(f"{value:.3f} ({value - first[name]:+.3f})")
        rows.append([title, *cells])
    print_table(("what", *first), rows)
    print(f"\nn = {n}; in parentheses the difference to the first row")
