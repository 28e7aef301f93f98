"""Threads: who waits for whom when there is much to do."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from patience import until
from worlddb.faces.http.request_limits import GROUPED_MAX
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
