"""The numbers that decide the order of hits, read once from `ranking.json` beside this file.

`ranking.json` says for each number what it means, how it was chosen (fitted on benchmark questions,
measured one at a time, or a convention) and which value switches its feature off. For the whole
file it names data, seed and command. `worlddb eval fit` fits the weights, and `python -m
bench.ablation` measures what each number is worth.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

PATH = Path(__file__).with_name("ranking.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingScalars:
    """The numbers beside the weights; `ranking.json` explains each under the same name."""

    bm25_k1: float
    bm25_b: float
    frame_weight: float
    rarity_power: float
    whole_reading: float
    fusion_c: int
    lane_depth: int
    company_min: int
    lane_company_min: int
    company_max: int
    world_best: int
    feedback_worlds: int
    feedback_depth: int
    late_candidates_max: int
    synonym_candidates_max: int
    unlikely_worth: float
    short_turn_chars: int
    brevity_max: float
    said_before: float
    said_after: float
    said_alone: float
    relative_day: float
    overlap_worth: float
    only_asks_penalty: float
    mention_share: float
    name_cover: float
    commonness_power: float
    spread_texts: int
    spread_hops: int
    spread_decay: float
    hub_max: int
    references_max: int


def values_of(entries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of one part of the file, by name."""
    return {name: entry["value"] for name, entry in entries.items()}


_FILE = json.loads(PATH.read_text(encoding="utf-8"))
WEIGHTS: Mapping[str, float] = MappingProxyType(values_of(_FILE["weights"]))
"""The default of each field of `worlddb.Weights`."""
SCALARS = RankingScalars(**values_of(_FILE["scalars"]))
