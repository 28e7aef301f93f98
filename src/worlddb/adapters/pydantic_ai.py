"""Pydantic AI: the store of the harness's `Memory` capability, on versioned files.

    Agent(model, capabilities=[Memory(store=WorldMemoryStore(worlddb.Memory("memory.db")))])

The version of a file is the id of a node, so the harness's compare-and-set is that of WorldDB.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping

from pydantic_ai_harness.memory import (
    MemoryConflictError,
    MemoryFile,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
)

from worlddb.adapters.item_log import folder_name
from worlddb.files.versioned_files import FileChanges, Files
from worlddb.memory.memory import Memory

ROOT, RECEIPTS = "/memories", "/receipts"


class WorldMemoryStore:
    """Memory files of a scope; `memory` is a `Memory` (its default scope is used) or `Files`."""

    def __init__(self, memory: Memory | Files) -> None:
        self._files = memory.files if isinstance(memory, Memory) else memory

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """Return the first `max_chars` of a file; None if there is no file."""
        return await asyncio.to_thread(self._read, path, max_chars)

    def _read(self, path: str, max_chars: int) -> MemoryFile | None:
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        place = _path(path)
        with self._files.tree() as tree:
            found = tree.find(place)
        if found is None or found.is_folder:
            return None
        file = self._files.read(place)
        return MemoryFile(
            content=file.text[:max_chars],
            version=str(file.version),
            operation_id=file.metadata.get("operation"),
            truncated=len(file.text) > max_chars,
            metadata=file.metadata.get("metadata"),
        )

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """Return the earlier result of an operation; None if it is new."""

        def find() -> MemoryMutation | None:
            path = _receipt(operation)
            text = self._files.read(path).text if self._files.exists(path) else None
            return _replayed(operation, text)

        return await asyncio.to_thread(find)

    async def write(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Write a file if it has the expected version; None if it must not exist."""
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Write a file with the writer's metadata; see `write`."""
        kept: dict[str, object] = {"operation": operation.id} if operation else {}
        if metadata:
            kept["metadata"] = dict(metadata)

        def change(changes: FileChanges, existed: bool) -> str:
            version, _ = changes.write(_path(path), content, metadata=kept)
            return str(version)

        return await asyncio.to_thread(self._change, path, expected_version, operation, change)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """End a file if it has the expected version."""

        def change(changes: FileChanges, existed: bool) -> None:
            if existed:
                changes.delete(_path(path))

        return await asyncio.to_thread(self._change, path, expected_version, operation, change)

    def _change(
        self,
        path: str,
        expected: str | None,
        operation: MemoryOperation | None,
        change: Callable[[FileChanges, bool], str | None],
    ) -> MemoryMutation:
        with self._files.changes() as changes:
            if operation is not None:
                receipt = changes.find(_receipt(operation))
                before = _replayed(operation, None if receipt is None else receipt.text)
                if before is not None:
                    return before
            held = changes.find(_path(path))
            if (None if held is None else str(held.version)) != expected:
                raise MemoryConflictError(
                    f"memory path {path!r} changed before it could be written"
                )
            version = change(changes, held is not None)
            if operation is not None:
                told = {"fingerprint": operation.fingerprint, "version": version}
                text = json.dumps(told | {"existed": held is not None})
                changes.write(_receipt(operation), text)
        return MemoryMutation(version=version, replayed=False, existed=held is not None)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """Return the paths that begin with a prefix, sorted."""
        if limit <= 0:
            raise ValueError("limit must be positive")
        files = await asyncio.to_thread(self._files.read_all, ROOT)
        paths = sorted(one.path.removeprefix(ROOT + "/") for one in files)
        return [path for path in paths if path.startswith(prefix)][:limit]


def _path(path: str) -> str:
    if not path or path.startswith("/") or any(one in ("", ".", "..") for one in path.split("/")):
        raise ValueError(f"invalid memory path: {path!r}")
    return f"{ROOT}/{path}"


def _receipt(operation: MemoryOperation) -> str:
    return f"{RECEIPTS}/{folder_name(operation.id)}.json"


def _replayed(operation: MemoryOperation, text: str | None) -> MemoryMutation | None:
    if text is None:
        return None
    told = json.loads(text)
    if told["fingerprint"] != operation.fingerprint:
        raise MemoryOperationConflictError(
            f"operation id {operation.id!r} was reused with different arguments"
        )
    return MemoryMutation(version=told["version"], replayed=True, existed=told["existed"])
