"""Samples for the fit of the answer network: triples with an answer, and many more without one.

The triples of `answer_triples.py` have an answer. Any two texts beside any question make a triple
without one, which the teacher (`answer_teacher.py`) answers: two texts of one line; texts of lines
whose questions are similar; what a recall would compare in a small store; and lines in which some
words are exchanged for similar ones. All become arrays (`Samples`), so that a fit needs neither the
texts nor WorldDB, and can run on another machine.
"""

from __future__ import annotations

import lzma
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.answer_triples import BLIND, GROUPS, Triple, blind, fitted, lines, topics
from worlddb.embed.embedder import static_vectors, word_sums
from worlddb.embed.embedder_catalog import ARCTIC_EMBED_S
from worlddb.embed.onnx_embedder import WordPiece
from worlddb.language.proper_names import TOWNS, is_given
from worlddb.language.statement import COPULAS, DEFINITE, OWN, SELF, listed, statement_of
from worlddb.recall.answer_network import read_words

SHARES = {
    "given": 1.0,
    "composed": 0.4,
    "chained": 0.2,
    "unasked": 0.1,
    "random": 0.4,
    "unrelated": 0.4,
    "blind": 0.0,
}
"""How often a triple is drawn, by where it comes from."""
COMPARED_SHARES = {"line": 1.0, "near": 1.0, "store": 2.0, "varied": 1.0}
OTHERS_MAX, UNRELATED_DRAWN, POOL = 40, 200, 500
UNLIKE = 0.5  # the similarity of questions below which an answer to one is none to the other
NEAR, NEAREST = 40, 10  # lines with similar questions that a line is mixed with
MIXED, MIXED_AGAIN = 50, 20  # triples of a line with texts of others as later ones, and as both
STORES, STORE_LINES, STORE_FILLERS, STORE_LATER = 2, 12, 8, 0.7
HITS, ANSWERS, PAIRS = 20, 3, 12  # of a recall, as in `hit_order.py`
VARIED, VARIED_PAIRS = 3, 45  # variants of a line, and triples of each
OFTEN, SIMILAR, LONG = 250, 12, 4  # common words are kept; so are short ones
EXCHANGED = (0.1, 0.4)  # share of the words of a line
NAMED, NUMBERED = 0.5, 0.7  # share of names and numbers that are exchanged
YEAR = re.compile(r"(19|20)\d\d")
TOKENS_MAX = 48  # of a text, for the teacher

_FUNCTION = listed("function") | COPULAS | DEFINITE | SELF | OWN
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+")

Array = NDArray[np.generic]
Compared = tuple[str, str, str]


class Line(NamedTuple):
    """A line of a file: a question and the texts beside it, the older one first."""

    language: str
    question: str
    texts: list[str]


class Samples(NamedTuple):
    """Texts as words and tokens, and triples as texts.

    `ids` are the words of all texts, `sizes` of them in each; `forms`, `stems` and `flags` are
    those of a word, `vectors` those of a form, as whole numbers with a scale. `tokens` are for the
    teacher. `triples` have `labels`, the `compared` ones have none; both have shares. `sources`
    name the blind files, which are judged and not fitted to.
    """

    ids: Array
    sizes: Array
    forms: Array
    stems: Array
    flags: Array
    vectors: Array
    scales: Array
    tokens: Array
    token_sizes: Array
    triples: Array
    labels: Array
    shares: Array
    sources: Array
    compared: Array
    compared_shares: Array

    def save(self, path: Path) -> None:
        """Write the arrays to a file."""
        with lzma.open(path, "wb", preset=6) as file:
            np.savez(file, allow_pickle=False, **self._asdict())


def known_lines() -> list[Line]:
    """Return all lines that are fitted to, with those texts that are statements."""
    found = []
    for name in GROUPS:
        for it in lines(name):
            texts = [it["older"], *it["updates"], *(text for _, text in it["decoys"])]
            texts = [text for text in dict.fromkeys(texts) if statement_of(text) is not None]
            if len(texts) > 2:
                found.append(Line(it["language"], it["question"], texts))
    return found


# -- triples with an answer ------------------------------------------------------------------------


def answered(chance: random.Random) -> list[Triple]:
    """Return the triples with an answer: as written, with texts of other lines, and the blind."""
    items = fitted(chance)
    found = [*items, *_with_others(items, chance), *_unrelated(items, chance)]
    found += _of_namesakes(items, chance)
    found = [it for it in found if it.is_compared]
    for name in BLIND:
        found += [it._replace(author=name, source="blind") for it in blind(name)]
    return found


