"""Ablation: the same run with one thing changed at a time, and what that does to the figures.

A knob is something that can be turned off or set otherwise. Every row of the table is the run as it
was asked for, but for one knob; a row that would change nothing is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from worlddb.bridge.configured import model_named
from worlddb.errors import InvalidInputError
from worlddb.evaluate.intervals import Mean, bootstrap
from worlddb.evaluate.pages import Table
from worlddb.evaluate.settings import LANES, RunSettings
from worlddb.evaluate.summary import ALL, AVERAGED, Group, Summary, answer_figures

if TYPE_CHECKING:
    from worlddb.evaluate.benchmark import Finished

BASE = "as asked for"
K_VALUES = ("10", "20", "50", "100")
RANK_COLUMNS = ("all@5", "all@10", "ndcg@10", "turns@10", "turns@50", "tokens@10")
STAR_QUESTIONS_MIN = 20
"""With fewer, a bootstrap's interval is too narrow to be believed."""
ANSWER_COLUMNS = ("correct", "match", "f1", "evidence", "tokens")

Change = tuple[str, RunSettings]
Turn = Callable[[RunSettings, Sequence[str]], Iterator[Change]]


@dataclass(frozen=True, slots=True)
class Knob:
    """Something to turn; some cannot do without values.

    `asks` knobs change answers alone, `reads` knobs what is read out of conversations, and
    `by_model` knobs what only a model reads out of them.
    """

    what: str
    turn: Turn
    asks: bool = False
    reads: bool = False
    by_model: bool = False
    needs_values: bool = False


