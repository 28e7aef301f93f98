"""Idempotency: how a write that is sent twice is done once.

An idempotency key is a `Key` node in the home of what was written. The content index finds it; its
edge names the memory and carries a digest of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blake3 import blake3

from worlddb.errors import ConflictError, InvalidInputError
from worlddb.model.address import Id, content_key
from worlddb.model.drafts import Message
from worlddb.model.inputs import encode_text
from worlddb.store.interface import Reader
from worlddb.write.transaction import Transaction

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
    """Return a caller's key if it is one.

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
