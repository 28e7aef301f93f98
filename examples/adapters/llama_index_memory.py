"""LlamaIndex: a memory block on a WorldDB memory. Needs no key.

python examples/adapters/llama_index_memory.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from llama_index.core.llms import ChatMessage

from worlddb import Memory
from worlddb.adapters.llama_index import WorldMemoryBlock


async def main(path: Path) -> list[str]:
    with Memory(path) as memory:
        block = WorldMemoryBlock(memory=memory, scope={"user_id": "ada"}, k=1)
        await block.aput([ChatMessage(role="user", content="Sarah Chen moved to Oslo.")])
        question = ChatMessage(role="user", content="Where does Sarah Chen live?")
        found = await block.aget([question])
        return ["Oslo" if "Oslo" in found else found]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(asyncio.run(main(Path(folder) / "memory.db"))))
