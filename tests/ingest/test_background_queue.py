"""Background queue: work after commits is batched under load, waited for, and never lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

import worlddb
from worlddb import Id, Proposal, WorldDB
from worlddb.identity.match_values import ResolverSettings
from worlddb.ingest import background_queue as later
from worlddb.ingest.background_queue import BackgroundQueue, Nodes

PATIENCE_S = 60
BRIEFLY_S = 0.3
ONE, TWO, THREE = ((Id(bytes([number]) * 32),) for number in (1, 2, 3))
NAMES = ("Jonathan Smyth", "Jonathon Smyth", "Kathryn Cole", "Katherine Cole", "Jon Smyth")


@pytest.fixture
def queue() -> Iterator[BackgroundQueue]:
    made = BackgroundQueue()
    yield made
    made.close()


@pytest.fixture
def restful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the thread rest longer than any test runs, unless somebody is in a hurry."""
    monkeypatch.setattr(later, "RESTS", 1e12)
    monkeypatch.setattr(later, "REST_S_MAX", 10.0 * PATIENCE_S)


class Work:
    """Work that notes what it was given, and waits at its first call if it is told to."""

    def __init__(self, *, held: bool = False) -> None:
        self.calls: list[list[Nodes]] = []
        self.began, self.go_on = threading.Event(), threading.Event()
        if not held:
            self.go_on.set()

    def __call__(self, puts: Sequence[Nodes]) -> list[Proposal]:
        self.calls.append(list(puts))
        self.began.set()
        assert self.go_on.wait(PATIENCE_S)
        return []


def test_what_waits_under_one_key_is_done_in_one_go(queue: BackgroundQueue) -> None:
    first, many = Work(held=True), Work()
    queue.put("other", ONE, first)
    assert first.began.wait(PATIENCE_S)
    for nodes in (ONE, TWO, THREE):
        queue.put("key", nodes, many)
    first.go_on.set()
    assert queue.wait(PATIENCE_S)
    assert many.calls == [[ONE, TWO, THREE]]
    assert [seen.nodes for seen in queue.done] == [ONE, ONE + TWO + THREE]


def test_what_comes_after_it_has_begun_is_done_after_it(queue: BackgroundQueue) -> None:
    work = Work(held=True)
    queue.put("key", ONE, work)
    assert work.began.wait(PATIENCE_S)
    queue.put("key", TWO, work)
    work.go_on.set()
    assert queue.wait(PATIENCE_S)
    assert work.calls == [[ONE], [TWO]]


def test_no_key_keeps_the_others_waiting(
    queue: BackgroundQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(later, "TOGETHER_MAX", 2)
    first, many, other = Work(held=True), Work(), Work()
    queue.put("first", ONE, first)
    assert first.began.wait(PATIENCE_S)
    for nodes in (ONE, TWO, THREE):
        queue.put("key", nodes, many)
    queue.put("other", TWO, other)
    first.go_on.set()
    assert queue.wait(PATIENCE_S)
    assert (many.calls, other.calls) == ([[ONE, TWO], [THREE]], [[TWO]])
    assert [seen.nodes for seen in queue.done] == [ONE, ONE + TWO, TWO, THREE]


@pytest.mark.usefixtures("restful")
def test_a_thread_that_rests_gathers_and_who_waits_wakes_it(queue: BackgroundQueue) -> None:
    first, many = Work(held=True), Work()
    queue.put("first", ONE, first)
    assert first.began.wait(PATIENCE_S)
    first.go_on.set()
    with queue._state:
        assert queue._state.wait_for(lambda: queue.done, PATIENCE_S)
    queue.put("key", ONE, many)
    assert not many.began.wait(BRIEFLY_S), "it rests"
    queue.put("key", TWO, many)
    assert queue.wait(PATIENCE_S)
    assert many.calls == [[ONE, TWO]]


def test_waiting_gives_up_in_time(queue: BackgroundQueue) -> None:
    work = Work(held=True)
    queue.put("key", ONE, work)
    assert not queue.wait(0.01)
    work.go_on.set()
    assert queue.wait(PATIENCE_S)


def test_a_failure_is_told_and_stops_nothing(queue: BackgroundQueue) -> None:
    def fail(puts: Sequence[Nodes]) -> list[Proposal]:
        raise ZeroDivisionError("of all things")

    work = Work()
    queue.put("bad", ONE, fail)
    queue.put("good", TWO, work)
    assert queue.wait(PATIENCE_S)
    assert [seen.error for seen in queue.done] == ["ZeroDivisionError: of all things", None]
    assert work.calls == [[TWO]]


@pytest.mark.usefixtures("restful")
def test_closing_finishes_what_was_put_and_takes_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(later, "CLOSING_S_MAX", PATIENCE_S)
    queue, work = BackgroundQueue(), Work()
    for number, nodes in enumerate((ONE, TWO, THREE)):
        queue.put(number, nodes, work)
    queue.close()
    assert work.calls == [[ONE], [TWO], [THREE]]
    queue.put("late", ONE, work)
    assert queue.wait(PATIENCE_S)
    assert len(work.calls) == 3


# -- in a store ------------------------------------------------------------------------------------


def proposed(db: WorldDB) -> set[frozenset[str]]:
    return {
        frozenset(db.get(side).name for side in (item.left, item.right)) for item in db.proposals()
    }


def told(path: Path, when: Literal["now", "later"]) -> set[frozenset[str]]:
    """Return what is proposed of a store of likely names that nobody compared when written."""
    hold = Work(held=True)
    with worlddb.open(path, durability="normal", embedder="none") as db:
        db.engine.background.put("in the way", ONE, hold)
        with db.transaction() as tx:
            for name in NAMES:
                tx.create_node(type="Entity", name=name)
        for name in NAMES:
            for meal in ("Lunch", "Dinner"):
                db.ingest(f"{meal} with {name}.", recluster=when)
        hold.go_on.set()
        assert db.wait(PATIENCE_S)
        assert [seen.error for seen in db.reclustered] == [None] * (2 if when == "later" else 1)
        assert db.check() == []
        return proposed(db)


def test_looking_at_many_writes_at_once_proposes_the_same(tmp_path: Path) -> None:
    each = told(tmp_path / "each.db", "now")
    assert len(each) > 2
    assert told(tmp_path / "gathered.db", "later") == each


NEVER_CLOSED = """
import sys, worlddb
from worlddb.ingest import background_queue
background_queue.CLOSING_S_MAX = 60
db = worlddb.open(sys.argv[1], durability="normal", embedder="none")
with db.transaction() as tx:
    for name in sys.argv[2:]:
        tx.create_node(type="Entity", name=name)
for name in sys.argv[2:]:
    db.ingest(f"Lunch with {name}.")
"""


def test_a_process_that_ends_without_closing_finishes_it(tmp_path: Path) -> None:
    path = tmp_path / "left.db"
    command = [sys.executable, "-c", NEVER_CLOSED, str(path), *NAMES]
    subprocess.run(command, check=True, timeout=PATIENCE_S, capture_output=True)
    with worlddb.open(path, embedder="none") as db:
        assert frozenset(NAMES[:2]) in proposed(db)


def test_settings_given_as_a_plain_set_are_looked_again_by_as_well() -> None:
    loose: Any = {"exact", "fuzzy"}
    with worlddb.open(":memory:") as db:
        db.ingest("Ada met Charles in Turin.", resolver=ResolverSettings(tiers=loose))
        assert db.wait(PATIENCE_S)
        assert [done.error for done in db.reclustered] == [None]
