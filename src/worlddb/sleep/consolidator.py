"""Consolidator: one run over a store. Look, ask, write; and say what was done.

    worlds ──look──▶ jobs ──ask, no lock held──▶ texts ──write──▶ a commit for each batch
    edges  ──look──▶ inferences, contradictions ─────────write──▶ a commit each

S1  Nothing but summaries, inferred edges and flags is ever written, closed or deleted here.
S2  Every commit is whole by itself, and what there is to do is read from the store alone. So a run
    that was stopped anywhere is finished by the next one, and a second run finds nothing to do.
S3  A world that has changed between the look and the write is left for the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from math import isfinite

from worlddb.errors import InvalidInputError
from worlddb.model.drafts import Summarizer
from worlddb.model.inputs import Limits, check_whole, encode_text
from worlddb.ontology.registry import Registry
from worlddb.sleep.reasoning import reason
from worlddb.sleep.report import ConsolidationReport
from worlddb.sleep.run import Bounds, Run
from worlddb.sleep.summarising import summarise
from worlddb.store.protocol import Store
from worlddb.write.transaction import ACTOR_BYTES_MAX

PARTS = ("summaries", "closure", "conflicts")
MICROSECOND = timedelta(microseconds=1)


def consolidate(
    store: Store,
    registry: Registry,
    clock: Callable[[], int],
    limits: Limits,
    *,
    world: bytes | None,
    summarizer: Summarizer | None,
    min_age: timedelta | float,
    worlds_max: int,
    edges_max: int,
    dry_run: bool,
    actor: str,
    only: str | Iterable[str],
) -> ConsolidationReport:
    """Run once; see `WorldDB.consolidate`."""
    parts = _parts(only)
    encode_text(actor, "actor", ACTOR_BYTES_MAX)
    bounds = Bounds(
        world=world,
        min_age_micros=_micros(min_age),
        worlds_max=check_whole(worlds_max, "worlds_max", 1),
        edges_max=check_whole(edges_max, "edges_max", 1),
        dry_run=dry_run,
        actor=actor,
    )
    run = Run(store, registry, clock, limits, bounds)
    if "summaries" in parts:
        summarise(run, _default() if summarizer is None else _checked(summarizer))
    reason(run, closure="closure" in parts, conflicts="conflicts" in parts)
    return run.report()


def _default() -> Summarizer:
    from worlddb.sleep.extractive import ExtractiveSummarizer

    return ExtractiveSummarizer()


def _checked(summarizer: Summarizer) -> Summarizer:
    name = getattr(summarizer, "name", None)
    if not isinstance(name, str) or not callable(getattr(summarizer, "summarize", None)):
        raise InvalidInputError(
            f"summarizer: give an object with a name and summarize(title, messages), "
            f"not {summarizer!r:.100}"
        )
    return summarizer


def _parts(only: str | Iterable[str]) -> frozenset[str]:
    given = frozenset((only,) if isinstance(only, str) else only)
    unknown = sorted(map(str, given - set(PARTS)))
    if unknown or not given:
        raise InvalidInputError(
            f"only: give some of {', '.join(PARTS)}, not {', '.join(unknown) or 'nothing'}"
        )
    return given


def _micros(min_age: timedelta | float) -> int:
    micros = -1
    if isinstance(min_age, timedelta):
        micros = min_age // MICROSECOND
    elif isinstance(min_age, int | float) and not isinstance(min_age, bool) and isfinite(min_age):
        micros = int(min_age * 1_000_000)
    if micros < 0:
        raise InvalidInputError(f"min_age: give a timedelta or seconds from 0 on, not {min_age!r}")
    return micros
