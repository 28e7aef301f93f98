"""Arguments: what the tools take, each with the words that tell a model how to fill it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from worlddb.errors import InvalidInputError
from worlddb.model.inputs import to_micros

TEXT_CHARS_MAX = 1 << 20
MESSAGES_MAX = 1_000
K_MAX = 100
LIMIT_MAX = 200


def check_time(given: str | None) -> str | None:
    """Return a time as it was given, if it is one.

    Raises:
        ValueError: it is none; here, and not deep inside, where it would have another name.
    """
    try:
        if given is not None:
            to_micros(given, "time")
    except InvalidInputError as error:
        raise ValueError(str(error).removeprefix("time: ")) from None
    return given


Time = Annotated[str | None, AfterValidator(check_time)]

Text = Annotated[
    str | None,
    Field(
        max_length=TEXT_CHARS_MAX,
        description=(
            "What to remember, in plain sentences that can be understood on their own: write "
            "names instead of 'he' or 'it', and dates instead of 'tomorrow'."
        ),
    ),
]
NewText = Annotated[
    str,
    Field(
        max_length=TEXT_CHARS_MAX,
        description="What is true instead, as a whole sentence; it replaces all of the old text.",
    ),
]
Query = Annotated[
    str,
    Field(
        description=(
            "The question or topic in plain words; no word of it is syntax. Names and dates help."
        )
    ),
]
MemoryId = Annotated[
    str,
    Field(description="The memory's id in hex, or the first 4 or more digits if no other has them"),
]


class ChatMessage(BaseModel):
    """One message of a chat."""

    model_config = ConfigDict(extra="forbid")

    content: Annotated[str, Field(max_length=TEXT_CHARS_MAX, description="What was said")]
    role: Annotated[str, Field(description="Who said it: user, assistant, or a person's name")] = (
        "user"
    )
    at: Annotated[
        Time, Field(description="When, ISO-8601 with a time zone, if not as the whole chat")
    ] = None


Messages = Annotated[
    list[ChatMessage] | None,
    Field(
        max_length=MESSAGES_MAX,
        description="A conversation to remember instead of `text`, in order",
    ),
]
UserId = Annotated[
    str | None,
    Field(
        description=(
            "Whose memory: the person it belongs to. Leave it out for the usual user of this server"
        )
    ),
]
AgentId = Annotated[
    str | None, Field(description="Only for the memory of one agent: the agent's name")
]
AppId = Annotated[str | None, Field(description="Only for the memory of one app: the app's name")]
RunId = Annotated[
    str | None, Field(description="Only for the memory of one run or conversation: its id")
]
At = Annotated[
    Time,
    Field(
        description=(
            "When it was said or became true, ISO-8601 with a time zone such as "
            "2026-03-01T09:30:00Z; leave it out for now"
        )
    ),
]
EndsAt = Annotated[
    Time,
    Field(
        description=(
            "When it stopped being true, ISO-8601 with a time zone such as 2026-03-01T09:30:00Z; "
            "leave it out for now"
        )
    ),
]
Source = Annotated[
    str | None,
    Field(description="Where it comes from: a file, a link, 'chat of 3 May'; kept as provenance"),
]
Metadata = Annotated[
    dict[str, Any] | None,
    Field(description='Further JSON data to keep with it, such as {"topic": "travel"}'),
]
IdempotencyKey = Annotated[
    str | None,
    Field(description="Any text; a write with the same key and text again does nothing"),
]
K = Annotated[int, Field(ge=1, le=K_MAX, description="How many memories to return at most")]
MaxTokens = Annotated[
    int | None, Field(ge=1, description="Stop when the texts would take about so many tokens")
]
AsOf = Annotated[
    Time,
    Field(
        description=(
            "Ask for what was true at this time, ISO-8601 with a time zone; leave it out for now"
        )
    ),
]
KnownAt = Annotated[
    Time,
    Field(
        description=(
            "Ask for what this memory held at this time, ISO-8601 with a time zone, whatever was "
            "learned since; leave it out for now"
        )
    ),
]
IncludeRetired = Annotated[
    bool, Field(description="Also return what has ended: retired, amended, or no longer true")
]
Limit = Annotated[int, Field(ge=1, le=LIMIT_MAX, description="How many to return at most")]
Cursor = Annotated[
    str | None,
    Field(description="The next_cursor of the page before; leave it out for the first page"),
]
Kind = Annotated[
    Literal["user", "agent", "app", "run"] | None,
    Field(description="Return scopes of this kind only"),
]
Confirm = Annotated[
    str | bool | None,
    Field(
        description=(
            "Leave it out where a person can be asked. Otherwise, once the user has agreed, the "
            "value of the scope once more, such as the same text as user_id; or true"
        )
    ),
]
