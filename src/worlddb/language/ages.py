"""Ages: which questions ask how old somebody is, and which texts say it.

"How many years older is Grandma than I am?" shares no word with "I'm 32, so not too much sugar",
which answers half of it. English forms only; a text that says an age in passing counts as well.
"""

from __future__ import annotations

import re

DIGITS_MAX = 3

_ASKED = re.compile(
    r"\bhow old\b|\b(?:older|younger) (?:\w+ ){0,4}than\b|\byears? (?:older|younger)\b"
    r"|\bhow many years (?:will|would|am|was|were|is) (?:i|we|you|he|she|they)\b"
    r"|\b(?:my|your|his|her|our|their|whose|what|which|'s|average) ages?\b"
    r"|\bages? (?:of|do|did|am|is)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_BEING = (" i'm ", "he's ", " am ", " is ", " was ", " be ", " being ")
_SAYING = (" turn ", " turns ", " turned ", " turning ", " age ", " aged ", " ages ", " age of ")
_GOES_ON = re.compile(
    r"[,.;:!?)\u2014](?!\d)|\Z|\s+(?:and|but|so|now|this|next|in|today|when|years?\s+old)\b"
)
"""What comes after an age, and not after "I'm 5 minutes late"."""
_OLD = re.compile(r"[- ](?:years?|months?)[- ]old\b| years of age\b|(?:st|nd|rd|th) birthday\b")
_BORN = re.compile(r" born (?:in|on) (?:\w+ )?\d")
_DECADE = re.compile(
    r" in (?:my|your|his|her|our|their) (?:(?:early|mid|late)[- ])?"
    r"(?:[1-9]0s|teens|(?:twen|thir|for|fif|six|seven|eigh|nine)ties)\b"
)
_ROUND = re.compile(
    r" turn(?:s|ed|ing)? (?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)\b"
)


def asks_age(question: str) -> bool:
    """Return whether a question asks for somebody's age, or needs it."""
    return _ASKED.search(question) is not None


def says_age(text: str) -> bool:
    """Return whether a text says how old somebody is."""
    plain = f" {text}".replace("\u2019", "'").lower()
    if any(form.search(plain) for form in (_BORN, _DECADE, _ROUND)):
        return True
    return any(_is_age(plain, *number.span()) for number in _NUMBER.finditer(plain))


def _is_age(plain: str, first: int, last: int) -> bool:
    """Return whether a number is an age, by what stands around it."""
    if last - first > DIGITS_MAX:
        return False
    if _OLD.match(plain, last) or plain.endswith(_SAYING, 0, first):
        return True
    return plain.endswith(_BEING, 0, first) and _GOES_ON.match(plain, last) is not None
