"""Ages: which questions ask how old somebody is, and which texts say it.

"How many years older is Grandma than I am?" shares no word with "I'm 32, so not too much sugar",
which answers half of it. English forms only; a text that says an age in passing counts as well.
"""

from __future__ import annotations

import re

_ASKED = re.compile(
    r"\bhow old\b|\b(?:older|younger) (?:\w+ ){0,4}than\b|\byears? (?:older|younger)\b"
    r"|\bhow many years (?:will|would|am|was|were|is) (?:i|we|you|he|she|they)\b"
    r"|\b(?:my|your|his|her|our|their|whose|what|which|'s|average) ages?\b"
    r"|\bages? (?:of|do|did|am|is)\b",
    re.IGNORECASE,
)
_DECADE = r"[1-9]0s|teens|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties"
_ROUND = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_GOES_ON = r"[,.;:!?)\u2014](?!\d)|\Z|\s+(?:and|but|so|now|this|next|in|today|when|years?\s+old)\b"
"""What comes after an age, and not after "I'm 5 minutes late"."""
_SAID = re.compile(
    rf"\b(?:i'm|i am|i was|he's|she's|am|is|was|be|being)\s+\d{{1,2}}(?={_GOES_ON})"
    rf"|\b(?:turn|turns|turned|turning)\s+(?:\d{{1,2}}\b|(?:{_ROUND})\b)"
    r"|\b\d{1,3}[- ](?:years?|months?)[- ]old\b|\b\d{1,3} years of age\b|\bage[sd]? (?:of )?\d"
    r"|\b\d{1,2}(?:st|nd|rd|th) birthday\b|\bborn (?:in|on) (?:\w+ )?\d"
    rf"|\bin (?:my|your|his|her|our|their) (?:(?:early|mid|late)[- ])?(?:{_DECADE})\b",
    re.IGNORECASE,
)


def asks_age(question: str) -> bool:
    """Return whether a question asks for somebody's age, or needs it."""
    return _ASKED.search(question) is not None


def says_age(text: str) -> bool:
    """Return whether a text says how old somebody is."""
    return _SAID.search(text.replace("\u2019", "'")) is not None
