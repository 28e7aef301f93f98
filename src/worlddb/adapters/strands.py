"""Strands Agents: a memory store for the `MemoryManager`, on a WorldDB memory.

    MemoryManager(stores=[StrandsMemoryStore(worlddb.Memory("memory.db"))])

Messages are read by the rules of WorldDB; extraction needs no model.
"""

from __future__ import annotations

import asyncio
from typing import Any

from strands.memory import MemoryEntry

SEARCH_RESULTS = 10  # The default of recall.


class StrandsMemoryStore:
    """Memories of a scope. `memory` is a `Memory` or a `Client`; `scope` are the scope ids."""

    def __init__(
        self,
        memory: Any,
        *,
        name: str = "worlddb",
        description: str | None = "What is remembered of users, people, work and decisions.",
        max_search_results: int | None = SEARCH_RESULTS,
        writable: bool = True,
        extraction: Any = None,
        **scope: Any,
    ) -> None:
        self.memory = memory
        self.name, self.description = name, description
        self.max_search_results, self.writable = max_search_results, writable
        self.extraction, self.scope = extraction, scope

    async def search(self, query: str, options: Any = None) -> list[MemoryEntry]:
        """Return the memories that match a query, best first."""
        most = (options or {}).get("max_search_results") or self.max_search_results
        found = await asyncio.to_thread(
            self.memory.recall, query, k=most or SEARCH_RESULTS, **self.scope
        )
        return [
            MemoryEntry(
                content=hit.said,
                store_name=self.name,
                metadata={
                    **hit.node.metadata,
                    "origin": hit.origin,
                    "id": str(hit.node.id),
                    "score": hit.score,
                    "valid_from": hit.valid_from.isoformat(),
                },
            )
            for hit in found.hits
        ]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> str:
        """Write a text and return its id; a known text is not written again."""
        done = await asyncio.to_thread(
            lambda: self.memory.write(content, metadata=metadata or None, **self.scope)
        )
        return str(done.id)

    async def add_messages(self, messages: list[Any], context: Any = None) -> str | None:
        """Write messages with their roles; return the id, or None if no message has text."""
        chat = [
            {"role": one["role"], "content": "\n".join(texts)}
            for one in messages
            if (texts := [part["text"] for part in one["content"] if part.get("text")])
        ]
        if not chat:
            return None
        done = await asyncio.to_thread(lambda: self.memory.write(messages=chat, **self.scope))
        return str(done.id)
