"""Unread script: how candidates are ranked where the embedder cannot read the question.

Vectors of an unknown script are noise. So words stand for meaning: a candidate is like the best
ones by the words that it shares with one of them and that the question does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from worlddb.index.held_world import HeldWorld
from worlddb.language.text_tokens import asked
from worlddb.recall.ranker import Candidates, Scores, first_of_worlds


def without_vectors(
    found: Candidates,
    question: str,
    interior: HeldWorld | None,
    rows: Sequence[int],
    texts: Callable[[Sequence[int]], Mapping[int, str]],
) -> Candidates:
    """Return the candidates without their vectors, which still find something where words do not.

    `texts` reads the contents at some places of the candidates, whose rows are `rows`.
    """
    by_words = found.lanes.get("text")
    if by_words is None or not by_words.any():
        return found
    lanes = {lane: scores for lane, scores in found.lanes.items() if lane != "vector"}
    alike: Scores | None = None
    first = first_of_worlds(lanes, found.parents) if interior is not None else []
    best = [at for at in first if by_words[at] > 0]
    if interior is not None and best:
        said = {*asked(question, interior.languages)}
        places = [interior.place[row] for row in rows]
        shares = [
            interior.text.coverage(
                {word: 1.0 for word in asked(text, interior.languages) if word not in said}
            )[places]
            for text in texts(best).values()
        ]
        alike = np.max(shares, axis=0)
    return replace(found, lanes=lanes, closely=None, alike=alike)
