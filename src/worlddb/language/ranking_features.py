"""Ranking features: the form of a question and of a text, whatever their topic.

    spans_of("What did I buy last Friday?", asked_on, years) ──▶ days, with a tolerance
    speakers_of("What did you recommend?", "user")           ──▶ whose words are asked for
    asked_claims("Which company does Anna work for?")        ──▶ Anna, works at
    weights_of(["day", "ago", "run"], 0.2)                   ──▶ words that only frame count less
    telling("I just finished a run of five miles.")          ──▶ DONE: something worth asking for

The rules are a small grammar for English, on purpose. A date in a question ("three weeks ago", "May
2023", "the 3rd of June") is a hint about when something was said or happened, never a filter,
because people and rules are often wrong about dates. "How many days ago did I mention…" is frame:
it asks for a kind of answer, and would otherwise match every text that counts days. Of a text only
the form of its sentences is read: subject, tense, and question or not.

The *years* of a text are pairs of a first and a last year (`year_spans`).

    "editor from 1940 to 1960, and again in 1985"  ──▶  (1940, 1960), (1985, 1985)

A number of four digits from 1000 to 2099 is read as a year unless it is part of a longer number.
Two of them with a dash, "to", "and" or "until" between them are a span; "1998–present" has no end
and "1990-95" stays in its century. The years of a question are one span: "from March 1993 to May
1994". A number misread as a year costs little, since nothing is filtered by it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import cache, partial
from typing import NamedTuple

from worlddb.language.english.claim_values import (
    AGE,
    JOB_TITLE,
    LIVES_IN,
    WORKS_AT,
    favourite_of,
    thing_of,
)
from worlddb.language.english.prose import Patterns
from worlddb.language.text_tokens import MONTHS, NUMBERS, WEEKDAYS, words
from worlddb.language.word_forms import any_of, sections, words_of

_common = partial(words_of, "language", "common_words.txt")

_UNIT_DAYS = {"day": 1.0, "week": 7.0, "weekend": 7.0, "month": 30.4, "year": 365.25}
_VAGUE = frozenset({"few", "several"})
_BACK_MAX = 36_500  # days; nobody counts back more than a hundred years

_COUNT = rf"(\d{{1,4}}|{'|'.join(NUMBERS)})"
_UNIT = rf"({'|'.join(_UNIT_DAYS)})s?"
_AGO = re.compile(rf"\b(?:a\s+)?{_COUNT}\s+(?:of\s+)?{_UNIT}\s+ago\b", re.IGNORECASE)
_PAST = re.compile(
    rf"\b(?:past|last|previous)\s+(?:(?:a\s+)?{_COUNT}\s+(?:of\s+)?)?{_UNIT}\b", re.IGNORECASE
)
_LAST_DAY = re.compile(rf"\b(?:last|past|on)\s+({'|'.join(WEEKDAYS)})\b", re.IGNORECASE)
_YESTERDAY = re.compile(r"\byesterday\b", re.IGNORECASE)
_TODAY = re.compile(r"(?<!before )\btoday\b", re.IGNORECASE)
_IN_MONTH = re.compile(
    rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?({'|'.join(MONTHS)})\b"
    r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?\b(?!\d))?(?:,?\s+(\d{4}))?",
    re.IGNORECASE,
)
_IN_MAY = re.compile(r"\b(?:in|of|since|during|until)\s+may\b", re.IGNORECASE)
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")

FRAME = frozenset(token for word in _common("frame") for token in words(word))
_ME = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours"})
_YOU = frozenset({"you", "your", "yours", "yourself"})
_WORD = re.compile(r"[^\W\d_]+")
_ASKING = re.compile(r"\b(?:can|could|would|will)\s+you\b", re.IGNORECASE)

PREFERENCE_LIST = "preference_words.txt"
UNSPACED_FROM = 0x2E80  # the first sign of the scripts of China and Japan
NOTHING, OWN, DONE = 0, 1, 3
"""Nothing about the speaker; something; what the speaker did or experienced."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_OWN = re.compile(r"\b(?:i|me|my|mine|we|our|ours)\b", re.IGNORECASE)
_DONE = re.compile(
    r"\b(?:i|we)(?:'ve| have|'d| had)?"
    rf"(?: (?:{any_of(_common('before verbs'))}|ended up))*"
    rf" (?:[a-z]{{2,}}ed|{any_of(_common('past tense'))})\b",
    re.IGNORECASE,
)


