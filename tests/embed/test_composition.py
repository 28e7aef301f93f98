"""Compose: a world's vector from running sums, whatever came and went."""

from __future__ import annotations

import numpy as np
import pytest
from bench.world_study import found_first, made_task
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from worlddb import embedder_named
from worlddb.embed.embedder import Pooling
from worlddb.index.composed_worlds import Pool, attention, changed, effective, empty_pool

DIM = 16

Floats = NDArray[np.float32]
NONE = np.zeros((0, DIM), dtype=np.float32)
CHECKS = settings(derandomize=True, deadline=None, database=None, max_examples=60)


def units(rng: np.random.Generator, count: int) -> Floats:
    """Return random directions."""
    vectors = rng.standard_normal((count, DIM))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def pooled(anchor: Floats, children: Floats, pooling: Pooling) -> Pool:
    """Return the pool of children that all came at once."""
    return changed(empty_pool(len(anchor)), anchor, NONE, children, pooling)


@pytest.mark.parametrize("chatter", [60, 200])
def test_a_question_finds_its_world_by_attention_rather_than_by_anything_simpler(
    chatter: int,
) -> None:
    """The content does not tell two worlds of a theme apart; equal weights drown the theme."""
    embedder = embedder_named("wordllama")
    found = [found_first(embedder, made_task(seed, chatter), 1) for seed in range(3)]
    mean = {way: float(np.mean([one[way].mean() for one in found])) for way in found[0]}
    assert mean["attention"] > mean["equal weights"] + 0.04, mean
    assert mean["attention"] > mean["content alone"] + 0.1, mean
    assert mean["attention"] > mean["mean"] + 0.04, mean


def test_weights_differ_at_the_dimensions_of_real_embedders() -> None:
    near, far = np.eye(256, dtype=np.float32)[:2]
    weights = attention(near, np.stack((near, far)), "attention")
    assert weights[0] / weights[1] > 1_000
    assert np.isfinite(attention(near, np.stack((near,)), "attention")).all()


def test_attention_leans_to_the_children_that_are_close_to_the_content() -> None:
    anchor, other = np.eye(DIM, dtype=np.float32)[:2]
    children = np.stack((anchor, other))
    found = effective(anchor, pooled(anchor, children, "attention"), "attention")
    weights = np.exp([np.sqrt(DIM), 0.0])
    expected = anchor + weights @ children / weights.sum()
    assert np.allclose(found, expected / np.linalg.norm(expected), atol=1e-6)


