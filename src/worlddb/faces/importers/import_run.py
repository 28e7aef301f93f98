"""An import: every item of a source is written once, however often the import is repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from worlddb import __version__
from worlddb.errors import ConflictError, InvalidInputError
from worlddb.faces.importers import export_readers
from worlddb.faces.importers.export_readers import ImportedItem, Reader
from worlddb.ingest.text_origins import QUARANTINE
from worlddb.memory.memory import Memory
from worlddb.memory.results import Remembered
from worlddb.model.origin import USER, at_most
from worlddb.model.secret_patterns import without_secret_values, without_secrets

READERS: dict[str, Reader] = {
    "claude-code": export_readers.claude_code,
    "codex": export_readers.codex,
    "chatgpt": export_readers.chatgpt,
    "claude": export_readers.claude,
    "mem0": export_readers.mem0,
    "mcp-memory": export_readers.mcp_memory,
    "basic-memory": export_readers.basic_memory,
    "graphiti": export_readers.graphiti,
    "mif": export_readers.mif,
}
PAGE = 500  # Memories read at a time for an export.


@dataclass(slots=True, kw_only=True)
class ImportCounts:
    """What an import did: items read, newly remembered, known already, ended, and refused."""

    items: int = 0
    created: int = 0
    known: int = 0
    ended: int = 0
    refused: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the counts by their names."""
        return asdict(self)


def import_items(
    memory: Memory,
    kind: str,
    items: Iterable[ImportedItem],
    scope: Mapping[str, Any],
    *,
    on_item: Callable[[], None] = lambda: None,
    on_refused: Callable[[str], None] = lambda _: None,
) -> ImportCounts:
    """Write the items of a source. `scope` takes the place of what the source says.

    An item that is refused is told to `on_refused`, and holds up no other.

    Raises:
        StorageError: the store cannot be written; what was written before stays.
    """
    counts = ImportCounts()
    for item in items:
        counts.items += 1
        try:
            _write(memory, kind, item, scope, counts)
        except (InvalidInputError, ConflictError) as error:
            counts.refused += 1
            on_refused(f"{without_secrets(item.text)[:60]!r}: {error}")
        on_item()
    return counts


def _write(
    memory: Memory, kind: str, item: ImportedItem, scope: Mapping[str, Any], counts: ImportCounts
) -> None:
    # Nobody looks at each text of an import, so secrets are masked whatever the scope says.
    text, names = without_secrets(item.text), [without_secrets(one) for one in item.names]
    given: dict[str, Any] = {"text": text, "at": item.at, "names": names or None}
    if item.role is not None:
        message = {"role": item.role, "content": text}
        given = {"messages": [message | ({"at": item.at} if item.at else {})]}
    # What another store decided about a text is no decision here.
    told = {name: value for name, value in item.metadata.items() if name != QUARANTINE}
    key = sha256(f"{kind}\n{item.key}".encode(errors="replace")).hexdigest()
    done = memory.write(
        **given,
        source=f"import {kind}",
        metadata=without_secret_values(told) or None,
        idempotency_key=f"import:{key}",
        origin=at_most(item.origin, "import"),
        **{**item.scope, **scope},
    )
    counts.created += done.created
    counts.known += not done.created
    if item.until is not None and done.created:
        memory.retire(done.id, at=item.until)
        counts.ended += 1


def mif_document(memory: Memory, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the memories of a scope, ended ones included, in the Memory Interchange Format 2.

    What the format has no field for stands under "vendor_extensions", so nothing is lost when the
    file is imported again.
    """
    return {
        "mif_version": "2.0",
        "generator": {"name": "worlddb", "version": __version__},
        "memories": [_mif_memory(one) for one in _memories(memory, scope)],
    }


def _memories(memory: Memory, scope: Mapping[str, Any]) -> Iterator[Remembered]:
    cursor: str | None = None
    while True:
        page = memory.list(limit=PAGE, cursor=cursor, include_retired=True, **scope)
        yield from page.memories
        cursor = page.next_cursor
        if cursor is None:
            return


def _mif_memory(one: Remembered) -> dict[str, Any]:
    ours: dict[str, Any] = {
        "id": str(one.id),
        "type": one.type,
        "valid_from": one.valid_from.isoformat(),
        "scopes": {f"{scope.kind}_id": scope.value for scope in one.scopes},
    }
    if one.origin != USER:
        ours["origin"] = one.origin
    if one.valid_to is not None:
        ours["valid_to"] = one.valid_to.isoformat()
    if one.speaker:
        ours["speaker"] = one.speaker
    metadata = {key: value for key, value in one.metadata.items() if key != "tags"}
    made: dict[str, Any] = {
        "id": str(uuid5(NAMESPACE_OID, str(one.id))),
        "content": one.text,
        "memory_type": "conversation" if one.type in ("Turn", "Session") else "observation",
        "created_at": one.valid_from.isoformat(),
        "external_id": str(one.id),
        "vendor_extensions": {"worlddb": ours},
    }
    if metadata:
        made["metadata"] = metadata
    tags = one.metadata.get("tags")
    if isinstance(tags, list | tuple) and tags:
        made["tags"] = [str(tag) for tag in tags]
    return made
