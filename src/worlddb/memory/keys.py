"""Keys: how a write that is sent twice is done once.

An idempotency key is a `Key` node in the home of what was written, found by its address alone; its
edge says what was written and carries a digest of the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from blake3 import blake3

from worlddb.errors import ConflictError, InvalidInputError
from worlddb.model.address import node_address
from worlddb.model.drafts import Message
from worlddb.model.id import Id
from worlddb.model.limits import encode_text
from worlddb.model.scopes import born
from worlddb.read.memories import KEY
from worlddb.store.protocol import Reader
from worlddb.write.transaction import Transaction

KEY_BYTES_MAX = 512


@dataclass(frozen=True, slots=True)
class WriteKey:
    """A caller's key for one write into one home."""

    key: str
    home: Id
    digest: str
    within: tuple[Id, ...] = ()

    @property
    def _name(self) -> str:
        # An address knows nothing of the world around it; the name keeps two homes apart, and in
        # one home those who may not see each other's memories.
        apart = f" {blake3(b''.join(self.within)).hexdigest(16)}" if self.within else ""
        return f"{self.home}{apart} {self.key}"

    def written(self, reader: Reader) -> Id | None:
        """Return the memory that was written with this key, if there is one.

        Raises:
            ConflictError: it was another text.
        """
        row = self._row(reader)[0]
        if row is None:
            return None
        edge = reader.edges_at([row], "out", ("refers_to",))[0].edge
        if edge.metadata.get("digest") != self.digest:
            raise ConflictError(
                f"idempotency_key {self.key!r:.80} was used for another text, which is memory "
                f"{edge.target.short}; use a new key for a new text"
            )
        return edge.target

    def _row(self, reader: Reader) -> tuple[int | None, int]:
        """Return the row of this key's node, if there is one, and how often it was erased."""
        times = 0
        while True:
            row = reader.node_row(node_address(KEY, self._name.encode(), b"", times))
            if row is None or not reader.nodes([row])[row].erased:
                return row, times
            times += 1

    def write(self, tx: Transaction, reader: Reader, memory: Id) -> None:
        """Remember that this key was used; it is free again once that was erased."""
        times = self._row(reader)[1]
        node = tx.create_node(type=KEY, name=self._name, parent=self.home, created_at=born(times))
        tx.write_edge("refers_to", node.id, memory, metadata={"digest": self.digest})


def write_key(
    key: str, home: Id, messages: Sequence[Message], within: Iterable[Id] = ()
) -> WriteKey:
    """Return a caller's key, checked; `within` are further worlds that a caller may not leave.

    Raises:
        InvalidInputError: it is no text, empty or too long.
    """
    encode_text(key, "idempotency_key", KEY_BYTES_MAX)
    if not key.strip():
        raise InvalidInputError("idempotency_key: is empty; give a text or leave it out")
    hasher = blake3()
    for message in messages:
        for text in (message.speaker, message.text):
            said = text.encode("utf-8", "surrogatepass")
            hasher.update(len(said).to_bytes(8, "big") + said)
    return WriteKey(key, home, hasher.hexdigest(16), tuple(within))
