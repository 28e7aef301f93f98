"""The journal's hashes: what a commit vouches for, and how commits chain.

    commit = blake3( field("worlddb.commit.1") ‖ field(previous commit) ‖ field(int(seq))
                     ‖ field(int(time)) ‖ field(actor) ‖ field(root state)
                     ‖ field(nodes) ‖ field(edges) ‖ field(notes) ‖ field(states) ‖ field(changes) )

where nodes, edges, notes and states are blake3 over the records below in the order of writing
(states: sorted by id), and changes is the JSON text of every other effect. Validity is not part of
a node's address; it is part of the commit that set it, which is how a flipped bit is found.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from blake3 import blake3

from worlddb.model.address import Id, field, pack_int
from worlddb.model.records import Change

_COMMIT = field(b"worlddb.commit.1")
GENESIS = Id(bytes(32))
"""What the first commit names as its predecessor."""


def optional_int(value: int | None) -> bytes:
    """Return an integer that may be absent, in one unambiguous form."""
    return b"\0" if value is None else b"\1" + pack_int(value)


def node_record(ident: bytes, parent: bytes, valid_from: int, valid_to: int | None) -> bytes:
    """Return a node's birth: where it was put and how long it was said to be true."""
    return b"".join((ident, parent, pack_int(valid_from), optional_int(valid_to)))


def edge_record(ident: bytes, valid_to: int | None) -> bytes:
    """Return an edge's birth; the rest of the edge is in its address."""
    return ident + optional_int(valid_to)


def note_record(node: bytes, kind: str, text: str) -> bytes:
    """Return an alias or a source that was attached to a node."""
    return node + field(kind.encode()) + field(text.encode())


def state_digest(states: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the digest of the (id, new state) pairs of a commit."""
    hasher = blake3()
    for ident, state in sorted(states):
        hasher.update(ident + state)
    return hasher.digest()


def encode_changes(changes: Sequence[Change]) -> str:
    """Return changes as the JSON text that is stored and hashed."""
    if not changes:
        return "[]"
    rows = [[change.kind, str(change.id), change.detail] for change in changes]
    return json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def decode_changes(text: str) -> tuple[Change, ...]:
    """Return the changes that `encode_changes` wrote."""
    if text == "[]":
        return ()
    return tuple(
        Change(kind=kind, id=Id(ident), detail=detail) for kind, ident, detail in json.loads(text)
    )


def has_erased(changes: str) -> bool:
    """Return whether a commit erased something, without reading its changes through."""
    return '["erase",' in changes


def commit_hash(
    previous: bytes,
    seq: int,
    time: int,
    actor: str,
    root_state: bytes,
    digests: Mapping[str, Any],
    changes: str,
) -> bytes:
    """Return a commit's hash; `digests` has nodes, edges, notes and states."""
    parts = (
        previous,
        pack_int(seq),
        pack_int(time),
        actor.encode(),
        root_state,
        digests["nodes"],
        digests["edges"],
        digests["notes"],
        digests["states"],
        changes.encode(),
    )
    return blake3(_COMMIT + b"".join(map(field, parts))).digest()
