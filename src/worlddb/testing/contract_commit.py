"""ContractCommit: writes small commits straight through a store's writer, for contract tests.

Ids of nodes are right, for a store may verify them. No handler runs and no digest is right: a
contract tests the store, not what stands above it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from blake3 import blake3

from worlddb.model.address import content_key, node_address, short_key
from worlddb.store.interface import Store, Writer
from worlddb.store.rows import ROOT_ROW, CommitRow, Head, NewEdge, NewNode, NewText, NoteRow

BEGAN = 1_700_000_000_000_000
"""When everything in a contract becomes valid: a day in 2023, in microseconds."""


def hashed(text: str) -> bytes:
    """Return 32 bytes that stand for an id, a state or a hash."""
    return blake3(text.encode()).digest()


def node_id(row: int, name: str, *, type_: str = "Entity", content: str = "") -> bytes:
    """Return the address of the node that `ContractCommit.node` writes into a row."""
    return node_address(type_, name.encode(), content.encode(), BEGAN + row)


class ContractCommit:
    """One open transaction; it numbers rows as the engine does."""

    def __init__(self, writer: Writer) -> None:
        head = writer.head()
        self.writer = writer
        self.seq = writer.seq
        self._nodes, self._edges, self._notes = head.nodes, head.edges, head.notes

    def node(
        self,
        name: str,
        *,
        type_: str = "Entity",
        content: str = "",
        parent: int = ROOT_ROW,
        valid_to: int | None = None,
        ident: bytes | None = None,
        aliases: Iterable[str] = (),
    ) -> int:
        """Insert a node with its text and aliases; return its row."""
        self._nodes = row = self._nodes + 1
        ident = ident or node_id(row, name, type_=type_, content=content)
        key = short_key(ident)
        new = NewNode(
            *(row, key, ident, type_, name, content, BEGAN + row, parent, BEGAN, valid_to),
            born=self.seq,
            blind=b"",
            content_key=content_key(type_, name, content, parent),
        )
        self.writer.insert_nodes([new])
        self.writer.insert_texts([NewText(row, name, content)])
        for alias in aliases:
            self.note(row, "alias", alias)
        return row

    def note(self, node: int, kind: str, text: str) -> int:
        """Insert a note; return its row."""
        self._notes += 1
        self.writer.insert_notes([NoteRow(self._notes, node, kind, text, self.seq)])
        return self._notes

    def edge(
        self,
        type_: str,
        source: int,
        target: int,
        *,
        world: int = ROOT_ROW,
        valid_to: int | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> int:
        """Insert an edge; return its row."""
        self._edges = row = self._edges + 1
        ident = hashed(f"edge {row}")
        data = json.dumps(metadata or {}, sort_keys=True, separators=(",", ":"))
        new = NewEdge(
            *(row, short_key(ident), ident, type_, source, target, world, BEGAN, valid_to, data),
            generation=0,
            born=self.seq,
        )
        self.writer.insert_edges([new])
        return row

    def seal(self, actor: str) -> Head:
        """Write the commit's row; return the head it makes."""
        seq, time = self.seq, self.writer.time
        state, hash_ = hashed(f"root {seq}"), hashed(f"commit {seq}")
        rows = self._nodes, self._edges, self._notes
        self.writer.insert_commit(CommitRow(seq, time, actor, state, hash_, *rows, changes="[]"))
        return Head(seq, time, hash_, state, *rows)


@contextmanager
def committing(store: Store, actor: str = "contract") -> Iterator[ContractCommit]:
    """Yield a transaction that becomes one commit when the block ends."""
    with store.write() as writer:
        commit = ContractCommit(writer)
        yield commit
        commit.seal(actor)
