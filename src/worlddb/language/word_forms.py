"""Word forms: the word lists, text without case and accents, and the stems of English words.

    sections("language", "known_names.txt") ──▶ section → rows of words
    fold("Zürich ＡＢＣ ٤٢") == "zurich abc 42"     for search: ignores many differences
    folded("  “C++” ") == "c++"                    for names: ignores only invisible differences
    stem("moved") == stem("moving")                and "bought" has the stem of "buying"

A word list is a text file beside the code: `[section]` lines, comments with #, and words separated
by white space, in which an underscore stands for a space. A section is a set of words, or a list of
rows if its lines have a meaning.

F1  Text in ASCII folds to its lower case, character by character.
F2  In other texts letters, marks, digits, emoji and currency signs stay; apostrophes and hyphens
    become the ASCII ones; invisible characters are removed; all others become a space.
F3  A character folds together with the marks that follow it and with nothing else, so `aligned` can
    say where each folded character came from.
S1  A word with other characters than a to z, or with fewer than three (except "is"), is its own
    stem.
S2  A stem is never longer than the word, except where a table says so; never empty.
S3  The same word has the same stem in every process: no state but a bounded cache.

The suffix rules are the published Porter2 ("Snowball English") algorithm, with three small tables
added: irregular forms and British spellings (`common_words.txt`), and word beginnings that the
rules would cut too much (`_WHOLE`: "university" must not become "universe").
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files

Rows = tuple[tuple[str, ...], ...]

CACHE_MAX = 1 << 16  # words cached; bounds the memory
NAMES_MAX = 1 << 14  # names and words of questions cached; a name may be a whole line
LETTERS_MAX = 32  # a longer word is not English: the name of a file, a key or a blob


@cache
def sections(package: str, name: str) -> dict[str, Rows]:
    """Return the rows of each section of the word list `name` in a package of `worlddb`."""
    text = files(f"worlddb.{package}").joinpath(name).read_text(encoding="utf-8")
    found: dict[str, list[tuple[str, ...]]] = {}
    rows: list[tuple[str, ...]] = []
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            rows = found.setdefault(line[1:-1], [])
        elif line and not line.startswith("#"):
            rows.append(tuple(word.replace("_", " ") for word in line.split()))
    return {section: tuple(rows) for section, rows in found.items()}


def words_of(package: str, name: str, section: str) -> frozenset[str]:
    """Return all words of a section."""
    return frozenset(word for row in sections(package, name)[section] for word in row)


def any_of(words: frozenset[str] | tuple[str, ...]) -> str:
    """Return a pattern that matches any of the words, the longest first; a space is any space."""
    ordered = sorted(words, key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in ordered)


# Emoji that can be searched for; lines, boxes and arrows in between are drawing.
EMOJI = "\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001fbff"
CURRENCY = "$€£¥₹"

_TABLE_MAX = 1 << 15  # bounds the memory; further characters are folded each time
_EMOJI = re.compile(f"[{EMOJI}]")
# Marks that writers leave out or readers ignore: Latin, Greek and Cyrillic accents (the breve
# apart: й is no и), Hebrew points, Arabic vowel signs and the hamza above and below.
_ACCENT = re.compile(
    "[\u0300-\u0305\u0307-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640"
    "\u064b-\u065f\u0670\u06d6-\u06ed\u20d0-\u20f0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_BREVE = re.compile("(?<![иу])\u0306")
_APOSTROPHES = "\u2018\u2019\u201b\u02b9\u02bb\u02bc\u2032\u00b4"
_HYPHENS = "\u2010\u2011\u2212"
_LETTERS = {
    "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h",
}  # fmt: skip
# Compatibility forms that would run into the word before them: 1½ is no 11/2.
_APART = str.maketrans(
    {"½": " 1/2 ", "¼": " 1/4 ", "¾": " 3/4 ", "№": " no ", "™": " ", "℠": " ", "´": "'"}
)


class _Table(dict[int, str]):
    """A table for `str.translate` that is filled when a character first occurs."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        self._rule = rule

    def __missing__(self, code: int) -> str:
        found = self._rule(chr(code))
        if len(self) < _TABLE_MAX:
            self[code] = found
        return found


def _plain(char: str) -> str:
    if char.isascii() or char in CURRENCY or char == "\u0306":
        return char
    if char in _APOSTROPHES:
        return "'"
    if char in _HYPHENS:
        return "-"
    if char in _LETTERS or _ACCENT.match(char):
        return _LETTERS.get(char, "")
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Cf":
        return " " if char == "\u200b" else ""
    if category[0] in "LMN" or (category in ("So", "Cn") and _EMOJI.match(char)):
        return char
    return " "


def _visible(char: str) -> str:
    if char in _APOSTROPHES:
        return "'"
    return "" if unicodedata.category(char) == "Cf" or "\ufe00" <= char <= "\ufe0f" else char


_PLAIN = _Table(_plain)
_VISIBLE = _Table(_visible)


