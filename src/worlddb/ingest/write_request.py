"""A write request: what one write is asked to do, where, and under which key.

A write that is sent twice with one key is done once. An idempotency key is a `Key` node in the home
of what was written. The content index finds it; its edge names the memory and carries a digest of
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
from worlddb.model.drafts import Draft, Message
from worlddb.model.inputs import encode_text
from worlddb.model.origin import Origin
from worlddb.model.records import ScopeName
from worlddb.store.interface import Reader
from worlddb.write.transaction import Transaction

NOTHING: Mapping[Any, Any] = MappingProxyType({})
KEY = "Key"
KEYS_MAX = 8  # A home has one node of a key; more have the same number only by chance.
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


def check_key(key: str) -> str:
    """Return an idempotency key after a check of its form.

    Raises:
        InvalidInputError: the key is no text, empty or too long.
    """
    encode_text(key, "idempotency_key", KEY_BYTES_MAX)
    if not key.strip():
        raise InvalidInputError("idempotency_key: is empty; give a text or leave it out")
    return key


def digest_of_messages(messages: Sequence[Message]) -> str:
    """Return a digest of who says what, to tell one text from another under the same key."""
    hasher = blake3()
    for message in messages:
        for text in (message.speaker, message.text):
            said = text.encode("utf-8", "surrogatepass")
            hasher.update(len(said).to_bytes(8, "big") + said)
    return hasher.hexdigest(16)


def find_key(
    reader: Reader, key: str, home: Id, row: int | None, digest: str, within: Iterable[Id]
) -> tuple[WriteKey, Id | None]:
    """Return a caller's key, and the memory that was written with it before, if any.

    `within` are further worlds that bound the caller: callers who cannot see each other's memories
    never share a key.

    Raises:
        ConflictError: the key was used for another text.
    """
    bounds = b"".join(within)
    apart = f" {blake3(bounds).hexdigest(16)}" if bounds else ""
    write_key = WriteKey(f"{home}{apart} {key}", home, digest)
    if row is None:
        return write_key, None  # The home is still to be made.
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
    """Where a write goes, as one snapshot has it.

    `commit` is the commit of the snapshot. `home` is the world of the draft's nodes; `home_row` is
    its row, None if the world is still to be made. `scopes` are those to be made, each with its
    generation. The memory becomes a member of `memberships`, the names of `name_worlds`. Texts are
    compared with, and end, only what is also inside one of each group of `within`. `anchors` are
    nodes of the store that the draft refers to by key. `written` is the memory that was written
    with the same idempotency key. `is_shared` says whether the home is the scope of an agent or an
    app; None if that is to be read.
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
    """Locates the target of a write; called again if another writer commits first."""

    def locate(self, reader: Reader) -> Target:
        """Return the target on this snapshot.

        Raises:
            ConflictError, NotFoundError: the place of the write has ended.
        """
        ...


@dataclass(frozen=True, slots=True)
class WorldDestination:
    """A world that exists; worlds are never deleted, so its target stays the same."""

    target: Target

    def locate(self, reader: Reader) -> Target:
        """Return the target."""
        return self.target


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """The input of one write, before anything is looked up in the store.

    `memory` is the key of the drafted node that is the memory. `target` is what the destination was
    when the draft was made. `replaces` is the memory that the draft amends. `queue_edges` are the
    entries of the extraction queue that this write settles. `parts` is what changes in the parts.
    `waiting` says that the model's part of the extraction is still to be done. `origins` are who
    brought in what the draft says, by key; `caller` is the origin of the whole write. What is
    `released` is not held in quarantine. `unsaid` is a commit, and a text that no memory said then.
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