def _lanes(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    if strange := set(values) - set(LANES):
        raise InvalidInputError(f"knob lanes={min(strange):.20}: use {', '.join(LANES)}")
    for lane in values or base.lanes:
        if base.lanes == (lane,):
            continue
        yield (
            f"without the {lane} lane",
            replace(base, lanes=tuple(one for one in base.lanes if one != lane)),
        )
    for lane in () if values else LANES:
        yield f"the {lane} lane alone", replace(base, lanes=(lane,))


def _facts(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    yield "no facts and entities", replace(base, facts=False)
    if base.reading == "model":
        yield "turns alone (flat)", replace(base, facts=False, summaries=False)


def _summaries(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    yield "no summaries", replace(base, summaries=False)


def _k(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    for value in values or K_VALUES:
        if not value.isdecimal():
            raise InvalidInputError(f"knob k={value!r:.20}: give whole numbers")
        yield f"k = {value}", replace(base, k=int(value))


def _embedder(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    for value in values or ("none", "hash"):
        yield f"embedder {value}", replace(base, embedder=value)


def _pooling(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    yield "mean pooling", replace(base, pooling="mean")


def _weighing(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    yield "fused ranks alone", replace(base, weighed=False)


def _model(role: str) -> Turn:
    def turn(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
        if role not in base.roles:
            raise InvalidInputError(f"knob {role}: this run has no {role}; give --{role}")
        names = [model_name(value) for value in values]
        if twice := [name for name in names if names.count(name) > 1]:
            raise InvalidInputError(f"knob {role}={twice[0]:.60}: give each model once")
        for name, value in zip(names, values, strict=True):
            if name != base.roles[role]:
                address = (model_named(value).address or "").rstrip("/")
                yield (
                    f"{role} {name}",
                    replace(
                        base,
                        roles={**base.roles, role: name},
                        addresses={**base.addresses, role: address},
                    ),
                )

    return turn


def model_name(spec: str) -> str:
    """Return a model without the address it is found at.

    Raises:
        InvalidInputError: it is no model, or what should be an address is none.
    """
    named = model_named(spec)
    return f"{named.provider}:{named.model}"


KNOBS: Mapping[str, Knob] = {
    "lanes": Knob("each lane off, and each alone", _lanes),
    "facts": Knob("facts and entities off", _facts, reads=True),
    "summaries": Knob("session summaries off", _summaries, asks=True, by_model=True),
    "k": Knob("how many memories the answerer gets", _k, asks=True),
    "embedder": Knob("which embedder", _embedder),
    "pooling": Knob("worlds' vectors by attention or by mean", _pooling),
    "weighing": Knob("the last order by scores or by fused ranks", _weighing),
    **{
        role: Knob(f"which {role}", _model(role), asks=True, needs_values=True)
        for role in ("answerer", "judge", "extractor")
    },
}


def changes(base: RunSettings, given: Sequence[str]) -> list[Change]:
    """Return the rows of a table: the run as asked for, then each change of it.

    `given` are knobs, perhaps with values (`k=10,100`); none are all that matter in this mode and
    need no values.

    Raises:
        InvalidInputError: there is no such knob, or it changes nothing in this mode.
    """
    asked = given or [
        name
        for name, knob in KNOBS.items()
        if (base.asks_model or not knob.asks)
        and (base.reading != "verbatim" or not knob.reads)
        and (base.reading == "model" or not knob.by_model)
        and not knob.needs_values
    ]
    rows: list[Change] = [(BASE, base)]
    for text in asked:
        name, _, values = text.partition("=")
        knob = KNOBS.get(name)
        if knob is None:
            raise InvalidInputError(f"knob {name!r:.40}: use one of {', '.join(KNOBS)}")
        if knob.asks and not base.asks_model:
            raise InvalidInputError(f"knob {name}: only changes what is answered; use --mode qa")
        if knob.reads and base.reading == "verbatim":
            raise InvalidInputError(
                f"knob {name}: turns are kept as they were said, so nothing is read that could be "
                "left out; give --extractor rules"
            )
        if knob.by_model and base.reading != "model":
            raise InvalidInputError(
                f"knob {name}: only a model writes them; give --extractor MODEL"
            )
        chosen = [value.strip() for value in values.split(",") if value.strip()]
        if knob.needs_values and not chosen:
            raise InvalidInputError(f"knob {name}: give values, such as {name}=openai:MODEL")
        rows += [
            (title, settings) for title, settings in knob.turn(base, chosen) if settings != base
        ]
    return rows


def row_of(summary: Summary) -> dict[str, float]:
    """Return what a table shows of a run."""
    row: dict[str, float] = {}
    if summary.figures:
        row |= _shown(summary.figures[-1], RANK_COLUMNS)
    groups = {group.name: group for group in summary.answers}
    if groups:
        row |= _shown(groups[ALL], ANSWER_COLUMNS)
        best = "correct" if "correct" in row else "match"
        row[f"{best}, averaged"] = groups[AVERAGED].means[best].value
    return row


def _shown(group: Group, names: Sequence[str]) -> dict[str, float]:
    return {name: group.means[name].value for name in names if name in group.means}


def differences(
    base: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]
) -> dict[str, Mean]:
    """Return how far a row is from the first in each column, question by question.

    Both rows ask the same questions, so the interval is that of the mean of their differences: it
    can be narrow where the rows' own intervals overlap.
    """
    before = {record["id"]: _columns(record) for record in base}
    pairs = [(before[one["id"]], _columns(one)) for one in other if one["id"] in before]
    found: dict[str, Mean] = {}
    for name in (*RANK_COLUMNS, *ANSWER_COLUMNS):
        changed = [new[name] - old[name] for old, new in pairs if name in old and name in new]
        if changed:
            low, high = bootstrap(changed)
            found[name] = Mean(sum(changed) / len(changed), low, high, len(changed))
    return found


def _columns(record: Mapping[str, Any]) -> dict[str, float]:
    return {**record.get("figures", {}), **(answer_figures(record) if "qa" in record else {})}


def table_of(runs: Mapping[str, Finished], questions: str) -> Table:
    """Return the rows of a table; a star marks a difference whose interval leaves out 0.

    `questions` says which they are.
    """
    rows = {title: row_of(one.summary) for title, one in runs.items()}
    first = rows[BASE]
    lines = []
    for title, row in rows.items():
        changed = differences(runs[BASE].records, runs[title].records)
        there = {} if title == BASE else first
        cells = [_cell(name, row, there, changed.get(name)) for name in first]
        lines.append([title, *cells])
    return Table(
        title="One knob at a time",
        headers=["what", *first],
        rows=lines,
        notes={
            "questions": f"{questions}; the same in every row",
            "in parentheses": "the difference to the first row",
            "star": "the 95 % interval of that difference, by a bootstrap over the questions, "
            f"leaves out 0; there is none where fewer than {STAR_QUESTIONS_MIN} are compared",
        },
    )


def _cell(
    name: str, row: Mapping[str, float], first: Mapping[str, float], changed: Mean | None
) -> str:
    if name not in row:
        return ""
    if name.startswith("tokens"):
        return f"{row[name]:,.0f}"
    if name not in first:
        return f"{row[name]:.3f}"
    star = "*" if changed is not None and _is_borne_out(changed) else ""
    return f"{row[name]:.3f} ({row[name] - first[name]:+.3f}){star}"


def _is_borne_out(changed: Mean) -> bool:
    return changed.n >= STAR_QUESTIONS_MIN and (changed.low > 0 or changed.high < 0)
