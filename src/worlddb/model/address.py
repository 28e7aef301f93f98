"""Address: how a node, an edge, a set of them and a commit become 32 bytes of blake3.

The layout is language-neutral and frozen (`tests/format` pins golden values):

    field(x)   = length of x as 4 bytes big-endian ‖ x
    int(n)     = 8 bytes big-endian, two's complement
    node       = blake3( field("worlddb.node.2") ‖ field(type) ‖ field(name) ‖ field(content)
                         ‖ field(children digest) ‖ field(edges digest) ‖ field(int(created_at))
                         ‖ field(blind) )
    edge       = blake3( field("worlddb.edge.2") ‖ field(type) ‖ field(source) ‖ field(target)
                         ‖ field(int(valid_from)) ‖ field(metadata) ‖ field(int(generation))
                         ‖ field(the blinds of source and target) )

Text is UTF-8, times are microseconds since 1970 UTC, metadata is JSON with sorted keys, no white
space and no ASCII escapes. A node's *id* is this formula over an empty interior, its *state* the
same over the present interior; so a leaf's state is its id.

The *blind* is 16 random bytes, stored beside the node and destroyed when the node is erased.
Without it, a text could be found from its id by guessing. The root, scopes (whose ids follow from
their names) and nodes of formats before 5 have no blind; their first field is "worlddb.node.1", and
the last one is left out. In the same way, the address of an edge without metadata, or whose ends
have no blinds, begins with "worlddb.edge.1" and has no blinds.

The digest of a set depends on the set alone, not on the order of writes. A member is a fixed-width
byte string that begins with a 32-byte address: `id ‖ state` for a child, `id` for an interior edge.

    digest(S) at depth d =
        |S| ≤ 64   blake3( field("worlddb.bucket.1") ‖ width as 4 bytes ‖ sorted members )
        else       blake3( field("worlddb.fork.1") ‖ digest(S₀) ‖ … ‖ digest(S₁₅) )

where Sᵢ holds the members whose address has nibble i at depth d, and the empty set is the bucket
of width 0. Equal sets have equal digests; one change touches one bucket and the forks above it.

The journal chains commits by hash:

    commit = blake3( field("worlddb.commit.2") ‖ field(previous commit) ‖ field(int(seq))
                     ‖ field(int(time)) ‖ field(actor) ‖ field(root state)
                     ‖ field(nodes) ‖ field(edges) ‖ field(notes) ‖ field(states) ‖ field(changes)
                     ‖ field(blind) )

All bytes of the hash are explained in docs/concepts/format.md.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from blake3 import blake3

from worlddb.errors import InvalidInputError

ID_BYTES = 32
"""The size of a blake3 digest."""
PREFIX_CHARS_MIN = 4
"""Shorter prefixes would match several nodes in all but the smallest stores."""
BUCKET_MAX = 64
"""Part of the format: a larger bucket makes longer proofs, a smaller one more pages."""
FORK_WIDTH = 16
"""Part of the format: one part for each value of a nibble."""
BLIND_BYTES = 16
"""Part of the format: 128 random bits cannot be guessed, and cost little beside an id."""

_HEX = re.compile(r"[0-9a-f]*", re.ASCII)


class Id(bytes):
    """An address: equal and hashable as bytes, printed as hex.

    `Id("ab…64 hex digits")` and `Id(b"…32 bytes")` are the same value.
    """

    __slots__ = ()

    def __new__(cls, value: bytes | str) -> Id:
        """Check and return 32 bytes or 64 hex digits as an id."""
        if isinstance(value, str):
            if not _HEX.fullmatch(value.lower()) or len(value) % 2:
                raise InvalidInputError(f"{value!r} is not an id: ids are 64 hexadecimal digits")
            value = bytes.fromhex(value)
        if not isinstance(value, bytes):
            raise InvalidInputError(f"an id is 32 bytes or 64 hex digits, not {value!r}")
        if len(value) != ID_BYTES:
            raise InvalidInputError(f"an id has {ID_BYTES} bytes, not {len(value)}")
        return super().__new__(cls, value)

    def __str__(self) -> str:
        return self.hex()

    def __repr__(self) -> str:
        return f"Id({self.hex()!r})"

    def __format__(self, spec: str) -> str:
        return format(self.hex(), spec)

    @property
    def short(self) -> str:
        """The first 12 hex digits: enough for a person, and a valid prefix."""
        return self.hex()[:12]


def trusted_id(address: bytes) -> Id:
    """Return an address that WorldDB hashed or stored as an Id, without checking it again."""
    return bytes.__new__(Id, address)


def parse_prefix(text: str) -> str:
    """Return `text` as a lower-case hex prefix of 4 to 64 digits."""
    prefix = text.strip().lower()
    if not _HEX.fullmatch(prefix):
        raise InvalidInputError(f"{text!r} is not an id: ids are hexadecimal")
    if len(prefix) < PREFIX_CHARS_MIN:
        raise InvalidInputError(f"{text!r} is too short: give at least {PREFIX_CHARS_MIN} digits")
    if len(prefix) > 2 * ID_BYTES:
        raise InvalidInputError(f"{text!r} is too long: an id has {2 * ID_BYTES} digits")
    return prefix


pack_length = struct.Struct(">I").pack
pack_int = struct.Struct(">q").pack
_unpack_key = struct.Struct(">q").unpack_from
_each_key = struct.Struct(">q24x").iter_unpack  # the first 8 of 32 bytes each


def encode_field(data: bytes) -> bytes:
    """Return `data` with its length before it."""
    return pack_length(len(data)) + data


_BUCKET = encode_field(b"worlddb.bucket.1")
_FORK = encode_field(b"worlddb.fork.1")


def bucket_digest(members: Sequence[bytes]) -> bytes:
    """Return the digest of at most 64 sorted members."""
    return joined_bucket_digest(len(members[0]) if members else 0, b"".join(members))


def joined_bucket_digest(width: int, members: bytes) -> bytes:
    """Return the digest of a bucket from its concatenated members."""
    return blake3(_BUCKET + pack_length(width) + members).digest()


def fork_digest(digests: Sequence[bytes]) -> bytes:
    """Return the digest of a fork from the digests of its 16 parts."""
    return joined_fork_digest(b"".join(digests))


def joined_fork_digest(digests: bytes) -> bytes:
    """Return the digest of a fork from the concatenated digests of its parts."""
    return blake3(_FORK + digests).digest()


EMPTY = bucket_digest(())
"""The digest of the empty set."""


def nibble(member: bytes, depth: int) -> int:
    """Return the half-byte of the member's address at `depth`."""
    byte = member[depth >> 1]
    return byte & 15 if depth & 1 else byte >> 4


