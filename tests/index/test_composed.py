"""Composed worlds: after any history the kept sums are those of a recomposition from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import worlddb
from thinning import examples
from worlddb import Id, NodeDraft, RejectedError, WorldDB
from worlddb.embed.embedder import Pooling
from worlddb.index import composed_worlds, vectors
from worlddb.index.vectors import pooling_label
from worlddb.store.rows import PoolRow
from worlddb.store.tables.derived_tables import EmbeddingTables as Derived

from .exact_texts import ExactEmbedder, exact
from .recomposed import Floats, assert_composed, half, model_row, stored_vectors, stored_worlds

PROGRAMS = settings(derandomize=True, deadline=None, database=None, max_examples=examples(100, 30))
STEPS = (
    *("leaf", "leaf", "world", "many", "move", "move", "unmove", "retire", "supersede"),
    *("commit", "commit", "catch up", "catch up elsewhere"),
)
program = st.lists(
    st.tuples(st.sampled_from(STEPS), st.integers(0, 30), st.integers(0, 30)), max_size=50
)


class Player:
    """Plays a program of steps on a store that two handles have open."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.handles = [
            worlddb.open(path, embedder=ExactEmbedder(), durability="normal", **options)
            for _ in range(2)
        ]
        self.root = self.handles[0].root_id
        self.nodes: list[Id] = [self.root]
        self.moves: list[Id] = []
        self.waiting: list[tuple[str, int, int]] = []
        self.count = 0

    def play(self, steps: list[tuple[str, int, int]]) -> None:
        """Play all steps; those between two commits land together."""
        for step in [*steps, ("commit", 0, 0)]:
            if step[0] == "catch up":
                self.handles[0].reindex()
            elif step[0] == "catch up elsewhere":
                self.handles[1].reindex()
            elif step[0] == "commit":
                self.commit()
            else:
                self.waiting.append(step)

    def commit(self) -> None:
        """Write what is waiting as one commit; a handler that refuses takes it all back."""
        nodes, moves = list(self.nodes), list(self.moves)
        try:
            with self.handles[self.count % 2].transaction(bulk=self.count % 5 == 4) as tx:
                for name, one, other in self.waiting:
                    self.step(tx, name, one, other)
        except RejectedError:
            self.nodes, self.moves = nodes, moves
        self.waiting = []
        self.count += 1

    def step(self, tx: worlddb.Transaction, name: str, one: int, other: int) -> None:
        """Do one thing to the nodes that two numbers name, counted from the newest."""
        left, right = (
            self.nodes[-1 - one % len(self.nodes)],
            self.nodes[-1 - other % len(self.nodes)],
        )
        if name == "leaf":
            self.add(tx, type="Fact", parent=left)
        elif name == "world":
            # Made in the root, so that it can be moved.
            self.add(tx, type="Topic")
        elif name == "many":
            drafts = [
                NodeDraft(type="Fact", name=f"{self.count} {len(self.nodes)} {i}", parent=left)
                for i in range(1 + other % 7)
            ]
            self.nodes += tx.create_nodes(drafts)
        elif name == "move" and right != self.root:
            self.moves.append(tx.write_edge("contains", left, right).id)
        elif name == "unmove" and self.moves:
            edge = self.moves[one % len(self.moves)]
            self.moves = [other for other in self.moves if other != edge]
            tx.delete_edge(edge)
        elif name == "retire" and left != self.root:
            tx.retire(left)
        elif name == "supersede" and self.root not in (left, right):
            tx.write_edge("supersedes", left, right)

    def add(self, tx: worlddb.Transaction, **fields: Any) -> None:
        """Make a node with a name of its own."""
        name = f"node {self.count} {len(self.nodes)}"
        self.nodes.append(tx.create_node(name=name, **fields).id)

    def close(self) -> None:
        """Let go of the file."""
        for handle in self.handles:
            handle.close()


@pytest.mark.parametrize("pooling", ["attention", "mean"])
@pytest.mark.parametrize("batch", [3, 2048])
def test_after_any_history_the_sums_are_those_of_a_recomposition_from_scratch(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    pooling: str,
    batch: int,
) -> None:
    monkeypatch.setattr(vectors, "EMBED_BATCH", batch)
    monkeypatch.setattr(composed_worlds, "COMPOSE_BATCH", 2 if batch == 3 else 4096)

    @PROGRAMS
    @given(program)
    def run(steps: list[tuple[str, int, int]]) -> None:
        player = Player(tmp_path_factory.mktemp("history") / "store.db", pooling=pooling)
        try:
            player.play(steps)
            for handle in player.handles:
                handle.reindex()
                assert_composed(handle, pooling)
            assert handle.check() == []
        finally:
            player.close()

    run()


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:", embedder=ExactEmbedder()) as opened:
        yield opened


