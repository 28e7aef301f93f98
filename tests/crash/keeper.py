"""A keeper to be killed: writes, applies retention policies, and says so, a line of JSON each.

    python keeper.py PATH START ROUNDS

START is when its clock begins, in days; a day later everything written is due. The first line says
that the policies are there. Every other is printed only after `apply_retention` has returned.
"""

from __future__ import annotations

import os
import sys

import worlddb

DAY = 86_400_000_000
HELD, GONE, ENDED = "held", "gone", "ended"
"""Whose memories are under hold, are erased when due, and are retired when due."""
WORDS = {HELD: "heliotrope", GONE: "gooseberry", ENDED: "elderflower"}


class Clock:
    """Goes on by a microsecond with each look, and by days when told to."""

    def __init__(self, days: int) -> None:
        self.now = days * DAY

    def __call__(self) -> int:
        self.now += 1
        return self.now


def opened(path: str, clock: Clock) -> worlddb.Memory:
    """Return the store, as all sides of the trial open it."""
    return worlddb.Memory(path, embedder="none", recluster="off", clock=clock)


def run(path: str, start: int, rounds: int) -> None:
    """Write for each scope, let a day pass, apply the policies; until killed."""
    clock = Clock(start)
    memory = opened(path, clock)
    for user in WORDS:
        memory.write(f"It begins with a {WORDS[user]}.", user_id=user)
        memory.set_retention(
            keep_days=1,
            then="retire" if user == ENDED else "erase",
            hold="on" if user == HELD else "off",
            user_id=user,
        )
    os.write(1, b"-1\n")
    for number in range(rounds):
        for user, word in WORDS.items():
            memory.write(f"Round {start}.{number}: a {word}.", user_id=user)
        clock.now += 2 * DAY
        memory.apply_retention()
        os.write(1, f"{number}\n".encode())


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
