"""Table sums: a sum over the rows of every derived table; each transaction adds its changes."""

from __future__ import annotations

from typing import Any

import apsw
from blake3 import blake3

SUMMED = {
    "lookups_reached": 1,
    "lookups": 2,
    "lookups_worlds": 3,
    "lookups_moved": 4,
    "models": 5,
    "vectors": 6,
    "tokens": 7,
    "pools": 8,
    "recalls": 9,
}
"""The tables with a sum, and the number of its row: never changed, files have it."""
_ROW_BYTES = 8  # An integer of SQLite.
FORGET_SUMS = "DELETE FROM lookups_reached WHERE number > 0"
"""The transaction that does this sums all rows again, as they are at its end."""
_READ_SUMS = "SELECT number, node, note FROM lookups_reached WHERE number > 0"
# SQLite has no exclusive or: what is in one of two numbers, without what is in both.
_ADD_SUMS = (
    "UPDATE lookups_reached SET node = (node | ?2) - (node & ?2), note = note + ?3 "
    "WHERE number = ?1"
)
_WRITE_SUMS = "INSERT OR REPLACE INTO lookups_reached VALUES (?, ?, ?)"

Sum = tuple[int, int]  # The hashes of the rows, and how many rows.


def _hash(table: str, row: tuple[Any, ...]) -> Sum:
    """Return what one row adds to the sum of its table."""
    if table == "lookups_reached" and row[0] != 0:
        return 0, 0
    # The text of a tuple of numbers, texts and bytes says each of them exactly.
    digest = blake3(repr(row).encode("utf-8", "surrogatepass")).digest(_ROW_BYTES)
    return int.from_bytes(digest, "big", signed=True), 1


def sum_of(con: apsw.Connection, table: str) -> Sum:
    """Return the sum over the rows of a table as they are."""
    total = rows = 0
    if con.table_exists("main", table):
        for row in con.execute(f"SELECT * FROM {table}"):
            hashed, count = _hash(table, row)
            total, rows = total ^ hashed, rows + count
    return total, rows


class TableSums:
    """What the transaction under way has changed in the sums.

    Vectors, counts and keys have no address that they could be compared with. So each transaction
    of ours adds what it changes in a table to the sum of that table: the hashes of its rows,
    combined by exclusive or. Another program that edits a row does not, and the sum no longer fits.
    The sums lie behind row 0 of `lookups_reached`, whose page nearly every write changes anyway; a
    store that an earlier version wrote has none until the first write.

     The sums are against accidents and strangers' SQL, not against a person who computes them
    again.
    """

    def __init__(self) -> None:
        self._changed: dict[str, Sum] = {}
        self._are_there = False

    def follow(self, con: apsw.Connection) -> None:
        """Note every row that a connection changes."""
        con.preupdate_hook(self._note)

    def _note(self, change: apsw.PreUpdate) -> None:
        table = change.table_name
        if table not in SUMMED or change.database_name != "main":
            return
        total, rows = self._changed.get(table, (0, 0))
        if (old := change.old) is not None:
            hashed, count = _hash(table, old)
            total, rows = total ^ hashed, rows - count
        if (new := change.new) is not None:
            hashed, count = _hash(table, new)
            total, rows = total ^ hashed, rows + count
        self._changed[table] = total, rows

    def begin(self) -> None:
        """Forget what a transaction changed that did not land."""
        self._changed.clear()

    def write(self, con: apsw.Connection) -> None:
        """Write the sums that the transaction has changed; all of them where there are none."""
        changed = self._changed
        if not changed:
            return
        con.preupdate_hook(None)
        try:
            if not self._are_there:
                self._are_there = stored_sums(con).keys() == set(SUMMED)
            if self._are_there:
                added = [(SUMMED[table], *found) for table, found in changed.items()]
                before = con.total_changes()
                con.executemany(_ADD_SUMS, added)
                self._are_there = con.total_changes() - before == len(added)
            if not self._are_there:
                every = [(SUMMED[table], *sum_of(con, table)) for table in SUMMED]
                con.executemany(_WRITE_SUMS, every)
        finally:
            self.follow(con)


def stored_sums(con: apsw.Connection) -> dict[str, Sum]:
    """Return the sums in the file, by table; empty in a store that has none yet."""
    tables = {number: table for table, number in SUMMED.items()}
    return {
        tables.get(number, str(number)): (total, rows)
        for number, total, rows in con.execute(_READ_SUMS)
    }