def split(members: Sequence[bytes], depth: int) -> list[Sequence[bytes]]:
    """Split sorted members that agree on the first `depth` nibbles by the next one."""
    if len(members) <= FORK_WIDTH:
        few: list[list[bytes]] = [[] for _ in range(FORK_WIDTH)]
        for member in members:
            few[nibble(member, depth)].append(member)
        return few  # type: ignore[return-value]
    parts: list[Sequence[bytes]] = []
    start = 0
    prefix = members[0][: depth >> 1]
    high = members[0][depth >> 1] & 0xF0
    for i in range(1, FORK_WIDTH):
        bound = prefix + bytes(((high | i) if depth & 1 else (i << 4),))
        end = bisect_left(members, bound, start)
        parts.append(members[start:end])
        start = end
    parts.append(members[start:])
    return parts


def set_digest(members: Sequence[bytes], depth: int = 0) -> bytes:
    """Return the digest of sorted members that agree on the first `depth` nibbles."""
    if len(members) <= BUCKET_MAX:
        return bucket_digest(members) if members else EMPTY
    return fork_digest([set_digest(part, depth + 1) for part in split(members, depth)])


_NODE = encode_field(b"worlddb.node.1")
_BLIND_NODE = encode_field(b"worlddb.node.2")
_EDGE = encode_field(b"worlddb.edge.1")
_BLIND_EDGE = encode_field(b"worlddb.edge.2")
NO_METADATA = b"{}"
_EMPTY_INTERIOR = encode_field(EMPTY) + encode_field(EMPTY)
_INT_LENGTH = pack_length(8)
_ID_LENGTH = pack_length(32)


