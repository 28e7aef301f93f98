"""The vector index: what it finds, what it never shows, what it refuses."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from worlddb.errors import InvalidInputError
from worlddb.index.nearest import Nearest, best, cosines
from worlddb.index.vector_graph import ROWS_MAX, _part_of

from .vector_sets import Floats, brute, clustered, numbers

DIM = 16
COUNT = 3_000


def filled(exact_below: int, count: int = COUNT, dim: int = DIM) -> tuple[Nearest, Floats]:
    index, vectors = Nearest(dim, exact_below=exact_below), clustered(count, dim, 1)
    index.put(np.arange(count), vectors)
    return index, vectors


def recall(index: Nearest, held: dict[int, Floats], asked: Floats, k: int = 10) -> float:
    hits = 0
    for query in asked:
        true = {row for row, _ in brute(held, query, k)}
        hits += len(true & {row for row, _ in index.search(query, k)})
    return hits / (k * len(asked))


def test_below_the_crossover_answers_are_those_of_brute_force() -> None:
    index, vectors = filled(exact_below=COUNT)
    held = dict(enumerate(vectors))
    for query in clustered(20, DIM, 2):
        assert index.search(query, 10) == brute(held, query, 10)
    assert index._graph is None


def test_above_the_crossover_nearly_all_true_neighbours_are_found() -> None:
    index, vectors = filled(exact_below=100)
    assert index._graph is not None
    assert recall(index, dict(enumerate(vectors)), clustered(100, DIM, 2)) >= 0.98


def test_rows_put_one_by_one_are_found_as_well_as_rows_built_together() -> None:
    vectors = clustered(1_500, DIM, 1)
    one_by_one, together = (Nearest(DIM, exact_below=100) for _ in range(2))
    for row in range(len(vectors)):
        one_by_one.put(numbers(row), vectors[row : row + 1])
    together.build(np.arange(len(vectors)), vectors)
    held, asked = dict(enumerate(vectors)), clustered(50, DIM, 2)
    assert recall(one_by_one, held, asked) >= 0.98
    assert recall(together, held, asked) >= 0.98


def test_recall_holds_when_half_of_the_rows_were_replaced_and_a_quarter_removed() -> None:
    index, vectors = filled(exact_below=100)
    held = dict(enumerate(vectors))
    other = clustered(COUNT, DIM, 3)
    for row in range(0, COUNT, 2):
        index.put(numbers(row), other[row : row + 1])
        held[row] = other[row]
    index.remove(np.arange(1, COUNT, 4))
    for row in range(1, COUNT, 4):
        del held[row]
    assert len(index) == len(held)
    assert recall(index, held, clustered(100, DIM, 2)) >= 0.98


@pytest.mark.parametrize("exact_below", [0, 50, 10_000])
def test_a_change_counts_at_once(exact_below: int) -> None:
    index, vectors = filled(exact_below, count=500)
    here, there = clustered(2, DIM, 7)
    index.put(numbers(900), here[None])
    assert index.search(here, 1)[0][0] == 900
    index.put(numbers(900), there[None])
    assert index.search(there, 1)[0][0] == 900
    assert index.search(here, 1)[0][0] != 900
    index.remove(numbers(900, 12_345))
    assert 900 not in [row for row, _ in index.search(there, 501)]
    assert index.search(vectors[3], 1)[0][0] == 3


@pytest.mark.parametrize("exact_below", [0, 100, 10_000])
def test_a_filtered_search_shows_allowed_rows_only_and_as_many_as_there_are(
    exact_below: int,
) -> None:
    index, vectors = filled(exact_below)
    index.remove(np.arange(0, COUNT, 7))
    rng = np.random.default_rng(5)
    for size in (0, 1, 5, 50, 400, 1_500, 2_900):
        allowed = np.sort(rng.choice(COUNT + 100, size, replace=False))
        held = {row: vectors[row] for row in allowed.tolist() if row < COUNT and row % 7}
        for k in (1, 10, 200):
            found = index.search(clustered(1, DIM, size + k)[0], k, allowed)
            assert {row for row, _ in found} <= held.keys()
            assert len(found) == min(k, len(held))


def test_rows_far_from_the_question_are_found_when_only_they_may_be_seen() -> None:
    index, vectors = filled(exact_below=50)
    query = vectors[0]
    scores = cosines(vectors, query)
    allowed = np.sort(np.argsort(scores)[: COUNT // 4])
    held = {row: vectors[row] for row in allowed.tolist()}
    assert index.search(query, 10, allowed) == brute(held, query, 10)


def test_a_search_goes_deeper_while_a_better_row_may_have_been_left_out() -> None:
    """One part of the graph has enough rows to show at once; the better ones hide in the other."""
    crowd, others = clustered(4_000, DIM, 1, centres=1), clustered(4_000, DIM, 2)
    crowd, others = crowd[_part_of(crowd) == 1][:1_000], others[_part_of(others) == 0][:1_000]
    index, vectors = Nearest(DIM, exact_below=20), np.concatenate([crowd, others])
    index.build(np.arange(2_000), vectors)
    query = crowd[0]
    scores = cosines(vectors, query)
    allowed = np.sort(np.argsort(-scores)[40:])
    held = {row: vectors[row] for row in allowed.tolist()}
    assert index.search(query, 10, allowed) == brute(held, query, 10)


def test_few_allowed_rows_are_searched_exactly() -> None:
    index, vectors = filled(exact_below=100)
    allowed = np.arange(0, COUNT, 40)
    held = {row: vectors[row] for row in allowed.tolist()}
    for query in clustered(20, DIM, 2):
        assert index.search(query, 10, allowed) == brute(held, query, 10)


@pytest.mark.parametrize("exact_below", [0, 100, 10_000])
def test_more_results_than_rows_are_all_rows(exact_below: int) -> None:
    index, _ = filled(exact_below, count=700)
    found = index.search(clustered(1, DIM, 2)[0], 5_000)
    assert sorted(row for row, _ in found) == list(range(700))
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


@pytest.mark.parametrize("exact_below", [0, 100, 10_000])
def test_equal_vectors_come_in_the_order_of_their_rows(exact_below: int) -> None:
    index, vectors = filled(exact_below, count=600)
    same = np.repeat(vectors[:1], 400, axis=0)
    index.put(np.arange(2_000, 2_400)[::-1].copy(), same)
    expected = [0, *range(2_000, 2_400)]
    assert [row for row, _ in index.search(vectors[0], 401)] == expected
    index.remove(numbers(0, 2_000, 2_399))
    assert [row for row, _ in index.search(vectors[0], 398)] == list(range(2_001, 2_399))
    index.rebuild()
    assert [row for row, _ in index.search(vectors[0], 398)] == list(range(2_001, 2_399))


def test_many_rows_with_few_different_vectors_are_found() -> None:
    """A graph of equal entries falls apart; equal vectors must share one."""
    vectors = np.repeat(clustered(150, DIM, 1), 20, axis=0)
    index = Nearest(DIM, exact_below=100)
    index.build(np.arange(len(vectors)), vectors)
    held = dict(enumerate(vectors))
    for query in clustered(50, DIM, 2):
        assert index.search(query, 25) == brute(held, query, 25)


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 16, 31, 32, 33, 100, 256, 384])
def test_equal_vectors_have_equal_cosines_wherever_they_lie(dim: int) -> None:
    vector, query = clustered(2, dim, 1)
    block = np.repeat(vector[None], 1_000, axis=0)
    assert len(set(cosines(block, query).tolist())) == 1
    assert cosines(block[3:4], query)[0] == cosines(block, query)[0]
    true = float(vector.astype(np.float64) @ query.astype(np.float64))
    assert cosines(block, query)[0] == pytest.approx(true, abs=1e-6)


@pytest.mark.parametrize("exact_below", [0, 10, 1_000])
def test_zero_vectors_are_kept_but_never_found(exact_below: int) -> None:
    index, vectors = filled(exact_below, count=200)
    index.put(np.arange(100, 300), np.zeros((200, DIM), np.float32))
    assert len(index) == 300
    assert {row for row, _ in index.search(vectors[150], 300)} == set(range(100))
    index.put(numbers(250), vectors[150:151])
    assert index.search(vectors[150], 1) == brute({250: vectors[150]}, vectors[150], 1)
    index.remove(np.arange(100, 300))
    assert len(index) == 100
    assert index.search(np.zeros(DIM, np.float32), 5) == []


def test_an_empty_index_finds_nothing() -> None:
    for exact_below in (0, 10):
        index = Nearest(DIM, exact_below=exact_below)
        query = clustered(1, DIM, 1)[0]
        assert index.search(query, 3) == []
        assert index.search(query, 3, numbers(1, 2)) == []
        index.put(np.arange(20), clustered(20, DIM, 1))
        index.remove(np.arange(20))
        assert len(index) == 0
        assert index.search(query, 3) == []


def test_vectors_of_any_length_are_compared_by_direction() -> None:
    vectors = clustered(50, DIM, 1)
    index = Nearest(DIM)
    scales = np.float32(10) ** np.arange(-25, 25, dtype=np.float32)
    index.put(np.arange(50), vectors * scales[:, None])
    for row, score in index.search(vectors[7] * np.float32(1e30), 50):
        assert score == pytest.approx(float(vectors[row] @ vectors[7]), abs=1e-5)
        assert score <= 1


@pytest.mark.parametrize("dim", [16, 256])
def test_no_cosine_is_above_one(dim: int) -> None:
    vectors = clustered(300, dim, 1)
    assert np.einsum("ij,ij->i", vectors, vectors).max() > 1, "rounding alone would pass it"
    index = Nearest(dim)
    index.put(np.arange(300), vectors)
    assert max(index.search(vector, 1)[0][1] for vector in vectors) == 1


def test_of_one_row_given_twice_the_last_counts() -> None:
    vectors = clustered(3, DIM, 1)
    index = Nearest(DIM)
    index.put(numbers(4, 5, 4), vectors)
    assert len(index) == 2
    assert index.search(vectors[2], 1)[0][0] == 4
    assert index.search(vectors[0], 1)[0][1] < 0.999


def test_the_same_calls_give_the_same_answers() -> None:
    asked = clustered(50, DIM, 2)
    answers = []
    for _ in range(2):
        index, _ = filled(exact_below=100)
        index.put(np.arange(0, COUNT, 3), clustered(COUNT // 3, DIM, 8))
        index.remove(np.arange(0, COUNT, 5))
        answers.append([index.search(query, 10) for query in asked])
    assert answers[0] == answers[1]


def test_the_number_of_threads_that_build_changes_no_answer() -> None:
    vectors, asked = clustered(COUNT, DIM, 1), clustered(50, DIM, 2)
    answers = []
    for threads in (1, 2, 8, None):
        index = Nearest(DIM, exact_below=100)
        index.build(np.arange(COUNT), vectors, threads)
        answers.append([index.search(query, 10) for query in asked])
    assert all(each == answers[0] for each in answers)


def test_building_replaces_what_was_there() -> None:
    index, vectors = filled(exact_below=100)
    index.put(numbers(9_999), np.zeros((1, DIM), np.float32))
    index.build(np.arange(10_000, 10_300), vectors[:300])
    assert len(index) == 300
    assert index.search(vectors[5], 1)[0][0] == 10_005
    assert min(row for row, _ in index.search(vectors[5], 300)) == 10_000


def test_replacing_for_ever_does_not_grow_the_index_for_ever() -> None:
    index, _ = filled(exact_below=50, count=400)
    other = clustered(400, DIM, 3)
    for _ in range(12):
        index.put(np.arange(400), other)
    assert index._slots.used <= 2 * 400 + 1_024
    for _ in range(5):
        index.put(np.arange(1_000, 3_000), clustered(2_000, DIM, 4))
        index.remove(np.arange(1_000, 3_000))
    assert index._slots.used <= 2 * 400 + 1_024
    assert index.search(other[7], 1)[0][0] == 7


def test_an_index_that_has_become_small_is_exact_again() -> None:
    index, vectors = filled(exact_below=500)
    assert index._graph is not None
    index.remove(np.arange(200, COUNT))
    assert index._graph is None
    held = dict(enumerate(vectors[:200]))
    for query in clustered(20, DIM, 2):
        assert index.search(query, 10) == brute(held, query, 10)


def test_the_best_scores_and_all_their_equals_are_picked() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 10, 63, 64, 65, 1_000, 5_000):
        scores = rng.integers(-20, 20, size).astype(np.float32)
        for k in (1, 3, 10, 100):
            last = np.sort(scores)[::-1][min(k, size) - 1]
            assert set(np.flatnonzero(scores >= last)) <= set(best(scores, k).tolist())


GOOD = np.ones((1, DIM), np.float32)
NOT_FINITE = np.array([[np.nan] * DIM], np.float32)


@pytest.mark.parametrize(
    ("rows", "vectors"),
    [
        (numbers(1), np.ones((1, DIM + 1), np.float32)),
        (numbers(1), np.ones((2, DIM), np.float32)),
        (numbers(1), np.ones(DIM, np.float32)),
        (numbers(1), np.ones((1, DIM), np.float64)),
        (numbers(1), np.ones((1, DIM), np.int32)),
        (numbers(1), [[1.0] * DIM]),
        (numbers(1), NOT_FINITE),
        (numbers(1), np.full((1, DIM), np.inf, np.float32)),
        (np.array([1], np.int32), GOOD),
        (np.array([1.0]), GOOD),
        ([1], GOOD),
        (np.array([[1]], np.int64), GOOD),
        (numbers(-1), GOOD),
        (numbers(ROWS_MAX + 1), GOOD),
    ],
)
def test_rows_and_vectors_of_the_wrong_kind_are_refused_and_change_nothing(
    rows: Any, vectors: Any
) -> None:
    index, _ = filled(exact_below=10, count=30)
    before = index.search(clustered(1, DIM, 2)[0], 30)
    for call in (index.put, index.build):
        with pytest.raises(InvalidInputError):
            call(rows, vectors)
    assert index.search(clustered(1, DIM, 2)[0], 30) == before


@pytest.mark.parametrize(
    ("query", "k", "allowed"),
    [
        (np.ones(DIM + 1, np.float32), 1, None),
        (np.ones((1, DIM), np.float32), 1, None),
        (np.ones(DIM, np.float64), 1, None),
        ([1.0] * DIM, 1, None),
        (NOT_FINITE[0], 1, None),
        (GOOD[0], 0, None),
        (GOOD[0], -1, None),
        (GOOD[0], 1, [1, 2]),
        (GOOD[0], 1, np.array([1, 2], np.int32)),
        (GOOD[0], 1, numbers(2, 1)),
        (GOOD[0], 1, numbers(2, 2)),
    ],
)
def test_questions_of_the_wrong_kind_are_refused(query: Any, k: int, allowed: Any) -> None:
    index, _ = filled(exact_below=10, count=30)
    with pytest.raises(InvalidInputError):
        index.search(query, k, allowed)


def test_an_unsorted_filter_never_shows_a_row_that_is_not_in_it() -> None:
    index, vectors = filled(exact_below=50)
    allowed = np.random.default_rng(1).permutation(COUNT)[: COUNT // 2]
    permitted = set(allowed.tolist())
    for query in vectors[:50]:
        try:
            found = index.search(query, 10, allowed)
        except InvalidInputError:
            continue
        assert {row for row, _ in found} <= permitted


@pytest.mark.parametrize(("dim", "exact_below"), [(0, 10), (-1, 10), (100_000, 10), (4, -1)])
def test_an_index_that_cannot_be_is_refused(dim: int, exact_below: int) -> None:
    with pytest.raises(InvalidInputError):
        Nearest(dim, exact_below=exact_below)


def test_removing_needs_an_array_of_rows() -> None:
    index, _ = filled(exact_below=10, count=30)
    with pytest.raises(InvalidInputError):
        index.remove([1, 2])  # type: ignore[arg-type]


def test_the_graph_library_is_imported_when_a_graph_is_needed() -> None:
    program = (
        "import sys, numpy as np\n"
        "from worlddb.index.nearest import Nearest\n"
        "index = Nearest(4, exact_below=5)\n"
        "index.put(np.arange(5), np.eye(5, 4, dtype=np.float32))\n"
        "index.search(np.ones(4, np.float32), 2)\n"
        "assert 'voyager' not in sys.modules\n"
        "index.put(np.arange(5, 30), np.ones((25, 4), np.float32))\n"
        "assert 'voyager' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("first", ["onnxruntime", "worlddb.index.nearest"])
def test_graph_and_model_runtime_live_in_one_process(first: str) -> None:
    """Some graph libraries crash beside onnxruntime, by the order of the imports."""
    pytest.importorskip("onnxruntime")
    program = (
        f"import {first}, numpy as np\n"
        "from worlddb.index.nearest import Nearest\n"
        "index = Nearest(16, exact_below=10)\n"
        "index.build(np.arange(500), np.random.default_rng(1).random((500, 16), np.float32))\n"
        "import onnxruntime\n"
        "onnxruntime.SessionOptions()\n"
        "assert len(index.search(np.ones(16, np.float32), 5)) == 5\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_more_vectors_are_searched_exactly_when_they_are_long() -> None:
    assert Nearest(16)._exact_below < Nearest(256)._exact_below
