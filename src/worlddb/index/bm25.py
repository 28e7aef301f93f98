"""BM25 over the documents of one world, in memory, and how much of a question each document says.

A posting is a document number and a count in one integer. Equal documents in an equal order give
equal postings, whether they were added one by one or many at once.

    "When did Melanie go camping?"   shares   the words that a text has itself
                                     around   the words said in it, or near it in its conversation

A turn seldom repeats what the turns before it have named: "We went two weeks ago" has no word of
the question, but the turn before has. So a word counts for a turn, too, if it was said a few turns
before or after, and the less the farther away (`WordCover.around`).

A text may also say a word of the question by one that is like it (`SimilarWords`): by vectors of
single words, if the embedder has them.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import lru_cache
from itertools import chain
from typing import Any
from zlib import adler32, crc32

import numpy as np
from numpy.typing import NDArray

from worlddb.index.ranking_numbers import SCALARS, RankingScalars
from worlddb.language.text_tokens import words
from worlddb.language.word_forms import words_of

COUNT_BITS = 16  # of a posting are the count, the others the document number
COUNT_MAX = (1 << COUNT_BITS) - 1
POSTING_BYTES = 8  # of an unsigned integer of 64 bits
FEW_PLACES = 60  # filled one by one; for more, whole arrays cost less
SORTED_FROM = 100  # documents added at once; for fewer, a sort of their words costs more


def inverse_frequency(count: int, total: int) -> float:
    """Return the inverse document frequency of a word that `count` of `total` documents have."""
    return math.log1p((total - count + 0.5) / (count + 0.5))


def unlikely(
    near: NDArray[np.float32], best: NDArray[np.float32], lengths: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return how unlikely it is by chance that each text has a word as near as its best, 0 to 1.

    A row is a word that is asked for. A column of `near` is a word of a text, one of `best` is a
    text; `lengths` are the numbers of words of the texts. The share of all words that are at least
    as near gives the chance for one word, and so for a text of as many. A long text has some
    similar word to everything; the only text with a word like "violin" stands out. Few texts tell
    little of chance, so that it counts the less the fewer there are.
    """
    count, enough = near.shape[1], SCALARS.synonym_candidates_max
    ordered = np.sort(near, axis=1)
    below = [np.searchsorted(row, top) for row, top in zip(ordered, best, strict=True)]
    other = np.array(below) / count  # The share of words that are farther.
    chance = np.where(best > 0, 1 - other**lengths, 1.0)
    surprise = -np.log(chance) / math.log(enough)
    known = math.sqrt(min(1.0, len(lengths) / enough))
    # Squared: one word that hardly any other text has says more than some that a few have.
    found: NDArray[np.float64] = known * np.minimum(surprise, 1.0) ** 2
    return found


