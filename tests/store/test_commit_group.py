"""Writes that wait together share one COMMIT; each of them lands, fails and is told by itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from worlddb.language import text_tokens
from worlddb.store.commit_group import GROUP_MAX, CommitGroup
from worlddb.store.sqlite import schema
from worlddb.store.sqlite.gate import Gate

PATIENCE_S = 60.0


class Crowd:
    """A store, and calls on it that all wait behind one transaction until the block ends."""

    def __init__(self, path: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.memory = worlddb.Memory(path, embedder="none", recluster="off")
        self.db = self.memory.db
        self.store: Any = self.db.engine.store
        self.sizes: list[int] = []
        self.release = threading.Event()
        end = CommitGroup.end

        def noted(group: CommitGroup, error: Exception | None = None) -> None:
            self.sizes.append(len(group.members))
            end(group, error)

        monkeypatch.setattr(CommitGroup, "end", noted)

    def waiting(self, number: int) -> None:
        """Wait until so many writers stand in the queue, with the one whose turn it is."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.store._gate._turns) < number:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    @contextmanager
    def queued(self, calls: list[Callable[[], Any]]) -> Iterator[list[Future[Any]]]:
        """Queue the calls in this order behind a transaction that ends with the block."""
        with ThreadPoolExecutor(len(calls) + 1) as pool:
            began, self.release = threading.Event(), threading.Event()
            release = self.release

            def hold() -> None:
                with self.db.transaction(actor="holder"):
                    began.set()
                    assert release.wait(PATIENCE_S)

            self.held = pool.submit(hold)
            assert began.wait(PATIENCE_S)
            del self.sizes[:]
            futures = []
            try:
                for number, call in enumerate(calls):
                    futures.append(pool.submit(call))
                    self.waiting(number + 2)
                yield futures
            finally:
                release.set()

    def note(self, name: str, *, fails: bool = False) -> Callable[[], worlddb.Commit | None]:
        """Return a call that writes a node as a plan does, and may fail after it wrote."""

        def write() -> worlddb.Commit | None:
            with self.db.engine.ingestion.transact("crowd", together=True) as tx:
                tx.create_node(type="Fact", name=name, content=name)
                if fails:
                    raise ValueError(name)
            return tx.commit

        return write

    def names(self) -> set[str]:
        """Return the names in the root world."""
        return {node.name for node in self.db.children()}


@pytest.fixture
def crowd(
    path: Path, store_kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Crowd]:
    """Return an open store with its crowd, in a file or on a server."""
    is_file = store_kind == "memory"
    made = Crowd(path if is_file else request.getfixturevalue("new_tenant")(), monkeypatch)
    with made.memory:
        yield made


@pytest.mark.stores
def test_writes_that_wait_together_share_one_commit_and_keep_their_journal(crowd: Crowd) -> None:
    crowd.memory.write("Begins the index of names.", user_id="u2")
    texts = [f"Anna Berg met number {number} in Oslo." for number in range(6)]
    calls: list[Callable[[], Any]] = [
        lambda text=text, n=n: crowd.memory.write(text, user_id=f"u{n % 2}")  # type: ignore[misc]
        for n, text in enumerate(texts)
    ]
    with crowd.queued(calls) as written:
        pass
    commits = [one.result().commit for one in written]
    assert [commit.seq for commit in commits] == list(range(2, 8))
    assert crowd.sizes == [7]  # With the holder's own block, which came first.
    log = crowd.db.log()
    assert log[2:] == commits
    assert [commit.previous for commit in log[1:]] == [commit.hash for commit in log[:-1]]
    for number in range(2):
        found = {memory.content for memory in crowd.memory.list(user_id=f"u{number}").memories}
        assert found == set(texts[number::2])
    assert crowd.db.check() == []


