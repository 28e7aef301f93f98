"""Prose: the English word lists, the grammar's patterns, masked text, and the context of claims.

    listed("words", "never")       a section of one of the word lists beside this module
    Patterns("claims").MOVED       a pattern of `grammar.txt`, compiled when it is first used
    plain_prose(text)              the text with everything but prose masked
    sentences_in(plain, mentions)  the sentences, and the possible starts of claims

    "Actually, I now live in Oslo, and I love it."     I live in Rome. Just kidding!
     opening   ╰─── the claim ───╯╰── the rest ──╯     ╰─ the claim ─╯╰ withdrawal ─╯

The modules of this pack are language-independent in form; all English words are in the text files.

P1  Code, addresses, headings, tables, tags and labels have capitals and numbers with another
    meaning. Each is masked by as many `BLOT`s, so that offsets stay the same.
P2  A text in another language is not read, because capitals, or a word such as "die", have another
    meaning there. In doubt a text is foreign.
P3  A sentence with a question, supposition, report, plan, or "sometimes" states nothing certain
    about now; nor does one with an unknown continuation. `hedges.txt` has the words.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, lru_cache, reduce
from importlib.resources import files
from itertools import dropwhile
from operator import or_
from typing import NamedTuple

from worlddb.language.language_reader import Dated, Mention
from worlddb.language.proper_names import known
from worlddb.language.text_tokens import MONTHS, NUMBERS, WEEKDAYS
from worlddb.language.word_forms import any_of, sections, words_of


def listed(name: str, section: str) -> frozenset[str]:
    """Return a section of a word list of this pack."""
    return words_of("language.english", f"{name}.txt", section)


GIVEN = known().told - known().doubtful
"""Given names that are not also ordinary words."""
NEVER = listed("words", "never")
GIVEN_PERHAPS = known().doubtful - NEVER  # no June, no August
GIVEN_NAMES = GIVEN | GIVEN_PERHAPS

STARTERS = listed("words", "starters")
VOCABULARY = listed("words", "vocabulary")
ORDINARY = STARTERS | VOCABULARY
SMALL = listed("words", "small")
PEOPLES = listed("words", "peoples")
_ENDINGS = tuple(listed("words", "endings"))

BRANDS = listed("organisations", "brands")
PHRASES = listed("organisations", "phrases")
ACRONYMS = listed("organisations", "acronyms")
HEADS = listed("organisations", "heads")

TITLES_SHORT = listed("roles", "titles short")
TITLES = TITLES_SHORT | listed("roles", "titles")
PERSONS = listed("roles", "persons")
MANY = listed("roles", "many")
BREEDS = listed("roles", "breeds")
PETS = BREEDS | listed("roles", "pets")
THINGS = listed("roles", "things")

UPPER = "".join(chr(code) for code in range(0x41, 0x250) if chr(code).isupper())
BLOT = "\x00"  # replaces each character of masked text
VAGUE = frozenset(("couple", "few", "several", "zero"))

_PACK = "language.english"
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_ENTRY = re.compile(r"(\w+) (?:([ims]+) )?= (.*)")
_REFERENCE = re.compile(r"%((?:\w+/)?[A-Za-z_][\w ,-]*)%")


def looks_ordinary(word: str) -> bool:
    """Return whether a word, in lower case, is ordinary: by the list or by its ending."""
    if word in ORDINARY or (word.endswith("s") and word[:-1] in VOCABULARY):
        return True
    if word.endswith("ed") and word[:-1] in ORDINARY:  # noted
        return True
    return len(word) > 5 and word.endswith(_ENDINGS)


def of_a_people(word: str) -> bool:
    """Return whether a word, in lower case, names a nation, language or faith."""
    return word in PEOPLES or (word.endswith("s") and word[:-1] in PEOPLES)


class Patterns:
    """The patterns of one section of `grammar.txt`, by name."""

    def __init__(self, section: str) -> None:
        self._section = section

    def __getattr__(self, name: str) -> re.Pattern[str]:
        """Return the pattern with a name, compiled on first use."""
        found = _entries()[self._section].get(name)
        if found is None:
            raise AttributeError(f"grammar.txt: no pattern {name} in [{self._section}]")
        flags, source = found
        flag = reduce(or_, (_FLAGS[letter] for letter in flags), re.NOFLAG)
        pattern = re.compile(_expanded(source, self._section), flag)
        setattr(self, name, pattern)
        return pattern


_DATES = Patterns("date_phrases")
_ASCII_LOWER = {code: code + 32 for code in range(65, 91)}


def hinted_dates(plain: str) -> str | None:
    """Return a masked text in lower case if it may have a date; otherwise None."""
    low = plain.lower()
    if len(low) != len(plain):  # A few capitals are longer in lower case.
        low = plain.translate(_ASCII_LOWER)
    return None if _DATES.HINT.search(low) is None else low


def dates_of(plain: str, said: date) -> list[Dated]:
    """Return the dates of a masked text; the date grammar is loaded by the first text with one."""
    low = hinted_dates(plain)
    if low is None:
        return []
    from worlddb.language.english.date_phrases import dates_in

    return dates_in(plain, said, low)


@cache
def _entries() -> dict[str, dict[str, tuple[str, str]]]:
    """Return the flags and the source of each entry, by section and name."""
    text = files(f"worlddb.{_PACK}").joinpath("grammar.txt").read_text(encoding="utf-8")
    found: dict[str, dict[str, tuple[str, str]]] = {}
    section: dict[str, tuple[str, str]] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("[") and line.endswith("]"):
            section = found.setdefault(line[1:-1], {})
        elif line.startswith("    "):
            flags, source = section[name]
            section[name] = flags, source + line[4:]
        elif entry := _ENTRY.fullmatch(line):
            name = entry[1]
            section[name] = entry[2] or "", entry[3]
    return found


def _expanded(source: str, section: str) -> str:
    return _REFERENCE.sub(lambda match: _piece(match[1], section), source)


def _piece(name: str, section: str) -> str:
    """Return the pattern of a reference: an entry, a word list, a frame or a computed piece."""
    file, _, part = name.rpartition("/")
    if file == "frames":
        return "|".join(map(_frame, sections(_PACK, "frames.txt")[part]))
    if file:
        words = words_of(_PACK, f"{file}.txt", part)
        last = frozenset(word[:-1] for word in words if word.endswith("$"))
        if not last:
            return any_of(words)
        return rf"(?:{any_of(last)})(?=\s*(?:[.!?…]|\Z))|(?:{any_of(words)})(?!\w)"
    for where in (section, "pieces"):
        if name in _entries()[where]:
            return _expanded(_entries()[where][name][1], where)
    return _computed()[name]


def _frame(tokens: tuple[str, ...]) -> str:
    """Return the pattern of one line of `frames.txt`."""
    pattern = ""
    for token in tokens:
        if token.startswith("{"):
            pattern += _piece(token[1:-1], "pieces")
            continue
        piece = rf"\s+(?:{any_of(tuple(token.strip('()').split('|')))})"
        pattern += f"(?:{piece})?" if token.startswith("(") else piece
    return pattern


@cache
def _computed() -> dict[str, str]:
    relations = sections(_PACK, "relations.txt")
    preferences = relations["preferences"]
    words = {
        "things": {word for row in relations["things"] for word in row[2:]},
        "persons": {word for row in relations["things"] for word in row[2:] if row[0] == "person"},
        "ways": {way for row in preferences for way in row[2].split(",")},
        "preferred": {thing for row in preferences for thing in row[3].split(",")},
        "months": set(MONTHS),
        "weekdays": set(WEEKDAYS),
        "counts": {word for word in NUMBERS if word not in VAGUE},
    }
    return {"upper": UPPER, "blot": r"\x00"} | {
        name: any_of(frozenset(found)) for name, found in words.items()
    }


_P = Patterns("prose")
# What is masked, and characters without which it cannot occur: most texts have none of them.
_NO_PROSE = (
    *(("FENCED", ("```", "~~~")), ("CODE", ("`",)), ("LINK", ("://", "www.")), ("HANDLE", ("@",))),
    *(("TAG", ("#",)), ("ELEMENT", ("<",)), ("IDENTIFIER", ("_",)), ("PATH", ("/", "\\"))),
    ("CALL", ("(",)),
)
_HEADING_WORDS_MIN = 3  # fewer capitalised words in a row may be a name alone on its line

_ENGLISH = listed("words", "english")
_FOREIGN = listed("words", "foreign")
_LATIN_MAX = 0x250  # letters beyond are of another script
_READ_MAX = 4_000  # characters of a text that its language is guessed from
_SHORT = 10  # words; a shorter English text may lack all of the commonest words

_CONTEXT = Patterns("claim_context")
SENTENCE_CHARS_MAX = 400  # longer ones are lists or lack their full stops

DOUBTS = listed("hedges", "doubts")
_FELT = listed("hedges", "felt")
_REMARKS = _FELT | listed("hedges", "remarks")
_BY_NAMES = frozenset(("by", "near", "off", "on", "with"))


def reads_as_english(text: str) -> bool:
    """Return whether `text` is in English with enough certainty for the rules."""
    read = _P.OF_NAMES.sub("", text[:_READ_MAX]).replace("’", "'")
    written = _P.WORD_OR_SHORT_FORM.findall(read)
    if not written:
        return False
    words = list(map(str.lower, written))
    if not text.isascii() and sum(ord(word[0]) >= _LATIN_MAX for word in words) * 4 > len(words):
        return False
    english = sum(map(_ENGLISH.__contains__, words))
    foreign = sum(map(_FOREIGN.__contains__, words))
    # Names belong to no language.
    plain = [word for word in written if word[0].islower()] or words
    if foreign >= max(english, 1):
        # "Li Na won the chess evening": as many words of another language, which may be names.
        is_tied = foreign == english and sum(word in _FOREIGN for word in plain) == 0
        return is_tied and sum(map(looks_ordinary, plain)) * 2 >= len(plain)
    if len(words) < _SHORT and not english:
        return sum(map(looks_ordinary, plain)) * 2 >= len(plain)
    return english * 10 >= len(plain)


def plain_prose(text: str, *, note: bool = False) -> str:
    """Return a masked text; in a note of the user "the user" becomes "I", "the user's" "my".

    The words are replaced by shorter ones and spaces, so that offsets stay.
    """
    plain = masked(text)
    if not note or "user" not in plain.lower():
        return plain
    plain = _P.POSSESSIVE.sub(lambda match: "my".ljust(len(match[0])), plain)
    return _P.SUBJECT.sub(_as_subject, plain)


def _as_subject(match: re.Match[str]) -> str:
    # A writer who does not capitalise a note does not capitalise its names.
    low = match.start() == 0 and match[0][0].islower()
    return ("i" if low else "I").ljust(len(match[0]))


def masked(text: str) -> str:
    """Return `text` with everything but prose masked, at the same length."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[") and stripped[-1:] in ("}", "]"):
        return BLOT * len(text)
    for name, signs in _NO_PROSE:
        if any(sign in text for sign in signs):
            text = getattr(_P, name).sub(_blot, text)
    if _P.DOTTED.search(text) is not None:
        text = _P.ADDRESS.sub(_blot, text)
    if _P.CODE_SIGN.search(text) is not None:
        text = _P.CODE_LINE.sub(_blot, text)
    if "**" in text or "__" in text:
        text = _P.LABEL.sub(_blot, text)
    return _P.LINE.sub(_without_headings, text)


