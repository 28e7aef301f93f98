"""Finding: the pair `search` and `fetch`, for clients that look for tools of these names only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field

from worlddb.faces.mcp import arguments as given
from worlddb.faces.mcp.answers import Answer, remembered, shortened
from worlddb.faces.mcp.registering import MemoryTool, tool_of
from worlddb.faces.mcp.resources import memory_uri
from worlddb.faces.mcp.tools import hints
from worlddb.memory.memory import Memory

TITLE_CHARS = 80
RESULTS = 10


class SearchResult(Answer):
    """One memory that was found."""

    id: str
    title: str
    url: str
    text: str


class SearchAnswer(Answer):
    """The memories that were found, best first."""

    results: list[SearchResult]


class FetchAnswer(Answer):
    """One memory in full."""

    id: str
    title: str
    url: str
    text: str
    metadata: dict[str, Any] = Field(
        description="Scopes, validity, provenance, and what was kept with it"
    )


class Finding:
    """The two tools over the memory that a caller may use."""

    def __init__(self, memory_for: Callable[[], Memory]) -> None:
        self._memory = memory_for

    def search(self, query: given.Query) -> SearchAnswer:
        """Find what is remembered about a question, best first; fetch gives a memory in full."""
        found = self._memory().recall(query, k=RESULTS)
        texts = {hit.node.id: hit.node.content or hit.node.name for hit in found}
        return SearchAnswer(
            results=[
                SearchResult(
                    id=str(ident),
                    title=title_of(text),
                    url=memory_uri(str(ident)),
                    text=shortened(text)[0],
                )
                for ident, text in texts.items()
            ]
        )

    def fetch(self, id: given.MemoryId) -> FetchAnswer:
        """Read one memory in full by the id that search returned."""
        memory = remembered(self._memory().read(id))
        metadata = memory.model_dump(mode="json")
        for name in ("id", "text"):
            del metadata[name]
        return FetchAnswer(
            id=memory.id,
            title=title_of(memory.text),
            url=memory_uri(memory.id),
            text=memory.text,
            metadata=metadata,
        )


def finding_tools(memory_for: Callable[[], Memory]) -> list[MemoryTool]:
    """Return `search` and `fetch`."""
    finding = Finding(memory_for)
    return [
        tool_of(finding.search, "Search memories", hints("reads")),
        tool_of(finding.fetch, "Fetch a memory", hints("reads")),
    ]


def title_of(text: str) -> str:
    """Return the first line of a text, cut to a title."""
    first = next(iter(text.strip().splitlines()), "")
    return first if len(first) <= TITLE_CHARS else first[: TITLE_CHARS - 1].rstrip() + "…"
