"""Texts: the SQL of the full-text index. Words come analysed; none of them is ever syntax."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import apsw

COUNTED_MAX = 2_000


def any_of(words: Iterable[str]) -> str:
    """Return the FTS5 expression for any of these words."""
    return " OR ".join(f'"{word}"' for word in words)


class Texts:
    """The words of every node, as one snapshot has them."""

    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def counts(self, words: Sequence[str], nodes: int) -> dict[str, int]:
        """Return in how many of `nodes` each word occurs.

        Counting a common word would take longer than the search. So only the first that have it
        are counted, and how far down the store those reach says how many there are in all.
        """
        sql = (
            "SELECT count(*), max(rowid) FROM (SELECT rowid FROM texts WHERE texts MATCH ? LIMIT ?)"
        )
        found = {}
        for word in words:
            count, last = next(self.con.execute(sql, (f'"{word}"', COUNTED_MAX)))
            found[word] = count if count < COUNTED_MAX else max(count, count * nodes // last)
        return found

    def match(self, words: Sequence[str], most: int) -> list[tuple[int, float]]:
        """Return (row, score) of the nodes that have any of these words, best first."""
        found = self.con.execute(
            "SELECT rowid, -rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?",
            (any_of(words), most),
        )
        return list(found)

    def match_all(self, words: Sequence[str], phrase: bool, most: int) -> list[tuple[int, float]]:
        """Return (row, score) of nodes that have all words, or have them in a row, best first."""
        wanted = f'"{" ".join(words)}"' if phrase else " AND ".join(f'"{word}"' for word in words)
        sql = "SELECT rowid, -rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
        return list(self.con.execute(sql, (wanted, most)))

    def latest(self, words: Sequence[str], most: int) -> list[int]:
        """Return the rows of the newest nodes that have all of these words."""
        all_of = " AND ".join(f'"{word}"' for word in words)
        found = self.con.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid DESC LIMIT ?",
            (all_of, most),
        )
        return [row for (row,) in found]

    def named(self, words: str) -> list[int]:
        """Return the rows of the nodes whose name has these words one after the other."""
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid"
        return [row for (row,) in self.con.execute(sql, (f'name : "{words}"',))]

    def average_length(self) -> float:
        """Return how many words a node has on average."""
        body = self.con.execute("SELECT block FROM texts_data WHERE id = 1").get
        nodes, *columns = _varints(body if isinstance(body, bytes) else b"")
        return sum(columns) / nodes if nodes else 0.0


def _varints(body: bytes) -> list[int]:
    """Return the numbers of FTS5's record of totals: nodes, then words per column."""
    numbers, value = [], 0
    for byte in body:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers or [0]
