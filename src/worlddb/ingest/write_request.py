"""Write request: the input of one write, its destination, and its idempotency key.

A write that is sent twice with one key is done once. An idempotency key is a `Key` node in the home
of the written memory. The content index finds it; its edge leads to the memory and has a digest of
the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from blake3 import blake3

from worlddb.errors import ConflictError, InvalidInputError
from worlddb.identity.match_values import ResolverSettings, Tiebreaker
from worlddb.ingest.draft_parts import Origins, PartChanges
from worlddb.ingest.extraction_queue import Waiting
from worlddb.model.address import Id, content_key
from worlddb.model.inputs import ScopeName, encode_text
from worlddb.model.records import Draft, Message
from worlddb.model.text_safety import FULL, Origin, trust_level
from worlddb.store.interface import Reader
from worlddb.write.transaction import Transaction

NOTHING: Mapping[Any, Any] = MappingProxyType({})
KEY = "Key"
KEYS_MAX = 8  # a home has one node per key; more share its number only by chance
KEY_BYTES_MAX = 512  # Room for a UUID or a URL; keys are stored as names.


@dataclass(frozen=True, slots=True)
class WriteKey:
    """A caller's key for one write into one home."""

    name: str
    home: Id
    digest: str

    def write(self, tx: Transaction, memory: Id) -> None:
        """Record that this key was used for a memory."""
        node = tx.create_node(type=KEY, name=self.name, parent=self.home)
        tx.write_edge("refers_to", node.id, memory, metadata={"digest": self.digest})


def digest_of_messages(messages: Sequence[Message]) -> str:
    """Return a digest of speakers and texts, to compare the texts of one key."""
    hasher = blake3()
    for message in messages:
        for text in (message.speaker, message.text):
            said = text.encode("utf-8", "surrogatepass")
            hasher.update(len(said).to_bytes(8, "big") + said)
    return hasher.hexdigest(16)


def key_by(key: str, origin: Origin | None) -> str:
    """Return a caller's key after a check; one of a less trusted origin is never a trusted one's.

    Raises:
        InvalidInputError: the key is not text, empty or too long.
    """
    encode_text(key, "idempotency_key", KEY_BYTES_MAX)
    if not key.strip():
        raise InvalidInputError("idempotency_key: is empty; give a text or leave it out")
    is_trusted = origin is None or trust_level((origin,)) == FULL
    return key if is_trusted else f"{key} (from {origin})"


def find_key(
    reader: Reader, key: str, home: Id, row: int | None, digest: str, within: Iterable[Id]
) -> tuple[WriteKey, Id | None]:
    """Return a caller's key, and the memory that was written with it before, if any.

    `within` are the worlds that bound the caller: callers who cannot see each other's memories
    never share a key.
    """
    bounds = b"".join(within)
    apart = f" {blake3(bounds).hexdigest(16)}" if bounds else ""
    write_key = WriteKey(f"{home}{apart} {key}", home, digest)
    if row is None:
        return write_key, None  # The home does not exist yet.
    filed = reader.alike([content_key(KEY, write_key.name, "", row)], 0, KEYS_MAX)
    bodies = (body for body in reader.bodies(filed) if body.name == write_key.name)
    # If the write was undone, the key is free again.
    found = [body.row for body in bodies if body.valid_to is None]
    if not found:
        return write_key, None
    edge = reader.edges_at(found, "out", ("refers_to",))[0].edge
    if edge.metadata.get("digest") != digest:
        raise ConflictError(
            f"idempotency_key {key!r:.80} was used for another text, which is memory "
            f"{edge.target.short}; use a new key for a new text"
        )
    return write_key, edge.target


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The destination of a write on one snapshot.

    `commit` is the commit of the snapshot. `home` is the world of the draft's nodes; `home_row` is
    its row, None if it must be created. `scopes` are to be created, each with its generation. The
    memory becomes a member of `memberships`, the names of `name_worlds`. Texts are compared with,
    and end, only nodes inside one world of each group of `within`. `anchors` are stored nodes that
    the draft refers to by key. `written` is the memory that was written with the same idempotency
    key. `is_shared` if the home is the scope of an agent or an app; None if unknown.
    """

    commit: int
    home: Id
    home_row: int | None
    scopes: Mapping[ScopeName, int] = field(default_factory=lambda: NOTHING)
    memberships: tuple[Id, ...] = ()
    name_worlds: tuple[Id, ...] = ()
    within: Sequence[Sequence[Id]] = ()
    anchors: Mapping[str, Id] = field(default_factory=lambda: NOTHING)
    key: WriteKey | None = None
    written: Id | None = None
    is_shared: bool | None = None


class Destination(Protocol):
    """Computes the destination of a write; asked again if another writer commits first."""

    def locate(self, reader: Reader) -> Target:
        """Return the destination on this snapshot.

        Raises:
            ConflictError, NotFoundError: the destination has ended.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorldDestination:
    """A world that exists and stays, so it is not looked up again."""

    target: Target

    def locate(self, reader: Reader) -> Target:
        """Return the world."""
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """Everything that one write is asked to do, before the store is read.

    `memory` is the key of the drafted node that is the memory. `target` is the destination when the
    draft was made. `replaces` is the memory that the draft amends. `queue_edges` are the entries of
    the extraction queue that this write removes. `parts` are changes to parts of the memory.
    `waiting` is the queue entry if a model still has to extract. `origins` are those of the draft
    by key; `caller` is the origin of the whole write. A `released` text is not put into quarantine.
    `unsaid` is a commit, and a text that no memory had then.
    """

    draft: Draft
    memory: str
    destination: Destination
    target: Target
    actor: str
    source: str | Sequence[str] | None = None
    metadata: Mapping[str, Any] | None = None
    parts: PartChanges | None = None
    waiting: Waiting | None = None
    supersede: bool = True
    replaces: Id | None = None
    queue_edges: tuple[Id, ...] = ()
    resolver: ResolverSettings | None = None
    tiebreaker: Tiebreaker | None = None
    origins: Origins = field(default_factory=lambda: NOTHING)
    caller: Origin | None = None
    released: bool = False
    unsaid: tuple[int, str] | None = None
