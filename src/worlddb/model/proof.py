"""Proofs: that a node stands under a root state, and that a journal only grew; by blake3 alone.

A proof goes up from the node to the root. Each step opens one world: its own fields, the digest of
its interior edges, and the path through its set of children: first the bucket with the member `id ‖
state`, then the 16 digests of each fork above it. `verify_proof` needs no store and no other state;
it can be written in any language from `model/address.py`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from blake3 import blake3

from worlddb.model.address import (
    BLIND_BYTES,
    BUCKET_MAX,
    FORK_WIDTH,
    ID_BYTES,
    ROOT_ID,
    Id,
    bucket_digest,
    encode_field,
    erased_state,
    fork_digest,
    node_address,
)
from worlddb.model.inputs import Plain

# History proof: that a later state of the journal only added commits to an earlier one.
#
# The *log* of a store is the list of its commits. Its head is the root of a binary hash tree over
# them, as in RFC 9162 (Certificate Transparency), with blake3:
#
#     leaf(commit)       = blake3( field("worlddb.log.leaf.1") ‖ commit hash ‖ root state )
#     fork(left, right)  = blake3( field("worlddb.log.fork.1") ‖ left ‖ right )
#     head of n leaves   = leaf if n = 1, else fork(head of the first m, head of the rest),
#                          m the largest power of 2 below n
#
# With the head of an earlier time, anyone can verify that the log of a later head begins with the
# very same commits: nothing was rewritten, left out or inserted. The proof has O(log n) hashes. It
# stays valid after erasures, which destroy the data that single commits were hashed from.

_LEAF = encode_field(b"worlddb.log.leaf.1")
_FORK = encode_field(b"worlddb.log.fork.1")


def log_leaf(commit_hash: bytes, root_state: bytes) -> bytes:
    """Return the leaf of a commit."""
    return blake3(_LEAF + commit_hash + root_state).digest()


def log_fork(left: bytes, right: bytes) -> bytes:
    """Return the hash of two adjacent parts of the log."""
    return blake3(_FORK + left + right).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint(Plain):
    """The log as of a commit: keep `log_head`. `path` proves that the commit is its last one."""

    commit: int
    hash: Id
    root_state: Id
    log_head: Id
    path: tuple[Id, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryProof(Plain):
    """Two states of a log, and the proof that the later one begins with the earlier one."""

    first: Checkpoint
    last: Checkpoint
    path: tuple[Id, ...]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> HistoryProof:
        """Return the proof from the result of `to_dict`."""

        def checkpoint(given: Mapping[str, Any]) -> Checkpoint:
            ids = {name: Id(given[name]) for name in ("hash", "root_state", "log_head")}
            return Checkpoint(commit=given["commit"], path=tuple(map(Id, given["path"])), **ids)

        path = tuple(map(Id, data["path"]))
        return cls(first=checkpoint(data["first"]), last=checkpoint(data["last"]), path=path)


def verify_history(
    proof: HistoryProof | Mapping[str, Any],
    first_head: bytes | str | None = None,
    last_head: bytes | str | None = None,
) -> bool:
    """Return whether nothing was rewritten between the two checkpoints of a proof.

    `first_head` and `last_head` are log heads that you kept yourself; without them, those in the
    proof are trusted. Needs blake3 alone. A malformed proof gives False.
    """
    try:
        proof = proof if isinstance(proof, HistoryProof) else HistoryProof.from_dict(proof)
        for given, checkpoint in ((first_head, proof.first), (last_head, proof.last)):
            if given is not None and Id(given) != checkpoint.log_head:
                return False
            if not _is_last(checkpoint):
                return False
        sizes = proof.first.commit + 1, proof.last.commit + 1
        heads = _heads(*sizes, proof.first.log_head, proof.path)
    except (ValueError, TypeError, LookupError, AttributeError):
        return False
    return heads == (proof.first.log_head, proof.last.log_head)


def _is_last(checkpoint: Checkpoint) -> bool:
    """Return whether the commit is the last leaf under the head: all other parts are on its left.

    The length of the path is the number of bits of the commit's number; no other leaf has such a
    path.
    """
    if type(checkpoint.commit) is not int or checkpoint.commit < 0:
        return False
    if len(checkpoint.path) != checkpoint.commit.bit_count():
        return False
    digest = log_leaf(checkpoint.hash, checkpoint.root_state)
    for left in checkpoint.path:
        digest = log_fork(left, digest)
    return digest == checkpoint.log_head


def _heads(
    first: int, last: int, first_head: bytes, path: Sequence[bytes]
) -> tuple[bytes, bytes] | None:
    """Return both heads computed from the path, for logs of these sizes (RFC 9162, 2.1.4.2)."""
    if not 0 < first <= last or any(len(part) != ID_BYTES for part in path):
        return None
    if first == last:
        return (first_head, first_head) if not path else None
    parts = list(path)
    if first & (first - 1) == 0:
        parts.insert(0, first_head)  # A complete tree is a part of the later one.
    inner, outer = first - 1, last - 1
    while inner & 1:
        inner, outer = inner >> 1, outer >> 1
    if not parts:
        return None
    earlier = later = parts[0]
    for part in parts[1:]:
        if outer == 0:
            return None
        if inner & 1 or inner == outer:
            earlier, later = log_fork(part, earlier), log_fork(part, later)
            while inner and not inner & 1:
                inner, outer = inner >> 1, outer >> 1
        else:
            later = log_fork(later, part)
        inner, outer = inner >> 1, outer >> 1
    return (earlier, later) if outer == 0 else None


# Nodes under a root state.


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One world on the path to the root, as hex and plain text."""

    id: str
    type: str
    name: str
    content: str
    created_at: int
    edges: str
    bucket: tuple[str, ...]
    forks: tuple[tuple[str, ...], ...]
    blind: str = ""
    erased: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The path from a node's state to the root state; plain data, JSON by `to_dict`."""

    id: str
    state: str
    steps: tuple[Step, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the proof as plain JSON data."""
        data = asdict(self)
        for step in data["steps"]:
            for key in ("blind", "erased"):
                if not step[key]:
                    del step[key]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Proof:
        """Return the proof from the result of `to_dict`."""
        steps = tuple(
            Step(
                **{
                    **step,
                    "bucket": tuple(step["bucket"]),
                    "forks": tuple(tuple(fork) for fork in step["forks"]),
                }
            )
            for step in data["steps"]
        )
        return cls(id=data["id"], state=data["state"], steps=steps)


def verify_proof(proof: Proof | Mapping[str, Any], root_state: bytes | str) -> bool:
    """Return whether `proof` proves its node under `root_state`.

    Needs blake3 alone. A malformed proof gives False.
    """
    try:
        proof = proof if isinstance(proof, Proof) else Proof.from_dict(proof)
        root = root_state if isinstance(root_state, bytes) else bytes.fromhex(root_state)
        ident, state = bytes(Id(proof.id)), bytes(Id(proof.state))
        for step in proof.steps:
            children = _climb(step, ident + state)
            if step.erased is True:
                # Its fields are erased; its id replaces them, here and in the world above.
                ident = bytes(Id(step.id))
                state = erased_state(ident, children, bytes(Id(step.edges)))
                continue
            fields = (step.type, step.name.encode(), step.content.encode(), step.created_at)
            blind = bytes.fromhex(step.blind)
            if len(blind) not in (0, BLIND_BYTES):
                return False
            ident = node_address(*fields, blind=blind)
            if ident.hex() != step.id:
                return False
            state = node_address(*fields, children, bytes(Id(step.edges)), blind)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, struct.error):
        return False
    # The path must end at the root world; otherwise any state could pass for the root's.
    return ident == ROOT_ID and state == root


def _climb(step: Step, member: bytes) -> bytes:
    """Return the digest of the step's children after checking that `member` is in its bucket."""
    bucket = [bytes.fromhex(text) for text in step.bucket]
    if member not in bucket or bucket != sorted(set(bucket)) or len(bucket) > BUCKET_MAX:
        raise ValueError("the member is not in the bucket")
    # The hash covers the concatenated bytes: other cuts could show members that do not exist.
    if any(len(other) != len(member) for other in bucket):
        raise ValueError("the bucket is cut in the wrong places")
    digest = bucket_digest(bucket)
    for depth, fork in zip(range(len(step.forks) - 1, -1, -1), step.forks, strict=True):
        parts = [bytes.fromhex(text) for text in fork]
        index = int(member.hex()[depth], 16)
        if len(parts) != FORK_WIDTH or any(len(part) != 32 for part in parts):
            raise ValueError("the fork is cut in the wrong places")
        if parts[index] != digest:
            raise ValueError("the fork does not hold the part below it")
        digest = fork_digest(parts)
    return digest
