"""Reads verify: text that was changed behind the store's back never comes back as if it were so."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from worlddb import CorruptionError, Id, Memory, WorldDBError

TEXT = "Ada keeps the spare key under the blue flower pot."
MARCH = 1_772_323_200_000_000  # The first of March 2026, in microseconds.
FLIPS = 120
"""Turned-over bytes of the file. Each costs some 30 ms; a third of them hit a stored text."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    numbers = random.Random(5)  # The same bytes in every run.
    with (
        worlddb.open(path, random_bytes=numbers.randbytes, clock=lambda: MARCH) as db,
        Memory(db, recluster="off") as memory,
    ):
        memory.write(TEXT, source="a letter")
        memory.write("Bob drinks tea.")
    return path


def memory_id(path: str) -> Id:
    with Memory(path) as memory:
        return next(one.id for one in memory.list() if one.text == TEXT)


def edit(path: str, sql: str, *values: Any) -> None:
    """Change the file as another program would that takes the guards away."""
    con = apsw.Connection(path)
    found = con.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for (name,) in found:
        con.execute(f"DROP TRIGGER {name}")
    con.execute(sql, values)
    assert con.changes()
    con.close()


READS: dict[str, Callable[[Memory, Id], object]] = {
    "get": lambda memory, ident: memory.db.get(ident),
    "get by prefix": lambda memory, ident: memory.db.get(ident.short),
    "query": lambda memory, ident: memory.db.query().seeds([ident]).execute(),
    "recall": lambda memory, ident: memory.recall("Where is the spare key?"),
    "list": lambda memory, ident: memory.list(),
    "read": lambda memory, ident: memory.read(ident),
    "retire": lambda memory, ident: memory.retire(ident),
    "amend": lambda memory, ident: memory.amend(ident, "The key is lost."),
}
OTHER_END = "iif(substr(id, 32) = x'00', x'01', x'00')"  # Ids are random: theirs may be 00.
EDITS = {
    "content": ("content = replace(content, 'blue', 'pink')", "do not hash to its id"),
    "name": ("name = 'Eve'", "do not hash to its id"),
    "type": ("type = 'Decision'", "do not hash to its id"),
    "created_at": ("created_at = created_at + 1", "do not hash to its id"),
    "called erased": (f"created_at = {-(1 << 63)}", "do not hash to its id"),
    "id": (f"id = CAST(substr(id, 1, 31) || {OTHER_END} AS BLOB)", "do not hash to its id"),
    "no UTF-8": ("content = CAST(x'41ff42' AS TEXT)", "cannot be read"),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("what", EDITS)
def test_a_changed_node_is_an_error_with_its_id_and_the_way_out(
    path: str, what: str, read: str
) -> None:
    if what == "id" and read in ("recall", "list"):
        pytest.skip("a node that is found by its words is named by the id that it has")
    ident = memory_id(path)
    change, says = EDITS[what]
    edit(path, f"UPDATE nodes SET {change} WHERE content = ?", TEXT)
    with Memory(path) as memory, pytest.raises(CorruptionError) as failed:
        READS[read](memory, ident)
    message = str(failed.value)
    assert says in message
    assert "worlddb check" in message
    assert "restore a backup" in message
    assert str(ident)[:62] in message


def test_a_time_outside_the_calendar_is_damage(path: str) -> None:
    ident = memory_id(path)
    edit(path, "UPDATE nodes SET valid_from = 9223372036854775807 WHERE content = ?", TEXT)
    with Memory(path) as memory:
        with pytest.raises(CorruptionError, match=f"{ident} cannot be read"):
            memory.read(ident)
        with pytest.raises(CorruptionError, match="worlddb check"):
            memory.recall("Where is the spare key?")


def test_a_note_that_is_no_text_is_an_error_with_the_id_of_its_node(path: str) -> None:
    ident = memory_id(path)
    edit(path, "UPDATE notes SET text = CAST(x'41ff' AS TEXT) WHERE kind = 'source'")
    with Memory(path) as memory, pytest.raises(CorruptionError, match=str(ident)):
        memory.read(ident)


def test_metadata_of_an_edge_that_is_no_text_is_an_error_and_not_a_decoding_error(
    path: str,
) -> None:
    ident = memory_id(path)
    edit(path, "UPDATE edges SET metadata = CAST(x'41ff' AS TEXT)")
    with worlddb.open(path) as db, pytest.raises(CorruptionError, match="not UTF-8"):
        db.edges(ident, direction="both")


@pytest.mark.parametrize("column", ["type", "name", "content", "created_at", "blind", "valid_from"])
def test_a_field_of_another_type_is_damage(path: str, column: str) -> None:
    ident = memory_id(path)
    # A flipped bit does this. SQL can not while the table is strict.
    for strict, edits in (("", [f"UPDATE nodes SET {column} = x'07ff'"]), (" STRICT", [])):
        sql = "UPDATE sqlite_schema SET sql = rtrim(sql, ' STRICT') || ? WHERE name = 'nodes'"
        con = apsw.Connection(path)
        con.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        con.pragma("writable_schema", True)
        con.create_scalar_function("worlddb_write", lambda *_: 1, 0)
        con.execute(sql, (strict,))
        con.close()
        for statement in edits:
            edit(path, f"{statement} WHERE row > 1")
    with Memory(path, embedder="none") as memory:
        with pytest.raises(CorruptionError):
            memory.read(ident)
        with pytest.raises(CorruptionError):
            memory.recall("Where is the spare key?")


def test_a_setting_turns_it_off(path: str) -> None:
    ident = memory_id(path)
    edit(path, "UPDATE nodes SET content = 'Under the mat.' WHERE content = ?", TEXT)
    with Memory(path, verify_reads=False) as memory:
        assert memory.read(ident).text == "Under the mat."


def test_a_wrong_id_that_begins_like_a_right_one_is_not_damage(path: str) -> None:
    ident = memory_id(path)
    wrong = Id(ident[:31] + bytes([ident[31] ^ 1]))
    with Memory(path) as memory, pytest.raises(worlddb.NotFoundError):
        memory.read(wrong)


def test_a_callers_own_decoding_error_stays_what_it_is(path: str) -> None:
    with worlddb.open(path) as db, pytest.raises(UnicodeDecodeError), db.transaction() as tx:
        tx.create_node(type="Fact", content=b"\xff".decode())


def test_no_flipped_byte_of_the_file_comes_back_as_another_text(path: str, tmp_path: Path) -> None:
    ident = memory_id(path)
    data = Path(path).read_bytes()
    generator = random.Random(7)
    places = [at for at in range(len(data)) if data[at]]
    seen: set[str] = set()
    for number, at in enumerate(generator.sample(places, FLIPS)):
        copy = str(tmp_path / f"{number}.db")
        shutil.copyfile(path, copy)
        with open(copy, "r+b") as file:
            file.seek(at)
            file.write(bytes([data[at] ^ 1 << generator.randrange(8)]))
        try:
            with Memory(copy, embedder="none") as memory:
                texts = [memory.read(ident).text, *(one.text for one in memory.list())]
                texts += [hit.node.content for hit in memory.recall("the spare key and tea")]
            assert set(texts) <= {TEXT, "Bob drinks tea."}, at
            seen.add("sound")
        except WorldDBError as error:
            seen.add(type(error).__name__)
    assert {"sound", "CorruptionError"} <= seen
