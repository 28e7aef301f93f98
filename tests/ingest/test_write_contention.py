"""In a crowd of writers a plan is made once, inside the transaction; the outcome is the same."""

from __future__ import annotations

from collections import Counter

import pytest

from worlddb import Memory
from worlddb.ingest import ingestion, plan
from worlddb.ingest.ingestion import CALM_WRITES, WriteContention

TEXTS = (
    "I live in Hamburg.",
    "Lunch with Jonathan Smyth in Lisbon.",
    "Dinner with Jonathon Smyth.",
    "I moved to Lisbon.",
    "I moved to Lisbon.",
    "The budget of Project Falcon is 40k.",
    "The budget of Project Falcon is 60k.",
)


def outcome(*, crowded: bool) -> tuple[object, ...]:
    with Memory(":memory:", embedder="none", user_id="ada", recluster="now") as memory:
        crowd = memory.db.engine.ingestion.crowd
        for text in TEXTS:
            if crowded:
                crowd.record(overtaken=True)
            memory.write(text, idempotency_key=None)
        listed = [(one.text, one.retired) for one in memory.list(include_retired=True)]
        edges = Counter(
            edge.type
            for node in memory.db.query().include_superseded().execute()
            for edge in memory.db.edges(node.id, include_superseded=True)
        )
        names = sorted(one.left_name for one in memory.proposals())
        assert memory.db.check() == []
        return sorted(listed), edges, names, len(memory.conflicts())


def test_the_outcome_is_the_same_with_and_without_a_crowd() -> None:
    assert outcome(crowded=True) == outcome(crowded=False)


@pytest.mark.parametrize("crowded", [True, False])
def test_a_plan_is_made_once(crowded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    prepare = plan.prepare

    def counted(*arguments: object, **options: object) -> object:
        made.append(1)
        return prepare(*arguments, **options)  # type: ignore[arg-type]

    with Memory(":memory:", embedder="none", user_id="ada", recluster="off") as memory:
        first = memory.write("The gate code is 1.", idempotency_key="k")
        if crowded:
            memory.db.engine.ingestion.crowd.record(overtaken=True)
        monkeypatch.setattr(ingestion, "prepare", counted)
        memory.write("The alarm code is 2204.")
        assert len(made) == 1
        again = memory.write("The gate code is 1.", idempotency_key="k")
        assert again.id == first.id
        assert not again.created


def test_a_crowd_is_gone_after_some_calm_writes() -> None:
    crowd = WriteContention()
    assert not crowd.is_contended
    crowd.record(overtaken=True)
    for _ in range(CALM_WRITES):
        assert crowd.is_contended
        crowd.record(overtaken=False)
    assert not crowd.is_contended