def in_quotes(plain: str, position: int) -> bool:
    """Return whether a position is inside quotation marks, so that somebody else is speaking."""
    places, states = _quoted(plain)
    number = bisect_right(places, position - 1)
    return number > 0 and states[number - 1]


@lru_cache(maxsize=8)
def _quoted(plain: str) -> tuple[list[int], list[bool]]:
    """Return the positions of quotation marks and lines, and whether each opens a quotation."""
    places: list[int] = []
    states: list[bool] = []
    straight = curved = False
    for match in _P.QUOTE_OR_LINE.finditer(plain):
        mark = match[0]
        straight = (mark == '"') != straight if mark != "\n" else False
        curved = mark == "“" or (curved and mark == '"')
        places.append(match.start())
        states.append(straight or curved)
    return places, states


def _blot(match: re.Match[str]) -> str:
    return BLOT * (match.end() - match.start())


def _without_headings(match: re.Match[str]) -> str:
    """Mask a line in which every word is capitalised: its capitals do not mark names."""
    line = match[0]
    ended = line.rstrip().endswith((".", "!", "?", ",", ";"))
    words = 0
    for word in _P.WORD.finditer(line):
        if word[0] not in SMALL:
            if not word[0][0].isupper():
                return line
            words += 1
        elif ended and word[0] == "is":  # "The CEO of Acme is Ingrid Solheim." is a sentence.
            return line
    least = _HEADING_WORDS_MIN + 2 * ended
    return BLOT * len(line) if words >= least else line


