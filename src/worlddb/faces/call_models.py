"""Call models: Pydantic models made from the declared calls and the classes of their results.

`arguments_model` checks the arguments of a caller; `result_model` describes the `to_dict` of a
result. REST and MCP publish the JSON schemas of both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from inspect import getdoc
from itertools import islice
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

import worlddb
from worlddb.errors import InvalidInputError
from worlddb.faces.call_parts import (
    MESSAGES_MAX,
    SCOPE_CHARS_MAX,
    TEXT_CHARS_MAX,
    TIME_CHARS_MAX,
    Call,
    Parameter,
)
from worlddb.ingest.document_text import CHARS_MAX as DOCUMENT_CHARS_MAX
from worlddb.model.address import Id, parse_prefix
from worlddb.model.inputs import groups_of, to_micros

EMPTY_IS_NONE = (
    *("text", "content", "time", "duration", "choice", "texts", "names", "object", "document"),
)
"""Types of arguments that a model may give as "" and mean nothing by it; a scope is none of them:
whose memory it is must be said or left out."""
SAYS_SOMETHING: Any = {"pattern": r"^[^\u0000]*[^\s\u0000][^\u0000]*$"}
"""For the schema of a text: at least one character that is no space, and no NUL."""
NUMBER_MAX = (1 << 63) - 1  # The largest integer of a store.
STRANGERS_MAX = 5  # Unknown arguments named in an error; more do not help.
ID_OR_START = re.compile(r"^[0-9a-fA-F]{4,64}\Z")
"""An id that is asked for: the whole id, or how it begins."""

HexId = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


def check_time(given: str) -> str:
    """Return a time unchanged after a check.

    Raises:
        ValueError: it is not a time. Checked here, where the parameter's own name is known.
    """
    try:
        to_micros(given, "time")
    except InvalidInputError as error:
        raise ValueError(str(error).removeprefix("time: ")) from None
    return given


def check_letters(given: str) -> str:
    """Return a text unchanged after a check; it may be empty.

    Raises:
        ValueError: it has a NUL.
    """
    if "\0" in given:
        raise ValueError("has a NUL character; remove it")
    return given


def check_speech(given: Any) -> Any:
    """Return one or several texts after a check that none is blank.

    Raises:
        ValueError: there is nothing in one but white space, or it has a NUL.
    """
    for text in given if isinstance(given, list) else (given,):
        if isinstance(text, str) and not check_letters(text).strip():
            raise ValueError("is empty: there is no text in it; give a word, or leave it out")
    return given


def check_scope(given: str | list[str]) -> str | list[str]:
    """Return one or several values of a scope after a check.

    Raises:
        ValueError: one is empty, or has white space around it or a control character in it.
    """
    try:
        groups_of({"user_id": given})
    except InvalidInputError as error:
        raise ValueError(str(error).removeprefix("user_id: ")) from None
    return given


def check_id_start(given: str) -> str:
    """Return an id or its prefix after a check.

    Raises:
        ValueError: it is neither.
    """
    try:
        parse_prefix(given)
    except InvalidInputError as error:
        raise ValueError(str(error)) from None
    if not ID_OR_START.match(given):
        raise ValueError("an id has no white space around it")
    return given


SPEAKS, LETTERS = AfterValidator(check_speech), AfterValidator(check_letters)
Word = Annotated[str, Field(json_schema_extra=SAYS_SOMETHING)]
IdOrStart = Annotated[
    str,
    AfterValidator(check_id_start),
    Field(json_schema_extra={"pattern": ID_OR_START.pattern.replace("\\Z", "$")}),
]
Time = Annotated[
    str,
    Field(max_length=TIME_CHARS_MAX, json_schema_extra={"format": "date-time"}),
    AfterValidator(check_time),
]


def refuse_many_strangers(model: type[BaseModel], given: Any) -> Any:
    """Return the arguments of a model, unless too many of them are unknown.

    Raises:
        PydanticCustomError: many keys are unknown. The model itself would describe each of them,
            for seconds, and a body can hold hundreds of thousands.
    """
    known = model.model_fields
    if not isinstance(given, Mapping) or len(given) <= len(known) + STRANGERS_MAX:
        return given
    strange = islice((key for key in given if key not in known), STRANGERS_MAX)
    raise PydanticCustomError(
        "many_strangers",
        "there are no such arguments: {shown}, and {more} more; known are {known}",
        {
            "shown": ", ".join(f"{key!s:.40}" for key in strange),
            "more": len(given) - sum(name in given for name in known) - STRANGERS_MAX,
            "known": ", ".join(known),
        },
    )


_ALTERNATIVE = re.compile(r"constrained-\w+|str|int|float|bool|.*[\[(].*")
"""The name that Pydantic gives to one of several types of a value; no argument has such a name."""


def problems_in(error: ValidationError) -> list[tuple[str, ErrorDetails]]:
    """Return what is wrong with arguments, each with its place.

    Where a value may have several types, it is wrong for each of them. What only says that the
    value is no list, or no text, is left out if another error is about the value itself.
    """
    by_place: dict[str, list[ErrorDetails]] = {}
    for one in error.errors(include_url=False, include_context=False):
        parts = (str(part) for part in one["loc"])
        place = ".".join(part for part in parts if not _ALTERNATIVE.fullmatch(part))
        by_place.setdefault(place, []).append(one)
    found: list[tuple[str, ErrorDetails]] = []
    for place, errors in by_place.items():
        told = [one for one in errors if not one["type"].endswith("_type")]
        deeper = any(other.startswith(f"{place}.") for other in by_place)
        kept = told or ([] if deeper else errors)
        texts = dict.fromkeys(one["msg"] for one in kept)
        found += [(place, kept[0] | {"msg": " or ".join(texts)})] if kept else []
    return found


guard: Any = model_validator(mode="before")(classmethod(refuse_many_strangers))  # type: ignore[arg-type]


Said = Annotated[str, Field(max_length=TEXT_CHARS_MAX, json_schema_extra=SAYS_SOMETHING)]


class ChatMessage(BaseModel):
    """One message of a chat, in the format of the OpenAI and Anthropic APIs, too."""

    model_config = ConfigDict(extra="allow")

    role: str = Field("user", description="Who said it: user, assistant, or a person's name.")
    content: Said | list[dict[str, Any]] | None = Field(
        None, description="What was said: text, or parts with a type and a text."
    )
    at: Time | None = Field(
        None, description="When it was said, if known: ISO-8601 with a time zone."
    )


class SentDocument(BaseModel):
    """A document in a request; a path is not accepted, because it would be on the server."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str = Field(
        max_length=DOCUMENT_CHARS_MAX, description="All of it.", json_schema_extra=SAYS_SOMETHING
    )
    name: str | None = Field(
        None, description="Which document it is; without a name, the first heading says so."
    )
    media_type: Literal["text/markdown", "text/plain", "text/html"] | None = Field(
        None, description="What the text is; by default what the name ends with, or Markdown."
    )


