"""Worlds: made, nested, filled, moved; their states, their proofs, and their journal."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import worlddb
from worlddb import (
    AsOf,
    ConflictError,
    CorruptionError,
    Id,
    InvalidInputError,
    Node,
    NodeDraft,
    NotFoundError,
    WorldDB,
    verify_proof,
)

AT = "2025-01-01T00:00:00+00:00"
START = datetime(2026, 1, 1, tzinfo=UTC)
LEVELS = 10_000


class Clock:
    """A clock that is a second later each time it is read."""

    def __init__(self) -> None:
        self.seconds = 0

    def __call__(self) -> int:
        self.seconds += 1
        return int(START.timestamp() + self.seconds) * 1_000_000


@pytest.fixture
def db() -> Iterator[WorldDB]:
    with worlddb.open(":memory:", clock=Clock(), busy_timeout_s=0.5) as db:
        yield db


def make(db: WorldDB, *names: str, parent: Id | None = None) -> list[Id]:
    """Create a fact for each name, in one commit."""
    with db.transaction() as tx:
        return [
            tx.create_node(type="Fact", name=name, created_at=AT, parent=parent).id
            for name in names
        ]


def names(nodes: list[Node]) -> list[str]:
    return [node.name for node in nodes]


# -- creating --------------------------------------------------------------------------------------


def test_a_new_store_is_a_root_world_and_nothing_else(db: WorldDB) -> None:
    root = db.get(db.root_id)
    assert (root.type, root.name, root.content, root.parent) == ("World", "root", "", None)
    assert root.state == root.id == db.root_id == db.root_state
    assert db.children() == []
    assert len(db.query().execute()) == 0
    assert [(commit.seq, commit.actor) for commit in db.log()] == [(0, "worlddb")]
    assert db.check() == []


def test_a_node_comes_back_as_it_was_made(db: WorldDB) -> None:
    with db.transaction(actor="me") as tx:
        world = tx.create_node(type="Topic", name="Tesla", content="cars", created_at=AT)
        made = tx.create_node(
            type="Fact",
            name="n",
            content="c",
            parent=world.id,
            valid_from="2024-01-01T00:00:00+02:00",
            valid_to="2027-01-01T00:00:00Z",
            created_at=AT,
            source=["chat 1", "chat 2", "chat 1"],
            aliases=["one", "two"],
        )
    node = db.get(made.id)
    assert node == made
    assert node.parent == world.id
    assert node.created_at == datetime(2025, 1, 1, tzinfo=UTC)
    assert node.valid_from == datetime(2023, 12, 31, 22, tzinfo=UTC)
    assert node.valid_to == datetime(2027, 1, 1, tzinfo=UTC)
    assert node.known_from == db.log()[-1].time
    assert node.known_to is None
    assert node.aliases == ("one", "two")
    assert node.provenance == ("chat 1", "chat 2")


def test_a_node_made_with_nothing_said_begins_with_its_commit(db: WorldDB) -> None:
    with db.transaction() as tx:
        node = tx.create_node(type="Fact")
    assert node.created_at == node.valid_from == node.known_from == db.log()[-1].time
    assert (node.name, node.content, node.valid_to, node.parent) == ("", "", None, db.root_id)


def test_a_node_is_found_by_its_id_in_every_form(db: WorldDB) -> None:
    (ident,) = make(db, "a")
    for given in (ident, bytes(ident), str(ident), str(ident).upper(), str(ident)[:4], ident.short):
        assert db.get(given).id == ident
        assert db.children(given) == []


def test_children_come_in_the_order_of_writing(db: WorldDB) -> None:
    (world,) = make(db, "w")
    letters = list("qertyuiopa")
    for letter in letters:
        make(db, letter, parent=world)
    assert names(db.children(world)) == letters
    assert names(db.children()) == ["w"]


def test_worlds_may_be_filled_by_prefix_and_within_one_transaction(db: WorldDB) -> None:
    with db.transaction() as tx:
        outer = tx.create_node(type="Topic", name="outer", created_at=AT)
        inner = tx.create_node(type="Topic", name="inner", created_at=AT, parent=str(outer.id)[:10])
        ids = tx.create_nodes(
            [NodeDraft(type="Fact", name=str(n), parent=inner.id) for n in range(3)]
        )
        edge = tx.write_edge("refers_to", str(ids[0])[:12], ids[1].short)
    assert [node.id for node in db.children(inner.id)] == ids
    assert db.edges(ids[0]) == [edge]
    assert db.check() == []


# -- the same node twice ---------------------------------------------------------------------------


def test_the_same_node_created_twice_is_one(db: WorldDB) -> None:
    (first,) = make(db, "a")
    commits, state = len(db.log()), db.root_state
    assert make(db, "a") == [first]
    assert len(db.log()) == commits  # Nothing new was said, so there is no commit.
    with db.transaction() as tx:
        twice = tx.create_nodes([NodeDraft(type="Fact", name="a", created_at=AT)] * 3)
    assert twice == [first] * 3
    assert db.root_state == state
    assert len(db.children()) == 1


def test_the_same_node_created_twice_in_one_batch_is_one(db: WorldDB) -> None:
    with db.transaction() as tx:
        ids = tx.create_nodes([NodeDraft(type="Fact", name="a", created_at=AT)] * 3)
        again = tx.create_node(type="Fact", name="a", created_at=AT)
    assert set(ids) == {again.id}
    assert len(db.children()) == 1
    assert db.check() == []


def test_a_node_created_again_gathers_aliases_and_sources(db: WorldDB) -> None:
    for aliases, source in ((["x"], "one"), (["y", "x"], "two"), ([], "one")):
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="a", created_at=AT, aliases=aliases, source=source)
    (node,) = db.children()
    assert node.aliases == ("x", "y")
    assert node.provenance == ("one", "two")
    assert len(db.log()) == 3
    then = db.get(node.id, as_of=AsOf(known=db.log()[1].time))
    assert (then.aliases, then.provenance) == (("x",), ("one",))


def test_a_node_created_again_in_one_batch_gathers_each_alias_once(db: WorldDB) -> None:
    drafts = [
        NodeDraft(type="Fact", name="a", created_at=AT, aliases=["x"], source="s"),
        NodeDraft(type="Fact", name="a", created_at=AT, aliases=["x", "y"], source="s"),
    ]
    with db.transaction() as tx:
        tx.create_nodes(drafts)
    (node,) = db.children()
    assert node.aliases == ("x", "y")
    assert node.provenance == ("s",)
    lines = list(db.export())
    with worlddb.open(":memory:") as copy:
        copy.replay(lines)
        assert copy.get(node.id) == node
    assert db.check() == []


def test_without_a_time_of_creation_two_equal_nodes_are_two(db: WorldDB) -> None:
    with db.transaction() as tx:
        ids = [tx.create_node(type="Fact", name="a", content="c").id for _ in range(50)]
        ids += tx.create_nodes([NodeDraft(type="Fact", name="a", content="c")] * 50)
    assert len(set(ids)) == 100
    assert len(db.children()) == 100
    now = db.log()[-1].time
    assert all(now - timedelta(minutes=5) < node.created_at <= now for node in db.children())
    assert all(node.valid_from == node.created_at for node in db.children())
    assert db.check() == []


def test_equal_nodes_of_different_worlds_are_different_nodes(db: WorldDB) -> None:
    one, two = make(db, "one", "two")
    (node,) = make(db, "a", parent=one)
    others = [make(db, "a", parent=parent)[0] for parent in (two, node, None)]
    assert len({node, *others}) == 4
    before = list(db.export())
    assert make(db, "a", parent=one) == [node]
    assert [make(db, "a", parent=parent)[0] for parent in (two, node, db.root_id)] == others
    assert list(db.export()) == before
    assert [db.get(it).parent for it in (node, *others)] == [one, two, node, db.root_id]


def test_an_equal_node_is_found_where_it_was_moved_to_unless_it_has_ended(db: WorldDB) -> None:
    (world,) = make(db, "w")
    (node,) = make(db, "a")
    with db.transaction() as tx:
        tx.write_edge("contains", world, node)
    assert make(db, "a") == make(db, "a", parent=world) == [node]
    with db.transaction() as tx:
        tx.retire(node)
    (again,) = make(db, "a")
    assert again != node
    assert make(db, "a") == [again]
    with db.transaction() as tx:  # Within one transaction, too.
        made = [tx.create_node(type="Fact", name="b", created_at=AT).id for _ in range(2)]
        tx.retire(made[0])
        made.append(tx.create_node(type="Fact", name="b", created_at=AT).id)
    assert made[0] == made[1] != made[2]
    assert db.check() == []


def test_a_scope_lives_in_one_world_only(db: WorldDB) -> None:
    (world,) = make(db, "w")
    with db.transaction() as tx:
        scope = tx.create_node(type="Scope", name="user:ada", created_at=AT)
        assert tx.create_node(type="Scope", name="user:ada", created_at=AT).id == scope.id
        with pytest.raises(ConflictError, match=r"lives in another world.*contains"):
            tx.create_node(type="Scope", name="user:ada", created_at=AT, parent=world)
    with worlddb.open(":memory:") as other, other.transaction() as tx:
        assert tx.create_node(type="Scope", name="user:ada", created_at=AT).id == scope.id


def test_the_root_world_can_be_named_like_any_other(db: WorldDB) -> None:
    epoch = "1970-01-01T00:00:00Z"
    with db.transaction() as tx:
        again = tx.create_node(type="World", name="root", created_at=epoch, aliases=["all"])
        tx.create_node(type="Fact", name="a", parent=db.root_id)
    assert again.id == db.root_id
    assert db.get(db.root_id).aliases == ("all",)
    assert names(db.children()) == ["a"]
    assert db.check() == []


# -- aliases and provenance ------------------------------------------------------------------------


def test_aliases_and_sources_can_be_added_and_are_said_once(db: WorldDB) -> None:
    (node,) = make(db, "a")
    state = db.root_state
    with db.transaction() as tx:
        tx.add_aliases(node, ["x", "y", "x"])
        tx.add_aliases(node, "x")
        tx.add_source(node, "chat")
        tx.add_source(node, ["chat", "mail"])
    assert db.get(node).aliases == ("x", "y")
    assert db.get(node).provenance == ("chat", "mail")
    assert db.root_state == state  # They are about the node, and not part of its address.
    with db.transaction() as tx:
        tx.add_aliases(node, ["y"])
    assert len(db.log()) == 3
    assert db.check() == []


# -- states ----------------------------------------------------------------------------------------


@pytest.fixture
def tree(db: WorldDB) -> dict[str, Id]:
    """Make two branches: a ⊃ b ⊃ c, and x ⊃ y, each with a leaf beside it."""
    ids: dict[str, Id] = {}
    with db.transaction() as tx:
        for parent, name in ((None, "a"), ("a", "b"), ("b", "c"), (None, "x"), ("x", "y")):
            ids[name] = tx.create_node(
                type="Topic", name=name, created_at=AT, parent=ids[parent] if parent else None
            ).id
            leaf = f"{name} leaf"
            ids[leaf] = tx.create_node(
                type="Fact", name=leaf, created_at=AT, parent=ids[parent] if parent else None
            ).id
    ids["root"] = db.root_id
    return ids


def states(db: WorldDB, ids: dict[str, Id], as_of: AsOf = worlddb.NOW) -> dict[str, Id]:
    return {name: db.get(ident, as_of=as_of).state for name, ident in ids.items()}


def test_a_leaf_has_its_id_for_a_state(db: WorldDB, tree: dict[str, Id]) -> None:
    for name, state in states(db, tree).items():
        assert (state == tree[name]) == (name.endswith("leaf") or name in "cy"), name


@pytest.mark.parametrize(
    ("world", "changed"),
    [("c", {"c", "b", "a", "root"}), ("y", {"y", "x", "root"}), ("b", {"b", "a", "root"})],
)
@pytest.mark.parametrize("what", ["child", "edge", "many"])
def test_a_change_gives_a_new_state_to_every_ancestor_and_to_no_one_else(
    db: WorldDB, tree: dict[str, Id], world: str, changed: set[str], what: str
) -> None:
    if what == "edge":
        make(db, "from", parent=tree[world])
    before = states(db, tree)
    source = db.children(tree[world])[-1].id if what == "edge" else None
    with db.transaction() as tx:
        if source:
            tx.write_edge("refers_to", source, tree["root"])
        for number in range({"child": 1, "edge": 0, "many": 30}[what]):
            tx.create_node(type="Fact", name=f"new {number}", parent=tree[world])
    after = states(db, tree)
    assert {name for name in tree if before[name] != after[name]} == changed
    assert after["root"] == db.root_state == db.log()[-1].root_state


def test_a_world_has_one_new_state_a_commit_however_much_it_changed(
    db: WorldDB, tree: dict[str, Id]
) -> None:
    with db.transaction() as tx:
        for number in range(20):
            tx.create_node(type="Fact", name=f"new {number}", parent=tree["c"])
            tx.create_node(type="Fact", name=f"new {number}", created_at=AT, parent=tree["y"])
    history = [
        states(db, tree, AsOf(known=commit.time))["root"] for commit in db.log() if commit.seq
    ]
    assert history == [commit.root_state for commit in db.log() if commit.seq]
    between = db.log()[-1].time - timedelta(microseconds=1)
    assert states(db, tree, AsOf(known=between))["root"] == history[-2]
    assert db.check() == []


def test_what_an_edge_points_at_keeps_its_state(db: WorldDB, tree: dict[str, Id]) -> None:
    before = states(db, tree)
    with db.transaction() as tx:
        tx.write_edge("refers_to", tree["x leaf"], tree["c"])
    after = states(db, tree)
    assert {name for name in tree if before[name] != after[name]} == {"root"}


def test_validity_and_aliases_change_no_state(db: WorldDB, tree: dict[str, Id]) -> None:
    before = states(db, tree)
    with db.transaction() as tx:
        tx.retire(tree["c"])
        tx.add_aliases(tree["b"], ["bee"])
    assert states(db, tree) == before
    assert db.log()[-1].root_state == db.log()[-2].root_state
    assert db.log()[-1].hash != db.log()[-2].hash


def test_equal_interiors_have_equal_states_whatever_the_order_of_writing() -> None:
    def build(order: list[str]) -> Id:
        with worlddb.open(":memory:", random_bytes=bytes) as db:
            (world,) = make(db, "w")
            for name in order:
                make(db, name, parent=world)
            return db.get(world).state

    letters = [f"n{number}" for number in range(40)]
    assert build(letters) == build(letters[::-1]) == build(letters[20:] + letters[:20])
    assert build(letters) != build(letters[1:])


# -- moving ----------------------------------------------------------------------------------------


def test_moving_there_and_back_restores_every_digest(db: WorldDB, tree: dict[str, Id]) -> None:
    make(db, *(f"n{number}" for number in range(150)), parent=tree["x"])
    before = states(db, tree)
    with db.transaction() as tx:
        edge = tx.write_edge("contains", tree["y"], tree["a"])
    during = states(db, tree)
    assert {name for name in tree if before[name] != during[name]} == {"y", "x", "root"}
    assert db.get(tree["c"]).state == before["c"]
    assert verify_proof(db.prove(tree["c leaf"]), db.root_state)
    assert db.check() == []
    with db.transaction() as tx:
        tx.delete_edge(edge.id)
    assert states(db, tree) == before
    assert db.check() == []


def test_moving_there_and_back_in_one_commit_changes_nothing(
    db: WorldDB, tree: dict[str, Id]
) -> None:
    before = states(db, tree)
    with db.transaction() as tx:
        tx.delete_edge(tx.write_edge("contains", tree["y"], tree["a"]).id)
    assert states(db, tree) == before
    assert db.log()[-1].root_state == db.log()[-2].root_state
    assert db.check() == []


def test_a_node_is_moved_in_the_commit_that_made_it(db: WorldDB, tree: dict[str, Id]) -> None:
    with db.transaction() as tx:
        box = tx.create_node(type="Topic", name="box")
        item = tx.create_node(type="Fact", name="item", parent=box.id)
        tx.write_edge("refers_to", box.id, item.id)
        tx.write_edge("contains", tree["c"], box.id)
        tx.create_node(type="Fact", name="later", parent=box.id)
    assert names(db.children(tree["c"])) == ["box"]
    assert names(db.children(box.id)) == ["item", "later"]
    assert verify_proof(db.prove(item.id), db.root_state)
    lines = list(db.export())
    with worlddb.open(":memory:") as copy:
        copy.replay(lines)
        assert copy.root_state == db.root_state
        assert copy.check() == []
    assert db.check() == []


def test_the_past_of_a_move_can_be_read(db: WorldDB, tree: dict[str, Id]) -> None:
    before = db.log()[-1].time
    with db.transaction() as tx:
        edge = tx.write_edge("contains", tree["y"], tree["a"])
    during = db.log()[-1].time
    with db.transaction() as tx:
        tx.delete_edge(edge.id)
    for when, parent, inside in ((before, "root", 2), (during, "y", 7), (None, "root", 2)):
        seen = AsOf(known=when)
        assert db.get(tree["a"], as_of=seen).parent == tree[parent]
        found = db.query().in_world(tree["x"]).as_of(known=when).execute()
        assert len(found) == inside, parent
        assert (tree["a"] in {n.id for n in db.children(as_of=seen)}) == (parent == "root")


# -- proofs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 16, 64, 65, 129, 2_000, 5_000])
def test_every_node_of_a_world_of_any_size_has_a_proof(db: WorldDB, size: int) -> None:
    with db.transaction() as tx:
        world = tx.create_node(type="Topic", name="world")
        ids = tx.create_nodes(
            NodeDraft(type="Fact", name=f"n{number}", parent=world.id) for number in range(size)
        )
        tx.write_edge("refers_to", ids[0], world.id)
    root = db.root_state
    longest = 0
    for ident in ids:
        proof = db.prove(ident)
        assert verify_proof(proof, root)
        longest = max(longest, len(proof.steps[0].forks))
        assert len(proof.steps[0].bucket) <= 64
    assert longest == 0 if size <= 64 else 1 <= longest <= 5
    assert not verify_proof(db.prove(ids[0]), db.get(world.id).state)
    assert db.check() == []


def test_a_proof_holds_after_growing_and_shrinking_over_every_boundary(db: WorldDB) -> None:
    """64 is where the digest forks, and the pages with it; it is crossed both ways."""
    (world,) = make(db, "world")
    edges = []
    with db.transaction() as tx:
        for number in range(135):
            node = tx.create_node(type="Fact", name=f"n{number}")
            edges.append(tx.write_edge("contains", world, node.id))
    states_seen = [db.get(world).state]
    for kept in (129, 66, 65, 64, 63, 17, 1, 0):
        with db.transaction() as tx:
            while len(edges) > kept:
                tx.delete_edge(edges.pop().id)
        states_seen.append(db.get(world).state)
        for child in db.children(world):
            assert verify_proof(db.prove(child.id), db.root_state)
        assert db.check() == []
    assert len(set(states_seen)) == len(states_seen)
    assert states_seen[-1] == world


# -- ten thousand levels ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[WorldDB, list[Id]]]:
    path = tmp_path_factory.mktemp("deep") / "deep.db"
    with worlddb.open(path, clock=Clock(), durability="normal") as db:
        ids: list[Id] = []
        with db.transaction() as tx:
            for level in range(LEVELS):
                parent = ids[-1] if ids else None
                name = f"level {level}"
                node = tx.create_node(type="Topic", name=name, created_at=AT, parent=parent)
                ids.append(node.id)
        yield db, ids


def test_worlds_nest_ten_thousand_deep(deep: tuple[WorldDB, list[Id]]) -> None:
    db, ids = deep
    assert db.get(ids[-1]).parent == ids[-2]
    assert db.get(ids[-1]).state == ids[-1]
    assert db.get(ids[0]).state != ids[0]
    assert names(db.children(ids[5_000])) == ["level 5001"]
    assert db.check() == []


def test_the_deepest_world_has_a_proof(deep: tuple[WorldDB, list[Id]]) -> None:
    db, ids = deep
    proof = db.prove(ids[-1])
    assert len(proof.steps) == LEVELS
    assert verify_proof(proof, db.root_state)
    assert verify_proof(proof.to_dict(), str(db.root_state))
    assert not verify_proof(proof, db.get(ids[0]).state)


def test_a_query_goes_down_and_up_ten_thousand_levels(deep: tuple[WorldDB, list[Id]]) -> None:
    db, ids = deep
    assert len(db.query().in_world(ids[0]).execute()) == LEVELS - 1
    assert len(db.query().in_world(ids[LEVELS // 2]).limit(3).execute()) == 3
    found = db.query().in_world(ids[0]).seeds([ids[-1], ids[0]]).execute()
    assert [node.id for node in found] == [ids[-1]]
    assert len(db.query().in_world(ids[-1]).seeds([ids[0]]).execute()) == 0
    assert names(list(db.query().in_world(ids[1]).text("9999").execute())) == ["level 9999"]


def test_a_change_at_the_bottom_reaches_the_top_in_one_commit(
    deep: tuple[WorldDB, list[Id]],
) -> None:
    db, ids = deep
    tops = [db.get(ids[level]).state for level in (0, LEVELS // 2, LEVELS - 1)]
    with db.transaction() as tx:
        tx.write_edge("refers_to", ids[-1], ids[0])
        tx.create_node(type="Fact", name="bottom", parent=ids[-1])
    after = [db.get(ids[level]).state for level in (0, LEVELS // 2, LEVELS - 1)]
    assert all(one != other for one, other in zip(tops, after, strict=True))
    with pytest.raises(worlddb.RejectedError), db.transaction() as tx:
        tx.write_edge("contains", ids[-1], ids[0])
    assert verify_proof(db.prove(ids[-1]), db.root_state)


def test_ten_thousand_levels_travel(deep: tuple[WorldDB, list[Id]], tmp_path: Path) -> None:
    db, ids = deep
    lines = list(db.export())
    with worlddb.open(tmp_path / "copy.db", durability="normal") as copy:
        copy.replay(lines)
        assert copy.root_state == db.root_state
        assert copy.get(ids[-1]) == db.get(ids[-1])
    assert len(db.diff(0, 1).nodes) == LEVELS


# -- log, diff, replay -----------------------------------------------------------------------------


def test_the_log_tells_who_did_what_and_chains(db: WorldDB) -> None:
    (a,) = make(db, "a")
    with db.transaction(actor="Zoë") as tx:
        b = tx.create_node(type="Fact", name="b")
        edge = tx.write_edge("supersedes", b.id, a)
    assert tx.commit is not None
    log = db.log()
    assert [commit.seq for commit in log] == [0, 1, 2]
    assert [commit.actor for commit in log] == ["worlddb", "unknown", "Zoë"]
    assert [(commit.nodes, commit.edges) for commit in log] == [(1, 0), (1, 0), (1, 1)]
    assert log[-1] == tx.commit
    assert [change.kind for change in log[-1].changes] == ["close_node"]
    assert log[-1].changes[0].detail["by"] == str(edge.id)
    assert [after.previous for after in log[1:]] == [before.hash for before in log[:-1]]
    assert len({commit.hash for commit in log}) == 3
    assert log[-1].root_state == db.root_state


def test_the_log_can_be_read_in_parts_and_backwards(db: WorldDB) -> None:
    for name in "abcdef":
        make(db, name)
    whole = db.log()
    assert db.log(after=2) == whole[3:]
    assert db.log(after=2, limit=2) == whole[3:5]
    assert db.log(limit=0) == []
    assert db.log(after=99) == []
    assert db.log(newest_first=True) == whole[::-1]
    assert db.log(newest_first=True, limit=2) == whole[:-3:-1]
    assert db.log(after=3, newest_first=True, limit=10) == whole[:3:-1]


def test_an_empty_transaction_makes_no_commit(db: WorldDB) -> None:
    with db.transaction() as tx:
        pass
    assert tx.commit is None
    assert len(db.log()) == 1


def test_commit_times_increase_also_when_the_clock_does_not() -> None:
    times = iter([5_000_000, 4_000_000, 4_000_000, 9_000_000, 1, 0])
    with worlddb.open(":memory:", clock=lambda: next(times, 0)) as db:
        for name in "abcdef":
            make(db, name)
        seen = [commit.time for commit in db.log()]
    assert seen == sorted(set(seen))
    assert seen[2] - seen[1] == timedelta(microseconds=1)


def test_a_diff_has_what_changed_and_nothing_else(db: WorldDB) -> None:
    make(db, "old", "older")
    a, b = make(db, "a", "b")
    with db.transaction() as tx:
        edge = tx.write_edge("supersedes", b, a)
        tx.add_aliases(a, ["alpha"])
    (c,) = make(db, "c")
    found = db.diff(1, 3)
    assert [node.id for node in found.nodes] == [a, b]
    assert [item.id for item in found.edges] == [edge.id]
    assert [(change.kind, change.id) for change in found.changes] == [("close_node", a)]
    assert found.nodes[0].valid_to is not None
    assert db.diff(1, 2).nodes[0].valid_to is None
    assert [node.id for node in db.diff(3, 4).nodes] == [c]
    nothing = db.diff(2, 2)
    assert (nothing.nodes, nothing.edges, nothing.changes) == ((), (), ())
    everything = db.diff(0, 4)
    assert len(everything.nodes) == 5
    with pytest.raises(NotFoundError, match="there is no commit 5; the last is 4"):
        db.diff(0, 5)
    with pytest.raises(InvalidInputError, match="give the earlier commit first"):
        db.diff(3, 1)


def test_a_diff_of_the_past_stays_what_it_was(db: WorldDB) -> None:
    (world,) = make(db, "w")
    a, b = make(db, "a", "b")
    with db.transaction() as tx:
        edge = tx.write_edge("refers_to", a, b)
        other = tx.write_edge("implies", a, b)
    last = db.log()[-1].seq
    before = db.diff(0, last), db.diff(last - 1, last)
    with db.transaction() as tx:
        tx.delete_edge(edge.id)
        tx.write_edge("supersedes", b, a)
        tx.write_edge("contains", world, a)
        tx.add_aliases(a, ["later"])
    with db.transaction() as tx:
        tx.delete_edge(other.id)
        tx.retire(b)
    assert (db.diff(0, last), db.diff(last - 1, last)) == before


def test_an_export_plays_back_to_an_equal_store(db: WorldDB, tree: dict[str, Id]) -> None:
    with db.transaction(actor="x") as tx:
        edge = tx.write_edge("contains", tree["y"], tree["a"])
        tx.write_edge("same_as", tree["b"], tree["c"])
        tx.write_edge("contradicts", tree["x leaf"], tree["a leaf"])
        tx.add_aliases(tree["a"], ["alpha"])
    with db.transaction(actor="y") as tx:
        tx.delete_edge(edge.id)
    lines = list(db.export())
    seen: list[int] = []
    with worlddb.open(":memory:") as copy:
        assert copy.replay(lines, on_commit=seen.append) == 3
        assert seen == [0, 1, 2, 3]
        assert list(copy.export()) == lines
        assert copy.log() == db.log()
        assert copy.check() == []
        assert copy.replay(lines) == 0
        for commit in db.log()[1:]:
            then = AsOf(known=commit.time)
            assert states(copy, tree, then) == states(db, tree, then)
        assert copy.query().execute() == db.query().execute()


def test_an_export_can_be_continued(db: WorldDB) -> None:
    make(db, "a", "b")
    with worlddb.open(":memory:") as copy:
        copy.replay(list(db.export()))
        (c,) = make(db, "c")
        with db.transaction() as tx:
            tx.write_edge("refers_to", c, db.root_id)
        assert copy.replay(list(db.export(after=1))) == 2
        assert copy.root_state == db.root_state
        assert copy.log() == db.log()
        assert copy.check() == []
        make(copy, "other")
        make(db, "d")
        with pytest.raises(ConflictError):
            copy.replay(list(db.export()))


def test_a_continuation_without_anything_new_adds_nothing(db: WorldDB) -> None:
    make(db, "a", "b")
    nothing = list(db.export(after=db.log()[-1].seq))
    with worlddb.open(":memory:") as copy:
        with pytest.raises(ConflictError, match="commit 1 is missing"):
            copy.replay(nothing)
        copy.replay(list(db.export()))
        assert copy.replay(nothing) == 0
        assert copy.root_state == db.root_state
        with pytest.raises(CorruptionError, match="missing at the end"):
            copy.replay(nothing + list(db.export())[1:])


def test_reading_goes_on_while_an_export_is_being_read(tmp_path: Path) -> None:
    """The export is one snapshot; everything else is as it is."""
    for path in (":memory:", tmp_path / "a.db"):
        with worlddb.open(path, busy_timeout_s=0.5, durability="normal") as db:
            (a,) = make(db, "a")
            export = db.export()
            lines = [next(export)]
            assert db.get(a).name == "a"
            (b,) = make(db, "b")
            assert db.get(b).name == "b", "a store shows what was just written to it"
            lines += export
            assert not any('"name":"b"' in line for line in lines)
            assert len([line for line in lines if '"commit"' in line]) == 2


def test_an_export_that_is_not_read_to_its_end_holds_nothing_up(tmp_path: Path) -> None:
    for path in (":memory:", tmp_path / "a.db"):
        with worlddb.open(path, busy_timeout_s=0.5, durability="normal") as db:
            make(db, "a")
            export = db.export()
            next(export)
            make(db, "b")
            del export
            make(db, "c")
            assert names(db.children()) == ["a", "b", "c"]
