"""What the memory API returns: plain values that say what was done and what is there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from worlddb.audit.read_audit import ReadEntry
from worlddb.model.address import Id
from worlddb.model.origin import Trust
from worlddb.model.records import (
    Commit,
    Plain,
    Problem,
    Proposal,
    ProposalStatus,
    ScopeKind,
    ScopeName,
)
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

PAGE_MAX = 1_000  # Bounds one answer; the file itself has the rest.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPage(Page[ReadEntry]):
    """Reads, the latest first; `left` counts those beyond the limit."""

    reads: tuple[ReadEntry, ...]
    left: int


# What the memory API returns.


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked(Plain):
    """An entity that a memory mentions, and whether the write created it."""

    id: Id
    type: str
    name: str
    created: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(Plain):
    """What a write did.

    `created` is False if it was known already; then `id` is the memory that says so. `commit` is
    None if nothing had to be written; `root_state` is the store's address afterwards. For a
    bound caller both have the number and the address of its own scope instead. `pending` is why a
    model's part of the extraction waits for `extract_pending`, None if it does not. `left_out` says
    which relations of the text were not written, and why. `secrets` are the kinds of secrets that
    the text had, such as "api key"; `set_trust` says what becomes of them.
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
    """What a retirement ended: memories, and what had been derived from them alone.

    Empty if all of it had ended before. Everything can still be read with `include_retired`.
    """

    ids: tuple[Id, ...]
    scopes: tuple[ScopeName, ...]
    commit: Commit | None
    root_state: Id

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered(Plain):
    """One memory as it is at the asked time.

    The text of a session is what its turns say, one on each line. `actor` signed the commit that
    wrote it; `origin` brought it in, and `trust` is how far the settings of its scope trust that.
    `shared`: it lives outside the bounds of the caller; somebody else wrote it into a scope inside.
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
        """The text, by the name it has on a node."""
        return self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPage(Page[Remembered]):
    """Some memories, the latest first; `next_cursor` gets the next page, None at the end."""

    memories: tuple[Remembered, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext(Plain):
    """What is remembered as text for a prompt; empty if nothing is.

    `tokens` is what the text takes, rather too many than too few. `ids` are the memories in it, in
    their order, `pinned` those that were pinned; `left_out` counts those that did not fit.
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
    """Some scopes, in the order they came; `next_cursor` gets the next page, None at the end."""

    scopes: tuple[Scope, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeProposal(Plain):
    """Two names that may be the same, what speaks for it, and what was decided."""

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
    """Some commits, the latest first; `next_cursor` gets the next page, None at the end."""

    commits: tuple[Commit, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Soundness(Plain):
    """What a check found; `commit` and `root_state` are those of a sound store."""

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
    """An edge type that holds in a scope: one that ships, a declared one, or a program's.

    `world` is the world it was declared or registered for; None if it ships.
    """

    type: str
    ships: bool
    world: Id | None
    functional: bool
    declaration: EdgeDeclaration | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeTypes(Page[EdgeTypeEntry]):
    """The edge types that hold in a scope, by name."""

    types: tuple[EdgeTypeEntry, ...]
