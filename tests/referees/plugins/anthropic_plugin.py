"""Puts our memory tool in the place of Anthropic's tool on local files, for the tests of that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic.lib.tools._beta_builtin_memory_tool as builtin
import anyio
import pytest

import worlddb
from worlddb.adapters.anthropic import AsyncWorldMemoryTool, WorldMemoryTool

STORES: dict[str, worlddb.WorldDB] = {}


def files_of(base_path: Any) -> worlddb.Files:
    path = str(base_path)
    if path not in STORES:
        limits = worlddb.Limits(content_bytes_max=1 << 24)
        STORES[path] = worlddb.open(":memory:", embedder="none", limits=limits)
        (Path(path) / "memories").mkdir(parents=True, exist_ok=True)
    return STORES[path].files()


class Tool(WorldMemoryTool):
    def __init__(self, base_path: str = "./memory") -> None:
        super().__init__(files_of(base_path))
        self.base_path = Path(base_path)
        self.memory_root = self.base_path / "memories"


class AsyncTool(AsyncWorldMemoryTool):
    def __init__(self, base_path: str = "./memory") -> None:
        super().__init__(files_of(base_path))
        self.base_path = anyio.Path(base_path)
        self.memory_root = self.base_path / "memories"


builtin.BetaLocalFilesystemMemoryTool = Tool
builtin.BetaAsyncLocalFilesystemMemoryTool = AsyncTool


def snapshot(base_path: str) -> dict[str, str]:
    return {one.path[1:]: one.text for one in files_of(base_path).read_all()}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests look at the disk for what was written; here it is in the store."""
    for item in items:
        item.module.get_directory_snapshot = snapshot  # type: ignore[attr-defined]
