"""The tools `search` and `fetch`, for clients that look for tools of these names only."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from worlddb.faces.calls import Call, call_named
from worlddb.faces.mcp.mcp_resources import memory_uri
from worlddb.faces.mcp.memory_tools import CallRunner, MemorySource, MemoryTool, tool_of
from worlddb.faces.mcp.tool_answers import Answer, MemoryAnswer, shortened

TITLE_CHARS = 80  # A line in the list that a client shows.
RESULTS = 10  # As many as `recall` returns by default.

SEARCH = Call(
    name="search",
    title="Search memories",
    summary="Search memories",
    help="Find what is remembered about a question, best first; fetch gives a memory in full.",
    parameters=(call_named("recall").parameter("query")._replace(required=True),),
    result="",
    effect="search",
    tool="search",
)
FETCH = Call(
    name="fetch",
    title="Fetch a memory",
    summary="Fetch a memory",
    help="Read one memory in full by the id that search returned.",
    parameters=(call_named("read").parameter("id"),),
    result="",
    effect="read",
    tool="fetch",
)


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
        description="Scopes, validity, provenance, and the metadata of the memory"
    )


def search_fetch_tools(memory_for: MemorySource, runner: CallRunner) -> list[MemoryTool]:
    """Return `search` and `fetch`."""

    def search(query: str) -> SearchAnswer:
        found = memory_for().recall(query, k=RESULTS)
        texts = {str(hit.node.id): hit.node.content or hit.node.name for hit in found}
        return SearchAnswer(
            results=[
                SearchResult(
                    id=id, title=title_of(text), url=memory_uri(id), text=shortened(text)[0]
                )
                for id, text in texts.items()
            ]
        )

    def fetch(id: str) -> FetchAnswer:
        found = memory_for().read(id)
        memory = MemoryAnswer.model_validate(found)
        metadata = memory.model_dump(mode="json")
        for name in ("id", "text"):
            del metadata[name]
        return FetchAnswer(
            id=str(found.id),
            title=title_of(memory.text),
            url=memory_uri(str(found.id)),
            text=memory.text,
            metadata=metadata,
        )

    return [
        tool_of(SEARCH, search, SearchAnswer, runner),
        tool_of(FETCH, fetch, FetchAnswer, runner),
    ]


def title_of(text: str) -> str:
    """Return the first line of a text, cut to a title."""
    first = next(iter(text.strip().splitlines()), "")
    return first if len(first) <= TITLE_CHARS else first[: TITLE_CHARS - 1].rstrip() + "…"
