"""Recall: three lanes, how they are fused, how much is returned, and what comes with a hit."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recall.search_stage import (
    LANES,
    delete,
    edge,
    fact,
    facts,
    found,
    hit_of,
    hold_at_most,
    lanes,
    open_store,
)
from worlddb import AsOf, Id, Recall, RecallSettings, Weights, WorldDB

WORDS = ("apple", "pear", "plum", "iron", "tin", "red", "green", "old", "new", "ripe")


@pytest.fixture(params=[1 << 20, 0], ids=["held", "wide"])
def db(request: pytest.FixtureRequest) -> Iterator[WorldDB]:
    """Yield a store whose worlds are all held in memory, and then one where none is."""
    with open_store() as db:
        yield hold_at_most(db, request.param)


def day(number: int) -> datetime:
    return datetime(2024, 1, number, tzinfo=UTC)


def fill(db: WorldDB, seed: int = 1, count: int = 60) -> list[Id]:
    """Write random facts about Ada and Bob."""
    rng = random.Random(seed)
    with db.transaction() as tx:
        people = [tx.create_node(type="Entity", name=name).id for name in ("Ada", "Bob")]
        ids = []
        for _ in range(count):
            words = rng.choices(WORDS, k=rng.randint(1, 9))
            ids.append(tx.create_node(type="Fact", content=" ".join(words)).id)
            if rng.random() < 0.4:
                tx.write_edge("refers_to", ids[-1], rng.choice(people))
    return ids


# -- lanes and their fusion ------------------------------------------------------------------------


def test_each_lane_numbers_its_own_list_from_its_best_on(db: WorldDB) -> None:
    ids = fill(db)
    answer = db.recall("Did Ada have a ripe pear?", k=len(ids))
    assert set(found(answer)) <= set(ids)
    for lane in LANES:
        listed = sorted(
            (hit for hit in answer if lane in hit.lanes), key=lambda h: h.lanes[lane].rank
        )
        assert [hit.lanes[lane].rank for hit in listed] == list(range(1, len(listed) + 1))
        keys = [(-hit.lanes[lane].score, hit.node.id) for hit in listed]
        assert keys == sorted(keys)
        assert all(hit.lanes[lane].score > 0 for hit in listed)
        assert listed


@pytest.mark.parametrize("weighing", [None, Weights()])
@pytest.mark.parametrize(
    ("c", "depth", "weights"),
    [
        (60, 100, {"text": 1.0, "vector": 1.0, "graph": 1.0}),
        (0, 7, {"text": 2.0, "vector": 0.25, "graph": 1}),
        (1, 1, {"text": 1.0, "vector": 0.0}),
        (1000, 3, {"graph": 5.0, "text": 0.5}),
    ],
)
def test_fused_is_the_sum_of_weight_by_rank_over_the_lanes(
    db: WorldDB, c: int, depth: int, weights: dict[str, float], weighing: Weights | None
) -> None:
    ids = fill(db)
    settings = RecallSettings(c=c, depth=depth, weights=weights, weighing=weighing)
    answer = db.recall("Did Ada have a ripe pear?", k=len(ids), settings=settings)
    assert len(answer) > 0
    for hit in answer:
        assert hit.lanes.keys() <= {lane for lane, weight in weights.items() if weight}
        assert all(rank.rank <= depth for rank in hit.lanes.values())
        expected = sum(weights[lane] / (c + rank.rank) for lane, rank in hit.lanes.items())
        assert hit.fused == pytest.approx(expected, rel=1e-12)
    counts = [sum(lane in hit.lanes for hit in answer) for lane in weights]
    assert all(count <= depth for count in counts)


def test_without_weighing_hits_are_ordered_by_fused_rank_and_then_by_id(db: WorldDB) -> None:
    ids = fill(db)
    answer = db.recall("Did Ada have a ripe pear?", k=len(ids), settings=lanes(*LANES))
    assert [hit.score for hit in answer] == [hit.fused for hit in answer]
    keys = [(-hit.score, hit.node.id) for hit in answer]
    assert keys == sorted(keys)
    same = facts(db, ["a quince"] * 9)
    for words in ("quince", "a quince"):
        assert found(db.recall(words, settings=lanes("text"), k=99)) == sorted(same)


def test_weighed_hits_are_ordered_by_score_and_then_by_id(db: WorldDB) -> None:
    ids = fill(db) + facts(db, ["a ripe pear"] * 4)
    settings = RecallSettings(recency=False)
    answer = db.recall("Did Ada have a ripe pear?", k=len(ids), settings=settings)
    keys = [(-round(hit.score, 9), hit.node.id) for hit in answer]
    assert keys == sorted(keys)


@pytest.mark.parametrize("lane", LANES)
def test_a_lane_alone_finds_what_the_lane_found_among_others(db: WorldDB, lane: str) -> None:
    ids = fill(db)
    question = "Did Ada have a ripe pear?"
    among = db.recall(question, k=len(ids), settings=lanes(*LANES))
    alone = db.recall(question, k=len(ids), settings=lanes(lane))
    expected = {hit.node.id: hit.lanes[lane] for hit in among if lane in hit.lanes}
    assert {hit.node.id: hit.lanes[lane] for hit in alone} == expected
    assert [hit.lanes[lane].rank for hit in alone] == list(range(1, len(expected) + 1))


def test_a_lane_of_no_weight_does_not_run(db: WorldDB) -> None:
    fill(db)
    for weighing in (None, Weights()):
        settings = RecallSettings(weights=dict.fromkeys(LANES, 0.0), weighing=weighing)
        assert db.recall("apple", settings=settings) == Recall(question="apple")


def test_without_an_embedder_words_and_names_find_all_the_same() -> None:
    with open_store(embedder="none") as db:
        ids = fill(db)
        answer = db.recall("Did Ada have a ripe pear?", k=len(ids))
        assert {lane for hit in answer for lane in hit.lanes} == {"text", "graph"}
        for weighing in (None, Weights()):
            settings = RecallSettings(weights={"vector": 1.0}, weighing=weighing)
            assert len(db.recall("apple", settings=settings)) == 0


def test_without_explanation_hits_are_the_same_and_say_nothing_of_lanes(db: WorldDB) -> None:
    fill(db)
    full, short = db.recall("ripe pear"), db.recall("ripe pear", explain=False)
    assert found(full) == found(short)
    assert [hit.score for hit in full] == [hit.score for hit in short]
    assert [hit.fused for hit in full] == [hit.fused for hit in short]
    assert all(hit.lanes == {} for hit in short)


# -- how much --------------------------------------------------------------------------------------


def test_k_takes_the_first_of_the_whole_answer(db: WorldDB) -> None:
    ids = fill(db)
    for settings in (RecallSettings(depth=10_000), lanes(*LANES, depth=10_000)):
        whole = db.recall("Did Ada have a ripe pear?", k=len(ids), settings=settings)
        for k in (1, 2, 7, 30):
            answer = db.recall("Did Ada have a ripe pear?", k=k, settings=settings)
            assert answer.hits == whole.hits[:k]


@pytest.mark.parametrize("settings", [RecallSettings(), lanes(*LANES)], ids=["weighed", "plain"])
def test_a_budget_of_tokens_is_never_exceeded_and_skips_what_is_too_long(
    db: WorldDB, settings: RecallSettings
) -> None:
    rng = random.Random(1)
    facts(db, ["pear " * rng.randint(1, 60) for _ in range(40)], name="about fruit")
    whole = db.recall("pear", k=100, settings=settings)
    assert all(hit.tokens == 3 + -(-len(hit.node.content) // 4) for hit in whole)
    for k in (3, 100):
        for budget in (1, 4, 5, 20, 77, 150, 10_000):
            expected: list[Id] = []
            left = budget
            for hit in whole:
                if hit.tokens <= left and len(expected) < k:
                    expected.append(hit.node.id)
                    left -= hit.tokens
            answer = db.recall("pear", k=k, max_tokens=budget, settings=settings)
            assert found(answer) == expected
            assert sum(hit.tokens for hit in answer) <= budget


# -- what comes with a hit -------------------------------------------------------------------------


def test_an_open_conflict_comes_with_both_sides(db: WorldDB) -> None:
    one, other = facts(db, ["the pear is ripe", "the pear is not ripe"])
    conflict = edge(db, "contradicts", one, other, metadata={"reason": "both cannot be"})
    opened = db.log()[-1].time
    answer = db.recall("pear")
    for side in (one, other):
        (known,) = hit_of(answer, side).conflicts
        assert (known.edge, known.left, known.right) == (conflict, one, other)
        assert (known.reason, known.settled) == ("both cannot be", False)
    assert answer.conflicts == (known,)
    assert f"(contradicted by {other.short})" in hit_of(answer, one).text
    only = db.recall("not ripe", k=1, settings=lanes("text"))
    assert found(only) == [other]
    assert only.conflicts == (known,)
    delete(db, conflict)
    assert db.recall("pear").conflicts == ()
    assert db.recall("pear", as_of=AsOf(known=opened)).conflicts == (known,)


def test_a_conflict_with_what_cannot_be_seen_is_not_told(db: WorldDB) -> None:
    mine, yours = (fact(db, "", type="Scope", name=name) for name in ("mine", "yours"))
    one = fact(db, "the pear is ripe", parent=mine)
    other = fact(db, "the pear is not ripe", parent=yours)
    edge(db, "contradicts", one, other)
    assert db.recall("pear", scope=mine).conflicts == ()
    assert db.recall("pear", scope=yours).conflicts == ()
    assert len(db.recall("pear", scope=[mine, yours]).conflicts) == 1
    assert len(db.recall("pear").conflicts) == 1


def test_a_hit_brings_its_node_with_validity_names_and_provenance(db: WorldDB) -> None:
    with db.transaction() as tx:
        made = tx.create_node(
            type="Memory",
            name="Pear",
            content="a ripe pear",
            source=["chat 7", "chat 9"],
            aliases=["that fruit"],
            valid_from=day(1),
            valid_to="2999-01-01T00:00:00+00:00",
        )
    (hit,) = db.recall("pear")
    assert hit.node == made == db.get(made.id)
    assert hit.node.provenance == hit.provenance == ("chat 7", "chat 9")
    assert (hit.valid_from, hit.valid_to) == (hit.node.valid_from, hit.node.valid_to)
    assert hit.node.valid_from == day(1)
    assert hit.text == f"[2024-01-01 to 2999-01-01] Memory {made.id.short} Pear: a ripe pear"


def test_an_answer_is_a_sequence_of_hits_and_survives_json(db: WorldDB) -> None:
    one, other = facts(db, ["a ripe pear of Ada's", "a pear"])
    edge(db, "contradicts", one, other)
    answer = db.recall("ripe pear")
    assert len(answer) == 2
    assert list(answer) == [answer[0], answer[1]]
    assert answer.nodes == tuple(hit.node for hit in answer)
    plain = answer.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["question"] == "ripe pear"
    first = plain["hits"][0]
    assert first["node"]["content"] == "a ripe pear of Ada's"
    assert first["lanes"]["text"] == {"rank": 1, "score": answer[0].lanes["text"].score}
    assert first["conflicts"][0]["left"] == str(one)
    assert answer.to_text().splitlines() == [hit.text for hit in answer]
    assert "ripe" in answer.snippet(answer[0]).text


# -- the same question, the same answer ------------------------------------------------------------


@pytest.mark.parametrize("embedder", ["hash", None], ids=["hash", "default"])
def test_the_same_question_has_the_same_answer_everywhere(
    tmp_path: Path, embedder: str | None
) -> None:
    path = tmp_path / "store.db"
    questions = ("Did Ada have a ripe pear?", "iron", "old and new", "Bob's plum last week")
    at = datetime(2026, 5, 1, tzinfo=UTC)
    with open_store(path, embedder=embedder) as db:
        fill(db)
        first = [db.recall(question, at=at) for question in questions]
        assert [db.recall(question, at=at) for question in reversed(questions)] == first[::-1]
        others: list[Recall] = []
        thread = threading.Thread(
            target=lambda: others.extend(db.recall(question, at=at) for question in questions)
        )
        thread.start()
        thread.join()
        assert others == first
    with open_store(path, embedder=embedder) as db:
        assert [db.recall(question, at=at) for question in questions] == first
    with open_store(path, embedder=embedder, read_only=True) as db:
        assert [db.recall(question, at=at) for question in questions] == first
    assert all(map(len, first))