class _Pool:
    """The texts of one language, with the lines they come from and their vectors."""

    def __init__(self, texts: dict[str, tuple[str, str]]) -> None:
        self.texts = sorted(texts)
        self.keys = [texts[text][0] for text in self.texts]
        self.vectors = _vectors(self.texts)
        self.questions = _vectors([texts[text][1] or "." for text in self.texts])

    def others(self, it: Triple, chance: random.Random) -> list[str]:
        """Return some texts that do not answer the question, most like the question first."""
        asked = _vectors([it.question])[0]
        drawn = chance.sample(range(len(self.texts)), min(POOL, len(self.texts)))
        unlike = (self.questions[drawn] @ asked < UNLIKE).tolist()
        fit = [
            at
            for at, is_unlike in zip(drawn, unlike, strict=True)
            if self.keys[at] != it.key and (is_unlike or not self.keys[at])
        ]
        fit.sort(key=lambda at: -float(self.vectors[at] @ asked))
        return [self.texts[at] for at in fit[:OTHERS_MAX]]


def _with_others(items: Sequence[Triple], chance: random.Random) -> Iterator[Triple]:
    """Yield older texts with later ones that have nothing to do with the question."""
    texts: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for it in items:
        if it.source in ("given", "composed"):
            for text in (it.older, it.newer):
                texts[it.language].setdefault(text, (it.key, it.question))
    for language, fillers in _fillers().items():
        for text in fillers:
            texts[language].setdefault(text, ("", ""))
    pools = {language: _Pool(found) for language, found in texts.items()}
    lines_seen: set[tuple[str, str]] = set()
    for it in items:
        if it.source in ("given", "composed") and (it.question, it.older) not in lines_seen:
            lines_seen.add((it.question, it.older))
            for _ in range(2):
                others = pools[it.language].others(it, chance)
                for text in (*others[:1], *chance.sample(others[1:], min(2, len(others[1:])))):
                    yield it._replace(newer=text, label=0, source="random", kind="random")


def _of_namesakes(items: Sequence[Triple], chance: random.Random) -> Iterator[Triple]:
    """Yield updates that say the name of somebody else than the question does."""
    given = sorted({it for one in items for it in _WORD.findall(one.newer) if _is_name(it)})
    for it in items:
        names = set(filter(_is_name, _WORD.findall(it.question)))
        if it.source == "given" and it.label and names & set(_WORD.findall(it.newer)):
            other = {name: chance.choice(given) for name in names}
            if names.isdisjoint(other.values()):
                newer = _WORD.sub(lambda found, to=other: to.get(found[0], found[0]), it.newer)  # type: ignore[misc]
                yield it._replace(newer=newer, label=0, source="random", kind="person")


def _is_name(word: str) -> bool:
    return word[0].isupper() and is_given(word.lower())


def _unrelated(items: Sequence[Triple], chance: random.Random) -> Iterator[Triple]:
    """Yield updates of other lines as later texts: what sounds like news, of something else."""
    groups: dict[str, list[Triple]] = defaultdict(list)
    for it in items:
        if it.source == "given" and it.label:
            groups[it.key].append(it)
    news: dict[str, list[Triple]] = defaultdict(list)
    for some in groups.values():
        news[some[0].language] += some
    told = {language: _vectors([it.newer for it in some]) for language, some in news.items()}
    asked = {language: _vectors([it.question for it in some]) for language, some in news.items()}
    for key, some in groups.items():
        language, question = some[0].language, some[0].question
        vector, others = _vectors([question])[0], news[language]
        drawn = chance.sample(range(len(others)), min(UNRELATED_DRAWN, len(others)))
        unlike = asked[language][drawn] @ vector < UNLIKE
        fit = [at for at, ok in zip(drawn, unlike.tolist(), strict=True) if ok]
        fit = [at for at in fit if others[at].key != key]
        if len(fit) < 2:
            continue
        near = sorted(fit, key=lambda at: -float(told[language][at] @ vector))
        for at in (*near[:2], chance.choice(fit)):  # an update, of what was not asked for
            it = others[at]._replace(question=question, label=0)
            yield it._replace(source="unrelated", kind="random")
        own = [it.newer for it in some]
        for older in (some[0].older, *chance.sample(own, min(2, len(own)))):
            for newer in (chance.choice(near[:3]), chance.choice(fit)):
                it = some[0]._replace(older=older, newer=others[newer].newer, label=0)
                yield it._replace(source="unrelated", kind="random")