@pytest.mark.stores("memory")
def test_the_same_text_of_two_writers_in_one_group_is_one_memory(crowd: Crowd) -> None:
    crowd.memory.write("Begins the index of names.", user_id="u2")

    def call() -> Any:
        return crowd.memory.write("Anna Berg likes tea.", user_id="ada")

    with crowd.queued([call, call, call]) as written:
        pass
    results = [one.result() for one in written]
    assert len({result.id for result in results}) == 1
    assert [result.created for result in results] == [True, False, False]
    assert len(crowd.memory.list(user_id="ada").memories) == 1


@pytest.mark.stores
def test_a_write_that_fails_takes_back_its_own_part_alone(crowd: Crowd) -> None:
    calls = [crowd.note("a"), crowd.note("bad", fails=True), crowd.note("b"), crowd.note("c")]
    with crowd.queued(calls) as written:
        pass
    with pytest.raises(ValueError, match="bad"):
        written[1].result()
    assert [written[n].result().seq for n in (0, 2, 3)] == [1, 2, 3]
    assert crowd.sizes == [4]
    assert crowd.names() == {"a", "b", "c"}
    assert crowd.db.check() == []


@pytest.mark.stores
def test_the_last_of_a_group_may_fail_and_the_others_still_land(crowd: Crowd) -> None:
    with crowd.queued([crowd.note("a"), crowd.note("bad", fails=True)]) as written:
        pass
    assert written[0].result().seq == 1
    assert written[1].exception() is not None
    assert crowd.names() == {"a"}


@pytest.mark.stores("memory")
def test_a_commit_that_fails_is_told_to_every_writer_and_leaves_nothing(crowd: Crowd) -> None:
    with crowd.queued([crowd.note("a"), crowd.note("b"), crowd.note("c")]) as written:
        # SQLite refuses the COMMIT and takes the whole transaction back.
        crowd.store._writer.set_commit_hook(lambda: True)
    told = [one.exception() for one in (crowd.held, *written)]
    assert all(isinstance(error, worlddb.WorldDBError) for error in told)
    assert len(set(map(id, told))) == len(told)  # Threads do not share one error.
    crowd.store._writer.set_commit_hook(None)
    assert crowd.names() == set()
    assert crowd.note("after")() is not None
    assert [commit.seq for commit in crowd.db.log()] == [0, 1]
    assert crowd.db.check() == []


@pytest.mark.stores("memory")
def test_nobody_is_acknowledged_before_the_commit(crowd: Crowd) -> None:
    seen: list[tuple[int, list[bool]]] = []

    def look() -> bool:
        with apsw.Connection(crowd.store.path, flags=apsw.SQLITE_OPEN_READONLY) as other:
            on_disk = other.execute("SELECT max(seq) FROM commits").get
        seen.append((on_disk, [one.done() for one in written]))
        return False

    with crowd.queued([crowd.note("a"), crowd.note("b"), crowd.note("c")]) as written:
        crowd.store._writer.set_commit_hook(look)
    assert [one.result().seq for one in written] == [1, 2, 3]
    assert seen == [(0, [False, False, False])]


@pytest.mark.stores
def test_a_transaction_of_the_caller_waits_for_the_group_and_reads_all_of_it(crowd: Crowd) -> None:
    read: list[set[str]] = []

    def block() -> None:
        with crowd.db.transaction() as tx:
            read.append(crowd.names())
            tx.create_node(type="Fact", name="block")

    with crowd.queued([crowd.note("a"), crowd.note("b"), block, crowd.note("c")]) as written:
        pass
    assert all(one.exception() is None for one in written)
    assert read == [{"a", "b"}]
    assert crowd.sizes == [3, 2]  # The block begins anew, and who follows it joins.
    assert crowd.names() == {"a", "b", "block", "c"}


@pytest.mark.stores
def test_a_group_has_an_end(crowd: Crowd) -> None:
    calls = [crowd.note(f"{number}") for number in range(GROUP_MAX + 3)]
    with crowd.queued(calls) as written:
        pass
    assert all(one.exception() is None for one in written)
    assert crowd.sizes == [GROUP_MAX, 4]


