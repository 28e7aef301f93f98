"""Weights are fitted to questions, judged on sets left out, and written with their origin."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from faces.command import in_process
from worlddb import Weights
from worlddb.errors import InvalidInputError
from worlddb.evaluate.benchmark_cases import GoldQuestion
from worlddb.evaluate.weight_fit import (
    FITTED,
    LEFT_OUT,
    GatheredQuestion,
    by_weights,
    compared,
    fit,
    fitted,
)


def gathered(number: int, useful: str, misleading: str = "") -> GatheredQuestion:
    """Return a question with ten hits, of which the first is gold, as one feature tells."""
    dice = np.random.default_rng(number)
    features = dice.normal(size=(10, len(FITTED)))
    features[0, FITTED.index(useful)] += 4.0
    if misleading:
        features[0, FITTED.index(misleading)] -= 4.0
    gold = frozenset({(0, 0)})
    return GatheredQuestion(
        id=str(number),
        question=GoldQuestion(str(number), "any", "?", None, frozenset({0}), gold),
        places=[(place, 0) for place in range(10)],
        features=features,
        is_gold=np.arange(10) == 0,
        simple=dict.fromkeys(("fused", "text", "vector"), features[:, 0]),
    )


def test_what_tells_gold_gets_weight_and_what_misleads_gets_none() -> None:
    found = fitted({"a": [gathered(number, "cover", "reply") for number in range(40)]})
    assert max(found, key=found.__getitem__) == "cover"
    assert found["reply"] == 0.0
    assert min(found.values()) >= 0.0


def test_each_set_counts_the_same_however_many_questions_it_has() -> None:
    many = [gathered(number, "text") for number in range(60)]
    few = [gathered(number, "date") for number in range(100, 106)]
    found = fitted({"many": many, "few": few})
    assert found["date"] == pytest.approx(found["text"], rel=0.5)
    alone = fitted({"one": [*many, *few]})
    assert alone["date"] / alone["text"] < 0.75 * found["date"] / found["text"]


def test_a_set_is_judged_by_weights_that_have_not_seen_it() -> None:
    sets = {
        "a/x": [gathered(number, "cover") for number in range(30)],
        "a/y": [gathered(number, "cover") for number in range(30, 60)],
        "b/x": [gathered(number, "date") for number in range(60, 90)],
    }
    rows = dict(compared(sets, fitted(sets)))
    assert list(rows) == list(sets)
    first = {
        title: np.mean([one["figures"]["recall@1"] for one in kept])
        for title, kept in rows["b/x"].items()
    }
    assert next(iter(rows["b/x"])) == LEFT_OUT
    assert first[LEFT_OUT] < first["fitted to all sets"]


def test_a_few_questions_of_ones_own_move_the_present_weights_only_a_little() -> None:
    few = fit({"own/default": [gathered(number, "date") for number in range(3)]})
    many = fit({"own/default": [gathered(number, "date") for number in range(200)]})
    present = {name: float(getattr(Weights(), name)) for name in FITTED}
    moved = [sum(abs(found[name] - present[name]) for name in FITTED) for found in (few, many)]
    assert moved[0] < moved[1]


def test_a_feature_that_no_text_has_keeps_its_weight() -> None:
    questions = [gathered(number, "text") for number in range(10)]
    for one in questions:
        one.features[:, FITTED.index("graph")] = 0.0
    assert fitted({"a": questions})["graph"] == Weights().graph


def test_questions_without_gold_among_their_hits_are_refused() -> None:
    one = gathered(1, "text")
    one.is_gold[:] = False
    with pytest.raises(InvalidInputError, match="gold"):
        fitted({"a": [one]})


def test_the_best_hit_by_weights_is_the_one_with_the_highest_sum() -> None:
    one = gathered(1, "date")
    only = {name: float(name == "date") for name in FITTED}
    assert one.figures(by_weights(only))["recall@1"] == 1.0


def test_the_command_fits_a_file_of_ones_own_and_says_where_the_weights_come_from(
    tmp_path: Path,
) -> None:
    turns = [
        {"id": f"t{number}", "role": "user", "content": f"My {thing} is {colour}."}
        for number, (thing, colour) in enumerate(
            [("car", "red"), ("boat", "blue"), ("house", "white"), ("bike", "green")]
        )
    ]
    questions = [
        {
            "id": f"q{number}",
            "category": "own",
            "question": f"Which colour has my {turn['content'].split()[1]}?",
            "answer": "a colour",
            "evidence": [turn["id"]],
        }
        for number, turn in enumerate(turns)
    ]
    sessions = [{"at": "2024-05-01T10:00:00+00:00", "turns": turns}]
    data = tmp_path / "own.json"
    data.write_text(json.dumps([{"name": "own", "sessions": sessions, "questions": questions}]))
    out = tmp_path / "weights.json"
    done = in_process("eval", "fit", "--data", data, "--out", out)
    assert done.code == 0
    assert "plain rank fusion" in done.out
    written = json.loads(out.read_text())
    assert Weights(**written["weights"]).text >= 0
    assert written["provenance"]["command"] == "worlddb eval fit --data own.json"
    assert len(bytes.fromhex(written["provenance"]["data"][0]["sha256"])) == 32
