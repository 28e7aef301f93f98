"""Vector queries: the nearest in order, the plan of every start, and answers in other shapes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import worlddb
from recall.search_stage import edge, fact, facts, found, hold_at_most, open_store
from worlddb import InvalidInputError, NotFoundError, QuerySpec, Subgraph, WorldDB

DIM = 64
TEXTS = ("red apples", "green apples", "red roses", "old iron", "new iron tools")


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def vector_of(db: WorldDB, text: str) -> list[float]:
    """Return a text's vector, as a caller who embeds by himself has it."""
    vector: list[float] = db.engine.search.vectors().ask(text).tolist()
    return vector


# -- nearest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
def test_a_vector_finds_everything_nearest_first(db: WorldDB, most: int) -> None:
    hold_at_most(db, most)
    ids = dict(zip(facts(db, TEXTS), TEXTS, strict=True))
    for asked in (*TEXTS, "apples", "tools of iron"):
        vector = np.array(vector_of(db, asked))
        near = {ident: float(vector @ vector_of(db, text)) for ident, text in ids.items()}
        answer = found(db.query().vector(vector.tolist()).execute())
        assert answer == sorted(ids, key=lambda ident: -near[ident])
        assert len(set(near.values())) == len(near)
        assert found(db.query().vector(vector.tolist()).limit(2).execute()) == answer[:2]


def test_only_the_direction_of_a_vector_counts(db: WorldDB) -> None:
    facts(db, TEXTS)
    vector: Any = np.array(vector_of(db, "apples"))
    expected = found(db.query().vector(vector).execute())
    for factor in (2, 1e-3, 1e30, 1e-30, 1e300, 1e-300, np.float32(7)):
        assert found(db.query().vector(vector * factor).execute()) == expected
    backwards = found(db.query().vector(-vector).execute())
    assert backwards == expected[::-1]


@pytest.mark.parametrize(
    "given",
    [np.array, np.float32, np.float16, list, tuple, iter, lambda vector: map(float, vector)],
)
def test_a_vector_may_be_any_row_of_numbers(db: WorldDB, given: Any) -> None:
    facts(db, TEXTS)
    vector = vector_of(db, "apples")
    expected = found(db.query().vector(vector).execute())
    assert found(db.query().vector(given(vector)).execute()) == expected


def test_whole_numbers_are_numbers(db: WorldDB) -> None:
    facts(db, TEXTS)
    assert db.query().vector([1] * DIM).execute() == db.query().vector([1.0] * DIM).execute()


def test_a_node_that_says_nothing_has_no_direction(db: WorldDB) -> None:
    some = facts(db, ["apples", ""])
    assert found(db.query().vector([1.0] * DIM).execute()) == some[:1]


def test_an_empty_store_has_no_neighbours(db: WorldDB) -> None:
    assert db.query().vector([1.0] * DIM).execute() == Subgraph()


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "vector",
    [
        [],
        [0.0] * DIM,
        [0] * DIM,
        [math.nan] * DIM,
        [1.0] * (DIM - 1) + [math.inf],
        [10**400] * DIM,
        "1.0",
        b"1234",
        ["1.0"] * DIM,
        [True] * DIM,
        [None] * DIM,
        [1j] * DIM,
        [[1.0]] * DIM,
        [[1.0] * DIM],
        np.ones((DIM, 1)),
        np.ones((1, DIM)),
        np.array(["a"] * DIM),
        dict.fromkeys(range(DIM), 1.0),
        set(range(DIM)),
        3.5,
        None,
        object(),
    ],
)
def test_what_is_no_vector_is_refused_at_once(db: WorldDB, vector: Any) -> None:
    with pytest.raises(InvalidInputError, match="vector"):
        db.query().vector(vector)


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
@pytest.mark.parametrize("dim", [1, DIM - 1, DIM + 1, 10_000])
def test_a_vector_of_another_length_is_refused_when_asked(db: WorldDB, dim: int, most: int) -> None:
    hold_at_most(db, most)
    facts(db, TEXTS)
    asked = db.query().vector([1.0] * dim)
    with pytest.raises(InvalidInputError, match=r"hash-64 and have 64 numbers"):
        asked.execute()
    assert db.query().text("apples").vector([1.0] * dim).execute().nodes


def test_a_store_without_an_embedder_says_so() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        fact(db, "apples")
        with pytest.raises(InvalidInputError, match="embedder"):
            db.query().vector([1.0] * DIM).execute()
        assert len(db.query().text("apples").vector([1.0] * DIM).execute()) == 1


# -- where to start, and how that is told ----------------------------------------------------------


@pytest.fixture
def starts(db: WorldDB) -> dict[str, Any]:
    """Three ways to start, each of which finds another node first."""
    apple, rose, iron = facts(db, ["red apples", "red roses", "old iron"])
    vector = vector_of(db, "old iron")
    return {"seeds": [str(apple)], "text": "roses", "vector": vector, "ids": [apple, rose, iron]}


