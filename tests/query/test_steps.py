"""Steps hold from where they stand; start sets are whole; a query is also data and a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import worlddb
from recall.search_stage import fact, facts, found, hold_at_most, open_store
from worlddb import Id, InvalidInputError, NotFoundError, QuerySpec, WorldDB
from worlddb.query import start_set

HELD, WIDE = 1 << 20, 0


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:", embedder="hash") as db:
        yield db


def year(number: int) -> str:
    return f"{number}-01-01T00:00:00Z"


# -- from where they stand -------------------------------------------------------------------------


@pytest.fixture
def border(db: WorldDB) -> dict[str, Id]:
    """Return a world with one fact, a fact outside, and an entity that both refer to."""
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name="W").id
        inside = tx.create_node(type="Fact", name="inside", parent=world).id
        other = tx.create_node(type="Fact", name="other").id
        entity = tx.create_node(type="Entity", name="E").id
        for one in (inside, other):
            tx.write_edge("refers_to", one, entity)
    return {"world": world, "inside": inside, "other": other, "entity": entity}


def test_a_query_may_enter_a_world_on_its_way(db: WorldDB, border: dict[str, Id]) -> None:
    walk = db.query().seeds(border["entity"]).traverse("refers_to", "in")
    assert walk.execute().ids == {border["inside"], border["other"]}
    assert walk.in_world(border["world"]).execute().ids == {border["inside"]}
    # Before the walk it bounds the start, too, and the entity is not inside.
    start = db.query().seeds(border["entity"]).in_world(border["world"])
    assert not start.traverse("refers_to", "in").execute().nodes
    # What comes after it is looked at from inside the world.
    back = walk.in_world(border["world"]).traverse("refers_to").execute()
    assert back.ids == {border["entity"]}  # refers_to pierces.


def test_two_worlds_before_the_first_walk_both_bound_the_start(
    db: WorldDB, border: dict[str, Id]
) -> None:
    with db.transaction() as tx:
        second = tx.create_node(type="Topic", name="V").id
        tx.write_edge("contains", second, border["inside"])
        tx.write_edge("contains", second, border["other"])
    both = db.query().in_world(second).in_world(border["world"])
    assert both.execute().ids == {border["inside"]}
    assert db.query().in_world(border["world"]).in_world(second).execute().ids == {border["inside"]}


def test_the_handlers_of_a_world_hold_once_it_is_entered(
    db: WorldDB, border: dict[str, Id]
) -> None:
    db.ontology(border["world"]).declare("sees", pierces=True)
    with db.transaction() as tx:
        tx.write_edge("sees", border["inside"], border["other"])
    start = db.query().seeds(border["entity"]).traverse("refers_to", "in").in_world(border["world"])
    assert start.traverse("sees").execute().ids == {border["other"]}


def test_a_time_holds_from_where_it_stands(db: WorldDB) -> None:
    with db.transaction() as tx:
        topic = tx.create_node(type="Topic", name="T", created_at=year(2019)).id
        old = tx.create_node(type="Fact", name="old", created_at=year(2019), valid_to=year(2021)).id
        new = tx.create_node(type="Fact", name="new", created_at=year(2021)).id
        for one in (old, new):
            tx.write_edge("refers_to", one, topic)
    start = db.query().seeds(topic)
    walk = start.traverse("refers_to", "in")
    assert walk.execute().ids == {new}
    assert start.as_of(valid=year(2020)).traverse("refers_to", "in").execute().ids == {old}
    # The only time, at the very end: it holds for the whole query.
    assert walk.as_of(valid=year(2020)).execute().ids == {old}
    # A step after it: the walk before it was made as of now.
    assert walk.as_of(valid=year(2020)).limit(5).execute().ids == set()
    # Back from the past to now: who was there then, and still holds?
    then = start.as_of(valid=year(2020)).traverse("refers_to", "in").as_of()
    assert then.execute().ids == set()
    assert then.include_superseded().execute().ids == {old}
    # A filter before the first walk describes the start set, so the time holds for it.
    assert db.query().filter_type("Fact").as_of(valid=year(2020)).execute().ids == {old}


def test_ended_nodes_are_shown_from_where_that_is_said(db: WorldDB) -> None:
    with db.transaction() as tx:
        a, b, c = (tx.create_node(type="Fact", name=name).id for name in "abc")
        tx.write_edge("refers_to", a, b)
        tx.write_edge("refers_to", b, c)
        tx.retire(b)
    walk = db.query().seeds(a).traverse("refers_to")
    assert walk.execute().ids == set()
    assert walk.include_superseded().execute().ids == set()  # Too late: the walk has ended.
    shown = db.query().seeds(a).include_superseded().traverse("refers_to")
    assert shown.execute().ids == {b}
    assert shown.include_superseded(False).execute().ids == set()
    assert shown.include_superseded(False).traverse("refers_to").execute().ids == {c}


def test_summaries_and_limits_are_steps(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name="W").id
        details = [tx.create_node(type="Fact", content=f"d{n}", parent=world).id for n in range(5)]
    db.consolidate()
    facts_only = db.query().in_world(world).filter_type("Fact")
    (summary,) = facts_only.prefer_summaries().execute().nodes
    assert summary.type == "Summary"
    down = facts_only.prefer_summaries().traverse("derived_from").execute()
    assert down.ids == set(details)
    assert not facts_only.prefer_summaries().filter_type("Fact").execute().nodes
    two = facts_only.limit(2)
    assert [node.id for node in two.execute()] == sorted(details)[:2]
    assert two.prefer_summaries().execute().ids == {summary.id}
    assert facts_only.prefer_summaries().prefer_summaries(False).execute().ids == set(details)


def test_a_summary_that_tells_what_has_ended_stands_for_nothing(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name="W").id
        old, kept = (
            tx.create_node(type="Fact", content=f"the gym {what}", parent=world).id
            for what in ("opens at six", "closes at ten")
        )
    db.consolidate()
    with db.transaction() as tx:
        new = tx.create_node(type="Fact", content="the gym opens at seven", parent=world).id
        tx.write_edge("supersedes", new, old)
    for query in (
        db.query().in_world(world),
        db.query().in_world(world).filter_type("Fact", "Summary"),
        db.query().text("gym").filter_type("Fact", "Summary"),
        db.query().text("gym").filter_type("Summary"),
    ):
        found = query.prefer_summaries().execute()
        assert kept in found.ids
        assert "Summary" not in {node.type for node in found}
    (summary,) = db.query().text("gym").filter_type("Summary").execute().nodes
    then = db.query().seeds([kept]).include_superseded().prefer_summaries().execute()
    assert then.ids == {summary.id}


# -- metadata --------------------------------------------------------------------------------------


def test_where_keeps_nodes_by_their_metadata() -> None:
    with worlddb.Memory(":memory:", embedder="none", user_id="ada") as memory:
        kinds: dict[str, dict[str, Any]] = {
            "open": {"status": "open", "n": 1},
            "shut": {"status": "shut", "tags": ["a", "b"]},
            "true": {"n": True},
        }
        said = {name: memory.write(f"note {name}", metadata=it).id for name, it in kinds.items()}
        notes = memory.db.query().text("note")

        def kept(**where: Any) -> set[str]:
            ids = notes.where(where).execute().ids
            return {name for name, ident in said.items() if ident in ids}

        assert kept(status="open") == {"open"}
        assert kept(status=["open", "shut"]) == {"open", "shut"}
        assert kept(tags="b") == {"shut"}
        assert kept(tags=["c", "b"]) == {"shut"}
        assert kept(n=1) == {"open"}
        assert kept(n=True) == {"true"}
        assert kept(status=None) == {"true"}
        assert kept(status="open", n=2) == set()


@pytest.mark.parametrize("wrong", [None, {}, [], {"a": {"b": 1}}, {"a": [[1]]}, {1: 2}])
def test_a_wrong_condition_is_refused(db: WorldDB, wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match="where"):
        db.query().where(wrong)


# -- whole start sets ------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [HELD, WIDE], ids=["held", "wide"])
def test_a_start_set_loses_nothing_to_later_filters(most: int) -> None:
    db = hold_at_most(open_store(), most)
    facts(db, [f"apple {number}" for number in range(150)])
    text = "after long talks with everybody in the house it was decided to buy the apple"
    decision = fact(db, text, type="Decision")
    vector = [1.0] * 64
    for start in (
        db.query().text("apple"),
        db.query().text("apple house"),
        db.query().text("apple", "all"),
        db.query().text("the apple", "phrase"),
        db.query().vector(vector),
    ):
        assert found(start.filter_type("Decision").execute()) == [decision]
        assert start.execute().cut is None
    assert len(db.query().text("apple").execute()) == 151


@pytest.mark.parametrize("start", ["text", "all", "vector"])
def test_what_is_cut_is_told(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_set, "WIDE_MAX", 20)
    db = hold_at_most(open_store(), WIDE)
    facts(db, [f"apple {number}" for number in range(50)])
    query = {
        "text": db.query().text("apple"),
        "all": db.query().text("apple", "all"),
        "vector": db.query().vector([1.0] * 64),
    }[start]
    answer = query.filter_type("Fact").execute()
    assert answer.cut is not None
    assert "only the 20 nodes" in answer.cut
    assert answer.cut in answer.to_text()
    assert answer.to_dict()["cut"] == answer.cut
    assert "so large a world" in str(query.filter_type("Fact").explain())
    assert query.limit(5).execute().cut is None  # Five were asked for, five are the best.
    assert query.limit(5).explain().cut is None


# -- bounds ----------------------------------------------------------------------------------------


def test_a_bounded_query_never_leaves_its_worlds(db: WorldDB, border: dict[str, Id]) -> None:
    bounded = db.query().within([[border["world"]]])
    assert bounded.execute().ids == {border["inside"]}
    assert bounded.seeds(border["inside"]).traverse("refers_to").execute().ids == set()
    assert bounded.text("other inside").execute().ids == {border["inside"]}
    assert bounded.in_world(border["world"]).execute().ids == {border["inside"]}
    assert bounded.prefer_summaries().execute().ids == {border["inside"]}
    for outside in (border["other"], border["entity"], Id(bytes(32))):
        for query in (
            bounded.seeds([outside]),
            bounded.in_world(outside),
            bounded.traverse("refers_to").in_world(outside),
            bounded.where_connected("refers_to", "out", outside),
        ):
            with pytest.raises(NotFoundError):
                query.execute()
        with pytest.raises(NotFoundError):
            bounded.in_world(outside).explain()


def test_a_prefix_in_a_bounded_query_stands_for_what_is_inside(db: WorldDB) -> None:
    with db.transaction() as tx:
        mine, other = (tx.create_node(type="Scope", name=name).id for name in ("mine", "other"))
        held = [
            tx.create_node(type="Fact", name=f"{number}", parent=home).id
            for number in range(3_000)
            for home in (mine, other)
        ]
    starts: dict[str, list[Id]] = {}
    for ident in held:
        starts.setdefault(str(ident)[:4], []).append(ident)
    inside = db.query().in_world(mine).execute().ids
    bounded = db.query().within([[mine]])
    shared = next(k for k, ids in starts.items() if len(ids) > 1 and len(inside & set(ids)) == 1)
    assert bounded.seeds(shared).execute().ids == inside & set(starts[shared])
    foreign = next(k for k, ids in starts.items() if not inside & set(ids))
    with pytest.raises(NotFoundError, match="is not an id here"):
        bounded.seeds(foreign).execute()


# -- data and lines --------------------------------------------------------------------------------


def test_a_line_is_the_same_as_its_spec(db: WorldDB, border: dict[str, Id]) -> None:
    world, entity = border["world"], border["entity"]
    line = (
        f"seeds {entity} | traverse refers_to,implies in hops=2 | in_world {world} "
        f"| filter_type Fact,Topic | where_connected refers_to out {entity} "
        "| as_of valid=2999-01-01T00:00:00Z | include_superseded | prefer_summaries false "
        "| limit 3"
    )
    spec = QuerySpec.of(line)
    assert spec == QuerySpec.of(spec.to_dict()) == QuerySpec.of(spec)
    assert spec.seeds == [str(entity)]
    assert [step["op"] for step in spec.steps] == [
        "traverse",
        "in_world",
        "filter_type",
        "where_connected",
        "as_of",
        "include_superseded",
        "prefer_summaries",
        "limit",
    ]
    built = (
        db.query()
        .seeds(entity)
        .traverse(["refers_to", "implies"], "in", 2)
        .in_world(world)
        .filter_type("Fact", "Topic")
        .where_connected("refers_to", "out", entity)
        .as_of(valid=year(2999))
        .include_superseded()
        .prefer_summaries(False)
        .limit(3)
    )
    assert db.run(line) == built.execute()
    assert db.run(line).ids == {border["inside"]}
    assert (
        str(spec.apply(db.query()).explain()).splitlines()[1:]
        == (str(built.explain()).splitlines()[1:])
    )


def test_words_numbers_and_conditions_of_a_line() -> None:
    assert QuerySpec.of('text "red | green" apples match=all').text == "red | green apples"
    assert QuerySpec.of('text "red | green" apples match=all').match == "all"
    assert QuerySpec.of("vector 1,0.5 -2").vector == [1.0, 0.5, -2.0]
    (where,) = QuerySpec.of('where n=3 done=true tag=\'["a","b"]\' who="Ada L"').steps
    assert where["metadata"] == {"n": 3, "done": True, "tag": ["a", "b"], "who": "Ada L"}
    (span,) = QuerySpec.of("filter_time 2020-01-01T00:00:00Z end=2021-01-01T00:00:00Z").steps
    assert span == {
        "op": "filter_time",
        "start": "2020-01-01T00:00:00Z",
        "end": "2021-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "give a line"),
        ("fly", "unknown step 'fly'"),
        ("text a |", "a step is empty"),
        ("| limit 3", "a step is empty"),
        ('text "a', "close the quotation mark"),
        ("limit many", "limit: give a number"),
        ("vector a b", "vector: give numbers"),
        ("where done", "key=value"),
        ("prefer_summaries maybe", "give true, false or nothing"),
        ("in_world a b", "too much"),
        ("traverse", "traverse: edge type"),
        ("where_connected refers_to", "where_connected"),
        ("as_of valid=2020-01-01T09:30", "valid"),
        ("in_world", "in_world"),
    ],
)
def test_a_wrong_line_is_refused_with_the_way_out(db: WorldDB, line: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        db.run(line)


def test_order_is_told(db: WorldDB) -> None:
    with db.transaction() as tx:
        war, peace, vote = (
            tx.create_node(type="Event", name=name, created_at=year(at)).id
            for name, at in (("war", 2001), ("peace", 2002), ("vote", 2003))
        )
        tx.write_edge("precedes", war, peace)
        tx.write_edge("causes", peace, vote)
    answer = db.query().seeds(war).traverse(["precedes", "causes"], hops=2).execute()
    assert [node.name for node in answer] == ["peace", "vote"]
    lines = answer.to_text().splitlines()
    assert lines[0].endswith(f"peace (after {war.short})")
    assert lines[1].endswith(f"vote (caused by {peace.short})")


def test_a_hostile_line_is_refused_or_plain_text(db: WorldDB) -> None:
    assert len(db.run(f"text tea | where a={'[' * 3_000}")) == 0
    for step in ("limit ", "traverse refers_to hops="):
        with pytest.raises(InvalidInputError, match="too large a number"):
            db.run(f"text tea | {step}{'9' * 5_000}")
