"""A bounded read of a time line changes nothing: the same texts end the same claims."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from worlddb import Memory
from worlddb.claims import claim, claim_edges
from worlddb.claims.claim_edges import NewClaims
from worlddb.store.rows import ClaimEdge

TOWNS = ("Rome", "Oslo", "Lima", "Bern", "Graz", "Kyiv", "Paris", "Turin")
SAYINGS = (
    "I live in {}.",
    "I moved to {}.",
    "I no longer live in {}.",
    "I live in {0}. It rained in {0} all day.",
    "I have lived in {} since 3 May 2011.",
    "I moved to {} on 2 March 2012.",
)
Neighbours = Callable[..., tuple[list[int], bool]]


def everything(
    there: Sequence[ClaimEdge], topics: Mapping[str, NewClaims], most: int
) -> tuple[list[int], bool]:
    return [edge.row for edge in there], False


def history(seed: int) -> list[tuple[str, dict[str, Any]]]:
    """Return texts with their times: back-dated and by tools, repeated and several at a time."""
    rng = random.Random(seed)
    told: list[tuple[str, dict[str, Any]]] = []
    for _ in range(60):
        says = " ".join(
            rng.choice(SAYINGS).format(rng.choice(TOWNS)) for _ in range(rng.choice((1, 1, 1, 2)))
        )
        at = datetime(2010, 1, 1, tzinfo=UTC) + timedelta(days=rng.randrange(2_000))
        more: dict[str, Any] = {"at": at} if rng.random() < 0.8 else {}
        if rng.random() < 0.3:
            more["origin"] = rng.choice(("tool", "assistant"))
        told.append((says, more))
    return told


def root_states(told: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, int]]:
    rng, ticks = random.Random(1), iter(range(1_500_000_000_000_000, 1 << 62, 1_000_000))
    states = []
    with Memory(
        ":memory:",
        user_id="ada",
        clock=lambda: next(ticks),
        random_bytes=rng.randbytes,
        recluster="off",
    ) as memory:
        for text, more in told:
            done = memory.write(text, **more)
            states.append((str(done.root_state), len(done.superseded)))
    return states


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [1, 4])
def test_the_neighbours_in_time_are_enough(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = history(seed)
    monkeypatch.setattr(claim, "COMPARED_MAX", most)
    monkeypatch.setattr(claim_edges, "COMPARED_MAX", most)
    bounded = root_states(told)
    monkeypatch.setattr(claim_edges, "_neighbours", everything)
    assert bounded == root_states(told)
    assert sum(ended for _, ended in bounded) > 10
