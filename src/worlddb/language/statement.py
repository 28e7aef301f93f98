r"""Statements: short texts in a form in which two can be compared without a grammar.

    "The alarm code is 2204."            same words up to one span: the *frame* is the same, and
    "The alarm code is 7719 now."        the value is another; see `rival_frames.py`

Statements in different words may answer one question, too; see `answer_network.py`. Only closed
classes of words are known, by list (`statement_words.txt`): articles, copulas, and words of change.
Everything else is compared as it is, in any language.

    "Polish-Russian War: a film of 2009 …"        ──▶  Polish-Russian War
    "# Polish-Russian War\n\nA film of 2009 …"    ──▶  Polish-Russian War

A title is the heading of a text, so the text is about it. Many texts begin with a few words and a
colon that are not a title ("Note: …", "Here is the list: …"). So a title must be capitalised, or be
repeated at the start of the text; and it must have a word that is not ordinary, unless the text
repeats it. A statement without a title is about the words before its verb (`opening_of`), name or
not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from worlddb.language.text_tokens import COUNTED, MONTHS, STOP, WEEKDAYS, units, words
from worlddb.language.word_forms import any_of, fold, words_of

listed = partial(words_of, "language", "statement_words.txt")

CHARS_MAX = 200  # a longer text makes several statements
CLAUSES_MAX = 4  # "Tobias left, Anna is my manager now" has two
ACCENTED_END = "\u2000"  # accented Latin, Greek and Cyrillic letters are below it
VALUE_WORDS_MAX = 6  # a longer span is a sentence, not a value
CHUNKS_KEPT = 16_384  # words cached; bounds the memory
STATEMENTS_KEPT = 4_096  # texts cached: a question compares the same few hits again

# A vowel sign of an Indic script is part of its word, and no word character of `re`.
_LETTER = r"(?:[^\W_]|[\u0900-\u0963\u0966-\u0df3\u0e31-\u0e4e\u0eb1-\u0ecd\u1000-\u17ff])"
_WORD = re.compile(rf"\d[\d.,:/-]*\w*|{_LETTER}+(?:-{_LETTER}+)*|[=:]")
_SIGN = re.compile(r"\d+(?:[.,:/-]\d+)*|.")  # A number is one word in a script without spaces, too.
_CLAUSE = re.compile(r"[,;.!?](?=\s|$)|[。！？；，、\n]")
SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_HIRAGANA = re.compile(r"[\u3040-\u309f]+")
_GRAMMAR_SIGNS = frozenset("的了是在吗呢吧几谁什么哪个和は")
# Copulas recognised by accent or position: Italian "è", Portuguese "é", and the dash between nouns
# in Cyrillic.
_IS = re.compile("(?<!\\w)[èéÈÉ](?!\\w)|(?<=[\u0430-\u045f] )[—–](?= )")
_LETTERS = re.compile(r"[^\W\d_]+")
_NAMED = re.compile(r"\b[^\W\d_a-z]\w*")  # Candidates: small letters of other scripts are none.
_OWNER = re.compile(r"([^\W\d_]+)['’]s\b")
COPULAS = listed("copula")
DEFINITE = listed("definite")
DEICTIC = listed("deictic")
OPEN = listed("open")
SELF = listed("self")
OWN = listed("own")
ASKING = listed("asking")
_BEFORE = listed("before")
NEGATIONS = frozenset({"not", "no", "never"})
_FUNCTION = listed("function") | COPULAS | DEFINITE
CALENDAR = listed("dates") | {*WEEKDAYS, *(day + "s" for day in WEEKDAYS), *MONTHS}
_COUNTED = listed("calendar") | CALENDAR | {*COUNTED, "am", "pm"}


class Phrases:
    """The words and phrases of one section, found in folded text.

    A pattern with hundreds of phrases is slow, so the words of the text are looked up first.
    """

    def __init__(self, section: str) -> None:
        found = listed(section)
        self._bare = frozenset(word for word in found if SPACELESS.search(word))
        self._firsts = frozenset(word.partition(" ")[0] for word in found - self._bare)
        self._runs: dict[str, list[frozenset[str]]] = {}
        for phrase in found - self._bare:
            first, *rest = _LETTERS.findall(phrase)
            self._runs.setdefault(first, []).append(frozenset(rest))
        spaced = rf"(?<!\w)(?:{any_of(found - self._bare)})(?!\w)"
        # No alternative may be empty, because it would match every text.
        either = filter(None, (spaced, any_of(self._bare)))
        self._pattern = re.compile("|".join(either), re.IGNORECASE)

    def may_be_in(self, said: frozenset[str], text: str) -> bool:
        """Return whether a text with these words may have any of the phrases."""
        if not self._firsts.isdisjoint(said):
            return True
        return not text.isascii() and any(word in text for word in self._bare)

    def are_in(self, said: frozenset[str], text: str) -> bool:
        """Return whether a text with these words has any of the phrases."""
        return self.may_be_in(said, text) and self._pattern.search(text) is not None

    def may_be_said(self, runs: frozenset[str], text: str) -> bool:
        """Return whether a text with these runs of letters, in lower case, may have a phrase.

        Searching a text takes longer than all the rest, so it must have every word of a phrase.
        """
        if not text.isascii():  # There, a letter may be equal to another one but for case.
            return True
        return any(rest <= runs for first in self._runs.keys() & runs for rest in self._runs[first])

    def are_said(self, runs: frozenset[str], text: str) -> bool:
        """Return the same as `are_in` for the runs of letters of a text in lower case."""
        return self.may_be_said(runs, text) and self.are_in(runs, text)

    def cut(self, text: str) -> str:
        """Return a text without the phrases."""
        return self._pattern.sub(" ", text)


_CHANGE, _TURN, _END = map(Phrases, ("change", "turn", "end"))
_PAST, _AGO, _DOUBT = map(Phrases, ("past", "ago", "doubt"))


class Statement(NamedTuple):
    """A short text: its words in order, and their classes.

    `owners` own something: "Anna's rent". `news` is the text without accents and words of change:
    "now", "moved", "no longer".
    """

    words: tuple[str, ...]
    named: frozenset[str]
    owners: frozenset[str]
    news: str
    is_change: bool
    is_past: bool
    is_doubtful: bool

    @property
    def is_so(self) -> bool:
        """Whether it is about the present: neither doubtful nor about an earlier time."""
        return not self.is_past and not self.is_doubtful

    def may_be_rival(self, other: Statement) -> bool:
        """Return whether both begin or end alike, as rival frames do; most pairs do not.

        Rival frames have all words in common but those of a value. So of long statements the first
        or the last words are equal, half as many as must be common.
        """
        one, two = self.words, other.words
        half = max(2, (max(len(one), len(two)) - VALUE_WORDS_MAX + 1) // 2)
        return one[:half] == two[:half] or one[-half:] == two[-half:]


def statement_of(text: str) -> Statement | None:
    """Return a text as a statement; None if it is long, a question, or has a web address."""
    return None if len(text) > CHARS_MAX else _short_statement(text)


@lru_cache(STATEMENTS_KEPT)
def _short_statement(text: str) -> Statement | None:
    if "://" in text or "?" in text or "？" in text:
        return None
    read = read_statement(text)
    return read if _has_few_clauses(read.news) else None


def _has_few_clauses(news: str) -> bool:
    """Return whether a text has few clauses with a topic; most texts have few of any kind."""
    parts = _CLAUSE.split(news)
    if len(parts) <= CLAUSES_MAX:
        return True
    return sum(any(topical(chunk)[0] for chunk in part.split()) for part in parts) <= CLAUSES_MAX


@lru_cache(STATEMENTS_KEPT)
def asked_of(question: str) -> Statement | None:
    """Return a question in the form of a statement; None if it is about an earlier time."""
    if len(question) > CHARS_MAX:
        return None
    read = read_statement(question)
    return None if read.is_past or not _BEFORE.isdisjoint(read.words) else read


def read_statement(text: str) -> Statement:
    """Return a text of any length in the form of a statement."""
    return _read_short(text) if len(text) <= CHARS_MAX else _read(text)


def _read(text: str) -> Statement:
    plain = text
    if not text.isascii():
        plain = "".join(_bare(sign) for sign in _IS.sub("=", text))
    said = frozenset(_LETTERS.findall(plain.lower()))
    is_change = any(it.are_said(said, plain) for it in (_END, _TURN, _CHANGE))
    news = plain
    for phrases in (_END, _TURN, _CHANGE) if is_change else ():
        news = phrases.cut(news) if phrases.may_be_said(said, plain) else news
    return Statement(
        words=tuple(word_sequence(fold(news))),
        named=frozenset(fold(word) for word in _NAMED.findall(news) if word[0].isupper()),
        owners=frozenset(
            stem
            for name in _OWNER.findall(plain)
            if name.lower() not in DEICTIC
            for stem in words(name)
        ),
        news=news,
        is_change=is_change,
        is_past=_PAST.are_said(said, plain) or (not is_change and _AGO.are_said(said, plain)),
        is_doubtful=_DOUBT.are_said(said, plain),
    )


_read_short = lru_cache(STATEMENTS_KEPT)(_read)


def _bare(sign: str) -> str:
    """Return a letter without its accent; kana and Hangul stay as they are."""
    return unicodedata.normalize("NFKD", sign)[0] if sign < ACCENTED_END else sign


@lru_cache(CHUNKS_KEPT)
def topical(chunk: str) -> tuple[tuple[str, ...], bool]:
    """Return the topical stems of a chunk, and whether one of them is a number.

    Scripts without spaces give pairs of characters, without those with a grammatical character.
    """
    plain = fold(chunk).strip(".,;:!?\"'()")
    if plain in _FUNCTION:
        return (), False
    if SPACELESS.search(plain):
        stems = [word for word in words(chunk) if len(units(word)) != 1]
        stems = [
            it for it in stems if _GRAMMAR_SIGNS.isdisjoint(it) and not _HIRAGANA.fullmatch(it)
        ]
    else:
        stems = [word for word in words(chunk) if word not in STOP and word not in NEGATIONS]
    return tuple(stems), any(map(is_number, stems))


def word_sequence(plain: str) -> list[str]:
    """Return the words of folded text in order; the characters in scripts without spaces."""
    found: list[str] = []
    for word in _WORD.findall(plain):
        bare = not word.isascii() and SPACELESS.search(word)
        found += _SIGN.findall(word) if bare else [word.rstrip(".,:/-") or word]
    return found


# -- frames ----------------------------------------------------------------------------------------


def _is_role(words: Sequence[str]) -> bool:
    """Return whether words name a role that only one can have: "is the head chef"."""
    return words[0] in COPULAS and words[1] in DEFINITE and any(map(is_topical, words))


@lru_cache(STATEMENTS_KEPT)
def is_number(word: str) -> bool:
    """Return whether a word has a digit, or is a numeral or a word of the calendar."""
    return any(sign.isdigit() for sign in word) or word in _COUNTED


@lru_cache(STATEMENTS_KEPT)
def is_topical(word: str) -> bool:
    """Return whether a word carries a topic."""
    return word not in _FUNCTION and any(stem not in STOP for stem in words(word))


FRAME_SIZES = (2, 3, 4, 6, 8, 12)
"""Numbers of opening words by which a statement is indexed. Two statements of one frame agree in at
least one; each costs a row of the index."""


def frame_keys(said: Sequence[str]) -> list[str]:
    """Return the index keys that statements of the same frame share, by the words of one."""
    keys = [" ".join(said[:size]) for size in FRAME_SIZES if size < len(said)]
    for at in range(1, min(VALUE_WORDS_MAX, len(said) - 2) + 1):
        if _is_role(said[at:]):
            keys.append("… " + " ".join(said[at:]))
            break
    return keys


# -- titles ----------------------------------------------------------------------------------------

TITLE_CHARS_MAX = 100  # longer than most titles of works and encyclopedia entries
TITLE_WORDS_MAX = 14

_COLON = re.compile(r":\s+(?=\S)")
_HEADING = re.compile(r"\s*#{1,6}[ \t]+(\S[^\n]*?)[ \t#]*\n\s*(?=\S)")
_TITLE_WORD = re.compile(r"[^\W_][\w'’&.-]*")
_LEADING = re.compile(r"[\"“”'‘’(\[*\s]*(?:the|a|an)?\s*[\"“”'‘’*]*", re.IGNORECASE)
_SMALL = re.compile(
    "a|an|and|as|at|by|de|del|der|des|di|du|en|et|for|from|in|into|la|le|of|on|or|the|to|und|van|"
    "von|vs|with|y"
)  # words that titles write without a capital, in the languages that do so


class Title(NamedTuple):
    """The position of a title in a text, and the start of the text under it."""

    start: int
    end: int
    body: int


def title_of(text: str, is_ordinary: Callable[[str], bool]) -> Title | None:
    """Return the title of a text, if it surely has one; `is_ordinary` tests words in lower case.

    Of several colons, the one counts after which the text repeats the words before it:
    "Alien: Covenant: Alien: Covenant is a film" is about Alien: Covenant.
    """
    heading = _HEADING.match(text)
    if heading is not None and heading.end(1) - heading.start(1) <= TITLE_CHARS_MAX:
        return Title(*heading.span(1), heading.end())
    first: Title | None = None
    for colon in _COLON.finditer(text, 1, TITLE_CHARS_MAX + 2):
        title = text[: colon.start()]
        start = len(title) - len(title.lstrip())
        if "\n" in title or len(_TITLE_WORD.findall(title)) > TITLE_WORDS_MAX:
            break
        found = Title(start, colon.start(), colon.end())
        if _repeats(text, found):
            return found
        if first is None and _is_titled(title.strip(), is_ordinary):
            first = found
    return first


def _repeats(text: str, title: Title) -> bool:
    """Return whether the text under a title begins with the words of the title."""
    words = text[title.start : title.end].partition(" (")[0].casefold()
    if not words:
        return False
    leading = _LEADING.match(text, title.body)
    places = {title.body, leading.end() if leading else title.body}
    return any(text[at : at + len(words)].casefold() == words for at in places)


def _is_titled(title: str, is_ordinary: Callable[[str], bool]) -> bool:
    """Return whether all words that can be capitalised are, and not all words are ordinary."""
    words = _TITLE_WORD.findall(title.partition(" (")[0])
    if not words or words[0][0].islower():
        return False
    plain = [word for word in words if not _SMALL.fullmatch(word.lower())]
    if any(word[0].islower() for word in plain):
        return False
    return any(word[0].isalpha() and not is_ordinary(word.lower()) for word in plain)


_PART = r"[^\W_][\w'’&.-]*"
_OPENING = re.compile(
    rf"(?:The |An? )?(?P<phrase>{_PART}(?: {_PART}){{0,5}}?) (?:is|are|was|were|has|had) "
    rf"|(?P<name>(?=[^\Wa-z]){_PART}(?: (?=[^\Wa-z]){_PART}){{1,4}}) [a-z]+(?:s|ed) "
)


def opening_of(text: str) -> str:
    """Return the words of a statement before its verb; empty if there are none.

    "basketball was created in …" is about basketball, which is not a name. An opening that names
    nothing by itself ("it", "my") is not a subject.
    """
    match = _OPENING.match(text)
    phrase = (match["phrase"] or match["name"]) if match is not None else ""
    return "" if not phrase or phrase.split()[0].lower() in STOP else phrase
