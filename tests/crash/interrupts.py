"""Press Ctrl-C at random instants of writes, reads and closes, and say whether all went on.

    python interrupts.py PATH ROUNDS SEED

The worst case is assumed: each interrupt is kept, with its traceback, as an interactive Python
keeps the last one. So nothing that the interrupt cut off is cleaned up by chance. After each
interrupt the same thread has to write and read at once, and another thread, too; every few rounds
the close itself is interrupted and repeated.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import worlddb

SHARE = 2.0  # Times as long as the work takes: so some rounds are not interrupted.
CLOSING_S = 0.004  # Somewhat longer than closing takes.
SLOW_S = 30.0  # What takes so long after an interrupt has hung, and was saved by a time limit.
CLOSE_EVERY = 8


class Trial:
    """One store under fire."""

    def __init__(self, path: str, seed: int) -> None:
        self.path = path
        self.rng = random.Random(seed)
        self.kept: list[BaseException] = []
        self.failures: list[str] = []
        self.is_armed = False
        self.acknowledged = 0
        self.open()
        self.longest_s = {body.__name__: self.time_of(body) * SHARE for body in self.bodies()}
        signal.signal(signal.SIGALRM, self.press)

    def bodies(self) -> tuple[Callable[[], Any], ...]:
        """Return what is interrupted."""
        return self.write, self.in_same_function, self.remember

    def time_of(self, body: Callable[[], Any]) -> float:
        """Return how long something takes on this machine if nobody interrupts it."""

        def once() -> float:
            began = time.monotonic()
            body()
            return time.monotonic() - began

        return min(once() for _ in range(3))

    def open(self) -> None:
        """Open the store."""
        self.memory = worlddb.Memory(
            self.path,
            embedder="none",
            durability="normal",
            busy_timeout_s=2 * SLOW_S,
            user_id="ada",
        )
        self.db = self.memory.db

    def press(self, number: int, frame: FrameType | None) -> None:
        """Raise what Ctrl-C raises."""
        if self.is_armed:
            self.is_armed = False
            raise KeyboardInterrupt

    def under_fire(self, body: Callable[[], Any], longest_s: float) -> bool:
        """Run `body` with an interrupt at some instant; return whether the interrupt came."""
        kept = len(self.kept)
        try:
            self.is_armed = True
            signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(1e-6, longest_s))
            body()
            self.is_armed = False
        except KeyboardInterrupt as error:
            self.kept.append(error)
        finally:
            self.is_armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        return len(self.kept) > kept

    def write(self) -> None:
        """Make one commit, with a read inside and one after it."""
        with self.db.transaction() as tx:
            node = tx.create_node(type="Fact", name=f"{self.rng.random()}")
            tx.write_edge("refers_to", node.id, self.db.root_id)
        self.acknowledged += 1
        self.db.children()

    def remember(self) -> None:
        """Write a memory and recall it."""
        self.memory.recall("Who likes tea?")
        self.memory.write(f"Anna Berg likes tea number {self.rng.random()}.")
        self.memory.recall("Who likes tea?")

    def in_same_function(self) -> None:
        """Write after an interrupt inside the very function that was interrupted."""
        try:
            with self.db.transaction() as tx:
                tx.create_node(type="Fact", name=f"{self.rng.random()}")
        except KeyboardInterrupt as error:
            self.kept.append(error)
            self.go_on()

    def go_on(self) -> None:
        """Write and read at once: by this thread, and by another one."""
        began = time.monotonic()
        try:
            for run in (self.commit, self.commit_elsewhere):
                before = len(self.db.children())
                run()
                assert len(self.db.children()) == before + 1, "a stale snapshot was read"
            text = f"A note of {self.rng.random()}."
            written = self.memory.write(text).id
            found = [hit.id for hit in self.memory.recall(text, k=1_000)]
            assert written in found, "a stale world was searched"
        except (worlddb.WorldDBError, AssertionError) as error:
            self.failures.append(f"{type(error).__name__}: {error}")
        if time.monotonic() - began > SLOW_S:
            self.failures.append("what followed an interrupt took long")

    def commit(self) -> None:
        """Make one commit."""
        with self.db.transaction() as tx:
            tx.create_node(type="Fact", name=f"{self.rng.random()}")

    def commit_elsewhere(self) -> None:
        """Make one commit in another thread."""
        errors: list[BaseException] = []

        def run() -> None:
            try:
                self.commit()
            except worlddb.WorldDBError as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]

    def close(self) -> None:
        """Interrupt a close, close again, and open again."""
        self.under_fire(self.memory.close, CLOSING_S)
        began = time.monotonic()
        try:
            self.memory.close()
        except worlddb.WorldDBError as error:
            self.failures.append(f"close: {type(error).__name__}: {error}")
        if time.monotonic() - began > SLOW_S:
            self.failures.append("close took long")
        self.open()

    def run(self, rounds: int) -> dict[str, Any]:
        """Return what happened."""
        for number in range(rounds):
            body = self.bodies()[number % 3]
            if self.under_fire(body, self.longest_s[body.__name__]):
                self.go_on()
            if number % CLOSE_EVERY == 0:
                self.close()
        problems = [f"{problem.place}: {problem.message}" for problem in self.db.check()]
        self.memory.close()
        return {
            "rounds": rounds,
            "interrupts": len(self.kept),
            "failures": self.failures,
            "check": problems,
        }


if __name__ == "__main__":
    print(json.dumps(Trial(sys.argv[1], int(sys.argv[3])).run(int(sys.argv[2]))))
