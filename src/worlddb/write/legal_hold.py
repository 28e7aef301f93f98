"""Legal hold: while a scope is under hold, nothing that is in it is erased, whoever asks.

The hold is part of the scope's retention policy, which is metadata of its node. It holds for what
lives in the scope and for its members, however deep inside, and for what an erasure takes along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from worlddb.errors import RejectedError
from worlddb.model.records import SCOPE, Node
from worlddb.store.interface import Reader

RETENTION = "retention"  # The key of the policy in the metadata of a scope.
HOLD = "hold"


def is_held(scope: Node, now: datetime) -> bool:
    """Return whether a scope has not ended and is under legal hold."""
    policy = scope.metadata.get(RETENTION)
    is_over = scope.valid_to is not None and scope.valid_to <= now
    return isinstance(policy, Mapping) and policy.get(HOLD) is True and not is_over


def held_scopes(reader: Reader, rows: Iterable[int], now: datetime) -> list[str]:
    """Return the names of the scopes under hold that some nodes are, or are inside of."""
    found: set[int] = set()
    frontier = set(rows)
    while frontier:
        found |= frontier
        parents = reader.parents(frontier).values()
        above = {parent for parent in parents if parent is not None}
        above |= {item.source for item in reader.edges_at(sorted(frontier), "in", ("contains",))}
        frontier = above - found
    scopes = sorted(body.row for body in reader.bodies(sorted(found)) if body.type == SCOPE)
    return [node.name for _, node in sorted(reader.nodes(scopes).items()) if is_held(node, now)]


def refuse_held(reader: Reader, rows: Iterable[int], now: datetime) -> None:
    """Refuse to erase nodes of a scope under hold.

    Raises:
        RejectedError: one of them is in such a scope.
    """
    for name in held_scopes(reader, rows, now):
        raise RejectedError(
            f"{name} is under legal hold, so nothing of it is erased; an administrator lifts it by "
            "set_retention(hold='off')"
        )
