"""Pydantic AI: the store of the harness's memory capability on versioned files. Needs no key.

python examples/adapters/pydantic_ai_memory.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from pydantic_ai_harness.memory import MemoryConflictError

from worlddb import Memory
from worlddb.adapters.pydantic_ai import WorldMemoryStore


async def main(path: Path) -> list[str]:
    with Memory(path, user_id="ada") as memory:
        store = WorldMemoryStore(memory)  # Memory(store=store) among the agent's capabilities
        first = await store.write("tea.md", "Green tea: 80 degrees.", expected_version=None)
        await store.write("tea.md", "Green tea: 75 degrees.", expected_version=first.version)
        try:
            await store.write("tea.md", "Too late.", expected_version=first.version)
        except MemoryConflictError:
            return ["refused", ", ".join(await store.list_paths(limit=10))]
        return ["written"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(asyncio.run(main(Path(folder) / "memory.db"))))
