"""A brancher to be killed: it writes on a store and its branches, merges and drops them forever.

    python brancher.py PATH SEED CHECKPOINT_PAGES

A line of JSON says what is done next, and the same line follows when the call has returned.
"""

from __future__ import annotations

import json
import os
import random
import sys

import worlddb
from worlddb.store.sqlite import gate as checkpoint
from worlddb.store.sqlite.database_file import PAGE_BYTES

BRANCHES = ("left", "right")


def act(memory: worlddb.Memory, what: str, name: str, text: str) -> None:
    """Do one thing on the store or on a branch."""
    if what == "write":
        memory.write(text)
    elif what == "try":
        with memory.branch(name) as branch:
            branch.write(text)
    elif name in {one.name for one in memory.branches()}:
        if what == "merge":
            memory.merge(name)
        else:
            memory.drop_branch(name)


def run(path: str, seed: int) -> None:
    """Open the store and branch until killed."""
    rng = random.Random(seed)
    with worlddb.Memory(path, embedder="none", recluster="off") as memory:
        for number in range(sys.maxsize):
            what = rng.choice(("write", "write", "try", "try", "try", "merge", "drop"))
            said = [what, rng.choice(BRANCHES), f"Note {seed} {number} of {what}."]
            line = (json.dumps(said) + "\n").encode()
            os.write(1, line)
            act(memory, *said)
            os.write(1, line)


if __name__ == "__main__":
    # A small log, so that a short life sees many moves of it below its branches.
    checkpoint.LOG_BYTES_MIN = int(sys.argv[3]) * PAGE_BYTES
    run(sys.argv[1], int(sys.argv[2]))
