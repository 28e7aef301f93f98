"""Linked sets: which passages and facts answer a question, and what is measured of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from worlddb.evaluate.benchmark_cases import RunSettings
from worlddb.evaluate.benchmark_run import run_benchmark
from worlddb.evaluate.data_formats import FactBook
from worlddb.evaluate.data_sets import format_of, load_cases
from worlddb.evaluate.question_plan import plan_of

FACTS = (
    "The author of Red Lake is Ann Moor.",
    "Ann Moor is married to Tom Hill.",
    "Tom Hill is a citizen of Norway.",
    "tennis was created in the country of France.",
    "Ida Berg is associated with the sport of tennis.",
    "Ann Moor is married to Bo Lind.",
    "Bo Lind is a citizen of Peru.",
    "tennis was created in the country of Chile.",
)
MULTIHOP = {
    "2wiki": {
        "passages": {
            "Red Lake": "Red Lake is a film directed by Ann Moor.",
            "Ann Moor": "Ann Moor is a director. She was born in Oslo.",
            "Blue Lake": "Blue Lake is a film directed by somebody else who was born.",
        },
        "questions": [
            {
                "id": "q1",
                "type": "compositional",
                "question": "Where was the director of Red Lake born?",
                "answer": "Oslo",
                "gold": ["Red Lake", "Ann Moor"],
            }
        ],
    }
}


def facts_file(source: str, question: str, answer: str) -> dict[str, Any]:
    lines = "\n".join(f"{number}. {fact}" for number, fact in enumerate(FACTS))
    return {
        "context": f"Here is a list of facts:\n{lines}",
        "questions": [question],
        "answers": [[answer]],
        "metadata": {"source": source},
    }


def figures(path: Path, form: str) -> dict[str, float]:
    settings = RunSettings(benchmark=form, reading="rules", embedder="hash")
    finished = run_benchmark(str(path), settings, None, plan=plan_of(str(path), settings))
    (record,) = finished.records
    found: dict[str, float] = record["figures"]
    return found


def test_the_fact_of_one_hop_is_the_latest_that_ends_with_the_answer() -> None:
    book = FactBook(FACTS)
    assert book.single("Which country was tennis created in?", ["Chile"]) == [7]
    assert book.twins(7) == [3]
    assert book.single("Which country was tennis created in?", ["France"]) == []


def test_a_chain_follows_the_latest_facts_from_the_question_to_the_answer() -> None:
    book = FactBook(FACTS)
    question = "What is the country of citizenship of the spouse of the author of Red Lake?"
    assert book.chain(question, ["Peru"]) == [0, 5, 6]
    assert book.chain(question, ["Norway"]) == []
    assert book.chain("Which country did Ida Berg's sport come from?", ["Chile"]) == [4, 7]


def test_facts_are_measured_by_chain_and_by_what_they_replaced(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_text(
        json.dumps([facts_file("x_mh", "Who is the spouse of the author of Red Lake?", "Bo Lind")])
    )
    assert format_of(str(path)) == "facts"
    found = figures(path, "facts")
    assert (found["last@10"], found["turns@10"], found["outdated@gold"]) == (1.0, 1.0, 0.0)


def test_passages_are_memories_that_begin_with_their_title(tmp_path: Path) -> None:
    path = tmp_path / "multihop.json"
    path.write_text(json.dumps({"a set of mine": next(iter(MULTIHOP.values()))}))
    assert format_of(str(path)) == "multihop"
    path.write_text(json.dumps(MULTIHOP))
    assert format_of(str(path)) == "multihop"
    (case,) = load_cases(str(path), "multihop")
    assert case.sessions[0].turns[0].text.startswith("Red Lake: Red Lake is")
    found = figures(path, "multihop")
    assert found["turns@3"] == 1.0