class DaySpan(NamedTuple):
    """The days that are meant, first and last, and the tolerance around them.

    `is_relative` if they were counted back from the day of the question.
    """

    first: date
    last: date
    tolerance_days: float
    is_relative: bool = False


def spans_of(question: str, asked_on: date, years: Sequence[int]) -> list[DaySpan]:
    """Return the days in a question, relative to the day it is asked on.

    A month without a year may be that of any of `years`.
    """

    def back(days: float) -> date:
        # Not before the calendar begins, whatever number the text has.
        days = min(days, _BACK_MAX, asked_on.toordinal() - 1)
        return asked_on - timedelta(days=round(days))

    return [
        *(span._replace(is_relative=True) for span in _relative(question, asked_on, back)),
        *_absolute(question, years),
    ]


def _relative(question: str, asked_on: date, back: Callable[[float], date]) -> Iterator[DaySpan]:
    for match in _AGO.finditer(question):
        unit = _UNIT_DAYS[match[2].lower()]
        day = back(_number(match[1]) * unit)
        if match[1].lower() in _VAGUE:
            yield DaySpan(day, day, unit)
        else:
            yield DaySpan(day, day, max(1.0, unit * (0.43 if unit <= 7 else 0.35)))
    for match in _LAST_DAY.finditer(question):
        passed = (asked_on.weekday() - WEEKDAYS.index(match[1].lower()) - 1) % 7 + 1
        yield DaySpan(back(passed), back(passed), 1.0)
    if _YESTERDAY.search(question):
        yield DaySpan(back(1), back(1), 1.0)
    if _TODAY.search(question):
        yield DaySpan(asked_on, asked_on, 1.0)
    for match in _PAST.finditer(question):
        unit = _UNIT_DAYS[match[2].lower()]
        # "Last week" is used loosely: up to two weeks back.
        length = unit * (_number(match[1]) if match[1] else 2)
        yield DaySpan(back(length), asked_on, max(1.0, 0.15 * length))