@pytest.mark.stores("memory")
def test_a_group_whose_next_writer_went_away_lands_by_itself(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Gate, "next_joins", lambda *_: True)  # Somebody comes, but never does.
    assert crowd.note("a")() is not None
    assert crowd.note("b")() is not None
    assert crowd.names() == {"a", "b"}


@pytest.mark.stores("memory")
def test_closing_waits_for_a_group_that_is_open(
    crowd: Crowd, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = Gate.is_idle
    closing = threading.Event()
    # Nobody looks again before the store is being closed.
    monkeypatch.setattr(Gate, "is_idle", lambda gate: closing.is_set() and idle(gate))
    monkeypatch.setattr(Gate, "next_joins", lambda *_: True)
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(crowd.note("a"))
        deadline = time.monotonic() + PATIENCE_S
        while not crowd.store._shared.is_open:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        ended = pool.submit(crowd.memory.close)
        while not crowd.store._gate._closed:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert not ended.done()
        closing.set()
        ended.result()
        assert writing.result() is not None
    with worlddb.open(path) as db:
        assert [node.name for node in db.children()] == ["a"]


@pytest.mark.stores
def test_threads_that_write_memories_at_once_lose_none(crowd: Crowd) -> None:
    start = threading.Barrier(6)

    def write(user: int) -> list[Any]:
        start.wait()
        name = f"user-{user % 3}"
        return [crowd.memory.write(f"Note {n} of {user}.", user_id=name).id for n in range(6)]

    with ThreadPoolExecutor(6) as pool:
        written = [ident for ids in pool.map(write, range(6)) for ident in ids]
    assert len(set(written)) == 36
    found = [m.id for n in range(3) for m in crowd.memory.list(user_id=f"user-{n}").memories]
    assert set(found) == set(written)
    assert crowd.db.check() == []


@pytest.mark.stores
def test_one_thread_gathers_blocks_for_one_commit(crowd: Crowd) -> None:
    landings = []
    with crowd.store.gathering() as gathered:
        for name in ("a", "b", "c"):
            assert crowd.note(name)() is not None
            landings.append(gathered.landing())
            with ThreadPoolExecutor(1) as other:
                assert other.submit(crowd.names).result() == set()
        with pytest.raises(ValueError, match="bad"):
            crowd.note("bad", fails=True)()
        assert crowd.note("d")() is not None
    for landing in landings:
        landing()
    assert crowd.sizes == [4]
    assert crowd.names() == {"a", "b", "c", "d"}
    assert [commit.seq for commit in crowd.db.log()] == [0, 1, 2, 3, 4]
    assert crowd.db.check() == []


def words_in(reader: Any, *words: str) -> list[list[str]]:
    """Return the names of the nodes that the text index has under each word."""
    rows = [reader.texts.latest([word], 9) for word in words]
    return [[node.name for node in reader.nodes(found).values()] for found in rows]


@pytest.mark.stores
@pytest.mark.parametrize("searches", ["in a block that lands", "in a block that fails", "later"])
def test_the_words_of_gathered_blocks_are_found_by_the_next_and_afterwards(
    crowd: Crowd, searches: str
) -> None:
    with crowd.store.gathering():
        crowd.note("alpha")()
        crowd.note("beta")()
        if searches != "later":
            fails = searches == "in a block that fails"
            with suppress(ValueError), crowd.db.engine.ingestion.transact("x", together=True) as tx:
                tx.create_node(type="Fact", name="gamma")
                assert words_in(tx.reader, "alpha", "beta") == [["alpha"], ["beta"]]
                if fails:
                    raise ValueError
    with crowd.store.read() as reader:
        found = words_in(reader, "alpha", "beta", "gamma")
    assert found == [["alpha"], ["beta"], ["gamma"] if "lands" in searches else []]
    assert crowd.db.check() == []


@pytest.mark.stores("memory")
def test_words_are_indexed_although_an_interrupt_came_while_they_were(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, main = text_tokens.indexed_content, threading.main_thread()

    def interrupted(text: str) -> str:
        if threading.current_thread() is main and text == "gamma":
            monkeypatch.setattr(schema, "indexed_content", real)
            raise KeyboardInterrupt
        return real(text)

    monkeypatch.setattr(schema, "indexed_content", interrupted)
    with crowd.queued([crowd.note("alpha"), crowd.note("beta")]) as written:
        threading.Timer(0.2, crowd.release.set).start()
        with suppress(KeyboardInterrupt):  # The last of the group commits, in this thread.
            crowd.note("gamma")()
    assert all(one.result() for one in written)
    with crowd.db.transaction(actor="later") as tx:
        tx.create_node(type="Fact", name="later", content="later")
    with crowd.store.read() as reader:
        assert words_in(reader, "alpha", "beta", "later") == [["alpha"], ["beta"], ["later"]]
    assert crowd.db.check() == []


@pytest.mark.stores("memory")
def test_a_load_after_a_block_that_failed_indexes_its_words_once(crowd: Crowd) -> None:
    crowd.note("old")()
    with pytest.raises(ValueError, match="zeta"):
        crowd.note("zeta", fails=True)()
    with crowd.db.transaction(actor="load", bulk=True) as tx:
        tx.create_nodes([worlddb.NodeDraft(type="Fact", content=f"load{n}") for n in range(300)])
        tx.reader.texts.match(["load5"], 5)
    assert crowd.db.check() == []


@pytest.mark.stores
def test_what_is_gathered_beyond_the_size_of_a_group_is_committed_before(crowd: Crowd) -> None:
    with crowd.store.gathering():
        for number in range(GROUP_MAX + 3):
            crowd.note(f"{number}")()
    assert crowd.sizes == [GROUP_MAX, 3]
    assert len(crowd.names()) == GROUP_MAX + 3


@pytest.mark.stores
def test_another_writer_commits_what_was_gathered_before_it(crowd: Crowd) -> None:
    with ThreadPoolExecutor(1) as other, crowd.store.gathering() as gathered:
        crowd.note("a")()
        landing = gathered.landing()
        assert other.submit(crowd.note("between")).result() is not None
        landing()
        assert other.submit(crowd.names).result() == {"a", "between"}
        crowd.note("b")()
    assert crowd.names() == {"a", "b", "between"}
    assert [commit.seq for commit in crowd.db.log()] == [0, 1, 2, 3]


@pytest.mark.stores("memory")
def test_a_commit_that_fails_is_told_to_every_block_that_was_gathered(crowd: Crowd) -> None:
    with crowd.store.gathering() as gathered:
        landings = []
        for name in ("a", "b"):
            crowd.note(name)()
            landings.append(gathered.landing())
        crowd.store._writer.set_commit_hook(lambda: True)
    crowd.store._writer.set_commit_hook(None)
    for landing in landings:
        with pytest.raises(apsw.ConstraintError):
            landing()
    assert crowd.names() == set()
    assert crowd.note("after")() is not None
    assert [commit.seq for commit in crowd.db.log()] == [0, 1]
    assert crowd.db.check() == []


@pytest.mark.stores("memory")
def test_closing_waits_for_what_is_being_gathered(crowd: Crowd, path: Path) -> None:
    began, release = threading.Event(), threading.Event()

    def gather() -> None:
        with crowd.store.gathering():
            crowd.note("a")()
            began.set()
            assert release.wait(PATIENCE_S)

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(gather)
        assert began.wait(PATIENCE_S)
        ended = pool.submit(crowd.memory.close)
        deadline = time.monotonic() + PATIENCE_S
        while not crowd.store._gate._closed:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        assert not ended.done()
        release.set()
        writing.result()
        ended.result()
    with worlddb.open(path) as db:
        assert [node.name for node in db.children()] == ["a"]
