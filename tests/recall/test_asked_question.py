"""Several questions in one text: where they end, and how their answers take turns."""

from __future__ import annotations

import numpy as np
import pytest

import worlddb
from recall.search_stage import hold_at_most
from worlddb import NodeDraft, RecallSettings, WorldDB
from worlddb.recall.hit_order import Ranking, taking_turns
from worlddb.recall.question import questions_in

JOB = "Lena is a baker in Bonn."
FAIR = "The spring fair opens on the fourth of May."
NEAR_JOB = [f"Lena said that work was hard in week {week}." for week in range(12)]
BOTH = "Where does Lena work? And when does the spring fair open?"


@pytest.mark.parametrize(
    ("text", "questions"),
    [
        ("Where does Lena work?", []),
        ("Lena moved. Where does she work?", []),
        (BOTH, ["Where does Lena work?", "And when does the spring fair open?"]),
        (
            "I was away. Who called? Who wrote? Be brief.",
            ["I was away. Who called?", "Who wrote? Be brief."],
        ),
        ("他住在哪里？另外，他几岁？", ["他住在哪里？", "另外，他几岁？"]),
        ('Who asked "Is it late?" and who left?', []),
        ("他问“几点了？”然后走了吗？", []),
        ("Is https://a.example/?q=1 the page?", []),
        ("A? B? C? D? E?", []),
    ],
)
def test_questions_end_at_their_marks(text: str, questions: list[str]) -> None:
    assert questions_in(text) == questions


@pytest.fixture
def db() -> WorldDB:
    db = worlddb.open(":memory:")
    with db.transaction(actor="test") as tx:
        tx.create_nodes(NodeDraft(type="Memory", content=it) for it in (JOB, FAIR, *NEAR_JOB))
    return db


@pytest.mark.parametrize("held_max", [1_000, 3])
def test_each_of_two_questions_has_its_answer_among_the_first(db: WorldDB, held_max: int) -> None:
    with hold_at_most(db, held_max):
        found = db.recall(BOTH, k=8)
        said = [hit.node.content for hit in found]
        assert FAIR in said[:3]
        assert sum(text in NEAR_JOB for text in said[:3]) >= 1
        scores = [hit.score for hit in found]
        assert scores == sorted(scores, reverse=True)
        assert all(abs(sum(it.weighed.values()) - it.score) < 1e-9 for it in found)
        assert len({hit.id for hit in found}) == len(found)
        again = db.recall(BOTH, k=8)
        assert [hit.id for hit in again] == [hit.id for hit in found]
        assert "turn" not in db.recall("Where does Lena work?")[0].weighed
        plain = db.recall(BOTH, settings=RecallSettings(weighing=None))
        assert all("turn" not in hit.weighed for hit in plain)


def ranking(rows: list[int], order: list[int], scores: list[float]) -> Ranking:
    values = np.array(scores)
    return Ranking(
        order=order,
        rows=rows,
        scores={at: scores[at] for at in order},
        fused=dict.fromkeys(order, 1.0),
        ranks={"text": order},
        lanes={"text": values},
        parts={"text": values},
        stated=values > 90,
    )


def test_rankings_of_other_candidates_take_turns() -> None:
    whole = ranking([10, 11, 12], [0, 1, 2], [5.0, 4.0, 1.0])
    second = ranking([12, 13], [1, 0], [7.0, 99.0])
    found = taking_turns([whole, second])
    assert [found.rows[at] for at in found.order] == [10, 13, 11, 12]
    assert [found.scores[at] for at in found.order] == [5.0, 4.5, 4.0, 2.5]
    place = {row: at for at, row in enumerate(found.rows)}
    assert found.parts["text"][place[13]] == 99.0
    assert found.parts["turn"][place[13]] == 4.5 - 99.0
    assert found.lanes["text"][place[12]] == 1.0  # that of the whole
    assert found.lanes["text"][place[13]] == 99.0
    assert found.stated is not None
    assert [row for row in found.rows if found.stated[place[row]]] == [13]
    assert taking_turns([whole]) is whole
