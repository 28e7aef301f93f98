"""Declared types: what each trait does, and that a store needs no program to go on with them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import worlddb
from ontology.handler_stage import facts, open_store, write
from worlddb import EdgeDeclaration, EdgeDraft, Id, InvalidInputError, RejectedError, WorldDB
from worlddb.ontology import registry


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with open_store() as db:
        yield db


def year(number: int) -> datetime:
    return datetime(number, 1, 1, tzinfo=UTC)


def ends(db: WorldDB, source: Id, type_: str, **options: Any) -> set[Id]:
    return {edge.target for edge in db.edges(source, "out", [type_], **options)}


def test_a_declared_type_is_written_without_a_program(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    made = db.ontology().declare("likes")
    assert made == EdgeDeclaration(type="likes")
    write(db, "likes", a, b)
    assert ends(db, a, "likes") == {b}
    commits = len(db.log())
    db.ontology().declare({"type": "likes"})
    assert len(db.log()) == commits  # Declaring the same again writes nothing.


def test_a_reopened_store_goes_on_by_the_recorded_declaration(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with worlddb.open(path, embedder="none") as db:
        a, b, c = facts(db, "abc")
        with db.transaction() as tx:
            world = tx.create_node(type="Topic", name="W").id
            inner = tx.create_node(type="Fact", name="inner", parent=world).id
        db.ontology().declare("part_of", acyclic=True, inverse="has_part")
        db.ontology(world).declare("sees", pierces=True)
        write(db, "sees", inner, a)
    with worlddb.open(path, embedder="none") as db:
        # Read before anything is written: piercing holds at once.
        found = db.query().in_world(world).seeds([inner]).traverse("sees").execute()
        assert found.ids == {a}
        write(db, "part_of", a, b)
        write(db, "part_of", b, c)
        assert ends(db, c, "has_part") == {b}
        with pytest.raises(RejectedError, match="circle"):
            write(db, "part_of", c, a)
        with pytest.raises(InvalidInputError, match="unknown edge type 'sees'"):
            write(db, "sees", a, b)  # Declared for the inner world alone.
        assert [it.declaration for it in db.ontology(world).types()] == [
            EdgeDeclaration(type="sees", pierces=True)
        ]
        assert db.check() == []


def test_a_batch_that_closes_a_circle_is_refused(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    db.ontology().declare("part_of", acyclic=True)
    drafts = [EdgeDraft(source=x, target=y) for x, y in ((a, b), (b, c), (c, a))]
    with pytest.raises(RejectedError, match="circle"), db.transaction() as tx:
        tx.write_edges("part_of", drafts)


def test_a_symmetric_edge_holds_in_both_directions_and_goes_with_one_deletion(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    db.ontology().declare("married_to", symmetric=True)
    edge = write(db, "married_to", a, b)
    (mirror,) = db.edges(b, "out", ["married_to"])
    assert mirror.target == a
    assert mirror.metadata["premises"] == [str(edge.id)]
    write(db, "married_to", b, a)  # Stated as well: nothing runs in circles.
    assert len(db.edges(a, "both", ["married_to"])) == 3
    with db.transaction() as tx:
        tx.delete_edge(edge.id)
    assert ends(db, a, "married_to") == set()


def test_an_inverse_type_is_declared_with_its_partner(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    db.ontology().declare("manages", inverse="managed_by", newer_ends_older=True)
    write(db, "manages", a, b)
    assert ends(db, b, "managed_by") == {a}
    write(db, "managed_by", a, b)
    assert ends(db, b, "manages") == {a}
    kept = {it.type: it.declaration for it in db.ontology().types()}
    assert kept["managed_by"] == EdgeDeclaration(type="managed_by", inverse="manages")


@pytest.mark.parametrize("order", [(2019, 2021, 2023), (2023, 2019, 2021), (2021, 2023, 2019)])
def test_newer_ends_older_whatever_the_order_of_writing(
    db: WorldDB, order: tuple[int, ...]
) -> None:
    person, *homes = facts(db, "pabc")
    where = dict(zip((2019, 2021, 2023), homes, strict=True))
    db.ontology().declare("lives_in", newer_ends_older=True, inverse="home_of")
    for began in order:
        write(db, "lives_in", person, where[began], valid_from=year(began))
    found = db.edges(person, "out", ["lives_in"], include_superseded=True)
    line = {edge.target: (edge.valid_from.year, edge.valid_to) for edge in found}
    assert line == {
        where[2019]: (2019, year(2021)),
        where[2021]: (2021, year(2023)),
        where[2023]: (2023, None),
    }
    # The mirrors follow.
    assert ends(db, where[2019], "home_of") == set()
    assert ends(db, where[2023], "home_of") == {person}


def test_a_functional_type_flags_and_a_newer_one_does_not(db: WorldDB) -> None:
    person, rome, paris = facts(db, "prq")
    db.ontology().declare("born_in", functional=True)
    db.ontology().declare("lives_in", newer_ends_older=True)
    for type_ in ("born_in", "lives_in"):
        write(db, type_, person, rome, valid_from=year(2020))
        write(db, type_, person, paris, valid_from=year(2021))
    assert [it.type for it in db.consolidate().contradictions] == ["born_in"]


def test_transitive_types_are_closed_where_they_are_declared(db: WorldDB) -> None:
    a, b, c = facts(db, "abc")
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name="W").id
        x, y, z = (tx.create_node(type="Fact", name=n, parent=world).id for n in "xyz")
    db.ontology().declare("near")
    db.ontology(world).declare("near", transitive=True)
    for one, other in ((a, b), (b, c), (x, y), (y, z)):
        write(db, "near", one, other)
    (made,) = db.consolidate(only="closure").inferred
    assert (made.type, made.source, made.target) == ("near", x, z)
    assert db.consolidate(only="closure").inferred == ()


def test_a_symmetric_transitive_type_joins_everybody_with_everybody(db: WorldDB) -> None:
    people = facts(db, "abcd")
    a, b, c, d = people
    db.ontology().declare("sibling_of", symmetric=True, transitive=True)
    for one, other in ((a, b), (c, b), (c, d)):
        write(db, "sibling_of", one, other)
    db.consolidate(only="closure")
    for one in people:
        assert ends(db, one, "sibling_of") == set(people) - {one}
    assert db.consolidate(only="closure").inferred == ()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"type": "likes", "colour": "red"}, "unknown trait colour"),
        ({"functional": True}, "an object with a type"),
        ({"type": "likes", "acyclic": 1}, "acyclic: give true or false"),
        ({"type": "likes", "symmetric": True, "acyclic": True}, "leave out acyclic"),
        ({"type": "likes", "symmetric": True, "inverse": "liked"}, "leave out inverse"),
        ({"type": "contains"}, "ships with WorldDB"),
        ({"type": "likes", "inverse": "supersedes"}, "ships with WorldDB"),
        (7, "give the name of a type"),
    ],
)
def test_a_wrong_declaration_is_refused(db: WorldDB, given: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        db.ontology().declare(given)
    assert len(db.log()) == 1


def test_an_export_carries_declarations(db: WorldDB) -> None:
    a, b = facts(db, "ab")
    db.ontology().declare("manages", inverse="managed_by")
    write(db, "manages", a, b)
    with open_store() as copy:
        copy.replay(db.export())
        assert ends(copy, b, "managed_by") == {a}
        write(copy, "manages", b, a)
        assert copy.check() == []


def test_a_world_declares_a_bounded_number_of_types(
    db: WorldDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worlddb.write.transaction.DECLARED_MAX", 3)
    for name in ("likes", "knows", "sees"):
        db.ontology().declare(name)
    db.ontology().declare("sees", acyclic=True)  # Other traits are no further type.
    with pytest.raises(InvalidInputError, match="up to 3 types"):
        db.ontology().declare("hears")


def test_the_commits_of_other_processes_do_not_read_the_types_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    made = registry.recorded_declaration

    def count(type_: str, version: str, functional: bool) -> EdgeDeclaration | None:
        read.append(type_)
        return made(type_, version, functional)

    path = tmp_path / "memory.db"
    with worlddb.open(path, embedder="none") as db, worlddb.open(path, embedder="none") as other:
        db.ontology().declare("likes")
        a, b = facts(db, "ab")
        write(other, "likes", a, b)
        monkeypatch.setattr(registry, "recorded_declaration", count)
        facts(db, "c")
        write(other, "likes", b, a)
        assert read == []
        db.ontology().declare("sees")
        write(other, "sees", b, a)
        assert "sees" in read