def _text_or_messages(given: Any) -> Any:
    if given is not None and not isinstance(given, str | list):
        raise PydanticCustomError("text_or_messages", "give a text or a list of messages")
    return given


def _line_or_object(given: Any) -> Any:
    if not isinstance(given, str | dict):
        raise PydanticCustomError("line_or_object", "give a line of steps or a JSON object")
    return given


def _whole(given: Any) -> Any:
    # JSON has one kind of number: 10.0 is an integer.
    return int(given) if isinstance(given, float) and given.is_integer() else given


def arguments_model(
    name: str, parameters: Sequence[Parameter], *, base: type[BaseModel], for_model: bool = False
) -> type[BaseModel]:
    """Return a model of arguments; `base` has the Pydantic settings.

    `for_model` keeps the schema simple for a language model: single values instead of lists, and
    the defaults of MCP.
    """
    fields: dict[str, Any] = {one.name: _field(one, for_model) for one in parameters}
    return create_model(name, __base__=base, __validators__={"guard": guard}, **fields)


def _field(parameter: Parameter, for_model: bool) -> tuple[Any, Any]:
    hint = _hint(parameter, for_model)
    help: str | None = (for_model and parameter.tool_help) or parameter.help
    if not (help or "").strip():
        help = None
    if parameter.required:
        return hint, Field(description=help)
    default = parameter.default
    if for_model and parameter.tool_default is not None:
        default = parameter.tool_default
    # A program leaves out what it does not need; a model may also send null.
    optional = hint | None if default is None else hint
    if not for_model:
        optional = Annotated[hint, BeforeValidator(_not_null)]
    elif parameter.type in EMPTY_IS_NONE:
        optional = Annotated[optional, BeforeValidator(_none_if_empty)]
    return optional, Field(default, description=help)


def _none_if_empty(given: Any) -> Any:
    # Models send empty texts for parameters that they do not use.
    return None if given in ("", {}, []) else given


def _as_text(given: Any) -> Any:
    # Models send a number of seconds as a number.
    return str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given


def _as_list(given: Any) -> Any:
    # Models send a single value as it is.
    return [given] if isinstance(given, str) else given


