"""Benchmark: from a file to a finished run.

survey ──▶ choose ──▶ what the ledger lacks ──run──▶ ledger ──▶ summary, report
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from worlddb.errors import InvalidInputError
from worlddb.evaluate.answering import Roles
from worlddb.evaluate.cases import load_cases
from worlddb.evaluate.ledger import Ledger
from worlddb.evaluate.plan import Plan, Planned, choose, survey, works_of
from worlddb.evaluate.report import write_report
from worlddb.evaluate.running import run
from worlddb.evaluate.settings import RunSettings
from worlddb.evaluate.summary import Summary, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run: its records, its figures, and the questions at which a model failed."""

    records: list[dict[str, Any]]
    summary: Summary
    failed: dict[str, str] = field(default_factory=dict)
    is_report_kept: bool = False
    """Whether the folder has a report of more questions, which was left as it was."""


def plan_of(
    data: str,
    settings: RunSettings,
    *,
    sample: int | None = None,
    limit: int | None = None,
    on_found: Callable[[int], None] = lambda found: None,
) -> Plan:
    """Return the questions of a file that a run will ask.

    Raises:
        FormatError: it is no such file.
        InvalidInputError: there is nothing to ask in it.
    """
    enough = limit if sample is None else None
    cases = load_cases(data, settings.benchmark)
    seen = survey(cases, settings, limit=enough, on_found=on_found)
    left_out, count = sum(seen.left_out.values()), len(seen.found)
    if not seen.found:
        why = f"none of its {left_out} can be asked: {seen.why_not}" if left_out else "it is empty"
        raise InvalidInputError(f"{data}: has no question for such a run; {why}")
    return Plan(
        questions=choose(seen.found, sample=sample, limit=limit, seed=settings.seed),
        found=count if enough is None or count < enough else None,
        left_out=left_out,
        why_not=seen.why_not,
        sample=sample,
        limit=limit,
    )


def left_of(data: str, settings: RunSettings, *, plan: Plan, out: str | None) -> list[Planned]:
    """Return the questions of a plan that the folder of a run has no answer to yet.

    Raises:
        ConflictError: the folder holds a run with other settings.
        FormatError: what the folder holds is damaged.
    """
    done = Ledger(out, settings, data).done
    return [one for one in plan.questions if one.id not in done]


def run_benchmark(
    data: str,
    settings: RunSettings,
    roles: Roles | None,
    *,
    plan: Plan,
    out: str | None = None,
    workers: int = 1,
    on_begin: Callable[[int], None] = lambda left: None,
    on_done: Callable[[int], None] = lambda done: None,
    more: Callable[[], Mapping[str, str]] = dict,
) -> Finished:
    """Ask the questions of a plan that are not answered yet; report on all of them.

    `out` is the folder of the run; `more` is told in the report beside the settings.

    Raises:
        ConflictError: the folder holds a run with other settings.
        FormatError: the file, or what the folder holds, is damaged.
        ProviderError: the embedder failed, or models failed too often in a row.
    """
    ledger = Ledger(out, settings, data)
    ids = [one.id for one in plan.questions]
    ledger.begin(plan.told, ids)
    left = [one for one in plan.questions if one.id not in ledger.done]
    on_begin(len(left))
    works = works_of(load_cases(data, settings.benchmark), left)
    for number, record in enumerate(run(works, settings, roles, workers=workers), 1):
        ledger.add(record)
        on_done(number)
    records = ledger.finish(ids)
    finished = Finished(
        records=records,
        summary=summarise(records),
        failed={name: ledger.failed[name]["error"] for name in ids if name in ledger.failed},
        is_report_kept=ledger.is_fuller(ids),
    )
    if ledger.folder is not None and not finished.is_report_kept:
        told = {
            "done": f"{len(records)} of {len(ids)}, {len(finished.failed)} failed",
            **{name: f"{value:,.1f}" for name, value in finished.summary.spent.items()},
        }
        told |= more()
        part = plan.told if plan.is_part else ""
        write_report(
            *(ledger.folder, ledger.run, finished.summary, records, told),
            part=part,
            failed=finished.failed,
        )
        ledger.report_written(ids)
    return finished
