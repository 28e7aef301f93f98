"""Call parts: what a call of `Memory` is declared with."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

ParameterType = Literal[
    "input",  # a text; over REST and in Python also a list of messages
    "text",  # a text
    "content",  # a text to the letter, such as a file: it may be empty
    "texts",  # a text or several; one text for a model
    "names",  # a list of texts
    "id",  # a memory's id in hex, or the start of it
    "time",  # ISO-8601 with a time zone
    "whole",  # a whole number from `least` to `most`
    "share",  # a number from 0 to 1
    "flag",  # true or false
    "choice",  # one of `choices`
    "object",  # a JSON object
    "messages",  # the messages of a chat
    "document",  # text, name and media type; in Python and on the command line also a path
    "scope",  # the value of a scope, or several; one value for a model
    "confirm",  # true, or the value of the scope once more
    "query",  # a query: a line, or a JSON object
    "numbers",  # a whole number or several
]
Effect = Literal["read", "search", "add", "change", "end"]
"""What a call does: `search` reads by meaning and takes longer; `add` brings in text, `change`
does not; `end` ends memories for good."""
Toolset = Literal["memory", "graph", "files"]
"""Which tools an MCP server offers: `memory` always, the others with `--tools graph,files`."""


class Parameter(NamedTuple):
    """One parameter of a call: its name is the same in Python, REST and MCP.

    `least` and `most` bound a number, or the characters of a text, or the items of a list. `help`
    is read by people (command line, OpenAPI) and by models (MCP), who may have a shorter one of
    their own (`tool_help`). `tool_default` is the default for a model where that differs.
    `in_tool` is False for what would only distract a model.

    On the command line the parameter is the option `--name` unless `flags` spells it otherwise;
    `hidden_flags` and `--name` still work but are not shown. A `positional` one stands without an
    option, in Python too. With `reads_stdin` the value '-' stands for stdin. `in_command` is False
    for what a command takes in its own way.
    """

    name: str
    type: ParameterType
    help: str
    required: bool = False
    default: Any = None
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    positional: bool = False
    in_tool: bool = True
    tool_default: Any = None
    in_command: bool = True
    flags: tuple[str, ...] = ()
    hidden_flags: tuple[str, ...] = ()
    command_help: str = ""
    tool_help: str = ""
    reads_stdin: bool = False


ORIGIN = Parameter(
    name="origin",
    type="choice",
    choices=("user", "assistant", "import", "model", "tool", "web"),
    help="Who brought the text in; it may be lower than the caller's own, never higher. What is "
    "less trusted ends nothing that is more trusted.",
    tool_help="Who said it, if not you.",
    command_help="who brought the text in; by default you",
)
DOCUMENT = Parameter(
    name="document",
    type="document",
    help="A document to remember instead of `text`: its text, its name and its media type. It is "
    "cut into passages; the same name again writes only what has changed.",
    tool_help="Or a document: text, name, media_type.",
    command_help="a Markdown, text, HTML, PDF or DOCX file, or a folder of them",
)


class Call(NamedTuple):
    """One call of Memory. `result` is the name of a class that the package `worlddb` exports.

    In `help`, `{amend}` and the like stand for other calls; each face puts its own name there.
    `question` is what a person is asked before the call runs, where the face can ask; such a call
    has a parameter `confirm`. `one_of` are parameters of which exactly one has to be given.
    `examples` are lines for the help of a command that is generated.
    """

    name: str
    title: str
    summary: str
    help: str
    parameters: tuple[Parameter, ...]
    result: str
    effect: Effect
    idempotent: bool = True
    question: str = ""
    one_scope: bool = False
    one_of: tuple[str, ...] = ()
    method: Literal["GET", "POST"] = "POST"
    path: str = ""
    tool: str = ""
    toolset: Toolset = "memory"
    command: str = ""
    examples: tuple[str, ...] = ()

    @property
    def reads(self) -> bool:
        """Whether the call changes nothing."""
        return self.effect in ("read", "search")

    @property
    def destructive(self) -> bool:
        """Whether the call ends something that will not come back."""
        return self.effect == "end"

    @property
    def takes_scopes(self) -> bool:
        """Whether the call takes `user_id` and the other scope ids."""
        return any(one.type == "scope" for one in self.parameters)

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of that name."""
        return next(one for one in self.parameters if one.name == name)

    def path_parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters that are part of the REST path."""
        return tuple(re.findall(r"{(\w+)}", self.path))

    def help_with(self, name_of: Callable[[Call], str]) -> str:
        """Return the help text, with other calls named as a face names them."""
        from worlddb.faces.calls import call_named

        return re.sub(r"{(\w+)}", lambda found: name_of(call_named(found[1])), self.help)
