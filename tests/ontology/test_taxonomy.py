"""instance_of and subtype_of: a question for a type finds its subtypes and instances."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ontology.handler_stage import day, delete, fact, facts, names, open_store, refused, write
from worlddb import Id, WorldDB


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def of_type(db: WorldDB, *types: str) -> set[str]:
    return set(names(db.query().filter_type(*types).execute()))


@pytest.fixture
def zoo(db: WorldDB) -> dict[str, Id]:
    """Poodle ⊂ Dog ⊂ Animal ⊃ Cat, as nodes; things of each, by type and by edge."""
    with db.transaction() as tx:
        ids = {
            name: tx.create_node(type="Type", name=name, created_at=day(1)).id
            for name in ("Animal", "Dog", "Poodle", "Cat", "Stone")
        }
        for lower, upper in (("Dog", "Animal"), ("Poodle", "Dog"), ("Cat", "Animal")):
            ids[f"{lower} in {upper}"] = tx.write_edge("subtype_of", ids[lower], ids[upper]).id
        for name, type_ in (("rex", "Dog"), ("fifi", "Poodle"), ("tom", "Cat"), ("rock", "Stone")):
            ids[name] = tx.create_node(type=type_, name=name, created_at=day(2)).id
        ids["beast"] = tx.create_node(type="Animal", name="beast", created_at=day(2)).id
        ids["lassie"] = tx.create_node(type="Entity", name="lassie", created_at=day(2)).id
        ids["lassie is"] = tx.write_edge("instance_of", ids["lassie"], ids["Poodle"]).id
    return ids


# -- on_insert -------------------------------------------------------------------------------------


def test_a_circle_of_subtypes_is_refused(db: WorldDB, zoo: dict[str, Id]) -> None:
    for lower, upper in (("Animal", "Dog"), ("Animal", "Poodle"), ("Dog", "Dog")):
        with refused(db, "subtype_of: this edge would close a circle"):
            write(db, "subtype_of", zoo[lower], zoo[upper])


def test_a_thing_is_not_its_own_type(db: WorldDB) -> None:
    (node,) = facts(db, "a")
    with refused(db, "instance_of: a node cannot be an instance of itself"):
        write(db, "instance_of", node, node)


# -- on_query_rewrite ------------------------------------------------------------------------------


@pytest.mark.usefixtures("zoo")
def test_a_type_includes_its_subtypes_and_their_instances(db: WorldDB) -> None:
    assert of_type(db, "Animal") == {"beast", "rex", "fifi", "tom", "lassie"}
    assert of_type(db, "Dog") == {"rex", "fifi", "lassie"}
    assert of_type(db, "Poodle") == {"fifi", "lassie"}
    assert of_type(db, "Cat", "Stone") == {"tom", "rock"}
    assert of_type(db, "Entity") == {"lassie"}
    assert of_type(db, "Plant") == set()


def test_types_without_type_nodes_are_plain_words(db: WorldDB) -> None:
    facts(db, "ab")
    assert of_type(db, "Fact") == {"a", "b"}
    assert of_type(db, "fact") == set()


def test_a_type_filter_keeps_to_what_it_is_given(db: WorldDB, zoo: dict[str, Id]) -> None:
    query = db.query().seeds([zoo["lassie"], zoo["rock"], zoo["tom"]])
    assert set(names(query.filter_type("Animal").execute())) == {"lassie", "tom"}
    assert set(names(query.filter_type("Animal").filter_type("Cat").execute())) == {"tom"}


def test_a_deleted_edge_takes_the_subtypes_with_it(db: WorldDB, zoo: dict[str, Id]) -> None:
    then = db.log()[-1].time
    with db.transaction() as tx:
        tx.delete_edge(zoo["Dog in Animal"])
    assert of_type(db, "Animal") == {"beast", "tom"}
    assert of_type(db, "Dog") == {"rex", "fifi", "lassie"}
    before = db.query().filter_type("Animal").as_of(known=then).execute()
    assert set(names(before)) == {"beast", "rex", "fifi", "tom", "lassie"}
    with db.transaction() as tx:
        tx.delete_edge(zoo["lassie is"])
    assert of_type(db, "Dog") == {"rex", "fifi"}


def test_a_type_edge_holds_in_its_own_time(db: WorldDB) -> None:
    with db.transaction() as tx:
        kind = tx.create_node(type="Type", name="Minister", created_at=day(1)).id
        ada = fact(tx, "ada", 1)
        tx.write_edge("instance_of", ada, kind, valid_from=day(10), valid_to=day(20))
    assert of_type(db, "Minister") == set()
    for when, seen in ((9, []), (10, ["ada"]), (19, ["ada"]), (20, [])):
        found = db.query().filter_type("Minister").as_of(valid=day(when)).execute()
        assert names(found) == seen, when


def test_type_nodes_of_the_root_world_count_inside_every_world(
    db: WorldDB, zoo: dict[str, Id]
) -> None:
    with db.transaction() as tx:
        world = fact(tx, "world")
        tx.create_node(type="Poodle", name="inner poodle", created_at=day(3), parent=world)
        tx.create_node(type="Stone", name="inner stone", created_at=day(3), parent=world)
        inner = tx.create_node(type="Entity", name="inner dog", created_at=day(3), parent=world).id
        tx.write_edge("instance_of", inner, zoo["Dog"])
    found = db.query().in_world(world).filter_type("Animal").execute()
    assert set(names(found)) == {"inner poodle", "inner dog"}


def test_the_types_of_another_world_do_not_count(db: WorldDB) -> None:
    with db.transaction() as tx:
        here, there = fact(tx, "here"), fact(tx, "there")
        broad = tx.create_node(type="Type", name="Vehicle", created_at=day(1), parent=there).id
        narrow = tx.create_node(type="Type", name="Car", created_at=day(1), parent=there).id
        tx.write_edge("subtype_of", narrow, broad)
        tx.create_node(type="Car", name="ours", created_at=day(2), parent=here)
        tx.create_node(type="Car", name="theirs", created_at=day(2), parent=there)
    assert names(db.query().in_world(there).filter_type("Vehicle").execute()) == ["theirs"]
    assert names(db.query().in_world(here).filter_type("Vehicle").execute()) == []


@pytest.mark.parametrize(
    "name",
    [
        "C++",
        "my_type",
        "two words",
        "日本語",
        "Ünïcode",
        "x²",
        'quo"ted',
        "re\u0301sume\u0301",
        "हिन्दी",
        "🙂",
    ],
)
def test_any_name_can_be_a_type_with_subtypes(db: WorldDB, name: str) -> None:
    with db.transaction() as tx:
        upper = tx.create_node(type="Type", name=name, created_at=day(1)).id
        lower = tx.create_node(type="Type", name="Lower", created_at=day(1)).id
        tx.write_edge("subtype_of", lower, upper)
        tx.create_node(type="Lower", name="thing", created_at=day(2))
    assert of_type(db, name) == {"thing"}


# -- on_delete -------------------------------------------------------------------------------------


def test_an_inferred_subtype_falls_with_its_premise(db: WorldDB, zoo: dict[str, Id]) -> None:
    premises = [str(zoo["Poodle in Dog"]), str(zoo["Dog in Animal"])]
    closure = {"inferred": True, "premises": premises}
    edge = write(db, "subtype_of", zoo["Poodle"], zoo["Animal"], metadata=closure)
    with db.transaction() as tx:
        tx.delete_edge(zoo["Poodle in Dog"])
    assert db.get_edge(edge.id).known_to is not None
    assert of_type(db, "Animal") == {"beast", "rex", "tom"}


def test_deleting_a_said_edge_takes_no_other_said_edge_along(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    first, second = write(db, "subtype_of", a, b), write(db, "subtype_of", b, c)
    delete(db, first)
    assert db.get_edge(second.id).known_to is None


def test_an_instance_that_has_ended_is_found_where_ended_things_are(db: WorldDB) -> None:
    with db.transaction() as tx:
        ana = tx.create_node(type="Entity", name="Ana", created_at=day(1)).id
        mayor = tx.create_node(type="Type", name="Mayor", created_at=day(1)).id
        tx.write_edge("instance_of", ana, mayor, valid_from=day(2), valid_to=day(3))
    assert of_type(db, "Mayor") == set()
    found = db.query().include_superseded().filter_type("Mayor").execute()
    assert names(found) == ["Ana"]
