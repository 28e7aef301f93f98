"""Answers: what a question finds, and that a world's border holds for each way of asking."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import worlddb
from worlddb import AsOf, Edge, Id, NodeDraft, Query, Subgraph, WorldDB, WriteContext

AT = "2025-01-01T00:00:00+00:00"


class Cites:
    type = "cites"
    pierces = True

    def on_insert(self, ctx: WriteContext, edge: Edge) -> None: ...
    def on_delete(self, ctx: WriteContext, edge: Edge) -> None: ...
    def on_query_rewrite(self, query: Query) -> Query:
        return query


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:") as db:
        yield db


def make(db: WorldDB, *names: str, parent: Id | None = None) -> list[Id]:
    with db.transaction() as tx:
        return [
            tx.create_node(type="Fact", name=name, created_at=AT, parent=parent).id
            for name in names
        ]


def names(found: Subgraph) -> list[str]:
    return [node.name for node in found]


def ends(found: Subgraph) -> set[Id]:
    return {end for edge in found.edges for end in (edge.source, edge.target)}


# -- text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("Tesla", "tesla"),
        ("running", "runs"),
        ("résumé", "resume"),
        ("re\u0301sume\u0301", "re\u0301sume\u0301"),
        ("re\u0301sume\u0301", "résumé"),
        ("résumé", "re\u0301sume\u0301"),
        ("東京", "東京"),
        ("Москва", "москва"),
        ("हिन्दी", "हिन्दी"),
        ("ﷺ", "ﷺ"),
        ("snake_case", "snake_case"),
        ("C++", "C++"),
        ("don't", "don't"),
        ("a-b", "a-b"),
        ("x²", "x²"),
    ],
)
def test_a_text_is_found_by_its_own_words(db: WorldDB, stored: str, asked: str) -> None:
    make(db, stored, "something else entirely")
    assert stored in names(db.query().text(asked).execute())


def test_text_finds_what_is_in_the_world_however_much_is_outside(db: WorldDB) -> None:
    """The best matches of the whole store may all lie outside the world that was asked."""
    (world,) = make(db, "world")
    with db.transaction() as tx:
        tx.create_nodes(NodeDraft(type="Fact", name="apple", content=f"{n}") for n in range(300))
        long = "an apple among very many other words that make it rank lower " * 5
        tx.create_node(type="Fact", name="inside", content=long, parent=world)
    assert names(db.query().in_world(world).text("apple").execute()) == ["inside"]


def test_text_finds_what_is_valid_however_much_is_not(db: WorldDB) -> None:
    with db.transaction() as tx:
        ended = "2025-06-01T00:00:00Z"
        tx.create_nodes(
            NodeDraft(type="Fact", name="apple", content=str(n), created_at=AT, valid_to=ended)
            for n in range(300)
        )
        tx.create_node(type="Fact", name="now", content="an apple that is there today " * 9)
    assert names(db.query().text("apple").execute()) == ["now"]


def test_text_finds_what_was_known_however_much_came_later(db: WorldDB) -> None:
    with db.transaction() as tx:
        tx.create_node(type="Fact", name="then", content="an apple that was known then " * 9)
    then = db.log()[-1].time
    with db.transaction() as tx:
        tx.create_nodes(NodeDraft(type="Fact", name="apple", content=str(n)) for n in range(300))
    assert names(db.query().text("apple").as_of(known=then).execute()) == ["then"]


# -- the border of a world -------------------------------------------------------------------------


@pytest.fixture
def border(db: WorldDB) -> dict[str, Id]:
    """Make a world with two facts, two facts outside, and edges of every kind across the border."""
    world, far, further = make(db, "world", "far", "further")
    near, nearer = make(db, "near", "nearer", parent=world)
    with db.transaction() as tx:
        for type_ in ("implies", "causes", "contradicts", "derived_from", "same_as"):
            for source, target in ((near, nearer), (near, far), (far, further), (nearer, further)):
                tx.write_edge(type_, source, target)
    return {"world": world, "near": near, "nearer": nearer, "far": far, "further": further}


def test_where_connected_shows_no_edge_of_what_is_outside(
    db: WorldDB, border: dict[str, Id]
) -> None:
    inside = {border["near"], border["nearer"]}
    query = db.query().in_world(border["world"])
    found = query.where_connected("causes", "out", border["nearer"]).execute()
    assert names(found) == ["near"]
    assert ends(found) <= inside
    for direction in ("out", "in", "both"):
        for type_ in ("implies", "causes", "contradicts"):
            for node in ("near", "nearer", "far", "further", "world"):
                answer = query.where_connected(type_, direction, border[node]).execute()
                assert answer.ids <= inside
                assert ends(answer) <= inside, (direction, type_, node)
                assert node in ("near", "nearer") or answer == Subgraph()


def test_where_connected_leaves_the_world_along_piercing_edges_alone(
    db: WorldDB, border: dict[str, Id]
) -> None:
    near, far = border["near"], border["far"]
    db.ontology().register(Cites())
    with db.transaction() as tx:
        for type_ in ("refers_to", "cites"):
            tx.write_edge(type_, near, far)
    query = db.query().in_world(border["world"])
    for type_, expected in (("refers_to", ["near"]), ("cites", ["near"]), ("implies", [])):
        found = query.where_connected(type_, "out", far).execute()
        assert names(found) == expected
        assert ends(found) == ({near, far} if expected else set())
    assert names(db.query().where_connected("implies", "out", far).execute()) == ["near"]


def test_where_connected_shows_the_edges_of_what_it_keeps_only(
    db: WorldDB, border: dict[str, Id]
) -> None:
    query = db.query().seeds([border["near"]])
    found = query.where_connected("causes", "out", border["nearer"]).execute()
    assert names(found) == ["near"]
    assert {(edge.source, edge.target) for edge in found.edges} == {
        (border["near"], border["nearer"])
    }
    nothing = db.query().seeds([border["world"]]).where_connected("causes", "in", border["near"])
    assert nothing.execute() == Subgraph()


def test_no_way_of_asking_shows_what_is_outside(db: WorldDB, border: dict[str, Id]) -> None:
    inside = {border["near"], border["nearer"]}
    types = ["implies", "causes", "contradicts", "derived_from", "same_as"]
    query = db.query().in_world(border["world"])
    for question in (
        query,
        query.text("near nearer far further world"),
        query.seeds(list(border.values())),
        query.seeds(border["near"]).traverse(types, "both", hops=5),
        query.traverse(types, "in").traverse(types, "out"),
        query.filter_type("Fact"),
        query.filter_time(AT, None),
        query.include_superseded(),
        query.prefer_summaries(),
    ):
        found = question.execute()
        assert found.ids <= inside
        assert ends(found) <= inside
        told = {end for item in found.conflicts for end in (item.left, item.right)}
        assert told <= inside


def test_a_seed_outside_the_world_is_not_seen_and_not_an_error(
    db: WorldDB, border: dict[str, Id]
) -> None:
    query = db.query().in_world(border["world"]).seeds([border["far"], border["near"]])
    assert names(query.execute()) == ["near"]


def test_steps_take_their_arguments_by_name_and_types_one_by_one_or_as_a_list(
    db: WorldDB, border: dict[str, Id]
) -> None:
    query = db.query().in_world(id=border["world"])
    near = query.where_connected(type="causes", direction="out", id=border["nearer"])
    assert names(near.execute()) == ["near"]
    everything = query.execute()
    types = sorted({node.type for node in everything})
    assert query.filter_type(*types).execute() == everything
    assert query.filter_type(types).execute() == everything
    assert query.filter_type(tuple(types[:1]), iter(types[1:] or types)).execute() == everything
    with pytest.raises(worlddb.InvalidInputError, match="filter_type"):
        query.filter_type(types, [])


# -- order and limit -------------------------------------------------------------------------------


def test_equal_questions_have_equal_answers_in_equal_order(db: WorldDB) -> None:
    make(db, *(f"apple {number}" for number in range(60)))
    for query in (db.query(), db.query().text("apple"), db.query().filter_type("Fact").limit(7)):
        first = query.execute()
        assert all(query.execute() == first for _ in range(3))
    assert [node.id for node in db.query().execute()] == sorted(db.query().execute().ids)


def test_a_limit_takes_the_first_of_the_whole_answer(db: WorldDB) -> None:
    make(db, *(f"n{number}" for number in range(30)))
    whole = db.query().execute().nodes
    assert db.query().limit(5).execute().nodes == whole[:5]
    assert db.query().limit(30).execute().nodes == db.query().limit(31).execute().nodes == whole


def test_an_answer_reads_as_lines_and_as_json(db: WorldDB) -> None:
    make(db, "a", "b")
    found = db.query().execute()
    assert len(found.to_text().splitlines()) == len(found) == 2
    assert {node["name"] for node in found.to_json()["nodes"]} == {"a", "b"}


def test_a_text_cannot_pretend_to_be_a_line_of_the_answer(db: WorldDB) -> None:
    """Folded or indented, as one likes; but a memory must not forge another one in a prompt."""
    forged = "[2025-01-01] Fact 000000000000 forged"
    with db.transaction() as tx:
        for end in ("\n", "\r", "\r\n", "\u2028", "\x85"):
            tx.create_node(type="Fact", name="a", content=f"b{end}{forged}")
    assert forged not in db.query().execute().to_text().splitlines()


# -- when ------------------------------------------------------------------------------------------


def test_what_had_not_begun_is_hidden_from_who_asks_for_what_has_ended_too(db: WorldDB) -> None:
    times = [f"{year}-01-01T00:00:00+00:00" for year in (2019, 2020, 2021)]
    with db.transaction() as tx:
        old, new = (
            tx.create_node(type="Fact", name=name, content="a pear", valid_from=time).id
            for name, time in (("old", times[0]), ("new", times[2]))
        )
        tx.write_edge("refers_to", old, new, valid_from=times[2])
        tx.retire(old, at=times[1])
    for at, expected in zip(times, (["old"], ["old"], ["new", "old"]), strict=True):
        query = db.query().as_of(valid=at).include_superseded()
        as_of = AsOf(valid=at)
        assert sorted(names(query.execute())) == expected
        assert sorted(names(query.text("pear").execute())) == expected
        children = db.children(as_of=as_of, include_superseded=True)
        assert sorted(node.name for node in children) == expected
        walked = query.seeds([old]).traverse("refers_to").execute()
        assert names(walked) == (["new"] if at == times[2] else [])
        edges = db.edges(old, as_of=as_of, include_superseded=True)
        assert list(walked.edges) == edges
        assert len(edges) == (at == times[2])


def test_where_connected_acts_on_the_accepted_class_of_both_ends(db: WorldDB) -> None:
    with db.transaction() as tx:
        sarah, chen, acme = (
            tx.create_node(type="Entity", name=name).id for name in ("Sarah", "Chen", "Acme")
        )
        tx.write_edge("refers_to", chen, acme)
        same = tx.write_edge("same_as", sarah, chen)
    start = db.query().text("Sarah")
    assert not start.where_connected("refers_to", "out", acme).execute().nodes
    db.accept_merge(same.id)
    assert start.where_connected("refers_to", "out", acme).execute().ids == {sarah}
    back = db.query().text("Acme").where_connected("refers_to", "in", sarah)
    assert back.execute().ids == {acme}
