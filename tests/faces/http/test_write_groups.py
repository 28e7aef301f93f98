"""Groups of writes: many requests share one thread and one COMMIT, and none of them notices."""

from __future__ import annotations

import http.client
import itertools
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from patience import until
from worlddb import Memory
from worlddb.faces.http import write_groups
from worlddb.faces.http.access_tokens import make_access
from worlddb.faces.http.served_stores import OneStore
from worlddb.faces.http.token_file import TokenUses
from worlddb.faces.http.worker_pool import WorkerStores, WriteLink, WriteServer
from worlddb.faces.http.write_groups import (
    TOGETHER_MAX,
    TOGETHER_MIN,
    GroupSize,
    group_address,
)
from worlddb.memory.writes import MemoryWriter
from worlddb.store.commit_group import CommitGroup

from .serving import Process, Site, serving, token

CROWD = 24  # Connections that write at once; they need some groups.
TOKENS = (
    *(token(f"key-{n}", bounds={"user_id": (f"u{n}",)}) for n in range(CROWD)),
    token("few", bounds={"user_id": ("few",)}, memories_per_day=3),
)


class Served:
    """A server, its store, and how many blocks each COMMIT had."""

    def __init__(self, site: Site, memory: Memory, sizes: list[int], writer: WriteServer | None):
        self.site = site
        self.memory = memory
        self.sizes = sizes
        self.writer = writer

    def writers(self) -> int:
        """Return how many writers stand in the queue of the store, with the present one."""
        store: Any = self.memory.db.engine.store
        return len(store._gate._turns)

    @contextmanager
    def queued(self, calls: list[Any]) -> Iterator[list[Any]]:
        """Queue calls behind a transaction, so that one group carries them out."""
        with ThreadPoolExecutor(len(calls)) as pool:
            with self.memory.db.transaction(actor="test") as tx:
                tx.create_node(type="Topic", name=f"in the way {len(self.sizes)}")
                # The first is taken alone and waits; the others wait for it.
                answers = [pool.submit(calls[0])]
                until(lambda: self.writers() == 2)
                answers += [pool.submit(call) for call in calls[1:]]
                yield answers
            for answer in answers:
                answer.exception()


