"""Ages: which questions ask how old somebody is, and which texts say it.

"How many years older is Grandma than I am?" shares no word with "I'm 32, so not too much sugar",
which answers half of it. English forms only. "Tom is 9" says an age and "the code is 9" does not:
what is 9 has to be a name, a pronoun or somebody's relative.
"""

from __future__ import annotations

import re

AGE_MAX = 120

_ASKED = re.compile(
    r"\bhow old\b(?!-)|\bwho(?:'s| is| was) (?:the )?(?:older|younger|oldest|youngest)\b"
    r"|\b(?:older|younger) (?:\w+ ){0,4}than (?!\d|an?\b)|\byears? (?:older|younger)\b"
    r"|\bhow many years (?:will|would) (?:i|we|you|he|she|they) be\b"
    r"|(?:\b(?:my|your|his|her|our|their|whose|what|which|average)|'s?) ages?\b(?! of [a-z]+s\b)"
    r"|\bages? (?:of (?:my|your|his|her|our|their|me)|do|did|am)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+")
_BEING = ("'m ", "'s ", "'re ", " am ", " is ", " was ", " are ", " were ", "'ll be ", " will be ")
_SAYING = (" turns ", " turned ", " turning ", "i turn ", " age ", " aged ", " ages ", " age of ")
_SOMEBODY = """
i we he she they who aunt babies baby boy boyfriend brother cat child children cousin dad daughter
dog father friend girl girlfriend granddaughter grandfather grandma grandmother grandpa grandson
husband kid kids mom mother mum nephew niece parents partner puppy sister son toddler twins uncle
wife
"""
_PEOPLE = frozenset(_SOMEBODY.split())
_NOBODY = frozenset({"it", "that", "this", "there", "these", "those", "what", "which"})
_GOES_ON = re.compile(
    r"[,.;:!?)\u2014](?!\d)|\Z"
    r"|\s+(?:and|but|so|now|this|next|in|today|when|while|with|years?\s+old)\b",
    re.IGNORECASE,
)
"""What comes after an age, and not after "I'm 5 minutes late"."""
_OLD = re.compile(
    r"[- ](?:years?|months?)[- ]old\b| years of age\b|(?:st|nd|rd|th) birthday\b|\s?y/?o\b",
    re.IGNORECASE,
)
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
    return _ASKED.search(question.replace("\u2019", "'")) is not None


def says_age(text: str) -> bool:
    """Return whether a text says how old somebody is."""
    said = f" {text}".replace("\u2019", "'")
    plain = said.lower()
    if any(form.search(plain) for form in (_BORN, _DECADE, _ROUND)):
        return True
    return any(_is_age(said, *number.span()) for number in _NUMBER.finditer(said))


def _is_age(said: str, first: int, last: int) -> bool:
    """Return whether a number is an age, by what stands around it."""
    if last - first > len(str(AGE_MAX)) or int(said[first:last]) > AGE_MAX:
        return False
    if _OLD.match(said, last):
        return True
    before = said[max(0, first - 40) : first]
    if before.lower().endswith(_SAYING):
        return True
    if not before.endswith(_BEING) or not _GOES_ON.match(said, last):
        return False
    being = next(filter(before.endswith, _BEING))
    who = before.removesuffix(being).rpartition(" ")[2]
    return who.lower() in _PEOPLE or (who[:1].isupper() and who.lower() not in _NOBODY)
