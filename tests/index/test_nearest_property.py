"""The vector index against a dictionary: any puts, replacements and removals, in any order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thinning import examples
from worlddb.index.nearest import Nearest

from .vector_sets import Floats, brute, clustered

DIM = 5
POOL = np.concatenate(
    [
        clustered(60, DIM, 1, centres=6),
        np.eye(DIM, dtype=np.float32),
        -np.eye(DIM, dtype=np.float32),
        np.zeros((2, DIM), np.float32),
    ]
)
SETTINGS = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=examples(60, 25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

rows = st.integers(0, 80)
picks = st.integers(0, len(POOL) - 1)
changes = st.one_of(
    st.tuples(st.just("put"), st.lists(st.tuples(rows, picks), min_size=1, max_size=40)),
    st.tuples(st.just("remove"), st.lists(rows, min_size=1, max_size=30)),
    st.tuples(st.just("rebuild"), st.none()),
    st.tuples(st.just("reload"), st.none()),
)
starts = st.tuples(st.just("put"), st.lists(st.tuples(rows, picks), min_size=15, max_size=60))
histories = st.builds(
    lambda start, rest: [start, *rest], starts, st.lists(changes, min_size=1, max_size=10)
)
questions = st.lists(
    st.tuples(picks, st.integers(1, 90), st.none() | st.sets(st.integers(0, 100))),
    min_size=1,
    max_size=6,
)


def replay(
    exact_below: int, history: list[tuple[str, Any]], path: str
) -> tuple[Nearest, dict[int, Floats]]:
    index = Nearest(DIM, exact_below=exact_below)
    held: dict[int, Floats] = {}
    for what, items in history:
        if what == "put":
            index.put(np.array([row for row, _ in items]), POOL[[pick for _, pick in items]])
            held.update({row: POOL[pick] for row, pick in items})
        elif what == "remove":
            index.remove(np.array(items))
            for row in items:
                held.pop(row, None)
        elif what == "rebuild":
            index.rebuild()
        else:
            index.save(path, b"now")
            loaded = Nearest.load(path, b"now", exact_below=exact_below)
            assert loaded is not None
            index = loaded
    return index, held


def seen(held: dict[int, Floats], allowed: set[int] | None) -> dict[int, Floats]:
    return held if allowed is None else {row: held[row] for row in held.keys() & allowed}


@pytest.mark.parametrize("exact_below", [0, 1, 8, 1_000])
def test_answers_are_those_of_brute_force_whatever_happened_before(
    exact_below: int, tmp_path: Path
) -> None:
    """So few entries are all within the least depth of the graph, so it misses none of them."""
    path = str(tmp_path / "index")
    graphs = 0

    @SETTINGS
    @given(histories, questions)
    def check(
        history: list[tuple[str, Any]], asked: list[tuple[int, int, set[int] | None]]
    ) -> None:
        nonlocal graphs
        index, held = replay(exact_below, history, path)
        graphs += index._graph is not None
        assert len(index) == len(held)
        for pick, k, allowed in asked:
            given_rows = None if allowed is None else np.array(sorted(allowed), np.int64)
            found = index.search(POOL[pick], k, given_rows)
            expected = brute(seen(held, allowed), POOL[pick], k) if POOL[pick].any() else []
            assert found == expected

    check()
    assert graphs > 20 if exact_below < 100 else graphs == 0