def test_seeds_come_before_text_and_text_before_a_vector(
    db: WorldDB, starts: dict[str, Any]
) -> None:
    apple, rose, iron = starts["ids"]
    spec = {key: starts[key] for key in ("seeds", "text", "vector")}
    for given, expected in (
        (spec, apple),
        ({"text": spec["text"], "vector": spec["vector"]}, rose),
        ({"vector": spec["vector"]}, iron),
        ({"seeds": [], "vector": spec["vector"]}, iron),
    ):
        plain = json.loads(json.dumps(QuerySpec(**given, limit=1).to_dict()))
        assert QuerySpec.from_dict(plain).to_dict() == plain
        assert found(db.run(QuerySpec.from_dict(plain))) == [expected]
    built = db.query().vector(spec["vector"]).text("roses").limit(1)
    assert found(built.execute()) == [rose]
    assert found(built.seeds(spec["seeds"]).execute()) == [apple]


@pytest.mark.parametrize("vector", [[1.0], "apples", {"a": 1}, [[1.0]], [None]])
def test_a_spec_with_a_wrong_vector_is_refused(db: WorldDB, vector: Any) -> None:
    with pytest.raises(InvalidInputError, match="vector"):
        db.run(QuerySpec.from_dict({"vector": vector}))


@pytest.mark.parametrize(
    ("start", "told", "index"),
    [
        ("seeds", "2 seeds", "id"),
        ("text", "the words 'roses'", "words held in memory"),
        ("vector", "a vector of 64 numbers", "vectors held in memory"),
        ("nothing", "everything that can be seen", "containment"),
    ],
)
def test_the_plan_says_where_a_query_starts(
    db: WorldDB, starts: dict[str, Any], start: str, told: str, index: str
) -> None:
    asked = {
        "seeds": db.query().vector(starts["vector"]).text("roses").seeds(starts["ids"][:2]),
        "text": db.query().vector(starts["vector"]).text("roses"),
        "vector": db.query().vector(starts["vector"]),
        "nothing": db.query(),
    }[start]
    plan = asked.explain()
    assert (plan.start, plan.index) == (told, index)
    assert str(plan).startswith(f"start: {told}, by {index}, inside the whole store\n")
    if start in ("text", "vector"):
        hold_at_most(db, 0)
        through = {"text": "the store's full-text index", "vector": "the store's vector index"}
        assert asked.explain().index == through[start]


def test_the_plan_says_every_step_and_rule(db: WorldDB, starts: dict[str, Any]) -> None:
    world = fact(db, "", type="Scope", name="world")
    other, known = starts["ids"][0], db.log()[-1].time
    asked = (
        db.query()
        .vector(starts["vector"])
        .in_world(world)
        .as_of(valid="2030-01-01T00:00:00+00:00", known=known)
        .include_superseded()
        .traverse(["refers_to", "implies"], "both", hops=3)
        .filter_type("Fact", "Topic")
        .filter_time("2020-01-01T00:00:00+00:00", None)
        .where_connected("causes", "in", other)
        .where(status="open")
        .limit(9)
        .in_world(other)
        .as_of()
        .include_superseded(False)
        .prefer_summaries()
        .limit(7)
    )
    plan = asked.explain()
    assert plan.steps == (
        "traverse refers_to, implies both, up to 3 hops",
        "keep Fact, Topic",
        "keep what is valid in [2020-01-01T00:00:00+00:00, …)",
        f"keep what is connected by causes in with {other.short}",
        "keep where status is 'open'",
        "keep the first 9",
        f"look inside world {other.short} from here on",
        "look at what was true at now, known at now, from here on",
        "hide what has ended from here on",
        "put summaries in place of their details",
    )
    text = str(plan)
    for line in (
        f"inside world {world.short}",
        "as of: what was true at 2030-01-01T00:00:00+00:00",
        f"as of: what was known after commit {len(db.log()) - 1}",
        "rule:  what has ended is shown, too",
        "rule:  these lead out of the world: refers_to",
        "rule:  a type includes its subtypes and instances",
        "limit: 7",
    ):
        assert line in text
    plain = json.loads(json.dumps(plan.to_dict()))
    assert plain["world"] == str(world)
    assert plain["valid"] == "2030-01-01T00:00:00+00:00"
    assert plain["limit"] == 7
    assert plain["steps"] == list(plan.steps)


def test_a_plan_inside_what_does_not_exist_is_refused(db: WorldDB) -> None:
    for nowhere in (bytes(32), "00" * 32):
        with pytest.raises(NotFoundError):
            db.query().in_world(nowhere).text("apples").explain()


