"""Word cover: what the words of a question say of texts, and of what was said around them.

    "When did Melanie go camping?"   shares   the words that a text has itself
                                     around   the words said in it, or near it in its conversation

A turn seldom repeats what the turns before it have named: "We went two weeks ago" has no word of
the question, but the turn before has. So a word counts for a turn, too, if it was said a few turns
before or after, and the less the farther away.

Without an embedder, or where it cannot read the question so that its vectors are noise, words stand
for meaning (`without_vectors`): a candidate is like the best ones by the words that it shares with
one of them and that the question does not have. So "the one who lives in Ulm" leads from "My cousin
lives in Ulm" to "My cousin paints".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from worlddb.index.bm25 import Bm25
from worlddb.index.held_world import HeldWorld, Mask, VectorRows, forms_of, weighed_words
from worlddb.index.ranking_numbers import SCALARS, RankingScalars
from worlddb.language.ranking_features import ASKS, ONLY
from worlddb.language.text_tokens import asked, node_words, words
from worlddb.recall.ranker import Candidates, Scores, best_places
from worlddb.store.rows import BodyRow


class WordCover:
    """Which share of a question's words the texts at some places have, and which have a name.

    `tells` marks the texts that do not only ask: a question has the words that are asked for, and
    hardly ever the answer.
    """

    def __init__(
        self,
        index: Bm25,
        asked_for: Mapping[str, float],
        places: NDArray[np.intp],
        forms: NDArray[np.int64],
    ) -> None:
        self._index = index
        self._places = places
        self._asked_for = asked_for
        self.shares = index.coverage(asked_for)[places]
        self.tells = forms[:, ASKS] != ONLY

    def saying(self, key: str) -> Mask:
        """Return which places have all words of a name."""
        found = np.ones(len(self._index), dtype=np.bool_)
        for word in words(key):
            has = np.zeros(len(found), dtype=np.bool_)
            has[self._index.places_of(word)] = True
            found &= has
        return found[self._places]

    def around(
        self,
        parents: NDArray[np.int64],
        before: NDArray[np.intp],
        scalars: RankingScalars = SCALARS,
    ) -> Scores:
        """Return the share of the words that are said at or near each place.

        `parents` are the worlds of the places, and `before` is the turn before each turn, see
        `Candidates.before`. What is not a turn has nothing around it: its own words count again, by
        `said_alone`.
        """
        turns = np.flatnonzero(before >= 0)
        turns = turns[np.argsort(parents[turns], kind="stable")]
        index, top = self._index, self._index.rarity_max
        worth = {word: it * (index.rarity(word) or top) for word, it in self._asked_for.items()}
        said = [word for word in worth if index.count(word)]
        shares: Scores = scalars.said_alone * self.shares
        if not len(turns) or not said:
            return shares
        has = np.zeros((len(said), len(index)), dtype=np.bool_)
        for number, word in enumerate(said):
            has[number, index.places_of(word)] = True
        near = nearness(has[:, self._places[turns]], before[turns] == turns, scalars)
        total = sum(worth.values())
        shares[turns] = (np.array([[worth[word] / total] for word in said]) * near).sum(axis=0)
        return shares


def nearness(
    has: NDArray[np.bool_], is_first: NDArray[np.bool_], scalars: RankingScalars = SCALARS
) -> Scores:
    """Return how near each turn is to what has a word: 1 if it has it, less by each turn between.

    A row of `has` is a word, a column a turn, in order; `is_first` marks where a conversation
    begins.
    """
    at = np.arange(has.shape[1])
    starts = np.maximum.accumulate(np.where(is_first, at, 0))
    ends = np.append(np.flatnonzero(is_first)[1:], len(at))[np.cumsum(is_first) - 1]
    last = np.maximum.accumulate(np.where(has, at, -1), axis=1)
    after = np.minimum.accumulate(np.where(has, at, len(at))[:, ::-1], axis=1)[:, ::-1]
    fading = np.arange(len(at) + 1)
    back, ahead = scalars.said_before**fading, scalars.said_after**fading
    heard = np.where(last >= starts, back[at - np.maximum(last, starts)], 0.0)
    taken_up = np.where(after < ends, ahead[np.minimum(after, ends - 1) - at], 0.0)
    near: Scores = np.maximum(heard, taken_up)
    return near


def text_cover(interior: HeldWorld, question: str, places: NDArray[np.intp]) -> WordCover:
    """Return what the texts at some places say of a question."""
    asked_for = weighed_words(question, interior.languages)
    return WordCover(interior.text, asked_for, places, interior.chosen_forms(places))


def cover_among(bodies: Sequence[BodyRow], question: str, languages: Iterable[str]) -> WordCover:
    """Return what nodes say of a question; words are rare by how few of these nodes have them."""
    index = Bm25()
    for body in bodies:
        index.add(node_words(body.name, body.content))
    asked_for = weighed_words(question, languages)
    return WordCover(index, asked_for, np.arange(len(index)), forms_of(bodies))


def first_of_worlds(
    lanes: Mapping[str, Scores], parents: NDArray[np.int64], scalars: RankingScalars = SCALARS
) -> list[int]:
    """Return the places of the best candidates, one of each of some worlds, by fused ranks.

    The ranks are those of the lanes, so no weight takes part. Empty with one or two worlds, where
    the first candidate would only confirm itself.
    """
    if scalars.feedback_worlds > 1 and (parents == parents[:1]).all():
        return []  # Of one world, as most candidates are: nothing need be ranked.
    fused = np.zeros(len(parents))
    for scores in (lanes[lane] for lane in ("text", "vector") if lane in lanes):
        rank = np.empty(len(parents))
        rank[np.argsort(-scores, kind="stable")] = np.arange(len(parents))
        fused += 1 / (scalars.fusion_c + 1 + rank)
    order = best_places(fused, scalars.feedback_depth)
    first = np.sort(np.unique(parents[order], return_index=True)[1])
    wanted = scalars.feedback_worlds
    return order[first[:wanted]].tolist() if len(first) >= wanted else []


def like_the_best(
    lanes: Mapping[str, Scores], parents: NDArray[np.int64], cosines: VectorRows | None
) -> Scores | None:
    """Return how near each candidate is to the best ones of some worlds; None if it has no say."""
    best = first_of_worlds(lanes, parents) if cosines is not None else []
    return cosines.of(cosines.mean(best)) if cosines is not None and best else None


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
        most = by_words.max()
        shares = [
            interior.text.coverage(
                {word: 1.0 for word in asked(text, interior.languages) if word not in said}
            )[places]
            * (by_words[at] / most)
            for at, text in texts(best).items()
        ]
        alike = np.max(shares, axis=0)
    return replace(found, lanes=lanes, closely=None, alike=alike, reads_whole=False)
