"""Memory tools: each declared call as an MCP tool that accepts exactly what its schema says.

The SDK alone would drop unknown arguments, and read a text such as "[1]" as JSON where an argument
is optional. A memory must be stored as it was sent, so both are refused here.

Before a whole scope ends or is exported, a person is asked, if the client can ask; then `confirm`
has no effect. Otherwise the model has to repeat the name of the scope, or say `true`. This prevents
accidents; it does not replace authorization.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import anyio.to_thread
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.resolve import build_resolver_plans, find_resolved_parameters
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.types import CallToolResult, InputRequiredResult, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from worlddb.errors import WorldDBError
from worlddb.faces.call_models import ChatMessage, arguments_model, problems_in
from worlddb.faces.call_parts import Call, Effect, Parameter
from worlddb.faces.calls import CALLS
from worlddb.faces.mcp.tool_answers import (
    Answer,
    ContextAnswer,
    add_texts,
    answer_class,
    answer_of,
    compact_json,
    fit,
    fitted_context,
    memory_answer,
    shortened,
    without_details,
)
from worlddb.model.text_safety import visible, visible_json

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory


class Agreement(BaseModel):
    """The form that a person fills in to confirm a call."""

    agree: bool = Field(description="Yes, do it")


class Unasked(BaseModel):
    """Nobody was asked: the call names no scope, or the client cannot ask."""


AskedPerson = ElicitationResult[Agreement | Unasked]


def confirmed_by(call: Call) -> Callable[..., None]:
    """Return a function whose parameter `asked` the SDK fills by asking the call's question."""

    async def ask(
        ctx: Context[Any, Any],
        user_id: str | None,
        agent_id: str | None,
        app_id: str | None,
        run_id: str | None,
    ) -> Unasked | Elicit[Agreement]:
        scopes = _named(user=user_id, agent=agent_id, app=app_id, run=run_id)
        wrong_scope = not scopes or (call.one_scope and len(scopes) != 1)
        if wrong_scope or not can_ask(ctx):
            return Unasked()
        return Elicit(call.question.format(scope=" and ".join(scopes)), Agreement)

    def consumer(asked: Any) -> None: ...

    consumer.__annotations__["asked"] = Annotated[AskedPerson, Resolve(ask)]
    return consumer


def can_ask(ctx: Context[Any, Any]) -> bool:
    """Return whether the client can ask its user by a form."""
    capabilities = ctx.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    # Older clients send an empty capability, which means forms.
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def confirmation(asked: Any, confirm: str | bool | None) -> str | bool:
    """Return the `confirm` for Memory: that of the model, else True if the person agreed.

    Memory checks the model's value even if the person agreed, because a wrong name is a mistake.

    Raises:
        ToolError: the person did not agree.
    """
    if isinstance(asked, AcceptedElicitation):
        if isinstance(asked.data, Unasked):
            return "" if confirm is None else confirm
        if asked.data.agree:
            return True if confirm is None else confirm
    raise ToolError("the user did not agree; nothing was done. Do not try again unasked")


def _named(**scopes: str | None) -> list[str]:
    return [f"{kind} {value!r}" for kind, value in scopes.items() if value is not None]


INPUT_SHOWN_CHARS = 80  # Enough to recognise a wrong argument.
PROBLEMS_SHOWN = 5  # More do not help to correct the call.
ANSWER_TO_QUESTION = "asked"
"""The argument by which a tool gets a person's answer; it is not part of the schema."""

TOLD = ("type", "required", "additionalProperties")
UNTOLD = (
    *("title", "format", "pattern", "minLength", "maxLength", "minItems", "maxItems"),
    *("minimum", "maximum"),
)
"""What a schema says for programs alone."""
EXPLAIN = Parameter(
    name="explain",
    type="flag",
    default=False,
    help="Also score, lanes, sources, metadata.",
)
"""Only tools have it: elsewhere hits always have their details."""

MemorySource: TypeAlias = "Callable[[], Memory]"
"""Gives the memory that a caller may use; asked anew for each call."""
T = TypeVar("T")


class CallRunner(Protocol):
    """Runs a blocking call off the event loop; `size` is the length of the texts in it."""

    async def __call__(self, run: Callable[[], T], effect: Effect, size: int) -> T:
        """Return the result of the call."""