def _absolute(question: str, years: Sequence[int]) -> Iterator[DaySpan]:
    for match in _ISO.finditer(question):
        yield from _day(int(match[1]), int(match[2]), int(match[3]))
    for match in _IN_MONTH.finditer(question):
        month = MONTHS.index(match[2].lower()) + 1
        day = match[1] or match[3]
        if month == 5 and not day and not match[4] and not _IN_MAY.search(question):
            continue  # "May I …"
        for year in [int(match[4])] if match[4] else years:
            if day:
                yield from _day(year, month, int(day))
            elif 1 <= year < 9999:
                end = date(year + month // 12, month % 12 + 1, 1)
                # Events at the end of a month are often reported at the beginning of the next.
                yield DaySpan(date(year, month, 1), end + timedelta(days=2), 4.0)


def _day(year: int, month: int, day: int) -> Iterator[DaySpan]:
    try:
        found = date(year, month, day)
        yield DaySpan(found, found + timedelta(days=3), 2.0)
    except (ValueError, OverflowError):
        return  # No such day: the numbers mean something else.


def _number(text: str) -> int:
    return int(text) if text.isdigit() else NUMBERS[text.lower()]


def weights_of(asked: list[str], frame_weight: float) -> dict[str, float]:
    """Return the weight of each word of a question.

    A word that only frames the question counts `frame_weight`, if there is any other word.
    """
    topic = [word for word in asked if word not in FRAME]
    frame = frame_weight if topic else 1.0
    return {word: frame if word in FRAME else 1.0 for word in asked}


def speakers_of(question: str, asker: str) -> tuple[frozenset[str], str | None]:
    """Return the names in a question, and whether it is about the asker or the others.

    The second value is `asker` for "what did I say", and for a question about neither, since most
    memories are about the asker; `"not " + asker` for "what did you say"; None for both. "Can you
    suggest…" asks for advice, which rests on the asker's own words; the "you" of "Can you list what
    I …" is only polite.
    """
    said = frozenset(word.casefold() for word in _WORD.findall(question))
    if wants_advice(question):
        return said, asker
    about = {word.casefold() for word in _WORD.findall(_ASKING.sub(" ", question))}
    me, you = not about.isdisjoint(_ME), not about.isdisjoint(_YOU)
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
    """Return the words of a question as written, each with its weight.

    `rarity` gives the rarity of a word as written. Rare words weigh more, but a `rarity_power`
    below 1 keeps one strange word from outweighing the others.
    """
    weights = weights_of(words(question), frame_weight)
    parts = []
    for part in question.split():
        tokens = words(part)
        rare = rarity(part) / rarity_max
        frame = min((weights[token] for token in tokens if token in weights), default=1.0)
        parts.append((part, frame * rare**rarity_power))
    return parts


def written_rarity(
    said: str, languages: Iterable[str], rarity: Callable[[str], float], top: float
) -> float:
    """Return the rarity of a word as written: the rarity of its rarest token.

    A token is as rare as its most frequent form; a token that no text has is the rarest (`top`).
    """
    forms = zip(words(said), *(words(said, code) for code in languages), strict=True)
    return max((min((rarity(it) or top) for it in group) for group in forms), default=0.0)


def telling(text: str) -> int:
    """Return how much a text says about its speaker: NOTHING, OWN or DONE."""
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
    """Return whether every sentence of a text is a question."""
    if "?" not in text:
        return False
    return all(
        sentence.rstrip(" \"')").endswith("?")
        for sentence in _SENTENCE.split(text.strip())
        if sentence.strip()
    )


def wants_advice(question: str) -> bool:
    """Return whether a question asks for advice or a task, not for facts."""
    plain = plain_text(question)
    return bool(phrase_pattern("asks").search(plain)) and not phrase_pattern("recalls").search(
        plain
    )


def plain_text(text: str) -> str:
    """Return a text in lower case, with straight apostrophes."""
    return text.replace("\u2019", "'").lower()


@cache
def phrase_pattern(part: str) -> re.Pattern[str]:
    """Return the pattern of one part of `preference_words.txt` in all languages.

    Phrases of letters match whole words; those of scripts without spaces match anywhere.
    """
    found = sections("language", PREFERENCE_LIST)
    rows = [row for name, rows in found.items() if name.endswith(f" {part}") for row in rows]
    phrases = frozenset(phrase for row in rows for phrase in row)
    unspaced = frozenset(phrase for phrase in phrases if ord(phrase[-1]) >= UNSPACED_FROM)
    return re.compile(rf"\b(?:{any_of(phrases - unspaced)})\b|{any_of(unspaced)}")


class Form(NamedTuple):
    """How much a text says about its speaker, its length, and whether it asks.

    `asks` is 0, SOMETHING if one of its sentences is a question, ONLY if all of them are.
    """

    telling: int
    chars: int
    asks: int


TELLING, CHARS, ASKS = range(len(Form._fields))
"""The columns of a table of forms."""
SOMETHING, ONLY = 1, 2


def form_of(text: str, *, is_turn: bool) -> Form:
    """Return the form of a text; few turns of a conversation are about a person.

    A memory always is, unless it is only a question.
    """
    asks = (ONLY if only_asks(text) else SOMETHING) if "?" in text else 0
    tells = telling(text) if is_turn else NOTHING if asks == ONLY else DONE
    return Form(tells, len(text), asks)


NO_END = 9999  # of a span that goes on

_YEAR = r"(?:1\d|20)\d\d"
_NOW = "present|today|now"
# The character before a year is checked afterwards: a search that begins with digits is fast.
_SPAN = re.compile(
    rf"({_YEAR})(?<![\d.,]\d{{4}})(?!\d|[.,]\d)"
    rf"(?:\s?[-–—]\s?({_YEAR}|\d\d|{_NOW})(?![\w-])"
    r"|\s(?:to|and|until|till|through)\s(?:[a-z]{3,9}\.?\s)?(?:\d\d?\s?,\s?)?"
    rf"({_YEAR}|{_NOW})(?!\w))?",
    re.IGNORECASE,
)


def year_spans(text: str) -> list[tuple[int, int]]:
    """Return the years and spans of years in a text, in order."""
    spans: list[tuple[int, int]] = []
    for match in _SPAN.finditer(text):
        first, end = int(match[1]), match[2] or match[3]
        last = first
        if end is not None:
            century = first // 100 * 100 if len(end) < len(match[1]) else 0
            last = NO_END if end.isalpha() else century + int(end)
        spans.append((first, last) if last >= first else (first, first))
    return spans


class DatedTexts:
    """The years in numbered texts, read in the order of their numbers."""

    def __init__(self) -> None:
        self.read = 0
        self.spans = array("q")
        """For each span the number of its text, the first year and the last."""

    def add(self, texts: Iterable[str]) -> None:
        """Read the next texts."""
        for text in texts:
            for span in year_spans(text):
                self.spans.extend((self.read, *span))
            self.read += 1


def asked_years(question: str) -> tuple[int, int] | None:
    """Return the span over all years in a question; None if it has none."""
    spans = year_spans(question)
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


_QUESTIONS = Patterns("claim_questions")
BOSSES = ("manager", "boss", "supervisor")
"""Words for one's superior; a question for one of them means any of them."""
SAME_KIND = dict.fromkeys(("film", "movie"), ("film", "movie"))
ASKED_CHARS_MAX = 200  # a longer question asks for more than one value
_ASKED_FOR: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((f"LIVES_{name}", (LIVES_IN,)) for name in ("WHERE", "WHICH", "HOME", "IN", "TOWN", "SAID")),
    ("REPORTS", BOSSES),
    *((f"WORKS_{name}", (WORKS_AT,)) for name in ("SAID", "WHERE", "WHICH", "FOR", "EMPLOYS")),
    ("EMPLOYER", (WORKS_AT, "employer")),
    ("DOES_WHAT", (JOB_TITLE, WORKS_AT)),
    ("AGE_HOW", (AGE,)),
    ("AGE_WHAT", (AGE,)),
)


