"""Proofs: that a node stands in the tree under a root state, checked with blake3 alone.

A proof climbs from the node to the root. Each step opens one world: its own fields, the digest of
its interior edges, and the way through its set of children: first the bucket that holds the member
`id ‖ state`, then the 16 digests of each fork above it. `verify_proof` needs neither a store nor
the rest of this package's state; it can be rewritten from `model/address.py` in any language.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from worlddb.model.address import (
    BLIND_BYTES,
    BUCKET_MAX,
    FORK_WIDTH,
    ROOT_ID,
    Id,
    bucket_digest,
    erased_state,
    fork_digest,
    node_address,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One world on the way up, as hex and plain text."""

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
    """The way from a node's state to the root state; plain data, JSON-able by `to_dict`."""

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
        """Return the proof that `to_dict` wrote."""
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
    """Return whether `proof` shows its node under `root_state`.

    Checks with blake3 alone; malformed proofs are simply not proofs, so the answer is False.
    """
    try:
        proof = proof if isinstance(proof, Proof) else Proof.from_dict(proof)
        root = root_state if isinstance(root_state, bytes) else bytes.fromhex(root_state)
        ident, state = bytes(Id(proof.id)), bytes(Id(proof.state))
        for step in proof.steps:
            children = _climb(step, ident + state)
            if step.erased is True:
                # Its fields are gone; its id stands for them, here and in the world above.
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
    # The climb must end at the root world itself, or any state could pass for the root's.
    return ident == ROOT_ID and state == root


def _climb(step: Step, member: bytes) -> bytes:
    """Return the digest of the step's children, having found `member` in its bucket."""
    bucket = [bytes.fromhex(text) for text in step.bucket]
    if member not in bucket or bucket != sorted(set(bucket)) or len(bucket) > BUCKET_MAX:
        raise ValueError("the member is not in the bucket")
    # The hash covers the bytes in a row: cut elsewhere, they would show members that never were.
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