def test_mean_is_the_mean_of_the_content_and_all_children() -> None:
    rng = np.random.default_rng(1)
    anchor, *children = units(rng, 6)
    expected = np.mean([anchor, *children], axis=0)
    found = effective(anchor, pooled(anchor, np.stack(children), "mean"), "mean")
    assert np.allclose(found, expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize("pooling", ["attention", "mean"])
def test_a_world_of_worlds_composed_again_and_again_stays_what_it_is(pooling: Pooling) -> None:
    """The anchor is the content: were it the last answer, worlds would drift to a fixpoint."""
    rng = np.random.default_rng(2)
    contents, leaves = units(rng, 5), units(rng, 40).reshape(5, 8, DIM)
    top = units(rng, 1)[0]

    def compose() -> tuple[Floats, Floats]:
        inner = np.stack(
            [
                effective(content, pooled(content, inside, pooling), pooling)
                for content, inside in zip(contents, leaves, strict=True)
            ]
        )
        return inner, effective(top, pooled(top, inner, pooling), pooling)

    inner, outer = compose()
    pool = pooled(top, inner, pooling)
    for _ in range(100):
        # Every world leaves with the vector it had and comes back with the one it has now.
        again, outer_again = compose()
        pool = changed(pool, top, inner, again, pooling)
        assert np.array_equal(again, inner)
        assert np.array_equal(outer_again, outer)
    assert np.allclose(effective(top, pool, pooling), outer, atol=1e-6)
    drifting = effective(outer, pooled(outer, inner, pooling), pooling)
    assert not np.allclose(drifting, outer, atol=1e-3), "this task would not show a feedback loop"


@pytest.mark.parametrize("pooling", ["attention", "mean"])
@CHECKS
@given(seed=st.integers(0, 10_000), steps=st.lists(st.integers(-5, 9), max_size=30))
def test_the_sums_of_what_came_and_went_are_those_of_what_is_left(
    pooling: Pooling, seed: int, steps: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    anchor = units(rng, 1)[0]
    pool, left = empty_pool(DIM), NONE
    for step in steps:
        new = units(rng, max(step, 0)) if step > 0 else NONE
        gone = min(max(-step, 0), len(left))
        pool = changed(pool, anchor, left[:gone], new, pooling)
        left = np.concatenate((left[gone:], new))
    fresh = pooled(anchor, left, pooling)
    assert pool.children == fresh.children == len(left)
    assert np.allclose(pool.total, fresh.total, atol=1e-9)
    assert np.isclose(pool.weight, fresh.weight, atol=1e-9)
    assert np.allclose(
        effective(anchor, pool, pooling), effective(anchor, fresh, pooling), atol=1e-6
    )


@pytest.mark.parametrize("pooling", ["attention", "mean"])
def test_a_million_children_that_came_and_went_leave_no_trace(pooling: Pooling) -> None:
    rng = np.random.default_rng(3)
    anchor, stays = units(rng, 2)
    before = pooled(anchor, stays[np.newaxis], pooling)
    pool = before
    for _ in range(10):
        many = units(rng, 100_000)
        pool = changed(changed(pool, anchor, NONE, many, pooling), anchor, many, NONE, pooling)
    assert pool.children == 1
    found, expected = effective(anchor, pool, pooling), effective(anchor, before, pooling)
    assert np.allclose(found, expected, atol=1e-6)
    empty = changed(pool, anchor, stays[np.newaxis], NONE, pooling)
    assert empty.children == empty.weight == 0
    assert not empty.total.any()
    assert np.array_equal(effective(anchor, empty, pooling), anchor)


@pytest.mark.parametrize("pooling", ["attention", "mean"])
@pytest.mark.parametrize("count", [1, 2, 20, 1_000])
def test_a_composed_vector_is_of_unit_length_with_any_anchor(pooling: Pooling, count: int) -> None:
    rng = np.random.default_rng(count)
    for anchor in (*units(rng, 3), np.zeros(DIM, dtype=np.float32)):
        found = effective(anchor, pooled(anchor, units(rng, count), pooling), pooling)
        assert found.dtype == np.float32
        assert np.linalg.norm(found) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("pooling", ["attention", "mean"])
def test_a_world_without_content_is_the_direction_of_its_children(pooling: Pooling) -> None:
    children = units(np.random.default_rng(4), 7)
    nothing = np.zeros(DIM, dtype=np.float32)
    found = effective(nothing, pooled(nothing, children, pooling), pooling)
    expected = children.sum(axis=0)
    assert np.allclose(found, expected / np.linalg.norm(expected), atol=1e-6)


@pytest.mark.parametrize("pooling", ["attention", "mean"])
def test_zero_children_move_nothing_and_nothing_at_all_is_zero(pooling: Pooling) -> None:
    anchor = units(np.random.default_rng(5), 1)[0]
    blank = np.zeros((3, DIM), dtype=np.float32)
    assert np.allclose(effective(anchor, pooled(anchor, blank, pooling), pooling), anchor)
    assert not effective(blank[0], pooled(blank[0], blank, pooling), pooling).any()
    assert np.array_equal(effective(anchor, empty_pool(DIM), pooling), anchor)


def test_children_that_cancel_the_content_leave_zero_not_a_rounding_error() -> None:
    for anchor in units(np.random.default_rng(6), 20):
        opposite = np.repeat(-anchor[np.newaxis], 3, axis=0)
        found = effective(anchor, pooled(anchor, opposite, "attention"), "attention")
        assert not found.any()
