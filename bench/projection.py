"""Fit the projection of token vectors, in two steps; the second needs PyTorch, best on a GPU.

    python -m bench.projection gather longmemeval:FILE locomo:FILE --out FOUND
    python -m bench.projection fit FOUND --models DIR --out PROJECTION --held HELD [--folds 6]

`gather` asks every question by the default embedder, and keeps what was weighed and the texts that
would be read word by word. `fit` reads them by the model, begins with the directions in which their
token vectors differ most, and turns these so that what is gold comes first. Its cross-validated
figures say what to expect: each question (of LoCoMo, each conversation) is weighed by the engine
itself with a projection that was fitted on the others. The projection that it writes was fitted on
everything, so its own figures on these files say little. The projection belongs beside the
embedder, as `arctic-embed-s-tokens.npy`; a new projection needs a new model id.
"""

from __future__ import annotations

import argparse
import lzma
import os
import pickle
import time
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.ranking_data import (
    FIGURES,
    KeptWords,
    RankedQuestion,
    figures,
    ranker_input,
)
from worlddb import Weights, WorldDB
from worlddb.embed.onnx_embedder import DIM
from worlddb.evaluate.case_recall import ingest
from worlddb.evaluate.data_sets import load_cases
from worlddb.index.ranking_numbers import SCALARS
from worlddb.index.vectors import late_interaction_scores
from worlddb.recall.ranker import Candidates, Scores
from worlddb.recall.ranker import weigh as rank

Matrix = NDArray[np.float32]


class Question(NamedTuple):
    """A question, what was weighed, and which of all texts are read closely at which places."""

    file: str
    weighed: RankedQuestion
    read: list[int]
    texts: list[int]


def gather(files: list[str], out: str) -> None:
    """Ask every question once and write down what was found."""
    texts: dict[str, int] = {}
    questions: list[Question] = []
    for given in files:
        form, _, path = given.partition(":")
        for number, case in enumerate(load_cases(path, form)):
            asked = [one for one in case.questions if one.is_measured]
            if not asked:
                continue
            with WorldDB(":memory:") as db:
                places = list(ingest(db, case).values())
                for question in asked:
                    at = case.asked_at(question)
                    found, scores = _weighed(db, question.text, at)
                    order = np.argsort(-scores, kind="stable")
                    read = order[: SCALARS.late_candidates_max].tolist()
                    turns = [case.sessions[s].turns[n] for s, n in map(places.__getitem__, read)]
                    said = [f"{turn.speaker}: {turn.text}" for turn in turns]
                    kept = RankedQuestion(number, question, found, at, places, {})
                    numbers = [texts.setdefault(text, len(texts)) for text in said]
                    questions.append(Question(os.path.basename(path), kept, read, numbers))
    with lzma.open(out, "wb") as file:
        pickle.dump((questions, list(texts)), file)
    print(f"{len(questions)} questions, {len(texts)} texts: {out}")


def _weighed(db: WorldDB, question: str, at: datetime) -> tuple[Candidates, Scores]:
    """Return what is weighed for a question, as the ranker has it."""
    found, at = ranker_input(db, question, at)
    weighed = rank(found, question, at, Weights())
    # Half the size; the differences are below those of the vectors themselves.
    kept: Any = {lane: values.astype(np.float32) for lane, values in weighed.lanes.items()}
    # What compares words or leads through the graph holds the open store.
    return replace(found, lanes=kept, closely=None, synonyms=None, graph=None), weighed.scores


def _load(path: str) -> Any:
    with lzma.open(path, "rb") as file:
        return pickle.load(file)


def fit(path: str, models_dir: str, out: str, held_out: str, folds: int, epochs: int) -> None:
    """Fit the projection, cross-validated and then on everything."""
    from bench.projection_trainer import Trainer

    questions, texts = _load(path)
    start = time.perf_counter()
    trainer = Trainer(questions, texts, models_dir)
    print(
        f"{len(texts)} texts read in {time.perf_counter() - start:.0f} s; "
        f"mean cosine with the engine's token vectors {trainer.likeness:.4f}",
        flush=True,
    )
    everything = range(len(questions))
    readings = [_reading(trainer, number, trainer.principal) for number in everything]
    _print("principal directions", questions, readings)
    fold_of = [one.weighed.fold % folds for one in questions]
    left_out = [{n for n in everything if fold_of[n] == fold} for fold in range(folds)]
    *held, whole = trainer.fitted([*left_out, set()], epochs)
    readings = [_reading(trainer, number, held[fold_of[number]]) for number in everything]
    _print("fitted, cross-validated", questions, readings)
    with lzma.open(held_out, "wb") as file:
        pickle.dump(readings, file)
    np.save(out, whole.astype(np.float16))
    readings = [_reading(trainer, number, whole) for number in everything]
    _print("fitted on these very questions", questions, readings)
    print(f"{DIM} of {len(whole)} dimensions: {out}; {time.perf_counter() - start:.0f} s")


def _reading(trainer: Any, number: int, matrix: Matrix) -> Scores:
    """Return what the engine reads in the texts of a question, had it this projection."""
    return late_interaction_scores(*trainer.tokens_of(number, matrix))


def _with_reading(one: Question, reading: Scores) -> RankedQuestion:
    scores = np.zeros(len(one.weighed.places))
    scores[one.read] = reading
    found = replace(one.weighed.found, closely=KeptWords(scores))
    return one.weighed._replace(found=found)


def _print(name: str, questions: list[Question], readings: list[Scores]) -> None:
    made = np.array(
        [
            figures(_with_reading(one, reading), Weights())
            for one, reading in zip(questions, readings, strict=True)
        ]
    )
    groups: dict[str, list[int]] = {}
    for number, one in enumerate(questions):
        for group in (one.file, f"{one.file}, {one.weighed.question.category}"):
            groups.setdefault(group, []).append(number)
    for group, numbers in sorted(groups.items()):
        means = dict(zip(FIGURES, np.nanmean(made[numbers], axis=0).round(4).tolist(), strict=True))
        print(f"{name}: {group}: n {len(numbers)} {means}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("gather")
    first.add_argument("files", nargs="+", metavar="FORMAT:FILE")
    first.add_argument("--out", required=True)
    second = steps.add_parser("fit")
    second.add_argument("found")
    second.add_argument("--models", required=True)
    second.add_argument("--out", required=True)
    second.add_argument("--held", required=True)
    second.add_argument("--folds", type=int, default=6)
    second.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    if args.step == "gather":
        gather(args.files, args.out)
    else:
        fit(args.found, args.models, args.out, args.held, args.folds, args.epochs)


if __name__ == "__main__":
    main()
