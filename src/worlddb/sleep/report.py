"""Report: what a run of the consolidator did, or would do, and what it left for the next one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from worlddb.model.address import Id
from worlddb.model.records import Plain

SummaryAction = Literal["written", "refreshed", "retired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryChange(Plain):
    """A world that got a summary, got a newer one, or lost the one it had.

    `summary` is the new one, or the retired one; None in a dry run that would write it.
    """

    action: SummaryAction
    world: Id
    title: str
    details: int
    summary: Id | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredEdge(Plain):
    """An edge that follows from two others of its type; `edge` is None in a dry run."""

    type: str
    source: Id
    target: Id
    valid_from: datetime
    valid_to: datetime | None = None
    edge: Id | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction(Plain):
    """Two targets of one source under an edge type that allows one; `edge` is None in a dry run."""

    type: str
    source: Id
    left: Id
    right: Id
    edge: Id | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationReport(Plain):
    """What a run did. An empty one is the usual case: nothing has changed since the last.

    `worlds` were looked at and `left` were not, because the run had reached its limit; `edges_left`
    says the same of inferences and contradictions. `skipped` worlds have changed while they were
    being summarised, `refused` edges met a handler that would not have them, and `error` is why
    summarising stopped. All of these are for the next run. `withdrawn` inferred edges had lost a
    premise. `commits` are the numbers of the commits it made.
    """

    dry_run: bool = False
    worlds: int = 0
    summaries: tuple[SummaryChange, ...] = ()
    inferred: tuple[InferredEdge, ...] = ()
    withdrawn: tuple[Id, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    skipped: tuple[Id, ...] = ()
    refused: tuple[str, ...] = ()
    error: str | None = None
    left: int = 0
    edges_left: bool = False
    commits: tuple[int, ...] = ()

    @property
    def written(self) -> int:
        """How many summaries were written where there was none."""
        return self._count("written")

    @property
    def refreshed(self) -> int:
        """How many summaries were replaced by newer ones."""
        return self._count("refreshed")

    @property
    def retired(self) -> int:
        """How many summaries had nothing left to stand for."""
        return self._count("retired")

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left for the next run."""
        return not (self.left or self.edges_left or self.skipped or self.error)

    def _count(self, action: SummaryAction) -> int:
        return sum(change.action == action for change in self.summaries)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data, with the counts."""
        counts = {name: getattr(self, name) for name in ("written", "refreshed", "retired")}
        return Plain.to_dict(self) | counts | {"complete": self.is_complete}
