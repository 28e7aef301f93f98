"""The address: how a node, an edge and a commit become 32 bytes.

The layout is language-neutral and frozen (`tests/format` pins golden values):

    field(x)   = length of x as 4 bytes big-endian ‖ x
    int(n)     = 8 bytes big-endian, two's complement
    node       = blake3( field("worlddb.node.1") ‖ field(type) ‖ field(name) ‖ field(content)
                         ‖ field(children digest) ‖ field(edges digest) ‖ field(int(created_at)) )
    edge       = blake3( field("worlddb.edge.1") ‖ field(type) ‖ field(source) ‖ field(target)
                         ‖ field(int(valid_from)) ‖ field(metadata) ‖ field(int(generation)) )

Text is UTF-8, times are microseconds since 1970 UTC, metadata is JSON with sorted keys, no white
space and no ASCII escapes. A node's *id* is this formula over the empty interior, its *state* the
same over the present one; so a leaf's state is its id.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from blake3 import blake3

from worlddb.model.digest import EMPTY
from worlddb.model.id import Id

pack_length = struct.Struct(">I").pack
pack_int = struct.Struct(">q").pack
_unpack_key = struct.Struct(">q").unpack_from


def field(data: bytes) -> bytes:
    """Return `data` behind its length."""
    return pack_length(len(data)) + data


_NODE = field(b"worlddb.node.1")
_EDGE = field(b"worlddb.edge.1")
_EMPTY_INTERIOR = field(EMPTY) + field(EMPTY)
_INT_LENGTH = pack_length(8)
_ID_LENGTH = pack_length(32)


@lru_cache(maxsize=256)
def _head(domain: bytes, type_: str) -> bytes:
    return domain + field(type_.encode())


def node_address(
    type_: str,
    name: bytes,
    content: bytes,
    created_at: int,
    children: bytes | None = None,
    edges: bytes | None = None,
) -> bytes:
    """Return the address of a node; without digests, over the empty interior."""
    interior = _EMPTY_INTERIOR
    if children is not None or edges is not None:
        interior = field(EMPTY if children is None else children)
        interior += field(EMPTY if edges is None else edges)
    return blake3(
        b"".join(
            (
                _head(_NODE, type_),
                pack_length(len(name)),
                name,
                pack_length(len(content)),
                content,
                interior,
                _INT_LENGTH,
                pack_int(created_at),
            )
        )
    ).digest()


ERASED = -(1 << 63)
"""Stands for the time of creation of a node whose fields were erased."""
_ERASED = field(b"worlddb.erased.1")


def erased_state(ident: bytes, children: bytes, edges: bytes) -> bytes:
    """Return the state of an erased world: its id stands for the fields that are gone."""
    if children == edges == EMPTY:
        return ident
    return blake3(_ERASED + field(ident) + field(children) + field(edges)).digest()


def edge_head(type_: str) -> bytes:
    """Return the part of an edge's address that all edges of a type share."""
    return _head(_EDGE, type_) + _ID_LENGTH


def edge_tail(valid_from: int, metadata: bytes, generation: int = 0) -> bytes:
    """Return the part of an edge's address that follows its two ends."""
    return b"".join(
        (
            _INT_LENGTH,
            pack_int(valid_from),
            pack_length(len(metadata)),
            metadata,
            _INT_LENGTH,
            pack_int(generation),
        )
    )


def edge_address_of(head: bytes, source: bytes, target: bytes, tail: bytes) -> bytes:
    """Return the address of an edge from its parts; bulk loads compute head and tail once."""
    return blake3(b"".join((head, source, _ID_LENGTH, target, tail))).digest()


def edge_address(
    type_: str, source: bytes, target: bytes, valid_from: int, metadata: bytes, generation: int = 0
) -> bytes:
    """Return the address of an edge.

    `generation` counts the deleted edges that said the same before, so that a fact that was
    withdrawn and stated again is a new edge.
    """
    tail = edge_tail(valid_from, metadata, generation)
    return edge_address_of(edge_head(type_), source, target, tail)


def short_key(address: bytes) -> int:
    """Return the first 8 bytes as a signed integer: what the store indexes instead of 32."""
    key: int = _unpack_key(address)[0]
    return key


ROOT_TYPE = "World"
ROOT_NAME = "root"
ROOT_ID = Id(node_address(ROOT_TYPE, ROOT_NAME.encode(), b"", 0))
"""Every store's root world is born at the epoch, so its id is the same everywhere."""