def make(db: WorldDB, *names: str, parent: Id | None = None) -> list[Id]:
    """Make nodes of one world in one commit."""
    with db.transaction() as tx:
        return [tx.create_node(type="Fact", name=name, parent=parent).id for name in names]


def row_of(db: WorldDB, ident: Id) -> int:
    with db.engine.store.read() as reader:
        row = reader.node_row(ident)
    assert row is not None
    return row


class Written(list[int]):
    """The rows of the pools that were written, in order."""


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    """Watch which pools are written."""
    rows = Written()
    put = Derived.put_pools

    def watch(self: Derived, number: int, pools: Iterable[PoolRow], seq: int) -> None:
        kept = list(pools)
        rows.extend(pool.node for pool in kept)
        put(self, number, kept, seq)

    monkeypatch.setattr(Derived, "put_pools", watch)
    return rows


def test_an_old_node_moved_into_a_new_world_counts_there_and_the_new_world_counts_once(
    db: WorldDB,
) -> None:
    (outer,) = make(db, "outer")
    make(db, "sibling", parent=outer)
    (old,) = make(db, "old")
    db.reindex()
    with db.transaction() as tx:
        inner = tx.create_node(type="Topic", name="inner", parent=outer).id
        tx.write_edge("contains", inner, old)
    db.reindex()
    worlds = stored_worlds(db)
    assert {row_of(db, outer): 2, row_of(db, inner): 1} == {
        row: world.children for row, world in worlds.items()
    }
    assert_composed(db)


