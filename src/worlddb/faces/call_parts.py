"""Call parts: the declaration of a call, and the parameters that several calls share."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

ParameterType = Literal[
    "input",  # a text; over REST and in Python also a list of messages
    "text",  # a text
    "content",  # a text that may be empty, such as a file; white space is kept
    "texts",  # one or several texts; in MCP one text
    "names",  # a list of texts
    "id",  # a memory's id in hex, or the start of it
    "time",  # ISO-8601 with a time zone
    "duration",  # a text such as 30d, or seconds
    "whole",  # a whole number from `least` to `most`
    "share",  # a number from 0 to 1
    "flag",  # true or false
    "choice",  # one of `choices`
    "object",  # a JSON object
    "messages",  # the messages of a chat
    "document",  # text, name and media type; in Python and on the command line also a path
    "scope",  # one or several values of a scope; in MCP one value
    "confirm",  # true, or the value of the scope again
    "query",  # a query: a line, or a JSON object
    "numbers",  # one or several whole numbers
]
Effect = Literal["read", "search", "add", "change", "end"]
"""What a call does: `search` reads by meaning and takes longer; `add` brings in text, `change`
does not; `end` ends memories for good."""
Toolset = Literal["memory", "graph", "files"]
"""Which tools an MCP server offers: `memory` always, the others with `--tools graph,files`."""


class Parameter(NamedTuple):
    """One parameter of a call: its name is the same in Python, REST and MCP.

    `least` and `most` limit a number, the characters of a text, or the items of a list. People
    (command line, OpenAPI) and models (MCP) read `help`; models read `tool_help` instead if it is
    set. `tool_default` is the default in MCP if it differs. With `in_tool` False, the MCP tool does
    not have the parameter.

    On the command line the parameter is the option `--name`, or the options in `flags`.
    `hidden_flags` and `--name` work too, but help does not show them. A `positional` parameter has
    no option, in Python neither. With `reads_stdin` the value '-' means stdin. With `in_command`
    False, the command handles the parameter by itself.
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


