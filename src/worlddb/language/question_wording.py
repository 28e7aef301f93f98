"""Question wording: what the words of a question say beside its topic.

"How many days ago did I mention…" is frame: it says what kind of answer is wanted, and would
otherwise find every text that counts days.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from worlddb.language.text_tokens import words

_FRAMING = """
day week weekend month year time ago past last first earliest latest before after between since
recent recently current currently today now many much long often total number different amount
order pass happen take mention remind remember tell say previous previously conversation chat
discuss talk wonder earlier follow
"""
FRAME = frozenset(token for word in _FRAMING.split() for token in words(word))
_ME = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours"})
_YOU = frozenset({"you", "your", "yours", "yourself"})
_WORD = re.compile(r"[^\W\d_]+")
_ADVICE = re.compile(
    r"\b(?:can|could|will) you (?:please )?(?:suggest|recommend|advise|help|give|find|share)\b"
    r"|\b(?:do|would) you (?:have|know|think|suggest|recommend)\b",
    re.IGNORECASE,
)
"""Asks the other for something new: the "you" in it is nobody who spoke."""


def weights_of(asked: list[str], frame_weight: float) -> dict[str, float]:
    """Return how much each word of a question counts.

    A word that only frames the question counts `frame_weight`, if there is any other word.
    """
    topic = [word for word in asked if word not in FRAME]
    frame = frame_weight if topic else 1.0
    return {word: frame if word in FRAME else 1.0 for word in asked}


def speakers_of(question: str, asker: str) -> tuple[frozenset[str], str | None]:
    """Return who the question speaks of: names it says, and whether the asker or the others.

    The second value is `asker` for "what did I say" and for what speaks of neither, since memory is
    first of all of what the asker told; `"not " + asker` for "what did you say"; None if it speaks
    of both. "Can you suggest…" asks for advice, which rests on what the asker told.
    """
    said = frozenset(word.casefold() for word in _WORD.findall(question))
    rest = frozenset(word.casefold() for word in _WORD.findall(_ADVICE.sub(" ", question)))
    me, you = not rest.isdisjoint(_ME), not rest.isdisjoint(_YOU)
    if me and you:
        return said, None
    return said, f"not {asker}" if you else asker


def question_parts(
    question: str,
    rarity: Callable[[str], float],
    rarity_max: float,
    *,
    frame_weight: float,
    rarity_power: float,
) -> list[tuple[str, float]]:
    """Return the words of a question as they were written, each with how much it should count.

    Rare words say more. A `rarity_power` below 1 keeps one strange word from drowning the others.
    """
    weights = weights_of(words(question), frame_weight)
    parts = []
    for part in question.split():
        tokens = words(part)
        rare = max((rarity(token) for token in tokens), default=0.0) / rarity_max
        frame = min((weights[token] for token in tokens if token in weights), default=1.0)
        parts.append((part, frame * rare**rarity_power))
    return parts