async def run_on_any_thread(run: Callable[[], T], effect: Effect, size: int) -> T:
    """Run a blocking call on any thread, for a server that has one client."""
    return await anyio.to_thread.run_sync(run)


class ToolArguments(ArgModelBase):
    """The arguments of a tool. An argument that is not declared is refused."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class ExactArguments(FuncMetadata):
    """Arguments that are not changed, except that objects and lists may come as JSON text."""

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments, with JSON text parsed where only an object or a list is allowed."""
        fields = self.arg_model.model_fields
        found = {name: _parsed(fields[name], data[name]) for name in fields if name in data}
        return data | found

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:
        """Return a result as text and as data; in the text, hidden characters are escapes.

        The worker thread has converted it already.
        """
        if isinstance(result, CallToolResult):
            return result
        if isinstance(result, Answer):
            # An answer is of the declared class, so it needs no second check and is read out once.
            data = result.model_dump(mode="json", by_alias=True)
            text = TextContent(type="text", text=compact_json(data))
            return CallToolResult(content=[text], structured_content=data)
        converted = super().convert_result(result)
        if isinstance(converted, CallToolResult):
            for block in converted.content:
                if isinstance(block, TextContent):
                    block.text = visible_json(block.text)
        return converted


class MemoryTool(Tool):
    """A tool whose errors say what to do; bugs are logged on the server."""

    async def run(
        self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False
    ) -> Any:
        """Run the tool.

        Raises:
            ToolError: the arguments are wrong, or the memory refused; the text says what to do.
            UnexpectedToolError: a bug; its own text is for the log alone.
        """
        try:
            return await super().run(arguments, context, convert_result)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(visible(_message(cause, self.parameters))) from cause
            if isinstance(cause, WorldDBError):
                raise ToolError(visible(str(cause))) from cause
            if isinstance(cause, ToolError) and not isinstance(error, UnexpectedToolError):
                raise ToolError(visible(str(cause))) from cause
            raise


def memory_tools(
    memory_for: MemorySource, runner: CallRunner, *, tools: str = "memory"
) -> list[MemoryTool]:
    """Return tools for the declared calls of the memory set, and of the set `tools` or all."""
    wanted = [call for call in CALLS if call.tool]
    chosen = [call for call in wanted if call.toolset == "memory" or tools in (call.toolset, "all")]
    return [_memory_tool(call, memory_for, runner) for call in chosen]


def _memory_tool(call: Call, memory_for: MemorySource, runner: CallRunner) -> MemoryTool:
    def run(**given: Any) -> Answer:
        explains = given.pop(EXPLAIN.name, True)
        arguments = {name: _plain(value) for name, value in given.items() if value is not None}
        memory = memory_for()
        answer = answer_of(call, getattr(memory, call.name)(**arguments))
        if isinstance(answer, ContextAnswer):

            def ask(left: int) -> ContextAnswer:
                again = arguments | {"max_tokens": left, "counted": False}
                return cast("ContextAnswer", answer_of(call, memory.context(**again)))

            return fitted_context(answer, arguments["max_tokens"], ask)
        if not explains:
            without_details(answer)

        @cache
        def said(ident: str) -> tuple[str, str]:
            try:
                found = memory_answer(memory.read(ident))
            except WorldDBError:  # Derived, erased, or outside the caller's scopes.
                return "", ""
            return shortened(found.text)[0], found.origin

        add_texts(answer, said)
        fit(answer, arguments.get("max_tokens"), said)
        return answer

    def run_confirmed(**given: Any) -> Answer:
        asked = given.pop(ANSWER_TO_QUESTION)
        return run(**given | {"confirm": confirmation(asked, given["confirm"])})

    return tool_of(call, run_confirmed if call.question else run, answer_class(call), runner)


def _plain(value: Any) -> Any:
    """Return an argument as Memory takes it: messages as mappings."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value


def _length(value: Any) -> int:
    """Return the number of characters in an argument's texts."""
    if isinstance(value, list):
        return sum(map(_length, value))
    if isinstance(value, dict):
        return sum(map(_length, value.values()))
    text = value.content if isinstance(value, ChatMessage) else value
    return _length(text) if isinstance(text, list) else len(text) if isinstance(text, str) else 0


