"""What holds for a file holds for a server: all or nothing, and nothing acknowledged is lost.

The failures of the server itself are in `store/postgres`.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
from collections.abc import Callable
from typing import Any

import pytest

import worlddb
from store.test_commit_group import Crowd
from thinning import DEEP
from worlddb.store.postgres.server_session import ServerSession

from .test_fail_nth import CALLS_MAX, Countdown, Injector, fail_each, filled, picture, verify, write
from .test_kill import Witness, kill_crowd

EVERY = 2 if DEEP else 23
"""Every call is a way to the server; those that one run leaves out are another seed's in `fuzz`."""
CUTS = 2 if DEEP else 11
ROUNDS = 12 if DEEP else 2

NewTenant = Callable[[], str]


@pytest.mark.parametrize("bulk", [False, True], ids=["small", "bulk"])
def test_a_transaction_that_fails_at_any_store_call_changes_nothing(
    new_tenant: NewTenant, monkeypatch: pytest.MonkeyPatch, bulk: bool
) -> None:
    injector = Injector(monkeypatch)
    with filled(new_tenant()) as db:
        tried = fail_each(db, injector, lambda: write(db, bulk=bulk), after=bulk, every=EVERY)
        assert tried > 50


def cut(session: ServerSession) -> None:
    """Break the line to the server."""
    with socket.socket(fileno=os.dup(session.con.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def test_a_connection_that_breaks_at_any_statement_changes_nothing(
    new_tenant: NewTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    countdown, real = Countdown(None), vars(ServerSession)["_sent"]

    def sent(session: ServerSession, sql: str, values: Any = None) -> Any:
        if countdown.tick():
            cut(session)
        return real(session, sql, values)

    monkeypatch.setattr(ServerSession, "_sent", sent)
    with filled(new_tenant()) as db:
        for nth in range(1, CALLS_MAX, CUTS):
            before = picture(db)
            countdown = Countdown(nth)
            try:
                write(db)
            except worlddb.StorageError:
                countdown = Countdown(None)
                verify(db, before, nth)
            else:
                assert not countdown.spent
                assert nth > 20
                return
    raise AssertionError("it never succeeds")


def test_a_killed_writer_loses_nothing_it_acknowledged(new_tenant: NewTenant) -> None:
    moments = random.Random(20_240_501)
    witness, total = Witness(new_tenant()), 0
    for seed in range(ROUNDS):
        total += witness.kill(seed, moments.choice((1, 3, 8)), moments.uniform(0, 0.02))
    assert total >= ROUNDS


def test_a_killed_crowd_of_writers_loses_nothing_it_acknowledged(new_tenant: NewTenant) -> None:
    assert kill_crowd(new_tenant(), 5, 20, 0.01) >= 20


def test_a_group_whose_commit_is_cut_off_tells_every_writer_and_leaves_nothing(
    new_tenant: NewTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd, real = Crowd(new_tenant(), monkeypatch), ServerSession.commit

    def cut_commit(session: ServerSession) -> None:
        cut(session)
        real(session)

    with crowd.memory:
        with crowd.queued([crowd.note("a"), crowd.note("b"), crowd.note("c")]) as written:
            monkeypatch.setattr(ServerSession, "commit", cut_commit)
        told = [one.exception() for one in (crowd.held, *written)]
        assert all(isinstance(error, worlddb.StorageError) for error in told)
        monkeypatch.setattr(ServerSession, "commit", real)
        assert crowd.names() == set()
        assert crowd.note("after")() is not None
        assert crowd.db.check() == []


def test_a_commit_that_the_server_turns_into_a_rollback_is_not_acknowledged(
    new_tenant: NewTenant,
) -> None:
    def write_in_vain(db: worlddb.WorldDB) -> None:
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="nobody")
            session = db.engine.store._writing.session  # type: ignore[attr-defined]
            with contextlib.suppress(Exception):
                session.run("SELECT 1 / 0")

    with worlddb.open(new_tenant()) as db:
        with pytest.raises(worlddb.WorldDBError):
            write_in_vain(db)
        assert db.log(limit=1, newest_first=True)[0].seq == 0