@pytest.fixture(params=["one process", "workers"])
def served(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    sizes: list[int] = []
    end = CommitGroup.end

    def noted(group: CommitGroup, error: Exception | None = None) -> None:
        sizes.append(len(group.members))
        end(group, error)

    monkeypatch.setattr(CommitGroup, "end", noted)
    access = make_access(host="127.0.0.1", tokens=TOKENS)
    with ExitStack() as closing:
        path = tmp_path / "m.db"
        memory = closing.enter_context(Memory(path, embedder="none", recluster="off", actor="http"))
        if request.param == "one process":
            site = closing.enter_context(serving(memory, access))
            yield Served(site, memory, sizes, None)
            return
        writer = WriteServer(OneStore(memory), TokenUses())
        closing.callback(writer.close)
        link = WriteLink(writer.address)
        closing.callback(link.close)
        own = closing.enter_context(Memory(path, embedder="none", create=False))
        site = closing.enter_context(serving(WorkerStores(OneStore(own), link, 1), access))
        yield Served(site, memory, sizes, writer)


def test_requests_that_wait_together_share_a_commit(served: Served) -> None:
    def write(number: int) -> Any:
        return served.site.as_(f"key-{number}").post("/v1/memories", text=f"Note {number}")

    with served.queued([lambda n=n: write(n) for n in range(CROWD)]) as answers:
        del served.sizes[:]
    written = [answer.result() for answer in answers]
    assert {answer.status for answer in written} == {200}
    # The transaction in the way, the first write, and all that waited for it.
    assert len(served.sizes) < CROWD / 2
    assert max(served.sizes) > TOGETHER_MIN / 2
    for number, answer in enumerate(written):
        site = served.site.as_(f"key-{number}")
        (found,) = site.get("/v1/memories?types=Memory").data["memories"]
        assert (found["id"], found["text"]) == (answer.data["id"], f"Note {number}")
    assert served.memory.db.check() == []


def test_groups_grow_on_a_slow_disk_alone() -> None:
    size = GroupSize()
    for _ in range(9):
        size.note(size.most - 1, 0.02, 0.01)
    assert size.most == TOGETHER_MIN  # Nobody else waited.
    for _ in range(9):
        size.note(size.most, 0.02, 0.01)
    assert size.most == TOGETHER_MAX
    size.note(size.most, 0.02, 0.004)
    assert size.most == TOGETHER_MAX
    for _ in range(9):
        size.note(size.most, 0.02, 0.001)
    assert size.most == TOGETHER_MIN


def test_what_is_refused_leaves_the_others_of_its_group(served: Served) -> None:
    key = {"Idempotency-Key": "k"}
    site = served.site.as_("key-0")
    assert site.post("/v1/memories", key, text="The first").status == 200

    def write(number: int) -> Any:
        if number % 3 == 1:
            return site.post("/v1/memories", key, text="Another text")
        return served.site.as_(f"key-{number}").post("/v1/memories", text=f"Note {number}")

    with served.queued([lambda n=n: write(n) for n in range(9)]) as answers:
        pass
    statuses = [answer.result().status for answer in answers]
    assert statuses == [409 if number % 3 == 1 else 200 for number in range(9)]
    assert served.memory.db.check() == []


def test_a_bug_in_one_write_is_one_answer(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = MemoryWriter.stage

    def sometimes(writer: MemoryWriter, prepared: Any, *more: Any) -> Any:
        if prepared.messages[0].text == "Note 3":
            raise ArithmeticError("a secret of the inside")
        return stage(writer, prepared, *more)

    monkeypatch.setattr(MemoryWriter, "stage", sometimes)

    def write(number: int) -> Any:
        return served.site.as_(f"key-{number}").post("/v1/memories", text=f"Note {number}")

    with served.queued([lambda n=n: write(n) for n in range(6)]) as answers:
        pass
    assert [one.result().status for one in answers] == [200, 200, 200, 500, 200, 200]
    assert "secret" not in answers[3].result().body.decode()
    assert "a secret of the inside" in caplog.text


def test_an_answer_that_cannot_be_made_leaves_the_thread_alive(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(result: Any) -> bytes:
        raise ArithmeticError("no JSON")

    site = served.site.as_("key-0")
    with monkeypatch.context() as patch:
        patch.setattr(write_groups, "json_of", broken)
        assert site.post("/v1/memories", text="Note 1").status == 500
    assert site.post("/v1/memories", text="Note 2").status == 200


def test_the_quota_of_a_day_holds_inside_a_group(served: Served) -> None:
    def write(number: int) -> Any:
        return served.site.as_("few").post("/v1/memories", text=f"Note {number}")

    with served.queued([lambda n=n: write(n) for n in range(6)]) as answers:
        pass
    assert sorted(one.result().status for one in answers) == [200, 200, 200, 429, 429, 429]
    site = served.site.as_("few")
    assert len(site.get("/v1/memories?types=Memory").data["memories"]) == 3
    # What wrote nothing is given back: the quota is used up, but not exceeded.
    assert site.post("/v1/memories", text="Note 9").status == 429


def test_the_writes_of_one_client_keep_their_order(served: Served) -> None:
    def write(number: int) -> None:
        site = served.site.as_(f"key-{number}")
        for place in ("Paris", "Rome", "Oslo", "Lima"):
            assert site.post("/v1/memories", text=f"I live in {place}.").status == 200

    with ThreadPoolExecutor(CROWD) as pool:
        list(pool.map(write, range(CROWD)))
    for number in range(CROWD):
        site = served.site.as_(f"key-{number}")
        standing = [one["text"] for one in site.get("/v1/memories?types=Memory").data["memories"]]
        assert standing == ["I live in Lima."]
    assert served.memory.db.check() == []


def test_what_nobody_can_read_ends_one_connection_alone(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    if served.writer is None:
        return
    for sent in (b"\x00\x00\x00\x03abc", b"\x00\x00"):
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(group_address(served.writer.address))
            other.sendall(sent)
            other.shutdown(socket.SHUT_WR)
            assert other.recv(1) == b""
    assert served.site.as_("key-0").post("/v1/memories", text="I like tea").status == 200
    assert "a worker sent what cannot be read" in caplog.text


def test_a_locked_store_does_not_keep_the_writer_from_ending(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    if served.writer is None:
        return
    monkeypatch.setattr(write_groups, "ENDING_S_MAX", 0.1)
    site = served.site.as_("key-0")
    with served.queued([lambda: site.post("/v1/memories", text="Note")]):
        served.writer.close()
        assert served.writers() == 2  # It still waits.


def test_a_worker_whose_writer_has_ended_refuses_to_write(tmp_path: Path) -> None:
    with ExitStack() as closing:
        memory = closing.enter_context(Memory(tmp_path / "m.db", embedder="none"))
        writer = WriteServer(OneStore(memory), TokenUses())
        link = WriteLink(writer.address)
        closing.callback(link.close)
        site = closing.enter_context(serving(WorkerStores(OneStore(memory), link, 1)))
        assert site.post("/v1/memories", text="I like tea").status == 200
        writer.close()
        refused = site.post("/v1/memories", text="I like jam").error
        assert refused.startswith("503 storage: the process that writes has ended")


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_kill_takes_nothing_that_was_acknowledged(tmp_path: Path, workers: int) -> None:
    acknowledged: list[tuple[str, str]] = []
    enough = threading.Event()

    def write(site: Site, writer: int) -> None:
        for number in itertools.count():
            text = f"Writer {writer} has written note {number}"
            try:
                answer = site.post("/v1/memories", text=text, user_id=f"u{writer}")
            except (OSError, http.client.HTTPException):
                return  # The server has ended in the middle of it.
            if answer.status != 200:
                return
            acknowledged.append((f"u{writer}", text))
            if len(acknowledged) >= 10 * CROWD:
                enough.set()

    with Process(tmp_path / "m.db", "--workers", str(workers)) as process:
        with ThreadPoolExecutor(CROWD) as writers:
            for number in range(CROWD):
                writers.submit(write, process.site, number)
            try:
                assert enough.wait(60)
            finally:
                process.signal(signal.SIGKILL)
        until(lambda: not process.is_open())
        process.wait()
    if workers:
        assert "the process that writes has ended; this worker ends, too" in process.log()
    with Memory(tmp_path / "m.db", embedder="none", create=False) as memory:
        found = {
            (f"u{number}", one.text)
            for number in range(CROWD)
            for one in memory.list(user_id=f"u{number}", limit=1_000).memories
        }
        assert set(acknowledged) <= found
        assert len(found) <= len(acknowledged) + CROWD  # One of each writer was under way.
        assert memory.db.check() == []


@pytest.mark.parametrize("workers", [0, 1])
def test_a_graceful_stop_answers_what_it_has_taken(tmp_path: Path, workers: int) -> None:
    acknowledged: list[str] = []
    odd: list[str] = []

    def write(site: Site, writer: int) -> None:
        for number in itertools.count():
            text = f"Writer {writer} has written note {number}"
            try:
                answer = site.post("/v1/memories", text=text, user_id="ada")
            except (OSError, http.client.HTTPException):
                return  # No more connections are accepted.
            if answer.status != 200:
                odd.append(answer.error)
                return
            acknowledged.append(text)

    with Process(tmp_path / "m.db", "--workers", str(workers)) as process:
        with ThreadPoolExecutor(8) as writers:
            for number in range(8):
                writers.submit(write, process.site, number)
            try:
                until(lambda: len(acknowledged) >= 60)
            finally:
                process.signal(signal.SIGTERM)
        assert process.wait() == 0
    assert all(one.startswith("503") for one in odd), odd
    with Memory(tmp_path / "m.db", embedder="none", create=False) as memory:
        found = {one.text for one in memory.list(user_id="ada", limit=1_000).memories}
        assert set(acknowledged) <= found
        assert memory.db.check() == []
    assert "Traceback" not in process.log()