def _not_null(given: Any) -> Any:
    if given is None:
        raise PydanticCustomError("null", "null says nothing; leave it out")
    return given


def _chat(most: int | None) -> Any:
    limits = Field(max_length=most, fail_fast=True, json_schema_extra={"minItems": 1})
    return Annotated[list[ChatMessage], limits]


def _hint(one: Parameter, for_model: bool) -> Any:
    """Return the type of a parameter, with its limits."""
    # In MCP, Memory checks texts and scopes, because its messages explain more.
    size = Field(max_length=one.most, json_schema_extra={} if for_model else SAYS_SOMETHING)
    words = Annotated[str, size]
    text = words if for_model else Annotated[words, SPEAKS]
    largest = None if for_model else NUMBER_MAX
    match one.type:
        case "input":
            if for_model:
                return text
            # One sentence; a union of types would give one error for each type.
            either = words | _chat(MESSAGES_MAX)
            return Annotated[either, BeforeValidator(_text_or_messages), SPEAKS]
        case "text":
            return text
        case "duration":
            if for_model:
                return Annotated[text, BeforeValidator(_as_text)]
            return text | Annotated[float, Field(gt=0)]
        case "content":
            told: Any = {} if for_model else {"pattern": r"^[^\u0000]*$"}
            least = None if for_model else one.least
            size = Field(min_length=least, max_length=one.most, json_schema_extra=told)
            return Annotated[str, size] if for_model else Annotated[str, size, LETTERS]
        case "id":
            return str if for_model else IdOrStart
        case "time":
            return Time
        case "whole":
            limits = Field(ge=one.least, le=(largest if one.most is None else one.most))
            return Annotated[int, limits, BeforeValidator(_whole)]
        case "share":
            return Annotated[float, Field(ge=0, le=1)]
        case "flag":
            return bool
        case "choice":
            return Literal[one.choices]
        case "object":
            return dict[str, Any]
        case "messages":
            return _chat(one.most)
        case "document":
            return dict[str, Any] if for_model else SentDocument
        case "confirm":
            return bool | str
        case "names":
            least = 1 if one.least is None else one.least or None
            sizes = Field(min_length=least, max_length=one.most, fail_fast=True)
            listed = Annotated[list[Word], sizes, SPEAKS]
            return Annotated[listed, BeforeValidator(_as_list)] if for_model else listed
        case "texts":
            several = Annotated[list[Word], Field(max_length=one.most, fail_fast=True)]
            return str if for_model else Annotated[Word | several, SPEAKS]
        case "query":
            return Annotated[text | dict[str, Any], BeforeValidator(_line_or_object)]
        case "numbers":
            number = Annotated[int, Field(ge=one.least, le=largest), BeforeValidator(_whole)]
            if for_model:
                return number
            return number | Annotated[list[number], Field(min_length=1, max_length=one.most)]
        case "scope":
            extra: Any = {"pattern": r"^[^\s\u0000-\u001f]([^\u0000-\u001f]*[^\s\u0000-\u001f])?$"}
            sizes = Field(min_length=1, max_length=SCOPE_CHARS_MAX, json_schema_extra=extra)
            value = Annotated[str, sizes]
            values = Annotated[
                list[value], Field(min_length=1, max_length=one.most, fail_fast=True)
            ]
            return str if for_model else Annotated[value | values, AfterValidator(check_scope)]


def result_class(call: Call) -> type:
    """Return the class of a call's result."""
    found: type = getattr(worlddb, call.result)
    return found


@cache
def result_model(value_class: type) -> type[BaseModel]:
    """Return a model of the `to_dict` of a class."""
    hints = get_type_hints(value_class)
    # Every field is required: `to_dict` writes those with a default, too.
    made: dict[str, Any] = {one.name: (_json(hints[one.name]), ...) for one in fields(value_class)}
    made |= {name: (kind, ...) for name, kind in getattr(value_class, "ALSO_TOLD", ())}
    return create_model(
        value_class.__name__,
        __config__=ConfigDict(extra="forbid"),
        __doc__=getdoc(value_class),
        **made,
    )


def _json(hint: Any) -> Any:
    """Return the JSON type of a field."""
    if hint is Id:
        return HexId
    if hint is datetime:
        return AwareDatetime
    if isinstance(hint, type) and is_dataclass(hint):
        return result_model(hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple:
        return list[_json(inner[0])]  # type: ignore[misc]
    if origin is Mapping:
        return dict[str, _json(inner[1])]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(None if one is NoneType else _json(one) for one in inner)]  # noqa: UP007
    return hint