@lru_cache(maxsize=256)
def _head(domain: bytes, type_: str) -> bytes:
    return domain + encode_field(type_.encode())


def node_address(
    type_: str,
    name: bytes,
    content: bytes,
    created_at: int,
    children: bytes | None = None,
    edges: bytes | None = None,
    blind: bytes = b"",
) -> bytes:
    """Return the address of a node; without digests, over the empty interior."""
    interior = _EMPTY_INTERIOR
    if children is not None or edges is not None:
        interior = encode_field(EMPTY if children is None else children)
        interior += encode_field(EMPTY if edges is None else edges)
    return blake3(
        b"".join(
            (
                _head(_BLIND_NODE if blind else _NODE, type_),
                pack_length(len(name)),
                name,
                pack_length(len(content)),
                content,
                interior,
                _INT_LENGTH,
                pack_int(created_at),
                pack_length(len(blind)) + blind if blind else b"",
            )
        )
    ).digest()


@lru_cache(maxsize=64)
def _spaced(text: str) -> str:
    """Return a text with single spaces; cached, because a write asks for it several times."""
    return " ".join(text.split())


def content_key(type_: str, name: str, content: str, world: int) -> int:
    """Return the key of a node in the content index, for the world in which it was born.

    Equal for equal texts, whatever the white space; for a node without content, for equal names.
    """
    text = f"content\0{_spaced(content)}" if content else f"name\0{name}"
    return short_key(blake3(f"{world}\0{type_}\0{text}".encode("utf-8", "surrogatepass")).digest())


def content_keys(texts: Iterable[tuple[str, str, str]], worlds: Iterable[int]) -> list[int]:
    """Return the content keys of some (type, name, content), in each of some worlds."""
    places = [f"{world}\0" for world in worlds]
    said = [
        f"{type_}\0content\0{_spaced(content)}" if content else f"{type_}\0name\0{name}"
        for type_, name, content in texts
    ]
    return [
        _unpack_key(blake3((place + text).encode("utf-8", "surrogatepass")).digest())[0]
        for text in dict.fromkeys(said)
        for place in places
    ]


def has_address(
    ident: bytes, type_: str, name: str, content: str, created_at: int, blind: bytes
) -> bool:
    """Return whether a node's fields hash to its id; for an erased node, whether it has none.

    Only `check` can tell whether the journal erased the node.
    """
    if created_at == ERASED:
        return not name and not content and not blind
    return node_address(type_, name.encode(), content.encode(), created_at, blind=blind) == ident


ERASED = -(1 << 63)
"""The time of creation stored for a node whose fields were erased."""
_ERASED = encode_field(b"worlddb.erased.1")


def erased_state(ident: bytes, children: bytes, edges: bytes) -> bytes:
    """Return the state of an erased world; its id replaces the erased fields."""
    if children == edges == EMPTY:
        return ident
    return blake3(_ERASED + b"".join(map(encode_field, (ident, children, edges)))).digest()


def edge_head(type_: str, blind: bytes = b"") -> bytes:
    """Return the part of an edge's address that all edges of a type share."""
    return _head(_BLIND_EDGE if blind else _EDGE, type_) + _ID_LENGTH


def edge_tail(valid_from: int, metadata: bytes, generation: int = 0, blind: bytes = b"") -> bytes:
    """Return the part of an edge's address that follows its two ends."""
    return b"".join(
        (
            _INT_LENGTH,
            pack_int(valid_from),
            pack_length(len(metadata)),
            metadata,
            _INT_LENGTH,
            pack_int(generation),
            encode_field(blind) if blind else b"",
        )
    )


