"""Strands Agents: a memory store on a WorldDB memory. Needs no key.

python examples/adapters/strands_memory.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from strands.memory import MemoryManager

from worlddb import Memory
from worlddb.adapters.strands import StrandsMemoryStore


async def main(path: Path) -> list[str]:
    with Memory(path) as memory:
        store = StrandsMemoryStore(memory, user_id="ada")
        said: list[Any] = [{"role": "user", "content": [{"text": "Sarah Chen moved to Oslo."}]}]
        await store.add_messages(said)
        manager = MemoryManager(stores=[store])  # Agent(..., memory_manager=manager)
        found = await manager.search("Where does Sarah Chen live?")
        return [found[0].content]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(asyncio.run(main(Path(folder) / "memory.db"))))
