"""Answer change: whether a later statement answers a question anew that an older one answers.

    "How much is the rent?"
    "The rent is 950 euros."      the *key*, what the question and the statement share: the rent
    "They raised the rent."       it is said of the same thing, and it tells of a change

What counts is what the statement is about, not what is done with it: so verbs are no keys. Neither
grammar nor vocabulary is known but by closed classes of words (`statement_words.txt`) and by place:
a word after "I" is a verb, one after "the" a noun, one in the place of another stands for it.

A1  What is said of another person or another thing is no answer: "The deposit is 950 euros."
A2  Of what is asked for in the past ("Where did I grow up?") nothing later is news.
A3  A doubt, a wish or a plan is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from worlddb.language.statement import (
    ASKING,
    CALENDAR,
    COPULAS,
    DEFINITE,
    OWN,
    RELATIVE,
    SELF,
    Statement,
    read_statement,
    topical,
)
from worlddb.language.word_forms import fold

SUBJECT_WORDS = 2  # "My sister Ana lives …": a name is hardly later where it is the subject.
READINGS_KEPT = 4_096  # Texts read lately: a question compares the same few hits again.

_SENTENCE = re.compile(r"[,;:.!?](?=\s|$)|[。！？；，、\n]")
_CHUNK = re.compile(r"\b[jldnmtsc]['’](?=\w)|\S+", re.IGNORECASE)  # l'heure, j'habite
_MARKS = ".,;:!?\"'()¿¡"
_VERB = re.compile(r"(?:ing|ed)$")
_OTHERS = frozenset({"you", "he", "she", "they", "sie"})
_SUPPORT = frozenset({"do", "does", "did"})  # "Does it close?": the verb is bare in the question.
# Of the first person, in Chinese before a verb of change, which is cut out; in Japanese as topic.
_SELF_SIGNS = re.compile(r"我们?(?=\s)|[私僕俺]は")
_NOT_OWNED = re.compile(r"我们?(?!的)|[私僕俺](?!の)")
_PAST_FORMS = frozenset({"did", "was", "were"})  # What is asked for has been, and stays so.
_NOT = frozenset({"not", "never", "no", "nicht", "kein", "keine", "nunca", "pas", "non", "niet"})


class _Word(NamedTuple):
    """A word of a text: folded, its stems that carry a topic, its neighbours, and its looks."""

    form: str
    stems: tuple[str, ...]
    before: str
    after: str
    is_number: bool
    is_capital: bool
    opens: bool


@dataclass(frozen=True)
class _Reading:
    """A short text as a statement, as words, and its values by kind: ("time", "19:30")."""

    said: Statement
    words: tuple[_Word, ...]
    values: frozenset[tuple[str, str]]

    @cached_property
    def forms(self) -> frozenset[str]:
        """The words, folded; of "I'm" the pronoun."""
        return frozenset(word.form.partition("'")[0] for word in self.words)

    @property
    def opens_with_self(self) -> bool:
        """Whether the first person is its subject."""
        return bool(self.words) and self.words[0].form.partition("'")[0] in SELF

    def kinds_beside(self, other: _Reading, asked: _Reading) -> set[str]:
        """Return the kinds of its values that neither another text nor the question has."""
        return {kind for kind, value in self.values - other.values if value not in asked.forms}

    @cached_property
    def subject(self) -> frozenset[str]:
        """The stems that are likely what it is about: those of its first words with a topic."""
        first = [word for word in self.words if word.stems][:SUBJECT_WORDS]
        return frozenset(stem for word in first for stem in word.stems)

    @cached_property
    def answer(self) -> frozenset[str]:
        """The stems that are likely its value: its names, and what it ends with."""
        topical_words = [word for word in self.words if word.stems]
        told = [word for word in topical_words if word.is_capital and not word.opens]
        return frozenset(stem for word in (*told, *topical_words[-1:]) for stem in word.stems)


@lru_cache(READINGS_KEPT)
def _reading(text: str) -> _Reading:
    said = read_statement(text)
    words: list[_Word] = []
    for sentence in _SENTENCE.split(said.news):
        chunks = _CHUNK.findall(sentence)
        forms = [fold(chunk).strip(_MARKS) for chunk in chunks]
        for at, (chunk, form) in enumerate(zip(chunks, forms, strict=True)):
            stems, is_number = topical(chunk)
            before, after = [*forms[at - 1 : at], ""][0], [*forms[at + 1 : at + 2], ""][0]
            is_capital = chunk[:1].isupper() and form.partition("'")[0] not in SELF
            words.append(_Word(form, stems, before, after, is_number, is_capital, at == 0))
    return _Reading(said, tuple(words), frozenset(_values(words)))


def _values(words: Sequence[_Word]) -> Iterator[tuple[str, str]]:
    """Yield what may be a value, with its kind."""
    for word in words:
        if word.form in CALENDAR:
            yield "date", word.form
        elif word.is_number:
            yield "number" if word.form[0].isdigit() or word.form.isalpha() else "code", word.form
        elif word.is_capital and word.stems and (not word.opens or word.after in COPULAS):
            yield "name", word.form


def answers_anew(old_text: str, new_text: str, question: str) -> bool:
    """Return whether a later statement answers a question that an older one answers, too.

    The *keys* are the words that the question and the older statement share, less verbs: "When
    does the gym close?" is about the gym. A statement that has the keys, or some of them and tells
    of a change or has a value of the same kind, answers the question, unless it is said of another.
    """
    basis = _basis(old_text, question)
    if not basis.is_answer:
        return False
    new = _reading(new_text)
    if new.said.is_past or (new.said.is_doubtful and not basis.old.said.is_doubtful):
        return False
    if not new.said.owners <= basis.known:
        return False
    pair = _Pair(basis, new)
    return not pair.is_about_another and pair.is_news


class _Basis(NamedTuple):
    """An older statement beside a question: what later statements are compared with.

    `keys` and `verbs` of the question are those that the statement has, `known` is what the two
    speak of, `named` are the names in the question. `is_answer` says that it answers the question.
    """

    old: _Reading
    asked: _Reading
    keys: frozenset[str]
    verbs: frozenset[str]
    known: frozenset[str]
    named: frozenset[str]
    is_answer: bool


@lru_cache(READINGS_KEPT)
def _basis(old_text: str, question: str) -> _Basis:
    old, asked = _reading(old_text), _reading(question)
    shared = asked.said.topic & old.said.topic
    verbs = shared & _verbs(asked, old)
    capital = (word for word in asked.words[1:] if word.is_capital)
    named = frozenset(stem for word in capital for stem in word.stems)
    is_answer = 2 * len(shared) >= len(asked.said.topic) and named <= old.said.topic
    known = asked.said.topic | old.said.topic
    return _Basis(old, asked, shared - verbs, verbs, known, named, is_answer)


def _verbs(asked: _Reading, old: _Reading) -> set[str]:
    """Return the stems of a question that are verbs: by their place, or by two forms of one."""
    forms = {(stem, word.form) for word in old.words for stem in word.stems}
    found = {stem for word in old.words if word.before in SELF for stem in word.stems}
    is_supported = False
    for at, word in enumerate(asked.words):
        is_supported |= word.form in _SUPPORT
        is_second = at == 1 and asked.words[0].form in ASKING
        is_placed = is_second or word.before in SELF or word.before in _OTHERS
        if is_placed or (_VERB.search(word.form) and not _begins_noun(word.before)):
            found.update(word.stems)
        elif is_supported:
            found.update(stem for stem in word.stems if (stem, word.form + "s") in forms)
    return found


def _begins_noun(form: str) -> bool:
    """Return whether a noun follows a word."""
    return form in DEFINITE or form in RELATIVE or form.endswith("'s")


class _Pair:
    """An older and a newer statement beside a question."""

    def __init__(self, basis: _Basis, new: _Reading) -> None:
        self.old, self.asked, self.keys, self.verbs, self.known, self.named, _ = basis
        self.new = new
        # The words of the newer statement that neither the older nor the question has.
        self.foreign = [
            word
            for word in new.words
            if word.stems and not word.is_number and self.known.isdisjoint(word.stems)
        ]

    @property
    def is_about_another(self) -> bool:
        """Whether the newer statement says of somebody or something else what is asked."""
        lost = self.keys - self.new.said.topic
        foreign = self.foreign
        if lost & self.named and any(word.is_capital for word in foreign):
            return True
        if self._has_another_subject:
            return True
        if self.old.opens_with_self and self._opens_with_another(foreign):
            return True
        if any(_begins_noun(word.before) and self._qualifies(word, self.new) for word in foreign):
            # "The marketing team" is another than "our team"; but a shift is the early or the late.
            if not any(self._qualifies(word, self.old) for word in self.old.words):
                return True
        # "3 eggs" are no amount of sugar.
        if lost and any(topical(word.before)[1] for word in foreign if not word.is_capital):
            return True
        replaced = [word for word in self.old.words if lost.intersection(word.stems)]
        return any(_stands_for(word, other) for other in replaced for word in foreign)

    @property
    def _has_another_subject(self) -> bool:
        """Whether the one who is asked about is the subject of only one of both statements.

        "Eva is a nurse" and "The head of the clinic is Eva" tell two things of Eva. Of what opens
        both and is not asked for, "Cats eat mice" and "Owls eat mice" tell two things as well.
        """
        old, new = self.old.subject, self.new.subject
        if self.keys and self.keys <= self.named:
            return old.isdisjoint(self.keys) != new.isdisjoint(self.keys)
        first, other = self.old.words[:1], self.new.words[:1]
        return bool(
            first
            and other
            and not self.is_turned
            and first[0].stems
            and other[0] in self.foreign
            and first[0].after == other[0].after
            and self.asked.said.topic.isdisjoint(first[0].stems)
        )

    @property
    def is_turned(self) -> bool:
        """Whether the newer statement tells of a change, by a word that the older one lacks."""
        old, new = self.old.said, self.new.said
        return (new.is_turn and not old.is_turn) or (new.is_change and not old.is_change)

    @property
    def _is_definite(self) -> bool:
        """Whether the older statement speaks of one thing: "my car insurance", not "5 km"."""
        keyed = (word for word in self.old.words if self.keys.intersection(word.stems))
        return any(word.is_capital or _begins_noun(word.before) for word in keyed)

    def _qualifies(self, word: _Word, reading: _Reading) -> bool:
        """Return whether a word that is not asked for stands right before a key."""
        if not word.stems or not self.asked.said.topic.isdisjoint(word.stems):
            return False
        return any(
            word.after == other.form and not self.keys.isdisjoint(other.stems)
            for other in reading.words
        )

    def _opens_with_another(self, foreign: Collection[_Word]) -> bool:
        """Return whether the subject of the newer statement is not the first person."""
        first = next((word for word in self.new.words if word.stems), None)
        if self.new.opens_with_self or self.new.said.opens_with_turn:
            return False
        if first is None or first not in foreign:
            return False
        if first.before in DEFINITE:
            return first.before in OWN or OWN.isdisjoint(self.new.forms)
        is_name = first.opens and first.is_capital and not _VERB.search(first.form)
        return is_name and (OWN | SELF).isdisjoint(self.new.forms) and bool(first.after)

    @property
    def is_news(self) -> bool:
        """Whether the newer statement tells what is asked for, so that it may be otherwise now."""
        old, new, said = self.old, self.new, self.new.said
        kept = self.keys & said.topic
        missed = old.kinds_beside(new, self.asked)
        same = missed & new.kinds_beside(old, self.asked)
        fits = bool(same) or not missed
        lost_verb = bool(self.verbs) and self.verbs.isdisjoint(said.topic)
        told = not (old.answer - self.asked.said.topic).isdisjoint(said.topic)
        if said.is_end and told:
            return True
        if self._is_restated or (lost_verb and not _PAST_FORMS.isdisjoint(self.asked.forms)):
            return False
        if not kept:
            return self._is_news_of_self(bool(same), lost_verb)
        is_thing = bool(kept - self.named)
        if kept < self.keys:
            is_measured = bool(same - {"name"}) and not lost_verb
            return is_measured or (fits and said.is_change and (is_thing or said.is_turn))
        if lost_verb and not said.is_change and not self._is_definite:
            return False
        if same - {"name"} or self._is_denied:
            return True
        if said.is_turn:
            return not lost_verb or bool(same) or told
        if said.is_change:
            return not lost_verb or (is_thing and fits)
        return not lost_verb and fits

    @property
    def _is_restated(self) -> bool:
        """Whether the newer statement says again all that the older one says, as it was."""
        is_whole = self.old.said.topic <= self.new.said.topic and self.old.values <= self.new.values
        is_turned = self.new.said.is_turn or self.new.said.is_change
        return is_whole and not is_turned and not self._is_denied

    @property
    def _is_denied(self) -> bool:
        """Whether one of both statements says *not*, and the other does not."""
        return _NOT.isdisjoint(self.old.forms) != _NOT.isdisjoint(self.new.forms)

    def _is_news_of_self(self, is_same: bool, lost_verb: bool) -> bool:
        """Return whether the newer statement tells it of the first person, without any key."""
        old, new = self.old, self.new
        if _SELF_SIGNS.match(new.said.news) and _NOT_OWNED.match(old.said.news):
            return new.said.is_turn
        is_self = new.opens_with_self or new.said.opens_with_turn or self._is_elliptic
        if not old.opens_with_self or not is_self or not is_same:
            return False
        if self.keys or lost_verb:
            # No word is left that tells what the change is of: then nothing else may be told.
            return new.said.is_turn and all(word.is_capital for word in self.foreign)
        return bool(self.verbs)

    @property
    def _is_elliptic(self) -> bool:
        """Whether the newer statement begins with a word of the question: "Meeting at 5 now"."""
        return bool(self.new.words) and not self.known.isdisjoint(self.new.words[0].stems)


def _stands_for(word: _Word, other: _Word) -> bool:
    """Return whether a word has the place that another one has in the older statement."""
    if word.after and word.after == other.after and (not word.is_capital or other.opens):
        return True
    return _begins_noun(word.before) and _begins_noun(other.before)
