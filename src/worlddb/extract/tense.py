"""Tense: whether the sentence around a date tells of the past or of what is to come."""

from __future__ import annotations

import re

PAST = "past"
FUTURE = "future"

_PAST = re.compile(
    r"\b(?:was|were|wasn't|weren't|did|didn't|had|went|got|saw|met|came|took|made|bought|ate|gave"
    r"|told|said|found|left|lost|won|began|became|brought|built|caught|chose|drove|fell|felt|flew"
    r"|forgot|grew|heard|held|kept|knew|led|paid|ran|rode|sang|sat|sent|slept|sold|spent|spoke"
    r"|stood|swam|taught|thought|threw|understood|woke|wore|wrote|broke|drank|hung|hit"
    r"|(?!(?:need|feed|speed|seed|bed|red|wed|shed|sled|bleed|breed|indeed|hundred|sacred|naked)\b)"
    r"[a-z]{2,}ed)\b"
)
# What looks like a past verb and describes a state: "I'm excited", "get married".
_STATE = re.compile(
    r"(?:\b(?:am|is|are|be|being|get|gets|getting|so|very|really|feel|feeling|all)|['’](?:m|re|s))"
    r"\s+(?:(?:so|very|really|super|all|pretty|quite|too|not|just)\s+){0,2}[a-z]+ed\b"
)
_FUTURE = re.compile(
    r"\b(?:will|won't|shall|gonna|going to|plan(?:s|ning)? (?:to|on|for)|upcoming|tomorrow|soon"
    r"|can't wait|looking forward|see you|let's|hop(?:e|es|ing) to|want(?:s)? to|about to|scheduled"
    r"|thinking|planning|hoping|considering|wondering|supposed to|have to|need(?:s)? to"
    r"|starts|begins|leaves|coming up"
    r"|(?:am|is|are) (?!being\b)[a-z]+ing)\b"
    r"|['’](?:ll|m [a-z]+ing|re [a-z]+ing|s [a-z]+ing)\b"
)
_REPEATED = re.compile(
    r"\b(?:every|each|usually|always|often|normally|annual(?:ly)?|yearly|weekly|birthday|birthdays"
    r"|anniversary|if|typically|generally|traditionally)\b"
)
_ENDS = ".!?\n\x00"
SENTENCE_MAX = 400


def tense_around(low: str, start: int, end: int) -> str | None:
    """Return the tense of the sentence around a date in a text in lower case; None in doubt.

    What happens again and again, or on a condition, has no tense here: it names no one day.
    """
    first = max(low.rfind(mark, max(0, start - SENTENCE_MAX), start) for mark in _ENDS) + 1
    marks = (low.find(mark, end, end + SENTENCE_MAX) for mark in _ENDS)
    last = min((mark for mark in marks if mark >= 0), default=min(len(low), end + SENTENCE_MAX))
    sentence = low[max(first, start - SENTENCE_MAX) : last]
    if _REPEATED.search(sentence) is not None:
        return None
    future = _FUTURE.search(sentence) is not None
    past = _PAST.search(_STATE.sub(" ", sentence)) is not None
    if past == future:
        return None
    return PAST if past else FUTURE
