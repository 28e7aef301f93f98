"""Many writers to be killed: threads that write memories forever and say so, a line of JSON each.

    python crowd.py PATH SEED WRITERS

A line is printed only after the write has returned, so each is an acknowledged commit.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading

import worlddb


def write_forever(memory: worlddb.Memory, seed: int) -> None:
    """Write memories of two users; each line is one call of the system, so lines never mix."""
    rng = random.Random(seed)
    while True:
        name = f"{rng.choice(('Ada', 'Bob', 'Carl'))} {rng.choice(('Berg', 'Chen', 'Dean'))}"
        text = f"{name} met number {rng.randrange(10**9)} in Oslo."
        written = memory.write(text, user_id=f"user-{seed % 2}")
        assert written.commit is not None
        said = {"seq": written.commit.seq, "hash": str(written.commit.hash), "id": str(written.id)}
        os.write(1, (json.dumps(said) + "\n").encode())


def run(path: str, seed: int, writers: int) -> None:
    """Open the store and write with so many threads until killed."""
    memory = worlddb.Memory(path, embedder="none")
    for number in range(writers - 1):
        arguments = (memory, seed + number)
        threading.Thread(target=write_forever, args=arguments, daemon=True).start()
    write_forever(memory, seed + writers)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
