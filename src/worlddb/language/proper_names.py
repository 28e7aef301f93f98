"""Proper names: their sounds, the known ones, and the parts of a single name.

    spoken("phillip") == spoken("filip")        sound_code("smith") == sound_code("smyth") == "s53"
    is_nickname("bob", "robert")                are_two("mario", "maria")
    read_name("Dr. Smith, John Jr.") ──▶ words john smith · title dr · generation jr

The word lists are files beside this module. `known_names.txt` has common personal names: two
*different* ones are two people, however similar; two spellings, or a name and its nickname, are one
name. `place_names.txt` has towns, states and countries. `name_words.txt` has small words in names
with a meaning of their own.

`name_key` and `first_name` are the keys by which a question finds a node. Names and questions are
split into words the same way, so "Dr. Smith's" names Dr. Smith, and "McDonald's" itself. People are
also found by their first name alone.

A name is compared without case, accents, script (Cyrillic and Greek), punctuation and the order
around a comma. Numbers are kept apart from words: they must be equal, while words may differ a
little.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from worlddb.language.text_tokens import folded
from worlddb.language.word_forms import fold, sections, words_of

TEXT_MAX = 400  # characters read; a longer text is not a name
CODE_DIGITS_MAX = 4
_CACHE_MAX = 1 << 15  # names cached: enough for a large text

_FIRST = ("kn", "n"), ("wr", "r"), ("gn", "n"), ("ps", "s"), ("pn", "n"), ("wh", "w"), ("mac", "mc")
# In order: later rules see the result of earlier ones. "ç" stands for ch while c is read.
_REWRITES = (
    ("tsch", "ç"), ("tch", "ç"), ("sch", "sh"), ("ch", "ç"), ("ph", "f"), ("ck", "k"),
    ("dge", "j"), ("dj", "j"), ("zh", "j"), ("ght", "t"), ("th", "t"), ("kh", "k"), ("gh", "g"),
    ("ce", "se"), ("ci", "si"), ("cy", "si"), ("qu", "kw"), ("q", "k"), ("c", "k"), ("x", "ks"),
    ("ou", "u"), ("oo", "u"), ("ee", "i"), ("ea", "i"), ("ie", "i"), ("ei", "i"), ("ey", "i"),
    ("ay", "ei"), ("y", "i"), ("z", "s"), ("ae", "a"), ("oe", "o"), ("ue", "u"), ("w", "v"),
)  # fmt: skip
_DOUBLED = re.compile(r"(.)\1+")
_PLAIN = re.compile("[a-z]+")
_DIGITS = str.maketrans("bpfvgjkszçdtlmnraeiou", "111122222233455600000", "h")


@lru_cache(maxsize=_CACHE_MAX)
def spoken(word: str) -> str:
    """Return a word of a-z respelled by its sound; any other word unchanged."""
    if not _PLAIN.fullmatch(word):
        return word
    for written, said in _FIRST:
        if word.startswith(written):
            word = said + word.removeprefix(written)
            break
    for written, said in _REWRITES:
        if written in word:
            word = word.replace(written, said)
    word = _DOUBLED.sub(r"\1", word)
    if len(word) > 2:
        word = word.rstrip("h")
        word = word.removesuffix("e") if len(word) > 3 else word
    return word


@lru_cache(maxsize=_CACHE_MAX)
def sound_code(word: str) -> str:
    """Return the sound key of a word: Smith and Smyth are both s53."""
    said = spoken(word)
    if not _PLAIN.fullmatch(word) or not said:
        return word
    first = "a" if said[0] in "aeiou" else "j" if said[:2] in ("ge", "gi") else said[0]
    digits = _DOUBLED.sub(r"\1", said.translate(_DIGITS))
    if digits and digits[0] == said[0].translate(_DIGITS):
        digits = digits[1:]
    return first + digits.replace("0", "")[:CODE_DIGITS_MAX]


class Known(NamedTuple):
    """The name tables; all words are in lower case and without accents.

    `given` names and all `words` of names are for comparisons; `told` are the given names that mark
    a person in a text, of which the `doubtful` are ordinary words or places as well.
    """

    given: frozenset[str]
    words: frozenset[str]
    told: frozenset[str]
    doubtful: frozenset[str]
    nicknames: dict[str, frozenset[str]]
    sounds: dict[str, frozenset[str]]
    variants: dict[str, frozenset[str]]
    distinct: dict[str, frozenset[str]]


@cache
def known() -> Known:
    """Return the name tables."""
    rows = {
        name: [[word.rstrip(":") for word in row] for row in found]
        for name, found in sections("language", "known_names.txt").items()
    }

    def words(*names: str) -> frozenset[str]:
        return frozenset(word for name in names for row in rows[name] for word in row)

    formal: dict[str, set[str]] = defaultdict(set)
    for name, *short in rows["nicknames"]:
        for nickname in short:
            formal[nickname].add(name)
    spelled: dict[str, set[str]] = defaultdict(set)
    for nickname, names in formal.items():
        spelled[spoken(nickname)] |= names
    given = words("nicknames", "variants", "given")
    return Known(
        given=given,
        words=given | words("surnames", "surname variants"),
        told=given | words("uncompared"),
        doubtful=words("words too"),
        nicknames={name: frozenset(names) for name, names in formal.items()},
        sounds={sound: frozenset(names) for sound, names in spelled.items()},
        variants=_groups(rows["variants"] + rows["surname variants"]),
        distinct=_groups(rows["distinct"]),
    )


def _groups(rows: list[list[str]]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        for word in row:
            found[word].update(row)
    return {word: frozenset(words) for word, words in found.items()}


@lru_cache(maxsize=_CACHE_MAX)
def formal_names(word: str) -> frozenset[str]:
    """Return the given names that `word` is short for: Alex is Alexander and Alexandra."""
    tables = known()
    names = tables.nicknames.get(word)
    if names is None and word not in tables.words:
        names = tables.sounds.get(spoken(word))  # a spelling we do not list: Lizzy
    return names or frozenset()


def is_given(word: str) -> bool:
    """Return whether many people have `word` as a given name."""
    return word in known().given


def is_name(word: str) -> bool:
    """Return whether many people have `word` as a given name or a surname."""
    return word in known().words


def is_variant(one: str, other: str) -> bool:
    """Return whether both are spellings of one name."""
    return other in known().variants.get(one, ())


def is_nickname(one: str, other: str) -> bool:
    """Return whether one is a short form of the other, or of a spelling of it."""
    ones, others = formal_names(one), formal_names(other)
    if not ones and not others:
        return False
    if other in ones or one in others:
        return True
    spelled = known().variants
    return not (ones.isdisjoint(spelled.get(other, ())) and others.isdisjoint(spelled.get(one, ())))


def are_cousins(one: str, other: str) -> bool:
    """Return whether both are short forms of one name: Bill and Will."""
    return not formal_names(one).isdisjoint(formal_names(other))


def are_two(one: str, other: str) -> bool:
    """Return whether two words are known to name two different people or things."""
    if one == other:
        return False
    tables = known()
    if other in tables.distinct.get(one, ()):
        return True
    if one not in tables.words or other not in tables.words:
        return False
    return not is_variant(one, other) and not is_nickname(one, other)


def places_of(section: str) -> frozenset[str]:
    """Return the places of a section of the list of places, in lower case."""
    return words_of("language", "place_names.txt", section)


_WIDE = places_of("states") | places_of("countries") | places_of("continents")
_WIDE_NAMES = frozenset(name for name in _WIDE if " " not in name)
PLACE_NAMES = places_of("names") | (_WIDE_NAMES - places_of("words too"))
"""One-word places known in every context."""
TOWNS = PLACE_NAMES | places_of("towns")
"""Places that can be a home; their names may be words or given names as well (Nice, Florence)."""


def _listed(section: str) -> frozenset[str]:
    return words_of("language", "name_words.txt", section)


def _mapped(section: str) -> dict[str, str]:
    """Return a section of rows: each further word of a row → its first word."""
    rows = sections("language", "name_words.txt")[section]
    return {word: first for first, *words in rows for word in words}


TITLES = _mapped("titles of a gender") | dict.fromkeys(_listed("titles"), "")
"""Title → its gender, "m" or "f", if it has one."""
PLAIN_TITLES = _listed("plain titles")
SAME_TITLE = _mapped("same titles")
ALSO_WORDS = _listed("also words")
LEGAL_FORMS = _listed("legal forms")
GENERATIONS = _mapped("generations")
ROMAN = _listed("roman numerals")
SHORT_BEFORE = _mapped("short before")
SHORT_AFTER = _mapped("short after")
SHORT = _mapped("short")
OWNERS = _listed("owners")
ARTICLES = _listed("articles")
JOINERS = _listed("joiners")
ORDERING = _listed("ordering")
MARKS = _listed("marks")
NEGATING = _listed("negating")
OPPOSED = sections("language", "name_words.txt")["opposed"]
VERBS = _listed("verbs")
SPEAKERS = _listed("speakers")

ROMANIZED = str.maketrans(_mapped("romanized") | {"ъ": "", "ь": ""})

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
    has_initial = len(rest) > 1 and _INITIAL.search(text) is not None  # Lyndon B. Johnson
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
        person=bool(titles) or any(map(is_given, ends)) or has_initial,
    )


def _after_articles(words: list[str], *, dotted: bool) -> tuple[list[str], str]:
    if len(words) > 1 and words[0] in OWNERS:
        return words[1:], words[0]
    if len(words) > 1 and words[0] in ARTICLES and not dotted:
        return words[1:], ""
    return words, ""


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
    elif len(words) > 1 and (
        words[-1] in ROMAN or (not text.isupper() and _NUMERAL.fullmatch(text.split()[-1]))
    ):
        ordinal = words[-1]
        words = words[:-1]
    return words, generation, ordinal, legal


def _in_full(words: list[str]) -> list[str]:
    """Return the words with common abbreviations expanded: St. Paul, Main St."""
    last = len(words) - 1
    if last < 1:
        return words
    found = [SHORT.get(word, SHORT_BEFORE.get(word, word)) for word in words[:-1]]
    return [*found, SHORT.get(words[last], SHORT_AFTER.get(words[last], words[last]))]


def _is_spoken(text: str, words: list[str]) -> bool:
    """Return whether a text of several words reads like speech."""
    if len(words) >= 3 and words[0] in SPEAKERS:
        return True
    if len(words) < 4:
        return False
    if len(words) >= 5 and _SENTENCE_END.search(text):
        return True
    return not VERBS.isdisjoint(text.split()[1:])


# -- names in questions --

NAME_WORDS_MAX = 6  # words of a question that are looked up as one name
SAID_NAME_CHARS_MAX = 80  # a longer name is not said in a question
FULL_NAME_WORDS_MAX = 4  # a longer name is hardly that of a person
LETTERS_PER_SLIP = 5  # "Anna" and "Hanna" are two names; "Sara Chen" is Sarah Chen misspelled
FIRST_NAMED = frozenset({"Entity", "Person"})

_SAID_WORD = re.compile(r"[^\W_](?:[\w.'’&+#-]*[\w+#])?")
_POSSESSIVE = re.compile(r"['’]s$", re.IGNORECASE)
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
_SENTENCE_GAP = re.compile(r"[.!?:;\n\"“”(]")


def said_words(text: str) -> list[str]:
    """Return the words of a name or a question, without surrounding punctuation and "'s"."""
    if text.isascii() and text.replace(" ", "").isalnum():
        return text.split()  # The common case.
    return [_POSSESSIVE.sub("", match.group()) for match in _SAID_WORD.finditer(text)]


def unqualified(name: str) -> str:
    """Return a name without a qualifier in brackets: Tesla, for "Tesla (company)"."""
    return _QUALIFIER.sub("", name) or name


def name_key(name: str) -> str:
    """Return the key under which a question finds a name; empty if the text is too long."""
    return folded(" ".join(said_words(name))) if len(name) <= SAID_NAME_CHARS_MAX else ""


def like_names(key: str, known: Iterable[str]) -> list[str]:
    """Return the known keys that a key misspells or is a part of."""
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract_iter

    keys = list(known)
    longer = [one for one in keys if key in one and f" {key} " in f" {one} "]
    slips = len(key) // LETTERS_PER_SLIP
    near = extract_iter(key, keys, scorer=OSA.distance, score_cutoff=slips) if slips else ()
    return list(dict.fromkeys([*(one for one, *_ in near), *longer]))


def first_name(type_: str, name: str) -> str:
    """Return the first name in the full name of a person; empty for anything else."""
    if type_ not in FIRST_NAMED or len(name) > SAID_NAME_CHARS_MAX:
        return ""
    words = name.split()
    if len(words) < 2 or not any(is_given(fold(word)) for word in words[:2]):
        return ""
    full = read_name(name)
    if full.legal or full.ordered or full.numbers or not 1 < len(full.words) <= FULL_NAME_WORDS_MAX:
        return ""
    first, last = full.words[0], full.words[-1]
    # Mark Miller is a person, the Jordan River is not.
    return first if is_given(first) and (first not in ALSO_WORDS or is_name(last)) else ""


@lru_cache(maxsize=_CACHE_MAX)
def _given_in(word: str) -> str:
    """Return a word as a first name; empty if it is not one."""
    first = fold(word)
    return first if is_given(first) else ""


def said_firsts(question: str) -> dict[int, str]:
    """Return the words of a question, by position, that may be a first name used alone.

    A word next to another name is part of that name. A name that is also a common word must be
    capitalised inside a sentence: "Did Will come?"
    """
    if question.isupper():
        question = question.lower()
    words = list(_SAID_WORD.finditer(question))
    gaps = [question[one.end() : other.start()] for one, other in pairwise(words)]
    begins = [True, *(_SENTENCE_GAP.search(gap) is not None for gap in gaps)]
    found: dict[int, str] = {}
    for number, match in enumerate(words):
        said = _POSSESSIVE.sub("", match.group())
        first = _given_in(said)
        if not first:
            continue
        if first in ALSO_WORDS and (begins[number] or said.islower()):
            continue
        goes_on = said == match.group() and number < len(gaps) and gaps[number].isspace()
        if goes_on and _is_part_of_name(words[number + 1].group(), begins=False):
            continue
        if number and gaps[number - 1].isspace():
            if _is_part_of_name(words[number - 1].group(), begins=begins[number - 1]):
                continue
        found[number] = first
    return found


def _is_part_of_name(word: str, *, begins: bool) -> bool:
    """Return whether a word next to a first name may be part of the same name."""
    return is_name(fold(word)) or (word[0].isupper() and not begins)
