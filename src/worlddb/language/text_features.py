"""Text features: what can be seen of a text whatever it is about, for the ranking of memories.

- `telling`: whether somebody tells of themselves, and of what they did. "I just finished a run of
  five miles" will be asked for; "Can you recommend shoes?" hardly, and "That sounds great!" never.
- `wants_question`: whether a question asks for what was asked.

Only the form of English sentences is looked at: subject, tense, and no question.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NOTHING, OWN, DONE = 0, 1, 3
"""Says nothing of the speaker; says something; says what they did or what happened to them."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_OWN = re.compile(r"\b(?:i|me|my|mine|we|our|ours)\b", re.IGNORECASE)
_IRREGULAR = """
ate became began bought broke brought built came caught chose cost cut did drank drew drove fell
felt flew forgot found gave got grew had heard held hit hung hurt kept knew led left lent let lit
lost made meant met paid put quit ran read rode rose sang sat saw sent set shook shot shut slept
sold spent spoke stole stood stuck swam swore taught threw told took thought understood was went
were woke won wore wrote
"""
_BETWEEN = """
actually already also always both even finally first just last never once only really recently
still then
"""
_DONE = re.compile(
    r"\b(?:i|we)(?:'ve| have|'d| had)?"
    rf"(?: (?:{'|'.join(_BETWEEN.split())}|ended up))*"
    rf" (?:[a-z]{{2,}}ed|{'|'.join(_IRREGULAR.split())})\b",
    re.IGNORECASE,
)
# What one was after, too, is often known by a question alone: "What did I want to know?"
_ASKS_FOR_A_QUESTION = re.compile(
    r"\b(?:ask(?:ed|ing)?|questions?|wonder(?:ed|ing)?|curious|unsure|request(?:ed)?)\b"
    r"|\b(?:did|was|were|had|have) (?:i|we|you|he|she|they|[a-z]+) (?:been )?"
    r"(?:want(?:ed|ing)?|think(?:ing)?|consider(?:ed|ing)?|debat(?:ed|ing)|look(?:ed|ing)?|trying"
    r"|deciding|plan(?:ned|ning)?)\b",
    re.IGNORECASE,
)


def telling(text: str) -> int:
    """Return how much a text tells of the one who says it: NOTHING, OWN or DONE."""
    best = NOTHING
    plain = text.replace("\u2019", "'")
    for sentence in _SENTENCE.split(plain):
        if sentence.rstrip(" \"')").endswith("?") or not _OWN.search(sentence):
            continue
        if _DONE.search(sentence):
            return DONE
        best = OWN
    return best


def only_asks(text: str) -> bool:
    """Return whether each sentence of a text is a question, so that it tells nothing."""
    if "?" not in text:
        return False
    return all(
        sentence.rstrip(" \"')").endswith("?")
        for sentence in _SENTENCE.split(text.strip())
        if sentence.strip()
    )


def wants_question(question: str) -> bool:
    """Return whether somebody asks for what was asked: "What did I ask about SQL?"."""
    return _ASKS_FOR_A_QUESTION.search(question) is not None


class Form(NamedTuple):
    """How much a text tells of its speaker, how long it is, and whether it asks."""

    telling: int
    chars: int
    asks: int


TELLING, CHARS, ASKS = range(len(Form._fields))
"""The columns of a table of forms."""


def form_of(text: str, *, is_turn: bool) -> Form:
    """Return the form of a text: few turns of a conversation tell of somebody.

    A memory always does, unless it is nothing but a question that somebody had.
    """
    tells = telling(text) if is_turn else NOTHING if only_asks(text) else DONE
    return Form(tells, len(text), int("?" in text))
