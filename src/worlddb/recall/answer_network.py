"""Answer network: the probability that a later text answers a question anew.

    "Where do I live?"                    words as vectors, each compared with the
    "I live in Hamburg."            ──▶   most similar words of the two other texts   ──▶  network
    "Finally settled in Lisbon!"          signs of the pair (`answer_signs.py`)

The words of a text are vectors of the default embedder, which is in the wheel, whatever embedder
the store has. A learned projection makes them small; their neighbours in the text are added. Each
word of the later text then looks for its counterpart in the older text and in the question, and
each word of these two likewise (attention). What the words differ by is summed up per text and
weighed with the signs.

The numbers are in `answer_network.npz`, and where they come from is in `answer_network.json`; both
are written by `python -m bench.answer_change --write`.

B1  A pair is first judged by a few quick signs, and most pairs end there.
B2  Without the files of the embedder, a smaller network weighs the signs alone.
B3  Numbers are read by their shape, and whether they are equal: 2204 and 7719 are two codes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb.embed.embedder import static_vectors, word_sums
from worlddb.language.answer_signs import AnswerCompany
from worlddb.language.proper_names import TOWNS, is_given
from worlddb.language.statement import CALENDAR, COPULAS, DEFINITE, OWN, SELF, SPACELESS, listed
from worlddb.language.text_tokens import COUNTED, words
from worlddb.language.word_forms import fold

PAIRS_WEIGHED, PAIRS_READ = 10, 5
"""Pairs of a recall that are weighed by quick signs, and read: those nearest in meaning. With more,
a recall takes longer, and hardly another update comes first."""
WORDS_MAX = 40  # of a text: a statement has at most 200 characters
TEXTS_KEPT = 2_048  # encoded texts cached: about 20 MB
LENGTH_UNIT, LENGTH_MAX = 10.0, 3.0  # of the vector of a word: how much the word says
LENGTH_LEAST, LENGTH_MOST = 0.2, 1.5  # of these units, as a factor of the direction
DIRECTION = 16.0  # the square root of 256: unit vectors are as long as random ones
POOLED = 3  # words added to the count of a mean, so that short texts are not louder
FAR = -1e4  # the attention that a word which is not there gets
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
    """A text: unit vectors and stems of its words, and their small vectors by each network."""

    units: Floats
    stems: tuple[str, ...]
    small: Floats
    asking: Floats
    asked: Floats


class AnswerNetwork:
    """Some networks of one shape, whose mean is taken; the first axis of their numbers.

    `likely` are the weights of the quick signs, with a bias; `likely_enough` is the sum from which
    a pair is read. `enough` is the probability from which a pair counts.
    """

    def __init__(self, numbers: Numbers, likely_enough: float, enough: float) -> None:
        self._numbers = {name: np.asarray(it, dtype=np.float32) for name, it in numbers.items()}
        self._likely_enough, self.enough = likely_enough, enough
        self._encoded = lru_cache(TEXTS_KEPT)(self._encode)

    def _encode(self, text: str) -> _Encoded:
        """Return the words of a text as vectors."""
        of = self._numbers
        read = read_words(text)
        sums = word_sums([word.form for word in read])
        lengths = np.linalg.norm(sums, axis=1, keepdims=True).astype(np.float32)
        units = (sums / (lengths + 1e-6)).astype(np.float32)
        sizes = np.clip(lengths / LENGTH_UNIT, 0, LENGTH_MAX)
        flags = np.concatenate([np.array([word.flags for word in read], np.float32), sizes], 1)
        small = np.matmul(units * DIRECTION, of["project"])
        small = small * np.clip(sizes, LENGTH_LEAST, LENGTH_MOST)
        small = np.tanh(small + np.matmul(flags, of["flags"]) + of["flags_bias"])
        around = np.pad(small, ((0, 0), (1, 1), (0, 0)))
        around = np.concatenate([around[:, :-2], small, around[:, 2:]], axis=2)
        small = small + np.maximum(np.matmul(around, of["around"]) + of["around_bias"], 0)
        return _Encoded(
            units,
            tuple(word.stem for word in read),
            small,
            np.matmul(small, of["asking"]),
            np.matmul(small, of["asked"]),
        )

    def likely(self, rows: Sequence[Sequence[float]]) -> list[int]:
        """Return which rows of quick signs are of pairs worth reading, by their positions."""
        quick = np.array(rows, dtype=np.float32)
        quick = np.concatenate([quick, quick**2], axis=1)
        weights = self._numbers["likely"]
        sums = np.einsum("ij,j->i", quick, weights[:-1]) + weights[-1]
        best = np.argsort(-sums, kind="stable")[:PAIRS_READ]
        return [at for at in best.tolist() if sums[at] >= self._likely_enough]

    def probabilities(
        self, triples: Sequence[tuple[str, str, str]], signs: Sequence[Sequence[float]]
    ) -> Floats:
        """Return the probability of each question, older and later text, with the signs."""
        of = self._numbers
        texts = [_Padded([self._encoded(text) for text in it]) for it in zip(*triples, strict=True)]
        asked, old, new = texts
        found = []
        sides = (new, old, asked), (old, new, asked), (asked, old, new)
        for side, (one, *others) in enumerate(sides):
            found += self._told(side, one, others)
        rows = np.array(signs, dtype=np.float32)
        found.append(np.broadcast_to(rows, (len(of["hidden"]), *rows.shape)))
        hidden = np.tanh(np.matmul(np.concatenate(found, 2), of["hidden"]) + of["hidden_bias"])
        sums = np.matmul(hidden, of["out"])[:, :, 0] + of["out_bias"]
        chances: Floats = 1 / (1 + np.exp(-sums.mean(axis=0)))
        return chances

    def _told(self, side: int, one: _Padded, others: Sequence[_Padded]) -> list[Floats]:
        """Return what the words of one text say that their counterparts in the others do not."""
        of, parts, kernels = self._numbers, [one.small], []
        products = []
        for number, other in enumerate(others):
            near = np.matmul(one.units, other.units.transpose(0, 2, 1))
            weight = of["nearness"][:, 2 * side + number, None, None, None]
            score = np.matmul(one.asking, other.asked.transpose(0, 1, 3, 2)) + weight * near
            score = np.where(other.is_there[:, None, :], score, FAR)
            score = np.exp(score - score.max(axis=3, keepdims=True))
            aligned = np.matmul(score / score.sum(axis=3, keepdims=True), other.small)
            parts.append(aligned)
            products.append(one.small * aligned)
            equal = one.equals(other)
            near = np.where(other.is_there[:, None, :], near, 0).max(axis=2).clip(0, 1)
            kernels += [near, equal]
        marks = np.stack(kernels, axis=2)
        marks = np.broadcast_to(marks, (len(one.small), *marks.shape))
        every = np.concatenate([*parts, *products, marks], axis=3)
        told = np.matmul(every, of["tell"][:, side, None]) + of["tell_bias"][:, side, None, None]
        told = np.maximum(told, 0) * one.is_there[:, :, None]
        count = one.is_there.sum(axis=1, keepdims=True) + POOLED
        return [told.max(axis=2), told.sum(axis=2) / count]


class _Padded:
    """Some encoded texts as arrays of one size."""

    def __init__(self, texts: Sequence[_Encoded]) -> None:
        size = max(len(it.stems) for it in texts)
        self._stems = [it.stems for it in texts]
        nets, _, width = texts[0].small.shape
        self.is_there = np.zeros((len(texts), size), dtype=np.float32)
        self.units = np.zeros((len(texts), size, texts[0].units.shape[1]), dtype=np.float32)
        self.small, self.asking, self.asked = (
            np.zeros((nets, len(texts), size, width), dtype=np.float32) for _ in range(3)
        )
        for at, it in enumerate(texts):
            count = len(it.stems)
            self.is_there[at, :count] = 1
            self.units[at, :count] = it.units
            self.small[:, at, :count] = it.small
            self.asking[:, at, :count] = it.asking
            self.asked[:, at, :count] = it.asked

    def equals(self, other: _Padded) -> Floats:
        """Return for each word whether the other text of the pair has it, too."""
        found = np.zeros(self.is_there.shape, dtype=np.float32)
        for at, (mine, theirs) in enumerate(zip(self._stems, other._stems, strict=True)):
            found[at, : len(mine)] = [stem in theirs for stem in mine]
        return found


@cache
def answer_network() -> AnswerNetwork:
    """Return the networks that were fitted."""
    folder = files("worlddb.recall")
    with folder.joinpath("answer_network.npz").open("rb") as file, np.load(file) as numbers:
        return AnswerNetwork(dict(numbers), _number("likely_enough"), _number("enough"))


@cache
def _settings() -> dict[str, object]:
    path = files("worlddb.recall").joinpath("answer_network.json")
    found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return found


class SignNetwork(NamedTuple):
    """A network with one hidden layer for the signs alone."""

    inner: NDArray[np.float64]
    inner_bias: NDArray[np.float64]
    outer: NDArray[np.float64]
    outer_bias: float

    def probabilities(self, signs: Sequence[Sequence[float]]) -> NDArray[np.float64]:
        """Return the probability of each row of signs."""
        hidden = np.tanh(np.array(signs) @ self.inner + self.inner_bias)
        found: NDArray[np.float64] = 1 / (1 + np.exp(-(hidden @ self.outer + self.outer_bias)))
        return found


@cache
def sign_network() -> SignNetwork:
    """Return the network for stores without the files of the default embedder."""
    kept = _settings()["signs_alone"]
    assert isinstance(kept, dict)
    inner = np.array(list(kept["inner"].values()))
    bias, outer = np.array(kept["inner_bias"]), np.array(kept["outer"])
    return SignNetwork(inner, bias, outer, float(kept["outer_bias"]))


def _number(name: str) -> float:
    return float(str(_settings()[name]))


def enough() -> float:
    """Return the probability from which a later text counts as a new answer."""
    return answer_network().enough


def new_answers(
    question: str, texts: Sequence[str], pairs: Iterable[tuple[int, int]], *, read: bool = True
) -> dict[tuple[int, int], float]:
    """Return the probability of pairs of an older and a later text, by position; 0 if left out.

    `texts` are all texts that were found. Without `read`, the signs alone decide.
    """
    vectors = static_vectors([question, *texts]) if read else None
    company = AnswerCompany(question, texts, vectors)
    near = company.nearest(pairs, PAIRS_WEIGHED)
    quick = [(pair, row) for pair in near if (row := company.likeness(*pair)) is not None]
    if not quick:
        return {}
    if vectors is None:
        signs = [list(company.signs(*pair).values()) for pair, _ in quick]
        chances = sign_network().probabilities(signs).tolist()
        return dict(zip((pair for pair, _ in quick), chances, strict=True))
    network = answer_network()
    kept = [quick[at][0] for at in network.likely([row for _, row in quick])]
    if not kept:
        return {}
    signs = [list(company.signs(*pair).values()) for pair in kept]
    triples = [(question, texts[old], texts[new]) for old, new in kept]
    return dict(zip(kept, network.probabilities(triples, signs).tolist(), strict=True))
