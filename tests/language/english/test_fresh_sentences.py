"""The fresh sentences stay as they were written: a measure that is tuned on measures nothing."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

FRESH = Path(__file__).parents[3] / "bench" / "data" / "fresh_sentences.jsonl"
# A new set may be composed (without a look at the rules) and frozen in its turn.
FROZEN = "58f41dc5e8509264daf5b136712b59e51b66d26787a4701f65708df752c1f16f"


def test_the_fresh_sentences_are_frozen() -> None:
    assert sha256(FRESH.read_bytes()).hexdigest() == FROZEN


def test_they_are_many_and_half_of_them_claim_nothing() -> None:
    rows = [json.loads(line) for line in FRESH.read_text(encoding="utf-8").splitlines()]
    assert len({row["text"] for row in rows}) == len(rows) >= 150
    assert sum(not row["claims"] for row in rows) * 2 >= len(rows)
