"""Findings: what an examination of this installation says, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line: the part, how it is, what was seen, and what to do about it if anything."""

    part: str
    verdict: Verdict
    seen: str
    advice: str = ""


def ok(part: str, seen: str) -> Finding:
    """Return that a part is as it should be."""
    return Finding(part=part, verdict="ok", seen=seen)


def warn(part: str, seen: str, advice: str) -> Finding:
    """Return that a part works, or is not needed, but somebody should know."""
    return Finding(part=part, verdict="warn", seen=seen, advice=advice)


def fail(part: str, seen: str, advice: str) -> Finding:
    """Return that a part does not work."""
    return Finding(part=part, verdict="fail", seen=seen, advice=advice)
