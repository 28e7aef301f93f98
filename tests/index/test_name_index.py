"""Name index: it says the same, whether it follows each write or is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worlddb
from patience import until
from worlddb import Memory, NodeDraft, WorldDB
from worlddb.identity.store_resolver import attribute_keys, block_keys
from worlddb.index import name_index, search
from worlddb.index.name_index import NameIndex, frame_numbers

TEXTS = (
    "My manager Sarah Chen likes green tea.",
    "I met Jonathan Smyth in Lisbon; his email is jon@example.org.",
    "My sister Anna moved to Rome.",
    "I met Jonathan Smyth in Lisbon; his email is jon@example.org.",
    "Sarah Chen said that Anna likes Rome.",
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[WorldDB]:
    with worlddb.open(tmp_path / "a.db", durability="normal", embedder="none") as opened:
        yield opened


def index_of(db: WorldDB) -> NameIndex:
    return NameIndex(db.engine.store, block_keys, attribute_keys)


def is_complete(db: WorldDB) -> bool:
    """Return whether the index has reached the last commit."""
    with db.engine.store.read() as reader:
        head = reader.head()
        return reader.lookups.reached() == (head.nodes, head.notes)


def content(db: WorldDB) -> tuple[list[Any], list[Any]]:
    """Return all that is in the index."""
    with db.engine.store.read() as reader:
        con: Any = reader.con  # type: ignore[attr-defined]
        keys = con.execute("SELECT key, node FROM lookups ORDER BY key, node").fetchall()
        return keys, con.execute("SELECT * FROM lookups_reached WHERE number = 0").fetchall()


def made_anew(db: WorldDB) -> tuple[list[Any], list[Any]]:
    """Return what is in the index after it was dropped and made again."""
    with db.engine.store.derive() as session:
        con: Any = session.con  # type: ignore[attr-defined]
        con.execute("DELETE FROM lookups")
        con.execute("DELETE FROM lookups_reached")
    index_of(db).catch_up()
    return content(db)


def test_a_write_takes_its_own_names_in(db: WorldDB) -> None:
    for text in TEXTS:
        db.ingest(text, recluster="off")
        assert is_complete(db)
    followed = content(db)
    assert len(followed[0]) > 20
    assert followed == made_anew(db)


def test_memories_take_theirs_in_with_scopes_keys_and_amendments(db: WorldDB) -> None:
    memory = Memory(db, recluster="off")
    for number, text in enumerate(TEXTS):
        told = memory.write(text, user_id="ada", agent_id="desk", idempotency_key=f"k{number}")
        assert is_complete(db)
    memory.amend(told.id, "Sarah Chen said that Anna likes Oslo.")
    assert is_complete(db)
    assert content(db) == made_anew(db)


def test_what_others_wrote_meanwhile_is_brought_up(db: WorldDB) -> None:
    with db.transaction() as tx:
        tx.create_node(type="Entity", name="Jonathan Smyth", aliases=("Jon the baker",))
    assert not is_complete(db)
    told = db.ingest("Lunch with Jonathan Smyth.", recluster="off")
    assert is_complete(db)
    assert [db.get(ident).name for ident in told.reused] == ["Jonathan Smyth"]
    assert content(db) == made_anew(db)


def test_an_index_that_is_behind_takes_nothing_in(db: WorldDB) -> None:
    with db.transaction() as tx:
        tx.create_node(type="Entity", name="Anna Berg")
    before = content(db)
    with db.transaction() as tx:
        tx.create_node(type="Entity", name="Tom Reed")
        tx.derive(index_of(db).take_in)
    assert content(db) == before
    index_of(db).catch_up()
    assert content(db) == made_anew(db)


def test_a_write_that_fails_leaves_the_index_as_it_was(db: WorldDB) -> None:
    db.ingest(TEXTS[0], recluster="off")
    before = content(db)

    def write() -> None:
        with db.transaction() as tx:
            tx.create_node(type="Entity", name="Tom Reed")
            tx.derive(index_of(db).take_in)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert content(db) == before
    assert is_complete(db)


def test_keys_of_an_earlier_version_are_made_again(
    db: WorldDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an upgrade to a WorldDB that cuts names into other keys."""
    with db.transaction() as tx:
        tx.create_node(type="Entity", name="Anna Berg", aliases=("Annie",))
    with monkeypatch.context() as earlier:
        earlier.setattr(name_index, "VERSION", name_index.VERSION - 1)
        NameIndex(db.engine.store, lambda name: [f"old {name}"], attribute_keys).catch_up()
    before = content(db)
    told = db.ingest("Lunch with Annie.", recluster="off")
    assert [db.get(ident).name for ident in told.reused] == ["Anna Berg"]
    assert not set(before[0]) & set(content(db)[0])
    assert content(db) == made_anew(db)
    assert db.check() == []


def load(db: WorldDB, count: int) -> None:
    """Write named nodes in bulk, as an import does."""
    with db.transaction(bulk=True) as tx:
        tx.create_nodes(
            NodeDraft(type="Person", name=f"Ada Number{i}", content="likes tea")
            for i in range(count)
        )


def test_a_recall_files_the_names_of_a_bulk_load_once(
    db: WorldDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "HELD_MAX", 20)
    load(db, search.UNFILED_MAX + 5)
    assert not is_complete(db)
    found = db.recall("Who is Ada Number77?", k=1)
    assert [hit.node.name for hit in found.hits] == ["Ada Number77"]
    assert is_complete(db)
    load(db, 3)  # Few are compared one by one: a recall writes nothing for them.
    db.recall("Who is Ada Number77?", k=1)
    assert not is_complete(db)


def test_reindex_files_names(db: WorldDB) -> None:
    load(db, 3)
    db.reindex()
    assert is_complete(db)


def test_a_recall_that_cannot_write_searches_names_by_their_words(
    db: WorldDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "HELD_MAX", 20)
    load(db, search.UNFILED_MAX + 5)
    with worlddb.open(tmp_path / "a.db", read_only=True, embedder="none") as reading:
        found = reading.recall("Who is Ada Number77?", k=1)
    assert [hit.node.name for hit in found.hits] == ["Ada Number77"]


def test_a_thread_that_embeds_files_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "HELD_MAX", 20)
    monkeypatch.setattr(search, "UNFILED_MAX", 20)
    with worlddb.open(tmp_path / "b.db", durability="normal") as db:
        load(db, 30)
        db.embed_in_background()
        until(lambda: is_complete(db))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The alarm code is 2204.", "The alarm code is 7719."),
        ("Mauro is the head chef.", "Priya is the head chef."),
    ],
)
def test_statements_of_one_frame_share_a_key(one: str, other: str) -> None:
    keys = set(frame_numbers(one, "", 2))
    assert keys & set(frame_numbers(other, "", 2))
    assert not keys & set(frame_numbers(other, "", 3))
    assert not keys & set(frame_numbers(other, "tom", 2))


def test_most_keys_of_a_statement_lie_side_by_side() -> None:
    keys = sorted(frame_numbers("The code of the alarm in the hall upstairs is 2204.", "", 2))
    assert len(keys) > 3
    assert keys[-1] - keys[0] < 1 << 32