def fold(text: str) -> str:
    """Return `text` folded for search."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKD", text.translate(_APART)).casefold()
    text = unicodedata.normalize("NFKD", text).translate(_PLAIN)
    if "\u0306" in text:
        text = _BREVE.sub("", text)
    return unicodedata.normalize("NFC", text)


def aligned(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """Return the folded text, and for each of its characters start and end in `text`."""
    whole = fold(text)
    if text.isascii() or (len(whole) == len(text) and "".join(map(_alone, text)) == whole):
        return whole, range(len(text)), range(1, len(text) + 1)
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and _attaches(text[end]):
            end += 1
        part = fold(text[start:end])
        parts.append(part)
        starts += [start] * len(part)
        ends += [end] * len(part)
        start = end
    if "".join(parts) != whole:  # F3 holds for every sequence we know of; be right if it does not
        return whole, [0] * len(whole), [len(text)] * len(whole)
    return whole, starts, ends


@lru_cache(maxsize=1 << 14)
def _attaches(char: str) -> bool:
    """Return whether a character may change with the one before it.

    Marks do, invisible characters (marks after them meet the ones before) and Hangul vowels.
    """
    first = unicodedata.normalize("NFKD", char)[0]
    category = unicodedata.category(first)
    return category[0] == "M" or category == "Cf" or "\u1160" <= first <= "\u11ff"


@lru_cache(maxsize=1 << 14)
def _alone(char: str) -> str:
    """Return what a character folds to by itself if that is one character, else nothing."""
    found = fold(char)
    return found if len(found) == 1 else ""


@lru_cache(maxsize=NAMES_MAX)
def folded(text: str) -> str:
    """Return the key by which names are compared: equal names have equal keys.

    Compatibility forms, case, white space, invisible characters, curly quotes and the punctuation
    around the name make no difference. Diacritics do (a search is forgiving, an identity is not),
    and so do `+`, `#`, `&`, `@`, `%` and a leading full stop: C++, C#, .NET.
    """
    if text.isascii():
        key = text.lower()
    else:
        key = text
        for _ in range(2):  # folding case may leave a form that is not normal, once
            key = unicodedata.normalize("NFKC", key.translate(_VISIBLE)).casefold()
        key = unicodedata.normalize("NFKC", key)
    key = " ".join(key.split())
    start, end = 0, len(key)
    while start < end and _outer(key[start]) and key[start] != ".":
        start += 1
    while start < end and _outer(key[end - 1]):
        end -= 1
    return key[start:end] or key


def _outer(char: str) -> bool:
    return char == " " or (unicodedata.category(char)[0] == "P" and char not in "#&@%")


# Words that are stems already, although they end like an inflection.
_FIXED = {
    "sky", "news", "howe", "atlas", "cosmos", "bias", "andes", "inning", "outing", "canning",
    "herring", "earring", "evening", "paste", "proceed", "exceed", "succeed",
}  # fmt: skip
_ADVERBS = {"idly": "idl", "gently": "gentl", "ugly": "ugli", "early": "earli", "only": "onli"}
_ADVERBS["singly"] = "singl"

# Beginnings after which the suffix region starts, as in the algorithm (gener, commun, arsen) and
# for further pairs that the rules would make one: customer/custom, animal/anime, several/sever.
_WHOLE = re.compile(
    "gener|commun|arsen|univers|organ|inter|later|emerg|experim|animal|import|author|sever|posit"
    "|custom"
)
_VOWEL = re.compile("[aeiouy]")
_REGION = re.compile("[aeiouy][^aeiouy]")
_CONSONANT_Y = re.compile("(^|[aeiouy])y")
_SHORT = re.compile("(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy])$")
_DOUBLES = {"bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"}
_PAST = ("eedly", "ingly", "edly", "eed", "ing", "ed")
_LI_AFTER = set("cdeghkmnrt")

_STEP_2 = {
    "tional": "tion", "enci": "ence", "anci": "ance", "abli": "able", "entli": "ent",
    "izer": "ize", "ization": "ize", "ational": "ate", "ation": "ate", "ator": "ate",
    "alism": "al", "aliti": "al", "alli": "al", "fulness": "ful", "ousli": "ous",
    "ousness": "ous", "iveness": "ive", "iviti": "ive", "biliti": "ble", "bli": "ble",
    "fulli": "ful", "lessli": "less", "ogi": "og", "ogist": "og", "li": "",
}  # fmt: skip
_STEP_3 = {
    "tional": "tion", "ational": "ate", "alize": "al", "icate": "ic", "iciti": "ic",
    "ical": "ic", "ful": "", "ness": "", "ative": "",
}  # fmt: skip
_STEP_4 = {
    "al": "", "ance": "", "ence": "", "er": "", "ic": "", "able": "", "ible": "", "ant": "",
    "ement": "", "ment": "", "ent": "", "ism": "", "ate": "", "iti": "", "ous": "", "ive": "",
    "ize": "", "ion": "",
}  # fmt: skip
_ENDS_2, _ENDS_3, _ENDS_4 = (
    frozenset(suffix[-2:] for suffix in rules) for rules in (_STEP_2, _STEP_3, _STEP_4)
)
_PAST_LAST = frozenset(ending[-1] for ending in _PAST)
_SILENT = frozenset("el")


@lru_cache(maxsize=CACHE_MAX)
def stem(word: str) -> str:
    """Return the stem of a lower-case word; a word that is not English is returned unchanged."""
    known = _KNOWN.get(word)
    if known is not None:
        return known
    if not (2 < len(word) <= LETTERS_MAX and word.isascii() and word.isalpha()):
        return word
    found = _porter2(word)
    return _SPELLED.get(found, found)


def _porter2(word: str) -> str:
    if len(word) < 3 or word in _FIXED:
        return word
    if word in _ADVERBS:
        return _ADVERBS[word]
    # A load meets thousands of new words, and most have none of the endings: that is seen first.
    if "y" in word:
        word = _CONSONANT_Y.sub(r"\1Y", word)
    whole = _WHOLE.match(word)
    r1 = whole.end() if whole else _region(word, 0)
    r2 = _region(word, r1)
    if word[-1] in "sd":
        word = _plural(word)
    if word not in _FIXED:
        if word[-1:] in _PAST_LAST:
            word = _past(word, r1)
        if len(word) > 2 and word[-1] in "yY" and not _VOWEL.match(word[-2]):
            word = word[:-1] + "i"
        if word[-2:] in _ENDS_2:
            word = _derived(word, r1)
        if word[-2:] in _ENDS_3:
            word = _adjective(word, r1, r2)
        if word[-2:] in _ENDS_4:
            word = _residual(word, r2)
        if word[-1:] in _SILENT:
            word = _silent(word, r1, r2)
    return word.lower()


def _region(word: str, start: int) -> int:
    """Return where the region after the first vowel-consonant pair at or after `start` begins."""
    pair = _REGION.search(word, start)
    return pair.end() if pair else len(word)


def _plural(word: str) -> str:
    """Step 1a: -sses, -ies, -ied, -s."""
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ies", "ied")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _VOWEL.search(word[:-2]):
        return word[:-1]
    return word


def _past(word: str, r1: int) -> str:
    """Step 1b: -eed, -ed, -ing and their adverbs."""
    for ending in _PAST:
        if word.endswith(ending):
            break
    else:
        return word
    body = word[: -len(ending)]
    if ending[:3] == "eed":
        return body + "ee" if len(body) >= r1 else word
    if not _VOWEL.search(body):
        return word
    if body.endswith(("at", "bl", "iz")):
        return body + "e"
    if body[-2:] in _DOUBLES:
        # Three letters such as "add", "egg", "ebb" and "err" are whole words.
        return body if len(body) == 3 and body[0] in "aeo" else body[:-1]
    if len(body) <= r1 and _SHORT.search(body):
        return body + "e"
    return body


def _longest(word: str, rules: dict[str, str], longest: int) -> str | None:
    """Return the longest suffix of `word` among `rules`."""
    for size in range(min(longest, len(word)), 1, -1):
        if word[-size:] in rules:
            return word[-size:]
    return None


def _derived(word: str, r1: int) -> str:
    """Step 2: -ization, -fulness, -ously, …, if they lie in the first region."""
    suffix = _longest(word, _STEP_2, 7)
    if suffix is None:
        return word
    body = word[: -len(suffix)]
    if len(body) < r1:
        return word
    if suffix == "li" and body[-1:] not in _LI_AFTER:
        return word
    if suffix == "ogi" and not body.endswith("l"):
        return word
    return body + _STEP_2[suffix]


def _adjective(word: str, r1: int, r2: int) -> str:
    """Step 3: -ical, -ness, -ful, …, if they lie in the first region (-ative: the second)."""
    suffix = _longest(word, _STEP_3, 7)
    if suffix is None or len(word) - len(suffix) < (r2 if suffix == "ative" else r1):
        return word
    return word[: -len(suffix)] + _STEP_3[suffix]


def _residual(word: str, r2: int) -> str:
    """Step 4: -ment, -able, -ion, …, if they lie in the second region."""
    suffix = _longest(word, _STEP_4, 5)
    if suffix is None or len(word) - len(suffix) < r2:
        return word
    body = word[: -len(suffix)]
    return word if suffix == "ion" and not body.endswith(("s", "t")) else body


def _silent(word: str, r1: int, r2: int) -> str:
    """Step 5: a last -e, and one of two last -l."""
    body = word[:-1]
    if word.endswith("e"):
        keep = len(body) < r2 and (len(body) < r1 or _SHORT.search(body))
        return word if keep else body
    return body if word.endswith("ll") and len(body) >= r2 else word


_COMMON = sections("language", "common_words.txt")
_KNOWN = {form: _porter2(row[0]) for row in _COMMON["irregular"] for form in row}
_SPELLED = {_porter2(british): _porter2(american) for british, american in _COMMON["spellings"]}
