"""The candidates of every question of a benchmark file, with all that the ranker sees of them.

Writing conversations takes minutes, ranking them takes seconds. So each question is asked once, and
what the ranker was given is kept as plain arrays in a folder, one file per conversation. A file is
named `FORMAT:PATH`; FORMAT is one of those of `worlddb eval`.
`+rules` after the format has the rules extractor read each session (facts, entities, claims), and
`+memories` writes each turn as a memory of its own.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import worlddb.index.held_world as held_world
import worlddb.recall.question as recall_question
import worlddb.recall.recaller as recaller
from worlddb import NodeDraft, WorldDB
from worlddb.evaluate.benchmark_cases import Case, GoldQuestion, RunSettings
from worlddb.evaluate.case_recall import VERBATIM_TYPES, session_figures, turn_figures, write_case
from worlddb.evaluate.data_sets import load_cases
from worlddb.index.ranking_numbers import SCALARS, RankingScalars
from worlddb.recall.ranker import Candidates, Scores, Weights, weigh

DEPTH = 200  # as in worlddb.evaluate
FIGURES = ("all@5", "all@10", "ndcg@10", "turns@50", "recall@5", "recall@10")
LANE_SCALARS = ("frame_weight", "rarity_power")
"""Scalars that change the scores of lanes: each question is asked with and without each of them."""
OFF = {"frame_weight": 1.0, "rarity_power": 0.0}
ARRAYS = (
    *("parents", "starts", "spoken", "before", "forms", "claims"),
    *("cover", "around", "named", "alike", "years"),
)


class RankedQuestion(NamedTuple):
    """A question, everything that the ranker is given for it, and where each candidate was said."""

    fold: int
    question: GoldQuestion
    found: Candidates
    asked_at: datetime
    places: list[tuple[int, int]]
    changed: dict[str, Candidates]
    """What the ranker is given with one of `LANE_SCALARS` off."""

    def without(self, name: str) -> RankedQuestion:
        """Return the question as it is with one of `LANE_SCALARS` off."""
        return self._replace(found=self.changed[name])


class KeptWords:
    """What was compared word by word once, for every candidate of a question.

    A recall compares similar words among its best candidates alone, so that its scores differ a
    little from these: how unlikely a word is depends on the texts that it is compared with.
    """

    def __init__(self, scores: Scores) -> None:
        self.scores = scores

    def read(self, places: Any) -> Scores:
        """Return the scores of some candidates."""
        found: Scores = self.scores[places]
        return found


def figures(
    one: RankedQuestion, weights: Weights, scalars: RankingScalars = SCALARS
) -> list[float]:
    """Return the figures of one question by some weights; NaN for those it has not."""
    weighed = weigh(one.found, one.question.text, one.asked_at, weights, scalars)
    matched = weighed.matched(one.found.lanes)
    scores = np.where(matched, weighed.scores, -np.inf)
    order = [place for place in np.argsort(-scores, kind="stable")[:DEPTH] if matched[place]]
    turns = [one.places[place] for place in order]
    sessions = list(dict.fromkeys(session for session, _ in turns))
    made = session_figures(sessions, one.question.sessions)
    made |= turn_figures(turns, one.question.turns)
    return [made.get(name, float("nan")) for name in FIGURES]


def load_questions(given: str, cache: Path, embedder: str | None = None) -> list[RankedQuestion]:
    """Return the questions of `FORMAT:PATH`, from the cache as far as they are there."""
    form, _, path = given.partition(":")
    folder = cache / f"{form}-{Path(path).name}-{embedder or 'default'}"
    folder.mkdir(parents=True, exist_ok=True)
    kept: list[RankedQuestion] = []
    name, _, how = form.partition("+")
    for number, case in enumerate(load_cases(path, name)):
        if not any(one.is_measured for one in case.questions):
            continue
        file = folder / f"{number:05}.pickle"
        if not file.exists():
            made = pickle.dumps(_asked(case, how, embedder))
            file.with_suffix(".new").write_bytes(made)
            file.with_suffix(".new").replace(file)
        kept += _restored(number, pickle.loads(file.read_bytes()))
    return kept


def _asked(case: Case, how: str, embedder: str | None) -> dict[str, Any]:
    """Write a conversation and ask its questions; return plain data."""
    with WorldDB(":memory:", embedder=embedder) as db:
        places = _written(db, case, how)
        rows = []
        for question in case.questions:
            if not question.is_measured:
                continue
            row: dict[str, Any] = {"question": _plain(question)}
            for name in ("", *LANE_SCALARS):
                off: dict[str, Any] = {name: OFF[name]} if name else {}
                at = case.asked_at(question)
                found, at = ranker_input(db, question.text, at, replace(SCALARS, **off))
                row[name] = _arrays(found)
                row["at"] = at
            rows.append(row)
    return {"places": places, "rows": rows}


def ranker_input(
    db: WorldDB, question: str, at: datetime, scalars: RankingScalars = SCALARS
) -> tuple[Candidates, datetime]:
    """Ask a question and return what the ranker was given."""
    given: list[Any] = []

    def record(found: Candidates, text: str, when: datetime, weights: Weights) -> Any:
        given.append((found, when))
        return weigh(found, text, when, weights)

    changes: dict[tuple[Any, str], Any] = {
        (recaller, "weigh"): record,
        (recaller, "SCALARS"): scalars,
        (recall_question, "SCALARS"): scalars,
        (held_world, "SCALARS"): scalars,
    }
    before = {key: getattr(*key) for key in changes}
    for (module, name), value in changes.items():
        setattr(module, name, value)
    try:
        db.recall(question, types=VERBATIM_TYPES, at=at)
    finally:
        for (module, name), value in before.items():
            setattr(module, name, value)
    found, when = given[0]  # Of a text with several questions, the whole comes first.
    return found, when


def _arrays(found: Candidates) -> dict[str, Any]:
    late, similar = (
        None if words is None else words.read(range(len(found.parents)))
        for words in (found.closely, found.synonyms)
    )
    return {
        "lanes": {lane: np.array(scores) for lane, scores in found.lanes.items()},
        "speakers": list(found.speakers),
        "late": late,
        "synonyms": similar,
        "reads_whole": found.reads_whole,
        **{name: getattr(found, name) for name in ARRAYS},
    }


def _plain(question: GoldQuestion) -> dict[str, Any]:
    return {name: getattr(question, name) for name in question.__slots__}


def _restored(number: int, kept: dict[str, Any]) -> Iterator[RankedQuestion]:
    def restored(row: dict[str, Any]) -> Candidates:
        late = row["late"]
        return Candidates(
            lanes=row["lanes"],
            closely=None if late is None else KeptWords(late),
            synonyms=None if row["synonyms"] is None else KeptWords(row["synonyms"]),
            speakers=row["speakers"],
            reads_whole=row["reads_whole"],
            **{name: row[name] for name in ARRAYS},
        )

    for row in kept["rows"]:
        yield RankedQuestion(
            fold=number,
            question=GoldQuestion(**row["question"]),
            found=restored(row[""]),
            asked_at=row["at"],
            places=kept["places"],
            changed={name: restored(row[name]) for name in LANE_SCALARS},
        )


def _written(db: WorldDB, case: Case, how: str) -> list[tuple[int, int]]:
    """Write a conversation; return where each candidate was said, in the order of writing."""
    if how == "memories":
        return _memories(db, case)
    reading: Any = how or "verbatim"
    stored = write_case(db, case, RunSettings(benchmark="locomo", reading=reading), None)
    said = [
        (session, turn)
        for ident, places in stored.places.items()
        for session, turn in places[:1]
        if turn is not None and db.get(ident).type in VERBATIM_TYPES
    ]
    return sorted(said)


def _memories(db: WorldDB, case: Case) -> list[tuple[int, int]]:
    places = []
    with db.transaction(actor="bench") as tx:
        for place, session in enumerate(case.sessions):
            for number, turn in enumerate(session.turns):
                at = session.at + timedelta(microseconds=place * 10_000 + number)
                said = f"{turn.speaker}: {turn.text}"
                tx.create_nodes([NodeDraft(type="Memory", content=said, created_at=at)])
                places.append((place, number))
    return places
