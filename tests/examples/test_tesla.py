"""The Tesla scenario of the paper: six questions, six exact sets."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worlddb

EXAMPLE = Path(__file__).parents[2] / "examples" / "tesla.py"


@pytest.fixture(scope="module")
def tesla() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


@pytest.fixture
def scene(tesla: dict[str, Any]) -> Iterator[Any]:
    with worlddb.open(":memory:") as db:
        yield tesla["build"](db)


def test_six_questions_have_their_exact_answers(tesla: dict[str, Any], scene: Any) -> None:
    assert tesla["questions"](scene) == {
        "What is the outlook?": {"outlook_q3"},
        "What was the outlook in Q1?": {"outlook_q1"},
        "What was decided in Q1?": {"cheap_car", "mexico", "hiring"},
        "What has Elon decided?": {
            "cheap_car",
            "mexico",
            "robotaxi",
            "old_lines",
            "mexico_pause",
        },
        "Which of Elon's decisions turned the cheap car around?": {"robotaxi", "old_lines"},
        "Which decisions of Q3 go back on one of Q1?": {
            "robotaxi",
            "old_lines",
            "mexico_pause",
            "layoffs",
        },
    }


def test_both_sides_of_a_contradiction_stay_and_are_surfaced(scene: Any) -> None:
    found = scene.db.query().seeds([scene.ids["cheap_car"]]).execute()
    assert scene.names(found) == {"cheap_car"}
    sides = {(conflict.left, conflict.right) for conflict in found.conflicts}
    car = scene.ids["cheap_car"]
    assert sides == {(scene.ids["robotaxi"], car), (scene.ids["old_lines"], car)}


def test_before_the_analyst_spoke_nothing_was_superseded_or_contradicted(scene: Any) -> None:
    db, ids = scene.db, scene.ids
    before = db.log()[1].time
    then = db.query().in_world(ids["tesla"]).filter_type("Fact").as_of(known=before).execute()
    assert scene.names(then) == {"outlook_q1", "outlook_q3"}
    assert then.conflicts == ()
    now = db.query().in_world(ids["tesla"]).filter_type("Fact").execute()
    assert scene.names(now) == {"outlook_q3"}


def test_the_program_runs_and_proves_its_fact(
    tesla: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    tesla["main"]()
    out = capsys.readouterr().out
    assert "is in it: True" in out
    assert out.rstrip().endswith("problems found by check(): 0")
