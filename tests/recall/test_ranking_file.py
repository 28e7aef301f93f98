"""The file of the ranking's numbers: whole, explained, and what the code uses."""

from __future__ import annotations

import ast
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import RecallSettings, Weights
from worlddb.evaluate.weight_fit import FITTED
from worlddb.index import bm25, held_world, ranking_numbers
from worlddb.index.ranking_numbers import PATH, SCALARS, WEIGHTS
from worlddb.language import ranking_features as question
from worlddb.recall import ranker, recaller

FILE: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
NUMBERS = {**FILE["weights"], **FILE["scalars"]}
OTHERS = ("asker", "fading")
"""Fields of `Weights` that are no weights."""


def test_the_defaults_are_the_numbers_of_the_file() -> None:
    names = [item.name for item in fields(Weights) if item.name not in OTHERS]
    assert {name: getattr(Weights(), name) for name in names} == dict(WEIGHTS)
    assert {name: entry["value"] for name, entry in FILE["weights"].items()} == dict(WEIGHTS)
    assert {item.name: getattr(SCALARS, item.name) for item in fields(SCALARS)} == {
        name: entry["value"] for name, entry in FILE["scalars"].items()
    }
    assert (RecallSettings().c, RecallSettings().depth) == (SCALARS.fusion_c, SCALARS.lane_depth)


@pytest.mark.parametrize("name", NUMBERS)
def test_each_number_says_what_it_means_and_how_it_was_chosen(name: str) -> None:
    entry = NUMBERS[name]
    assert set(entry) - {"off"} == {"value", "chosen", "meaning"}
    assert isinstance(entry["value"], int | float)
    assert entry["chosen"] in ("fitted", "measured", "convention")
    assert len(entry["meaning"]) > 20
    if name in FILE["weights"]:
        assert entry["off"] == 0


def test_the_file_says_where_it_comes_from_and_nothing_of_a_machine() -> None:
    told = FILE["provenance"]
    assert told["command"].startswith("worlddb eval fit --data ")
    assert isinstance(told["seed"], int)
    assert told["embedders"]
    assert len({data["format"] for data in told["data"]}) > 2, "one kind of data fits one kind"
    for data in told["data"]:
        assert set(data) == {"file", "format", "sha256"}
        assert len(bytes.fromhex(data["sha256"])) == 32
    assert "/" not in "".join(data["file"] for data in told["data"])


def test_every_fitted_weight_is_one_that_the_command_fits() -> None:
    chosen = {name for name, entry in FILE["weights"].items() if entry["chosen"] == "fitted"}
    assert chosen - {"late"} <= {*FITTED}


@pytest.mark.parametrize("module", [ranker, recaller, ranking_numbers, question, held_world, bm25])
def test_no_fraction_is_written_into_the_code_of_the_ranking(module: Any) -> None:
    """A weight is a fraction; limits and sizes are whole numbers."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    named = [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, float)
    ]
    assert named in ([], ["SPREAD_MIN = 1e-09"]), "below which scores differ by rounding alone"


@pytest.mark.parametrize("name", [name for name in SCALARS.__slots__ if "bm25" in name])
def test_a_scalar_of_the_file_reaches_the_text_lane(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    texts = ("apple " * 5 + "pear", "an apple and many other words that make this a long text")
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction(actor="test") as tx:
            for text in texts:
                tx.create_node(type="Memory", content=text)
        before = [hit.lanes["text"].score for hit in db.recall("apple")]
        changed: dict[str, Any] = {name: 0.1}
        monkeypatch.setattr(bm25, "SCALARS", replace(SCALARS, **changed))
        assert [hit.lanes["text"].score for hit in db.recall("apple")] != before