class ClaimSentence(NamedTuple):
    """A sentence from `start` to `end` of a masked text, and the possible starts of claims."""

    start: int
    end: int
    begins: tuple[int, ...]


class ClaimRest(NamedTuple):
    """The end of a claim: position, beginning, whether it has a duration, and "since"."""

    end: int
    since: date | None
    lasting: bool
    bounded: bool


def sentences_in(plain: str, mentions: Sequence[Mention]) -> Iterator[ClaimSentence]:
    """Yield the sentences of a masked text; a full stop in a name does not end one."""
    inside = {place for each in mentions for place in range(each.start, each.end)}
    start = 0
    for match in _CONTEXT.ENDS.finditer(plain):
        stop = match.start()
        if stop in inside and match.end() - 1 in inside:
            continue
        if match[0] == "." and _CONTEXT.SHORTENED.search(plain, max(0, stop - 8), stop):
            if _CONTEXT.SOMETHING.search(plain, match.end()) is not None:
                continue
        yield from _sentence(plain, start, match.end())
        start = match.end()
    yield from _sentence(plain, start, len(plain))


def _sentence(plain: str, start: int, end: int) -> Iterator[ClaimSentence]:
    while start < end and plain[start].isspace():
        start += 1
    while end > start and plain[end - 1].isspace():
        end -= 1
    if not 6 <= end - start <= SENTENCE_CHARS_MAX or "?" in plain[start:end]:
        return
    opening = _CONTEXT.OPENING.match(plain, start, end)
    begin = opening.end() if opening else start
    later = list(_CONTEXT.LATER.finditer(plain, begin, end))
    if later and _CONTEXT.FRAME.match(plain, begin, later[0].end()):
        # "As a child, I moved to Rome, but I live in Oslo now."
        later = list(dropwhile(lambda match: "but" not in match[0], later))
    yield ClaimSentence(start, end, (begin, *(match.end() for match in later)))


