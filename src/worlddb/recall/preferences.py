"""Preferences: preferences and standing instructions count when advice or a task is asked for.

"Always give sources when I ask for facts." shares hardly a word with the questions it is meant for.
So if a question asks for advice or a task, the asker's texts that state a preference or a standing
instruction are looked up. The nearest preferences get at least ranks 3 and 7, and the nearest
instructions ranks 4 and 5. Other questions are not affected.

    preference_in("I prefer tea to coffee.")                   PREFERENCE
    preference_in("Always give sources when I ask for facts.") ORDER

The forms are data, by language (`preference_words.txt`). An instruction is a sentence that begins
with its order; a preference is a phrase anywhere in a text. `ranking_features.wants_advice` says
which questions they matter to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from worlddb.language.ranking_features import PREFERENCE_LIST, phrase_pattern, plain_text
from worlddb.language.text_tokens import words
from worlddb.language.word_forms import sections
from worlddb.recall.ranker import Candidates, Scores, Weighed, standing_out

_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n+")
_LETTERS = re.compile(r"\w")


class PreferenceKind(Enum):
    """What kind of wish a text states."""

    ORDER = "a standing instruction: it holds for whatever it does not exclude"
    PREFERENCE = "a preference: it holds for what it is about"


def preference_in(text: str) -> PreferenceKind | None:
    """Return which kind of wish a text states, if any."""
    plain = plain_text(text)
    found = phrase_pattern("prefers").search(plain)
    if phrase_pattern("orders").search(plain):
        for sentence in _SENTENCE.split(plain):
            opening = _LETTERS.search(sentence)
            if opening and phrase_pattern("orders").match(sentence, opening.start()):
                return PreferenceKind.ORDER
    return PreferenceKind.PREFERENCE if found else None


@cache
def preference_signs() -> frozenset[str]:
    """Return tokens; a text with a preference has at least one of them, whatever its language."""
    found = set()
    for name, rows in sections("language", PREFERENCE_LIST).items():
        code, _, part = name.partition(" ")
        if part == "signs":
            said = [word for row in rows for word in row]
            # Of a script without spaces the pair of signs that a word begins with is enough.
            found |= {
                words(word)[1 if not word.isascii() and len(words(word)) > 1 else 0]
                for word in said
            }
            if code in ("de", "es", "fr"):
                found |= {words(word, code)[0] for word in said}
    return frozenset(found)


PLACES = {
    PreferenceKind.PREFERENCE: ((2, 0.5), (6, 0.5)),
    PreferenceKind.ORDER: ((3, -1.0), (4, -0.5)),
}
"""Where wishes go at the latest, counted from 0, and how near they must be: the two best hits stay
first. Nearness is in standard deviations from the mean. A preference that is farther has another
topic. A standing instruction seldom has the words of a task ("format code"), and there are few."""
READ_MAX = 60  # texts with a sign of a preference that are read, the nearest to the question first
COMPANY = 50  # candidates assumed at least: among three, one always stands out

Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""Reads the contents at some places."""


def with_preferences(
    weighed: Weighed, found: Candidates, signed: NDArray[np.bool_] | None, texts: Texts, asker: str
) -> Weighed:
    """Return the scores with the nearest preferences lifted.

    `signed` marks the candidates with a sign of a preference, if they are known.
    """
    near = _nearness(found)
    own = np.array([speaker in ("", asker.casefold()) for speaker in found.speakers])[found.spoken]
    likely = np.flatnonzero(own & (True if signed is None else signed))
    likely = likely[np.argsort(-near[likely], kind="stable")][:READ_MAX]
    wanted = _chosen(near, texts(likely.tolist()), likely.tolist())
    if not wanted:
        return weighed
    lift = np.zeros(len(near))
    others = np.sort(np.delete(weighed.scores, list(wanted.values())))[::-1]
    for number, (place, at) in enumerate(sorted(wanted.items())):
        before = place - number  # Of the others so many stay before it.
        if before < len(others):
            above = others[before - 1] if before else others[0] + 1.0
            lift[at] = max(0.0, (above + others[before]) / 2 - weighed.scores[at])
    parts = {**weighed.parts, "preference": lift}
    return weighed._replace(scores=weighed.scores + lift, parts=parts)


def _chosen(near: Scores, texts: Mapping[int, str], likely: Sequence[int]) -> dict[int, int]:
    """Return which candidate gets each of the places, the nearest first."""
    left = {kind: list(places) for kind, places in PLACES.items()}
    found: dict[int, int] = {}
    for at in likely:
        kind = preference_in(texts.get(at, ""))
        if kind is not None and left[kind] and near[at] > left[kind][0][1]:
            found[left[kind].pop(0)[0]] = at
    return found


def _nearness(found: Candidates) -> Scores:
    """Return how far each candidate stands out by meaning and by words."""
    lanes = [found.lanes[name] for name in ("vector", "text") if name in found.lanes]
    if not lanes:
        return np.zeros(len(found.parents))
    near: Scores = np.mean([standing_out(lane, 0.0, COMPANY) for lane in lanes], axis=0)
    return near
