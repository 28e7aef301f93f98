"""Figure summary: the records of a run as figures by category, with their intervals.

    figures    the rank of the gold (see `case_recall.RANK_DEFINITIONS`)
    answers    the quality of answers, by the judge and without it

Shares have Wilson's interval, other means a bootstrap over the questions with a fixed seed, both at
95 %. The intervals reflect the choice of questions only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np

from worlddb.evaluate.model_answers import is_clear

# Confidence figures: how well the confidence of a recall predicts that it found the answer.
#
# auroc(right, wrong)     the probability that one of `right` is above one of `wrong`; chance is 0.5
# reliability(pairs)      per tenth of the confidence: mean confidence, and share that was right

TENTHS = 10  # narrower bands would have too few questions
CONFIDENCE_DEFINITIONS = {
    "auroc_abstention": "{:.3f}: the chance that recall is surer of a question that has an answer "
    "than of one whose answer was never said; 0.5 is a guess",
    "auroc_found": "{:.3f}: the same, of questions whose gold is among the first ten hits and all "
    "others",
    "off": "{:.3f}: how far the confidence is from the share of answers found, on average",
}


def confidence_figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how well the confidence of recalls predicts success; empty without confidences.

    An answer counts as found if gold is among the first ten hits.
    """
    sure = [record for record in records if "confidence" in record]
    if not sure:
        return {}
    told = [(record["confidence"], record["is_found"]) for record in sure]
    tenths = reliability(told)
    return {
        "auroc_abstention": auroc(
            [record["confidence"] for record in sure if record["has_answer"]],
            [record["confidence"] for record in sure if not record["has_answer"]],
        ),
        "auroc_found": auroc([it for it, ok in told if ok], [it for it, ok in told if not ok]),
        "off": sum(abs(said - right) * count for said, right, count in tenths) / len(told),
        "tenths": tenths,
    }


def auroc(right: Sequence[float], wrong: Sequence[float]) -> float | None:
    """Return how often a value of `right` is above one of `wrong`, with ties counted as half."""
    if not len(right) or not len(wrong):
        return None
    one, other = np.asarray(right, dtype=float)[:, None], np.asarray(wrong, dtype=float)[None]
    return round(float((one > other).mean() + 0.5 * (one == other).mean()), 4)


def reliability(told: Sequence[tuple[float, bool]]) -> list[tuple[float, float, int]]:
    """Return (mean confidence, share that was right, count) of each tenth that is not empty."""
    found = []
    for tenth in range(TENTHS):
        inside = [it for it in told if min(int(it[0] * TENTHS), TENTHS - 1) == tenth]
        if inside:
            said, right = np.mean([it[0] for it in inside]), np.mean([it[1] for it in inside])
            found.append((round(float(said), 3), round(float(right), 3), len(inside)))
    return found


# Figure summary.

