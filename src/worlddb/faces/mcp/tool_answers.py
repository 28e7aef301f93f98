"""Tool answers: the results of MCP tools. A model pays for every character, so they are short.

Ids are prefixes of their hex, which every call accepts. Times are short ISO-8601, to the minute in
hits and lists. Empty and repeated values are left out. An answer takes its fields from the result
by their names. A result without an answer class has one made of its fields, but for hashes, which
only a program can use; receipts and exports are for programs and stay whole.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from inspect import getdoc
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    create_model,
    model_serializer,
)

from worlddb.faces.call_models import result_class, result_model
from worlddb.faces.call_parts import Call
from worlddb.model.address import Id
from worlddb.model.inputs import ScopeName, said_by
from worlddb.model.text_safety import FULL, tokens_at_most, trust_level, visible_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from worlddb import Hit, MemoryPage, Remembered, Retired, Subgraph, Written

PLAIN_TYPES = ("Memory", "Turn")  # The types of most hits; the speaker distinguishes a turn.
TEXT_SHOWN_CHARS = 4_000  # About a thousand tokens; memory_read returns the whole text.
IDS_SHOWN = 20  # `count` has the number of all.
SCORE_DIGITS = 4
SHARE_DIGITS = 2  # The precision of a calibrated probability.
AT_ONCE = timedelta(minutes=1)  # The precision of times in lists.
ID_DIGITS = 8  # As in the text for a prompt; collides once in four thousand million.


def second(time: datetime) -> str:
    """Return a time to the second, without trailing zeros: midnight becomes the day."""
    day, _, clock = f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}".partition("T")
    return day if clock == "00:00:00" else f"{day}T{clock.removesuffix(':00')}Z"


def minute(time: datetime) -> datetime:
    """Return a time to the minute, for lists and hits."""
    return time.replace(second=0, microsecond=0)


Said: TypeAlias = "Callable[[str], tuple[str, str]]"
"""The text of a memory by its id, and its origin if it is not fully trusted."""


class Answer(BaseModel):
    """Base of answers; empty values are left out, so that a model does not have to read them."""

    model_config = ConfigDict(from_attributes=True)

    @model_serializer(mode="wrap")
    def _without_empties(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        return {
            name: value
            for name, value in whole(self).items()
            if value not in (None, "", [], {}, False) or fields[name].is_required()
        }


Hex = Annotated[str, BeforeValidator(str)]  # A whole id, or the name of a scope: user:ada.
ShortId = Annotated[
    str, BeforeValidator(lambda ident: None if ident is None else str(ident)[:ID_DIGITS])
]
# A short time is not a "date-time" of JSON Schema, and clients check answers by the schema.
Second = Annotated[
    datetime,
    PlainSerializer(lambda time: second(time), return_type=str),
    WithJsonSchema({"type": "string"}),
]
Score = Annotated[float, BeforeValidator(lambda score: round(score, SCORE_DIGITS))]
Share = Annotated[float, BeforeValidator(lambda share: round(share, SHARE_DIGITS))]
Seq = Annotated[int | None, BeforeValidator(lambda commit: getattr(commit, "seq", commit))]
Name = Annotated[str, BeforeValidator(lambda one: getattr(one, "name", one))]
Metadata = Annotated[dict[str, Any], BeforeValidator(dict)]


Distrusted = Annotated[
    str, Field(description="Who said it, such as web or tool, if not trusted: only a claim")
]


class ProposedMerge(Answer):
    """Two entities that may be the same; a person decides."""

    left: ShortId
    right: ShortId
    tier: str = Field(description="What speaks for it: exact, fuzzy, phonetic, embedding …")
    score: Score


class SaidMemory(Answer):
    """Another memory with its text."""

    id: ShortId
    text: str = ""
    origin: Distrusted = ""


class WriteAnswer(Answer):
    """The result of a write."""

    id: ShortId = Field(description="The memory that now says it")
    created: bool = Field(description="False if it was known already and nothing was added")
    scopes: list[Hex] = Field(description="The scopes it is in, such as user:ada")
    entities: list[Name] = Field(default=[], description="Who and what it speaks of")
    proposals: list[ProposedMerge] = []
    superseded: list[ShortId] = Field(default=[], description="Memories that ended with this write")
    superseded_texts: list[str] = Field(default=[], description="What they said, in that order")
    left_out: list[str] = Field(
        default=[], description="Relations of the text that were not written, and why"
    )
    pending: str | None = Field(default=None, description="Why a part of the reading waits")
    commit: Seq = Field(default=None, description="The number of the commit")


class ConflictAnswer(Answer):
    """Another memory that cannot be true together with this one."""

    id: ShortId = Field(description="The other memory")
    text: str = Field(default="", description="What it says, if it can be read here")
    origin: Distrusted = ""
    reason: str = ""


class OutdatedAnswer(Answer):
    """A sentence that another memory has replaced."""

    text: str
    replaced_by: str | None = Field(
        default=None, description="The id of the memory that replaced it, if it can be seen"
    )


class HitAnswer(Answer):
    """One hit; `explain` adds the reasons why it was found."""

    id: ShortId
    text: str
    valid_from: Second = Field(description="Since when it is true")
    valid_to: Second | None = Field(default=None, description="Until when; absent if it still is")
    type: str = Field(default="", description="Absent for a plain memory")
    name: str = ""
    speaker: str = ""
    origin: Distrusted = ""
    truncated: bool = Field(default=False, description="True if memory_read has more of the text")
    confidence: Share | None = Field(
        default=None, description="The probability that this hit holds an answer"
    )
    conflicts: list[ConflictAnswer] = []
    outdated: list[OutdatedAnswer] = Field(
        default=[], description="Sentences of the text that are no longer true"
    )
    maybe_outdated_by: SaidMemory | None = Field(
        default=None, description="A later memory that may have replaced this one"
    )
    score: Score | None = Field(default=None, description="The hits are ordered by this")
    lanes: dict[str, int] = Field(
        default={}, description="Rank by words (text), meaning (vector) and names (graph)"
    )
    known_from: Second | None = Field(default=None, description="When it was written down")
    actor: str = Field(default="", description="Who wrote it down")
    provenance: list[str] = []
    metadata: Metadata = {}


class RecallAnswer(Answer):
    """The answer of a recall, best hit first."""

    confidence: Share = Field(description="The probability that an answer is among the hits")
    hits: list[HitAnswer]


class ContextAnswer(Answer):
    """A text for a prompt; each of its lines begins with the id of a memory."""

    text: str = Field(description="The text for the prompt; empty if nothing is remembered")
    left_out: int | None = Field(default=None, description="How many memories did not fit")


class MemoryAnswer(Answer):
    """One memory."""

    id: ShortId
    type: str = Field(default="", description="Absent for a plain memory in a list")
    text: str
    speaker: str = ""
    origin: Distrusted = ""
    truncated: bool = Field(default=False, description="True if memory_read has more of the text")
    scopes: list[Hex] = Field(default=[], description="In a list only if others than those of all")
    valid_from: Second = Field(description="Since when it is true")
    valid_to: Second | None = Field(default=None, description="Until when; absent if it still is")
    known_from: Second | None = Field(
        default=None, description="When it was written down; in a list only if not at once"
    )
    actor: str = Field(default="", description="Who wrote it down")
    retired: bool = Field(default=False, description="True if it has ended")
    provenance: list[str] = []
    metadata: Metadata = {}
    supersedes: list[ShortId] = []
    superseded_by: list[ShortId] = []


class ListAnswer(Answer):
    """Memories, the latest first."""

    memories: list[MemoryAnswer]
    scopes: list[Hex] = Field(default=[], description="Where all are that name no other scopes")
    next_cursor: str | None = Field(default=None, description="Absent on the last page")


class RetireAnswer(Answer):
    """The result of a retirement."""

    count: int = Field(description="How many ended, with what was derived from them alone")
    ids: list[ShortId] = Field(description=f"The first {IDS_SHOWN} of them")
    scopes: list[Hex] = Field(default=[], description="Scopes that ended")
    commit: Seq = Field(default=None, description="The number of the commit")


class ScopeAnswer(Answer):
    """One scope."""

    name: str = Field(description="Kind and value, such as user:ada")
    kind: str
    value: str = Field(description="What to give as user_id, agent_id, app_id or run_id")
    known_from: Second
    retired: bool = False


class ScopesAnswer(Answer):
    """A page of scopes."""

    scopes: list[ScopeAnswer]
    next_cursor: str | None = Field(default=None, description="Absent on the last page")


class NodeAnswer(Answer):
    """A memory, a name or a world in the graph."""

    id: ShortId
    type: str
    name: str = ""
    content: str = ""
    origin: Distrusted = ""
    truncated: bool = Field(default=False, description="True if memory_read has more of the text")
    valid_from: Second = Field(description="Since when it is true")
    valid_to: Second | None = Field(default=None, description="Until when; absent if it still is")


class EdgeAnswer(Answer):
    """An edge between two nodes."""

    id: ShortId
    type: str
    source: ShortId
    target: ShortId
    valid_to: Second | None = Field(default=None, description="Until when; absent if it still is")
    metadata: Metadata = {}


class RivalsAnswer(Answer):
    """Two nodes that cannot both be right."""

    left: ShortId
    right: ShortId
    reason: str = ""


class GraphAnswer(Answer):
    """The nodes that a query ends at, the edges it followed, and what contradicts a node."""

    nodes: list[NodeAnswer]
    edges: list[EdgeAnswer] = []
    conflicts: list[RivalsAnswer] = []
    cut: str | None = Field(default=None, description="How the start was cut, if it was")


def _graph(found: Subgraph) -> GraphAnswer:
    answer = GraphAnswer.model_validate(found)
    for node, whole in zip(answer.nodes, found.nodes, strict=True):
        node.content, node.truncated = shortened(node.content)
        node.valid_from = minute(node.valid_from)
        node.origin = "" if trust_level(whole.origins) == FULL else whole.origin
    return answer


def _written(done: Written) -> WriteAnswer:
    return WriteAnswer(
        id=str(done.id),
        created=done.created,
        scopes=[str(scope) for scope in done.scopes],
        entities=[one.name for one in done.entities],
        proposals=[ProposedMerge.model_validate(one) for one in done.proposals],
        superseded=[str(ident) for ident in done.superseded],
        left_out=list(done.left_out),
        pending=done.pending,
        commit=None if done.commit is None else done.commit.seq,
    )


def memory_answer(memory: Remembered) -> MemoryAnswer:
    """Return one memory as an answer."""
    answer = MemoryAnswer.model_validate(memory)
    answer.origin = "" if memory.trust == "full" else memory.origin
    return answer


def _listed(page: MemoryPage) -> ListAnswer:
    memories = [memory_answer(memory) for memory in page]
    places = Counter(tuple(memory.scopes) for memory in memories)
    common = [*places.most_common(1)[0][0]] if places else []
    for memory, whole in zip(memories, page, strict=True):
        memory.text, memory.truncated = shortened(memory.text)
        memory.type = "" if memory.type in PLAIN_TYPES else memory.type
        memory.scopes = [] if memory.scopes == common else memory.scopes
        memory.actor = memory.actor if whole.shared else ""
        is_told_at_once = abs(whole.known_from - whole.valid_from) < AT_ONCE
        memory.known_from = None if is_told_at_once else minute(whole.known_from)
        memory.valid_from = minute(whole.valid_from)
    return ListAnswer(memories=memories, scopes=common, next_cursor=page.next_cursor)


def _retired(done: Retired) -> RetireAnswer:
    return RetireAnswer.model_validate(
        {
            "count": len(done),
            "ids": done.ids[:IDS_SHOWN],
            "scopes": done.scopes,
            "commit": done.commit,
        }
    )


def _hit(hit: Hit) -> HitAnswer:
    """Return a hit with all its details."""
    node = hit.node
    said = node.content if hit.summary is None else hit.summary.content
    text, truncated = shortened(said or node.name)
    named = node.name if said else ""
    return HitAnswer(
        id=str(node.id),
        type="" if node.type in PLAIN_TYPES else node.type,
        text=text,
        name="" if node.type == "Turn" else named,
        speaker=said_by(named) if node.type == "Turn" else "",
        origin="" if hit.trust == "full" else hit.origin,
        truncated=truncated,
        score=hit.score,
        confidence=hit.confidence,
        lanes={lane: at.rank for lane, at in hit.lanes.items()},
        valid_from=node.valid_from,
        valid_to=node.valid_to,
        known_from=node.known_from,
        actor=node.actor,
        provenance=list(node.provenance),
        metadata=dict(node.metadata),
        conflicts=[
            ConflictAnswer(
                id=str(one.right if one.left == node.id else one.left), reason=one.reason
            )
            for one in hit.conflicts
        ],
        outdated=[
            OutdatedAnswer(
                text=one.text, replaced_by=None if one.by is None else str(one.by)[:ID_DIGITS]
            )
            for one in hit.outdated
        ],
        maybe_outdated_by=next((SaidMemory(id=str(one.by)) for one in hit.maybe_outdated), None),
    )


def without_details(answer: Answer) -> None:
    """Remove the fields that only `explain` shows from an answer."""
    for hit in answer.hits if isinstance(answer, RecallAnswer) else ():
        hit.score = hit.confidence = hit.known_from = None
        hit.valid_from = minute(hit.valid_from)
        hit.lanes, hit.provenance, hit.metadata, hit.actor = {}, [], {}, ""


def fit(answer: Answer, max_tokens: int | None, said: Said) -> None:
    """Remove the last hits of an answer until it has at most so many tokens."""
    if isinstance(answer, RecallAnswer) and max_tokens is not None:
        while answer.hits and tokens_at_most(compact(answer)) > max_tokens:
            answer.hits.pop()
            add_texts(answer, said)  # The text of a removed hit may be needed elsewhere.


def fitted_context(
    answer: ContextAnswer, max_tokens: int, ask: Callable[[int], ContextAnswer]
) -> ContextAnswer:
    """Return a context whose whole answer has at most so many tokens as it is sent.

    JSON takes more than the text, so `ask` is called with what is left for the text.
    """
    left = max_tokens
    while answer.text and (over := tokens_at_most(compact(answer)) - max_tokens) > 0 and left > 1:
        left = max(left - over, 1)
        answer = ask(left)
    return answer


def compact(answer: Answer) -> str:
    """Return an answer as compact JSON text."""
    return compact_json(answer.model_dump(mode="json"))


def compact_json(data: object) -> str:
    """Return data as compact JSON text; hidden characters are escapes."""
    return visible_json(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


ANSWERS: dict[str, tuple[type[Answer], Callable[[Any], Answer]]] = {
    "Subgraph": (GraphAnswer, _graph),
    "Written": (WriteAnswer, _written),
    "Recall": (
        RecallAnswer,
        lambda it: RecallAnswer(confidence=it.confidence, hits=[_hit(hit) for hit in it]),
    ),
    "PromptContext": (
        ContextAnswer,
        lambda it: ContextAnswer(text=it.text, left_out=it.left_out or None),
    ),
    "MemoryPage": (ListAnswer, _listed),
    "Remembered": (MemoryAnswer, memory_answer),
    "Retired": (RetireAnswer, _retired),
    "ScopePage": (ScopesAnswer, ScopesAnswer.model_validate),
}
"""For each class of results, its answer class and how an answer is made from a result."""


FOR_PROGRAMS = ("Receipt", "ScopeExport")
"""Results that are verified or stored, and so have whole ids and hashes."""
HASHES = ("hash", "previous", "root_state", "state")
_WHOLE_ID = re.compile(r"[0-9a-f]{64}")


def answer_of(call: Call, result: Any) -> Answer:
    """Return a call's result as the answer of its tool."""
    if call.result in ANSWERS:
        return ANSWERS[call.result][1](result)
    is_whole = call.result in FOR_PROGRAMS
    return answer_class(call).model_validate(result.to_dict() if is_whole else result)


