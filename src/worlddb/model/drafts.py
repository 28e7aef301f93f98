"""Drafts: what an extractor reads in a text, before names are resolved and anything is written.

A draft refers to its own nodes by `key`, which has no meaning outside it. Everything read from the
text has the spans it was read from. `Pending` and `Extracted` are for texts whose extraction waits;
a `Summarizer` takes the same messages as an `Extractor`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from worlddb.errors import InvalidInputError
from worlddb.model.address import Id
from worlddb.model.origin import Origin
from worlddb.model.records import Plain

ATTRIBUTE = "attribute:"
"""Prefix of the metadata key of a node's attribute."""
RELATION_TYPES = ("contradicts", "causes", "precedes", "instance_of", "subtype_of", "implies")
"""The edge types that a text may state between two nodes. An edge that is refused is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Plain):
    """A text by a speaker, with its time and the message's id, if known.

    `origin` is who brought the text in, for example a tool; None for the user.
    """

    text: str
    speaker: str = "user"
    at: datetime | None = None
    id: str | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Plain):
    """The evidence: characters `start` to `end` of a message's text."""

    message: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftNode(Plain):
    """A node to write. If it is `resolvable`, it may be a node that exists already.

    `attributes` (a birth date, a city) help to distinguish people with one name. They are kept in
    the node's metadata, as `attribute:city`, and compared when the name occurs again. A node that
    is `known_only` may not be a name at all: it counts only if the store has a node of exactly that
    name.
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
    known_only: bool = False
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEdge(Plain):
    """An edge between two nodes of the draft.

    It is valid from `valid_from` until `valid_to`. Without `valid_from` it begins when the text was
    said, also between entities that are older.
    """

    type: str
    source: str
    target: str
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    spans: tuple[Span, ...] = ()
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Plain):
    """Nodes and edges to write; `aliases` are more names of its nodes, by their keys.

    `left_out` lists the relations that the extractor was given and did not draft, with reasons.

    Raises:
        InvalidInputError: aliases of a node that is not in the draft.
    """

    nodes: tuple[DraftNode, ...] = ()
    edges: tuple[DraftEdge, ...] = ()
    aliases: Mapping[str, str | Sequence[str]] = field(default_factory=dict, hash=False)
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that aliases belong to nodes of this draft."""
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
        """Return the same draft with all aliases in their nodes."""
        if not self.aliases:
            return self
        return replace(self, nodes=tuple(map(self._with_aliases, self.nodes)), aliases={})

    def _with_aliases(self, node: DraftNode) -> DraftNode:
        more = self.aliases.get(node.key, ())
        names = (*node.aliases, *((more,) if isinstance(more, str) else more))
        return replace(node, aliases=tuple(dict.fromkeys(names)))


def to_metadata(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return attributes as metadata; empty ones are left out."""
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
    """Turns messages into a draft. It adds nothing that the text does not say."""

    name: str

    def extract(self, messages: Sequence[Message], at: datetime) -> Draft:
        """Return the draft of some messages; `at` is the time of messages without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Plain):
    """A memory or session whose extraction waits: for which extractor, why, and since when."""

    id: Id
    extractor: str
    error: str
    attempts: int
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted(Plain):
    """The result of a run over the queue of pending extractions.

    It has what was `done`, what `failed` with the reason, and how many are `left`. Memories in
    `dropped` had been retired meanwhile. `left_out` lists the relations that were not written.
    """

    done: tuple[Id, ...] = ()
    failed: tuple[Pending, ...] = ()
    dropped: tuple[Id, ...] = ()
    left: int = 0
    left_out: tuple[str, ...] = ()


class Summarizer(Protocol):
    """Summarizes messages in a few words. It never runs inside a transaction."""

    name: str

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary of what was said in the world that `title` names."""
