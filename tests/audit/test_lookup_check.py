"""check() of names and counts: keys that another program changed are found."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from worlddb import Memory

EDITS = (
    "UPDATE lookups SET key = key + 1 WHERE node = (SELECT max(node) FROM lookups)",
    "UPDATE lookups SET node = 2 WHERE node = (SELECT max(node) FROM lookups)",
    "DELETE FROM lookups WHERE node = (SELECT max(node) FROM lookups)",
    "UPDATE lookups_reached SET node = 99999",
    "UPDATE lookups_reached SET node = 2",
    "UPDATE lookups_reached SET note = -1",
    "UPDATE lookups_worlds SET names = names + 1",
    "UPDATE lookups_worlds SET names = names - 1",
    "UPDATE lookups_worlds SET world = world + 1000",
    "INSERT INTO lookups_moved VALUES (99999)",
    "UPDATE recalls SET node = node + 99999",
    "UPDATE recalls SET count = 0",
    "UPDATE recalls SET last = -1",
)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_of_names_or_counts_is_found(tmp_path: Path, edit: str) -> None:
    path = tmp_path / "store.db"
    with Memory(path, embedder="none", recluster="now") as memory:
        memory.write("My friend Sarah Chen met Tom Berg in Oslo.")
        memory.write("Sarah Chen likes tea.", app_id="shop")
        memory.recall("Sarah Chen")
    with Memory(path, embedder="none") as memory:
        assert memory.db.check() == []
        con = apsw.Connection(str(path))
        con.execute(edit)
        assert con.changes()
        con.close()
        assert [one.place for one in memory.db.check() if one.place.startswith(("lookups", "rec"))]
