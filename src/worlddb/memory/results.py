"""Memory results: the values that the calls of `Memory` return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from worlddb.audit.read_audit import ReadEntry
from worlddb.model.address import Id
from worlddb.model.inputs import Plain, ScopeKind, ScopeName
from worlddb.model.records import Commit, Problem, Proposal, ProposalStatus
from worlddb.model.text_safety import Trust
from worlddb.ontology.registry import EdgeDeclaration

T = TypeVar("T")


class Page(Plain, Generic[T]):
    """A value that is iterated, counted and indexed by the items in its first field."""

    __slots__ = ()

    def _items(self) -> tuple[T, ...]:
        first = next(iter(type(self).__dataclass_fields__))  # type: ignore[attr-defined]
        items: tuple[T, ...] = getattr(self, first)
        return items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items())

    def __len__(self) -> int:
        return len(self._items())

    def __getitem__(self, place: int) -> T:
        return self._items()[place]


# Read page: the latest entries of the record of reads.

PAGE_MAX = 1_000  # Bounds one answer; the file has all reads.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage(Page[ReadEntry]):
    """Reads, the latest first; `left` counts those beyond the limit."""

    reads: tuple[ReadEntry, ...]
    left: int


# Memories, scopes, proposals and conflicts.


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked(Plain):
    """An entity that a memory mentions, and whether the write created it."""

    id: Id
    type: str
    name: str
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Plain):
    """The result of a write.

    `created` is False if the text was known; then `id` is the memory that has it. `commit` is None
    if nothing had to be written; `root_state` is the store's address afterwards. For a bound caller
    both have the number and the address of its own scope instead. `pending` is why the model's part
    of the extraction waits for `extract_pending`; None if it does not. `left_out` lists the
    relations of the text that were not written, with reasons. `secrets` are the kinds of secrets in
    the text, such as "api key"; `set_trust` decides what to do with them.
    """

    id: Id
    created: bool
    scopes: tuple[ScopeName, ...]
    entities: tuple[Linked, ...]
    proposals: tuple[Proposal, ...]
    superseded: tuple[Id, ...]
    commit: Commit | None
    root_state: Id
    pending: str | None = None
    left_out: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired(Plain):
    """The result of a retirement: the ended memories, and nodes derived from them alone.

    Empty if all of them had ended before. All are still readable with `include_retired`.
    """

    ids: tuple[Id, ...]
    scopes: tuple[ScopeName, ...]
    commit: Commit | None
    root_state: Id

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered(Plain):
    """One memory as of the requested time.

    The text of a session has its turns, one on each line. `actor` signed the commit that wrote it;
    `origin` brought it in, and `trust` is its trust level by the settings of its scope. `shared`:
    it lives outside the bounds of the caller and is a member of a scope inside.
    """

    id: Id
    type: str
    text: str
    speaker: str
    valid_from: datetime
    valid_to: datetime | None
    known_from: datetime
    actor: str
    retired: bool
    scopes: tuple[ScopeName, ...]
    provenance: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    supersedes: tuple[Id, ...] = ()
    superseded_by: tuple[Id, ...] = ()
    origin: str = "user"
    trust: Trust = "full"
    shared: bool = False

    @property
    def content(self) -> str:
        """The text, under the name that it has on a node."""
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage(Page[Remembered]):
    """A page of memories, the latest first; `next_cursor` gets the next page, None at the end."""

    memories: tuple[Remembered, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext(Plain):
    """Memories as text for a prompt; empty if there are none.

    `tokens` is the estimated size of the text, rather too high than too low. `ids` are the memories
    in it, in order, `pinned` those that are pinned; `left_out` counts those that did not fit.
    """

    text: str
    tokens: int
    ids: tuple[Id, ...] = ()
    pinned: tuple[Id, ...] = ()
    left_out: int = 0

    def __str__(self) -> str:
        return self.text

    def __contains__(self, part: str) -> bool:
        return part in self.text

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope(Plain):
    """A scope: a user, agent, app or run."""

    id: Id
    kind: ScopeKind
    value: str
    name: str
    known_from: datetime
    retired: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopePage(Page[Scope]):
    """A page of scopes, the oldest first; `next_cursor` gets the next page, None at the end."""

    scopes: tuple[Scope, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeProposal(Plain):
    """Two names that may be the same, the evidence, and the decision."""

    edge: Id
    left: Id
    right: Id
    left_name: str
    right_name: str
    status: ProposalStatus
    tier: str
    score: float
    evidence: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalPage(Page[MergeProposal]):
    """Merge proposals, the surest first; `left` counts those beyond the limit."""

    proposals: tuple[MergeProposal, ...]
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldConflict(Plain):
    """Two memories that cannot both be right, with their texts."""

    edge: Id
    left: Id
    right: Id
    left_text: str
    right_text: str
    reason: str
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictPage(Page[ToldConflict]):
    """Conflicts, the latest first; `left` counts those beyond the limit."""

    conflicts: tuple[ToldConflict, ...]
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPage(Page[Commit]):
    """A page of commits, the latest first; `next_cursor` gets the next page, None at the end."""

    commits: tuple[Commit, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Soundness(Plain):
    """The result of a check; `commit` and `root_state` are set for a sound store."""

    sound: bool
    problems: tuple[Problem, ...]
    commit: int | None
    root_state: Id | None

    def __bool__(self) -> bool:
        return self.sound


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven(Plain):
    """A proof that a node stands under a root state; `worlddb.verify_proof` checks it."""

    id: Id
    root_state: Id
    proof: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTypeEntry(Plain):
    """An edge type that applies in a scope: built in, declared, or registered by a program.

    `world` is the world that it was declared or registered for; None if it is built in.
    """

    type: str
    ships: bool
    world: Id | None
    functional: bool
    declaration: EdgeDeclaration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTypes(Page[EdgeTypeEntry]):
    """The edge types that apply in a scope, by name."""

    types: tuple[EdgeTypeEntry, ...]