class _WordNumbers(dict[str, int]):
    """Word → its number, in the order in which words are first met."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


class Bm25:
    """BM25 over numbered documents. A posting is a document number and a count in one integer."""

    def __init__(self) -> None:
        self._postings: dict[str, array[int]] = {}
        self._lengths = array("I")
        self._total = 0
        self._among: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self._lengths)

    def among(self, places: NDArray[np.bool_]) -> Bm25:
        """Return the same documents, with word frequencies counted over some of them only."""
        found = copy(self)
        found._among = places
        found._total = int(np.frombuffer(self._lengths, dtype=np.uint32)[places].sum())
        return found

    def _size(self) -> int:
        return len(self) if self._among is None else int(self._among.sum())

    def add(self, words: Sequence[str]) -> None:
        """Add the next document."""
        number = len(self._lengths) << COUNT_BITS
        postings = self._postings
        packed: dict[str, int] = {}
        for word in words:
            packed[word] = packed.get(word, number) + 1
        for word, posting in packed.items():
            found = postings.get(word)
            if found is None:
                found = postings[word] = array("Q")
            found.append(posting if posting - number <= COUNT_MAX else number | COUNT_MAX)
        self._lengths.append(len(words))
        self._total += len(words)

    def extend(self, documents: Sequence[Sequence[str]]) -> None:
        """Add the next documents: many together cost half of what they cost one by one."""
        if len(documents) < SORTED_FROM:
            for words in documents:
                self.add(words)
            return
        numbers = _WordNumbers()
        first = len(self._lengths)
        lengths = np.fromiter(map(len, documents), dtype=np.uint32, count=len(documents))
        said = map(numbers.__getitem__, chain.from_iterable(documents))
        pairs = np.fromiter(said, dtype=np.int64, count=int(lengths.sum())) << 32
        pairs |= np.repeat(np.arange(first, first + len(documents)), lengths)
        pairs.sort()  # By word, then by document.
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        counts = np.minimum(np.diff(starts, append=len(pairs)), COUNT_MAX)
        pairs = pairs[starts]
        packed = (((pairs & 0xFFFFFFFF) << COUNT_BITS) | counts).astype(np.uint64).tobytes()
        ends = np.searchsorted(pairs >> 32, np.arange(len(numbers)), side="right")
        start = 0
        for word, end in zip(numbers, (ends * POSTING_BYTES).tolist(), strict=True):
            self._postings.setdefault(word, array("Q")).frombytes(packed[start:end])
            start = end
        self._lengths.frombytes(lengths.tobytes())
        self._total += int(lengths.sum())

    def count(self, word: str) -> int:
        """Return the number of documents that have a word."""
        if self._among is not None:
            return int(self._among[self.places_of(word)].sum())
        return len(self._postings.get(word, ()))

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word; 0 if no document has it."""
        return inverse_frequency(count, self._size()) if (count := self.count(word)) else 0.0

    def places_of(self, word: str) -> NDArray[np.intp]:
        """Return the numbers of the documents that have a word."""
        packed = np.frombuffer(self._postings.get(word, array("Q")), dtype=np.uint64)
        return (packed >> np.uint64(COUNT_BITS)).astype(np.intp)

    def has(self, word: str, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of some documents have a word."""
        packed = np.frombuffer(self._postings.get(word, b""), dtype=np.uint64)
        if not len(packed):
            return np.zeros(len(places), dtype=np.bool_)
        wanted = places.astype(np.uint64) << np.uint64(COUNT_BITS)
        # A count is at least 1, so the posting of a document is the first one above its number.
        found = np.minimum(np.searchsorted(packed, wanted), len(packed) - 1)
        has: NDArray[np.bool_] = packed[found] >> np.uint64(COUNT_BITS) == places
        return has

    def has_all(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Return which documents contain all the words."""
        wanted = set(words)
        counts = np.zeros(len(self), dtype=np.int64)
        for word in wanted:
            counts[self.places_of(word)] += 1
        return counts == len(wanted) if wanted else np.zeros(len(self), dtype=np.bool_)

    @property
    def rarity_max(self) -> float:
        """The highest possible rarity: that of a word that one document has."""
        return inverse_frequency(0, self._size())

    def scores(
        self, words: Mapping[str, float], rarity: Callable[[str], float] | None = None
    ) -> NDArray[np.float64]:
        """Return the score of every document for weighted words; `rarity` replaces our own."""
        k1, b = SCALARS.bm25_k1, SCALARS.bm25_b
        scores = np.zeros(len(self))
        if not self._total:
            return scores
        lengths = np.frombuffer(self._lengths, dtype=np.uint32)
        norms = k1 * (1 - b + b * lengths / (self._total / self._size()))
        for word, weight in words.items():
            postings = self._postings.get(word)
            if postings is not None:
                packed = np.frombuffer(postings, dtype=np.uint64)
                places = (packed >> np.uint64(COUNT_BITS)).astype(np.intp)
                counts = (packed & np.uint64(COUNT_MAX)).astype(np.float64)
                gain = weight * (rarity or self.rarity)(word) * (k1 + 1)
                scores[places] += gain * counts / (counts + norms[places])
        return scores

    def coverage(self, words: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the share of weighted words that each document has; rare words count more."""
        top = self.rarity_max
        worth = {word: weight * (self.rarity(word) or top) for word, weight in words.items()}
        total = sum(worth.values())
        shares = np.zeros(len(self))
        for word, amount in worth.items() if total else ():
            shares[self.places_of(word)] += amount / total
        return shares


class WordCover:
    """The share of a question's words that the texts at some places have.

    `tells` marks the texts that state something. A text that only asks has the same words as the
    question, but hardly ever the answer.
    """

    def __init__(
        self,
        index: Bm25,
        asked_for: Mapping[str, float],
        places: NDArray[np.intp],
        tells: NDArray[np.bool_],
    ) -> None:
        self._index = index
        self._places = places
        self._asked_for = asked_for
        self.shares = index.coverage(asked_for)[places]
        self.tells = tells

    def saying(self, key: str) -> NDArray[np.bool_]:
        """Return which places have all words of a name."""
        return self._index.has_all(words(key))[self._places]

    def around(
        self,
        parents: NDArray[np.int64],
        before: NDArray[np.intp],
        scalars: RankingScalars = SCALARS,
    ) -> NDArray[np.float64]:
        """Return the share of the words that are said at or near each place.

        `parents` are the worlds of the places, and `before` is the turn before each turn, see
        `Candidates.before`. A text that is no turn has no turns around it: its own words count
        again, by `said_alone`.
        """
        turns = np.flatnonzero(before >= 0)
        turns = turns[np.argsort(parents[turns], kind="stable")]
        index, top = self._index, self._index.rarity_max
        worth = {word: it * (index.rarity(word) or top) for word, it in self._asked_for.items()}
        said = [word for word in worth if index.count(word)]
        shares: NDArray[np.float64] = scalars.said_alone * self.shares
        if not len(turns) or not said:
            return shares
        has = np.zeros((len(said), len(index)), dtype=np.bool_)
        for number, word in enumerate(said):
            has[number, index.places_of(word)] = True
        near = nearness(has[:, self._places[turns]], before[turns] == turns, scalars)
        total = sum(worth.values())
        shares[turns] = (np.array([[worth[word] / total] for word in said]) * near).sum(axis=0)
        return shares


def nearness(
    has: NDArray[np.bool_], is_first: NDArray[np.bool_], scalars: RankingScalars = SCALARS
) -> NDArray[np.float64]:
    """Return how near each turn is to a turn with a word: 1 if it has the word itself.

    A row of `has` is a word, a column a turn, in order; `is_first` marks where a conversation
    begins.
    """
    count = has.shape[1]
    at = np.arange(count)
    starts = np.maximum.accumulate(np.where(is_first, at, 0))
    ends = np.append(np.flatnonzero(is_first)[1:], count)[np.cumsum(is_first) - 1]
    back, ahead = _fading(scalars.said_before, count), _fading(scalars.said_after, count)
    near = np.zeros(has.shape)
    for row, said in zip(near, map(np.flatnonzero, has), strict=True):
        if len(said) <= FEW_PLACES:
            _fill(row, said.tolist(), starts, ends, back, ahead)
            continue
        last = np.repeat(np.append(-1, said), np.diff(said, prepend=0, append=count))
        after = np.repeat(np.append(said, count), np.diff(said, prepend=-1, append=count - 1))
        heard = np.where(last >= starts, back[at - np.maximum(last, starts)], 0.0)
        taken_up = np.where(after < ends, ahead[np.minimum(after, ends - 1) - at], 0.0)
        np.maximum(heard, taken_up, out=row)
    return near


def _fill(
    row: NDArray[np.float64],
    said: Sequence[int],
    starts: NDArray[np.intp],
    ends: NDArray[np.intp],
    back: NDArray[np.float64],
    ahead: NDArray[np.float64],
) -> None:
    """Fill a row of `nearness`, in which the word is said at a few places."""
    before, taken_up = -1, np.zeros(len(row))
    for place, following in zip(said, (*said[1:], len(row)), strict=False):
        end, start = min(following, int(ends[place])), max(before + 1, int(starts[place]))
        row[place:end] = back[: end - place]
        taken_up[start : place + 1] = ahead[: place + 1 - start][::-1]
        before = place
    np.maximum(row, taken_up, out=row)


def _fading(factor: float, count: int) -> NDArray[np.float64]:
    """Return the powers of a factor, at least `count` of them."""
    return _powers(factor, 1 << count.bit_length())


@lru_cache(64)  # Each size up to that of the largest world, of a few factors: a megabyte or two.
def _powers(factor: float, count: int) -> NDArray[np.float64]:
    return np.asarray(factor ** np.arange(count), dtype=np.float64)


# -- words like those of the question --------------------------------------------------------------

SAID_WORD = re.compile(r"[^\W\d_]{2,}")
WORDS_AT_FIRST = 256  # room for the words of a small world
SAID_CHARS = 20_000  # of a text; a longer text is a document that has every word somewhere
COMMON = words_of("language", "common_words.txt", "stop")


class SaidWords:
    """The distinct words of numbered texts, and the vectors of the words compared so far.

    A text is added when it is first compared; most texts of a world never are.
    """

    def __init__(self) -> None:
        self._words = [""]
        self._numbers: dict[str, int] = {}
        self._said: dict[int, NDArray[np.uint32]] = {}
        self._keys = np.zeros(WORDS_AT_FIRST, dtype=np.uint64)
        self._matrix = np.zeros((0, 0), dtype=np.float32)
        self._is_known = np.zeros(0, dtype=np.bool_)

    def __contains__(self, at: int) -> bool:
        return at in self._said

    def add(self, at: int, text: str) -> None:
        """Add a text by its number."""
        numbers, said, found = self._numbers, self._words, [0]  # The number of no word.
        for word in set(SAID_WORD.findall(text[:SAID_CHARS].lower())) - COMMON:
            number = numbers.get(word)
            if number is None:
                said.append(word)
                number = numbers[word] = len(said) - 1
                if number == len(self._keys):
                    self._keys = _grown(self._keys, 2 * number)
                self._keys[number] = _order_key(word)
            found.append(number)
        self._said[at] = np.array(found, dtype=np.uint32)

    def met(
        self,
        places: Sequence[int],
        asked: Mapping[str, float],
        embed: Callable[[Sequence[str]], NDArray[np.float32]],
    ) -> NDArray[np.float64]:
        """Return how well texts meet words: the likeness of the nearest word, and its surprise."""
        total, texts = sum(asked.values()), [self._said[at] for at in places]
        if not total or not texts:
            return np.zeros(len(places))
        flat = np.concatenate(texts)
        lengths = np.array([*map(len, texts)])
        is_said = np.zeros(len(self._words), dtype=np.bool_)
        is_said[flat] = True
        # Sorted by the words, not their numbers: sums must not depend on earlier questions.
        numbers = np.flatnonzero(is_said)
        numbers = numbers[np.argsort(self._keys[numbers], kind="stable")]
        column = np.zeros(len(self._words), dtype=np.intp)
        column[numbers] = np.arange(len(numbers))
        by_word = embed([*asked]) @ self._vectors(numbers, embed).T
        by_word[:, 0] = 0.0
        near = by_word[:, column[flat]]
        best = np.maximum.reduceat(near, np.cumsum(lengths) - lengths, axis=1)
        worth = np.array([*asked.values()]) / total
        met: NDArray[np.float64] = (worth[:, None] * best).sum(axis=0)
        met += SCALARS.unlikely_worth * unlikely(near, best, lengths).mean(axis=0)
        return met

    def _vectors(
        self, numbers: NDArray[np.intp], embed: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """Return the vectors of some words."""
        if len(self._is_known) < len(self._words):
            self._is_known = _grown(self._is_known, 2 * len(self._words))
        new = numbers[~self._is_known[numbers]]
        if len(new):
            made = embed([self._words[number] for number in new])
            if len(self._matrix) < len(self._words):
                known = self._matrix if len(self._matrix) else made[:0]
                self._matrix = _grown(known, len(self._is_known))
            self._matrix[new] = made
            self._is_known[new] = True
        return self._matrix[numbers]


def _order_key(word: str) -> int:
    """Return a number by which words are sorted; that of no word is 0."""
    encoded = word.encode()
    return crc32(encoded) << 32 | adler32(encoded)


def _grown(held: NDArray[Any], size: int) -> NDArray[Any]:
    """Return an array with more rows; the new ones are zero."""
    found = np.zeros((size, *held.shape[1:]), dtype=held.dtype)
    found[: len(held)] = held
    return found


def said_words(texts: Iterable[str]) -> SaidWords:
    """Return the words of some texts."""
    said = SaidWords()
    for at, text in enumerate(texts):
        said.add(at, text)
    return said


class SimilarWords:
    """Scores candidates by their words that are most similar to the words of the question.

    `said` returns the words of the candidates at some positions, and their numbers.
    """

    def __init__(
        self,
        asked: Mapping[str, float],
        embed: Callable[[Sequence[str]], NDArray[np.float32]],
        said: Callable[[Sequence[int]], tuple[SaidWords, Sequence[int]]],
    ) -> None:
        self._asked, self._embed, self._said = asked, embed, said

    def read(self, places: Sequence[int]) -> NDArray[np.float64]:
        """Return how well the candidates at some positions cover the question, 0 to 1."""
        said, numbers = self._said(places)
        return said.met(numbers, self._asked, self._embed)
