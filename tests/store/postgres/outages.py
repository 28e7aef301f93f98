"""Outages: what can happen to a server while a program writes, and what must hold afterwards.

Each outage strikes while a thread writes. Whatever was acknowledged is there afterwards, the rest
was told as an error, and the same open store goes on.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import worlddb
from crash.test_kill import CROWD, doomed, hear, lines_of, verify_acks
from patience import PATIENCE_S, until

from .server import TestServer, new_server

ACKS = 4  # Before an outage, and after it.
WRITERS = 3  # Threads of each of two processes that write into one tenant.
SOCKET = ".s.PGSQL.5432"
DURABLE = {"fsync": "on"}


def survived(address: str, strikes: list[Callable[[], None]]) -> int:
    """Write while outages strike; return how many commits were acknowledged."""
    acknowledged: list[str] = []
    is_over = threading.Event()

    def keep_writing() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            try:
                with db.transaction() as tx:
                    tx.create_node(type="Fact", name=f"node {number}")
            except worlddb.WorldDBError:
                continue  # It is there or it is not; nobody was told that it is.
            acknowledged.append(f"node {number}")

    def written(more: int) -> None:
        enough = len(acknowledged) + more
        until(lambda: len(acknowledged) >= enough or writing.done())

    with worlddb.open(address, busy_timeout_s=PATIENCE_S) as db:
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(keep_writing)
            try:
                for strike in strikes:
                    written(ACKS)
                    strike()
                written(ACKS)
            finally:
                is_over.set()
            writing.result(PATIENCE_S)
        assert set(acknowledged) <= {node.name for node in db.query().execute()}
        assert db.check() == []
    assert len(acknowledged) >= ACKS * (len(strikes) + 1)
    return len(acknowledged)


def killed_servers(rounds: int) -> int:
    """Kill every process of PostgreSQL, and start it again."""
    with new_server(**DURABLE) as server:

        def strike() -> None:
            server.kill()
            server.start()

        return survived(server.address, [strike] * rounds)


def failovers(rounds: int) -> int:
    """Kill the primary and promote its standby, which has every acknowledged commit."""
    total = 0
    for _ in range(rounds):
        standby = TestServer(**DURABLE)
        try:
            # From its start the primary acknowledges nothing that the standby does not have.
            with new_server(**DURABLE, synchronous_standby_names="*") as primary:
                standby.copy(primary)
                standby.start()

                def strike(primary: TestServer = primary, standby: TestServer = standby) -> None:
                    primary.kill()
                    standby.promote()

                hosts = f"host={primary.home},{standby.home}&target_session_attrs=read-write"
                total += survived(f"postgresql://postgres@/postgres?{hosts}", [strike])
        finally:
            standby.remove()
    return total


def cut_lines(rounds: int) -> int:
    """Cut every line between the program and the server."""
    with new_server() as server, Relay.to(f"{server.home}/{SOCKET}") as relay:
        return survived(server.address.replace(str(server.home), relay.home), [relay.cut] * rounds)


def side_by_side(rounds: int) -> int:
    """Let two processes with many writers use one tenant, and kill one; the other goes on."""
    total = 0
    with new_server() as server:
        for seed in range(rounds):
            address = f"{server.address}&tenant={seed}"
            with (
                doomed(address, 2 * seed, CROWD, WRITERS) as one,
                doomed(address, 2 * seed + 1, CROWD, WRITERS) as other,
            ):
                said, told = lines_of(one.stdout), lines_of(other.stdout)
                heard = hear(one, said, ACKS) + hear(other, told, ACKS)
                one.kill()
                heard += [*said, *hear(other, told, ACKS)]
                other.kill()
                heard += told
            verify_acks(address, heard)
            total += len(heard)
    return total


class Relay:
    """A socket that passes on what comes, until it is cut."""

    def __init__(self, target: str) -> None:
        self.home = tempfile.mkdtemp(prefix="worlddb-relay-")
        self._target = target
        self._lines: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(f"{self.home}/{SOCKET}")
        self._door.listen()
        self._run(self._accept)

    @classmethod
    @contextmanager
    def to(cls, target: str) -> Iterator[Relay]:
        """Yield a relay to a socket; nothing of it is left afterwards."""
        relay = cls(target)
        try:
            yield relay
        finally:
            relay._door.shutdown(socket.SHUT_RDWR)
            relay._threads[0].join(PATIENCE_S)
            relay.cut()
            for thread in relay._threads:
                thread.join(PATIENCE_S)
            for line in (relay._door, *relay._lines):
                line.close()
            shutil.rmtree(relay.home)

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near = self._door.accept()[0]
                far = socket.socket(socket.AF_UNIX)
                self._lines += (near, far)
                far.connect(self._target)
                self._run(self._pass_on, near, far)
                self._run(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for line in (source, target):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """End all lines at once; new ones can be had."""
        for line in list(self._lines):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
