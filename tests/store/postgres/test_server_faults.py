"""Who may do what on a server, and what a store does when the server fails it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import worlddb
from faces.command import in_process
from worlddb import ConflictError, FormatError, InvalidInputError, Memory, StorageError
from worlddb.store.postgres.server_schema import MIGRATIONS

psycopg = pytest.importorskip("psycopg")

from worlddb.store.postgres.server_session import ServerSession  # noqa: E402 - it needs psycopg

WAIT_S = 60


def write(db: worlddb.WorldDB, name: str) -> None:
    with db.transaction("me") as tx:
        tx.create_node(type="Entity", name=name)


def names(db: worlddb.WorldDB) -> set[str]:
    return {node.name for node in db.query().execute()}


@contextmanager
def raw(server: str, role: str, tenant: str | None = None) -> Iterator[Any]:
    """Yield a connection of another program, with a role and inside a tenant."""
    with psycopg.connect(server, autocommit=True) as con:
        if tenant is not None:
            number = con.execute("SELECT worlddb.find_tenant(%s)", (tenant,)).fetchone()[0]
            con.execute(f"SET worlddb.tenant = '{number}'")
        con.execute(f"SET ROLE {role}")
        con.execute("SET search_path = worlddb")
        yield con


def tenant_of(address: str) -> str:
    return address.rpartition("=")[2]


# -- tenants and the guard -------------------------------------------------------------------------


def test_the_database_keeps_tenants_apart(server: str, address: str) -> None:
    with worlddb.open(address) as one, worlddb.open(f"{address}b") as other:
        write(one, "Ada")
        assert (names(one), names(other)) == ({"Ada"}, set())
        write(other, "Bob")
        assert names(one) == {"Ada"}
    asked = "SELECT name FROM nodes WHERE row > 1"
    with raw(server, "worlddb_reader", tenant_of(address)) as con:
        assert con.execute(asked).fetchall() == [("Ada",)]
        assert con.execute("SELECT count(*) FROM heads").fetchone() == (1,)
    with raw(server, "worlddb_reader") as con, pytest.raises(psycopg.Error, match="tenant"):
        con.execute(asked)


@pytest.mark.parametrize("role", ["postgres", "worlddb_writer", "worlddb_reader"])
def test_nobody_writes_around_the_engine(server: str, address: str, role: str) -> None:
    with worlddb.open(address) as db:
        write(db, "Ada")
        with raw(server, role, tenant_of(address)) as con:
            for statement in (
                "INSERT INTO edges VALUES (1, 1, '', 'refers_to', 2, 2, 1, 0, NULL, '{}', 0, 1)",
                "UPDATE nodes SET name = 'Eve'",
                "DELETE FROM commits",
                "INSERT INTO vectors VALUES (1, 2, '')",
                "TRUNCATE words",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    con.execute(statement)
        assert (names(db), db.check()) == ({"Ada"}, [])


def test_a_writer_of_one_tenant_writes_into_no_other_and_deletes_no_history(
    server: str, address: str
) -> None:
    with worlddb.open(address) as one, worlddb.open(f"{address}b") as other:
        write(one, "Ada")
        write(other, "Bob")
        with raw(server, "worlddb_writer", tenant_of(address)) as con:
            for statement in (
                "INSERT INTO premises (premise, edge, tenant) SELECT 1, 2, tenant() + 1",
                "DELETE FROM nodes",
            ):
                con.execute("BEGIN")
                con.execute("SELECT begin_write()")
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    con.execute(statement)
                con.execute("ROLLBACK")
        assert (names(one), names(other)) == ({"Ada"}, {"Bob"})


# -- opening ---------------------------------------------------------------------------------------


def test_a_new_database_is_made_once_by_programs_that_open_it_together(server: str) -> None:
    with psycopg.connect(server, autocommit=True) as con:
        con.execute("CREATE DATABASE fresh")
    fresh = server.replace("/postgres?", "/fresh?")

    def first(number: int) -> None:
        with worlddb.open(fresh) as db:
            write(db, f"node {number}")

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(first, range(3)))
    with worlddb.open(fresh) as db:
        assert [commit.seq for commit in db.log()] == [0, 1, 2, 3]
    with psycopg.connect(fresh, autocommit=True) as con:
        steps = con.execute("SELECT number FROM worlddb.migrations").fetchall()
        assert [number for (number,) in steps] == list(range(1, len(MIGRATIONS) + 1))
        con.execute("INSERT INTO worlddb.migrations (number) VALUES (99)")
    for is_read in (False, True):
        with pytest.raises(FormatError, match="newer worlddb"):
            worlddb.open(fresh, read_only=is_read)


def test_what_is_not_there_is_not_made_by_a_reader(server: str, address: str) -> None:
    worlddb.open(address).close()
    with pytest.raises(StorageError, match="no tenant 'nobody'"):
        worlddb.open(f"{server}&tenant=nobody", create=False)
    with (
        worlddb.open(address, read_only=True) as db,
        pytest.raises(StorageError, match="read-only"),
    ):
        write(db, "Ada")


def test_an_address_is_shown_without_its_password() -> None:
    from worlddb.faces.user_paths import shown_store
    from worlddb.store.postgres.server_schema import split_address

    address = "postgresql://ada:secret@h1,h2:5/db?tenant=x&sslmode=on&backup_keys=/keys/x"
    given, tenant, shown, keys = split_address(address)
    assert (tenant, shown, keys) == ("x", "postgresql://ada@h1,h2:5/db?tenant=x", "/keys/x")
    assert given == "postgresql://ada:secret@h1,h2:5/db?sslmode=on"
    assert split_address("postgresql:///db?options=-c%20a%3D1")[0].endswith("options=-c%20a%3D1")
    assert shown_store("postgresql://ada:secret@h/db") == "postgresql://ada@h/db"
    with pytest.raises(InvalidInputError, match="tenant"):
        split_address("postgresql:///db?tenant=")


# -- several servers, and servers that fail --------------------------------------------------------


def test_what_one_server_writes_the_next_recall_of_another_finds(address: str) -> None:
    with Memory(address) as one, Memory(address) as other:
        for number, (writer, reader) in enumerate(((one, other), (other, one), (one, other))):
            reader.recall("code", user_id="ada")  # The world is held from here on.
            writer.write(f"The code number {number} is {number}{number}7.", user_id="ada")
            found = reader.recall(f"code number {number}", user_id="ada").hits
            assert f"{number}{number}7" in found[0].node.content
        with ThreadPoolExecutor(2) as pool:
            for memory in (one, other):
                pool.submit(write, memory.db, repr(memory))
        assert one.db.wait(WAIT_S)
        assert other.db.wait(WAIT_S)
        assert one.db.log() == other.db.log()
        assert one.db.check() == []


def test_a_writer_that_waits_too_long_is_told_so(address: str) -> None:
    with worlddb.open(address) as one, worlddb.open(address, busy_timeout_s=0.1) as other:
        with one.transaction() as tx:
            tx.create_node(type="Entity", name="Ada")
            with pytest.raises(ConflictError, match="try again"):
                write(other, "Bob")
        write(other, "Eve")
        assert names(one) == {"Ada", "Eve"}


def end_backends(server: str, where: str) -> None:
    """Have the server end connections, and wait until they are gone."""
    with psycopg.connect(server, autocommit=True) as con:
        sql = f"SELECT pg_terminate_backend(pid, {WAIT_S * 1000}) FROM pg_stat_activity WHERE "
        con.execute(sql + where)


def test_a_statement_that_the_server_ends_for_its_time_is_told_and_can_be_tried_again(
    server: str, address: str
) -> None:
    with worlddb.open(address) as one, psycopg.connect(server, autocommit=True) as con:
        con.execute("CREATE ROLE hasty LOGIN IN ROLE worlddb_reader, worlddb_writer")
        with worlddb.open(address.replace("postgres@", "hasty@")) as hasty:
            con.execute("ALTER ROLE hasty SET statement_timeout = '100ms'")
            end_backends(server, "usename = 'hasty'")  # The next connection has the limit.
            with one.transaction() as tx:
                tx.create_node(type="Entity", name="Ada")
                with pytest.raises(ConflictError, match="statement_timeout"):
                    write(hasty, "nobody")
            con.execute("ALTER ROLE hasty RESET statement_timeout")
            write(hasty, "Eve")
            assert names(one) == {"Ada", "Eve"}


def test_connections_that_the_server_has_ended_are_replaced(server: str, address: str) -> None:
    ours = "application_name = 'ended'"
    with worlddb.open(f"{address}&application_name=ended") as db:
        write(db, "Ada")
        end_backends(server, ours)
        assert names(db) == {"Ada"}
        end_backends(server, ours)
        write(db, "Bob")

        def write_in_vain() -> None:
            with db.transaction() as tx:
                tx.create_node(type="Entity", name="nobody")
                end_backends(server, f"{ours} AND state = 'idle in transaction'")

        with pytest.raises(StorageError, match="lost"):
            write_in_vain()
        write(db, "Eve")
        assert names(db) == {"Ada", "Bob", "Eve"}


def test_a_server_that_says_goodbye_before_it_hangs_up_is_asked_again(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ServerSession.begin
    said: list[ServerSession] = []

    def begin(session: ServerSession, *arguments: Any, **options: Any) -> None:
        if not said:
            said.append(session)
            raise psycopg.errors.CrashShutdown("terminating connection")
        real(session, *arguments, **options)

    with worlddb.open(address) as db:
        write(db, "Ada")
        monkeypatch.setattr(ServerSession, "begin", begin)
        assert names(db) == {"Ada"}
        assert said[0].con.closed


def test_each_acknowledged_commit_survives_the_killing_of_backends(
    server: str, address: str
) -> None:
    acknowledged: list[str] = []
    enough, killed = threading.Event(), threading.Event()

    def keep_writing() -> None:
        number = 0
        while not killed.is_set() or len(acknowledged) < 12:
            number += 1
            try:
                write(db, f"node {number}")
            except StorageError:
                continue  # It is there or it is not; nobody was told that it is.
            acknowledged.append(f"node {number}")
            if len(acknowledged) == 5:
                enough.set()

    where = f"{address}&application_name=killed"
    with worlddb.open(where, busy_timeout_s=WAIT_S) as db, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(keep_writing)
        assert enough.wait(WAIT_S)
        with psycopg.connect(server, autocommit=True) as con:
            listed = "SELECT pid FROM pg_stat_activity WHERE application_name = 'killed'"
            os.kill(con.execute(listed).fetchone()[0], signal.SIGKILL)
        killed.set()  # The server ends all other backends, too, and recovers from its log.
        writing.result(WAIT_S)
        assert set(acknowledged) <= names(db)
        assert db.check() == []


# -- moving ----------------------------------------------------------------------------------------


def test_a_store_is_copied_to_the_server_and_back_and_goes_on_where_it_ended(
    address: str, path: Path, tmp_path: Path
) -> None:
    with Memory(path) as memory:
        memory.write("Ada Lovelace moved to Paris.", user_id="ada")
        first = memory.write("I like green tea.", user_id="ada")
    done = in_process("copy", path, address, "--json")
    assert (done.code, done.err) == (0, "")
    with Memory(path) as memory:
        memory.amend(first.id, "I like black coffee.")
        memory.erase(memory.write("My pin is 4711.", user_id="ada").id)
        log, root = memory.db.log(), str(memory.db.root_state)
    added = in_process("copy", path, address, "--json").data
    assert (added["root_state"], added["commit"]) == (root, log[-1].seq)
    assert 0 < added["added"] < log[-1].seq
    assert in_process("copy", address, tmp_path / "back.db", "--json").data["root_state"] == root
    for where in (address, tmp_path / "back.db"):
        with Memory(where) as memory:
            assert memory.db.log() == log
            assert memory.db.check() == []
            assert memory.recall("What do I like?", user_id="ada").hits[0].node.content == (
                "I like black coffee."
            )
    with worlddb.open(address) as db:
        write(db, "elsewhere")
    refused = in_process("copy", path, address)
    assert refused.code != 0
    assert "has not" in refused.err
