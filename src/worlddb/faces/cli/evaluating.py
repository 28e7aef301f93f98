"""Evaluating: from the options of `worlddb eval` to a run, and from that to what is printed."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError, ProviderError
from worlddb.faces.cli.agreeing import agreed, paid
from worlddb.faces.cli.command_options import wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.roles import make_roles, reading_of, turned
from worlddb.faces.cli.terminal import GAP, paint, print_json, width

if TYPE_CHECKING:
    from worlddb.evaluate.answering import Roles
    from worlddb.evaluate.benchmark import Finished
    from worlddb.evaluate.calls import Calls
    from worlddb.evaluate.pages import Table
    from worlddb.evaluate.plan import Plan
    from worlddb.evaluate.settings import RunSettings

QA_WORKERS = 4
FAILED_SHOWN = 3


def measure(args: argparse.Namespace) -> int:
    """Run a benchmark once, and print its figures.

    Raises:
        InvalidInputError: an option is wrong, or nobody was there to confirm the cost.
        ProviderError: a model failed.
    """
    from worlddb.evaluate.benchmark import left_of
    from worlddb.evaluate.folders import held
    from worlddb.evaluate.report import tables_of

    settings = _settings(args, reading_of(args))
    plan = _plan(args, settings)
    with held(args.out):
        roles = make_roles(args, settings, _calls(args, settings))
        left = left_of(args.data, settings, plan=plan, out=args.out)
        if not agreed(args, [(settings, roles, left)]):
            return 1
        finished = _run(args, settings, roles, plan, args.out, "asking")
    tables = tables_of(finished.summary, settings.benchmark)
    if wants_json(args):
        notes = {name: text for table in tables for name, text in table.notes.items()}
        told = {
            "data": args.data,
            "questions": plan.told,
            "definitions": notes,
            **finished.summary.to_dict(),
        }
        print_json(told | _failures(finished))
    else:
        for table in tables:
            _print(table.headers, table.means)
            print(f"\n  95 % intervals of all: {table.intervals}")
            for name, text in table.notes.items():
                print(f"  {name}: {text}")
            print()
        if plan.is_part or plan.left_out:
            print(f"questions: {plan.told}")
        print(", ".join(f"{name} {value:,.1f}" for name, value in finished.summary.spent.items()))
    _complain([finished], plan)
    return 0


def ablate(args: argparse.Namespace) -> int:
    """Run a benchmark once as asked for and once for each change of a knob; print the table.

    Raises:
        InvalidInputError: an option is wrong, or nobody was there to confirm the cost.
        ProviderError: a model failed.
    """
    from worlddb.evaluate.ablation import changes, table_of
    from worlddb.evaluate.benchmark import left_of
    from worlddb.evaluate.folders import held

    base = _settings(args, reading_of(args))
    rows = changes(base, args.knob)
    plan = _plan(args, base)
    with ExitStack() as stack:
        folders = [args.out, *(_folder(args.out, title) for title, _ in rows)]
        for folder in dict.fromkeys(folders):
            stack.enter_context(held(folder))
        calls = _calls(args, base)
        runs = [
            (title, one, make_roles(turned(args, base, one), one, calls), _folder(args.out, title))
            for title, one in rows
        ]
        left = [
            (one, roles, left_of(args.data, one, plan=plan, out=folder))
            for _, one, roles, folder in runs
        ]
        if not agreed(args, left):
            return 1
        finished: dict[str, Finished] = {}
        for number, (title, settings, roles, folder) in enumerate(runs, 1):
            label = f"{number} of {len(runs)}: {title}"
            finished[title] = _run(args, settings, roles, plan, folder, label)
        table = table_of(finished, plan.told)
        if args.out:
            _write_table(args.out, base, table)
    _show_table(args, finished, table, plan)
    _complain(list(finished.values()), plan)
    return 0


def _folder(out: str | None, title: str) -> str | None:
    """Return where one row of a table is kept."""
    return out and f"{out}/{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}"


def _write_table(out: str, base: RunSettings, table: Table) -> None:
    """Write the table of an ablation beside its runs."""
    from worlddb.evaluate.pages import write_pages

    write_pages(Path(out), "ablation", f"{base.benchmark}: {base.mode}, ablated", [table])


def _show_table(
    args: argparse.Namespace, finished: Mapping[str, Finished], table: Table, plan: Plan
) -> None:
    """Print the table of an ablation."""
    from worlddb.evaluate.ablation import BASE, differences, row_of

    if not wants_json(args):
        _print(table.headers, table.rows)
        print()
        for name, text in table.notes.items():
            print(f"  {name}: {text}")
        return
    changed = {
        title: differences(finished[BASE].records, one.records)
        for title, one in finished.items()
        if title != BASE
    }
    print_json(
        {
            "data": args.data,
            "n": len(plan.questions),
            "questions": plan.told,
            "rows": {title: row_of(one.summary) for title, one in finished.items()},
            "differences": {
                title: {name: [one.value, one.low, one.high] for name, one in means.items()}
                for title, means in changed.items()
            },
        }
    )


def _plan(args: argparse.Namespace, settings: RunSettings) -> Plan:
    """Return the questions to ask; with a large file it takes a while to find them."""
    from worlddb.evaluate.benchmark import plan_of

    with Progress("looking for questions", unit="questions", tells=True) as progress:

        def show(found: int) -> None:
            progress.done = found

        return plan_of(args.data, settings, sample=args.sample, limit=args.limit, on_found=show)


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
    """Return what settings say about models, with digests of what they are told."""
    if mode == "retrieval":
        return {}
    from worlddb.evaluate.prompting import load_prompts
    from worlddb.faces.cli.roles import told_of

    return {**told_of(args, reading), "prompts": load_prompts(args.prompts).digests()}


def _calls(args: argparse.Namespace, settings: RunSettings) -> Calls | None:
    """Return where replies of models are kept; None if none is asked.

    Raises:
        InvalidInputError: nobody has said where.
    """
    if not settings.asks_model:
        return None
    if args.out is None:
        raise InvalidInputError("--out: say where to keep a run that costs something")
    from worlddb.evaluate.calls import Calls
    from worlddb.evaluate.ledger import CALLS

    return Calls(Path(args.out, CALLS))


def _run(
    args: argparse.Namespace,
    settings: RunSettings,
    roles: Roles | None,
    plan: Plan,
    out: str | None,
    label: str,
) -> Finished:
    from worlddb.evaluate.benchmark import run_benchmark

    workers = args.workers or (QA_WORKERS if roles is not None else 1)
    count = len(plan.questions)
    with Progress(label, unit="questions", total=count, tells=True) as progress:

        def begin(left: int) -> None:
            # What was done before took no time now, so it must not count for the time left.
            progress.total = left
            if left < count:
                progress.tell(f"{label}: {count - left} of {count} questions are done already")

        def show(done: int) -> None:
            progress.done = done

        finished = run_benchmark(
            args.data,
            settings,
            roles,
            plan=plan,
            out=out,
            workers=workers,
            on_begin=begin,
            on_done=show,
            more=lambda: {**_machine(), **paid(args, roles)},
        )
    if finished.is_report_kept:
        sys.stderr.write(
            f"{out}: has a report of more questions, which is left as it was; for one of these "
            "alone choose another --out\n"
        )
    return finished


def _machine() -> dict[str, str]:
    """Return where the times of a report were taken."""
    import os
    import platform
    from datetime import UTC, datetime

    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return {
        "machine": f"{system}, Python {platform.python_version()}",
        "report written": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    }


def _failures(finished: Finished) -> dict[str, Any]:
    return {"failed": finished.failed} if finished.failed else {}


def _complain(runs: Sequence[Finished], plan: Plan) -> None:
    failed = [error for one in runs for error in one.failed.values()]
    if failed:
        asked = len(plan.questions) * len(runs)
        raise ProviderError(
            f"{len(failed)} of {asked} questions failed and are in no figure; "
            f"run the same command to ask them again ({'; '.join(failed[:FAILED_SHOWN])})"
        )


def _print(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of a report, its figures to the right and never cut."""
    lines = [headers, *rows]
    rooms = [max(map(width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = []
        for place, (cell, room) in enumerate(zip(line, rooms, strict=True)):
            pad = " " * (room - width(cell))
            cells.append(pad + cell if place else cell + pad)
        shown = GAP.join(cells)
        print(paint(shown, "dim") if line is headers else shown)
