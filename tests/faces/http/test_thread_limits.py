"""Threads: who waits for whom when there is much to do."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from patience import until
from worlddb.faces.http.request_limits import (
    BESIDE,
    FIRST_IN_ROW_MAX,
    GROUPED_MAX,
    STANDING_S_MAX,
    TURN_S_MAX,
    Threads,
    Work,
)
from worlddb.memory.memory import Memory

from .serving import DEADLINE_S, Site, serving


@contextmanager
def writing(memory: Memory) -> Iterator[None]:
    """Hold the one place of a writer; what was begun is dropped at the end."""
    with memory.db.transaction(actor="test") as tx:
        tx.create_node(type="Topic", name="in the way")
        yield


def test_readers_do_not_wait_for_writers_that_wait(memory: Memory) -> None:
    def write(number: int) -> int:
        return site.post("/v1/memories", text=f"waits {number}", user_id="crowd").status

    with serving(memory, patience_s=DEADLINE_S) as site, ThreadPoolExecutor(40) as pool:
        first = site.post("/v1/memories", text="was there before", user_id="crowd").data
        with writing(memory):
            waiting = [pool.submit(write, number) for number in range(40)]
            for _ in range(20):
                assert site.get("/health").status == 200
                assert site.get(f"/v1/memories/{first['id']}").status == 200
                assert site.post("/v1/recall", query="before", user_id="crowd").data["hits"]
            assert not any(one.done() for one in waiting)
        assert [one.result() for one in waiting] == [200] * 40
        page = site.get("/v1/memories?user_id=crowd&limit=100").data
    assert len(page["memories"]) == 41


def test_who_waits_too_long_is_told_to_come_again(memory: Memory) -> None:
    def write(site: Site, number: int) -> str:
        answer = site.post("/v1/memories", text=f"patient {number}", user_id="queue")
        if answer.status == 200:
            return "200"
        assert answer.headers["retry-after"] == "1"
        return answer.error

    with serving(memory, patience_s=0.2) as site, ThreadPoolExecutor(20) as pool:
        with writing(memory):
            waiting = [pool.submit(write, site, number) for number in range(20)]
            until(lambda: sum(one.done() for one in waiting) == 20 - GROUPED_MAX)
        answers = sorted(one.result() for one in waiting)
    assert answers == ["200"] * GROUPED_MAX + ["503 busy: the server is busy; try again"] * (
        20 - GROUPED_MAX
    )


def test_a_hundred_callers_at_once_are_all_answered(memory: Memory) -> None:
    def call(number: int) -> int:
        if number % 3 == 0:
            return site.post("/v1/memories", text=f"note {number}", user_id="all").status
        if number % 3 == 1:
            return site.post("/v1/recall", query="which note?", user_id="all").status
        return 200 if site.tool("memory_list", user_id="all")[0] else 500

    with serving(memory, patience_s=DEADLINE_S) as site, ThreadPoolExecutor(100) as pool:
        assert set(pool.map(call, range(300))) == {200}
        page = site.get("/v1/memories?user_id=all&limit=1000").data
    assert len(page["memories"]) == 100


class Turns:
    """Calls on threads that take turns: in which order they ran, and how many at once."""

    def __init__(self) -> None:
        self.threads = Threads(takes_turns=True)
        self.order: list[str] = []
        self.most = self._running = 0
        self._lock = threading.Lock()
        self._numbers = 0

    async def call(self, work: Work, name: str) -> str:
        """Make a call of a caller of its own."""
        self._numbers += 1
        return await self.threads.run(partial(self._run, name), work, f"caller {self._numbers}")

    def _run(self, name: str) -> str:
        with self._lock:
            self._running += 1
            self.most = max(self.most, self._running)
            self.order.append(name)
        time.sleep(STANDING_S_MAX / 20)  # Lets go of the interpreter, as SQLite does.
        with self._lock:
            self._running -= 1
        return name


def test_calls_that_compute_run_one_after_the_other_and_reads_come_first() -> None:
    async def crowd() -> Turns:
        turns = Turns()
        asked = [turns.call("search", f"recall {number}") for number in range(4)]
        asked += [turns.call("read", f"read {number}") for number in range(4)]
        assert await asyncio.gather(*asked) == [
            *(f"recall {number}" for number in range(4)),
            *(f"read {number}" for number in range(4)),
        ]
        return turns

    turns = asyncio.run(crowd())
    assert turns.most == 1
    assert turns.order == [
        *(f"read {number}" for number in range(4)),
        *(f"recall {number}" for number in range(4)),
    ]


def test_many_reads_do_not_keep_a_recall_waiting() -> None:
    async def crowd() -> Turns:
        turns = Turns()

        async def read_on() -> None:
            for _ in range(10):
                await turns.call("read", "read")

        reading = asyncio.gather(*(read_on() for _ in range(8)))
        while not turns.order:
            await asyncio.sleep(0)
        await turns.call("search", "recall")
        await reading
        return turns

    # Reads had the first turns before the recall came.
    assert asyncio.run(crowd()).order.index("recall") <= 2 * FIRST_IN_ROW_MAX


def test_between_two_calls_the_loop_does_what_has_arrived() -> None:
    async def crowd() -> list[str]:
        turns = Turns()
        recalls = [asyncio.create_task(turns.call("search", "recall")) for _ in range(3)]
        while not turns.order:
            await asyncio.sleep(0)
        for _ in range(3):  # Steps of a write that arrives after the first recall.
            await asyncio.sleep(0)
        turns.order.append("write")
        await asyncio.gather(*recalls)
        return turns.order

    assert asyncio.run(crowd()) == ["recall", "write", "recall", "recall"]


def test_a_long_call_delays_neither_the_others_nor_the_loop() -> None:
    go_on = threading.Event()

    async def crowd() -> None:
        turns, longest = Turns(), 0.0
        long = asyncio.create_task(turns.threads.run(go_on.wait, "search", "slow"))
        others = [asyncio.create_task(turns.call("search", "recall")) for _ in range(2)]
        others += [asyncio.create_task(turns.call("read", "read")) for _ in range(BESIDE)]
        while not all(one.done() for one in others):
            began = time.perf_counter()
            await asyncio.sleep(0)
            longest = max(longest, time.perf_counter() - began)
        assert not long.done()
        assert longest < TURN_S_MAX  # It stands still in short pieces, or not at all.
        go_on.set()
        assert await long

    asyncio.run(crowd())


@pytest.mark.parametrize("error", [ValueError("as expected"), StopIteration()])
def test_a_call_that_fails_in_its_turn_fails_alone(error: Exception) -> None:
    def fail() -> None:
        raise error

    async def crowd() -> None:
        turns = Turns()
        failing = turns.threads.run(fail, "read", "one")
        asked: list[Awaitable[object]] = [failing, turns.call("read", "read")]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(found[0], ValueError | RuntimeError)
        assert found[1] == "read"

    asyncio.run(crowd())
