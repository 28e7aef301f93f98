"""Text tokens: the tokens of a text, for the full-text index and for ranking alike.

    text ── split at white space ──▶ chunks ── fold, parse, stem (cached) ──▶ tokens

W1  A token consists of a-z, 0-9 and characters outside ASCII that are not space, punctuation or
    surrogates (except "·", our decimal point); at most 64. SQLite's `ascii` tokenizer splits alike.
W2  `words`, `indexed`, `asked` and `spans` come from one parser, so they never disagree.
W3  The tokens of a chunk depend on the chunk alone. This makes a cache possible, and with the cache
    a short text costs a few microseconds.

The tokens of a chunk, beside the stems of its words:

    O'Brien     brien obrien        names bound by an apostrophe, an ampersand or one hyphen are
    AT&T        at t att            found by their parts and written together
    C++ C#      c cplusplus, …      special names have a token of their own (.NET: net dotnet)
    don't       do not              's, 'm, 're, 've, 'll and 'd are dropped
    $1,200.50   dollar 1200 1200·50 digits are grouped; a decimal is found by its whole part too
    5/30/2023   5 30 2023 may       a date has its month's name if there is one way to read it
    7:30pm 3rd  7 30 pm, 3          units and ordinals leave the number alone
    U.S.        usa                 initials are joined
    东京都      东 东京 京 京都 都  scripts without spaces: characters and pairs; a question asks
                                    for the pairs, or for the character if there is but one

Two to twelve become digits; "one" does not, because it is mostly a pronoun. Only lowerCamelCase is
split inside a word: other words with inner capitals are names (iPhone, YouTube).

In a chunk, runs of scripts without spaces and emoji are separated first. In the rest one grammar
finds dates, numbers, initials, words joined by signs, and signs; one function for each returns its
tokens and the characters they stand for.

A text in another language (`language_of`: by its function words, or by its script) is indexed with
the stems of that language. Such a stem ends with a mark that folded text cannot have ("hundᵈ"), so
stems of two languages are never equal. A question is searched with the stems of all present
languages, English first: a wrong guess can lose an inflection, never a word.

Not here: ranking, query syntax.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cache, lru_cache
from importlib import import_module
from itertools import chain
from typing import NamedTuple

from worlddb.language.word_forms import (
    CURRENCY,
    EMOJI,
    aligned,
    fold,
    folded,
    sections,
    stem,
    words_of,
)

__all__ = [
    "COUNTED", "LANGUAGES", "MARKS", "MONTHS", "NUMBERS", "STOP", "WEEKDAYS", "Piece", "asked",
    "folded", "indexed", "indexed_content", "language_of", "node_words", "spans", "words",
]  # fmt: skip

TOKEN_MAX = 64  # characters; longer runs are data, not words
CACHE_MAX = 1 << 16  # words cached; bounds the memory
CHUNK_KEPT_MAX = 48  # longer chunks hardly ever recur

# (token, start, end): the token stands for the characters from start to end.
Piece = tuple[str, int, int]

# Scripts written without spaces between words (Thai, Lao, Myanmar, Khmer, kana, Han …), and
# Hangul, whose words carry their endings with them. Their marks stay with the letter before.
_SPACELESS = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005-\u3007"
    "\u3041-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uaa60-\uaa7f\uac00-\ud7ff\uf900-\ufaff"
    "\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059"
    "\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u109a-\u109d\u1160-\u11ff"
    "\u17b4-\u17d3\u17dd\u1a55-\u1a7f\u3099\u309a"
)

# A letter, and a letter or digit. After folding, only letters, marks and currency signs are outside
# ASCII; a more precise pattern would slow the import.
_L = f"[^\\x00-`{{-\\x7f{CURRENCY}]"
_W = f"[^\\x00-/:-`{{-\\x7f{CURRENCY}]"
_MEASURES = (
    "am|pm|mm|cm|km|kg|mg|ml|lbs?|oz|[kmgt]b|mph|kph|hrs?|hours?|mins?|minutes?|secs?|seconds?"
    "|days?|weeks?|months?|yrs?|years?|ft|usd|eur"
)
# Every repetition is bounded or possessive: a megabyte of "1,1,1,…" must not take minutes.
_GRAMMAR = re.compile(
    rf"""
    (?P<drop> '(?:s|m|re|ve|ll|d)(?!{_W}) )
  | (?P<date> (?:\d{{4}}([-/.])\d\d?\3\d\d?|\d\d?([-/.])\d\d?\4\d{{4}})(?!\d)(?:t(?=\d))? )
  | (?P<plan> \d{{3}}\([a-z]\) )
  | (?P<number> v?(?:\d{{1,3}}(?:\.\d{{3}}){{1,5}},\d\d?(?!\d)|\d{{1,3}}(?:\.\d{{3}}){{2}}(?!\.?\d)
        | (?:\d{{1,3}}(?:[,'_]\d{{2,3}}){{0,5}}[,'_]\d{{3}}(?!\d)|\d++)(?:\.\d++){{0,3}})
        (?:st|nd|rd|th|bn?|k|m|{_MEASURES})?(?!{_W}) )
  | (?P<initials> (?:ph\.d|{_L}(?:\.{_L})+)(?!{_W}) )
  | (?P<dotnet> (?<!{_W})\.net(?!{_W}) )
  | (?P<word> {_W}++(?:(?:['&]|-(?!\d++[.,:/]\d)){_W}++)*(?:\.js(?!{_W})|\+\+|[+\#](?!{_W}))? )
  | (?P<sign> [{CURRENCY}](?=\d)|(?<=\d)[{CURRENCY}%]|^[{CURRENCY}%]$ )
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"(v?)([\d.,'_]*\d)([a-z]*)")
_GROUPED_BY_DOTS = re.compile(r"\d{1,3}(?:\.\d{3})+,\d\d?|\d{1,3}(?:\.\d{3}){2}")
_NUMERAL = re.compile(r"\d+")
_PART = re.compile(f"{_W}+")
_CLITIC = re.compile(r"'(?:s|m|re|ve|ll|d)$")
_BINDERS = re.compile("['&-]")

_SIGNS = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee", "%": "percent"}
_POWERS = {"k": 3, "m": 6, "b": 9, "bn": 9}
_ORDINALS = ("st", "nd", "rd", "th")
_NEGATED = {"wo": "will", "ca": "can", "sha": "shall", "ai": "be"}
COUNTED = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
_NUMERALS = {word: str(number) for number, word in enumerate(COUNTED) if number > 1}
NUMBERS = {word: number for number, word in enumerate(COUNTED)}
NUMBERS |= {"a": 1, "an": 1, "couple": 2, "few": 3, "several": 4}
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_CHUNK = re.compile(r"\S+")
_CAMEL = re.compile(r"(?<![A-Za-z])[a-z]{2,}+(?:[A-Z][a-z]++)+(?![A-Za-z])")
_CAMEL_PART = re.compile(r"[A-Z]?[a-z]+")
STOP = frozenset(map(stem, words_of("language", "common_words.txt", "stop")))


class _Language(NamedTuple):
    """A language other than English: its Snowball stemmer, and the mark of its stems."""

    stemmer: str
    mark: str


LANGUAGES = {
    "de": _Language("german", "ᵈ"),
    "es": _Language("spanish", "ˢ"),
    "fr": _Language("french", "ᶠ"),
    "it": _Language("italian", "ⁱ"),
    "pt": _Language("portuguese", "ᵖ"),
    "nl": _Language("dutch", "ⁿ"),
    "sv": _Language("swedish", "ᵛ"),
    "ru": _Language("russian", "ʳ"),
    "el": _Language("greek", "ᵍ"),
}
"""By ISO 639 code. The marks are modifier letters, which folding turns into plain ones."""
MARKS = {language.mark: code for code, language in LANGUAGES.items()}
NODE_WORDS_KEPT = 1_024  # texts; a recall in a large world reads about 500, three times
GUESSED_FROM_MAX = 100  # words at the start of a text from which its language is guessed
SHARED_WEIGHT = 0.5  # of a function word that several languages have
SURE_FROM = 1.5  # function words: one alone may be part of a name ("El Paso")
FEW_WORDS = 6  # in so short a text one is enough
_SCRIPTS = {"ru": re.compile("[\u0400-\u04ff]+"), "el": re.compile("[\u0370-\u03ff]+")}
_ENDS = '.,;:!?"()[]{}…«»„“”‘¿¡'
_NATIVE = re.compile("(?P<de>ß|(?<=[a-zß])[äöü][a-zß])|(?P<es>[ñ¿¡])|(?P<pt>[ãõ])|(?P<sv>å)")
CUE_WEIGHT = 0.2  # weight of a typical letter sequence; a function word has 1
_CUES = {
    "de": "sch|cht|ung\\b|tz|keit|[äöü]",
    "es": "ción\\b|[óí]\\b|[ao]s\\b|rr|dad\\b|[aei]r\\b",
    "fr": "[èêçœùûîôâ]|é[es]?\\b|eux\\b|ait\\b|eau|oi|ent\\b|qu|\\b[ldjncs]'|tte",
    "it": "[òìù]|zione|gli|tt|zz|cch|[oi]\\b",
    "pt": "ção|nh|lh|ões|[êâ]|ei",
    "nl": "ij|oo|aa|ee|uu|eu|tje\\b",
    "sv": "[äöå]|sj|kt|ing\\b|ck",
}


def words(text: str, language: str | None = None) -> list[str]:
    """Return every token of `text` in order, stop words included.

    With a `language`, words have its stems; number and order of the tokens stay the same.
    """
    table = _TOKENS if language is None else _tokens_in(language)
    return list(chain.from_iterable(map(table.__getitem__, text.split())))


@lru_cache(NODE_WORDS_KEPT)
def node_words(name: str, content: str) -> tuple[str, ...]:
    """Return the tokens by which a node is found; its name belongs to no language."""
    return (*words(name), *words(content, language_of(content)))


def indexed(text: str) -> str:
    """Return the tokens of `text` joined by spaces, as the full-text index stores a name."""
    joined = " ".join(map(_JOINED.__getitem__, text.split()))
    # Chunks without a token, such as a dash between two spaces, have left a gap.
    return " ".join(joined.split()) if "  " in joined or joined[:1] in " " else joined.rstrip()


def indexed_content(text: str) -> str:
    """Return the tokens of a content for the full-text index, with the stems of its language.

    The mark of the language follows as a token of its own, so that languages can be counted.
    """
    language = language_of(text)
    if language is None:
        return indexed(text)
    return " ".join([*words(text, language), LANGUAGES[language].mark])


def language_of(text: str) -> str | None:
    """Return the language code of a text by its function words; None if English or unsure.

    A letter that only one language uses counts like a word.
    """
    said = text[: GUESSED_FROM_MAX * 16].split(None, GUESSED_FROM_MAX)
    del said[GUESSED_FROM_MAX:]
    if not said:
        return None
    counts = {"en": 0.0}
    said[0] = said[0].lower()
    # A capital inside a sentence begins a name ("Los Angeles"), which has no language.
    is_ascii = text.isascii()
    if is_ascii and not any(map(_FOREIGN.__getitem__, said)):
        return None  # No language has more of the words than English.
    for codes in map(_CODES.__getitem__, said):
        for code in codes:
            counts[code] = counts.get(code, 0) + (1 if len(codes) == 1 else SHARED_WEIGHT)
    if not is_ascii:
        whole = " ".join(said).lower()
        for code, script in _SCRIPTS.items():
            if 2 * len(script.findall(whole)) > len(said):  # most words are in its script
                return code
        for code in {match.lastgroup or "" for match in _NATIVE.finditer(whole)}:
            counts[code] = counts.get(code, 0) + 1
    top = max(counts.values())
    if counts.pop("en") >= top or top < (SURE_FROM if len(said) > FEW_WORDS else 1):
        return None
    rivals = [code for code, count in counts.items() if count + CUE_WEIGHT >= top]
    if len(rivals) > 1:
        whole = " ".join(said)
        for code in rivals:
            cues = len(_cues(code).findall(whole)) if code in _CUES else 0
            counts[code] += CUE_WEIGHT * min(cues, len(said)) / len(said)
    return max(rivals, key=lambda code: counts[code])


@cache
def _cues(language: str) -> re.Pattern[str]:
    return re.compile(_CUES[language])


@cache
def _function_words() -> dict[str, tuple[str, ...]]:
    """Return each function word with its languages."""
    found: dict[str, tuple[str, ...]] = {}
    for code, rows in sections("language", "function_words.txt").items():
        for word in chain.from_iterable(rows):
            found[word] = (*dict.fromkeys((*found.get(word, ()), code)),)
    return found


class _Codes(dict[str, tuple[str, ...]]):
    """Word as written → the languages that have it as a function word. Bounded."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        known = _function_words()
        found = known.get(word) or known.get(word.strip(_ENDS), ())
        if len(word) <= CHUNK_KEPT_MAX:
            if len(self) >= CACHE_MAX:
                self.clear()
            self[word] = found
        return found


class _Foreign(dict[str, bool]):
    """Word as written → whether it is a function word of another language only. Bounded."""

    def __missing__(self, word: str) -> bool:
        known = _function_words()
        codes = known.get(word) or known.get(word.strip(_ENDS), ())
        found = bool(codes) and "en" not in codes
        if len(word) <= CHUNK_KEPT_MAX:
            if len(self) >= CACHE_MAX:
                self.clear()
            self[word] = found
        return found


_CODES = _Codes()
_FOREIGN = _Foreign()


def asked(text: str, languages: Iterable[str] = ()) -> list[str]:
    """Return the distinct tokens of a question, in order.

    Stop words are dropped if anything else remains; single characters of a script without spaces
    are dropped if a pair contains them. With `languages`, their stems are added.
    """
    tokens = words(text)
    forms = [words(text, language) for language in sorted(languages)]
    stop = STOP
    if forms and (own := language_of(text)) is not None:
        stop = stop | _stop_words(own)
    if not text.isascii():
        pairs = [parts for parts in map(units, tokens) if len(parts) > 1]
        stop = stop | {unit for parts in pairs for unit in parts}
    groups = list(zip(tokens, *forms, strict=True))
    kept = [group for group in groups if group[0] not in stop] or groups
    if not text.isascii() and kept is groups:
        kept = [group for group in groups if group[0] not in stop - STOP] or groups
    return list(dict.fromkeys([group[0] for group in kept] + [*chain(*kept)]))


@cache
def _stop_words(language: str) -> frozenset[str]:
    """Return the plain tokens of the function words of a language."""
    rows = sections("language", "function_words.txt")[language]
    return frozenset(token for row in rows for word in row for token in words(word))


def spans(text: str, only: Set[str] | None = None, language: str | None = None) -> Iterator[Piece]:
    """Yield (token, start, end) for each token of `text[start:end]`.

    The tokens are those of `words(text, language)`, in the same order; with `only`, those in that
    set. Tokens of one chunk may overlap ("o'brien" is also "brien").
    """
    table = _TOKENS if language is None else _tokens_in(language)
    for match in _CHUNK.finditer(text):
        chunk, at = match[0], match.start()
        if only is not None and len(chunk) <= CHUNK_KEPT_MAX and only.isdisjoint(table[chunk]):
            continue
        plain, starts, ends = aligned(chunk)
        found = _parsed(chunk, plain)
        if language is not None:
            found = [
                (_in_language(piece, chunk, starts, ends, language), *piece[1:]) for piece in found
            ]
        if only is not None:
            found = [piece for piece in found if piece[0] in only]
        for name, start, end in found:
            yield name, at + starts[start], at + ends[end - 1]


def _in_language(
    piece: Piece, chunk: str, starts: Sequence[int], ends: Sequence[int], language: str
) -> str:
    """Return the stem of a piece in a language; the token unchanged if the piece is not a word."""
    token, start, end = piece
    said = chunk[starts[start] : ends[end - 1]]
    if not said.isalpha() or token.isdigit() or len(said) > TOKEN_MAX // 2 or _unit().match(token):
        return token
    return _stemmed(said.lower(), language)


@lru_cache(maxsize=CACHE_MAX)
def _stemmed(word: str, language: str) -> str:
    return fold(_stemmer(language)(word)) + LANGUAGES[language].mark


@cache
def _stemmer(language: str) -> Callable[[str], str]:
    """Return the stemmer of a language; imported when first needed.

    Always the one in pure Python: a faster installed one may be of another version.
    """
    name = LANGUAGES[language].stemmer
    module = import_module(f"snowballstemmer.{name}_stemmer")
    found: Callable[[str], str] = getattr(module, f"{name.capitalize()}Stemmer")().stemWord
    return found


def pieces(text: str) -> list[Piece]:
    """Return the pieces of a chunk of folded text, in order."""
    if text.isascii() and text.isalpha():
        return [(token(text), 0, len(text))]
    found: list[Piece] = []
    if text.isascii():
        _read(text, 0, len(text), found)
        return found
    for segment in _segments().finditer(text):
        if segment.lastgroup == "run":
            _run(segment, found)
        elif segment.lastgroup == "emoji":
            found.append((segment[0], *segment.span()))
        else:
            _read(text, *segment.span(), found)
    return found


def token(word: str) -> str:
    """Return the token of one folded word."""
    if len(word) == 2 and word[0] == "0" and word[1].isdigit():
        return word[1]  # 05 in a date or a time is 5
    return _NUMERALS.get(word) or stem(word[:TOKEN_MAX])


def units(token: str) -> list[str]:
    """Return the characters (with their marks) of a token of a script without spaces."""
    return _unit().findall(token)


@cache
def _segments() -> re.Pattern[str]:
    """Return the pattern, compiled on first use: sets of this size take a while."""
    return re.compile(
        f"(?P<run>[{_SPACELESS}]+)|(?P<emoji>[\U0001f1e6-\U0001f1ff]{{2}}|[{EMOJI}])"
        f"|[^{_SPACELESS}{EMOJI}]+"
    )


@cache
def _unit() -> re.Pattern[str]:
    return re.compile(f"[{_SPACELESS}][{_MARKS}]*")


def _read(text: str, start: int, end: int, found: list[Piece]) -> None:
    for match in _GRAMMAR.finditer(text, start, end):
        _READERS[match.lastgroup](match, found)


def _drop(match: re.Match[str], found: list[Piece]) -> None:
    """Add nothing: the 's of 1990's and U.S.'s."""


def _date(match: re.Match[str], found: list[Piece]) -> None:
    at = match.start()
    parts = list(_NUMERAL.finditer(match[0]))
    found += [(token(part[0]), at + part.start(), at + part.end()) for part in parts]
    numbers = [int(part[0]) for part in parts]
    places = numbers[1:2] if numbers[0] > 31 else numbers[:2]
    months = {number for number in places if 1 <= number <= 12}
    if len(months) == 1:
        found.append((stem(MONTHS[months.pop() - 1]), *match.span()))


def _plan(match: re.Match[str], found: list[Piece]) -> None:
    found.append((match[0][:3] + match[0][4], *match.span()))


def _number(match: re.Match[str], found: list[Piece]) -> None:
    start, end = match.span()
    form = _NUMBER.fullmatch(match[0])
    assert form is not None, match[0]
    version, digits, suffix = form.groups()
    if _GROUPED_BY_DOTS.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    whole, *rest = re.sub("[,'_]", "", digits).split(".")
    power = _POWERS.get(suffix)
    if power and (suffix == "k" or match.string[max(start - 1, 0) : start] in _SIGNS):
        if not rest:
            found.append((token(whole + suffix), start, end))
        found.append(((whole + "".join(rest).ljust(power, "0"))[:TOKEN_MAX], start, end))
        return
    if power and not rest:  # 5m may be metres, minutes or millions
        found.append((token(match[0]), start, end))
        return
    end -= len(suffix)
    if version:
        found.append((token(version + whole), start, end))
    found.append((token(whole), start, end))
    if suffix in ("am", "pm"):
        found += [(token(part), start, end) for part in rest]
    else:
        for count in range(1, len(rest) + 1):
            found.append(("·".join([whole, *rest[:count]])[:TOKEN_MAX], start, end))
    if suffix and suffix not in _ORDINALS:
        found.append((token(suffix), end, match.end()))


def _initials(match: re.Match[str], found: list[Piece]) -> None:
    joined = match[0].replace(".", "")
    # "us" would be the pronoun, and no question asks for that.
    found.append((token("usa" if joined == "us" else joined), *match.span()))


def _dotnet(match: re.Match[str], found: list[Piece]) -> None:
    start, end = match.span()
    found += [("net", start + 1, end), ("dotnet", start, end)]


def _word(match: re.Match[str], found: list[Piece]) -> None:
    start, end = match.span()
    body = match[0].rstrip("+#").removesuffix(".js")
    sign = match[0][len(body) :]
    if body.endswith("n't") and len(body) > 3:
        cut = start + len(body) - 3
        found.append((token(_NEGATED.get(body[:-3], body[:-3])), start, cut))
        found.append(("not", cut, start + len(body)))
    else:
        _names(_CLITIC.sub("", body), start, found)
    if sign == ".js":
        found += [("js", end - 2, end), (token(body + "js"), start, end)]
    elif sign == "++":
        found.append((token(body + "plusplus"), start, end))
    elif sign == "#" and len(body) == 1:
        found.append((body + "sharp", start, end))
    elif sign == "+":
        plus = (body + "plus", start, end) if len(body) == 1 else ("plus", end - 1, end)
        found.append(plus)


def _names(body: str, start: int, found: list[Piece]) -> None:
    """Read words joined by signs: each of them, and the joined word."""
    names = body.split("-")
    at = start
    for name in names:
        parts = list(_PART.finditer(name))
        least = 2 if "'" in name else 1  # the O of O'Brien is not a word
        found += [
            (token(part[0]), at + part.start(), at + part.end())
            for part in parts
            if len(part[0]) >= least
        ]
        if len(parts) > 1:
            found.append((token(_BINDERS.sub("", name)), at, at + len(name)))
        at += len(name) + 1
    if len(names) == 2:
        found.append((token(_BINDERS.sub("", body)), start, start + len(body)))


def _run(match: re.Match[str], found: list[Piece]) -> None:
    """Add each character, and each with its successor."""
    at = match.start()
    last, last_at = "", at
    for char in units(match[0]):
        end = at + len(char)
        if last:
            found.append((last + char, last_at, end))
        found.append((char, at, end))
        last, last_at, at = char, at, end


def _sign(match: re.Match[str], found: list[Piece]) -> None:
    found.append((stem(_SIGNS[match[0]]), *match.span()))


_READERS: dict[str | None, Callable[[re.Match[str], list[Piece]], None]] = {
    "drop": _drop, "date": _date, "plan": _plan, "number": _number, "initials": _initials,
    "dotnet": _dotnet, "word": _word, "sign": _sign,
}  # fmt: skip


class _Tokens(dict[str, tuple[str, ...]]):
    """Chunk → its tokens. Two generations: bounded, and never emptied at once."""

    def __init__(self, language: str | None = None) -> None:
        self._language = language
        self._older: dict[str, tuple[str, ...]] = {}

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        found = self._older.get(chunk)
        if found is None:
            found = self._made(chunk)
        if len(chunk) <= CHUNK_KEPT_MAX:
            if len(self) >= CACHE_MAX:
                self._older = self.copy()
                self.clear()
            self[chunk] = found
        return found

    def _made(self, chunk: str) -> tuple[str, ...]:
        language = self._language
        if language is None:
            return tuple([piece[0] for piece in _parsed(chunk, fold(chunk))])
        plain, starts, ends = aligned(chunk)
        found = _parsed(chunk, plain)
        return tuple([_in_language(piece, chunk, starts, ends, language) for piece in found])


class _Joined(dict[str, str]):
    """Chunk → its tokens joined, so that a bulk load does not join them again and again."""

    def __missing__(self, chunk: str) -> str:
        is_word = chunk.isascii() and chunk.isalpha() and chunk.islower()  # one piece, as most
        found = token(chunk) if is_word else " ".join(_TOKENS[chunk])
        if len(chunk) <= CHUNK_KEPT_MAX:
            if len(self) >= CACHE_MAX:
                self.clear()
            self[chunk] = found
        return found


_TOKENS = _Tokens()
_JOINED = _Joined()


@cache
def _tokens_in(language: str) -> _Tokens:
    return _Tokens(language)


def _parsed(chunk: str, plain: str) -> list[Piece]:
    """Return the pieces of a chunk that folds to `plain`, with offsets into `plain`."""
    found = pieces(plain)
    if not chunk.islower() and chunk.isascii():
        for name in _CAMEL.finditer(chunk):
            for part in _CAMEL_PART.finditer(name[0]):
                start = name.start() + part.start()
                found.append((token(part[0].lower()), start, start + len(part[0])))
    return found
