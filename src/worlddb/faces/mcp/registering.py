"""Registering: a function becomes a tool that takes what its schema says and nothing else.

The SDK alone would drop unknown arguments, and read a text such as "[1]" as JSON wherever an
argument may also be left out. A memory must be what was said: both are refused here.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, cast, get_args, get_origin

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.types import ToolAnnotations
from pydantic import ConfigDict, ValidationError

from worlddb.errors import WorldDBError

INPUT_SHOWN_CHARS = 80


class ExactArguments(FuncMetadata):
    """Arguments that are read as they are, but for objects and lists that come as JSON text."""

    def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments, with JSON text read where only an object or a list can be meant."""
        return {name: self._read(name, value) for name, value in data.items()}

    def _read(self, name: str, value: Any) -> Any:
        field = self.arg_model.model_fields.get(name)
        # Some clients send objects and lists as JSON text.
        if field is None or not isinstance(value, str) or not _is_structure(field.annotation):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value


class MemoryTool(Tool):
    """A tool whose errors say what to do, and whose bugs stay on the server."""

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
                raise ToolError(_told(cause, self.parameters)) from cause
            if isinstance(cause, WorldDBError):
                raise ToolError(str(cause)) from cause
            if isinstance(cause, ToolError) and not isinstance(error, UnexpectedToolError):
                raise ToolError(str(cause)) from cause
            raise


def tool_of(
    function: Callable[..., Any], title: str, annotations: ToolAnnotations, *, name: str = ""
) -> MemoryTool:
    """Return a tool of a function: its name, its docstring, and its annotated arguments."""
    tool = MemoryTool.from_function(
        function,
        name=name or function.__name__,
        title=title,
        description=inspect.getdoc(function),
        annotations=annotations,
        structured_output=True,
    )
    assert isinstance(tool, MemoryTool)
    loose = tool.fn_metadata
    exact = cast(
        type[ArgModelBase],
        type(
            loose.arg_model.__name__,
            (loose.arg_model,),
            {"model_config": ConfigDict(extra="forbid"), "__module__": __name__},
        ),
    )
    tool.fn_metadata = ExactArguments(
        arg_model=exact,
        output_schema=_untitled(loose.output_schema),
        output_model=loose.output_model,
        wrap_output=loose.wrap_output,
    )
    tool.parameters = _untitled(exact.model_json_schema(by_alias=True))
    return tool


def _untitled(schema: Any) -> Any:
    """Return a schema without its titles: they only repeat names, and a model pays for each."""
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # An argument may be called title, too: that is a schema, and no text.
    return {
        key: _untitled(value)
        for key, value in schema.items()
        if key != "title" or not isinstance(value, str)
    }


def _is_structure(annotation: Any) -> bool:
    """Return whether an argument is an object or a list, which all of ours may be left out."""
    return any(get_origin(one) in (dict, list) for one in get_args(annotation))


def _told(error: ValidationError, schema: dict[str, Any]) -> str:
    """Return what is wrong with the arguments, in a line each."""
    lines = []
    for one in error.errors(include_url=False, include_context=False):
        where = ".".join(str(part) for part in one["loc"]) or "arguments"
        if one["type"] == "extra_forbidden":
            known = ", ".join(schema.get("properties", {}))
            lines.append(f"{where}: there is no such argument; known are {known}")
        elif one["type"] == "missing":
            lines.append(f"{where}: is missing; give it")
        elif one["type"] == "value_error":
            lines.append(f"{where}: {one['msg'].removeprefix('Value error, ')}")
        else:
            given = f"{one['input']!r:.{INPUT_SHOWN_CHARS}}"
            lines.append(f"{where}: {one['msg'][:1].lower()}{one['msg'][1:]}, not {given}")
    return "\n".join(lines)
