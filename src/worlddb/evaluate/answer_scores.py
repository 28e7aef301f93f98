"""Scoring: how near an answer is to the reference, without a judge.

    exact   the same words, articles and punctuation aside
    f1      of the words they share (the harmonic mean of precision and recall)
    match   a verdict: every number and date of the reference is in the answer, and most of its
            other words; where the reference says that nothing is known, the answer says so

Numbers may be words ("three"), dates may be written in any usual way. A reference that names what
else it takes ("7 days. 8 days (including the last day) is also acceptable.") is met by either. It
is strict: who says the right thing in other words is not matched, so it stays below what a judge
finds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

SHARE_OF_WORDS = 0.6  # More than half: a short answer may leave out one word of three.
ABOUT = 0.1  # How far off a number may be where the reference is vague.
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = {name[:length]: n for n, name in enumerate(_MONTHS, 1) for length in (3, 4, len(name))}
_UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen", "twenty"),
)
_NUMBER = {name: number for number, name in enumerate(_UNITS)} | {
    "once": 1,
    "twice": 2,
    **dict(zip(("thirty", "forty", "fifty", "sixty"), range(30, 70, 10), strict=True)),
}
_SMALL = frozenset(
    (
        *("a", "an", "the", "of", "in", "on", "at", "to", "for", "with", "by", "from", "as"),
        *("and", "or", "is", "was", "were", "are", "be", "been", "it", "its", "about", "around"),
        *("this", "that", "these", "those", "i", "you", "he", "she", "they", "we", "my", "your"),
        *("his", "her", "their", "our"),
    )
)
_REFUSAL = re.compile(
    r"(?:(?:do(?:es)?|did|can|could|is|was|were|are|have|has)(?: not|n['’]t|not)|can['’]t) "
    r"(?:\w+ ){0,3}?(?:know|mention|enough|tell|say|sure|available|provide|specif|inform|recall)"
    r"|not (?:\w+ )?(?:mentioned|enough|available|known|specified|provided|stated)"
    r"|no (?:\w+ )?(?:information|mention|record|memory)|unknown|insufficient|never mentioned",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"\b(?:about|around|roughly|approximately|approx|nearly|almost|circa)\b|~", re.I
)
_NAME = rf"(?P<n>{'|'.join(sorted(_MONTH, key=len, reverse=True))})"
_DAY = r"(?P<d>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?:,? (?P<y>\d{4}))?"
_DATES = (
    re.compile(r"(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})"),
    re.compile(rf"\b{_NAME}\.? {_DAY}\b{_YEAR}"),
    re.compile(rf"\b{_DAY}(?: of)? {_NAME}\b\.?{_YEAR}"),
)
_ALSO = re.compile(
    r"(?P<first>.+?)[.;,]\s+(?P<other>\S.*?)\s+(?:is|are|would be)\s+also\s+"
    r"(?:acceptable|accepted|correct|fine|right|valid)\W*",
    re.IGNORECASE | re.DOTALL,
)
_OR = re.compile(r"(?P<first>.+?)\s*\(or (?P<other>[^()]+)\)\W*", re.IGNORECASE | re.DOTALL)
_ASIDE = re.compile(r"\s*\([^()]*\)")
_RANGE = re.compile(
    r".*?\b(?:from|between) (?P<low>\d{1,4})(?: \w+)? (?:to|and) (?P<high>\d{1,4})(?P<unit> \w+)?",
    re.IGNORECASE | re.DOTALL,
)
NAMED_CHARS_MAX = 1_000
"""A longer reference explains, and is not looked through for what else it takes."""
RANGE_MAX = 100  # A range of more whole numbers than this is not spelled out.
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?")

Date = tuple[int | None, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How near an answer is; `numeric` is None where the reference has no number and no date."""

    exact: float
    f1: float
    numeric: float | None
    match: float

    def to_dict(self) -> dict[str, float | None]:
        """Return the score as plain data."""
        return asdict(self)


def is_refusal(text: str) -> bool:
    """Return whether a text says that something is not known."""
    return _REFUSAL.search(" ".join(text.split())) is not None