def is_doubtful(plain: str) -> bool:
    """Return whether words around a claim make it uncertain or not about now."""
    if any(mark in plain for mark in (BLOT, '"', "“")) or _CONTEXT.CONDITION.match(plain):
        return True
    if any(
        each.search(plain) for each in (_CONTEXT.NEGATED, _CONTEXT.PHRASES, _CONTEXT.FOR_A_TIME)
    ):
        return True
    # A capital marks a name: May, Will; but not in a first word before a comma: Sometimes.
    plain = _CONTEXT.FIRST_WORD.sub(lambda match: match[0].lower(), plain)
    plain = _CONTEXT.MADE.sub(" ", plain).replace("’", "'")
    return not DOUBTS.isdisjoint(_CONTEXT.WORDS.findall(plain))


def is_doubtful_rest(plain: str) -> bool:
    """Return whether words after a claim make it uncertain or not about now."""
    # A denial about somebody else does not matter: "My boss is Anna, she never answers".
    if _CONTEXT.OTHERS_DO.match(plain) is not None:
        plain = _CONTEXT.NOT_DOING.sub(" ", plain)
    return _CONTEXT.UNDOING.search(plain) is not None or is_doubtful(plain)


def is_passing(plain: str, sentence: ClaimSentence, begin: int, at: int) -> bool:
    """Return whether a claim from `begin` to `at` is only about a short time or a side activity."""
    before = plain[sentence.start : begin]
    framed = _CONTEXT.SUBJECT.search(before) is None  # "On weekdays, …" without a subject
    if framed and _CONTEXT.ELSEWHERE.match(before) is not None:
        return True
    if _CONTEXT.EVENT.search(plain, begin, at) is not None:
        return False
    if framed and _CONTEXT.PASSING.search(before) is not None:
        return True
    # "As a lecturer, on Fridays" belongs to the lecturer; "and I ski on Sundays" does not.
    beside = _CONTEXT.AS.match(plain, at, sentence.end) is not None
    stop = None if beside else _CONTEXT.CLAUSE_END.search(plain, at, sentence.end)
    end = sentence.end if stop is None else stop.start()
    return bool(_CONTEXT.PASSING.search(plain, at, end) or _CONTEXT.BESIDE.match(plain, at, end))