# -- with ops, in worlds ---------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
def test_a_vector_starts_inside_its_world_and_its_steps_go_on(db: WorldDB, most: int) -> None:
    hold_at_most(db, most)
    world = fact(db, "", type="Scope", name="world")
    inner = fact(db, "red apples", parent=world)
    second = fact(db, "old iron", type="Note", parent=world)
    outer = facts(db, ["red apples", "red apples"])
    edge(db, "refers_to", inner, outer[0])
    edge(db, "implies", inner, outer[1])
    near = db.query().vector(vector_of(db, "red apples"))
    inside = near.in_world(world)
    assert found(inside.execute()) == [inner, second]
    assert found(inside.limit(1).execute()) == [inner]
    assert found(inside.filter_type("Note").execute()) == [second]
    assert found(inside.traverse("refers_to").execute()) == [outer[0]]
    assert found(inside.traverse("implies").execute()) == []
    assert found(inside.where_connected("refers_to", "out", outer[0]).execute()) == [inner]
    assert found(near.limit(3).filter_type("Note").execute()) == []  # The best three are facts.
    assert found(near.filter_type("Note").limit(3).execute()) == [second]


@pytest.mark.parametrize("most", [1 << 20, 0], ids=["held", "wide"])
def test_filters_leave_the_best_first(db: WorldDB, most: int) -> None:
    hold_at_most(db, most)
    ids = facts(db, [f"{'apples ' * number} and iron" for number in range(9)])
    for asked in (db.query().vector(vector_of(db, "apples")), db.query().text("apples iron")):
        expected = found(asked.execute())
        assert set(expected) == set(ids)
        assert found(asked.filter_type("Fact").execute()) == expected
        assert found(asked.filter_type("Fact").limit(3).execute()) == expected[:3]
        assert found(asked.filter_time("2020-01-01T00:00:00Z").limit(3).execute()) == expected[:3]


# -- other shapes ----------------------------------------------------------------------------------


@pytest.fixture
def answer(db: WorldDB) -> Subgraph:
    """Return an answer with nodes, edges and a conflict."""
    with db.transaction() as tx:
        one = tx.create_node(
            type="Fact",
            name="one",
            content="first\nsecond",
            aliases=["uno"],
            source="a letter",
            valid_from="2024-05-06T07:08:09.000010+00:00",
            valid_to="2999-01-01T00:00:00+00:00",
        ).id
        other = tx.create_node(type="Fact", content="other").id
        tx.write_edge("refers_to", one, other, metadata={"why": ["so"]})
        tx.write_edge("implies", one, other)
        tx.write_edge("contradicts", one, other, metadata={"reason": "both cannot be"})
    return db.query().traverse(["refers_to", "implies", "contradicts"], "both").execute()


def test_a_graph_has_every_node_every_edge_and_all_they_say(answer: Subgraph) -> None:
    graph = answer.to_networkx()
    assert len(answer.nodes) == 2
    assert len(answer.edges) == 3
    assert set(graph.nodes) == {str(node.id) for node in answer.nodes}
    for node in answer.nodes:
        assert dict(graph.nodes[str(node.id)]) == node.to_dict()
    assert graph.number_of_edges() == 3
    for item in answer.edges:
        assert graph.has_edge(str(item.source), str(item.target), key=str(item.id))
        data = graph.get_edge_data(str(item.source), str(item.target), key=str(item.id))
        assert data == item.to_dict()
    assert graph.graph["conflicts"] == [conflict.to_dict() for conflict in answer.conflicts]
    assert len(answer.conflicts) == 1


def test_an_answer_survives_json(answer: Subgraph) -> None:
    plain = answer.to_json()
    assert json.loads(json.dumps(plain)) == plain
    assert set(plain) == {"nodes", "edges", "conflicts", "cut"}
    one = next(node for node in plain["nodes"] if node["name"] == "one")
    assert one["valid_from"] == "2024-05-06T07:08:09.000010+00:00"
    assert one["aliases"] == ["uno"]
    assert one["provenance"] == ["a letter"]
    assert {item["type"] for item in plain["edges"]} == {"refers_to", "implies", "contradicts"}


def test_an_answer_as_text_says_when_what_and_what_speaks_against_it(answer: Subgraph) -> None:
    one = next(node for node in answer if node.name)
    other = next(node for node in answer if not node.name)
    lines = answer.to_text().splitlines()
    assert lines[answer.nodes.index(one)] == (
        f"[2024-05-06 to 2999-01-01] Fact {one.id.short} one: first second "
        f"(contradicted by {other.id.short})"
    )
    assert len(lines) == 2
    assert Subgraph().to_text() == ""


def test_an_empty_list_of_seeds_is_refused_and_never_means_everything() -> None:
    with (
        worlddb.open(":memory:", embedder="hash") as db,
        pytest.raises(InvalidInputError, match="at least one id"),
    ):
        db.query().seeds([])