def score(answer: str, reference: str) -> Score:
    """Return how near an answer is to the reference, or to the nearest of what that takes."""
    scores = [_score(answer, one) for one in (reference, *alternatives_in(reference))]
    numeric = [one.numeric for one in scores if one.numeric is not None]
    return Score(
        exact=max(one.exact for one in scores),
        f1=max(one.f1 for one in scores),
        numeric=max(numeric, default=None),
        match=max(one.match for one in scores),
    )


def alternatives_in(reference: str) -> list[str]:
    """Return the answers that a reference takes, if it names several.

    7 days. 8 days (including the last day) is also acceptable. ──▶ 7 days; 8 days
    """
    found = None
    if len(reference) <= NAMED_CHARS_MAX:
        found = _ALSO.fullmatch(reference) or _OR.fullmatch(reference)
    if found is None:
        return []
    first, other = (_ASIDE.sub("", found[name]).strip() for name in ("first", "other"))
    within = _RANGE.fullmatch(other)
    if within is not None and 0 < int(within["high"]) - int(within["low"]) <= RANGE_MAX:
        numbers = range(int(within["low"]), int(within["high"]) + 1)
        return [first, *(f"{number}{within['unit'] or ''}" for number in numbers)]
    return [first, other]


def _score(answer: str, reference: str) -> Score:
    says, wanted = _Read(answer), _Read(reference)
    exact = float(says.words == wanted.words and says.values() == wanted.values())
    f1 = _f1([*says.words, *says.values()], [*wanted.words, *wanted.values()])
    if is_refusal(reference):
        return Score(exact=exact, f1=f1, numeric=None, match=float(is_refusal(answer)))
    numeric = _numeric(says, wanted)
    match = float(
        not (is_refusal(answer) and not exact)
        and numeric in (None, 1.0)
        and (_share(wanted.words, says.words) >= SHARE_OF_WORDS if wanted.words else True)
        and bool(wanted.words or numeric is not None)
    )
    return Score(exact=exact, f1=f1, numeric=numeric, match=match)


class _Read:
    """A text as its dates, its numbers and its other words."""

    def __init__(self, text: str) -> None:
        text = text.casefold().replace("’", "'")
        self.is_vague = _VAGUE.search(text) is not None
        self.dates: list[Date] = []
        for pattern in _DATES:
            text = pattern.sub(self._date, text)
        self.numbers: list[float] = []
        self.words: list[str] = []
        for token in _TOKEN.findall(text):
            if token[0].isdigit():
                self.numbers.append(_number(token))
            elif token in _NUMBER:
                self.numbers.append(float(_NUMBER[token]))
            elif (word := token.removesuffix("'s")) not in _SMALL:
                self.words.append(_singular(word))

    def values(self) -> list[str]:
        """Return dates and numbers as words of their own."""
        dates = [f"{month}/{day}" for _, month, day in self.dates]
        return sorted([*dates, *(f"{number:g}" for number in self.numbers)])

    def _date(self, found: re.Match[str]) -> str:
        parts = found.groupdict()
        month = _MONTH[parts["n"]] if parts.get("n") else int(parts["m"])
        year = int(parts["y"]) if parts.get("y") else None
        self.dates.append((year, month, int(parts["d"])))
        return " "


def _number(token: str) -> float:
    whole, point, rest = token.replace(",", "").partition(".")
    return float(f"{whole}{point}{rest.replace('.', '')}")


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _numeric(says: _Read, wanted: _Read) -> float | None:
    """Return whether every number and date that is wanted is said."""
    if not wanted.numbers and not wanted.dates:
        return None
    near = ABOUT if wanted.is_vague else 1e-9
    numbers = all(
        any(abs(said - number) <= near * max(abs(number), 1.0) for said in says.numbers)
        for number in wanted.numbers
    )
    dates = all(any(_same_day(said, date) for said in says.dates) for date in wanted.dates)
    return float(numbers and dates)


def _same_day(one: Date, other: Date) -> bool:
    years = {one[0], other[0]} - {None}
    return one[1:] == other[1:] and len(years) <= 1


def _share(wanted: Sequence[str], says: Sequence[str]) -> float:
    """Return the share of the wanted words that are said."""
    return (Counter(wanted) & Counter(says)).total() / len(wanted)


def _f1(says: Sequence[str], wanted: Sequence[str]) -> float:
    if not says or not wanted:
        return float(not says and not wanted)
    common = (Counter(says) & Counter(wanted)).total()
    return 2 * common / (len(says) + len(wanted))
