"""Answer signs: what a later text has in common with an older answer to a question.

    "Where do I live?"
    "I live in Hamburg."            ──▶  signs of the pair  ──▶  probability, with the words read
    "Finally settled in Lisbon!"         (kept, met, told, near)   in order (`answer_network.py`)

*Kept*: how much of the question the later text keeps. *Met*: whether it has a value of the same
kind as the older text: a number, a date, a person, a place, a name. *Told*: as news, as the end of
the older value, as a doubt, as the past. *Near*: how similar the texts are in meaning, how rare the
shared words are among the other texts found, and whether another text is nearer. No sign decides
alone; `recall/answer_network.py` weighs them.

A1  Both the whole text and its best clause are compared: "Surprise, I like olives now."
A2  Only closed classes of words (`statement_words.txt`) are known per language.
A3  Equal questions and texts give equal signs, whatever the embedder.
A4  A text that adds nothing to the older one, or repeats it without news, is never a new answer,
    nor is a text without a name that the question has and the older text lacks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.language.proper_names import TOWNS, is_given
from worlddb.language.rival_frames import is_rival
from worlddb.language.statement import (
    CALENDAR,
    COPULAS,
    SELF,
    Phrases,
    Statement,
    common_start,
    listed,
    read_statement,
    topical,
)
from worlddb.language.text_tokens import COUNTED
from worlddb.language.word_forms import fold

READINGS_KEPT = 4_096  # texts cached: a question compares the same few hits again
KIND_NEAR = 0.5  # "on Monday", "on the 4th"; "Ana", "Frau Kern": perhaps one kind of answer
CHUNKS_KEPT = 16_384  # words cached, as written: most come up again in other texts
LABEL_CHARS_MAX = 30  # "Codename: Heron", "New number, everyone: 555-9876"
LINK_MIN = 0.1  # a weaker link counts as none
LINK_SIGNS = "link", "nearest", "nearer"
VECTOR_SIGNS = "near question", "near older", "older near question", "nearer than others"

_WAS, _NOT = map(listed, ("was", "not"))
_NEWS = listed("change")
_SINCE, _LATELY, _INTENT = map(Phrases, ("since", "lately", "intent"))
_NEWLY, _TURNED, _ENDED, _THEN = map(Phrases, ("newly", "turned", "ended", "then"))
_ACQUIRED = Phrases("acquired")
_CLAUSE = re.compile(r"[,;.!?](?=\s|$)|[。！？；，、\n]|\s[-–—]\s")
_SENTENCE = re.compile(r"(?<!\b[A-Z][a-z])[;.!?](?=\s|$)|[。！？；\n]")  # not after "Dr."
_CHUNK = re.compile(r"\b[jldnmtsc]['’](?=\w)|[^\s,、，:：]+", re.IGNORECASE)  # l'heure, j'habite
_MARKS = ".,;:!?\"'()¿¡«»“”…-"
_LETTERS = re.compile(r"[^\W\d_]+")
_GENITIVE = re.compile(r"'s?$")
_NAMES = frozenset({"name", "person", "place"})
_COUNTED = frozenset({"date", "number"})
_SURE_KINDS = frozenset({"date", "person", "place"})


class _SignWord(NamedTuple):
    """A folded word, its topical stems, and its kind.

    The kind is "date", "number", "person", "place", "name" or "word".
    """

    form: str
    stems: tuple[str, ...]
    kind: str


class _SignText(NamedTuple):
    """A text as a statement and as words; `content` are the topical words, `forms` all words."""

    text: str
    said: Statement
    words: tuple[_SignWord, ...]
    content: tuple[_SignWord, ...]
    stems: frozenset[str]
    forms: frozenset[str]
    told: dict[str, bool]


@lru_cache(READINGS_KEPT)
def _reading(text: str) -> _SignText:
    words: list[_SignWord] = []
    for sentence in _SENTENCE.split(text):
        chunks = _CHUNK.findall(sentence)
        for at, chunk in enumerate(chunks):
            opens = at == 0 and (len(chunks) < 2 or fold(chunks[1]) not in COPULAS)
            words += _words(chunk, opens=opens)
    forms = frozenset(form for word in words for form in (word.form, word.form.partition("'")[0]))
    said, plain = read_statement(text), fold(text)
    return _SignText(
        text=text,
        said=said,
        words=tuple(words),
        content=tuple(word for word in words if word.stems),
        stems=frozenset(stem for word in words for stem in word.stems),
        forms=forms,
        told=_told(said, forms, plain),
    )


def _told(said: Statement, forms: frozenset[str], plain: str) -> dict[str, bool]:
    """Return whether a text is news, an end, a doubt, or about the past."""
    runs = frozenset(_LETTERS.findall(plain))

    def has(phrases: Phrases) -> bool:
        return phrases.may_be_said(runs, plain) and phrases.are_in(forms, plain)

    end = said.is_end or has(_ENDED)
    turn = end or said.is_turn or has(_TURNED)
    return {
        "change": turn or said.is_change or has(_NEWLY),
        "turn": turn,
        "end": end,
        "past": said.is_past,
        "then": has(_THEN),
        "doubt": said.is_doubtful,
        "intent": has(_INTENT),
        "since": has(_SINCE),
        "lately": has(_LATELY),
        "acquired": has(_ACQUIRED),
        "was": not _WAS.isdisjoint(forms),
        "not": not _NOT.isdisjoint(forms),
    }


@lru_cache(CHUNKS_KEPT)
def _words(chunk: str, *, opens: bool) -> tuple[_SignWord, ...]:
    """Return a chunk as one word, or as pairs of characters in a script without spaces.

    None if it is only punctuation.
    """
    form = fold(chunk).strip(_MARKS)
    if not form:
        return ()
    stems, is_number = topical(chunk) if form not in _NEWS else ((), False)
    if len(stems) > 1 and not form.isascii() and not form[0].islower():
        return tuple(_SignWord(it, (it,), "number" if it.isdigit() else "word") for it in stems)
    is_capital = chunk[:1].isupper() and form.partition("'")[0] not in SELF
    bare = _GENITIVE.sub("", form)
    is_named = is_capital and (is_given(bare) or (form.endswith("s") and is_given(form[:-1])))
    kind = "word"
    if form in CALENDAR:
        kind = "date"
    elif is_number and (form in COUNTED or any(map(str.isdigit, form))):
        kind = "number"
    elif is_named:
        kind = "person"
    elif is_capital and bare in TOWNS:
        kind = "place"
    elif is_capital and (not opens or not chunk[1:].islower()):
        kind = "name"
    return (_SignWord(form, stems, kind),)


@lru_cache(READINGS_KEPT)
def _clauses(text: str) -> tuple[_SignText, ...]:
    return tuple(_reading(part) for part in map(str.strip, _CLAUSE.split(text)) if part)


class _OlderAnswer:
    """An older text and a question, with which later texts are compared.

    `keys` are the question's words in the text, `value` its words beyond the question, `known` the
    stems of both.
    """

    def __init__(self, asked: _SignText, old: _SignText) -> None:
        self.asked, self.old = asked, old
        self.known = asked.stems | old.stems
        self.key_stems = asked.stems & old.stems
        self.names_missed = [
            frozenset(word.stems)
            for word in asked.content[1:]
            if word.kind in _NAMES and old.stems.isdisjoint(word.stems)
        ]
        self.keys = [word for word in asked.content if self.key_stems.intersection(word.stems)]
        self.value = [word for word in old.content if asked.stems.isdisjoint(word.stems)]

    def is_told_more(self, new: _SignText) -> bool:
        """Return whether a text adds something to the older one, about the names asked for (A4)."""
        if any(new.stems.isdisjoint(stems) for stems in self.names_missed):
            return False
        tells = new.said.is_change or new.said.is_end or not _NOT.isdisjoint(new.forms)
        return tells or not (new.stems <= self.old.stems or self.old.stems <= new.stems)


class _LaterPart:
    """A later text, or a clause of it, compared with the older answer.

    `foreign` are its words that are not known, `lost` the words of the older value that it lacks.
    `kept` is the share of the keys that it has, `value` how well it matches the kind of the older
    value.
    """

    def __init__(self, basis: _OlderAnswer, new: _SignText) -> None:
        self._basis, self.new = basis, new
        self.foreign = [word for word in new.content if basis.known.isdisjoint(word.stems)]
        self.lost = [word for word in basis.value if new.stems.isdisjoint(word.stems)]
        self.kept = _shared(basis.keys, new.stems)
        self.kind, self.value = self._met()

    def _met(self) -> tuple[str, float]:
        """Return the kind of the older value, and how well a new word matches it."""
        kinds = {word.kind for word in self._basis.value}
        lost, new = {word.kind for word in self.lost}, {word.kind for word in self.foreign}
        self.is_same_kind = not _SURE_KINDS.isdisjoint(lost & new)
        for kind, of in (("number", _COUNTED), ("name", _NAMES)):
            if kinds & of:
                if lost & new & of:
                    return kind, 1.0
                return kind, KIND_NEAR * bool(lost & of and new & of)
        return "word", 0.0


class _Links:
    """The rarity of stems among the texts found."""

    def __init__(self, texts: Sequence[_SignText]) -> None:
        size = max(1, len(texts))
        counts = Counter(chain.from_iterable(it.stems for it in texts))
        self._worth = {stem: 1.0 - max(0, count - 2) / size for stem, count in counts.items()}

    def strength(self, basis: _OlderAnswer, new: _SignText) -> float:
        """Return the strength of the link between a text and an older answer.

        A stem counts 1 if at most two texts have it, and 0 if all have it.
        """
        return sum(map(self._worth.__getitem__, basis.known & new.stems))


class _Basis(NamedTuple):
    """An older answer, the links of all texts to it, the two strongest, and the usual nearness."""

    older: _OlderAnswer
    strengths: list[float]
    first: float
    second: float
    usual: float


class AnswerCompany:
    """A question and the texts found for it, compared with each other by position.

    `vectors` are unit vectors of the question and of each text, if any. Without BLAS, whose threads
    would wait.
    """

    def __init__(
        self, question: str, texts: Sequence[str], vectors: NDArray[np.float32] | None
    ) -> None:
        self._asked = _reading(question)
        self._texts = [_reading(text) for text in texts]
        self._links = _Links(self._texts)
        self._vectors = vectors
        self._near_by_row: dict[int, list[float]] = {}
        self._bases: dict[int, _Basis] = {}

    def _near(self, row: int) -> list[float]:
        """Return the nearness of all vectors to one of them; the question is row 0."""
        assert self._vectors is not None
        found = self._near_by_row.get(row)
        if found is None:
            near = np.vecdot(self._vectors, self._vectors[row])
            found = self._near_by_row[row] = near.tolist()
        return found

    def nearest(self, pairs: Iterable[tuple[int, int]], count: int) -> list[tuple[int, int]]:
        """Return the pairs whose later texts mean most of what question and older text mean."""
        found = list(pairs)
        if self._vectors is None:
            return found
        if len(found) > count:
            asked = self._near(0)
            found.sort(key=lambda it: -asked[it[1] + 1] - self._near(it[0] + 1)[it[1] + 1])
        return found[:count]

    def likeness(self, old: int, new: int) -> list[float] | None:
        """Return how much two texts and the question have in common; None if `new` adds nothing.

        It is quickly told, and most pairs are out of the question by it.
        """
        basis = self._basis(old)
        later = self._texts[new]
        if not basis.older.is_told_more(later):
            return None
        told = later.told
        return [
            *self._link_signs(basis, new),
            *self._vector_signs(basis, old, new),
            _cosine(basis.older.old, later),
            _cosine(self._asked, later),
            float(told["change"]),
            float(told["doubt"]),
        ]

    def is_linked(self, old: int, new: int) -> bool:
        """Return whether a text shares a topical word with the question or the older text."""
        return not self._basis(old).older.known.isdisjoint(self._texts[new].stems)

    def signs(self, old: int, new: int) -> dict[str, float]:
        """Return the signs of a pair by name, each from 0 to 1."""
        basis = self._basis(old)
        older, later = basis.older, self._texts[new]
        whole = part = _LaterPart(older, later)
        clauses = _clauses(later.text)
        if len(clauses) > 1:
            part = max(
                (_LaterPart(older, clause) for clause in clauses),
                key=lambda it: it.kept + it.value + _cosine(older.old, it.new),
            )
        links = self._link_signs(basis, new)
        near = self._vector_signs(basis, old, new)
        return {
            **_topic_signs(older, whole, part),
            **_news_signs(older, whole),
            **_frame_signs(older, whole),
            **_value_signs(older, whole, part),
            **dict(zip(LINK_SIGNS, links, strict=True)),
            **dict(zip(VECTOR_SIGNS if near else (), near, strict=True)),
        }

    def _basis(self, old: int) -> _Basis:
        found = self._bases.get(old)
        if found is None:
            older = _OlderAnswer(self._asked, self._texts[old])
            strengths = [self._links.strength(older, it) for it in self._texts]
            best = sorted((it for at, it in enumerate(strengths) if at != old), reverse=True)
            usual = 0.0
            if self._vectors is not None:
                usual = sum(self._near(0)[1:]) + sum(self._near(old + 1)[1:])
            best = [*best, 0.0, 0.0]
            found = self._bases[old] = _Basis(older, strengths, best[0], best[1], usual)
        return found

    def _link_signs(self, basis: _Basis, new: int) -> list[float]:
        """Return how strongly two texts are linked, and whether another one is linked more."""
        strength = basis.strengths[new]
        best = basis.second if strength == basis.first else basis.first
        nearest = strength / max(strength, best, LINK_MIN)
        return [min(1.0, strength / 3), nearest, float(strength > best)]

    def _vector_signs(self, basis: _Basis, old: int, new: int) -> list[float]:
        """Return the similarity in meaning, and how much it exceeds that of the other texts."""
        if self._vectors is None:
            return []
        question, older = self._near(0), self._near(old + 1)
        asked, told, before = question[new + 1], older[new + 1], question[old + 1]
        others = len(self._texts) - 2
        usual = basis.usual - asked - told - before - older[old + 1]
        return [asked, told, before, asked + told - (usual / others if others else 0.0)]


def _shared(words: Sequence[_SignWord], stems: frozenset[str]) -> float:
    """Return the share of words with one of the stems."""
    return sum(not stems.isdisjoint(word.stems) for word in words) / max(1, len(words))


def _cosine(one: _SignText, other: _SignText) -> float:
    """Return the similarity of two texts by their shared stems."""
    shared = len(one.stems & other.stems)
    return shared / sqrt(len(one.stems) * len(other.stems)) if shared else 0.0


def _topic_signs(basis: _OlderAnswer, whole: _LaterPart, part: _LaterPart) -> dict[str, float]:
    """Return how much of the question the later text keeps."""
    asked, old, new = basis.asked, basis.old, whole.new
    lost_names = [
        it for it in asked.content[1:] if it.kind in _NAMES and new.stems.isdisjoint(it.stems)
    ]
    return {
        "older covers": _shared(asked.content, old.stems),
        "covers": _shared(asked.content, new.stems),
        "kept": whole.kept,
        "name lost": float(bool(lost_names)),
        "like older": _cosine(old, new),
        "like question": _cosine(asked, new),
        "older like question": _cosine(asked, old),
        "part kept": part.kept,
        "part like question": _cosine(asked, part.new),
        "part like older": _cosine(old, part.new),
        "short": 1 / max(1, len(new.content)),
        "labelled": float(0 < new.text.find(":") < LABEL_CHARS_MAX),
    }


def _value_signs(basis: _OlderAnswer, whole: _LaterPart, part: _LaterPart) -> dict[str, float]:
    """Return whether the later text has a value that may replace the older one."""
    others = [word for word in part.foreign if word.kind == "word"]
    return {
        "same kind": float(whole.is_same_kind),
        "number missing": (1 - whole.value) * (whole.kind == "number"),
        "name missing": (1 - whole.value) * (whole.kind == "name"),
        "told": 1 - len(whole.lost) / max(1, len(basis.value)),
        "nothing new": float(not whole.foreign),
        "foreign": len(whole.foreign) / max(1, len(whole.new.content)),
        "part value": part.value,
        "part far": len(others) / max(1, len(part.new.content)),
        "part fits": part.kept * part.value,
        "asks number": float(whole.kind == "number"),
        "asks name": float(whole.kind == "name"),
    }


def _news_signs(basis: _OlderAnswer, whole: _LaterPart) -> dict[str, float]:
    """Return whether the later text is news, an end, a doubt or past, and the older one is not."""
    before, now = basis.old.told, whole.new.told
    found = {name: float(is_so and not before[name]) for name, is_so in now.items()}
    return found | {"end of told": found["end"] * (len(whole.lost) < len(basis.value))}


def _frame_signs(basis: _OlderAnswer, whole: _LaterPart) -> dict[str, float]:
    """Return which words replace which, where both texts have the same structure."""
    old, new, foreign = basis.old, whole.new, set(whole.foreign)
    left, right = [it.form for it in old.words], [it.form for it in new.words]
    start = common_start(left, right)
    end = common_start(left[start:][::-1], right[start:][::-1])
    replaced = old.words[start : len(left) - end]
    is_other = bool(start + end) and not foreign.isdisjoint(new.words[start : len(right) - end])
    lost_key = is_other and any(basis.key_stems.intersection(it.stems) for it in replaced)
    share = (start + end) / max(1, len(left))
    return {
        "same share": (start + end) / max(1, len(right)),
        "other key": share * lost_key,
        "other value": share * (is_other and not lost_key and any(it.stems for it in replaced)),
        "rival": float(old.said.may_be_rival(new.said) and is_rival(old.said, new.said)),
    }