# -- triples that the teacher answers --------------------------------------------------------------


def compared(every: Sequence[Line], chance: random.Random) -> dict[str, list[Compared]]:
    """Return triples without an answer, by kind."""
    varied = _Variation(every, chance)
    found: dict[str, list[Compared]] = {
        "line": [it for line in every for it in _within(line)],
        "near": list(_mixed(every, chance)),
        "store": list(_stored(every, chance)),
        "varied": [],
    }
    for line in every:
        for _ in range(VARIED):
            pairs = _within(varied.of(line))
            found["varied"] += chance.sample(pairs, min(VARIED_PAIRS, len(pairs)))
    return found


def _within(line: Line) -> list[Compared]:
    return [
        (line.question, one, other) for one in line.texts for other in line.texts if one != other
    ]


def _mixed(every: Sequence[Line], chance: random.Random) -> Iterator[Compared]:
    """Yield triples of texts of lines whose questions are similar."""
    for some in _by_language(every).values():
        vectors = _vectors([it.question for it in some])
        near = vectors @ vectors.T
        for at, line in enumerate(some):
            similar = [some[it] for it in np.argsort(-near[at])[1 : NEAR + 1].tolist()]
            if not similar:
                continue
            for number in range(MIXED + MIXED_AGAIN):
                of = similar[:NEAREST] if chance.random() < 0.5 else similar
                other = chance.choice(of).texts
                texts = line.texts if number < MIXED else other
                later = other if number < MIXED else chance.choice([line.texts, other])
                pair = chance.choice(texts), chance.choice(later)
                if pair[0] != pair[1]:
                    yield line.question, *pair


def _stored(every: Sequence[Line], chance: random.Random) -> Iterator[Compared]:
    """Yield what a recall would compare in small stores of some lines and other texts."""
    fillers = _fillers()
    groups = _by_language(every)
    for line in every:
        for _ in range(STORES):
            some = groups[line.language]
            texts: list[str] = []
            for it in (line, *chance.sample(some, min(STORE_LINES, len(some)))):
                texts.append(it.texts[0])
                if chance.random() < STORE_LATER:
                    texts.append(chance.choice(it.texts[1:]))
            said = fillers.get(line.language, [])
            texts += chance.sample(said, min(STORE_FILLERS, len(said)))
            texts = list(dict.fromkeys(texts))
            vectors = _vectors([line.question, *texts])
            near = vectors @ vectors.T
            order = np.argsort(-near[0, 1:])[:HITS].tolist()
            ages = chance.sample(range(len(texts)), len(texts))
            pairs = [
                (old, new) for old in order[:ANSWERS] for new in order if ages[new] > ages[old]
            ]
            pairs.sort(key=lambda it: -near[0, it[1] + 1] - near[it[0] + 1, it[1] + 1])
            for old, new in pairs[:PAIRS]:
                yield line.question, texts[old], texts[new]


