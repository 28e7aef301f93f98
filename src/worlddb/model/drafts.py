"""Drafts: what an extractor makes of text, before anything is resolved or written.

A draft refers to its own nodes by `key`, a name that means nothing outside it. Everything in it
that was read out of the text has the spans it was read from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from worlddb.errors import InvalidInputError
from worlddb.model.address import Id
from worlddb.model.records import Plain

ATTRIBUTE = "attribute:"
"""How the name of an attribute begins in the metadata of its node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Plain):
    """Something that was said: by whom, and when, if that is known."""

    text: str
    speaker: str = "user"
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Plain):
    """The evidence: characters `start` to `end` of a message's text."""

    message: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftNode(Plain):
    """A node that may turn out to be one that is there already, if it is `resolvable`.

    `attributes` (a birth date, a city) help to tell namesakes apart. They are kept in the node's
    metadata, as `attribute:city`, and compared when the name comes up again.
    """

    key: str
    type: str
    name: str = ""
    content: str = ""
    parent: str | None = None
    aliases: tuple[str, ...] = ()
    created_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    resolvable: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEdge(Plain):
    """An edge between two nodes of the draft."""

    type: str
    source: str
    target: str
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Plain):
    """What would be written; `aliases` are more names of its nodes, by their keys.

    Raises:
        InvalidInputError: aliases of a node that is not in the draft.
    """

    nodes: tuple[DraftNode, ...] = ()
    edges: tuple[DraftEdge, ...] = ()
    aliases: Mapping[str, str | Sequence[str]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Check that whoever has aliases is there."""
        if not isinstance(self.aliases, Mapping):
            raise InvalidInputError(
                f"aliases: give a mapping from keys of nodes to names, not {self.aliases!r:.100}"
            )
        unknown = sorted(map(str, self.aliases.keys() - {node.key for node in self.nodes}))
        if unknown:
            raise InvalidInputError(
                f"aliases: no node of the draft has the key {unknown[0]!r:.100}; "
                "name the key of a DraftNode"
            )

    def merged(self) -> Draft:
        """Return the same draft with all aliases at their nodes."""
        if not self.aliases:
            return self
        return Draft(nodes=tuple(map(self._with_aliases, self.nodes)), edges=self.edges)

    def _with_aliases(self, node: DraftNode) -> DraftNode:
        more = self.aliases.get(node.key, ())
        names = (*node.aliases, *((more,) if isinstance(more, str) else more))
        return replace(node, aliases=tuple(dict.fromkeys(names)))


def to_metadata(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes as the metadata that keeps them; those that say nothing are left out."""
    return {
        f"{ATTRIBUTE}{name}": str(value) for name, value in attributes.items() if str(value).strip()
    }


def from_metadata(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the attributes among a node's metadata."""
    return {
        name.removeprefix(ATTRIBUTE): str(value)
        for name, value in metadata.items()
        if name.startswith(ATTRIBUTE)
    }


class Extractor(Protocol):
    """Turns what was said into a draft. It never makes up what the text does not say."""

    name: str

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is when they were said, unless they say."""


# Pending: what waits for extraction, and what became of it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Plain):
    """A memory or a session whose extraction waits: since when, for which extractor, and why."""

    id: Id
    extractor: str
    error: str
    attempts: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted(Plain):
    """What a run over the queue did: `done`, `failed` with the reason, and how many are `left`.

    `dropped` were retired meanwhile, so there was nothing to extract any more.
    """

    done: tuple[Id, ...] = ()
    failed: tuple[Pending, ...] = ()
    dropped: tuple[Id, ...] = ()
    left: int = 0


# Summaries: what a summarizer is asked, and what it gives back.


class Summarizer(Protocol):
    """Says in few words what several messages say. It is never called inside a transaction."""

    name: str

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary of what was said in the world that `title` names."""