def sounds_passing(quote: str) -> bool:
    """Return whether words without context may be about a short time only."""
    if _CONTEXT.EVENT.search(quote) is not None:
        return False
    return bool(_CONTEXT.PASSING.search(quote) or _CONTEXT.BESIDE.search(quote))


def is_over(plain: str) -> bool:
    """Return whether words say that something is over, without any other doubt."""
    rest, count = _CONTEXT.OVER.subn(" ", plain)
    return count > 0 and not is_doubtful(rest)


def rest_of(
    plain: str,
    at: int,
    sentence: ClaimSentence,
    dates: Mapping[int, Dated],
    goes_on: Callable[[int], bool],
) -> ClaimRest | None:
    """Return the end of a claim that goes up to `at`; None if it continues in an unknown way.

    `goes_on` says whether the caller knows the continuation.
    """
    since: date | None = None
    lasting = bounded = False
    end = sentence.end
    while True:
        if match := _CONTEXT.AROUND.match(plain, at, end):
            at = match.end()
            continue
        if match := _CONTEXT.LASTING.match(plain, at, end):
            at, lasting = match.end(), True
            continue
        match = _CONTEXT.DATED.match(plain, at, end)
        if match is not None and (dated := dates.get(match.end())) is not None:
            since = dated.last
            bounded |= "since" in plain[at : dated.start]
            at = dated.end
        elif match := _CONTEXT.PAST.match(plain, at, end):
            at = match.end()
        else:
            break
    if _CONTEXT.FULL_STOP.match(plain, at, end):
        return ClaimRest(end, since, lasting, bounded)
    if _CONTEXT.GOES_ON.match(plain, at, end) or _is_remark(plain, at, end) or goes_on(at):
        return ClaimRest(at, since, lasting, bounded)
    return None


def _is_remark(plain: str, at: int, end: int) -> bool:
    """Return whether a sentence ends with a feeling: "I moved to Oslo, tired but happy"."""
    match = _CONTEXT.REMARK.match(plain, at, end)
    if match is None:
        return False
    words = match["remark"].replace("’", "'").split()
    felt = False
    for number, word in enumerate(words):
        named = word[:1].isupper() and number and words[number - 1].lower() in _BY_NAMES
        named |= word[:1].isupper() and number > 1 and words[number - 1][:1].isupper()
        if word.lower().rstrip(",") not in _REMARKS and not named:
            return False
        felt |= word.lower().rstrip(",") in _FELT
    return felt


class Withdrawals:
    """The sentences of a text that take back earlier claims.

    A slip ("Wait no, that's Tom's") takes back the claim directly before it, a confession ("Just
    kidding!") everything said.
    """

    def __init__(self, text: str) -> None:
        text = text.replace("’", "'")
        self._text = text
        self._ends: list[int] = []
        self._starts: list[int] = []
        self._confessed = -1
        for end in _CONTEXT.ENDS.finditer(text):
            start = _CONTEXT.SOMETHING.search(text, end.end())
            if start is None:
                break
            self._ends.append(end.start())
            self._starts.append(start.start())
            if _CONTEXT.CONFESSION.match(text, start.start()) is not None:
                self._confessed = end.start()

    def include(self, at: int, value: str) -> bool:
        """Return whether a claim of `value` that ends at `at` is taken back."""
        if at <= self._confessed:
            return True
        number = bisect_left(self._ends, at)
        if number == len(self._ends):
            return False
        start = self._starts[number]
        if _CONTEXT.WITHDRAWAL.match(self._text, start) is not None:
            return True
        denied = _CONTEXT.NOT_NAMED.match(self._text, start)
        return denied is not None and denied[1] in value
