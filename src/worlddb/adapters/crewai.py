"""CrewAI: a storage backend for its unified memory, on versioned files.

    Memory(storage=WorldStorage("memory.db"), embedder=…, llm=…)

CrewAI embeds texts itself; its vectors are stored beside the text. A record is a file in the folder
of its scope, so earlier versions stay readable. Each save is one commit.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
from crewai.memory.types import MemoryRecord, ScopeInfo

from worlddb.adapters.item_log import (
    Given,
    OnStore,
    folder_name,
    pack_vectors,
    rank_by_cosine,
    unpack_vectors,
)
from worlddb.files.file_tree import FileText
from worlddb.files.versioned_files import FileChanges

ACTOR = "crewai"
FOLDER = f"/{ACTOR}"
LISTED = 200  # The default of CrewAI.


class WorldStorage(OnStore):
    """Memory records by scope; `store` is a path, an open `WorldDB` or a `Memory`."""

    def __init__(self, store: Given) -> None:
        self._open(store, ACTOR)

    def save(self, records: list[MemoryRecord]) -> None:
        """Write records as one commit; a record replaces an earlier one with the same id.

        Raises:
            EmbeddingDimensionMismatchError: an embedding has another length than those kept.
        """
        if not records:
            return
        self._check_lengths(records)
        with self._files.changes() as changes:
            for record in records:
                self._write(changes, record)

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id."""
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records nearest to an embedding, by cosine, best first."""
        chosen = self._chosen(scope_prefix, categories, metadata_filter)
        files: dict[bytes, FileText] = {one.version: one for one in chosen}
        held = {key: unpack_vectors(one.metadata["vectors"]) for key, one in files.items()}
        for vectors in held.values():
            if vectors and len(vectors[0]) != len(query_embedding):
                raise EmbeddingDimensionMismatchError(len(vectors[0]), len(query_embedding))
        found = [pair for pair in rank_by_cosine(query_embedding, held) if pair[1] >= min_score]
        return [(_record(files[key]), score) for key, score in found[:limit]]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """End the records that match all conditions; return their number."""
        found = self._chosen(scope_prefix, categories, metadata_filter)
        if record_ids is not None:
            found = [one for one in found if one.metadata["id"] in record_ids]
        if older_than is not None:
            found = [one for one in found if _zoned(_record(one).created_at) < _zoned(older_than)]
        with self._files.changes() as changes:
            for file in found:
                changes.delete(file.path)
        return len(found)

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record by its id; None if there is none."""
        found = [one for one in self._all() if one.metadata["id"] == record_id]
        return _record(found[0]) if found else None

    def list_records(
        self, scope_prefix: str | None = None, limit: int = LISTED, offset: int = 0
    ) -> list[MemoryRecord]:
        """Return the records of a scope and its inner scopes, the newest first."""
        found = [_record(one) for one in self._chosen(scope_prefix)]
        found.sort(key=lambda one: (_zoned(one.created_at), one.id), reverse=True)
        return found[offset : offset + limit]

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return the number of records of a scope, their first and last time, and inner scopes."""
        found = [_record(one) for one in self._chosen(scope)]
        times = [one.created_at for one in found]
        return ScopeInfo(
            path=_scope(scope),
            record_count=len(found),
            categories=sorted({name for one in found for name in one.categories}),
            oldest_record=min(times, key=_zoned, default=None),
            newest_record=max(times, key=_zoned, default=None),
            child_scopes=self.list_scopes(scope),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the scopes directly below a scope."""
        start = _scope(parent).rstrip("/") + "/"
        scopes = {_scope(one.metadata["record"]["scope"]) for one in self._all()}
        below = [one.removeprefix(start) for one in scopes if one.startswith(start)]
        return sorted({start + one.partition("/")[0] for one in below if one})

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return the number of records of each category."""
        chosen = self._chosen(scope_prefix)
        names = (name for one in chosen for name in one.metadata["record"].get("categories", ()))
        return dict(Counter(names))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records of a scope and its inner scopes."""
        return len(self._chosen(scope_prefix))

    def reset(self, scope_prefix: str | None = None) -> None:
        """End all records of a scope and its inner scopes."""
        self.delete(scope_prefix)

    def touch_records(self, record_ids: list[str]) -> None:
        """Set the time of last use of records."""
        now = datetime.now(UTC).replace(tzinfo=None)
        with self._files.changes() as changes:
            for file in self._all():
                if file.metadata["id"] in record_ids:
                    self._write(changes, _record(file).model_copy(update={"last_accessed": now}))

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Write records on a thread; see `save`."""
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self, query_embedding: list[float], *given: Any, **options: Any
    ) -> list[tuple[MemoryRecord, float]]:
        """Search on a thread; see `search`."""
        return await asyncio.to_thread(self.search, query_embedding, *given, **options)

    async def adelete(self, *given: Any, **options: Any) -> int:
        """End records on a thread; see `delete`."""
        return await asyncio.to_thread(self.delete, *given, **options)

    # -- files -------------------------------------------------------------------------------------

    def _write(self, changes: FileChanges, record: MemoryRecord) -> None:
        path = f"{FOLDER}/{folder_name(record.id)}"
        kept = json.loads(record.model_dump_json())
        text = kept.pop("content")
        vectors = pack_vectors([record.embedding]) if record.embedding else []
        metadata = {"id": record.id, "record": kept, "vectors": vectors}
        changes.write(path, text, metadata=metadata)

    def _check_lengths(self, records: list[MemoryRecord]) -> None:
        sizes = [len(one.embedding) for one in records if one.embedding]
        held = (unpack_vectors(one.metadata["vectors"]) for one in self._all())
        stored = next((len(vectors[0]) for vectors in held if vectors), sizes[0] if sizes else 0)
        for size in sizes:
            if size != stored:
                raise EmbeddingDimensionMismatchError(stored, size)

    def _all(self) -> list[FileText]:
        return list(self._files.read_all(FOLDER))

    def _chosen(
        self,
        scope: str | None = None,
        categories: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> list[FileText]:
        """Return the files of records in a scope, with any of the categories and all metadata."""
        tests: list[Callable[[dict[str, Any]], bool]] = []
        if scope is not None and _scope(scope) != "/":
            whole = _scope(scope)
            tests.append(lambda one: (_scope(one["scope"]) + "/").startswith(whole + "/"))
        if categories:
            tests.append(lambda one: not set(categories).isdisjoint(one.get("categories", ())))
        if metadata:
            tests.append(
                lambda one: all(
                    one["metadata"].get(key) == value for key, value in metadata.items()
                )
            )
        return [
            file for file in self._all() if all(test(file.metadata["record"]) for test in tests)
        ]


def _record(file: FileText) -> MemoryRecord:
    vectors = unpack_vectors(file.metadata["vectors"])
    return MemoryRecord.model_validate(
        {
            **file.metadata["record"],
            "content": file.text,
            "embedding": list(vectors[0]) if vectors else None,
        }
    )


def _scope(path: str) -> str:
    return "/" + path.strip("/")


def _zoned(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)
