"""Names: one name read into its parts.

    "Dr. Smith, John Jr." ──▶ words john smith · title dr · generation jr

Case, accents, script (Cyrillic and Greek), punctuation and the order around a comma are folded
away. Numbers are set apart from words, because they must agree where words may differ a little.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from worlddb.language.fold import fold
from worlddb.language.words import folded
from worlddb.resolve.known import is_given
from worlddb.resolve.settings import TEXT_MAX
from worlddb.resolve.vocabulary import (
    ARTICLES,
    GENERATIONS,
    JOINERS,
    LEGAL_FORMS,
    ORDERING,
    OWNERS,
    ROMAN,
    ROMANIZED,
    SAME_TITLE,
    SHORT,
    SHORT_AFTER,
    SHORT_BEFORE,
    SPEAKERS,
    TITLES,
    VERBS,
)

_CACHE_MAX = 1 << 15
_L = "[^\\x00-@\\[-`{-\\x7f]"
_TOKEN = re.compile(
    rf"v?\d+(?:[.,:/]\d+)*(?:[a-z]{{1,2}})?(?!{_L}|\d)|\d+|{_L}+(?:'{_L}+)*'?[+#]*|[,@&]"
)
_NUMERAL = re.compile(r"(?=[IVXL])(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_INITIAL = re.compile(r"(?<!\w)\w\.\s*\w")
# A full stop after a short word may be that of an abbreviation: St. Mary's, Prof. Chen.
_SENTENCE_END = re.compile(r"\w{5}\.\s+\S|[!?](?:\s|$)|\n")


@dataclass(frozen=True, slots=True)
class Name:
    """The parts of a name. `words` are without titles, legal forms, generations and articles."""

    text: str
    key: str
    words: tuple[str, ...]
    numbers: tuple[str, ...]
    titles: frozenset[str]
    gender: str
    legal: str
    generation: str
    ordinal: str
    owner: str
    possessed: frozenset[str]
    ordered: bool
    sentence_words: int
    speaks: bool
    person: bool


@lru_cache(maxsize=_CACHE_MAX)
def read_name(text: str) -> Name:
    """Return the parts of a name."""
    plain = fold(text[:TEXT_MAX])
    if not plain.isascii():
        plain = plain.translate(ROMANIZED)
    tokens = _TOKEN.findall(plain)
    tokens = _turned(tokens) if "," in tokens else tokens
    tokens = [token for token in tokens if token not in ("&", "@", ",")]
    numbers: list[str] = []
    words: list[str] = []
    possessed: set[str] = set()
    for token in tokens:
        if token[0].isdigit() or (token[0] == "v" and token[1:2].isdigit()):
            numbers.append(token.removeprefix("v").replace(",", ""))
            continue
        if "'" in token:
            owned = token.endswith(("'s", "'"))
            token = token.replace("'", "")
            if owned:
                possessed.add(token)
        if token:
            words.append(token)
    return _assembled(text, words, tuple(sorted(numbers)), frozenset(possessed))


def _turned(tokens: list[str]) -> list[str]:
    """Return the tokens in speaking order if there is one comma, as in "Smith, John"."""
    at = tokens.index(",")
    before, after = tokens[:at], tokens[at + 1 :]
    around = {*LEGAL_FORMS, *GENERATIONS, *ROMAN}
    if "," in after or not before or not after or not around.isdisjoint(after):
        return tokens
    return [*after, *before]


def _assembled(
    text: str, words: list[str], numbers: tuple[str, ...], possessed: frozenset[str]
) -> Name:
    count = len(words) + len(numbers)
    rest, owner = _after_articles(words, dotted=text[1:2] == ".")
    rest, titles = _after_titles(rest)
    rest, generation, ordinal, legal = _before_suffixes(rest, text)
    rest = _in_full([word for word in rest if word not in JOINERS] or rest)
    genders = {TITLES[title] for title in titles} - {""}
    ends = (rest[0], rest[-1]) if rest else ()
    return Name(
        text=text,
        key=folded(text[:TEXT_MAX]),
        words=tuple(rest),
        numbers=numbers,
        titles=frozenset(SAME_TITLE.get(title, title) for title in titles),
        gender=genders.pop() if len(genders) == 1 else "",
        legal=legal,
        generation=generation,
        ordinal=ordinal,
        owner=owner,
        possessed=possessed,
        ordered=not ORDERING.isdisjoint(rest),
        sentence_words=count,
        speaks=_is_spoken(text, words),
        person=bool(titles) or any(map(is_given, ends)) or _has_initial(text, rest),
    )


def _has_initial(text: str, words: list[str]) -> bool:
    """Tell whether a letter with a full stop stands before other words, as in Lyndon B. Johnson."""
    return len(words) > 1 and _INITIAL.search(text) is not None


def _after_articles(words: list[str], *, dotted: bool) -> tuple[list[str], str]:
    owner = ""
    if len(words) > 1 and words[0] in OWNERS:
        owner = words[0]
        words = words[1:]
    elif len(words) > 1 and words[0] in ARTICLES and not dotted:
        words = words[1:]
    return words, owner


def _after_titles(words: list[str]) -> tuple[list[str], list[str]]:
    titles: list[str] = []
    while len(words) > 1 and words[0] in TITLES:
        titles.append(words[0])
        words = words[1:]
    return words, titles


def _before_suffixes(words: list[str], text: str) -> tuple[list[str], str, str, str]:
    """Return the words without generation, ordinal and legal form at the end, and these."""
    generation = ordinal = legal = ""
    for count in (3, 2):
        spelled = words[-count:]
        if len(words) > count and "".join(spelled) in LEGAL_FORMS and max(map(len, spelled)) == 1:
            words = [*words[:-count], "".join(spelled)]
    while len(words) > 1 and words[-1] in LEGAL_FORMS:
        legal = words[-1]
        words = words[:-1]
    if len(words) > 1 and words[-1] in GENERATIONS:
        generation = GENERATIONS[words[-1]]
        words = words[:-1]
    elif len(words) > 1 and (words[-1] in ROMAN or _is_numeral(text.split()[-1], text)):
        ordinal = words[-1]
        words = words[:-1]
    return words, generation, ordinal, legal


def _is_numeral(last: str, text: str) -> bool:
    return not text.isupper() and _NUMERAL.fullmatch(last) is not None


def _in_full(words: list[str]) -> list[str]:
    """Return the words with what is commonly written short in full: St. Paul, Main St."""
    last = len(words) - 1
    if last < 1:
        return words
    found = [SHORT.get(word, SHORT_BEFORE.get(word, word)) for word in words[:-1]]
    return [*found, SHORT.get(words[last], SHORT_AFTER.get(words[last], words[last]))]


def _is_spoken(text: str, words: list[str]) -> bool:
    """Tell whether a text of several words reads like something said."""
    if len(words) >= 3 and words[0] in SPEAKERS:
        return True
    if len(words) < 4:
        return False
    if len(words) >= 5 and _SENTENCE_END.search(text):
        return True
    return not VERBS.isdisjoint(text.split()[1:])
