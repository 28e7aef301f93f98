"""Memory parts: which drafted nodes count, and what the marks of a memory mean for its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from worlddb.identity.store_resolver import StoreResolver
from worlddb.ingest.text_origins import Origins, confirms
from worlddb.model.address import Id
from worlddb.model.drafts import Draft
from worlddb.store.interface import Reader
from worlddb.write.transaction import Transaction

OF_WHOLE = frozenset({"pinned"})
"""Metadata keys that say nothing about the parts of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChanges:
    """What a write changes in the parts of a memory, beside writing the drafted ones.

    `metadata` is that of drafted parts, by their keys; `told` that of parts in the store. A part
    `replaces` another, by its key; those in `ended` end without a successor, now or `at`.
    """

    metadata: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    told: Mapping[Id, Mapping[str, Any]] = field(default_factory=dict)
    replaces: Mapping[str, Id] = field(default_factory=dict)
    ended: tuple[Id, ...] = ()
    at: datetime | None = None

    def write(self, tx: Transaction, ids: Mapping[str, Id]) -> None:
        """Write the changes; `ids` are those of the drafted parts, by their keys."""
        for key, held in self.metadata.items():
            tx.add_metadata(ids[key], held)
        for ident, held in self.told.items():
            tx.add_metadata(ident, held)
        for key, old in self.replaces.items():
            tx.write_edge("supersedes", ids[key], old)
        for ident in self.ended:
            tx.retire(ident, at=self.at)


def outlasting(
    reader: Reader, draft: Draft, known: dict[str, Id], origins: Origins
) -> dict[str, Id]:
    """Take the texts out of `known` that drafted ones replace; return them by key.

    These are texts that end before the drafted ones, and texts that are less trusted than somebody
    who says the same without having read it there.
    """
    found: dict[str, Id] = {}
    for node in draft.nodes:
        if not node.resolvable and node.parent is None and node.key in known:
            row = reader.node_row(known[node.key])
            if row is None:
                continue
            there, given = reader.nodes([row])[row], origins.get(node.key, ())
            ends = there.valid_to
            is_longer = ends is not None and (node.valid_to is None or ends < node.valid_to)
            if is_longer or (there.origins and confirms(reader, there, given)):
                found[node.key] = known.pop(node.key)
                for part in draft.nodes:
                    if part.parent == node.key:
                        known.pop(part.key, None)
    return found


def same_parts(resolver: StoreResolver, draft: Draft, key: str, row: int) -> dict[str, Id]:
    """Return which drafted children of a node that is in the store are in the store, too."""
    drafted = [node for node in draft.nodes if node.parent == key]
    if not drafted:
        return {}
    reader = resolver.reader
    left = list(reader.bodies(reader.children_of([row])))
    known: dict[str, Id] = {}
    for node in drafted:
        for body in left:
            if (body.type, body.name, body.content) == (node.type, node.name, node.content):
                known[node.key] = Id(body.id)
                left.remove(body)
                break
    return known


def without_unknown(draft: Draft, known: Mapping[str, Id]) -> Draft:
    """Return a draft without the words that may be names and are none the store knows."""
    left_out = {node.key for node in draft.nodes if node.known_only and node.key not in known}
    if not left_out:
        return draft
    return replace(
        draft,
        nodes=tuple(node for node in draft.nodes if node.key not in left_out),
        edges=tuple(edge for edge in draft.edges if not {edge.source, edge.target} & left_out),
        aliases={key: names for key, names in draft.aliases.items() if key not in left_out},
    )


def add_metadata(
    tx: Transaction, draft: Draft, memory: str, metadata: Mapping[str, Any], ids: Mapping[str, Id]
) -> None:
    """Give a memory its metadata, and its turns and facts what filters ask for."""
    parts = {key: value for key, value in metadata.items() if key not in OF_WHOLE}
    for node in draft.nodes:
        held = metadata if node.key == memory else parts
        if not node.resolvable and held:
            tx.add_metadata(ids[node.key], held)