@cache
def _short_model(result: type) -> type[Answer]:
    """Return a model of a result for a language model."""
    hints, made = get_type_hints(result), dict[str, Any]()
    for one in (one for one in fields(result) if one.name not in HASHES):
        hint = Seq if one.name == "commit" else _short(hints[one.name])
        # What a result is about stays, also if it is an empty list or an empty file.
        made[one.name] = (hint, None if made and one.name != "text" else ...)
    return create_model(result.__name__, __base__=Answer, __doc__=getdoc(result), **made)


def _short(hint: Any) -> Any:
    """Return the type of a field as a language model reads it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Id or hint is datetime:
        return ShortId if hint is Id else Second
    if hint is ScopeName:
        return Hex
    if isinstance(hint, type) and is_dataclass(hint):
        return _short_model(hint)
    if origin is tuple:
        return list[_short(inner[0])]  # type: ignore[misc]
    if origin is Mapping:
        return ShortData
    if origin in (Union, UnionType):
        return Union[tuple(_short(one) for one in inner)]  # noqa: UP007
    return hint


def _short_values(given: Any) -> Any:
    """Return data with the prefixes of ids in place of the ids."""
    if isinstance(given, Mapping):
        return {name: _short_values(value) for name, value in given.items()}
    if isinstance(given, list | tuple):
        return [_short_values(one) for one in given]
    is_id = isinstance(given, str) and _WHOLE_ID.fullmatch(given)
    return given[:ID_DIGITS] if is_id else given


ShortData = Annotated[dict[str, Any], BeforeValidator(_short_values)]


def add_texts(answer: Answer, said: Said) -> None:
    """Add texts to the ids in an answer, so that a model need not read each of them."""
    if isinstance(answer, WriteAnswer):
        answer.superseded_texts = [said(ident)[0] for ident in answer.superseded[:IDS_SHOWN]]
    elif isinstance(answer, RecallAnswer):
        named: list[SaidMemory | ConflictAnswer] = []
        for hit in answer.hits:
            named += [hit.maybe_outdated_by] if hit.maybe_outdated_by else []
            named += hit.conflicts
        shown = {hit.id for hit in answer.hits}  # The texts of hits are in the answer already.
        for one in [one for one in named if one.id not in shown][:IDS_SHOWN]:
            one.text, one.origin = said(one.id)


@cache
def answer_class(call: Call) -> type[Answer]:
    """Return the answer class of a call."""
    if call.result in ANSWERS:
        return ANSWERS[call.result][0]
    if call.result not in FOR_PROGRAMS:
        return _short_model(result_class(call))
    whole = result_model(result_class(call))
    bases: Any = (Answer, whole)
    made: type[Answer] = create_model(call.result, __base__=bases, __doc__=whole.__doc__)
    return made


def shortened(text: str) -> tuple[str, bool]:
    """Return a text, or the beginning of a long one, and whether it was cut."""
    if len(text) <= TEXT_SHOWN_CHARS:
        return text, False
    return text[:TEXT_SHOWN_CHARS].rstrip() + "…", True
