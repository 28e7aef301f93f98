"""Changes of sets that wait for their pages: nobody can tell, whoever writes or reads next."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

import worlddb
from worlddb import Id, NodeDraft, RejectedError, WorldDB, verify_proof
from worlddb.store.tables import derived_tables as set_pages_table

STEPS = 150


def waiting(path: Path) -> int:
    """Return how many commits wait for their pages."""
    con = apsw.Connection(str(path))
    try:
        return int(con.execute("SELECT count(*) FROM waiting").get)
    finally:
        con.close()


def assert_proven(db: WorldDB, nodes: list[Id]) -> None:
    """Check the way from each node to the root, as a stranger would."""
    assert all(verify_proof(db.prove(node), db.root_state) for node in nodes)


class Life:
    """Random commits: new nodes and edges, deleted ones, nodes that move, and refusals."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.nodes: list[Id] = []
        self.edges: list[Id] = []
        self.number = 0

    def step(self, db: WorldDB) -> None:
        """Make one commit, or fail to."""
        self.number += 1
        kind = self.rng.choice((self.grow, self.grow, self.grow, self.move, self.cut, self.refuse))
        kind(db)

    def grow(self, db: WorldDB) -> None:
        """Add nodes somewhere, with edges to others."""
        parent = self.rng.choice([None, *self.nodes])
        count = self.rng.choice((1, 1, 1, 3, 90))
        with db.transaction() as tx:
            new = tx.create_nodes(
                NodeDraft(type="Fact", name=f"{self.number} {i}", parent=parent)
                for i in range(count)
            )
            for other in self.rng.sample(self.nodes, min(2, len(self.nodes))):
                self.edges.append(tx.write_edge("refers_to", new[0], other).id)
        self.nodes += new[:2]

    def move(self, db: WorldDB) -> None:
        """Give a node another home, or send it back to the root; a circle is refused."""
        if len(self.nodes) < 2:
            return
        world, node = self.rng.sample(self.nodes, 2)
        with suppress(RejectedError), db.transaction() as tx:
            edge = tx.write_edge("contains", world, node)
            if self.rng.random() < 0.3:
                tx.delete_edge(edge.id)
            else:
                self.edges.append(edge.id)

    def cut(self, db: WorldDB) -> None:
        """Delete an edge."""
        if self.edges:
            edge = self.edges.pop(self.rng.randrange(len(self.edges)))
            with db.transaction() as tx:
                tx.delete_edge(edge)

    def refuse(self, db: WorldDB) -> None:
        """Write something, then leave it."""
        with suppress(ZeroDivisionError), db.transaction() as tx:
            tx.create_node(type="Fact", name="never there")
            raise ZeroDivisionError


@pytest.mark.parametrize("most", [0, 9, 256])
@pytest.mark.parametrize("seed", range(2))
def test_writers_that_take_turns_agree_on_every_state(
    path: Path, monkeypatch: pytest.MonkeyPatch, most: int, seed: int
) -> None:
    monkeypatch.setattr(set_pages_table, "WAITING_MAX", most)
    life = Life(seed)
    stores = [worlddb.open(path, durability="normal") for _ in range(3)]
    try:
        for step in range(STEPS):
            life.step(life.rng.choice(stores))
            if step % 10 == 0:
                sample = life.rng.sample(life.nodes, min(5, len(life.nodes)))
                assert_proven(life.rng.choice(stores), sample)
            if step % 30 == 0:
                assert stores[0].check() == []
        assert stores[0].check() == []
        lines = list(stores[1].export())
    finally:
        for store in stores:
            store.close()
    with worlddb.open(":memory:") as alone:
        alone.replay(lines)
        assert list(alone.export()) == lines
        assert alone.check() == []


def test_what_waits_is_there_when_the_store_is_opened_again(path: Path) -> None:
    life = Life(3)
    for _ in range(12):
        with worlddb.open(path, durability="normal") as db:
            assert_proven(db, life.nodes[:10])
            for _ in range(4):
                life.step(db)
            assert_proven(db, life.nodes[-10:])
            assert db.check() == []
        with worlddb.open(path, read_only=True) as db:
            assert_proven(db, life.nodes[-10:])


def test_only_so_many_changes_wait(path: Path) -> None:
    seen = set()
    with worlddb.open(path, durability="normal") as db:
        for number in range(600):
            with db.transaction() as tx:
                tx.create_node(type="Fact", name=f"{number}")
            seen.add(waiting(path))
        # One member a commit: all numbers up to the limit, and after it none waits.
        assert seen == set(range(set_pages_table.WAITING_MAX + 1))
        assert db.check() == []


def test_a_small_commit_into_a_large_world_writes_few_pages(path: Path) -> None:
    def pages() -> set[tuple[object, ...]]:
        con = apsw.Connection(str(path))
        try:
            return set(con.execute("SELECT world, kind, path, body FROM pages"))
        finally:
            con.close()

    with worlddb.open(path, durability="normal") as db:
        with db.transaction(bulk=True) as tx:
            tx.create_nodes([NodeDraft(type="Fact", name=f"{i}") for i in range(8_000)])
        before, written = pages(), []
        for _ in range(200):
            add(db)
            if waiting(path) == 0:
                after = pages()
                written.append(len(after - before))
                before = after
        # Without the limit the members would be 200 by now, and nothing written.
        assert len(written) >= 2
        assert max(written) <= set_pages_table.UNWRITTEN_MAX + 8  # And those of one commit.
        assert db.check() == []


def test_a_large_commit_writes_its_pages_at_once(path: Path) -> None:
    with worlddb.open(path, durability="normal") as db:
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="small")
        assert waiting(path) == 1
        with db.transaction() as tx:
            tx.create_nodes(NodeDraft(type="Fact", name=f"{i}") for i in range(1_000))
        assert waiting(path) == 0
        assert db.check() == []


def test_what_waits_and_was_damaged_is_never_built_upon(path: Path) -> None:
    with worlddb.open(path, durability="normal") as db, db.transaction() as tx:
        node = tx.create_node(type="Fact", name="one")
    con = apsw.Connection(str(path))
    con.create_scalar_function("worlddb_write", lambda *_: 1, 0)
    body = bytearray(con.execute("SELECT body FROM waiting").get)
    body[40] ^= 1
    con.execute("UPDATE waiting SET body = ?", (bytes(body),))
    con.close()
    with worlddb.open(path) as db:
        with pytest.raises(worlddb.CorruptionError, match="restore a backup"):
            db.prove(node.id)
        with pytest.raises(worlddb.CorruptionError, match="restore a backup"):
            add(db)
        assert db.check() != []
        assert len(db.log()) == 2


def add(db: WorldDB) -> None:
    """Add a node."""
    with db.transaction() as tx:
        tx.create_node(type="Fact", name="another")