Z = 1.959964  # quantile of the normal distribution for 95 %
RESAMPLES = 2_000  # more change the bounds by less than a thousandth
AT_ONCE = 100  # resamples in memory at a time
SEED = 7
ALL = "all"
AVERAGED = "task-averaged"
ABSTENTION = "abstention"
ANSWER_DEFINITIONS = {
    "n": "questions that the answerer replied to; a failed one is not among them",
    "correct": "the judge's verdict on the answer begins with the word CORRECT; an empty answer is "
    "wrong, and nobody is asked",
    "match": "without a judge: the numbers and dates of the reference are in the answer, and most "
    "of its words; strict with paraphrases, so rather a lower bound",
    "numeric": "without a judge: all numbers and dates of the reference are in the answer, over "
    "the questions whose reference has any",
    "exact, f1": "without a judge: the same words; and the overlap of words",
    "evidence": "all gold sessions are among the memories that the answerer was given",
    "tokens": "what these memories take in a prompt, a token being four characters",
    AVERAGED: "the mean over the categories, each counting the same",
    ABSTENTION: "the questions whose right answer is that there is none; they count in their "
    "categories as well",
}

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over n questions, and its interval."""

    value: float
    low: float
    high: float
    n: int


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of some figures with its interval."""
    if not values:
        raise ValueError("no values")
    if set(values) <= {0.0, 1.0}:
        low, high = wilson(int(sum(values)), len(values))
    else:
        low, high = bootstrap(values)
    return Mean(sum(values) / len(values), low, high, len(values))


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return the interval of a share."""
    share = right / n
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    # Rounding may leave the range of a share at its ends.
    return (0.0 if right == 0 else middle - half), (1.0 if right == n else middle + half)


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of a mean, from samples of the values with replacement."""
    held = np.asarray(values, dtype=np.float64)
    dice = np.random.default_rng(SEED)
    means = [
        held[dice.integers(0, len(held), (AT_ONCE, len(held)))].mean(axis=1)
        for _ in range(RESAMPLES // AT_ONCE)
    ]
    low, high = np.quantile(np.concatenate(means), (0.025, 0.975))
    return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The questions of a category, and the means of their figures."""

    name: str
    n: int
    means: dict[str, Mean] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of a run."""

    figures: list[Group]
    answers: list[Group]
    spent: dict[str, float]
    confidence: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return means and intervals as plain data, by part and category."""
        parts = {"figures": self.figures, "answers": self.answers}
        means: dict[str, Any] = {}
        intervals: dict[str, Any] = {}
        for part, groups in parts.items():
            if groups:
                means[part] = {
                    one.name: {"n": one.n, **{name: mean.value for name, mean in one.means.items()}}
                    for one in groups
                }
                intervals[part] = {
                    one.name: {name: [mean.low, mean.high] for name, mean in one.means.items()}
                    for one in groups
                }
        sure = {"confidence": self.confidence} if self.confidence else {}
        return {**means, "intervals": intervals, **sure, **self.spent}


def summarise(records: Sequence[Record]) -> Summary:
    """Return the figures of some records; the caller leaves out those with an error."""
    ranked = [record for record in records if "figures" in record]
    answered = [record for record in records if "qa" in record]
    return Summary(
        figures=_grouped(ranked, lambda record: record["figures"]),
        answers=_answers(answered),
        spent=_spent(records),
        confidence=confidence_figures(records),
    )


def _grouped(
    records: Sequence[Record], figures: Callable[[Record], Mapping[str, float]]
) -> list[Group]:
    groups: dict[str, list[Mapping[str, float]]] = {}
    for record in records:
        groups.setdefault(record["category"], []).append(figures(record))
    found = [_group(name, group) for name, group in sorted(groups.items())]
    if found:
        found.append(_group(ALL, [one for group in groups.values() for one in group]))
    return found


def _group(name: str, records: Sequence[Mapping[str, float]]) -> Group:
    names = dict.fromkeys(name for record in records for name in record)
    return Group(
        name=name,
        n=len(records),
        means={
            name: mean_of([record[name] for record in records if name in record]) for name in names
        },
    )


def _answers(records: Sequence[Record]) -> list[Group]:
    groups = _grouped(records, answer_figures)
    if not groups:
        return []
    *categories, whole = groups
    averaged = {
        name: Mean(value, value, value, len(categories))
        for name in whole.means
        if (values := [one.means[name].value for one in categories if name in one.means])
        for value in [sum(values) / len(values)]
    }
    nothing = [answer_figures(record) for record in records if not record["has_answer"]]
    return [
        *categories,
        whole,
        Group(name=AVERAGED, n=whole.n, means=averaged),
        *([_group(ABSTENTION, nothing)] if nothing else []),
    ]


def answer_figures(record: Record) -> dict[str, float]:
    """Return the figures of one answer."""
    qa = record["qa"]
    judged = {} if qa["correct"] is None else {"correct": float(qa["correct"])}
    found = (
        {"evidence": float(qa["evidence"]["all_sessions"])} if record["gold"]["sessions"] else {}
    )
    scores = {
        name: float(qa["score"][name])
        for name in ("match", "numeric", "exact", "f1")
        if qa["score"][name] is not None
    }
    return {**judged, **scores, **found, "tokens": float(qa["context_tokens"])}


def _spent(records: Sequence[Record]) -> dict[str, float]:
    times = sorted(
        record["recall_s"] if "recall_s" in record else record["qa"]["times"]["recall_s"]
        for record in records
    )
    if not times:
        return {}
    spent = {
        "recall_ms_p50": 1000 * times[len(times) // 2],
        "recall_ms_p95": 1000 * times[int(len(times) * 0.95)],
    }
    tokens = [record["figures"]["tokens@10"] for record in records if "figures" in record]
    if tokens:
        spent["tokens_in_10"] = sum(tokens) / len(tokens)
    spent["write_s"] = sum(one["write_s"] for one in _conversations(records))
    return spent | {name: count for name, count in _oddities(records).items() if count}


def _conversations(records: Sequence[Record]) -> list[Record]:
    """Return one record of each conversation, for figures that its questions share."""
    return list({record.get("conversation", record["id"]): record for record in records}.values())


def _oddities(records: Sequence[Record]) -> dict[str, int]:
    """Return counts of irregular events that do not exclude a question from the figures."""
    answered = [record["qa"] for record in records if "qa" in record]
    verdicts = [qa["verdict"] for qa in answered if qa.get("verdict") is not None]
    return {
        "sessions_unread": sum(one["sessions_unread"] for one in _conversations(records)),
        "readings_cut": sum(one.get("readings_cut", 0) for one in _conversations(records)),
        "gold_missing": sum(record.get("gold", {}).get("missing", 0) for record in records),
        "answers_empty": sum(not qa["answer"] for qa in answered),
        "answers_cut": sum(bool(qa.get("is_cut")) for qa in answered),
        "verdicts_unclear": sum(not is_clear(verdict) for verdict in verdicts),
    }
