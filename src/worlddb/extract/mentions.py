"""Mentions: which stretches of a text are names.

    text ──▶ titles in quotes ──▶ capitalised runs ──▶ judged ──▶ mentions

A mention that is not sure counts only if the same name is certain elsewhere in the draft.
"""

from __future__ import annotations

import re
from collections.abc import Set
from typing import NamedTuple

from worlddb.extract.judge import Scene, judged
from worlddb.extract.lexicon.known import NUMBERED
from worlddb.extract.lexicon.ordinary import SMALL
from worlddb.extract.mask import BLOT
from worlddb.extract.runs import UPPER, runs_in

TITLE_WORDS_MAX = 8

_LOWER = re.compile(r"\b[a-z]+\b")
_NUMBER = re.compile(
    rf"[ -](?:\d{{1,4}}(?:\.\d{{1,3}}){{0,2}}[a-z]{{0,3}}|[{UPPER}]\d{{1,3}})(?![\w%]|[.:,]\d)"
    r"(?!\s*(?:times?|days?|weeks?|months?|years?|hours?|minutes?|people|dollars|bucks|km|miles?"
    r"|of|more|users?|percent|am|pm)\b)"
)
_QUOTED = re.compile(
    r"[\"“]([^\"“”\n]{1,80})[\"”]|(?<![\w'’])['‘]([^\W\d_a-z][^'‘’\n]{1,60})['’](?!\w)"
)
_TITLED = re.compile(
    r"\b(?:called|titled|entitled|named|book|books|novel|movie|film|song|album|track|show|series"
    r"|podcast|game|games|band|play|musical|documentary|memoir|read|reading|watched|watching|seen"
    r"|finished|playing|listening to|rewatching|rereading|finishing)\b[^.!?\n\"“”]{0,24}$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_][\w'’-]*")


class Mention(NamedTuple):
    """A name at `start` to `end` of a text; `person` if a person's or a pet's, for all we know."""

    start: int
    end: int
    text: str
    sure: bool
    person: bool


def mentions_in(text: str, plain: str, speakers: Set[str]) -> list[Mention]:
    """Return the names in `text`, in order; `plain` is the text with what is no prose masked.

    `speakers` are the names of those who take part, in lower case: names wherever they stand.
    """
    titles, plain = _titles(plain)
    scene = Scene(plain, frozenset(_LOWER.findall(plain)), speakers)
    found = [Mention(start, end, text[start:end], True, False) for start, end in titles]
    for run in runs_in(plain):
        verdict = judged(run, scene)
        if verdict is not None:
            start, end, sure, person = verdict
            if run.tokens[-1].word in NUMBERED and end == run.tokens[-1].end:
                number = _NUMBER.match(plain, end)
                end = number.end() if number else end
            found.append(Mention(start, end, text[start:end], sure, person))
    found.sort()
    return found


def _titles(plain: str) -> tuple[list[tuple[int, int]], str]:
    """Return where titles of works stand in quotes, and the text with all such quotes masked.

    Words in a quoted title are capitalised for its sake, so none of them alone is a name there.
    """
    found: list[tuple[int, int]] = []

    def blot(match: re.Match[str]) -> str:
        group = 1 if match[1] is not None else 2
        inner = match[group].rstrip(" ,.!?")
        words = [word for word in _WORD.findall(inner) if word not in SMALL]
        if not words or not all(word[0].isupper() for word in words):
            return match[0]
        if inner[0].isupper() and len(words) <= TITLE_WORDS_MAX:
            if _TITLED.search(plain, max(0, match.start() - 48), match.start()):
                found.append((match.start(group), match.start(group) + len(inner)))
        elif len(words) == 1:
            return match[0]
        return BLOT * len(match[0])

    if any(quote in plain for quote in "\"“'‘"):
        plain = _QUOTED.sub(blot, plain)
    return found, plain
