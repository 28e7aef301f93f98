"""Fit and judge the comparison of two texts: does the later one answer the question anew?

    python -m bench.answer_change --judge     fits without one author after the other, and judges
    python -m bench.answer_change --write     fits to all triples, and writes the numbers
    python -m bench.answer_change --blind     what is not fitted to, end to end, in whole stores

The triples are those of `answer_triples.py`. Each is read in the company of other texts of the same
language, as in a recall, most of them those that are most like the question; some of the company
are later texts themselves, which have nothing to do with the question. The first two commands need
PyTorch (`answer_trainer.py`), and are fast with a graphics card only. `--judge` keeps the numbers
of its fits, and with `--fits` it reads them again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.answer_triples import BLIND, DATA, FITTED, Triple, blind, fitted, topics
from worlddb import Memory, RecallSettings
from worlddb.embed.embedder import static_vectors, word_sums
from worlddb.language.answer_signs import VECTOR_SIGNS, AnswerCompany
from worlddb.language.statement import statement_of
from worlddb.recall import answer_network
from worlddb.recall.answer_network import FLAGS, WORDS_MAX, AnswerNetwork, read_words

FOLDER = Path(answer_network.__file__).parent
SETTINGS, NUMBERS = FOLDER / "answer_network.json", FOLDER / "answer_network.npz"
COMMAND = "python -m bench.answer_change --write"
SEED = 7  # What is composed and drawn, the first weights, the resamples of the intervals.
NETWORKS = 1  # whose mean is taken: with two, no more is found
HIDDEN = 12  # units of the network of signs alone
RIDGE = 3e-4  # of its weights, in the mean loss
STEPS, RATE = 300, 0.02  # of Adam, on all triples at once
COMPANY = (0, 0, 3, 8, 16, 24, 36)  # other texts beside a pair: a recall compares up to twenty
UNRELATED_DRAWN = 200  # updates of other lines, of which some are compared with each line
POOL, UNLIKE = 500, 0.5  # texts from which the company is chosen, to questions so unlike at most
NEAREST_SHARE = 0.6  # of the companies that are the texts most like the question
SHARES = {
    "given": 1.0,
    "composed": 0.4,
    "chained": 0.2,
    "unasked": 0.1,
    "random": 0.4,
    "unrelated": 0.4,
}
"""What a triple counts, by where it comes from."""
ENOUGH = 0.63
"""From which probability on a pair counts: so do 2 % of the decoys of the everyday author, in a fit
without that author. The first three blind files were in sight when it was chosen."""
LIKELY_KEPT = 0.8  # share of the updates that the quick signs let through
TOUCHED = 0.02  # share of the decoys of left-out authors that may be taken for updates
LINES_ASKED = 200  # of each author, end to end
STORE_TRIPLES, STORE_FILLERS = 10, 20  # in each store of the measure end to end
RESAMPLES = 1_000  # for intervals of 95 %

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Array = NDArray[Any]


class Table(NamedTuple):
    """The signs and quick signs of triples, one row each, with what the triples are."""

    names: tuple[str, ...]
    rows: Floats
    quick: Floats
    labels: Floats
    items: list[Triple]

    @property
    def shares(self) -> Floats:
        """What each row counts."""
        return np.array([SHARES[it.source] for it in self.items])

    def are_given(self) -> Flags:
        """Which triples are as they were written."""
        return np.array([it.source == "given" for it in self.items])


class _Pool:
    """The texts of one language, with the lines they come from and their vectors."""

    def __init__(self, texts: Mapping[str, tuple[str, str]]) -> None:
        self.texts = sorted(texts)
        self.keys = [texts[text][0] for text in self.texts]
        self.vectors = _vectors(self.texts)
        self.questions = _vectors([texts[text][1] or "." for text in self.texts])

    def company(self, it: Triple, chance: random.Random) -> list[str]:
        """Return some texts that do not answer the question."""
        asked = _vectors([it.question])[0]
        drawn = chance.sample(range(len(self.texts)), min(POOL, len(self.texts)))
        unlike = (self.questions[drawn] @ asked < UNLIKE).tolist()
        fit = [
            at
            for at, is_unlike in zip(drawn, unlike, strict=True)
            if self.keys[at] != it.key and (is_unlike or not self.keys[at])
        ]
        if chance.random() < NEAREST_SHARE:
            fit.sort(key=lambda at: -float(self.vectors[at] @ asked))
        return [self.texts[at] for at in fit[: chance.choice(COMPANY)]]


def unrelated(items: Sequence[Triple], chance: random.Random) -> Iterator[tuple[Triple, list[str]]]:
    """Yield answers of each line with updates of other lines, and a company.

    What sounds like news is no update of other news.
    """
    lines: dict[str, list[Triple]] = defaultdict(list)
    for it in items:
        if it.source == "given" and it.label:
            lines[it.key].append(it)
    news: dict[str, list[Triple]] = defaultdict(list)
    for some in lines.values():
        news[some[0].language] += some
    told = {language: _vectors([it.newer for it in some]) for language, some in news.items()}
    asked = {language: _vectors([it.question for it in some]) for language, some in news.items()}
    for key, some in lines.items():
        language, question = some[0].language, some[0].question
        vector = _vectors([question])[0]
        others = news[language]
        drawn = chance.sample(range(len(others)), min(UNRELATED_DRAWN, len(others)))
        unlike = asked[language][drawn] @ vector < UNLIKE
        fit = [at for at, ok in zip(drawn, unlike.tolist(), strict=True) if ok]
        fit = [at for at in fit if others[at].key != key]
        if len(fit) < 2:
            continue
        near = sorted(fit, key=lambda at: -float(told[language][at] @ vector))
        own = [it.newer for it in some]
        answers = [some[0].older, *chance.sample(own, min(2, len(own)))]
        for older in answers:
            for newer in (chance.choice(near[:3]), chance.choice(fit)):
                company = [others[at].newer for at in near[: chance.choice(COMPANY) // 2]]
                company += chance.sample([*answers, *own], 2)
                it = some[0]._replace(older=older, newer=others[newer].newer, label=0)
                it = it._replace(source="unrelated", kind="random")
                yield it, [text for text in company if text not in (it.older, it.newer)]


def _vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    found = static_vectors(texts)
    assert found is not None
    return found


def table_of(items: Sequence[Triple], chance: random.Random) -> Table:
    """Return the signs of triples, each in company, and of some of the company as later texts."""
    texts: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for it in items:
        if it.source in ("given", "composed"):
            for text in (it.older, it.newer):
                texts[it.language].setdefault(text, (it.key, it.question))
    for topic in topics():
        for text in topic.parts.get("f", ()) if topic.topic == "fillers" else ():
            texts[topic.language].setdefault(text, ("", ""))
    pools = {language: _Pool(found) for language, found in texts.items()}
    rows: list[dict[str, float]] = []
    quick: list[list[float]] = []
    kept: list[Triple] = []

    def add(it: Triple, place: int, company: AnswerCompany) -> None:
        if (likeness := company.likeness(0, place)) is not None:
            rows.append(company.signs(0, place))
            quick.append(likeness)
            kept.append(it)

    for it in items:
        others = pools[it.language].company(it, chance)
        found = [it.older, it.newer, *others]
        company = AnswerCompany(it.question, found, static_vectors([it.question, *found]))
        for place, one in _later(it, found, company):
            add(one, place, company)
    for it, others in unrelated(items, chance):
        found = [it.older, it.newer, *others]
        add(it, 1, AnswerCompany(it.question, found, static_vectors([it.question, *found])))
    return Table(
        names=tuple(rows[0]),
        rows=np.array([list(one.values()) for one in rows]),
        quick=np.array(quick),
        labels=np.array([it.label for it in kept], dtype=np.float64),
        items=kept,
    )


def _later(
    it: Triple, texts: Sequence[str], company: AnswerCompany
) -> Iterator[tuple[int, Triple]]:
    """Yield the later text of a triple, and some of the company: the nearest, a linked one."""
    yield 1, it
    if it.source not in ("given", "composed"):
        return
    near = [at for at in range(2, len(texts)) if statement_of(texts[at])]
    chosen = near[:1] if it.source == "composed" else near[:2]
    chosen += [at for at in near[2:] if company.is_linked(0, at)][:1]
    for at in chosen:
        yield at, it._replace(newer=texts[at], label=0, source="random", kind="random")


# -- the fit ---------------------------------------------------------------------------------------


def samples_of(table: Table) -> dict[str, Array]:
    """Return the arrays that the trainer takes, by name."""
    texts: dict[str, int] = {}
    for it in table.items:
        for text in (it.question, it.older, it.newer):
            texts.setdefault(text, len(texts))
    shape = len(texts), WORDS_MAX
    words, stems = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    flags, sizes = np.zeros((*shape, len(FLAGS)), np.float32), np.zeros(len(texts), np.int64)
    forms: dict[str, int] = {}
    known: dict[str, int] = {}
    for text, at in texts.items():
        read = read_words(text)
        sizes[at] = len(read)
        for place, word in enumerate(read):
            words[at, place] = forms.setdefault(word.form, len(forms))
            stems[at, place] = known.setdefault(word.stem, len(known))
            flags[at, place] = word.flags
    kinds = sorted({it.kind for it in table.items})
    triples = [[texts[it.question], texts[it.older], texts[it.newer]] for it in table.items]
    return {
        "vectors": word_sums(list(forms)).astype(np.float32),
        "words": words,
        "stems": stems,
        "flags": flags,
        "sizes": sizes,
        "triples": np.array(triples),
        "signs": table.rows.astype(np.float32),
        "labels": table.labels.astype(np.float32),
        "kinds": np.array([kinds.index(it.kind) for it in table.items]),
        "shares": table.shares.astype(np.float32),
        "unrelated": np.array([it.source == "unrelated" for it in table.items]),
    }


def likely_of(table: Table) -> tuple[Floats, float]:
    """Return the weights of the quick signs and their squares, and the least sum of an update.

    Logistic regression, by Newton's method; updates and other texts count the same.
    """
    is_random = np.array([it.source == "random" for it in table.items])
    used = is_random | (table.labels == 1)
    rows = np.hstack([table.quick, table.quick**2, np.ones((len(table.quick), 1))])
    labels, of = table.labels[used], rows[used]
    shares = np.where(labels == 1, 1 / labels.sum(), 1 / (1 - labels).sum())
    weights = np.zeros(rows.shape[1])
    for _ in range(30):
        chances = 1 / (1 + np.exp(-of @ weights))
        slope = of.T @ (shares * (chances - labels)) + 1e-4 * weights
        bend = (of * (shares * chances * (1 - chances))[:, None]).T @ of
        weights -= np.linalg.solve(bend + 1e-4 * np.eye(len(weights)), slope)
    sums = rows[(table.labels == 1) & table.are_given()] @ weights
    return weights, float(np.quantile(sums, 1 - LIKELY_KEPT))


def stacked(nets: Sequence[Mapping[str, Array]], likely: Floats) -> dict[str, Array]:
    """Return the numbers of some networks as `AnswerNetwork` takes them."""
    found = {name: np.stack([one[name] for one in nets]) for name in nets[0]}
    return found | {"likely": likely.astype(np.float32)}


def fit_signs(rows: Floats, labels: Floats, shares: Floats) -> list[Floats]:
    """Return the weights and biases of a network with one hidden layer, by Adam."""
    chance = np.random.default_rng(SEED)
    shares = shares / shares.sum()
    size = rows.shape[1]
    values = [
        chance.normal(0, 1 / np.sqrt(size), (size, HIDDEN)),
        np.zeros(HIDDEN),
        chance.normal(0, 1 / np.sqrt(HIDDEN), HIDDEN),
        np.zeros(1),
    ]
    first, second = ([np.zeros_like(it) for it in values] for _ in range(2))
    for step in range(1, STEPS + 1):
        inner, inner_bias, outer, outer_bias = values
        hidden = np.tanh(rows @ inner + inner_bias)
        chances = 1 / (1 + np.exp(-(hidden @ outer + outer_bias[0])))
        error = shares * (chances - labels)
        back = np.outer(error, outer) * (1 - hidden**2)
        slopes = (
            rows.T @ back + RIDGE * inner,
            back.sum(axis=0),
            hidden.T @ error + RIDGE * outer,
            np.array([error.sum()]),
        )
        for at, slope in enumerate(slopes):
            first[at] = 0.9 * first[at] + 0.1 * slope
            second[at] = 0.999 * second[at] + 0.001 * slope**2
            mean, spread = first[at] / (1 - 0.9**step), second[at] / (1 - 0.999**step)
            values[at] = values[at] - RATE * mean / (np.sqrt(spread) + 1e-8)
    return values


def fitted_without(table: Table, author: str, seeds: int) -> list[dict[str, Array]]:
    """Return networks fitted without the triples of an author."""
    from bench.answer_trainer import Samples, fitted  # PyTorch is needed for the fit alone.

    used = np.array([it.author != author for it in table.items])
    samples = Samples(**samples_of(table))
    return [fitted(samples, used, seed) for seed in range(1, seeds + 1)]


def chances_of(network: AnswerNetwork, table: Table, of: Flags) -> Floats:
    """Return the probability of some triples; 0 for what the quick signs leave out."""
    found = np.zeros(len(table.items))
    for at in np.flatnonzero(of).tolist():
        if network.likely([table.quick[at].tolist()]):
            it = table.items[at]
            triple = it.question, it.older, it.newer
            found[at] = network.probabilities([triple], [table.rows[at].tolist()])[0]
    return found[of]


def shown(name: str, hits: Flags, labels: Floats) -> str:
    """Return the shares of updates and decoys that were taken for updates, with intervals."""
    chance = np.random.default_rng(SEED)
    cells = []
    for label, kind in ((1, "updates"), (0, "others")):
        of = hits[labels == label]
        if len(of):
            drawn = chance.choice(of, size=(RESAMPLES, len(of))).mean(axis=1)
            low, high = np.percentile(drawn, [2.5, 97.5])
            share = f"{of.mean():.3f} ({low:.3f}–{high:.3f})"
            cells.append(f"{kind} {int(of.sum()):4} of {len(of):4} = {share}")
    return f"{name:30} {'   '.join(cells)}"


def judge(table: Table, folder: Path, seeds: int) -> None:
    """Print how well the triples of each author are told apart by fits without that author."""
    likely, least = likely_of(table)
    chances: dict[str, Floats] = {}
    labels: dict[str, Floats] = {}
    others: dict[str, Floats] = {}
    given, source = table.are_given(), np.array([it.source for it in table.items])
    authors = np.array([it.author for it in table.items])
    for author in sorted(set(authors.tolist())):
        network = AnswerNetwork(_left_out(table, author, folder, seeds, likely), least, ENOUGH)
        chances[author] = chances_of(network, table, given & (authors == author))
        labels[author] = table.labels[given & (authors == author)]
        others[author] = chances_of(network, table, (source == "random") & (authors == author))
    every = np.concatenate([chances[it][labels[it] == 0] for it in chances])
    print(f"{TOUCHED:.0%} of the decoys are touched from {np.quantile(every, 1 - TOUCHED):.3f}")
    found = np.concatenate([chances[it] >= ENOUGH for it in chances])
    print(shown("all authors", found, np.concatenate([labels[it] for it in chances])))
    for author in chances:
        print(shown(author, chances[author] >= ENOUGH, labels[author]))
        print(shown("  other texts", others[author] >= ENOUGH, np.zeros(len(others[author]))))
        network = AnswerNetwork(_left_out(table, author, folder, seeds, likely), least, ENOUGH)
        with_network(network, partial(end_to_end, sampled(table, author)))


def _left_out(
    table: Table, author: str, folder: Path, seeds: int, likely: Floats
) -> dict[str, Array]:
    """Return the numbers of a fit without an author, kept in a folder."""
    path = folder / f"{author}.npz"
    if not path.is_file():
        nets = fitted_without(table, author, seeds)
        np.savez(path, allow_pickle=False, **stacked(nets, likely))
    with np.load(path) as numbers:
        return dict(numbers) | {"likely": likely}


def with_network(network: AnswerNetwork, run: Callable[[], None]) -> None:
    """Run something with other numbers than those of the package."""
    usual = answer_network.answer_network
    answer_network.answer_network = lambda: network  # type: ignore[assignment]
    try:
        run()
    finally:
        answer_network.answer_network = usual


def sampled(table: Table, author: str) -> list[Triple]:
    """Return one update or one decoy of each line of an author, in turns."""
    lines: dict[str, list[Triple]] = defaultdict(list)
    for it in table.items:
        if it.author == author and it.source == "given":
            lines[it.key].append(it)
    chance = random.Random(SEED)
    found = []
    for number, some in enumerate(list(lines.values())[:LINES_ASKED]):
        fitting = [it for it in some if it.label == number % 2]
        found += [chance.choice(fitting)] if fitting else []
    return found


def write(table: Table, path: Path | None) -> None:
    """Fit to all triples, or take the numbers of such a fit, and write the files."""
    likely, least = likely_of(table)
    if path is None:
        nets = fitted_without(table, "", NETWORKS)
        numbers = stacked(nets, likely)
    else:
        with np.load(path) as kept:
            numbers = dict(kept) | {"likely": likely.astype(np.float32)}
    np.savez(NUMBERS, allow_pickle=False, **{name: numbers[name] for name in sorted(numbers)})
    digest = hashlib.sha256()
    for name in FITTED:
        digest.update((DATA / name).read_bytes())
    names, rows = table.names[: -len(VECTOR_SIGNS)], table.rows[:, : -len(VECTOR_SIGNS)]
    inner, inner_bias, outer, outer_bias = fit_signs(rows, table.labels, table.shares)
    content = {
        "data": FITTED,
        "data_sha256": digest.hexdigest(),
        "triples": len(table.labels),
        "seed": SEED,
        "command": COMMAND,
        "enough": ENOUGH,
        "likely_enough": round(least, 3),
        "signs_alone": {
            "inner": dict(zip(names, inner.round(3).tolist(), strict=True)),
            "inner_bias": inner_bias.round(3).tolist(),
            "outer": outer.round(3).tolist(),
            "outer_bias": round(float(outer_bias[0]), 3),
        },
    }
    text = json.dumps(content, indent=1, ensure_ascii=False)
    text = re.sub(r"(?<=[\[,])\n +(?=[-\d])|(?<=\d)\n +(?=\])", "", text)  # a row of numbers a line
    SETTINGS.write_text(text + "\n", encoding="utf-8")


# -- end to end ------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """A question to a store: the triple, and its texts in the order of the hits.

    `plain` is the order without recency. `first` and `plain_first` are the first hits.
    """

    item: Triple
    order: tuple[str, ...]
    plain: tuple[str, ...]
    first: str
    plain_first: str
    marked: bool


def asked_in_stores(items: Sequence[Triple]) -> list[Asked]:
    """Return what `Memory.recall` makes of triples, several in each store with other texts."""
    fillers = {it.language: it.parts["f"] for it in topics() if it.topic == "fillers"}
    chance = random.Random(SEED)
    stores: list[list[Triple]] = []
    for it in items:
        fitting = (
            some
            for some in stores
            if len(some) < STORE_TRIPLES and it.topic not in {one.topic for one in some}
        )
        found = next(fitting, None)
        if found is None:
            stores.append([it])
        else:
            found.append(it)
    answers: list[Asked] = []
    for some in stores:
        older, newer = ([getattr(it, name) for it in some] for name in ("older", "newer"))
        others = chance.sample(fillers["en"], STORE_FILLERS)
        early, late = older + others[::2], newer + others[1::2]
        chance.shuffle(early)
        chance.shuffle(late)
        with Memory(":memory:") as memory:
            for day, text in enumerate(early + late):
                memory.write(text, at=datetime(2026, 1, 1, 9, tzinfo=UTC) + timedelta(days=day))
            for it in some:
                found_hits = memory.recall(it.question)
                plain = memory.recall(it.question, settings=RecallSettings(recency=False))
                marks = [hit for hit in found_hits if hit.maybe_outdated or hit.outdated]
                pair = it.older, it.newer
                told, bare = ([hit.node.content for hit in hits] for hits in (found_hits, plain))
                answers.append(
                    Asked(
                        it,
                        tuple(text for text in told if text in pair),
                        tuple(text for text in bare if text in pair),
                        told[0],
                        bare[0],
                        it.older in {hit.node.content for hit in marks},
                    )
                )
    return answers


def end_to_end(items: Sequence[Triple], *, told: bool = False) -> None:
    """Print which text is first, which is marked, and how often another one was moved up."""
    found = asked_in_stores(items)
    labels = np.array([one.item.label for one in found], dtype=np.float64)
    lines = {
        "the newer one is first": [one.first == one.item.newer for one in found],
        "  without recency": [one.plain_first == one.item.newer for one in found],
        "the newer one is before the older": [one.order[:1] == (one.item.newer,) for one in found],
        "  without recency ": [one.plain[:1] == (one.item.newer,) for one in found],
        "the older one is marked": [one.marked for one in found],
        "marked, or another order": [one.marked or one.order != one.plain for one in found],
        "another one was moved up": [
            one.first not in (one.item.newer, one.item.older) and one.first != one.plain_first
            for one in found
        ],
    }
    for name, hits in lines.items():
        print("  " + shown(name, np.array(hits), labels))
    for one in found:
        if told and (one.first == one.item.newer) != bool(one.item.label):
            print(f"{one.item.label} {one.item.question} | {one.item.older} | {one.item.newer}")
            print(f"    first: {one.first}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--judge", action="store_true", help="fits without one author each")
    parser.add_argument("--write", action="store_true", help="fit to all triples, write the files")
    parser.add_argument("--blind", action="store_true", help="what is not fitted to, end to end")
    parser.add_argument("--fits", type=Path, help="with --judge: folder where fits are kept")
    parser.add_argument("--numbers", type=Path, help="with --write: a fit to take")
    chosen = parser.parse_args(arguments)
    if chosen.blind:
        for name in BLIND:
            print(name)
            end_to_end(blind(name))
        return
    chance = random.Random(SEED)
    table = table_of(fitted(chance), chance)
    if chosen.write:
        write(table, chosen.numbers)
    if chosen.judge:
        with TemporaryDirectory() as folder:
            judge(table, chosen.fits or Path(folder), 1)


if __name__ == "__main__":
    main()
