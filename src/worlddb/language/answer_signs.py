"""Answer signs: the probability that a later text answers a question anew.

    "Where do I live?"
    "I live in Hamburg."            ──▶  signs of the pair  ──▶  probability
    "Finally settled in Lisbon!"         (shared topic, value, other subject, news …)

The signs work in any language. *Kept*: how much of the question the later text keeps, by words and
by the fields of everyday life that words belong to (`everyday_fields.txt`: "settled" and "live"
belong to home). *Met*: whether it has a value of the same kind as the older text: a number, a date,
a person, a place, a name, a word of one field. *Foreign*: whether it is about another person or
thing. *Told*: as news, as the end of the older value, as a doubt, as the past. *Near*: how rare the
shared words are among the other texts found, and whether another text is nearer. No sign decides
alone. A small network weighs them; its numbers are in `answer_signs.json`, with the digest of the
data and the command that fitted them (`python -m bench.answer_change`).

A1  Both the whole text and its best clause are compared: "Surprise, I like olives now."
A2  Only closed classes of words (`statement_words.txt`) and fields are known per language.
A3  Equal questions and texts give equal answers, whatever the embedder.
A4  A text that shares nothing with question and older text, or adds nothing, is never an answer.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.language.proper_names import TOWNS, is_given
from worlddb.language.rival_frames import is_rival
from worlddb.language.statement import (
    CALENDAR,
    COPULAS,
    DEFINITE,
    OWN,
    SELF,
    Phrases,
    Statement,
    common_start,
    listed,
    read_statement,
    topical,
)
from worlddb.language.text_tokens import COUNTED
from worlddb.language.word_forms import fold, sections

READINGS_KEPT = 4_096  # texts cached: a question compares the same few hits again
OPENING_WORDS = 3  # a person named later is hardly the subject: "My sister Ana lives …"
PREFIX_MIN = 2  # the shortest prefix before a star in the list of fields
KIND_NEAR = 0.5  # "on Monday", "on the 4th"; "Ana", "Frau Kern": perhaps one kind of answer
LABEL_CHARS_MAX = 30  # "Codename: Heron", "New number, everyone: 555-9876"
LINK_MIN = 0.1  # a weaker link counts as none
FIELD_WORTH = 0.5  # of a field that two texts share, beside a word they share: a field is wider

_PERSONS, _WAS, _OTHERS, _NOT = map(listed, ("person", "was", "others", "not"))
_NEWS = listed("change")
_PERSON_SIGNS = tuple(sorted(word for word in _PERSONS if not word[0].islower()))
_SINCE, _LATELY, _INTENT = map(Phrases, ("since", "lately", "intent"))
_NEWLY, _TURNED, _ENDED, _THEN = map(Phrases, ("newly", "turned", "ended", "then"))
_ACQUIRED = Phrases("acquired")
_SELF_SIGNS = frozenset("我私僕俺")
_CLAUSE = re.compile(r"[,;.!?](?=\s|$)|[。！？；，、\n]|\s[-–—]\s")
_SENTENCE = re.compile(r"(?<!\b[A-Z][a-z])[;.!?](?=\s|$)|[。！？；\n]")  # not after "Dr."
_CHUNK = re.compile(r"\b[jldnmtsc]['’](?=\w)|[^\s,、，:：]+", re.IGNORECASE)  # l'heure, j'habite
_MARKS = ".,;:!?\"'()¿¡«»“”…-"
_GENITIVE = re.compile(r"'s?$")
_NAMES = frozenset({"name", "person", "place"})
_COUNTED = frozenset({"date", "number"})
_SURE_KINDS = frozenset({"date", "person", "place"})


class _Fields:
    """The fields that words belong to, as bit masks."""

    def __init__(self) -> None:
        found = sections("language", "everyday_fields.txt")
        self._whole: dict[str, int] = {}
        self._begun: dict[str, int] = {}
        self._bare: dict[str, int] = {}
        for number, rows in enumerate(found.values()):
            for entry in (entry for row in rows for entry in row):
                word = entry.rstrip("*")
                kept = self._whole if word == entry else self._begun
                if not word.isascii() and not word[0].islower():
                    kept = self._bare
                kept[word] = kept.get(word, 0) | 1 << number
        signs = sorted(self._bare, key=lambda it: (-len(it), it))
        self.pattern = re.compile("|".join(map(re.escape, signs)))

    def of(self, form: str) -> int:
        """Return the fields of a folded word."""
        if not form.isascii() and not form[0].islower():
            return self.within(form)
        found = self._whole.get(form, 0)
        for size in range(PREFIX_MIN, len(form) + 1):
            found |= self._begun.get(form[:size], 0)
        return found

    def within(self, text: str) -> int:
        """Return the fields of the words in a text of a script without spaces."""
        found = 0
        for word in self.pattern.findall(text):
            found |= self._bare[word]
        return found


@cache
def _fields() -> _Fields:
    return _Fields()


class _SignWord(NamedTuple):
    """A folded word, its topical stems, its kind and its fields.

    The kind is "date", "number", "person", "place", "name" or "word".
    """

    form: str
    stems: tuple[str, ...]
    kind: str
    is_person: bool
    fields: int


class _SignText(NamedTuple):
    """A text as a statement and as words; `content` are the topical words, `forms` all words.

    `persons` are the people in it, with their positions. `subject` is the kind of its opening:
    "self", "person", "thing" or none of these.
    """

    text: str
    said: Statement
    words: tuple[_SignWord, ...]
    content: tuple[_SignWord, ...]
    stems: frozenset[str]
    forms: frozenset[str]
    fields: int
    persons: tuple[tuple[int, str], ...]
    is_self: bool
    subject: str
    told: dict[str, bool]


@lru_cache(READINGS_KEPT)
def _reading(text: str) -> _SignText:
    words: list[_SignWord] = []
    for sentence in _SENTENCE.split(text):
        chunks = _CHUNK.findall(sentence)
        for at, chunk in enumerate(chunks):
            form = fold(chunk).strip(_MARKS)
            if form:
                after = fold(chunks[at + 1]) if at + 1 < len(chunks) else ""
                words += _words(chunk, form, opens=at == 0 and after not in COPULAS)
    persons = [(place, word.form) for place, word in enumerate(words) if word.is_person]
    fields = 0
    for word in words:
        fields |= word.fields
    if not text.isascii():
        persons += [(text.index(sign), sign) for sign in _PERSON_SIGNS if sign in text]
        fields |= _fields().within(text)
    forms = frozenset(form for word in words for form in (word.form, word.form.partition("'")[0]))
    said, plain = read_statement(text), fold(text)
    return _SignText(
        text=text,
        said=said,
        words=tuple(words),
        content=tuple(word for word in words if word.stems),
        stems=frozenset(stem for word in words for stem in word.stems),
        forms=forms,
        fields=fields,
        persons=tuple(persons),
        is_self=not forms.isdisjoint(SELF | OWN) or not _SELF_SIGNS.isdisjoint(text),
        subject=_subject(words),
        told=_told(said, forms, plain),
    )


def _told(said: Statement, forms: frozenset[str], plain: str) -> dict[str, bool]:
    """Return whether a text is news, an end, a doubt, or about the past."""
    end = said.is_end or _ENDED.are_in(forms, plain)
    turn = end or said.is_turn or _TURNED.are_in(forms, plain)
    return {
        "change": turn or said.is_change or _NEWLY.are_in(forms, plain),
        "turn": turn,
        "end": end,
        "past": said.is_past,
        "then": _THEN.are_in(forms, plain),
        "doubt": said.is_doubtful,
        "intent": _INTENT.are_in(forms, plain),
        "since": _SINCE.are_in(forms, plain),
        "lately": _LATELY.are_in(forms, plain),
        "acquired": _ACQUIRED.are_in(forms, plain),
        "was": not _WAS.isdisjoint(forms),
        "not": not _NOT.isdisjoint(forms),
    }


def _words(chunk: str, form: str, *, opens: bool) -> list[_SignWord]:
    """Return a chunk as one word, or as pairs of characters in a script without spaces."""
    stems, is_number = topical(chunk) if form not in _NEWS else ((), False)
    if len(stems) > 1 and not form.isascii() and not form[0].islower():
        return [
            _SignWord(it, (it,), "number" if it.isdigit() else "word", False, _fields().of(it))
            for it in stems
        ]
    is_capital = chunk[:1].isupper() and form.partition("'")[0] not in SELF
    bare = _GENITIVE.sub("", form)
    is_named = is_capital and (is_given(bare) or (form.endswith("s") and is_given(form[:-1])))
    fields = _fields().of(bare) if stems else 0
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
    return [_SignWord(form, stems, kind, is_named or bare in _PERSONS, fields)]


def _subject(words: Sequence[_SignWord]) -> str:
    """Return the kind of subject that some words open with."""
    first = words[0].form.partition("'")[0] if words else ""
    if first in SELF:
        return "self"
    if any(word.is_person for word in words[:2]):
        return "person"
    return "thing" if first in DEFINITE else ""


@lru_cache(READINGS_KEPT)
def _clauses(text: str) -> tuple[_SignText, ...]:
    return tuple(_reading(part) for part in map(str.strip, _CLAUSE.split(text)) if part)


class _OlderAnswer:
    """An older text and a question, with which later texts are compared.

    `keys` are the question's words in the text, `value` its words beyond the question, `known` the
    stems of both, `fields` the fields of both.
    """

    def __init__(self, asked: _SignText, old: _SignText) -> None:
        self.asked, self.old = asked, old
        self.known = asked.stems | old.stems
        self.fields = asked.fields | old.fields
        self.key_stems = asked.stems & old.stems
        self.keys = [word for word in asked.content if self.key_stems.intersection(word.stems)]
        self.value = [word for word in old.content if asked.stems.isdisjoint(word.stems)]
        self.asks_person = any(word.is_person for word in self.value)

    def is_linked(self, new: _SignText) -> bool:
        """Return whether a text shares something with both, and adds something (A4)."""
        tells = new.said.is_change or new.said.is_end or not _NOT.isdisjoint(new.forms)
        more = tells or not new.stems <= self.old.stems
        return more and bool(self.fields & new.fields or self.known & new.stems)


class _LaterPart:
    """A later text, or a clause of it, compared with the older answer.

    `foreign` are its words that are not known, `lost` the words of the older value that it lacks.
    `kept` is the share of the keys that it has, `value` how well it matches the kind of the older
    value, `alike` is 1 if it has a foreign word in a field of the older value.
    """

    def __init__(self, basis: _OlderAnswer, new: _SignText) -> None:
        self._basis, self.new = basis, new
        self.foreign = [word for word in new.content if basis.known.isdisjoint(word.stems)]
        self.lost = [word for word in basis.value if new.stems.isdisjoint(word.stems)]
        self.kept = _shared(basis.keys, new.stems)
        self.kind, self.value = self._met()
        own = 0
        for word in basis.value:
            own |= word.fields
        self.alike = float(any(word.fields & own for word in self.foreign))

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

    @property
    def persons(self) -> list[int]:
        """The positions of people that neither the question nor the older text names."""
        asked, old = self._basis.asked, self._basis.old
        return [
            place
            for place, form in self.new.persons
            if form not in asked.forms
            and form not in old.forms
            and (form.isascii() or form not in asked.text + old.text)
        ]

    @property
    def has_other_person(self) -> bool:
        """Return whether it names somebody, and the question does not ask for people."""
        return bool(self.persons) and not self._basis.asks_person


class _Links:
    """The rarity of stems and fields among the texts found."""

    def __init__(self, texts: Sequence[_SignText]) -> None:
        self._size = max(1, len(texts))
        self._stems = Counter(stem for it in texts for stem in it.stems)
        self._fields = Counter(field for it in texts for field in _bits(it.fields))

    def _rarity(self, count: int) -> float:
        """Return 1 if at most two texts have it, 0 if all have it."""
        return 1.0 - max(0, count - 2) / self._size

    def strength(self, basis: _OlderAnswer, new: _SignText) -> float:
        """Return the strength of the link between a text and an older answer."""
        if not basis.is_linked(new):
            return 0.0
        stems = [self._rarity(self._stems[stem]) for stem in basis.known & new.stems]
        fields = [self._rarity(self._fields[it]) for it in _bits(basis.fields & new.fields)]
        asked = [self._rarity(self._fields[it]) for it in _bits(basis.asked.fields & new.fields)]
        return sum(stems) + FIELD_WORTH * (max((*fields, 0.0)) + sum(asked))


def _bits(number: int) -> list[int]:
    found = []
    while number:
        low = number & -number
        found.append(low)
        number ^= low
    return found


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
        self._near = None if vectors is None else np.einsum("ik,jk->ij", vectors, vectors)
        self._learned = "weights" if vectors is not None else "words_alone"

    def probabilities(self, old: int, later: Sequence[int]) -> list[float]:
        """Return for each later text the probability that it answers the question anew."""
        basis = _OlderAnswer(self._asked, self._texts[old])
        linked = [place for place, at in enumerate(later) if basis.is_linked(self._texts[at])]
        found = [0.0] * len(later)
        if linked:
            strengths = self._strengths(basis)
            signs = [
                list(self._signs(basis, strengths, old, later[place]).values()) for place in linked
            ]
            chances = fitted_model(self._learned).probabilities(np.array(signs))
            for place, chance in zip(linked, chances.tolist(), strict=True):
                found[place] = chance
        return found

    @property
    def enough(self) -> float:
        """The probability from which a pair counts."""
        return fitted_model(self._learned).enough

    def is_linked(self, old: int, new: int) -> bool:
        """Return whether a pair shares anything; other pairs are not compared."""
        return _OlderAnswer(self._asked, self._texts[old]).is_linked(self._texts[new])

    def signs(self, old: int, new: int) -> dict[str, float]:
        """Return the signs of a pair by name, each from 0 to 1."""
        basis = _OlderAnswer(self._asked, self._texts[old])
        return self._signs(basis, self._strengths(basis), old, new)

    def _strengths(self, basis: _OlderAnswer) -> list[float]:
        return [self._links.strength(basis, it) for it in self._texts]

    def _signs(
        self, basis: _OlderAnswer, strengths: Sequence[float], old: int, at: int
    ) -> dict[str, float]:
        new = self._texts[at]
        whole = part = _LaterPart(basis, new)
        clauses = _clauses(new.text)
        if len(clauses) > 1:
            part = max(
                (_LaterPart(basis, clause) for clause in clauses),
                key=lambda it: it.kept + it.value + _cosine(basis.old, it.new),
            )
        strength = strengths[at]
        best = max(it for place, it in enumerate((*strengths, 0.0)) if place not in (old, at))
        return {
            **_topic_signs(basis, whole, part),
            **_news_signs(basis, whole),
            **_person_signs(basis, whole, part),
            **_frame_signs(basis, whole),
            **_value_signs(basis, whole, part),
            "link": min(1.0, strength / 3),
            "nearest": strength / max(strength, best, LINK_MIN),
            "nearer": float(strength > best),
            **self._vector_signs(old, at),
        }

    def _vector_signs(self, old: int, at: int) -> dict[str, float]:
        """Return the similarity in meaning, and how much it exceeds that of the other texts."""
        if self._near is None:
            return {}
        asked, told = self._near[0, at + 1], self._near[old + 1, at + 1]
        both = self._near[0, 1:] + self._near[old + 1, 1:]
        others = len(self._texts) - 2
        usual = (both.sum() - both[old] - both[at]) / others if others else 0.0
        return {
            "near question": float(asked),
            "near older": float(told),
            "older near question": float(self._near[0, old + 1]),
            "nearer than others": float(asked + told - usual),
        }


def _shared(words: Sequence[_SignWord], stems: frozenset[str]) -> float:
    """Return the share of words with one of the stems."""
    return sum(not stems.isdisjoint(word.stems) for word in words) / max(1, len(words))


def _cosine(one: _SignText, other: _SignText) -> float:
    """Return the similarity of two texts by their shared stems."""
    shared = len(one.stems & other.stems)
    return shared / sqrt(len(one.stems) * len(other.stems)) if shared else 0.0


def _topic_signs(basis: _OlderAnswer, whole: _LaterPart, part: _LaterPart) -> dict[str, float]:
    """Return how much of the question the later text keeps, by words and by fields."""
    asked, old, new = basis.asked, basis.old, whole.new
    fields = asked.fields & old.fields or asked.fields
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
        "field asked": float(bool(asked.fields & new.fields)),
        "fields asked": (fields & new.fields).bit_count() / max(1, fields.bit_count()),
        "no field asked": float(not asked.fields),
        "field told": float(bool(old.fields & new.fields)),
        "field of both": float(bool(asked.fields & old.fields & new.fields)),
        "other field": float(bool(new.fields and not basis.fields & new.fields)),
        "field of part": float(bool(basis.fields & part.new.fields)),
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
        "alike": whole.alike,
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


def _person_signs(basis: _OlderAnswer, whole: _LaterPart, part: _LaterPart) -> dict[str, float]:
    """Return whether the later text is about somebody else."""
    old, new, asked = basis.old, whole.new, basis.asked
    is_first = any(place < OPENING_WORDS for place in whole.persons)
    return {
        "other person": float(whole.has_other_person),
        "person first": float(is_first),
        "other person first": float(is_first and not basis.asks_person),
        "person in part": float(part.has_other_person),
        "owner": float(not new.said.owners <= basis.known),
        "self": float(new.is_self),
        "self gained": float(new.is_self and not asked.is_self and not old.is_self),
        "self lost": float(old.is_self and not new.is_self),
        "subject lost": float(old.subject == "self" and new.subject in ("person", "thing")),
        "no subject": float(not new.subject),
        "thing first": float(new.subject == "thing"),
        "third person": float(not _OTHERS.isdisjoint(new.forms) and _OTHERS.isdisjoint(old.forms)),
    }


def _frame_signs(basis: _OlderAnswer, whole: _LaterPart) -> dict[str, float]:
    """Return which words replace which, where both texts have the same structure."""
    old, new, foreign = basis.old, whole.new, set(whole.foreign)
    left, right = [it.form for it in old.words], [it.form for it in new.words]
    start = common_start(left, right)
    end = common_start(left[start:][::-1], right[start:][::-1])
    replaced = old.words[start : len(left) - end]
    is_other = bool(start + end) and not foreign.isdisjoint(new.words[start : len(right) - end])
    lost_key = is_other and any(basis.key_stems.intersection(it.stems) for it in replaced)
    is_beside = bool(foreign) and any(
        word in foreign
        and word.kind not in _COUNTED
        and _is_beside(new.words, place, basis.key_stems)
        for place, word in enumerate(new.words)
    )
    share = (start + end) / max(1, len(left))
    return {
        "same share": (start + end) / max(1, len(right)),
        "other key": share * lost_key,
        "other value": share * (is_other and not lost_key and any(it.stems for it in replaced)),
        "other thing first": float(_opens_with_other(new.words, DEFINITE, foreign)),
        "own other first": float(_opens_with_other(new.words, OWN, foreign)),
        "qualified": float(is_beside),
        "qualified instead": float(is_beside and whole.kept < 1),
        "rival": float(old.said.may_be_rival(new.said) and is_rival(old.said, new.said)),
    }


def _opens_with_other(
    words: Sequence[_SignWord], openers: frozenset[str], foreign: set[_SignWord]
) -> bool:
    """Return whether an opener and then a foreign word are among the first words."""
    return any(
        opener.form in openers and word in foreign and word.kind not in _COUNTED
        for opener, word in pairwise(words[:OPENING_WORDS])
    )


def _is_beside(words: Sequence[_SignWord], place: int, stems: frozenset[str]) -> bool:
    """Return whether a word with one of the stems is next to a position."""
    around = (*words[max(0, place - 1) : place], *words[place + 1 : place + 2])
    return any(stems.intersection(word.stems) for word in around)


# -- the network -----------------------------------------------------------------------------------

Floats = NDArray[np.float64]


class AnswerModel(NamedTuple):
    """A network with one hidden layer, and the probability from which a pair counts."""

    inner: Floats
    inner_bias: Floats
    outer: Floats
    outer_bias: float
    enough: float

    def probabilities(self, signs: Floats) -> Floats:
        """Return the probability of each row of signs."""
        hidden = np.tanh(signs @ self.inner + self.inner_bias)
        found: Floats = 1 / (1 + np.exp(-(hidden @ self.outer + self.outer_bias)))
        return found


@cache
def fitted_model(part: str = "weights") -> AnswerModel:
    """Return the network for signs with vectors, or for signs by words alone."""
    path = files("worlddb.language").joinpath("answer_signs.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    inner, inner_bias, outer, outer_bias = (
        np.array(list(it.values()) if isinstance(it, dict) else it) for it in found[part].values()
    )
    return AnswerModel(inner, inner_bias, outer, float(outer_bias), found["enough"])
