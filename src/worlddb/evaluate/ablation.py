"""Ablation: runs that change one setting each, and an overview of all files of a folder.

A knob is a setting that can be changed. The first row of the table is the run as requested; each
other row changes one knob. A change without an effect is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from worlddb.errors import FormatError, InvalidInputError
from worlddb.evaluate.benchmark_cases import LANES, RunSettings
from worlddb.evaluate.data_sets import DATA_SETS, format_of
from worlddb.evaluate.figure_summary import (
    ALL,
    AVERAGED,
    Group,
    Mean,
    Summary,
    answer_figures,
    bootstrap,
    mean_of,
)
from worlddb.evaluate.run_report import Table

if TYPE_CHECKING:
    from worlddb.evaluate.benchmark_run import Finished


BASE = "as asked for"
K_VALUES = ("10", "20", "50", "100")
RANK_COLUMNS = (
    *("all@5", "all@10", "ndcg@10", "recall@1", "recall@5", "recall@10", "turns@5", "turns@10"),
    *("turns@50", "last@10", "outdated@gold", "tokens@10"),
)
ANSWER_COLUMNS = ("correct", "match", "f1", "evidence", "tokens")
STAR_QUESTIONS_MIN = 20  # with fewer, a bootstrap's interval is too narrow
MODEL_ROLES = ("answerer", "judge", "extractor")

Change = tuple[str, RunSettings]
ModelOf = Callable[[str], tuple[str, str]]
"""Returns the name and the address of a model from what somebody typed."""


class Knob(NamedTuple):
    """A setting to change, and the kind of run in which it matters.

    `needs` is "answers" if it affects answers only, "reading" if it affects what is extracted from
    conversations, and "model" if it matters only when a model extracts.
    """

    turn: Callable[[RunSettings, Sequence[str]], Iterator[Change]]
    needs: Literal["", "answers", "reading", "model"] = ""

    def is_idle(self, base: RunSettings) -> str:
        """Return why this knob has no effect in a run; empty if it has one."""
        if self.needs in ("answers", "model") and not base.asks_model:
            return "only changes what is answered; use --mode qa"
        if self.needs == "reading" and base.reading == "verbatim":
            return (
                "turns are kept as they were said, so nothing is read that could be left out; "
                "give --extractor rules"
            )
        if self.needs == "model" and base.reading != "model":
            return "only a model writes them; give --extractor MODEL"
        return ""


def _lanes(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    if strange := set(values) - set(LANES):
        raise InvalidInputError(f"knob lanes={min(strange):.20}: use {', '.join(LANES)}")
    for lane in values or base.lanes:
        if base.lanes != (lane,):
            left = tuple(one for one in base.lanes if one != lane)
            yield f"without the {lane} lane", replace(base, lanes=left)
    for lane in () if values else LANES:
        yield f"the {lane} lane alone", replace(base, lanes=(lane,))


def _facts(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    yield "no facts and entities", replace(base, facts=False)
    if base.reading == "model":
        yield "turns alone (flat)", replace(base, facts=False, summaries=False)


def _fixed(title: str, **changed: Any) -> Callable[[RunSettings, Sequence[str]], Iterator[Change]]:
    """Return the change function of a knob that has only one other value."""
    return lambda base, values: iter([(title, replace(base, **changed))])


def _k(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    for value in values or K_VALUES:
        if not value.isdecimal():
            raise InvalidInputError(f"knob k={value!r:.20}: give whole numbers")
        yield f"k = {value}", replace(base, k=int(value))


def _embedder(base: RunSettings, values: Sequence[str]) -> Iterator[Change]:
    for value in values or ("none", "hash"):
        yield f"embedder {value}", replace(base, embedder=value)


KNOBS: Mapping[str, Knob] = {
    "lanes": Knob(_lanes),
    "facts": Knob(_facts, "reading"),
    "classes": Knob(_fixed("no accepted classes", classes=False)),
    "summaries": Knob(_fixed("no summaries", summaries=False), "model"),
    "k": Knob(_k, "answers"),
    "embedder": Knob(_embedder),
    "pooling": Knob(_fixed("mean pooling", pooling="mean")),
    "weighing": Knob(_fixed("fused ranks alone", weighed=False)),
}


def changes(base: RunSettings, given: Sequence[str], model_of: ModelOf) -> list[Change]:
    """Return the rows of a table: the run as requested, then each change of it.

    `given` are knobs, perhaps with values (`k=10,100`, `judge=openai:x,openai:y`). Without any, all
    knobs that matter in this run and need no values are used.
    """
    rows: list[Change] = [(BASE, base)]
    for text in given or [name for name, knob in KNOBS.items() if not knob.is_idle(base)]:
        name, _, values = text.partition("=")
        chosen = [value.strip() for value in values.split(",") if value.strip()]
        if name in MODEL_ROLES:
            found = _other_models(base, name, chosen, model_of)
        elif name not in KNOBS:
            known = ", ".join((*KNOBS, *MODEL_ROLES))
            raise InvalidInputError(f"knob {name!r:.40}: use one of {known}")
        else:
            if why := KNOBS[name].is_idle(base):
                raise InvalidInputError(f"knob {name}: {why}")
            found = KNOBS[name].turn(base, chosen)
        rows += [(title, settings) for title, settings in found if settings != base]
    return rows


def _other_models(
    base: RunSettings, role: str, specs: Sequence[str], model_of: ModelOf
) -> Iterator[Change]:
    """Yield the run with each of some other models in a role."""
    if not base.asks_model:
        raise InvalidInputError(f"knob {role}: only changes what is answered; use --mode qa")
    if not specs:
        raise InvalidInputError(f"knob {role}: give values, such as {role}=openai:MODEL")
    if role not in base.roles:
        raise InvalidInputError(f"knob {role}: this run has no {role}; give --{role}")
    models = [model_of(spec) for spec in specs]
    names = [name for name, _ in models]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidInputError(f"knob {role}={twice[0]:.60}: give each model once")
    for name, address in models:
        if name != base.roles[role]:
            roles = {**base.roles, role: name}
            addresses = {**base.addresses, role: address}
            yield f"{role} {name}", replace(base, roles=roles, addresses=addresses)


def row_of(summary: Summary) -> dict[str, float]:
    """Return the figures of a run that the table shows."""
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
    """Return the differences of a row from the first one in each column, question by question.

    Both rows ask the same questions, so the interval is that of the mean difference. It can be
    narrow even where the rows' own intervals overlap.
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
    """Return the rows of a table; a star marks a difference whose interval excludes 0.

    `questions` describes the questions.
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
    is_sure = changed is not None and changed.n >= STAR_QUESTIONS_MIN
    star = "*" if changed and is_sure and (changed.low > 0 or changed.high < 0) else ""
    return f"{row[name]:.3f} ({row[name] - first[name]:+.3f}){star}"


# Overview: every benchmark file of a folder, beside simpler rankings on the same file.
#
#     files ──format_of──▶ runs (as requested, without the graph lane, …) ──▶ one table
#
# A figure has its interval. A star marks a difference from the first row of a set whose interval
# excludes 0 (see `differences`).


def files_in(folder: str) -> dict[str, str]:
    """Return the benchmark files of a folder and their formats, by name; ignore other files."""
    found: dict[str, str] = {}
    for path in sorted(Path(folder).glob("*.json*")):
        try:
            found[str(path)] = format_of(str(path))
        except FormatError:
            continue
    if not found:
        raise InvalidInputError(f"{folder}: has no benchmark file; give a folder with some")
    return found


def variants(base: RunSettings) -> Iterator[tuple[str, RunSettings]]:
    """Yield the run as requested, and simpler ones."""
    yield BASE, base
    yield "without the graph lane", replace(base, lanes=("text", "vector"))
    if base.reading != "verbatim":
        yield "no facts and entities", replace(base, facts=False)
        yield "no accepted classes", replace(base, classes=False)
    yield "plain rank fusion", replace(base, weighed=False)
    yield "text lane alone", replace(base, lanes=("text",), weighed=False)
    yield "vector lane alone", replace(base, lanes=("vector",), weighed=False)


def overview_rows(
    form: str, runs: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[list[str]]:
    """Yield a row for each run of a file: set, run, questions, and each headline figure.

    The other runs are compared with the first one.
    """
    first = next(iter(runs.values()))
    for title, records in runs.items():
        cells = [_figure_cell(name, first, records) for name in DATA_SETS[form].headline]
        yield [form, title, str(len(records)), "; ".join(cell for cell in cells if cell)]


def _figure_cell(
    name: str, first: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]]
) -> str:
    before = {one["id"]: one["figures"][name] for one in first if name in one.get("figures", {})}
    after = {one["id"]: one["figures"][name] for one in records if name in one.get("figures", {})}
    if not after:
        return ""
    mean = mean_of(list(after.values()))
    changed = [after[ident] - before[ident] for ident in before if ident in after]
    low, high = bootstrap(changed) if any(changed) else (0.0, 0.0)
    star = "*" if low > 0 or high < 0 else ""
    return f"{name} {mean.value:.3f}{star} [{mean.low:.3f}, {mean.high:.3f}]"