def tool_of(
    call: Call, function: Callable[..., Any], answer: type[Answer], runner: CallRunner
) -> MemoryTool:
    """Return a tool with the name, help and parameters of a call, which runs `function`."""
    shown = [one for one in call.parameters if one.in_tool]
    if call.name == "recall":
        shown.append(EXPLAIN)
    model = arguments_model(f"{call.tool}Arguments", shown, base=ToolArguments, for_model=True)
    metadata = ExactArguments(arg_model=cast(type[ArgModelBase], model), output_model=answer)
    # Titles only repeat names, and models do not read the schema of answers.
    metadata.output_schema = _without(metadata.output_schema, "title", "description")
    asks = find_resolved_parameters(confirmed_by(call)) if call.question else {}

    async def run(**given: Any) -> CallToolResult | InputRequiredResult:
        def work() -> CallToolResult | InputRequiredResult:
            # The answer is made on this thread, too: a long answer must not block other callers.
            return metadata.convert_result(function(**given))

        return await runner(work, call.effect, _length([*given.values()]))

    return MemoryTool(
        fn=run,
        name=call.tool,
        title=call.title,
        description=call.help_with(lambda other: other.tool or other.name),
        parameters=_brief(_without(model.model_json_schema(by_alias=True), "title")),
        fn_metadata=metadata,
        is_async=True,
        context_kwarg=None,
        resolved_params=dict(asks),
        resolver_plans=dict(build_resolver_plans(asks, {one.name for one in shown})),
        annotations=ToolAnnotations(
            read_only_hint=call.reads,
            destructive_hint=call.destructive,
            idempotent_hint=call.idempotent,
            open_world_hint=False,
        ),
    )


def _brief(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of arguments in a short form for models.

    `required` says which arguments are optional, so none is declared as nullable. Limits and the
    form of times are checked when a tool is called; the error explains them.
    """
    told = {}
    for name, held in schema["properties"].items():
        plain = {key: value for key, value in held.items() if key not in UNTOLD}
        kinds = [one for one in plain.pop("anyOf", ()) if one != {"type": "null"}]
        if len(kinds) == 1:
            plain = {key: value for key, value in kinds[0].items() if key not in UNTOLD} | plain
        elif kinds:
            # A list of types would be shorter, but not every client reads it.
            plain["anyOf"] = [{"type": one["type"]} for one in kinds]
        if plain.get("default", ...) in (None, False):
            del plain["default"]
        if plain.get("type") == "array":
            plain["items"] = {"type": plain["items"].get("type", "object")}
        if plain.get("type") == "object":
            plain = {key: plain[key] for key in ("type", "description") if key in plain}
        told[name] = plain
    kept: dict[str, Any] = {key: value for key, value in schema.items() if key in TOLD}
    return kept | {"properties": told}


def _without(schema: Any, *keywords: str) -> Any:
    """Return a schema without the texts under some keywords."""
    if isinstance(schema, list):
        return [_without(one, *keywords) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # A property may be called title, too: that is a schema, not a text.
    return {
        key: _without(value, *keywords)
        for key, value in schema.items()
        if key not in keywords or not isinstance(value, str)
    }


def _parsed(field: FieldInfo, value: Any) -> Any:
    """Return an argument; some clients send objects and lists as JSON text."""
    if not isinstance(value, str) or not _is_structure(field.annotation):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _is_structure(annotation: Any) -> bool:
    """Return whether an argument is an object or a list; all of ours are optional."""
    return any(
        get_origin(get_args(one)[0] if hasattr(one, "__metadata__") else one) in (dict, list)
        for one in get_args(annotation)
    )


def _message(error: ValidationError, schema: dict[str, Any]) -> str:
    """Return the errors of the arguments, one line each."""
    lines = []
    found = problems_in(error)
    for place, one in found[:PROBLEMS_SHOWN]:
        where = place or "arguments"
        if one["type"] == "extra_forbidden":
            known = ", ".join(schema.get("properties", {}))
            lines.append(f"{where}: there is no such argument; known are {known}")
        elif one["type"] == "missing":
            lines.append(f"{where}: is missing; give it")
        elif one["type"] in ("value_error", "many_strangers"):
            lines.append(f"{where}: {one['msg'].removeprefix('Value error, ')}")
        else:
            given = f"{one['input']!r:.{INPUT_SHOWN_CHARS}}"
            lines.append(f"{where}: {one['msg'][:1].lower()}{one['msg'][1:]}, not {given}")
    if len(found) > PROBLEMS_SHOWN:
        lines.append(f"and {len(found) - PROBLEMS_SHOWN} more")
    return "\n".join(lines)
