"""Waiting: what a failing model leaves behind. The text is written, and what it lacks is noted.

    extractor fails ──▶ draft of its fallback + Waits ──enqueue()──▶ root --refers_to--> memory

The queue is made of edges from the root world to what waits, with the reason in their metadata. So
it is found in one look, has both clocks and a journal like all else, and needs no table. A node is
in the queue while such an edge is there; the commit that writes what was extracted deletes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from worlddb.errors import ProviderError
from worlddb.ingest.messages import dated
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.drafts import Draft, Extractor, Message
from worlddb.write.transaction import Transaction

QUEUE_EDGE = "refers_to"
TASK = "extract"
ERROR_CHARS_MAX = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """That an extraction has to be done later: by which extractor, why, and how often it failed."""

    extractor: str
    error: str
    attempts: int = 1

    def metadata(self) -> dict[str, Any]:
        """Return what the edge says."""
        return {
            "task": TASK,
            "extractor": self.extractor,
            "error": self.error,
            "attempts": self.attempts,
        }


def read_waits(metadata: Mapping[str, Any]) -> Waits | None:
    """Return what an edge from the root says, if it is one of the queue."""
    if metadata.get("task") != TASK:
        return None
    attempts = metadata.get("attempts")
    return Waits(
        extractor=str(metadata.get("extractor", "")),
        error=str(metadata.get("error", "")),
        attempts=attempts if isinstance(attempts, int) else 1,
    )


def failed(extractor: Extractor, error: Exception | str, attempts: int = 1) -> Waits:
    """Return what is noted of an extraction that failed, or was not tried."""
    name = str(getattr(extractor, "name", type(extractor).__name__))
    return Waits(extractor=name, error=str(error)[:ERROR_CHARS_MAX], attempts=attempts)


def drafted(
    extractor: Extractor, messages: Sequence[Message], at: datetime
) -> tuple[Draft, Waits | None]:
    """Return the draft of some messages; where the model failed, its fallback's, and that it waits.

    The fallback is the extractor's own `fallback`, else verbatim: the text is never lost. An
    extractor that says by `resting()` why it should not be asked now is not waited for. A message
    without a time has that of the one before it; the first has `at`.
    """
    messages = dated(messages, at)
    resting: Callable[[], str | None] = getattr(extractor, "resting", lambda: None)
    reason = resting()
    if reason is not None:
        waits = failed(extractor, reason, attempts=0)
    else:
        try:
            return extractor.extract(messages, at).merged(), None
        except ProviderError as error:
            waits = failed(extractor, error)
    fallback: Extractor | None = getattr(extractor, "fallback", None)
    if fallback is None:
        from worlddb.extract import extractor_named

        fallback = extractor_named("verbatim")
    return fallback.extract(messages, at).merged(), waits


def enqueue(tx: Transaction, draft: Draft, ids: Mapping[str, Id], waits: Waits | None) -> None:
    """Note in this transaction that what a draft begins with waits; do nothing if it does not."""
    if waits is not None and draft.nodes:
        put_into_queue(tx, ids[draft.nodes[0].key], waits)


def put_into_queue(tx: Transaction, ident: Id, waits: Waits) -> None:
    """Note in this transaction that a memory or a session waits."""
    tx.write_edge(QUEUE_EDGE, ROOT_ID, ident, metadata=waits.metadata())
