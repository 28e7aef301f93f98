"""Many worlds in one store: what others call by the same name changes nothing in one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

import worlddb
from worlddb import Draft, DraftNode, Memory, Message, WorldDB
from worlddb.identity.match_values import DEFAULT_SETTINGS
from worlddb.index.name_index import NameIndex, name_number
from worlddb.model.inputs import ScopeName
from worlddb.store.rows import ROOT_ROW

OTHERS = DEFAULT_SETTINGS.key_names_max + 20
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Named:
    """An extractor that takes the whole text for a name."""

    name = "named"

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        text = messages[0].text
        return Draft(nodes=(DraftNode(key="it", type="Person", name=text, resolvable=True),))


def meant(db: WorldDB, name: str, world: bytes) -> worlddb.Ingested:
    return db.ingest(name, extractor=Named(), world=world, recluster="off")


def world(db: WorldDB, name: str) -> bytes:
    with db.transaction() as tx:
        return tx.create_node(type="World", name=name).id


def entities(db: WorldDB) -> Counter[tuple[object, str]]:
    return Counter((node.parent, node.name) for node in db.query().filter_type("Entity").execute())


def test_a_name_that_every_user_mentions_is_one_entity_of_each() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        for number in range(OTHERS):
            memory.write("I met Anna Berg in London", user_id=f"user {number}")
        for number in range(OTHERS):
            memory.write("Anna Berg is back in London", user_id=f"user {number}")
        found = entities(memory.db)
        assert set(found.values()) == {1}
        assert len(found) == 2 * OTHERS
        assert memory.db.proposals() == []


@pytest.mark.parametrize("others", [0, 3, 30, OTHERS])
@pytest.mark.parametrize(
    ("name", "created", "tiers"),
    [
        ("Anna Berg", 0, []),
        ("ANNA BERG", 0, []),
        ("Carla", 0, []),
        ("Anna Bergg", 1, ["fuzzy"]),
        ("Ana Berg", 1, ["fuzzy"]),
        ("Bob Stone", 1, []),
    ],
)
def test_a_verdict_is_the_same_however_many_others_bear_the_name(
    name: str, created: int, tiers: list[str], others: int
) -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        homes = [world(db, "mine"), *(world(db, f"other {number}") for number in range(others))]
        for home in homes:
            meant(db, "Anna Berg", home)
            meant(db, "Carla", home)
        told = meant(db, name, homes[0])
        assert len(told.created) == created
        assert [item.tier for item in told.proposals] == tiers


def test_names_are_counted_in_their_world_and_in_all() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        homes = [world(db, name) for name in ("one", "two", "three")]
        for number, home in enumerate(homes):
            for name in ("Anna Berg", "Bob Stone", "Carla Diaz")[: number + 1]:
                meant(db, name, home)
        with db.engine.store.read() as reader:
            rows = [reader.node_row(home) or 0 for home in homes]
            assert [reader.lookups.names(row) for row in rows] == [1, 2, 3]
            assert reader.lookups.names(ROOT_ROW) == 6


def test_what_is_moved_into_a_world_is_found_there_by_its_name_and_aliases() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        with db.transaction() as tx:
            anna = tx.create_node(
                type="Person", name="Anna Berg", aliases=["Nan"], created_at=NOON
            ).id
        for number in range(OTHERS):
            # These bring the index up, so that Anna is in it before she is moved.
            home = world(db, f"other {number}")
            meant(db, "Anna Berg", home)
            meant(db, "Nan", home)
        theirs = world(db, "theirs")
        assert meant(db, "Anna Berg", theirs).reused == ()
        theirs = world(db, "theirs, too")
        meant(db, "Bob Stone", theirs)
        with db.transaction() as tx:
            tx.write_edge("contains", theirs, anna)
        assert db.get(anna).parent == theirs
        assert meant(db, "Anna Berg", theirs).reused == (anna,)
        assert meant(db, "Nan", theirs).reused == (anna,)
        assert db.check() == []


def test_a_name_in_a_world_inside_is_found_from_the_world_around_it() -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        outer = world(db, "outer")
        with db.transaction() as tx:
            inner = tx.create_node(type="World", name="inner", parent=outer).id
        (anna,) = meant(db, "Anna Berg", inner).created
        assert meant(db, "Anna Berg", outer).reused == (anna,)


@pytest.mark.parametrize("lives_here", [True, False])
def test_of_those_who_bear_a_name_inside_only_the_one_who_lives_here_is_meant(
    lives_here: bool,
) -> None:
    with worlddb.open(":memory:", embedder="none") as db:
        team = world(db, "team")
        here = meant(db, "John Smith", team).created if lives_here else ()
        for number in range(OTHERS):
            with db.transaction() as tx:
                inner = tx.create_node(type="World", name=f"inner {number}", parent=team).id
            meant(db, "John Smith", inner)
        told = meant(db, "John Smith", team)
        assert told.reused == here
        assert bool(told.proposals) is not lives_here


def test_a_name_that_is_also_shown_here_from_elsewhere_is_not_written_again_and_again() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("My manager Sarah Chen prefers tea.", user_id="bob")
        memory.write("Sarah Chen visited Oslo with Anna Berg.", user_id=["ada", "bob"])
        before = entities(memory.db)
        for week in range(3):
            memory.write(f"I met Sarah Chen in week {week}.", user_id="bob")
        assert entities(memory.db) == before
        assert [name for _, name in before].count("Sarah Chen") == 2


@pytest.mark.parametrize("change", ["move", "erase"])
def test_what_is_moved_or_erased_while_it_is_filed_is_filed_as_it_is_then(
    tmp_path: Path, change: str
) -> None:
    with (
        worlddb.open(tmp_path / "m.db", embedder="none") as db,
        # A short patience: erasing waits so long for readers, and here one is open.
        worlddb.open(tmp_path / "m.db", embedder="none", busy_timeout_s=1) as other,
    ):
        home = world(db, "home")
        with db.transaction() as tx:
            tea = tx.create_node(type="Fact", name="tea", content="Tea is green").id
        calls: list[str] = []

        def keys(name: str) -> list[str]:
            calls.append(name)
            if len(calls) == 1 and change == "move":
                with other.transaction() as tx:
                    tx.write_edge("contains", home, tea)
            elif len(calls) == 1:
                other.erase(tea)
            return [f"={name}"]

        NameIndex(db.engine.store, keys, lambda attributes: ()).catch_up()
        with db.engine.store.read() as reader:
            row = reader.node_row(home) or 0
            there = reader.lookups.find([name_number("=tea", row)], 9)
            anywhere = reader.lookups.find([name_number("=tea")], 9)
        assert calls
        assert bool(*there.values()) == (change == "move")
        assert bool(*anywhere.values()) == (change == "move")


def test_a_text_that_every_user_wrote_is_known_to_each() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        ids = [memory.write("I like tea", user_id=f"user {number}").id for number in range(250)]
        again = [memory.write("I  like tea", user_id=f"user {number}").id for number in range(250)]
        assert again == ids


def test_a_name_of_another_world_is_found_once_it_is_made_a_member_here() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        theirs = memory.write("I met Sarah Chen.", user_id="ada").entities[-1]
        own = memory.write("I met Sarah Chen there.", user_id="bob").entities[-1]
        assert (own.name, own.created) == ("Sarah Chen", True)
        memory.write(
            "Sarah Chen called me.", user_id="bob"
        )  # Now the other is known to be outside.
        with memory.db.transaction() as tx:
            tx.retire(own.id)
        with memory.db.transaction() as tx:
            tx.write_edge("contains", ScopeName("user", "bob").id(), theirs.id)
        found = memory.write("I saw Sarah Chen again.", user_id="bob").entities[-1]
        assert (found.id, found.created) == (theirs.id, False)
