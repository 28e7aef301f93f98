"""Confidence: the probability that the hits of a recall hold an answer, and that each hit does.

    words of the question, lanes, first hits ──▶ signals, each -1 to 1 ──logistic──▶ confidence

Every signal is free of scales: how well a word is met, as rare as it is among the words of the
world, or a place between what any text would get and what a perfect one would get. So the same
numbers serve with any embedder and in a world of any size. `confidence.json` beside this file holds
the numbers of the two logistic models, what they were fitted to and how well they did on data left
out. `python -m bench.confidence_fit` writes it. Nothing here changes the order of hits.

C1  No hit is surer than its recall: an answer in a hit is an answer among the hits.
C2  A signal that cannot be had (no vectors, no words) counts as usual.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worlddb.index.bm25 import SAID_WORD
from worlddb.language.ranking_features import FRAME
from worlddb.language.text_tokens import MONTHS, STOP, WEEKDAYS, node_words, words

Scores = NDArray[np.float64]
Signals = Mapping[str, float]
Lacking = Callable[[Sequence[str], Sequence[str]], Sequence[float]]
"""Returns how much of each word some texts lack: 0 if they say the same, 1 if nothing like it."""

PATH = Path(__file__).with_name("confidence.json")
HITS_READ = 3  # hits that are read for the words of the question; an answer is seldom in the fourth
BACKGROUND = 0.5  # share of the candidates, the farthest ones, that are surely about other things
TOPIC_NEAR = 0.5  # nearness from which on a text is surely on the topic; of gold it is the median
LACKING_USUAL = 0.5  # what texts lack of a word that they do not have, if the embedder cannot tell
DATED_WORTH = 0.5  # what a date or a number counts: texts may say "yesterday" and "a dozen"
_DATES = frozenset(token for word in (*MONTHS, *WEEKDAYS) for token in words(word))
WISH = 0.05  # confidence at least in a wish of the asker that was raised; few of them are wanted
OLDER_SHARE = 1 / 4
"""Confidence of an older answer at least, as a share of the newer one's: less is no answer. With
a third, one in eight true marks is lost (`python -m bench.answer_change --blind`)."""
STATED = 0.9  # confidence at least in a text that states the very thing; not fitted: no data has it


@dataclass(frozen=True, slots=True)
class AskedWords:
    """The words of a question: the forms that each may have in a text, and how rare it is.

    `said` are the words as they were written, and `rarity_max` is the rarity of a word that no text
    has. `held` has the numbers of the words that nodes have, by row, where a held world knows them.
    """

    forms: Sequence[frozenset[str]]
    rarity: Sequence[float]
    said: Sequence[str]
    rarity_max: float
    held: Mapping[int, set[int]] = field(default_factory=dict)

    def within(self, names: Iterable[str]) -> set[int]:
        """Return the numbers of the words that some names consist of."""
        said = {word for name in names for word in words(name)}
        return {at for at, forms in enumerate(self.forms) if not forms.isdisjoint(said)}

    def found_in(self, rows: Sequence[int], texts: Sequence[tuple[str, str]]) -> list[set[int]]:
        """Return the numbers of the words that each of some nodes has."""
        return [
            self._said_in(*text) if (held := self.held.get(row)) is None else held
            for row, text in zip(rows, texts, strict=True)
        ]

    def _said_in(self, name: str, content: str) -> set[int]:
        said = set(node_words(name, content))
        return {at for at, forms in enumerate(self.forms) if not forms.isdisjoint(said)}

    @property
    def weights(self) -> dict[str, float]:
        """The words as they are compared with those of texts, each with how much it counts."""
        return {
            word: rarity
            for written, rarity in zip(self.said, self.rarity, strict=True)
            for word in SAID_WORD.findall(written.lower())
        }

    def covered(self, numbers: set[int]) -> float:
        """Return the weighed share of the words that are among `numbers`; 0 without any."""
        total = sum(self.rarity)
        return sum(self.rarity[at] for at in numbers) / total if total else 0.0

    def met(self, numbers: set[int], texts: Sequence[str], lacking: Lacking | None) -> float:
        """Return how well texts meet the word that they meet worst, 0 to 1; they have `numbers`.

        A near miss has all words of the question but one, and that one says what is asked for. How
        bad it is that texts lack a word depends on how rare the word is and on how much it says.
        """
        missing = [at for at in range(len(self.rarity)) if at not in numbers]
        if not missing or not self.rarity_max:
            return 1.0
        lost: Sequence[float] = [LACKING_USUAL] * len(missing)
        if lacking is not None:
            lost = lacking([self.said[at] for at in missing], texts)
        worst = max(
            self.rarity[at] * share * (DATED_WORTH if _is_dated(self.forms[at]) else 1.0)
            for at, share in zip(missing, lost, strict=True)
        )
        return 1.0 - min(1.0, worst / self.rarity_max)


def _is_dated(forms: frozenset[str]) -> bool:
    """Return whether a word is a month, a weekday or a number."""
    return not forms.isdisjoint(_DATES) or any(form[:1].isdigit() for form in forms)


def asked_words(
    question: str,
    languages: Sequence[str],
    rarity: Callable[[Sequence[str]], Mapping[str, float]],
) -> AskedWords:
    """Return the words of a question; `rarity` gives that of each token, 0 if no text has it.

    `rarity` of "" is that of a word that no text has.
    """
    forms = list(zip(words(question), *(words(question, it) for it in languages), strict=True))
    kept = {one[0]: frozenset(one) for one in forms if one[0] not in STOP and one[0] not in FRAME}
    kept = kept or {one[0]: frozenset(one) for one in forms}
    every = list(kept.values())
    rare = rarity([*dict.fromkeys(form for them in every for form in them), ""])
    parts = [it for part in question.split() for it in (part, *SAID_WORD.findall(part))]
    written = {token: part for part in parts for token in words(part)}
    return AskedWords(
        forms=every,
        rarity=[min((rare[it] for it in them if rare[it]), default=rare[""]) for them in every],
        said=[written.get(token, token) for token in kept],
        rarity_max=rare[""],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HitSignals:
    """What speaks for a recall, and for each of its hits.

    Of a recall: `met` is how well the first hits meet the word of the question that they meet
    worst, see `AskedWords.met`; `topic` is how near the nearest of all texts is by meaning, and 1
    from `TOPIC_NEAR` on; `lead` is how far the best text of a speaker whom the question names is
    ahead of all others (`Weighed.lead`). Of a hit: `words` is the share of the question's words
    that it has; `place` is 1 for the first hit, 1/2 for the second; `nearness` is how near it is by
    meaning, between what other texts are (0) and the question itself (1). Of both: `stated` is 1 if
    a hit states exactly what is asked for.
    """

    whole: Signals
    hits: Sequence[Signals]


def signals_of(
    asked: AskedWords,
    rows: Sequence[int],
    texts: Sequence[tuple[str, str]],
    places: Sequence[int],
    lanes: Mapping[str, Scores],
    stated: NDArray[np.bool_] | None = None,
    lead: float | None = None,
    lacking: Lacking | None = None,
    usual: float | None = None,
    names: Sequence[Collection[str]] = (),
    wishes: Sequence[bool] = (),
) -> HitSignals:
    """Return the signals of hits, from their rows, names and contents, and places in lanes.

    `stated` marks the candidates that state exactly what is asked for. `lacking` is the
    method of the embedder, if it knows single words; `usual` is the cosine that it gives to
    unrelated texts. Without `usual`, the texts farthest from the question give it. `names` are the
    names in the question that lead to each hit: "k8s" is met by a text about Kubernetes. `wishes`
    marks the hits that were raised as wishes of the asker, which hardly share a word with a task.
    """
    said = asked.found_in(rows, texts)
    named = [asked.within(leading) for leading in names] or [set[int]() for _ in rows]
    said = [found | leading for found, leading in zip(said, named, strict=True)]
    size = max((len(lane) for lane in lanes.values()), default=0)
    # A world that stands for its members has no place in the lanes: its first member speaks for it.
    places = [
        place if place < size else _next(places[at:], size) for at, place in enumerate(places)
    ]
    own: list[dict[str, float]] = [
        {
            "words": asked.covered(said[at]),
            "place": 1.0 / (1 + at),
            "stated": float(stated is not None and bool(stated[place])),
        }
        for at, place in enumerate(places)
    ]
    for hit, wish in zip(own, wishes, strict=False):
        hit["wish"] = float(wish)
    vector = lanes.get("vector")
    whole: dict[str, float] = {}
    if vector is not None:
        if usual is None:
            usual = float(np.sort(vector)[: max(1, int(len(vector) * BACKGROUND))].mean())
        near = (vector - usual) / max(1 - usual, 1e-6)
        # An embedder may not know a name. The text that the name leads to is on its topic.
        known = [TOPIC_NEAR * asked.covered(leading) for leading in named]
        for hit, place, least in zip(own, places, known, strict=True):
            hit["nearness"] = max(float(near[place]), least)
        nearest = max(float(near.max()), *known[:HITS_READ], 0.0)
        whole["topic"] = 1.0 - (max(0.0, TOPIC_NEAR - nearest) / TOPIC_NEAR) ** 2
    if not own:
        return HitSignals(whole={}, hits=())
    together: set[int] = set().union(*said[:HITS_READ])
    whole["met"] = asked.met(together, [text for _, text in texts[:HITS_READ]], lacking)
    whole["stated"] = max(hit["stated"] for hit in own[:HITS_READ])
    if lead is not None:
        whole["lead"] = lead
    return HitSignals(whole=whole, hits=own)


def _next(places: Sequence[int], size: int) -> int:
    """Return the first place that the lanes have."""
    return next((place for place in places if place < size), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticModel:
    """A logistic model over signals: each is compared with its mean, in units of its spread."""

    bias: float
    weights: Mapping[str, float]
    means: Mapping[str, float]
    spreads: Mapping[str, float]

    def logit(self, signals: Signals) -> float:
        """Return the log odds; a signal that is not there counts as its mean."""
        return self.bias + sum(
            weight * (signals.get(name, self.means[name]) - self.means[name]) / self.spreads[name]
            for name, weight in self.weights.items()
        )


@cache
def models() -> tuple[LogisticModel, LogisticModel]:
    """Return the models of a recall and of a hit."""
    data: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    whole, hit = (LogisticModel(**data[part]) for part in ("recall", "hit"))
    return whole, hit


def confidences(found: HitSignals) -> tuple[float, list[float]]:
    """Return the confidence of a recall, and of each of its hits."""
    if not found.hits:
        return 0.0, []
    whole, hit = models()
    logit = whole.logit(found.whole)
    own = [
        max(
            probability(hit.logit({**one, "recall": logit})),
            STATED * one["stated"],
            WISH * one.get("wish", 0.0),
        )
        for one in found.hits
    ]
    sure = max(probability(logit), STATED * found.whole["stated"])
    return sure, [min(sure, one) for one in own]


def among_answers(
    own: Sequence[float], rows: Sequence[int], chances: Mapping[tuple[int, int], float]
) -> dict[tuple[int, int], float]:
    """Return the chances of the pairs whose older hit answers the question, too.

    `chances` are by the older and the newer row. What is hardly an answer is not outdated by one:
    the comparison was made for answers. Two statements of one frame (chance 1) are not asked for.
    """
    given = dict(zip(rows, own, strict=True))
    return {
        (old, new): chance
        for (old, new), chance in chances.items()
        if chance == 1.0 or given.get(old, 0.0) >= OLDER_SHARE * given.get(new, 0.0)
    }


def with_recency(
    own: Sequence[float], rows: Sequence[int], chances: Mapping[tuple[int, int], float]
) -> list[float]:
    """Return the confidence of hits where later ones answer what older ones answer.

    `chances` are by the older and the newer row. The later hit is as sure as the older one is, by
    the chance that it answers the same; and the older one is no surer than the later one.
    """
    given = dict(zip(rows, own, strict=True))
    pairs = [pair for pair in chances if pair[0] in given and pair[1] in given]
    raised = dict(given)
    for old, new in pairs:
        raised[new] = max(raised[new], round(given[old] * chances[old, new], 4))
    found = dict(raised)
    for old, new in pairs:
        found[old] = min(found[old], raised[new])
    return [found[row] for row in rows]


def probability(logit: float) -> float:
    """Return the probability of log odds, rounded: more digits would pretend to know."""
    return round(1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, logit)))), 4)
