"""Answer network: the probability that a later text answers a question anew.

    "Where do I live?"
    "I live in Hamburg."            ──▶  words as vectors, read in  ──▶  each word beside its  ──▶
    "Finally settled in Lisbon!"         the company of their text       counterparts in the
                                                                         other two texts

The words of a text are vectors of the default embedder, which is in the wheel, whatever embedder
the store has. A learned projection makes them small; neighbours and the rest of the text are mixed
in by attention. Each word then looks for its counterpart in the other two texts, likewise by
attention. What the words differ by is summed up per text, and the sums are weighed.

The numbers are in `answer_network.npz`, and where they come from is in `answer_network.json`; both
are written by `python -m bench.answer_change --write`. The network learned from a larger model
that reads whole sentences; that model is not needed here.

B1  Only the pairs nearest in meaning are read. Three kinds of texts are never a new answer: what
    adds nothing; what repeats the older text without a word of change or negation; and what has a
    title that is neither in the older text nor in the question, so is about something else.
B2  Without the files of the embedder, nothing is read, and 0 is the probability of all.
B3  Numbers are read by their shape, and whether they are equal: 2204 and 7719 are two codes.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from math import sqrt
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.embedder import static_vectors, word_sums
from worlddb.language.proper_names import TOWNS, is_given
from worlddb.language.statement import (
    CALENDAR,
    COPULAS,
    DEFINITE,
    NEGATIONS,
    OWN,
    SELF,
    SPACELESS,
    listed,
    statement_of,
    title_of,
)
from worlddb.language.text_tokens import COUNTED, words
from worlddb.language.word_forms import fold

PAIRS_READ = 5
"""Pairs of a recall that are read: those nearest in meaning. With more, a recall takes longer, and
texts about other things are moved up."""
WORDS_MAX = 36  # of a text: a statement has at most 200 characters
TEXTS_KEPT = 2_048  # encoded texts cached: about 40 MB
LENGTH_UNIT, LENGTH_MAX = 10.0, 3.0  # of the vector of a word: how much the word says
LENGTH_LEAST, LENGTH_MOST = 0.2, 1.5  # of these units, as a factor of the direction
DIRECTION = 16.0  # the square root of 256: unit vectors are as long as random ones
POOLED = 3  # words added to the count of a mean, so that short texts are not louder
FAR = -1e4  # the attention that a word which is not there gets
SMALLEST, TINY = 1e-5, 1e-30  # added to a variance, and to a sum, before it divides
DIGITS_MANY = 8  # a number of so many digits is as long as they get
TIME_SHAPE, OTHER_SHAPE = 0.9, 0.5  # "9:30", "1,240": numbers that are no row of digits
MARKS, STOPS = ":?!.;,", ".!?;"

_SIGN = SPACELESS.pattern
_WORD = re.compile(
    rf"\d+(?:[.,:/-]\d+)*|{_SIGN}|[^\W\d_]+?(?={_SIGN})|[^\W\d_]+(?:['’][^\W\d_]+)*|[:?!.;,]"
)
_DIGIT = re.compile(r"\d")
_GENITIVE = re.compile(r"['’]s?$")
_FUNCTION = listed("function") | COPULAS | DEFINITE
_OWN = SELF | OWN

Floats = NDArray[np.float32]
Numbers = Mapping[str, NDArray[np.float32]]


class ReadWord(NamedTuple):
    """A word as it is looked up, what equals it, and its marks (`FLAGS`)."""

    form: str
    stem: str
    flags: tuple[float, ...]


FLAGS = (
    "mark",
    "stop",
    "number",
    "capital",
    "capital at start",
    "given name",
    "town",
    "calendar",
    "numeral",
    "function",
    "own",
    "shape",
)


def read_words(text: str) -> list[ReadWord]:
    """Return the words, numbers and marks of a text, characters where words are not spaced."""
    found: list[ReadWord] = []
    opens = True
    for match in _WORD.finditer(text):
        word = match[0]
        found.append(_read_word(word, opens=opens))
        opens = word in STOPS or word == ":"
        if len(found) == WORDS_MAX:
            break
    return found or [_read_word(".", opens=True)]


@lru_cache(16_384)
def _read_word(word: str, *, opens: bool) -> ReadWord:
    flags = dict.fromkeys(FLAGS, 0.0)
    if word in MARKS:
        flags |= {"mark": 1.0, "stop": float(word in STOPS)}
        return ReadWord(word, word, tuple(flags.values()))
    if word[0].isdigit():
        shape = TIME_SHAPE if ":" in word else OTHER_SHAPE
        shape = min(1.0, len(word) / DIGITS_MANY) if word.isdigit() else shape
        flags |= {"number": 1.0, "shape": shape}
        return ReadWord(_DIGIT.sub("0", word), word, tuple(flags.values()))
    low = fold(word)
    bare, is_self = _GENITIVE.sub("", low), low.partition("'")[0] in SELF
    is_capital = word[0].isupper()
    is_named = is_capital and (is_given(bare) or (bare.endswith("s") and is_given(bare[:-1])))
    flags |= {
        "capital": float(is_capital and not opens),
        "capital at start": float(is_capital and opens),
        "given name": float(is_named),
        "town": float(is_capital and bare in TOWNS),
        "calendar": float(low in CALENDAR),
        "numeral": float(low in COUNTED),
        "function": float(low in _FUNCTION),
        "own": float(low.partition("'")[0] in _OWN),
    }
    form = word if is_capital and not opens and not is_self else word.lower()
    return ReadWord(form, next(iter(words(bare)), low), tuple(flags.values()))


class _Encoded(NamedTuple):
    """A text: its words as rows of numbers, and what equals each word.

    A row is the unit vector of a word; the word in the company of its text; how it looks for
    counterparts; and how it is looked for.
    """

    rows: Floats
    stems: NDArray[np.int64]


ASKED, OLDER, NEWER = range(3)
"""The parts of a triple, in the order of their words."""
SIDES = (NEWER, OLDER, ASKED), (OLDER, NEWER, ASKED), (ASKED, OLDER, NEWER)
"""A part, and the two in which its words look for counterparts."""


class AnswerNetwork:
    """The network; `enough` is the probability from which a pair counts. Thread-safe."""

    def __init__(self, numbers: Numbers, enough: float) -> None:
        self._numbers = {name: np.asarray(it, dtype=np.float32) for name, it in numbers.items()}
        self.enough = enough
        of = self._numbers
        self._layers = sum(name.endswith(".qkv.weight") for name in of)
        self._heads = of["nr"].shape[1]
        self._vector, self._small = of["pr.weight"].shape
        self._search = np.concatenate([of["qk.0.0.weight"], of["qk.0.1.weight"]], axis=1)
        self._nearness = np.zeros((self._heads, len(SIDES), len(SIDES)), dtype=np.float32)
        for at, (one, *others) in enumerate(SIDES):
            for number, other in enumerate(others):
                self._nearness[:, one, other] = of["nr"][2 * at + number]
        self._encoded: OrderedDict[str, _Encoded] = OrderedDict()
        self._lock = Lock()

    def _linear(self, name: str, values: Floats) -> Floats:
        of = self._numbers
        return values @ of[f"{name}.weight"] + of[f"{name}.bias"]

    def _normed(self, name: str, values: Floats) -> Floats:
        of, width = self._numbers, values.shape[-1]
        values = values - np.add.reduce(values, axis=-1, keepdims=True) / width
        squares = np.einsum("...i,...i->...", values, values)[..., None]
        spread = np.sqrt(squares / width + SMALLEST)
        found: Floats = values / spread * of[f"{name}.weight"] + of[f"{name}.bias"]
        return found

    def encoded(self, texts: Iterable[str]) -> dict[str, _Encoded]:
        """Return the texts as rows of numbers; new ones are encoded at once, and kept."""
        asked = dict.fromkeys(texts)
        with self._lock:
            found = {it: self._encoded[it] for it in asked if it in self._encoded}
        if missing := [it for it in asked if it not in found]:
            found |= self._encode(missing)
            with self._lock:
                self._encoded.update((it, found[it]) for it in missing)
                while len(self._encoded) > TEXTS_KEPT:
                    self._encoded.popitem(last=False)
        return found

    def _encode(self, texts: Sequence[str]) -> dict[str, _Encoded]:
        of = self._numbers
        read = [read_words(text) for text in texts]
        counts = [len(it) for it in read]
        every = [word for it in read for word in it]
        sums = word_sums([word.form for word in every]).astype(np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None]
        units = sums / (lengths + 1e-6)
        sizes = np.clip(lengths / LENGTH_UNIT, 0, LENGTH_MAX)
        flags = np.concatenate([np.array([it.flags for it in every], np.float32), sizes], axis=1)
        flat = (units * DIRECTION) @ of["pr.weight"] * np.clip(sizes, LENGTH_LEAST, LENGTH_MOST)
        flat = np.tanh(flat + self._linear("fl", flags))
        there = np.arange(max(counts)) < np.array(counts)[:, None]
        wide = np.zeros((len(texts), max(counts) + 2, self._small), np.float32)
        wide[:, 1:-1][there] = flat
        small = wide[:, 1:-1]
        around = np.concatenate([wide[:, :-2], small, wide[:, 2:]], axis=2)
        small = small + np.maximum(self._linear("conv", around), 0) * there[:, :, None]
        for layer in range(self._layers):
            small = self._mixed(f"L.{layer}", small, there)
        flat = small[there]
        rows = np.concatenate([units, flat, flat @ self._search], axis=1)
        stems = np.array([hash(word.stem) for word in every])
        ends = np.cumsum(counts).tolist()
        return {
            text: _Encoded(rows[end - count : end], stems[end - count : end])
            for text, count, end in zip(texts, counts, ends, strict=True)
        }

    def _mixed(self, name: str, small: Floats, there: NDArray[np.bool_]) -> Floats:
        """Return words with what the rest of their text says about them."""
        position = self._numbers[f"{name}.pos"]
        heads, size = position.shape[0], there.shape[1]
        text, width = small.shape[0], small.shape[2]
        rows = self._linear(f"{name}.qkv", self._normed(f"{name}.n1", small))
        rows = rows.reshape(text, size, 3, heads, width // heads).transpose(2, 0, 3, 1, 4)
        apart = np.arange(size) - np.arange(size)[:, None]
        bias = np.where(apart >= 0, *(position[:, it][:, abs(apart)] for it in range(2)))
        score = rows[0] @ rows[1].swapaxes(2, 3) / sqrt(width / heads) + bias
        score += np.where(there, 0, FAR).astype(np.float32)[:, None, None, :]
        score = np.exp(score - score.max(axis=3, keepdims=True))
        mixed = score @ rows[2] / score.sum(axis=3, keepdims=True)
        mixed = mixed.swapaxes(1, 2).reshape(text, size, width)
        small = small + self._linear(f"{name}.o", mixed)
        inner = np.maximum(self._linear(f"{name}.i", self._normed(f"{name}.n2", small)), 0)
        found: Floats = small + self._linear(f"{name}.f", inner)
        return found

    def probabilities(self, triples: Sequence[tuple[str, str, str]]) -> Floats:
        """Return the probability of each question, older and later text."""
        known = self.encoded(text for it in triples for text in it)
        read = _Triples([[known[text] for text in it] for it in triples])
        heads, small = self._heads, self._small
        vector, end = self._vector, self._vector + self._small
        said, rows = read.rows[:, :, vector:end], read.rows[:, :, end:]
        rows = rows.reshape(*rows.shape[:2], 2, heads, small // heads).transpose(2, 0, 3, 1, 4)
        units = read.rows[:, :, :vector]
        near = units @ units.swapaxes(1, 2)
        score = rows[0] @ rows[1].swapaxes(2, 3) / sqrt(small / heads)
        nearness = self._nearness[:, read.part[:, None], read.part]
        score += nearness * near[:, None] + read.hidden[:, None]
        score = np.exp(score - score.max(axis=3, keepdims=True))
        equal = read.stems[:, :, None] == read.stems[:, None, :]
        met = [self._met(score, said, near, equal, part) for part in read.parts]
        told: list[Floats] = []
        for number, (one, *others) in enumerate(SIDES):
            own = read.parts[one]
            mine, there = said[:, own], read.is_there[:, own]
            found, marks = ([met[it][at][:, own] for it in others] for at in range(2))
            every = np.concatenate([mine, *found, *(mine * it for it in found), *marks], axis=2)
            words_told = np.maximum(self._linear(f"tell.{number}", every), 0) * there[:, :, None]
            count = there.sum(axis=1, keepdims=True, dtype=np.float32) + POOLED
            told += [words_told.max(axis=1), words_told.sum(axis=1) / count]
        sums = self._linear("out", np.tanh(self._linear("hid", np.concatenate(told, axis=1))))
        chances: Floats = (1 / (1 + np.exp(-sums[:, 0]))).astype(np.float32)
        return chances

    def _met(
        self, score: Floats, said: Floats, near: Floats, equal: NDArray[np.bool_], part: slice
    ) -> tuple[Floats, Floats]:
        """Return the counterparts of all words in a part, how near they are, and whether equal."""
        weight, there = score[:, :, :, part], said[:, part]
        count, size, small = there.shape
        values = there.reshape(count, size, self._heads, small // self._heads).swapaxes(1, 2)
        found = weight @ values / (weight.sum(axis=3, keepdims=True) + TINY)
        nearest = near[:, :, part].max(axis=2).clip(0, 1)
        marks = np.stack([nearest, equal[:, :, part].any(axis=2)], axis=2)
        return found.swapaxes(1, 2).reshape(said.shape), marks


class _Triples:
    """Encoded texts of triples as arrays: the words of question, older and later text in a row.

    `part` says what a word belongs to, `parts` are the places of each. `hidden` is far below 0 for
    words that are not there, or are of the same text.
    """

    def __init__(self, triples: Sequence[Sequence[_Encoded]]) -> None:
        sizes = [max(len(it.stems) for it in some) for some in zip(*triples, strict=True)]
        starts = [0, sizes[0], sizes[0] + sizes[1], sum(sizes)]
        self.parts = [slice(*it) for it in pairwise(starts)]
        self.part = np.repeat(np.arange(len(sizes)), sizes)
        shape = len(triples), starts[-1]
        self.rows = np.zeros((*shape, triples[0][0].rows.shape[1]), dtype=np.float32)
        self.stems = np.tile(-np.arange(1, shape[1] + 1), (shape[0], 1))
        self.is_there = np.zeros(shape, dtype=np.bool_)
        for at, some in enumerate(triples):
            for it, start in zip(some, starts, strict=False):
                end = start + len(it.stems)
                self.rows[at, start:end] = it.rows
                self.stems[at, start:end] = it.stems
                self.is_there[at, start:end] = True
        hidden = ~self.is_there[:, None, :] | (self.part[:, None] == self.part)
        self.hidden = np.where(hidden, np.float32(FAR), np.float32(0))


@cache
def answer_network() -> AnswerNetwork:
    """Return the network that was fitted."""
    folder = files("worlddb.recall")
    with folder.joinpath("answer_network.npz").open("rb") as file, np.load(file) as numbers:
        return AnswerNetwork(dict(numbers), enough())


@cache
def enough() -> float:
    """Return the probability from which a later text counts as a new answer."""
    path = files("worlddb.recall").joinpath("answer_network.json")
    return float(json.loads(path.read_text(encoding="utf-8"))["enough"])


def new_answers(
    question: str, texts: Sequence[str], pairs: Iterable[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """Return the probability of pairs of an older and a later text, by position; 0 if left out.

    `texts` are all texts that were found.
    """
    kept = [it for it in pairs if _may_answer(question, texts[it[0]], texts[it[1]])]
    vectors = static_vectors([question, *texts]) if kept else None
    if vectors is None:
        return {}
    near = np.einsum("ik,jk->ij", vectors, vectors)
    kept.sort(key=lambda it: -near[0, it[1] + 1] - near[it[0] + 1, it[1] + 1])
    kept = kept[:PAIRS_READ]
    triples = [(question, texts[old], texts[new]) for old, new in kept]
    return dict(zip(kept, answer_network().probabilities(triples).tolist(), strict=True))


def _may_answer(question: str, old: str, new: str) -> bool:
    """Return whether a text adds something to the older one, and has no title of its own (B1)."""
    of_old, of_new = _outline(old), _outline(new)
    if of_new.stems <= of_old.stems or (of_old.topic <= of_new.stems and not of_new.is_turned):
        return False
    if not of_new.title:
        return True
    known = of_old.title or of_old.stems | _outline(question).stems
    return of_new.title <= known


class _Outline(NamedTuple):
    """The stems of a text, of its words with a topic, and of its title, which it is about.

    `is_turned` says whether the text has a word of change or of negation.
    """

    stems: frozenset[str]
    topic: frozenset[str]
    title: frozenset[str]
    is_turned: bool


@lru_cache(TEXTS_KEPT)
def _outline(text: str) -> _Outline:
    title = title_of(text, lambda word: True)
    of_title = text[title.start : title.end] if title is not None else ""
    said, read = statement_of(text), [word for word in read_words(text) if not word.flags[0]]
    topic = frozenset(word.stem for word in read if not word.flags[FLAGS.index("function")])
    is_turned = (
        said is None or said.is_change or "n't" in text or not NEGATIONS.isdisjoint(said.words)
    )
    title_stems = frozenset(word.stem for word in read_words(of_title)) if of_title else frozenset()
    return _Outline(frozenset(word.stem for word in read), topic, title_stems, is_turned)
