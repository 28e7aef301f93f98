"""Transactions: alone, nested, failing, ended; what of them lands and what is left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import worlddb
from worlddb.model.records import Query

from .processes import StartChild, commit_one, picture


class Refuser:
    """An edge type whose handler refuses everything."""

    type = "refused"
    pierces = False

    def on_insert(self, ctx: worlddb.WriteContext, edge: worlddb.Edge) -> None:
        ctx.refuse("never")

    def on_delete(self, ctx: worlddb.WriteContext, edge: worlddb.Edge) -> None: ...

    def on_query_rewrite(self, query: Query) -> Query:
        return query


class Swallower(Refuser):
    """An edge type whose handler writes a refused edge and looks away."""

    type = "swallowed"

    def on_insert(self, ctx: worlddb.WriteContext, edge: worlddb.Edge) -> None:
        with contextlib.suppress(worlddb.RejectedError):
            ctx.write_edge("refused", edge.source, edge.target)


# -- rolling back --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_exception_in_the_block_rolls_everything_back(
    any_db: worlddb.WorldDB, kind: type[BaseException]
) -> None:
    kept = commit_one(any_db)
    before = picture(any_db)
    made: list[worlddb.Id] = []

    def fail() -> None:
        with any_db.transaction() as tx:
            made.append(tx.create_node(type="Fact", name="new", source="a diary").id)
            tx.write_edge("supersedes", made[0], kept.id)
            raise kind

    with pytest.raises(kind):
        fail()
    assert picture(any_db) == before
    assert any_db.get(kept.id).valid_to is None
    with pytest.raises(worlddb.NotFoundError):
        any_db.get(made[0])
    commit_one(any_db, "after")
    assert any_db.check() == []


def test_a_bulk_load_rolls_back_too(any_db: worlddb.WorldDB) -> None:
    commit_one(any_db)
    before = picture(any_db)
    drafts = [worlddb.NodeDraft(type="Turn", name=f"turn {i}") for i in range(500)]
    with contextlib.suppress(ValueError), any_db.transaction(bulk=True) as tx:
        tx.create_nodes(drafts)
        raise ValueError
    assert picture(any_db) == before
    assert any_db.check() == []
    assert len(any_db.query().text("turn").execute().nodes) == 0


def test_a_refusal_that_the_block_swallows_still_rolls_back(any_db: worlddb.WorldDB) -> None:
    node = commit_one(any_db)
    before = picture(any_db)
    ended: list[worlddb.Transaction] = []

    def swallow() -> None:
        with any_db.transaction() as tx:
            ended.append(tx)
            tx.create_node(type="Fact", name="innocent")
            with contextlib.suppress(worlddb.RejectedError):
                tx.write_edge("supersedes", node.id, node.id)

    with pytest.raises(worlddb.RejectedError, match="itself"):
        swallow()
    assert picture(any_db) == before
    assert ended[0].commit is None
    assert any_db.check() == []


def test_a_refusal_that_another_handler_swallows_still_rolls_back(
    any_db: worlddb.WorldDB,
) -> None:
    any_db.ontology().register(Refuser())
    any_db.ontology().register(Swallower())
    left, right = commit_one(any_db, "left"), commit_one(any_db, "right")
    before = picture(any_db)
    with pytest.raises(worlddb.RejectedError, match="never"), any_db.transaction() as tx:
        tx.write_edge("swallowed", left.id, right.id)
    assert picture(any_db) == before


def test_a_transaction_that_failed_refuses_every_further_call(any_db: worlddb.WorldDB) -> None:
    node = commit_one(any_db)
    before = picture(any_db)

    def go_on() -> None:
        with any_db.transaction() as tx:
            with contextlib.suppress(worlddb.RejectedError):
                tx.write_edge("supersedes", node.id, node.id)
            for call in calls_of(tx, node.id):
                with pytest.raises(worlddb.ConflictError, match="rolled back"):
                    call()

    with pytest.raises(worlddb.RejectedError):
        go_on()
    assert picture(any_db) == before


def calls_of(tx: worlddb.Transaction, node: worlddb.Id) -> list[Callable[[], object]]:
    """Return one call of each kind that a transaction offers."""
    draft = worlddb.EdgeDraft(source=node, target=node)
    return [
        lambda: tx.create_node(type="Fact", name="late"),
        lambda: tx.create_nodes([worlddb.NodeDraft(type="Fact", name="late")]),
        lambda: tx.write_edge("refers_to", node, node, metadata={"late": True}),
        lambda: tx.write_edges("refers_to", [draft]),
        lambda: tx.add_aliases(node, ["late"]),
        lambda: tx.add_source(node, "late"),
        lambda: tx.register(node, "late", "1", False),
        lambda: tx.delete_edge(node),
        lambda: tx.decide_merge(node, "accepted"),
    ]


@pytest.mark.parametrize("end", ["commit", "roll back", "empty"])
def test_a_transaction_that_has_ended_refuses_every_further_call(
    any_db: worlddb.WorldDB, end: str
) -> None:
    node = commit_one(any_db)
    with contextlib.suppress(ValueError), any_db.transaction() as tx:
        if end != "empty":
            tx.create_node(type="Fact", name="in time")
        if end == "roll back":
            raise ValueError
    before = picture(any_db)
    for call in calls_of(tx, node.id):
        with pytest.raises(worlddb.WorldDBError):
            call()
    assert picture(any_db) == before
    assert any_db.check() == []


def test_an_ended_transaction_cannot_write_into_the_next_one(any_db: worlddb.WorldDB) -> None:
    with any_db.transaction() as ended:
        ended.create_node(type="Fact", name="first")
    with any_db.transaction() as tx:
        tx.create_node(type="Fact", name="second")
        with pytest.raises(worlddb.WorldDBError):
            ended.create_node(type="Fact", name="stray")
    assert [node.name for node in any_db.children()] == ["first", "second"]
    assert any_db.check() == []


def test_a_call_refused_before_it_wrote_leaves_the_transaction_usable(
    any_db: worlddb.WorldDB,
) -> None:
    node = commit_one(any_db)
    nowhere = worlddb.Id(bytes(32))
    with any_db.transaction() as tx:
        with pytest.raises(worlddb.InvalidInputError):
            tx.create_node(type="Fact", name="a\0b")
        with pytest.raises(worlddb.NotFoundError):
            tx.create_node(type="Fact", parent=nowhere)
        with pytest.raises(worlddb.InvalidInputError):
            tx.write_edge("no such type", node.id, node.id)
        with pytest.raises(worlddb.NotFoundError):
            tx.write_edge("refers_to", node.id, nowhere)
        with pytest.raises(worlddb.NotFoundError):
            tx.delete_edge(nowhere)
        with pytest.raises(worlddb.NotFoundError):
            tx.add_aliases(nowhere, ["alias"])
        kept = tx.create_node(type="Fact", name="kept")
    assert any_db.get(kept.id).name == "kept"
    assert any_db.log()[-1].nodes == 1
    assert any_db.check() == []


# -- nothing to commit ---------------------------------------------------------------------------


@pytest.mark.parametrize("bulk", [False, True])
def test_an_empty_transaction_makes_no_commit(any_db: worlddb.WorldDB, bulk: bool) -> None:
    commit_one(any_db)
    before = picture(any_db)
    with any_db.transaction(bulk=bulk) as tx:
        pass
    assert tx.commit is None
    assert picture(any_db) == before
    assert any_db.check() == []


def test_writing_what_is_there_already_makes_no_commit(any_db: worlddb.WorldDB) -> None:
    fields = {"type": "Fact", "name": "once", "created_at": "2024-05-01T00:00:00Z"}
    with any_db.transaction() as tx:
        node = tx.create_node(**fields, aliases=["one"], source="a diary")
        edge = tx.write_edge("refers_to", node.id, node.id)
    before = picture(any_db)
    with any_db.transaction() as tx:
        assert tx.create_node(**fields, aliases=["one"], source="a diary").id == node.id
        assert tx.write_edge("refers_to", node.id, node.id) == edge
        tx.add_aliases(node.id, ["one"])
    assert tx.commit is None
    assert picture(any_db) == before


def test_the_transaction_knows_the_commit_it_became(any_db: worlddb.WorldDB) -> None:
    with any_db.transaction(actor="me") as tx:
        tx.create_node(type="Fact", name="a node")
        assert tx.commit is None
    last = any_db.log()[-1]
    assert tx.commit == last
    assert last.actor == "me"


# -- nesting -------------------------------------------------------------------------------------


def test_a_nested_transaction_is_refused_and_the_outer_one_lands(any_db: worlddb.WorldDB) -> None:
    left, right = commit_one(any_db, "left"), commit_one(any_db, "right")
    with any_db.transaction() as tx:
        merge = tx.write_edge("same_as", left.id, right.id)
    with any_db.transaction() as tx:
        kept = tx.create_node(type="Fact", name="outer")
        for nested in (
            lambda: commit_one(any_db, "inner"),
            lambda: any_db.accept_merge(merge.id),
            lambda: any_db.ontology().register(Refuser()),
        ):
            with pytest.raises(worlddb.InvalidInputError, match="already has a transaction"):
                nested()
    assert any_db.get(kept.id).name == "outer"
    assert [node.name for node in any_db.children()] == ["left", "right", "outer"]
    assert any_db.check() == []


def test_one_thread_may_write_two_stores_at_a_time(tmp_path: Path) -> None:
    with (
        worlddb.open(tmp_path / "a.db") as a,
        worlddb.open(tmp_path / "b.db") as b,
        a.transaction() as one,
        b.transaction() as two,
    ):
        one.create_node(type="Fact", name="in a")
        two.create_node(type="Fact", name="in b")
    with worlddb.open(tmp_path / "a.db") as a, worlddb.open(tmp_path / "b.db") as b:
        assert [node.name for node in a.children()] == ["in a"]
        assert [node.name for node in b.children()] == ["in b"]


def test_reads_inside_the_block_do_not_see_it_before_it_lands(db: worlddb.WorldDB) -> None:
    with db.transaction() as tx:
        node = tx.create_node(type="Fact", name="not yet")
        assert db.children() == []
        with pytest.raises(worlddb.NotFoundError):
            db.get(node.id)
    assert db.get(node.id).name == "not yet"


def test_reads_inside_the_block_work_in_memory_too() -> None:
    with worlddb.open(":memory:", busy_timeout_s=1) as db:
        kept = commit_one(db, "landed")
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="open")
            assert db.get(kept.id).name == "landed"
            assert len(db.log()) == 2
            assert db.query().text("landed").execute().ids == {kept.id}
        assert [node.name for node in db.children()] == ["landed", "open"]


def test_backing_up_inside_the_block_copies_nothing_half_done(
    any_db: worlddb.WorldDB, tmp_path: Path
) -> None:
    commit_one(any_db, "kept")
    target = tmp_path / "copy.db"
    with any_db.transaction() as tx:
        tx.create_node(type="Fact", name="open")
        # In memory there is one connection, so the copy has to wait for the end of the block.
        with contextlib.suppress(worlddb.ConflictError):
            any_db.backup(target)
    if target.exists():
        with worlddb.open(target) as copy:
            assert [node.name for node in copy.children()] == ["kept"]
            assert copy.check() == []
    assert any_db.check() == []


# -- checking ------------------------------------------------------------------------------------


def test_a_sound_store_checks_clean_after_each_of_many_commits(any_db: worlddb.WorldDB) -> None:
    for number in range(40):
        commit_one(any_db, f"node {number}")
        assert any_db.check() == [], f"commit {number + 1}"


# -- custom edge types in other processes --------------------------------------------------------


def test_a_process_without_the_handler_reads_a_custom_type_and_is_told_how_to_write_it(
    db: worlddb.WorldDB, start: StartChild
) -> None:
    (made,) = start("register", db.engine.store.path, "likes").rest()
    [edge] = db.edges(made["source"], types=["likes"])
    assert str(edge.id) == made["edge"]
    reached = db.query().seeds([made["source"]]).traverse("likes").execute()
    assert made["target"] in {str(node.id) for node in reached.nodes}
    assert [item.type for item in db.ontology().types()] == ["likes"]
    before = picture(db)
    wanted = r"'likes' \(version 3\).*handler is not loaded.*register"
    draft = worlddb.EdgeDraft(source=made["target"], target=made["source"])
    writes: list[Callable[[worlddb.Transaction], object]] = [
        lambda tx: tx.write_edge("likes", made["target"], made["source"]),
        lambda tx: tx.write_edges("likes", [draft]),
        lambda tx: tx.delete_edge(made["edge"]),
    ]
    for write in writes:
        with pytest.raises(worlddb.InvalidInputError, match=wanted), db.transaction() as tx:
            write(tx)
    assert picture(db) == before
    assert db.check() == []


def test_a_custom_program_for_a_default_type_is_not_replaced_by_the_default(
    db: worlddb.WorldDB, start: StartChild
) -> None:
    (made,) = start("register", db.engine.store.path, "supersedes").rest()
    before = picture(db)
    with (
        pytest.raises(worlddb.InvalidInputError, match="handler is not loaded"),
        db.transaction() as tx,
    ):
        tx.write_edge("supersedes", made["target"], made["source"])
    assert picture(db) == before


# -- errors of the database ----------------------------------------------------------------------


def test_a_disk_error_is_a_storage_error_inside_the_block_too(any_db: worlddb.WorldDB) -> None:
    before = picture(any_db)
    con = any_db.engine.store._writer  # type: ignore[attr-defined]

    def refuse(cursor: object, sql: str, bindings: object) -> bool:
        if sql.startswith("INSERT INTO nodes"):
            raise apsw.IOError("injected")
        return True

    inside: list[type[Exception]] = []

    def swallow() -> None:
        with any_db.transaction() as tx:
            con.exec_trace = refuse
            try:
                tx.create_node(type="Fact", name="a node")
            except Exception as error:
                inside.append(type(error))
            finally:
                con.exec_trace = None

    with pytest.raises(worlddb.StorageError):
        swallow()
    assert inside == [worlddb.StorageError]
    assert picture(any_db) == before
