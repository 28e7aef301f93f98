"""Hits: what recall returns, and why each of them is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from worlddb.language.snippet import Snippet, snippet
from worlddb.model.id import Id
from worlddb.model.values import Conflict, Node, Plain, node_line

CHARS_PER_TOKEN = 4


def tokens_of(text: str) -> int:
    """Return about how many tokens a model counts in a text: a quarter of its characters."""
    return -(-len(text) // CHARS_PER_TOKEN)


def tokens_in(node: Node) -> int:
    """Return about how many tokens a node's name and content take in a prompt."""
    return tokens_of(node.name) + tokens_of(node.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRank(Plain):
    """Where one lane ranked a node (1 is first), with the lane's own score."""

    rank: int
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated(Plain):
    """A sentence of a hit that is no longer so: until when it was, and what stands in its place.

    `by` is None if nothing does that can be seen from here: it was retired or erased since.
    """

    text: str
    until: datetime | None
    by: Id | None

    @property
    def why(self) -> str:
        """That it is no longer so, and where to look instead."""
        return "no longer so" if self.by is None else f"no longer so, see {self.by.short}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit(Plain):
    """A remembered node, its place in every lane, and what speaks against it.

    `score` is what hits are ordered by, except that what replaced a sentence of a hit (`outdated`)
    comes before it; `weighed` are the parts that it is the sum of, by the names of `Weights`;
    `fused` is the reciprocal rank fusion of the lanes alone. Its validity and
    provenance are the node's.
    """

    node: Node
    score: float
    fused: float
    lanes: Mapping[str, LaneRank] = field(default_factory=dict, hash=False)
    weighed: Mapping[str, float] = field(default_factory=dict, hash=False)
    conflicts: tuple[Conflict, ...] = ()
    outdated: tuple[Outdated, ...] = ()
    tokens: int = 0

    @property
    def id(self) -> Id:
        """The id of the node."""
        return self.node.id

    @property
    def valid_from(self) -> datetime:
        """Since when it is true."""
        return self.node.valid_from

    @property
    def valid_to(self) -> datetime | None:
        """Until when it was true; None if it still is."""
        return self.node.valid_to

    @property
    def provenance(self) -> tuple[str, ...]:
        """Where it comes from."""
        return self.node.provenance

    @property
    def text(self) -> str:
        """The hit as a line for a prompt: when, what, and what speaks against it."""
        sides = {side for conflict in self.conflicts for side in (conflict.left, conflict.right)}
        line = node_line(self.node, sorted(sides - {self.node.id}))
        gone = (f" ({old.why}: {old.text})" for old in self.outdated)
        return line + " ".join("".join(gone).split("\n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall(Plain):
    """The answer to a question: hits, best first."""

    question: str
    hits: tuple[Hit, ...] = ()

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes of the hits, best first."""
        return tuple(hit.node for hit in self.hits)

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """The open conflicts of all hits, each once."""
        found = {conflict.edge: conflict for hit in self.hits for conflict in hit.conflicts}
        return tuple(found.values())

    def snippet(self, hit: Hit, *, width: int = 160) -> Snippet:
        """Return the part of a hit's text that answers best, with the matched words marked.

        Raises:
            InvalidInputError: the width is not a positive number.
        """
        return snippet(hit.node.content or hit.node.name, self.question, width=width)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON data."""
        return self.to_dict()

    def to_text(self) -> str:
        """Return the hits as lines for a prompt, best first."""
        return "\n".join(hit.text for hit in self.hits)
