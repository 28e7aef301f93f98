"""A synthetic corpus: seeded, so every run measures the same store."""

from __future__ import annotations

import random
from itertools import accumulate

from worlddb import EdgeDraft, Id, NodeDraft

TYPES = ("Entity", "Event", "Fact", "Topic")
VOCABULARY = 50_000
WORDS_NAME, WORDS_CONTENT = 2, 12


def drafts(count: int, seed: int = 1) -> list[NodeDraft]:
    """Return nodes of four types with Zipf-distributed words: 2 in the name, 12 in the content."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(3, 9))) for _ in range(VOCABULARY)]
    weights = list(accumulate(1 / (rank + 5) for rank in range(VOCABULARY)))
    size = WORDS_NAME + WORDS_CONTENT
    found = []
    for i in range(count):
        text = rng.choices(words, cum_weights=weights, k=size)
        found.append(
            NodeDraft(
                type=TYPES[i % len(TYPES)],
                name=" ".join(text[:WORDS_NAME]),
                content=" ".join(text[WORDS_NAME:]),
            )
        )
    return found


def edges(ids: list[Id], count: int, seed: int = 2) -> list[EdgeDraft]:
    """Return edges between uniformly chosen nodes."""
    rng = random.Random(seed)
    ends = rng.choices(ids, k=2 * count)
    return [EdgeDraft(source=ends[i], target=ends[i + 1]) for i in range(0, 2 * count, 2)]