def test_a_world_that_is_embedded_after_its_children_is_composed_around_its_own_content(
    db: WorldDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    children = make(db, "first", "second", "third")
    (world,) = make(db, "the world")
    with db.transaction() as tx:
        for child in children:
            tx.write_edge("contains", world, child)
    monkeypatch.setattr(vectors, "EMBED_BATCH", 2)
    db.reindex()
    assert stored_worlds(db)[row_of(db, world)].children == 3
    assert_composed(db)


def test_a_node_that_leaves_a_world_before_that_was_embedded_takes_nothing_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = ExactEmbedder(fails_after=4)
    with worlddb.open(tmp_path / "store.db", embedder=failing) as db:
        node, outer, *_ = make(db, "node", "outer", "more", "and more")
        (world,) = make(db, "world", parent=outer)
        with db.transaction() as tx:
            edge = tx.write_edge("contains", world, node)
        monkeypatch.setattr(vectors, "EMBED_BATCH", 4)
        with pytest.raises(worlddb.ProviderError):
            db.reindex()
        assert model_row(db).embedded == 5
        with db.transaction() as tx:
            tx.delete_edge(edge.id)
            tx.write_edge("contains", outer, node)
        failing.fails_after = None
        db.reindex()
        assert {w.children for w in stored_worlds(db).values()} == {2}
        assert_composed(db)


def test_children_that_came_and_went_leave_no_trace(db: WorldDB) -> None:
    (world,) = make(db, "world")
    first = make(db, "stays", parent=world)
    db.reindex()
    before = stored_worlds(db)
    for number in range(5):
        passing = make(db, *(f"{number} {i}" for i in range(20)), parent=world)
        db.reindex()
        assert stored_worlds(db)[row_of(db, world)].children == 21
        with db.transaction() as tx:
            for node in passing:
                tx.retire(node)
        db.reindex()
    after = stored_worlds(db)
    assert after.keys() == before.keys()
    row = row_of(db, world)
    assert np.array_equal(after[row].vector, before[row].vector)
    with db.transaction() as tx:
        tx.retire(first[0])
    db.reindex()
    assert stored_worlds(db) == {}
    assert_composed(db)


def test_search_sees_the_content_again_of_a_world_that_lost_its_last_child(db: WorldDB) -> None:
    (world,) = make(db, "world")
    (child,) = make(db, "child", parent=world)
    db.reindex()
    row, model = row_of(db, world), model_row(db)
    with db.engine.store.read() as reader:
        composed_vector = dict(reader.derived.vectors_after(model.number, 0, -1))[row]
    with db.transaction() as tx:
        tx.retire(child)
    db.reindex()
    with db.engine.store.read() as reader:
        # What an index that followed up to then gets: the emptied world must be in it.
        news = dict(reader.derived.vectors_after(model.number, model.embedded + 1, model.seq))
        loaded = db.engine.search.vectors().load(reader, [row])[0]
    content = half(exact("world").astype(np.float64))
    assert np.array_equal(np.frombuffer(news[row], "<f2"), content)
    assert np.array_equal(loaded, content)
    assert news[row] != composed_vector


@pytest.mark.parametrize(("depth", "siblings"), [(1, 1), (1, 400), (3, 1), (3, 40), (7, 1)])
def test_one_new_leaf_writes_as_many_pools_as_there_are_worlds_around_it(
    db: WorldDB, written: Written, depth: int, siblings: int
) -> None:
    path: list[Id] = []
    for level in range(depth):
        path += make(db, f"level {level}", parent=path[-1] if path else None)
        make(db, *(f"{level} {number}" for number in range(siblings)), parent=path[-1])
    db.reindex()
    written.clear()
    make(db, "the new leaf", parent=path[-1])
    db.reindex()
    around = [row_of(db, world) for world in reversed(path)]
    # What half precision does not show in a world does not change the worlds around it.
    assert written
    assert written == around[: len(written)]
    assert_composed(db)


def test_what_changes_no_child_writes_no_pool(db: WorldDB, written: Written) -> None:
    (world,) = make(db, "world")
    left, right = make(db, "left", "right", parent=world)
    db.reindex()
    written.clear()
    with db.transaction() as tx:
        tx.write_edge("refers_to", left, right)
        tx.add_aliases(left, ["gauche"])
    make(db, "in the root")
    db.reindex()
    assert written == []
    assert model_row(db).seq == db.log(limit=1, newest_first=True)[0].seq


def test_a_nest_of_two_thousand_worlds_is_composed_and_follows_its_innermost_leaf(
    db: WorldDB,
) -> None:
    depth = 2_000
    parent: Id | None = None
    with db.transaction() as tx:
        for level in range(depth):
            parent = tx.create_node(type="Topic", name=f"level {level}", parent=parent).id
    db.reindex()
    assert len(stored_worlds(db)) == depth - 1
    (leaf,) = make(db, "innermost", parent=parent)
    db.reindex()
    assert len(stored_worlds(db)) == depth
    with db.transaction() as tx:
        tx.retire(leaf)
    db.reindex()
    assert len(stored_worlds(db)) == depth - 1
    assert_composed(db)


def test_the_root_is_never_composed_nor_embedded(db: WorldDB) -> None:
    make(db, "one", "two")
    db.reindex()
    assert stored_worlds(db) == {}
    assert sorted(stored_vectors(db)) == [2, 3]


def test_a_world_without_words_takes_its_vector_from_its_children_alone(db: WorldDB) -> None:
    with db.transaction() as tx:
        world = tx.create_node(type="Scope").id
        tx.create_node(type="Fact", name="child", parent=world)
    db.reindex()
    row = row_of(db, world)
    assert not any(stored_vectors(db)[row])
    assert np.allclose(stored_worlds(db)[row].vector, exact("child"), atol=1e-3)


@pytest.mark.parametrize("pooling", ["attention", "mean"])
def test_composing_again_from_nothing_changes_nothing(tmp_path: Path, pooling: Pooling) -> None:
    with worlddb.open(
        tmp_path / "store.db", embedder=ExactEmbedder(), pooling=pooling, durability="normal"
    ) as db:
        parent: Id | None = None
        for level in range(4):
            (parent,) = make(db, f"level {level}", parent=parent)
            make(db, *(f"{level} {number}" for number in range(5)), parent=parent)
            db.reindex()
        before = stored_worlds(db)
        number = model_row(db).number
        for _ in range(3):
            with db.engine.store.derive() as session:
                session.derived.start_pools(number, pooling_label(pooling))
            db.reindex()
        after = stored_worlds(db)
        assert after.keys() == before.keys()
        for row, world in after.items():
            assert np.abs(world.vector - before[row].vector).max() < 1e-3
        assert_composed(db, pooling)


def test_another_pooling_recomposes_and_the_first_one_back_again_gives_the_same(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    found: list[Floats] = []
    poolings: tuple[Pooling, ...] = ("attention", "mean", "attention")
    for pooling in poolings:
        counting = ExactEmbedder()
        with worlddb.open(path, embedder=counting, pooling=pooling) as db:
            if not found:
                (world,) = make(db, "world")
                make(db, "one", "two", "three", parent=world)
            db.recall("one")
            assert model_row(db).pooling == pooling_label(pooling)
            assert counting.documents.total() == (0 if found else 4)
            assert_composed(db, pooling)
            found.append(stored_worlds(db)[row_of(db, world)].vector)
    assert np.array_equal(found[0], found[2])
    assert not np.allclose(found[0], found[1], atol=1e-2)