def edge_address_of(head: bytes, source: bytes, target: bytes, tail: bytes) -> bytes:
    """Return the address of an edge from its parts; bulk loads compute head and tail once."""
    return blake3(b"".join((head, source, _ID_LENGTH, target, tail))).digest()


def edge_addresses(
    head: bytes, ends: Iterable[tuple[bytes, bytes]], tails: Iterable[bytes]
) -> list[bytes]:
    """Return the addresses of many edges of one type, as `edge_address_of` does for one."""
    between = _ID_LENGTH
    return [
        blake3(b"".join((head, source, between, target, tail))).digest()
        for (source, target), tail in zip(ends, tails, strict=True)
    ]


def edge_address(
    type_: str,
    source: bytes,
    target: bytes,
    valid_from: int,
    metadata: bytes,
    generation: int = 0,
    blind: bytes = b"",
) -> bytes:
    """Return the address of an edge.

    `generation` counts the deleted edges with the same fields, so that a fact that was withdrawn
    and stated again is a new edge. `blind` are the blinds of the two ends. Without metadata there
    is nothing to guess, and they are not used.
    """
    if metadata == NO_METADATA:
        blind = b""
    tail = edge_tail(valid_from, metadata, generation, blind)
    return edge_address_of(edge_head(type_, blind), source, target, tail)


def short_key(address: bytes) -> int:
    """Return the first 8 bytes as a signed integer, which the store indexes instead of 32 bytes."""
    key: int = _unpack_key(address)[0]
    return key


def short_keys(addresses: Iterable[bytes]) -> list[int]:
    """Return the short keys of many addresses."""
    return [key for (key,) in _each_key(b"".join(addresses))]


ROOT_TYPE = "World"
ROOT_NAME = "root"
ROOT_ID = Id(node_address(ROOT_TYPE, ROOT_NAME.encode(), b"", 0))
"""The root world of every store is born at the epoch, so its id is the same everywhere."""

# -- the journal -----------------------------------------------------------------------------------

GENESIS = Id(bytes(32))
"""The hash that the first commit has as its predecessor."""
NO_INT = b"\0"
"""The encoding of an absent integer; precomputed, because most records have one."""
_COMMIT = encode_field(b"worlddb.commit.1")
_BLIND_COMMIT = encode_field(b"worlddb.commit.2")


def optional_int(value: int | None) -> bytes:
    """Return an integer that may be absent, in an unambiguous encoding."""
    return NO_INT if value is None else b"\1" + pack_int(value)


def node_record(ident: bytes, parent: bytes, valid_from: int, valid_to: int | None) -> bytes:
    """Return the birth record of a node: its parent and its first validity."""
    end = NO_INT if valid_to is None else optional_int(valid_to)
    return b"".join((ident, parent, pack_int(valid_from), end))


def edge_record(ident: bytes, valid_to: int | None) -> bytes:
    """Return the birth record of an edge; the rest of the edge is in its address."""
    return ident + (NO_INT if valid_to is None else optional_int(valid_to))


def edge_records(idents: Iterable[bytes]) -> bytes:
    """Return the birth records of edges without an end, one after the other."""
    return NO_INT.join((*idents, b""))


def note_record(node: bytes, kind: str, text: str) -> bytes:
    """Return the record of a note (alias, source, …) of a node."""
    return node + encode_field(kind.encode()) + encode_field(text.encode())


def state_digest(states: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the digest of the (id, new state) pairs of a commit."""
    hasher = blake3()
    for ident, state in sorted(states):
        hasher.update(ident + state)
    return hasher.digest()


def commit_hash(
    previous: bytes,
    seq: int,
    time: int,
    actor: str,
    root_state: bytes,
    digests: Mapping[str, Any],
    changes: str,
    blind: bytes = b"",
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
    fields = b"".join(map(encode_field, (*parts, blind) if blind else parts))
    return blake3((_BLIND_COMMIT if blind else _COMMIT) + fields).digest()
