"""Answers: what the tools return. Ids as hex, times as ISO-8601, empty values left out.

An answer is made from a result by its attributes: same names, fewer of them. A result without an
answer class here is answered with all its fields, as in REST.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
)

from worlddb.faces.call_models import result_class, result_model
from worlddb.faces.calls import Call
from worlddb.model.records import said_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from worlddb import Hit, MemoryPage, Retired

TEXT_SHOWN_CHARS = 4_000  # About a thousand tokens; memory_read has the whole text.
IDS_SHOWN = 20  # A model needs no more; `count` says how many there are.
SCORE_DIGITS = 4


class Answer(BaseModel):
    """An answer leaves out empty values, so that a model does not have to read them."""

    model_config = ConfigDict(from_attributes=True)

    @model_serializer(mode="wrap")
    def _without_empties(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        return {
            name: value
            for name, value in whole(self).items()
            if value not in (None, "", [], {}, False) or fields[name].is_required()
        }


Hex = Annotated[str, BeforeValidator(str)]  # An id, or the name of a scope such as user:ada.
Score = Annotated[float, BeforeValidator(lambda score: round(score, SCORE_DIGITS))]
Seq = Annotated[int | None, BeforeValidator(lambda commit: getattr(commit, "seq", commit))]
Metadata = Annotated[dict[str, Any], BeforeValidator(dict)]


class LinkedEntity(Answer):
    """Somebody or something that the memory speaks of."""

    id: Hex
    name: str
    type: str
    created: bool = Field(description="True if it was not known before")


class ProposedMerge(Answer):
    """Two entities that may be the same; a person decides."""

    left: Hex
    right: Hex
    tier: str = Field(description="What speaks for it: exact, fuzzy, phonetic, embedding …")
    score: Score


class WriteAnswer(Answer):
    """What a write did."""

    id: Hex = Field(description="The memory that now says it")
    created: bool = Field(description="False if it was known already and nothing was added")
    scopes: list[Hex] = Field(description="The scopes it is in, such as user:ada")
    entities: list[LinkedEntity] = []
    proposals: list[ProposedMerge] = []
    superseded: list[Hex] = Field(default=[], description="Memories that ended with this write")
    superseded_texts: list[str] = Field(default=[], description="What they said, in that order")
    left_out: list[str] = Field(
        default=[], description="Relations of the text that were not written, and why"
    )
    commit: Seq = Field(
        default=None,
        description="The number of the commit; with a bound token, of the change in its scope",
    )
    root_state: Hex = Field(
        description="The address of the store afterwards; with a bound token, of its scope"
    )


class ConflictAnswer(Answer):
    """Another memory that cannot be true together with this one."""

    id: Hex = Field(description="The other memory")
    text: str = Field(default="", description="What it says, if it can be read here")
    reason: str = ""


class OutdatedAnswer(Answer):
    """A sentence that another memory has replaced."""

    text: str
    replaced_by: str | None = Field(
        default=None, description="The id of the memory that replaced it, if it can be seen"
    )


class HitAnswer(Answer):
    """One remembered thing and why it was found."""

    id: Hex
    type: str
    text: str
    name: str = ""
    speaker: str = ""
    truncated: bool = Field(default=False, description="True if memory_read has more of the text")
    score: Score = Field(description="The hits are ordered by this")
    confidence: float = Field(description="The probability that this hit holds an answer")
    lanes: dict[str, int] = Field(
        description="Its rank by words (text), meaning (vector) and names (graph); 1 is first"
    )
    valid_from: datetime = Field(description="Since when it is true")
    valid_to: datetime | None = Field(default=None, description="Until when; absent if it still is")
    known_from: datetime = Field(description="When it was written down")
    actor: str = Field(default="", description="Who wrote it down")
    provenance: list[str] = []
    conflicts: list[ConflictAnswer] = []
    outdated: list[OutdatedAnswer] = Field(
        default=[], description="Sentences of the text that are no longer true"
    )
    maybe_outdated_by: str | None = Field(
        default=None, description="The id of a later memory that may have replaced this one"
    )


class RecallAnswer(Answer):
    """What is remembered about a question, best first."""

    confidence: float = Field(description="The probability that an answer is among the hits")
    hits: list[HitAnswer]


class MemoryAnswer(Answer):
    """One memory."""

    id: Hex
    type: str
    text: str
    speaker: str = ""
    truncated: bool = Field(default=False, description="True if memory_read has more of the text")
    scopes: list[Hex]
    valid_from: datetime = Field(description="Since when it is true")
    valid_to: datetime | None = Field(default=None, description="Until when; absent if it still is")
    known_from: datetime = Field(description="When it was written down")
    actor: str = Field(default="", description="Who wrote it down")
    retired: bool = Field(default=False, description="True if it has ended")
    provenance: list[str] = []
    metadata: Metadata = {}
    supersedes: list[Hex] = []
    superseded_by: list[Hex] = []


class ListAnswer(Answer):
    """Memories, the latest first."""

    memories: list[MemoryAnswer]
    next_cursor: str | None = Field(default=None, description="Absent on the last page")


class RetireAnswer(Answer):
    """What was ended."""

    count: int = Field(description="How many ended, with what was derived from them alone")
    ids: list[Hex] = Field(description=f"The first {IDS_SHOWN} of them")
    scopes: list[Hex] = Field(default=[], description="Scopes that ended")
    commit: Seq = Field(
        default=None,
        description="The number of the commit; with a bound token, of the change in its scope",
    )
    root_state: Hex = Field(
        description="The address of the store afterwards; with a bound token, of its scope"
    )


class ScopeAnswer(Answer):
    """Whose memory there is."""

    name: str = Field(description="Kind and value, such as user:ada")
    kind: str
    value: str = Field(description="What to give as user_id, agent_id, app_id or run_id")
    id: Hex
    known_from: datetime
    retired: bool = False


class ScopesAnswer(Answer):
    """Scopes, in the order they came."""

    scopes: list[ScopeAnswer]
    next_cursor: str | None = Field(default=None, description="Absent on the last page")


def _listed(page: MemoryPage) -> ListAnswer:
    memories = [MemoryAnswer.model_validate(memory) for memory in page]
    for memory in memories:
        memory.text, memory.truncated = shortened(memory.text)
    return ListAnswer(memories=memories, next_cursor=page.next_cursor)


def _retired(done: Retired) -> RetireAnswer:
    return RetireAnswer.model_validate(
        {
            "count": len(done),
            "ids": done.ids[:IDS_SHOWN],
            "scopes": done.scopes,
            "commit": done.commit,
            "root_state": done.root_state,
        }
    )


def _hit(hit: Hit) -> HitAnswer:
    node = hit.node
    said = node.content if hit.summary is None else hit.summary.content
    text, truncated = shortened(said or node.name)
    named = node.name if said else ""
    return HitAnswer(
        id=str(node.id),
        type=node.type,
        text=text,
        name="" if node.type == "Turn" else named,
        speaker=said_by(named) if node.type == "Turn" else "",
        truncated=truncated,
        score=hit.score,
        confidence=hit.confidence,
        lanes={lane: at.rank for lane, at in hit.lanes.items()},
        valid_from=node.valid_from,
        valid_to=node.valid_to,
        known_from=node.known_from,
        actor=node.actor,
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
        maybe_outdated_by=next((str(one.by) for one in hit.maybe_outdated), None),
    )


ANSWERS: dict[str, tuple[type[Answer], Callable[[Any], Answer]]] = {
    "Written": (WriteAnswer, WriteAnswer.model_validate),
    "Recall": (
        RecallAnswer,
        lambda it: RecallAnswer(confidence=it.confidence, hits=[_hit(hit) for hit in it]),
    ),
    "MemoryPage": (ListAnswer, _listed),
    "Remembered": (MemoryAnswer, MemoryAnswer.model_validate),
    "Retired": (RetireAnswer, _retired),
    "ScopePage": (ScopesAnswer, ScopesAnswer.model_validate),
}
"""For each class of results, its answer class and how an answer is made from a result."""


def answer_of(call: Call, result: Any) -> Answer:
    """Return the answer of a tool whose call gave `result`."""
    if call.result in ANSWERS:
        return ANSWERS[call.result][1](result)
    return answer_class(call).model_validate(result.to_dict())


def add_texts(answer: Answer, text_of: Callable[[str], str]) -> None:
    """Say what the ids in an answer mean, so that a model need not read each of them."""
    if isinstance(answer, WriteAnswer):
        answer.superseded_texts = [text_of(ident) for ident in answer.superseded[:IDS_SHOWN]]
    elif isinstance(answer, RecallAnswer):
        for conflict in [one for hit in answer.hits for one in hit.conflicts][:IDS_SHOWN]:
            conflict.text = text_of(conflict.id)


@cache
def answer_class(call: Call) -> type[Answer]:
    """Return the class of the answers of a call."""
    if call.result in ANSWERS:
        return ANSWERS[call.result][0]
    whole = result_model(result_class(call))
    bases: Any = (Answer, whole)
    made: type[Answer] = create_model(call.result, __base__=bases, __doc__=whole.__doc__)
    return made


def shortened(text: str) -> tuple[str, bool]:
    """Return a text, or the beginning of a long one, and whether it was cut."""
    if len(text) <= TEXT_SHOWN_CHARS:
        return text, False
    return text[:TEXT_SHOWN_CHARS].rstrip() + "…", True
