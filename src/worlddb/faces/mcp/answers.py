"""Answers: what the tools return. Ids as hex, times as ISO-8601, nothing said that says nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer

from worlddb.memory.results import MemoryPage, Remembered, Retired, Scope, ScopePage, Written
from worlddb.model.records import Commit

if TYPE_CHECKING:
    from worlddb import Hit, Recall

TEXT_SHOWN_CHARS = 4_000
IDS_SHOWN = 20
SCORE_DIGITS = 4


class Answer(BaseModel):
    """An answer leaves out what is empty, so that a model does not have to read it."""

    @model_serializer(mode="wrap")
    def _without_empties(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        return {
            name: value
            for name, value in whole(self).items()
            if value not in (None, "", [], {}, False) or fields[name].is_required()
        }


class LinkedEntity(Answer):
    """Somebody or something that the memory speaks of."""

    id: str
    name: str
    type: str
    created: bool = Field(description="True if it was not known before")


class ProposedMerge(Answer):
    """Two entities that may be the same; a person decides."""

    left: str
    right: str
    tier: str = Field(description="What speaks for it: exact, fuzzy, phonetic, embedding …")
    score: float


class WriteAnswer(Answer):
    """What a write did."""

    id: str = Field(description="The memory that now says it")
    created: bool = Field(description="False if it was known already and nothing was added")
    scopes: list[str] = Field(description="The scopes it is in, such as user:ada")
    entities: list[LinkedEntity] = []
    proposals: list[ProposedMerge] = []
    superseded: list[str] = Field(default=[], description="Memories that ended with this write")
    commit: int | None = Field(default=None, description="The commit's number; absent if no change")
    root_state: str = Field(description="The address of the whole store afterwards")


class ConflictAnswer(Answer):
    """Another memory that cannot be true together with this one."""

    id: str = Field(description="The other memory")
    reason: str = ""


class OutdatedAnswer(Answer):
    """A sentence that something else has replaced."""

    text: str
    replaced_by: str | None = Field(
        default=None, description="The id of what stands in its place, if that can be seen"
    )


class HitAnswer(Answer):
    """One remembered thing and why it was found."""

    id: str
    type: str
    text: str
    name: str = ""
    speaker: str = ""
    truncated: bool = Field(default=False, description="True if memory_read has more of the text")
    score: float = Field(description="What the hits are ordered by")
    lanes: dict[str, int] = Field(
        description="Its rank by words (text), meaning (vector) and names (graph); 1 is first"
    )
    valid_from: datetime = Field(description="Since when it is true")
    valid_to: datetime | None = Field(default=None, description="Until when; absent if it still is")
    known_from: datetime = Field(description="When it was written down")
    provenance: list[str] = []
    conflicts: list[ConflictAnswer] = []
    outdated: list[OutdatedAnswer] = Field(
        default=[], description="Sentences of the text that are no longer so"
    )


class RecallAnswer(Answer):
    """What is remembered about a question, best first."""

    hits: list[HitAnswer]


class MemoryAnswer(Answer):
    """One memory."""

    id: str
    type: str
    text: str
    speaker: str = ""
    truncated: bool = Field(default=False, description="True if memory_read has more of the text")
    scopes: list[str]
    valid_from: datetime = Field(description="Since when it is true")
    valid_to: datetime | None = Field(default=None, description="Until when; absent if it still is")
    known_from: datetime = Field(description="When it was written down")
    retired: bool = Field(default=False, description="True if it has ended")
    provenance: list[str] = []
    metadata: dict[str, Any] = {}
    supersedes: list[str] = []
    superseded_by: list[str] = []


class ListAnswer(Answer):
    """Memories, the latest first."""

    memories: list[MemoryAnswer]
    next_cursor: str | None = Field(default=None, description="Absent on the last page")


class RetireAnswer(Answer):
    """What was ended."""

    count: int = Field(description="How many ended, with what was derived from them alone")
    ids: list[str] = Field(description=f"The first {IDS_SHOWN} of them")
    scopes: list[str] = Field(default=[], description="Scopes that ended")
    commit: int | None = Field(default=None, description="The commit's number; absent if no change")
    root_state: str = Field(description="The address of the whole store afterwards")


class ScopeAnswer(Answer):
    """Whose memory there is."""

    name: str = Field(description="Kind and value, such as user:ada")
    kind: str
    value: str = Field(description="What to give as user_id, agent_id, app_id or run_id")
    id: str
    known_from: datetime
    retired: bool = False


class ScopesAnswer(Answer):
    """Scopes, in the order they came."""

    scopes: list[ScopeAnswer]
    next_cursor: str | None = Field(default=None, description="Absent on the last page")


def written(done: Written) -> WriteAnswer:
    """Return what a write did."""
    return WriteAnswer(
        id=str(done.id),
        created=done.created,
        scopes=_texts(done.scopes),
        entities=[
            LinkedEntity(id=str(one.id), name=one.name, type=one.type, created=one.created)
            for one in done.entities
        ],
        proposals=[
            ProposedMerge(
                left=str(one.left),
                right=str(one.right),
                tier=one.tier,
                score=round(one.score, SCORE_DIGITS),
            )
            for one in done.proposals
        ],
        superseded=_texts(done.superseded),
        commit=_number(done.commit),
        root_state=str(done.root_state),
    )


def recalled(found: Recall) -> RecallAnswer:
    """Return what was found."""
    return RecallAnswer(hits=[_hit(hit) for hit in found])


def _hit(hit: Hit) -> HitAnswer:
    node = hit.node
    text, truncated = shortened(node.content or node.name)
    named = node.name if node.content else ""
    return HitAnswer(
        id=str(node.id),
        type=node.type,
        text=text,
        name="" if node.type == "Turn" else named,
        speaker=named if node.type == "Turn" else "",
        truncated=truncated,
        score=round(hit.score, SCORE_DIGITS),
        lanes={lane: at.rank for lane, at in hit.lanes.items()},
        valid_from=node.valid_from,
        valid_to=node.valid_to,
        known_from=node.known_from,
        provenance=list(node.provenance),
        conflicts=[
            ConflictAnswer(
                id=str(one.right if one.left == node.id else one.left), reason=one.reason
            )
            for one in hit.conflicts
        ],
        outdated=[
            OutdatedAnswer(text=one.text, replaced_by=None if one.by is None else str(one.by))
            for one in hit.outdated
        ],
    )


def remembered(memory: Remembered, *, whole: bool = True) -> MemoryAnswer:
    """Return one memory, of a long one only the beginning unless `whole`."""
    text, truncated = (memory.text, False) if whole else shortened(memory.text)
    return MemoryAnswer(
        id=str(memory.id),
        type=memory.type,
        text=text,
        speaker=memory.speaker,
        truncated=truncated,
        scopes=_texts(memory.scopes),
        valid_from=memory.valid_from,
        valid_to=memory.valid_to,
        known_from=memory.known_from,
        retired=memory.retired,
        provenance=list(memory.provenance),
        metadata=dict(memory.metadata),
        supersedes=_texts(memory.supersedes),
        superseded_by=_texts(memory.superseded_by),
    )


def listed(page: MemoryPage) -> ListAnswer:
    """Return a page of memories."""
    memories = [remembered(memory, whole=False) for memory in page]
    return ListAnswer(memories=memories, next_cursor=page.next_cursor)


def retired(done: Retired) -> RetireAnswer:
    """Return what was ended."""
    return RetireAnswer(
        count=len(done),
        ids=_texts(done.ids[:IDS_SHOWN]),
        scopes=_texts(done.scopes),
        commit=_number(done.commit),
        root_state=str(done.root_state),
    )


def scopes_listed(page: ScopePage) -> ScopesAnswer:
    """Return a page of scopes."""
    return ScopesAnswer(scopes=[_scope(one) for one in page], next_cursor=page.next_cursor)


def _scope(scope: Scope) -> ScopeAnswer:
    return ScopeAnswer(
        name=scope.name,
        kind=scope.kind,
        value=scope.value,
        id=str(scope.id),
        known_from=scope.known_from,
        retired=scope.retired,
    )


def shortened(text: str) -> tuple[str, bool]:
    """Return a text, or the beginning of a long one and that it is one."""
    if len(text) <= TEXT_SHOWN_CHARS:
        return text, False
    return text[:TEXT_SHOWN_CHARS].rstrip() + "…", True


def _texts(values: Iterable[object]) -> list[str]:
    return [str(value) for value in values]


def _number(commit: Commit | None) -> int | None:
    return None if commit is None else commit.seq
