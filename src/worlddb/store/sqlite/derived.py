"""Derived: the SQL of embeddings. All of it can be dropped and made again from the nodes.

A model's row says how far it has come: nodes up to `embedded` have a vector, nodes up to `composed`
count in their worlds, as of commit `seq`. One model is active; another may be filling beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import apsw

from worlddb.store.protocol import ModelRow, PoolRow
from worlddb.store.sqlite.staged import IN, among


class Derived:
    """Embeddings as one snapshot has them; inside `store.derive()` they can be written."""

    def __init__(self, con: apsw.Connection) -> None:
        self.con = con

    def models(self) -> list[ModelRow]:
        """Return all models, the active one first."""
        sql = (
            "SELECT number, id, dim, active, pooling, embedded, composed, seq FROM models "
            "ORDER BY active DESC, number"
        )
        return [ModelRow(*row) for row in self.con.execute(sql)]

    def add_model(self, ident: str, dim: int, pooling: str) -> ModelRow:
        """Make room for a model's vectors, of all nodes but the root; the first one is active.

        Whoever erased a model's row by hand may have left vectors under the number it gets.
        """
        self.con.execute(
            "INSERT INTO models (id, dim, active, pooling, embedded, composed, seq) "
            "VALUES (?, ?, (SELECT count(*) = 0 FROM models), ?, 1, 1, -1)",
            (ident, dim, pooling),
        )
        model = next(row for row in self.models() if row.id == ident)
        for table in ("vectors", "tokens", "pools"):
            self.con.execute(f"DELETE FROM {table} WHERE model = ?", (model.number,))
        return model

    def activate(self, number: int) -> None:
        """Make one model the active one and drop all others with their vectors."""
        self.con.execute("DELETE FROM models WHERE number != ?", (number,))
        for table in ("vectors", "tokens", "pools"):
            self.con.execute(f"DELETE FROM {table} WHERE model != ?", (number,))
        self.con.execute("UPDATE models SET active = 1")

    def set_embedded(self, number: int, node: int) -> None:
        """Record up to which node there are vectors."""
        self.con.execute("UPDATE models SET embedded = ? WHERE number = ?", (node, number))

    def set_composed(self, number: int, node: int, seq: int) -> None:
        """Record up to which node, as of which commit, worlds are composed."""
        sql = "UPDATE models SET composed = ?, seq = ? WHERE number = ?"
        self.con.execute(sql, (node, seq, number))

    def start_pools(self, number: int, pooling: str) -> None:
        """Drop what is composed, to compose it again another way."""
        self.con.execute("DELETE FROM pools WHERE model = ?", (number,))
        sql = "UPDATE models SET composed = 1, seq = -1, pooling = ? WHERE number = ?"
        self.con.execute(sql, (pooling, number))

    def vectors(self, number: int, nodes: list[int]) -> list[tuple[int, bytes]]:
        """Return (node, content vector) of those nodes that have one."""
        sql = f"SELECT node, vector FROM vectors WHERE model = ? AND node {IN}"
        return list(self.con.execute(sql, (number, among(nodes))))

    def vectors_after(self, number: int, node: int, seq: int) -> Iterator[tuple[int, bytes]]:
        """Yield (node, effective vector) of nodes from `node` on, and of worlds composed after.

        Each node once: its composed vector, if there is one, before that of its content.
        """
        yield from self.con.execute(
            "SELECT v.node, coalesce(p.vector, v.vector) FROM vectors v LEFT JOIN pools p "
            "ON p.model = v.model AND p.node = v.node WHERE v.model = ? AND v.node >= ? "
            "ORDER BY v.node",
            (number, node),
        )
        yield from self.con.execute(
            "SELECT node, vector FROM pools WHERE model = ? AND seq > ? AND node < ? ORDER BY node",
            (number, seq, node),
        )

    def pools(self, number: int, nodes: list[int]) -> list[PoolRow]:
        """Return the pools of those nodes that are composed worlds."""
        sql = (
            f"SELECT node, children, weight, total, vector FROM pools WHERE model = ? AND node {IN}"
        )
        return [PoolRow(*row) for row in self.con.execute(sql, (number, among(nodes)))]

    def put_vectors(self, number: int, items: Iterable[tuple[int, bytes]]) -> None:
        """Write content vectors."""
        self.con.executemany(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
            ((number, node, vector) for node, vector in items),
        )

    def tokens(self, number: int, nodes: list[int]) -> list[tuple[int, bytes]]:
        """Return (node, token vectors) of those nodes that have any."""
        sql = f"SELECT node, vectors FROM tokens WHERE model = ? AND node {IN}"
        return list(self.con.execute(sql, (number, among(nodes))))

    def without_tokens(self, number: int, after: int, most: int) -> list[int]:
        """Return the first embedded nodes after one that have a text and no token vectors."""
        sql = (
            "SELECT row FROM nodes WHERE row > ?2 "
            "AND row <= (SELECT embedded FROM models WHERE number = ?1) "
            "AND (name != '' OR content != '') "
            "AND row NOT IN (SELECT node FROM tokens WHERE model = ?1) ORDER BY row LIMIT ?3"
        )
        return [row for (row,) in self.con.execute(sql, (number, after, most))]

    def put_tokens(self, number: int, items: Iterable[tuple[int, bytes]]) -> None:
        """Write token vectors."""
        self.con.executemany(
            "INSERT OR REPLACE INTO tokens VALUES (?, ?, ?)",
            ((number, node, vectors) for node, vectors in items),
        )

    def put_pools(self, number: int, pools: Iterable[PoolRow], seq: int) -> None:
        """Write the sums of worlds as composed at commit `seq`."""
        self.con.executemany(
            "INSERT OR REPLACE INTO pools VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((number, *pool, seq) for pool in pools),
        )

    def all_vectors(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield (model, node, content vector) of everything there is, in that order."""
        sql = "SELECT model, node, vector FROM vectors ORDER BY model, node"
        return iter(self.con.execute(sql))

    def all_tokens(self) -> Iterator[tuple[int, int, int]]:
        """Yield (model, node, bytes of its token vectors) of everything there is."""
        return iter(self.con.execute("SELECT model, node, length(vectors) FROM tokens"))

    def all_pools(self) -> Iterator[tuple[int, int, PoolRow]]:
        """Yield (model, commit it was composed at, pool) of everything there is, by node."""
        sql = (
            "SELECT model, seq, node, children, weight, total, vector FROM pools "
            "ORDER BY model, node"
        )
        for number, seq, *pool in self.con.execute(sql):
            yield number, seq, PoolRow(*pool)
