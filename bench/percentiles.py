"""Percentiles, never averages; and the machine the figures come from."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timed(call: Callable[[int], object], count: int) -> list[float]:
    """Return how long each of `count` calls took, in microseconds."""
    taken = []
    for i in range(count):
        started = time.perf_counter_ns()
        call(i)
        taken.append((time.perf_counter_ns() - started) / 1000)
    return taken


def line(what: str, taken: Sequence[float]) -> str:
    """Return one printed row: P50, P95, P99 in microseconds."""
    shares = " / ".join(f"{percentile(taken, share):,.0f}" for share in (0.5, 0.95, 0.99))
    return f"  {what:<58} P50/P95/P99 {shares} µs (n={len(taken):,})"


def machine() -> str:
    """Return what the figures were measured on, and on which commit."""
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "no git"
    python, cores = platform.python_version(), os.cpu_count()
    return f"commit {commit}, Python {python}, {cores} cores, {platform.machine()}"
