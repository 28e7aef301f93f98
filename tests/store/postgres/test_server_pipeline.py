"""Statements that are sent together: their answers, their errors, and what is prepared."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import worlddb
from worlddb import ConflictError, Memory

psycopg = pytest.importorskip("psycopg")

from worlddb.store.postgres import server_session  # noqa: E402
from worlddb.store.postgres.server_session import ServerPipeline  # noqa: E402

WRITE_WAYS_MAX, RECALL_WAYS_MAX = 6, 14  # They take 5 and 12 here; more would be a loop.


@pytest.fixture
def con(server: str) -> Iterator[Any]:
    """Yield a connection with an empty table."""
    with psycopg.connect(server, autocommit=True) as opened:
        opened.execute("CREATE TEMPORARY TABLE kept (number int8 PRIMARY KEY)")
        yield opened


def numbers(line: ServerPipeline) -> list[int]:
    return [number for (number,) in line.ask([("SELECT number FROM kept ORDER BY 1", None)])[0][-1]]


def put(number: object) -> tuple[str, Any]:
    return "INSERT INTO kept VALUES ($1::text::int8)", (str(number),)


def test_the_answers_of_the_last_statements_come_back(con: Any) -> None:
    line = ServerPipeline(con)
    for _ in range(2):  # Prepared, then used again.
        asked: list[tuple[str, Any]] = [("SELECT 1", None), ("SELECT $1::text", ("two",))]
        assert line.ask([put(1), *asked], answers=2) == ([[(1,)], [("two",)]], "SELECT 1")
        assert line.ask([("DELETE FROM kept", None)]) == ([[]], "DELETE 1")


def test_after_an_error_nothing_more_is_run_and_the_line_goes_on(con: Any) -> None:
    line = ServerPipeline(con)
    for _ in range(2):
        with pytest.raises(psycopg.errors.InvalidTextRepresentation):
            line.ask([put(1), put("no number"), put(2), ("SELECT count(*) FROM kept", None)])
        assert numbers(line) == []
    # What was to be prepared after the error is prepared now.
    assert line.ask([put(2), ("SELECT count(*) FROM kept", None)])[0] == [[(1,)]]


def test_what_is_too_much_to_prepare_is_run_all_the_same(
    con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_session, "PREPARED_MAX", 2)
    line = ServerPipeline(con)
    for number in range(5):
        assert line.ask([(f"SELECT {number}::int8", None)])[0] == [[(number,)]]
    assert len(con.execute("SELECT name FROM pg_prepared_statements").fetchall()) == 2


def test_an_interrupt_leaves_a_line_that_can_be_used(
    con: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, real, waits = ServerPipeline(con), vars(server_session)["fetch_many"], []

    def interrupted(pgconn: Any) -> Any:
        waits.append(pgconn)
        if len(waits) == 2:
            raise KeyboardInterrupt
        return real(pgconn)

    monkeypatch.setattr(server_session, "fetch_many", interrupted)
    with pytest.raises(KeyboardInterrupt):
        line.ask([put(1), put(2), put(3)])
    assert not con.closed
    line.ask([put(4)])
    assert numbers(line) == [1, 2, 3, 4]


def test_a_snapshot_is_not_told_the_rows_of_nodes_that_came_after_it(address: str) -> None:
    with worlddb.open(address) as db, db.engine.store.snapshot() as before:
        with db.transaction() as tx:
            node = tx.create_node(type="Entity", name="Ada")
        with db.engine.store.read() as now:
            row = now.node_row(bytes(node.id))
        assert row is not None
        assert before.node_row(bytes(node.id)) is None


def test_a_pooler_that_loses_prepared_statements_is_noticed(address: str) -> None:
    with worlddb.open(address) as db:
        store: Any = db.engine.store
        with db.transaction() as tx:
            tx.create_node(type="Entity", name="Ada")
        with store.read() as reader:
            reader.session.run("SELECT 7")
            # Another connection than the one that has prepared: here, and at the next beginning.
            reader.session.run("DEALLOCATE ALL")
            with pytest.raises(ConflictError, match="pooler"), store.translating():
                reader.session.run("SELECT 7")
        with db.transaction() as tx:
            tx.create_node(type="Entity", name="Bob")
        assert [commit.seq for commit in db.log()] == [0, 1, 2]
        with store.read() as reader:
            assert not reader.session.run("SELECT 1 FROM pg_prepared_statements")
    with worlddb.open(address) as db:
        store = db.engine.store
        with store.read() as reader:
            reader.session.run("DEALLOCATE ALL")
        assert len(db.log()) == 3  # The next beginning fails, and is tried again without names.


def test_a_write_and_a_recall_take_few_ways_to_the_server(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: list[int] = []
    real = ServerPipeline.ask

    def asked(line: ServerPipeline, *arguments: Any) -> Any:
        ways.append(threading.get_ident())
        return real(line, *arguments)

    def count() -> int:
        mine = ways.count(threading.get_ident())
        ways.clear()
        return mine

    with Memory(address) as memory:
        for day in range(9):
            memory.write(f"I liked tea on day {day}.", user_id="ada")
        assert memory.db.wait(60)
        memory.recall("What did I like on day 3?", user_id="ada")
        monkeypatch.setattr(ServerPipeline, "ask", asked)
        memory.write("I liked bread on day 99.", user_id="ada")
        assert count() <= WRITE_WAYS_MAX
        assert memory.db.wait(60)
        memory.recall("What did I like on day 3?", user_id="ada")
        count()
        memory.recall("What did I like on day 4?", user_id="ada")
        assert count() <= RECALL_WAYS_MAX