class AskedClaim(NamedTuple):
    """The owner (empty: the asker) and the relations of the claim that a question asks for."""

    owner: str
    relations: tuple[str, ...]


def asked_claims(question: str) -> list[AskedClaim]:
    """Return the claims that a question asks for; none for most questions.

    A question asks for the claim that holds, however that was worded ("I moved to Paris"). One with
    a further condition ("Where do I live in summer?") asks for something else.
    """
    if len(question) > ASKED_CHARS_MAX:
        return []
    return list(dict.fromkeys(_asked(question)))


def _asked(question: str) -> Iterator[AskedClaim]:
    for name, relations in _ASKED_FOR:
        if match := getattr(_QUESTIONS, name).search(question):
            yield AskedClaim(_owner(match), relations)
    if match := _QUESTIONS.FAVOURITE.search(question):
        kinds = SAME_KIND.get(match["kind"].lower(), (match["kind"],))
        yield AskedClaim(_owner(match), tuple(map(favourite_of, kinds)))
    if match := _QUESTIONS.THING.search(question):
        relation = thing_of(match["thing"]).relation
        more: tuple[str, ...] = (WORKS_AT,) if relation == JOB_TITLE else ()
        if relation in BOSSES:
            more = tuple(word for word in BOSSES if word != relation)
        yield AskedClaim(_owner(match), (relation, *more))


def _owner(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return groups.get("who") or groups.get("whose") or ""