class _Variation:
    """Exchanges words, names and numbers of a line for similar ones, alike in all its texts."""

    def __init__(self, every: Sequence[Line], chance: random.Random) -> None:
        self._chance = chance
        self._similar: dict[tuple[str, str], list[str]] = {}
        for language, some in _by_language(every).items():
            words = [word for it in some for text in it.texts for word in _WORD.findall(text)]
            self._learn(language, Counter(word for word in words if word.islower()))
        capital = {
            word
            for it in every
            for text in it.texts
            for word in _WORD.findall(text)[1:]
            if word[0].isupper()
        }
        self._given = sorted(word for word in capital if is_given(word.lower()))
        self._towns = sorted(word for word in capital if word.lower() in TOWNS)

    def _learn(self, language: str, counts: Counter[str]) -> None:
        often = {word for word, _ in counts.most_common(OFTEN if len(counts) > 8 * OFTEN else 60)}
        words = [it for it in counts if it not in often | _FUNCTION and len(it) >= LONG]
        if len(words) <= SIMILAR:
            return
        vectors = word_sums(words).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-6
        for start in range(0, len(words), 2_000):
            near = vectors[start : start + 2_000] @ vectors.T
            best = np.argpartition(-near, SIMILAR, axis=1)[:, : SIMILAR + 1]
            for word, row in zip(words[start:], best.tolist(), strict=False):
                self._similar[language, word] = [words[it] for it in row if words[it] != word]

    def of(self, line: Line) -> Line:
        """Return a line with other words."""
        share = self._chance.uniform(*EXCHANGED)
        kept: dict[str, str] = {}

        def other(found: re.Match[str]) -> str:
            word = found[0]
            if word not in kept:
                kept[word] = self._other(line.language, word, share)
            return kept[word]

        texts = [_WORD.sub(other, text) for text in line.texts]
        return Line(line.language, _WORD.sub(other, line.question), list(dict.fromkeys(texts)))

    def _other(self, language: str, word: str, share: float) -> str:
        chance, low = self._chance, word.lower()
        if word.isdigit():
            if chance.random() >= NUMBERED:
                return word
            if YEAR.fullmatch(word):
                return str(int(word) + chance.randint(-6, 6))
            return chance.choice("123456789") + "".join(
                chance.choices("0123456789", k=len(word) - 1)
            )
        if word[0].isupper():
            for names, is_one in ((self._given, is_given(low)), (self._towns, low in TOWNS)):
                if is_one:
                    return chance.choice(names) if chance.random() < NAMED else word
        similar = self._similar.get((language, low))
        if similar is None or chance.random() >= share:
            return word
        found = chance.choice(similar)
        return found if word.islower() else found.capitalize()


# -- arrays ----------------------------------------------------------------------------------------


def samples(chance: random.Random, vocabulary: Path) -> Samples:
    """Return everything that is fitted to; `vocabulary` is that of the teacher."""
    given = answered(chance)
    found = compared(known_lines(), chance)
    every = [it for some in found.values() for it in some]
    texts: dict[str, int] = {}
    triples = _numbered(((it.question, it.older, it.newer) for it in given), texts)
    others = _numbered(every, texts)
    pieces = vocabulary.read_bytes().decode().removesuffix("\n").split("\n")
    reader = WordPiece(pieces, tokens_max=ARCTIC_EMBED_S.tokens_max)
    tokens = [reader.encode(text)[1:-1][:TOKENS_MAX] for text in texts]
    shares = [[COMPARED_SHARES[kind]] * len(some) for kind, some in found.items()]
    return Samples(
        **_read(list(texts)),
        tokens=np.array([it for some in tokens for it in some], np.uint16),
        token_sizes=np.array([len(some) for some in tokens], np.uint8),
        triples=triples,
        labels=np.array([it.label for it in given], np.uint8),
        shares=np.array([SHARES[it.source] for it in given], np.float32),
        sources=np.array([it.author if it.source == "blind" else "" for it in given]),
        compared=others,
        compared_shares=np.array([it for some in shares for it in some], np.float32),
    )


def _numbered(triples: Iterable[Compared], texts: dict[str, int]) -> NDArray[np.int32]:
    return np.array(
        [[texts.setdefault(it, len(texts)) for it in some] for some in triples], np.int32
    )


def _read(texts: Sequence[str]) -> dict[str, Array]:
    """Return the words of all texts, as the answer network reads them."""
    read = [read_words(text) for text in texts]
    known = {word: at for at, word in enumerate(dict.fromkeys(it for some in read for it in some))}
    forms = {form: at for at, form in enumerate(dict.fromkeys(it.form for it in known))}
    stems = {stem: at for at, stem in enumerate(dict.fromkeys(it.stem for it in known))}
    vectors = word_sums(list(forms))
    scales = np.abs(vectors).max(axis=1, keepdims=True) / 127 + 1e-9
    return {
        "ids": np.array([known[it] for some in read for it in some], np.int32),
        "sizes": np.array([len(some) for some in read], np.uint8),
        "forms": np.array([forms[it.form] for it in known], np.int32),
        "stems": np.array([stems[it.stem] for it in known], np.int32),
        "flags": np.array([it.flags for it in known], np.float16),
        "vectors": np.round(vectors / scales).astype(np.int8),
        "scales": scales.astype(np.float32),
    }


def _vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    found = static_vectors(texts)
    assert found is not None
    return found


def _fillers() -> dict[str, list[str]]:
    return {it.language: it.parts["f"] for it in topics() if it.topic == "fillers"}


def _by_language(every: Sequence[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in every:
        found[line.language].append(line)
    return found
