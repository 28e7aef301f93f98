"""A sharer to be killed: it gives and revokes grants and sets policies forever, and says so.

    python sharer.py PATH SEED USERS

A line of JSON says what is done next, and the same line follows when the call has returned.
"""

from __future__ import annotations

import json
import os
import random
import sys

import worlddb

HELD, TEXT = "held", "The contract stays."


def act(memory: worlddb.Memory, what: str, giver: str, taker: str) -> None:
    """Do one thing with what a user shares, or with how long it is kept."""
    if what == "grant":
        memory.grant(f"user:{taker}", "read", user_id=giver)
    elif what == "revoke":
        for grant in memory.grants(user_id=giver):
            if str(grant.to) == f"user:{taker}":
                memory.revoke(grant.id)
    elif what == "policy":
        memory.set_retention(keep_days=len(taker) + 30, user_id=giver)
        memory.apply_retention()
    else:
        try:
            memory.erase(confirm=True, user_id=HELD)
        except worlddb.RejectedError:
            return
        raise AssertionError("a scope under legal hold was erased")


def run(path: str, seed: int, users: int) -> None:
    """Open the store and share until killed."""
    rng = random.Random(seed)
    with worlddb.Memory(path, embedder="none", recluster="off") as memory:
        memory.write(TEXT, user_id=HELD)
        memory.set_retention(hold="on", user_id=HELD)
        for number in range(users):
            memory.write(f"The secret of user {number}.", user_id=f"user {number}")
        while True:
            giver, taker = rng.sample(range(users), 2)
            what = rng.choice(("grant", "grant", "revoke", "policy", "erase"))
            line = (json.dumps([what, f"user {giver}", f"user {taker}"]) + "\n").encode()
            os.write(1, line)
            act(memory, what, f"user {giver}", f"user {taker}")
            os.write(1, line)


if __name__ == "__main__":
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