class Call(NamedTuple):
    """One call of Memory. `result` is the name of a class that the package `worlddb` exports.

    In `help`, `{amend}` and the like stand for other calls; each face inserts its own name of them.
    `question` is asked before the call runs, if the face can ask; such a call has a parameter
    `confirm`. Exactly one of the parameters `one_of` is required. `examples` are lines for the help
    of a generated command; the command prints `empty` if the result is empty.
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
    empty: str = "nothing found"

    @property
    def reads(self) -> bool:
        """Whether the call changes nothing."""
        return self.effect in ("read", "search")

    @property
    def destructive(self) -> bool:
        """Whether the call ends something for good."""
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


def flag(name: str, help: str, **more: Any) -> Parameter:
    """Return a parameter that is true or false; the default is false."""
    return Parameter(name, "flag", help, default=False, **more)


def needed(name: str, type: ParameterType, help: str, **more: Any) -> Parameter:
    """Return a required parameter, which is positional."""
    return Parameter(name, type, help, required=True, positional=True, **more)


# Parameters that several calls share.

# One set of limits for all faces. The engine has further ones, such as the bytes of a text.
TEXT_CHARS_MAX = 1 << 20  # The engine's limit in bytes.
MESSAGES_MAX = 10_000  # A long chat; the request must still fit into a body.
K_MAX = 1_000  # For more memories, use `list`.
PAGE_MAX = 1_000  # The limit of Memory.
NAMES_MAX = 100  # The limit of Memory.
TYPES_MAX = 100  # More types than any store has.
SOURCES_MAX = 1_000  # Prevents mistakes; nobody needs so many.
SCOPE_VALUES_MAX = 100  # The limit of Memory.
SCOPE_CHARS_MAX = 512  # The limit of Memory in bytes.
TAGS_MAX = 100  # The limit of Memory.
TTL_CHARS_MAX = 32  # A number and a unit.
TIME_CHARS_MAX = 64  # The longest ISO-8601 time has about 35.
CURSOR_CHARS_MAX = 200  # A cursor is an id of 64 digits.

SCOPE_KINDS = ("user", "agent", "app", "run")
EXTRACTORS = ("rules", "verbatim")
"""The extractors a caller may choose; a language model is chosen by whoever runs the server."""


NO_HELP = " "  # The name and the server's instructions are enough for a model.


def _scope(kind: str, help: str) -> Parameter:
    return Parameter(
        f"{kind}_id",
        "scope",
        help,
        most=SCOPE_VALUES_MAX,
        command_help=f"of this {kind}" + (" (may be repeated)" if kind == "user" else ""),
        tool_help=NO_HELP,
    )


SCOPES = (
    _scope(
        "user",
        "The user: the person that the memory belongs to. Leave it out for the default user.",
    ),
    _scope("agent", "Only for the memory of one agent: the agent's name."),
    _scope("app", "Only for the memory of one app: the app's name."),
    _scope("run", "Only for the memory of one run or conversation: its id."),
)
_ZONED = (
    "ISO-8601 with a time zone such as 2026-03-01T09:30:00Z, or a day such as 2026-03-01, which "
    "begins at midnight UTC. Default: the present time."
)
ID = needed(
    "id",
    "id",
    "The memory's id in hex, or its first 4 or more digits if no other id has them.",
    tool_help="As in an answer.",
)
AT = Parameter(
    "at", "time", f"When it was said or became true: {_ZONED}", tool_help="When it became true."
)
END_AT = Parameter(
    "at", "time", f"When it stopped being true: {_ZONED}", tool_help="When it ended."
)
AS_OF = Parameter(
    "as_of",
    "time",
    f"Ask for what was true at this time: {_ZONED}",
    tool_help="What was true at this day or time.",
    hidden_flags=("--valid",),
)
KNOWN_AT = Parameter(
    "known_at",
    "time",
    f"Ask for what this memory knew at this time: {_ZONED}",
    tool_help="What was known then.",
    hidden_flags=("--known",),
)
INCLUDE_RETIRED = flag(
    "include_retired",
    "Also return what has ended: retired, amended, or no longer true.",
    tool_help="Also what has ended.",
)
TYPES = Parameter(
    "types",
    "names",
    "Only memories of these types, such as Memory, Turn or Fact.",
    most=TYPES_MAX,
    in_tool=False,  # A model does not know the types in this store.
    flags=("--type",),
    command_help="only nodes of this type, such as Memory, Turn or Fact (may be repeated)",
)
CURSOR = Parameter(
    "cursor",
    "text",
    "The next_cursor of the page before; leave it out for the first page.",
    most=CURSOR_CHARS_MAX,
    tool_help="From next_cursor.",
)
SOURCE = Parameter(
    "source",
    "texts",
    "Where it comes from: a file, a link, 'chat of 3 May'. Stored as provenance.",
    most=SOURCES_MAX,
    tool_help=NO_HELP,
    command_help="where it comes from: a file, a link; kept as provenance (may be repeated)",
)
METADATA = Parameter(
    "metadata",
    "object",
    'Further JSON data to store with it, such as {"topic": "travel"}.',
    tool_help="Data to filter by.",
)
WHERE = Parameter(
    "where",
    "object",
    'Filter, such as {"project": "x", "priority": {"$gte": 2}}: metadata keys, tags, type, '
    "source, speaker, valid_from, valid_to, known_from; $eq $ne $in $nin $gt $gte $lt $lte $exists "
    "$contains $and $or $not.",
    tool_help='Filter: {"project": "x", "tags": {"$contains": "a"}, "n": {"$gte": 2}}.',
    command_help="a filter over metadata, tags, type, source and times",
)
COUNTED = Parameter(
    "counted",
    "flag",
    "Whether this read counts as a recall of the hits; false for a mere look.",
    default=True,
    in_tool=False,  # What a model finds has been recalled.
    in_command=False,
)
TAGS = Parameter(
    "tags",
    "names",
    "Words to filter by.",
    least=0,
    most=TAGS_MAX,
    flags=("--tag",),
    tool_help=NO_HELP,
    command_help="a word to filter by (may be repeated)",
)
EXPIRES_AT = Parameter(
    "expires_at",
    "time",
    "After this time it is neither listed nor recalled; as_of still finds it.",
    tool_help="Until when it stays.",
)
TTL = Parameter(
    "ttl",
    "duration",
    "How long it is valid, such as 30d or 12h, or in seconds; for something temporary.",
    most=TTL_CHARS_MAX,
    tool_help="Or how long: 30d, 12h.",
    command_help="how long it stays, such as 30d, 12h or 45m",
)
EXTRACTOR = Parameter(
    "extractor",
    "choice",
    "The extractor: rules or verbatim. Leave it out for the server's default.",
    choices=EXTRACTORS,
    in_tool=False,  # The server's settings choose the extractor, not the model.
    in_command=False,  # A setting there, which may also name a language model.
)
NAMES = Parameter(
    "names",
    "names",
    "Who or what the text is about.",
    least=0,
    most=NAMES_MAX,
    flags=("--name",),
    command_help="who or what the text is about (may be repeated)",
)
CONFIRM = Parameter(
    "confirm",
    "confirm",
    "Once the user has agreed: the value of the scope once more, such as the same text as "
    "user_id; or true. Leave it out where a person can be asked.",
    in_command=False,  # The command asks at the terminal, or takes --yes.
    tool_help="Once the user agreed: true.",
)

DRY_RUN = flag("dry_run", "Show what would be done, and write nothing.")


def limit(default: int, tool_default: int) -> Parameter:
    """Return the parameter for the size of a page; in MCP the default is smaller."""
    return Parameter(
        "limit",
        "whole",
        "The maximum number of results.",
        default=default,
        tool_default=tool_default,
        least=1,
        most=PAGE_MAX,
        tool_help=NO_HELP,
    )


ORIGIN = Parameter(
    "origin",
    "choice",
    "Who brought the text in; it may be less trusted than the caller's own origin, never more. A "
    "less trusted memory ends no more trusted one.",
    choices=("user", "assistant", "import", "model", "tool", "web"),
    tool_help="Who said it, if not you.",
    command_help="who brought the text in; by default you",
)
DOCUMENT = Parameter(
    "document",
    "document",
    "A document to remember instead of `text`: its text, its name and its media type. It is "
    "cut into passages; with the same name again, only changed passages are written.",
    tool_help="Or a document: text, name, media_type.",
    command_help="a Markdown, text, HTML, PDF or DOCX file, or a folder of them",
)
