"""Verify that nothing was rewritten in a store, without the store and without WorldDB.

    worlddb prove --since 0 --json > then.json       # keep the last log_head, or the file
    worlddb prove --since 41 --json > now.json       # later: 41 was the last commit then
    python verify_history.py now.json FIRST_LOG_HEAD LAST_LOG_HEAD

Needs blake3 alone (pip install blake3).
"""

import json
import sys
from typing import Any

from blake3 import blake3


def tagged(tag: bytes, *parts: bytes) -> bytes:
    return blake3(len(tag).to_bytes(4, "big") + tag + b"".join(parts)).digest()


def fork(left: bytes, right: bytes) -> bytes:
    return tagged(b"worlddb.log.fork.1", left, right)


def is_last(point: dict[str, Any]) -> bool:
    """Return whether the commit of a checkpoint is the last one under its log head."""
    both = bytes.fromhex(point["hash"]), bytes.fromhex(point["root_state"])
    digest = tagged(b"worlddb.log.leaf.1", *both)
    for left in point["path"]:
        digest = fork(bytes.fromhex(left), digest)
    is_long_enough = len(point["path"]) == bin(point["commit"]).count("1")
    return digest.hex() == point["log_head"] and is_long_enough


def holds(proof: dict[str, Any], first_head: str, last_head: str) -> bool:
    first, last = proof["first"], proof["last"]
    if (first["log_head"], last["log_head"]) != (first_head, last_head):
        return False
    if not is_last(first) or not is_last(last) or first["commit"] > last["commit"]:
        return False
    parts = [bytes.fromhex(part) for part in proof["path"]]
    inner, outer = first["commit"], last["commit"]
    if inner == outer:
        return not parts and first_head == last_head
    if inner & (inner + 1) == 0:  # The earlier log is one whole tree.
        parts.insert(0, bytes.fromhex(first_head))
    while inner & 1:
        inner, outer = inner >> 1, outer >> 1
    earlier = later = parts[0]
    for part in parts[1:]:
        if outer == 0:
            return False
        if inner & 1 or inner == outer:
            earlier, later = fork(part, earlier), fork(part, later)
            while inner and not inner & 1:
                inner, outer = inner >> 1, outer >> 1
        else:
            later = fork(later, part)
        inner, outer = inner >> 1, outer >> 1
    return outer == 0 and (earlier.hex(), later.hex()) == (first_head, last_head)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = holds(json.load(file), sys.argv[2], sys.argv[3])
    print("holds" if found else "does not hold")
    sys.exit(not found)
