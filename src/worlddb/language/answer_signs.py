"""Answer signs: how likely a later statement answers a question anew that an older one answers.

    "How much is the rent?"
    "The rent is 950 euros."      ──▶  signs of the pair  ──▶  probability
    "They raised the rent."            (what is kept, met, foreign, told as news …)

The signs of a pair mean something in any language: how much of what is asked the later statement
keeps, whether it has a value of the kind that the older one has, whether it is said of somebody or
something else, and whether it is told as news, as a doubt or as the past. No sign decides alone.
Their weights are learned from triples of a question and two statements, and stand in
`answer_signs.json` with the digest of the data and the command (`python -m bench.answer_change`).

The rules of `answer_change.py` read the same pair by the places of its words. Both together are
right more often than either: where the rules agree, a lower probability is enough.

A1  What is compared is the whole statement and its best clause: "Surprise, I like olives now."
A2  Of a language only closed classes of words are known (`statement_words.txt`).
A3  Equal texts and questions give equal answers, whatever the embedder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from math import exp, sqrt
from operator import itemgetter, mul
from typing import NamedTuple

from worlddb.language.answer_change import answers_anew
from worlddb.language.proper_names import is_given
from worlddb.language.statement import (
    CALENDAR,
    DEFINITE,
    OWN,
    SELF,
    Phrases,
    Statement,
    common_start,
    is_rival,
    listed,
    may_be_rival,
    read_statement,
    topical,
)
from worlddb.language.word_forms import fold

READINGS_KEPT = 4_096  # Texts read lately: a question compares the same few hits again.
OPENING_WORDS = 3  # "My sister Ana lives …": who is named later than this is hardly the subject.
NUMBER_FOR_DATE = 0.5  # "on Monday", "on the 4th": it may be the same kind of answer.

_PERSONS, _WAS, _OTHERS, _NOT = map(listed, ("person", "was", "others", "not"))
_PERSON_SIGNS = tuple(sorted(word for word in _PERSONS if not word[0].islower()))
_SINCE, _LATELY, _INTENT = map(Phrases, ("since", "lately", "intent"))
_SELF_SIGNS = frozenset("我私僕俺")
_CLAUSE = re.compile(r"[,;.!?](?=\s|$)|[。！？；，、\n]|\s[-–—]\s")
_SENTENCE = re.compile(r"[,;:.!?](?=\s|$)|[。！？；，、\n]")
_CHUNK = re.compile(r"\b[jldnmtsc]['’](?=\w)|\S+", re.IGNORECASE)  # l'heure, j'habite
_MARKS = ".,;:!?\"'()¿¡«»“”…-"
_GENITIVE = re.compile(r"'s?$")


class _SignWord(NamedTuple):
    """A word, folded; its stems with a topic; its kind: "date", "number", "name" or "word"."""

    form: str
    stems: tuple[str, ...]
    kind: str
    is_person: bool

    @property
    def is_counted(self) -> bool:
        """Whether it is a number or a date."""
        return self.kind in ("date", "number")


class _SignText(NamedTuple):
    """A text as a statement and as words; `content` are those with a topic, `forms` all of them.

    `persons` are the people it names, with their places.
    """

    text: str
    plain: str
    said: Statement
    words: tuple[_SignWord, ...]
    content: tuple[_SignWord, ...]
    stems: frozenset[str]
    forms: frozenset[str]
    persons: tuple[tuple[int, str], ...]
    is_self: bool
    opens_with_self: bool


@lru_cache(READINGS_KEPT)
def _reading(text: str) -> _SignText:
    words: list[_SignWord] = []
    for sentence in _SENTENCE.split(text):
        for chunk in _CHUNK.findall(sentence):
            form = fold(chunk).strip(_MARKS)
            if form:
                words.append(_word(chunk, form))
    persons = [(place, word.form) for place, word in enumerate(words) if word.is_person]
    if not text.isascii():
        persons += [(text.index(sign), sign) for sign in _PERSON_SIGNS if sign in text]
    forms = frozenset(form for word in words for form in (word.form, word.form.partition("'")[0]))
    first = words[0].form.partition("'")[0] if words else ""
    return _SignText(
        text=text,
        plain=fold(text),
        said=read_statement(text),
        words=tuple(words),
        content=tuple(word for word in words if word.stems),
        stems=frozenset(stem for word in words for stem in word.stems),
        forms=forms,
        persons=tuple(persons),
        is_self=not forms.isdisjoint(SELF | OWN) or not _SELF_SIGNS.isdisjoint(text),
        opens_with_self=first in SELF or first in OWN,
    )


def _word(chunk: str, form: str) -> _SignWord:
    stems, is_number = topical(chunk)
    is_capital = chunk[:1].isupper() and form.partition("'")[0] not in SELF
    bare = _GENITIVE.sub("", form)
    is_named = is_capital and (is_given(bare) or (form.endswith("s") and is_given(form[:-1])))
    if form in CALENDAR:
        kind = "date"
    elif is_number:
        kind = "number"
    else:
        kind = "name" if is_capital else "word"
    return _SignWord(form, stems, kind, is_named or bare in _PERSONS)


@lru_cache(READINGS_KEPT)
def _clauses(text: str) -> tuple[_SignText, ...]:
    found = tuple(_reading(part) for part in map(str.strip, _CLAUSE.split(text)) if part)
    return found or (_reading(text),)


class _Model(NamedTuple):
    """What was learned: the weights of the signs, and from which probability on a pair counts.

    `read` returns the signs in the order of the weights. `agreed` is enough where the rules say so,
    too; `alone` where they do not.
    """

    read: Callable[[dict[str, float]], tuple[float, ...]]
    weights: tuple[float, ...]
    bias: float
    agreed: float
    alone: float


@cache
def _model() -> _Model:
    path = files("worlddb.language").joinpath("answer_signs.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    weights = found["weights"]
    read = itemgetter(*weights)
    return _Model(read, tuple(weights.values()), found["bias"], found["agreed"], found["alone"])


def is_newer_answer(old_text: str, new_text: str, question: str) -> bool:
    """Return whether a later statement answers a question that an older one answers, too."""
    basis, new = _basis(old_text, question), _reading(new_text)
    if basis.known.isdisjoint(new.stems) and not new.said.is_change:
        return False  # Most pairs have nothing in common, and need no closer look.
    model = _model()
    likely = probability(old_text, new_text, question)
    if likely < model.agreed or likely >= model.alone:
        return likely >= model.alone
    return answers_anew(old_text, new_text, question)


def probability(old_text: str, new_text: str, question: str) -> float:
    """Return how likely a later statement answers a question that an older one answers, too."""
    model = _model()
    signs = model.read(signs_of(old_text, new_text, question))
    total = model.bias + sum(map(mul, model.weights, signs))
    return 1 / (1 + exp(-total))


def signs_of(old_text: str, new_text: str, question: str) -> dict[str, float]:
    """Return the signs of a pair by name, each from 0 to 1."""
    basis, new = _basis(old_text, question), _reading(new_text)
    asked, old = basis.asked, basis.old
    whole = _LaterPart(basis, new)
    clauses = _clauses(new.text)
    part = whole
    if len(clauses) > 1:
        part = max(
            (_LaterPart(basis, clause) for clause in clauses),
            key=lambda it: it.kept + it.value + _cosine(old, it.new),
        )
    signs = {
        **_news_signs(basis, whole),
        **_person_signs(basis, whole, part),
        **_frame_signs(basis, whole),
        **_value_signs(basis, whole, part),
        "older covers": _shared(asked.content, old.stems),
        "covers": _shared(asked.content, new.stems),
        "kept": whole.kept,
        "none kept": float(bool(basis.keys) and not whole.kept),
        "name lost": float(
            any(it.kind == "name" and new.stems.isdisjoint(it.stems) for it in asked.content[1:])
        ),
        "like older": _cosine(old, new),
        "like question": _cosine(asked, new),
        "older like question": _cosine(asked, old),
        "part kept": part.kept,
        "part like question": _cosine(asked, part.new),
        "part like older": _cosine(old, part.new),
    }
    news, told = signs["change"], bool(signs["told"])
    return signs | {
        "news of value": news * part.value,
        "news of kept": news * whole.is_whole,
        "news of told": news * told,
        "news of fit": news * signs["part fits"],
        "end of told": signs["end"] * told,
        "own value": part.value * (old.is_self and not whole.has_other_person),
        "own news": news * part.value * (old.is_self and new.is_self),
        "fit of same": signs["part fits"] * (not part.has_other_person),
    }


class _OlderAnswer(NamedTuple):
    """An older statement beside a question: what later statements are compared with.

    `keys` are the words of the question that the statement has, `value` is what it says beyond the
    question, `known` are the stems of both.
    """

    asked: _SignText
    old: _SignText
    known: frozenset[str]
    key_stems: frozenset[str]
    keys: tuple[_SignWord, ...]
    value: tuple[_SignWord, ...]
    asks_person: bool


@lru_cache(READINGS_KEPT)
def _basis(old_text: str, question: str) -> _OlderAnswer:
    asked, old = _reading(question), _reading(old_text)
    stems = asked.stems & old.stems
    value = tuple(word for word in old.content if asked.stems.isdisjoint(word.stems))
    return _OlderAnswer(
        asked=asked,
        old=old,
        known=asked.stems | old.stems,
        key_stems=stems,
        keys=tuple(word for word in asked.content if stems.intersection(word.stems)),
        value=value,
        asks_person=any(word.is_person for word in value),
    )


class _LaterPart:
    """A later statement, or a clause of it, beside the basis.

    `foreign` are its words that are not known, `lost` the words of the older value that it lacks.
    `kept` is the share of the keys it has, `value` how well it meets the kind of the older value.
    """

    def __init__(self, basis: _OlderAnswer, new: _SignText) -> None:
        self._basis, self.new = basis, new
        self.foreign = [word for word in new.content if basis.known.isdisjoint(word.stems)]
        self.lost = [word for word in basis.value if new.stems.isdisjoint(word.stems)]
        self.kept = _shared(basis.keys, new.stems)
        self.is_whole = self.kept == 1
        self.kind, self.value = self._met()

    def _met(self) -> tuple[str, float]:
        """Return of what kind the older value is, and how well a new word meets it."""
        value, lost = self._basis.value, self.lost
        if any(word.is_counted for word in value):
            old = {word.kind for word in lost if word.is_counted}
            new = {word.kind for word in self.foreign if word.is_counted}
            return "number", 1.0 if old & new else NUMBER_FOR_DATE * bool(old and new)
        if any(word.kind == "name" for word in value):
            both = (any(word.kind == "name" for word in some) for some in (lost, self.foreign))
            return "name", float(all(both))
        return "word", 0.0

    @property
    def persons(self) -> list[int]:
        """The places of people whom neither the question nor the older statement names."""
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
        """Whether it names somebody, and people are not what is asked for."""
        return bool(self.persons) and not self._basis.asks_person


def _shared(words: Sequence[_SignWord], stems: frozenset[str]) -> float:
    """Return the share of words that have one of the stems."""
    return sum(not stems.isdisjoint(word.stems) for word in words) / max(1, len(words))


def _cosine(one: _SignText, other: _SignText) -> float:
    """Return how alike two texts are by the stems they share."""
    shared = len(one.stems & other.stems)
    return shared / sqrt(len(one.stems) * len(other.stems)) if shared else 0.0


def _value_signs(basis: _OlderAnswer, whole: _LaterPart, part: _LaterPart) -> dict[str, float]:
    """Return whether the later statement has what may stand for the older value."""
    others = [word for word in part.foreign if word.kind == "word"]
    return {
        "value": whole.value,
        "number missing": (1 - whole.value) * (whole.kind == "number"),
        "name missing": (1 - whole.value) * (whole.kind == "name"),
        "told": 1 - len(whole.lost) / max(1, len(basis.value)),
        "nothing new": float(not whole.foreign),
        "foreign": len(whole.foreign) / max(1, len(whole.new.content)),
        "part value": part.value,
        "part far": len(others) / max(1, len(part.new.content)),
        "part fits": part.kept * part.value,
    }


def _news_signs(basis: _OlderAnswer, whole: _LaterPart) -> dict[str, float]:
    """Return how the later statement is told: as news, as a doubt, as the past."""
    old, new = basis.old, whole.new
    said, before = new.said, old.said
    was_denied, is_denied = not _NOT.isdisjoint(old.forms), not _NOT.isdisjoint(new.forms)
    return {
        "change": float(said.is_change and not before.is_change),
        "turn": float(said.is_turn and not before.is_turn),
        "end": float(said.is_end and not before.is_end),
        "past": float(said.is_past and not before.is_past),
        "doubt": float(said.is_doubtful and not before.is_doubtful),
        "intent": float(_INTENT.are_in(new.forms, new.plain) and not before.is_doubtful),
        "since": float(_SINCE.are_in(new.forms, new.plain)),
        "lately": float(_LATELY.are_in(new.forms, new.plain)),
        "was": float(not _WAS.isdisjoint(new.forms) and _WAS.isdisjoint(old.forms)),
        "denied": float(was_denied != is_denied),
        "not": float(is_denied and not was_denied),
    }


def _person_signs(basis: _OlderAnswer, whole: _LaterPart, part: _LaterPart) -> dict[str, float]:
    """Return whether the later statement is said of somebody else."""
    old, new = basis.old, whole.new
    is_first = any(place < OPENING_WORDS for place in whole.persons)
    return {
        "other person": float(whole.has_other_person),
        "person first": float(is_first),
        "other person first": float(is_first and not basis.asks_person),
        "person in part": float(part.has_other_person),
        "owner": float(not new.said.owners <= basis.known),
        "self": float(new.is_self),
        "self lost": float(old.is_self and not new.is_self),
        "subject lost": float(old.opens_with_self and not new.opens_with_self),
        "third person": float(not _OTHERS.isdisjoint(new.forms) and _OTHERS.isdisjoint(old.forms)),
    }


def _frame_signs(basis: _OlderAnswer, whole: _LaterPart) -> dict[str, float]:
    """Return what stands in the place of what, where both statements run alike."""
    old, new, foreign = basis.old, whole.new, set(whole.foreign)
    left, right = [it.form for it in old.words], [it.form for it in new.words]
    start = common_start(left, right)
    end = common_start(left[start:][::-1], right[start:][::-1])
    replaced = old.words[start : len(left) - end]
    is_other = bool(start + end) and not foreign.isdisjoint(new.words[start : len(right) - end])
    lost_key = is_other and any(basis.key_stems.intersection(it.stems) for it in replaced)
    is_beside = bool(foreign) and any(
        word in foreign and not word.is_counted and _is_beside(new.words, place, basis.key_stems)
        for place, word in enumerate(new.words)
    )
    share = (start + end) / max(1, len(left))
    return {
        "same words": share,
        "same share": (start + end) / max(1, len(right)),
        "other key": share * lost_key,
        "other value": share * (is_other and not lost_key and any(it.stems for it in replaced)),
        "other thing first": float(_opens_with_other(new.words, DEFINITE, foreign)),
        "own other first": float(_opens_with_other(new.words, OWN, foreign)),
        "qualified": float(is_beside),
        "qualified instead": float(is_beside and not whole.is_whole),
        "rival": float(may_be_rival(old.said, new.said) and is_rival(old.said, new.said)),
    }


def _opens_with_other(
    words: Sequence[_SignWord], openers: frozenset[str], foreign: set[_SignWord]
) -> bool:
    """Return whether an opener and then a foreign word are among the first words."""
    first = words[:OPENING_WORDS]
    return any(
        opener.form in openers and word in foreign and not word.is_counted
        for opener, word in pairwise(first)
    )


def _is_beside(words: Sequence[_SignWord], place: int, stems: frozenset[str]) -> bool:
    """Return whether a word with one of the stems stands beside a place."""
    around = (*words[max(0, place - 1) : place], *words[place + 1 : place + 2])
    return any(stems.intersection(word.stems) for word in around)
