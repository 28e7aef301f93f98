"""Models: what a REST request may bring. The names are those of the Python API."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from worlddb.memory.reads import PAGE_MAX
from worlddb.model.scopes import VALUE_BYTES_MAX, VALUES_MAX, ScopeKind

TIME_CHARS_MAX = 64
CURSOR_CHARS_MAX = 200
SOURCES_MAX = 1_000
MESSAGES_MAX = 10_000
TYPES_MAX = 100
TEXT_CHARS_MAX = 4 << 20

ScopeId = Annotated[str, Field(min_length=1, max_length=VALUE_BYTES_MAX)]
ScopeIds = ScopeId | Annotated[list[ScopeId], Field(min_length=1, max_length=VALUES_MAX)]
Time = Annotated[
    str,
    Field(
        max_length=TIME_CHARS_MAX,
        description="ISO-8601 with its offset, such as 2026-01-31T09:30:00+00:00",
        json_schema_extra={"format": "date-time"},
    ),
]
Text = Annotated[str, Field(min_length=1, max_length=TEXT_CHARS_MAX)]
Metadata = Annotated[dict[str, Any], Field(description="any JSON object, kept with the memory")]
Sources = Annotated[
    str | Annotated[list[str], Field(max_length=SOURCES_MAX)],
    Field(description="where it comes from"),
]
ExtractorName = Literal["verbatim", "rules"]


class Given(BaseModel):
    """What every request brings: whose memory is meant. What is not known here is refused."""

    # `strict`: a number is no text and "true" is no truth; a query string is read leniently.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Scoped(Given):
    """Whose memory is meant: it is in a scope of every kind that is named."""

    user_id: ScopeIds | None = Field(None, description="the user, or any of several")
    agent_id: ScopeIds | None = Field(None, description="the agent, or any of several")
    app_id: ScopeIds | None = Field(None, description="the app, or any of several")
    run_id: ScopeIds | None = Field(None, description="the run, or any of several")


class ChatMessage(Given):
    """One message of a chat."""

    role: str = Field("user", description="who said it: user, assistant, or a name")
    content: str = Field(description="what was said")
    at: Time | None = Field(None, description="when it was said")


Chat = Annotated[list[ChatMessage], Field(min_length=1, max_length=MESSAGES_MAX)]


class WriteGiven(Scoped):
    """Something to remember: a text, or the messages of a chat."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["text"]}, {"required": ["messages"]}]}
    )

    text: Text | Chat | None = Field(None, description="a text; a chat is given as messages")
    messages: Chat | None = Field(None, description="the messages of a chat, in order")
    at: Time | None = Field(None, description="when it became true; now, if left out")
    source: Sources | None = None
    metadata: Metadata | None = None
    idempotency_key: str | None = Field(
        None, description="the same key again writes nothing; also as header Idempotency-Key"
    )
    extractor: ExtractorName | None = Field(None, description="how the text is read")

    @field_validator("text", mode="before")
    @classmethod
    def _is_either(cls, given: Any) -> Any:
        # In one sentence; the model itself would tell what it is not, once for each of the two.
        if given is not None and not isinstance(given, str | list):
            raise PydanticCustomError("text_or_chat", "give a text or a list of messages")
        return given


class ListGiven(Scoped):
    """Which page of memories."""

    limit: int = Field(50, ge=1, le=PAGE_MAX, description="how many")
    cursor: str | None = Field(
        None, max_length=CURSOR_CHARS_MAX, description="next_cursor of the page before"
    )
    include_retired: bool = Field(False, description="what has ended, too")
    as_of: Time | None = Field(None, description="what was true then")
    known_at: Time | None = Field(None, description="what was known then")


class RecallGiven(Scoped):
    """A question."""

    query: Text = Field(description="the question; no word of it is syntax")
    k: int = Field(10, ge=1, description="how many hits")
    max_tokens: int | None = Field(None, ge=1, description="of about so many tokens together")
    as_of: Time | None = Field(None, description="what was true then")
    known_at: Time | None = Field(None, description="what was known then")
    types: Annotated[list[str], Field(min_length=1, max_length=TYPES_MAX)] | None = Field(
        None, description="only of these types, such as Memory, Turn or Fact"
    )
    include_retired: bool = Field(False, description="what has ended, too")
    at: Time | None = Field(None, description='when it is asked, for words like "last week"')


class ReadGiven(Scoped):
    """When one memory is looked at."""

    as_of: Time | None = Field(None, description="as it was true then")
    known_at: Time | None = Field(None, description="as it was known then")


class AmendGiven(Scoped):
    """What a memory says from now on."""

    text: Text = Field(description="the new text")
    at: Time | None = Field(None, description="when it became true; now, if left out")
    source: Sources | None = None
    metadata: Metadata | None = None
    extractor: ExtractorName | None = Field(None, description="how the text is read")


class RetireGiven(Scoped):
    """When a memory ends."""

    at: Time | None = Field(None, description="when it ended; now, if left out")


class RetireAllGiven(Scoped):
    """The scope whose memories end."""

    confirm: bool | str | None = Field(None, description="true, or the scope's value again")
    at: Time | None = Field(None, description="when they ended; now, if left out")


class PurgeGiven(Scoped):
    """The one scope that ends."""

    confirm: bool | str = Field(description="true, or the scope's value again")


class ScopesGiven(Given):
    """Which page of scopes."""

    kind: ScopeKind | None = Field(None, description="only users, agents, apps or runs")
    limit: int = Field(100, ge=1, le=PAGE_MAX, description="how many")
    cursor: str | None = Field(
        None, max_length=CURSOR_CHARS_MAX, description="next_cursor of the page before"
    )
    include_retired: bool = Field(False, description="what has ended, too")
