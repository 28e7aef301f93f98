"""Memory commands, generated from the declared calls: their options, their run, their output.

A call with a command name and no file in `commands/` gets the command of `call_command`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import SCOPE_KINDS, Call, Parameter, zoned
from worlddb.faces.cli.command_options import (
    EMBEDDER,
    EXTRACTOR,
    FOUND,
    YES,
    Command,
    Option,
    confirmed,
    option,
    wants_json,
)
from worlddb.faces.cli.terminal import one_line

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory

DEFAULT_USER = "default"
SCOPES_HINTED = 5  # As many as fit on a line.
METAVARS = {"time": "TIME", "whole": "N", "object": "JSON", "messages": "FILE", "scope": "ID"}
METAVARS |= {"share": "P", "document": "PATH"}
SEVERAL = ("names", "numbers")  # Types that take several arguments where they are positional.
REPEATED = ("scope", "names", "texts")  # Types whose options may be given several times.


def call_command(call: Call) -> Command:
    """Return the command of a call that has no file in `commands/`."""
    names = [_shown(one) for one in call.parameters if one.positional]
    text = call.help_with(lambda other: f"'worlddb {other.command}'")
    examples = "".join(f"\n  worlddb {line}" for line in call.examples)
    return Command(
        " ".join([call.command, *names]),
        f"{call.summary}.\n\n{text}" + (f"\n\nExamples:{examples}" if examples else ""),
        call_options(call),
        partial(run_call, call),
    )


def call_options(call: Call) -> list[Option]:
    """Return an option or argument for each parameter of a call, and those its effect asks for."""
    found = [made for one in call.parameters if one.in_command for made in _options(one)]
    if call.effect == "search":
        found.append(EMBEDDER)
    elif call.effect == "add":
        found.append(EXTRACTOR)
    return [*found, YES] if call.question else found


def _options(one: Parameter) -> Iterator[Option]:
    if one.positional:
        nargs = "+" if one.type in SEVERAL else None if one.required else "?"
        more: dict[str, Any] = {"choices": one.choices} if one.type == "choice" else {}
        if one.type in ("whole", "numbers"):
            more["type"] = whole_number(one.least, one.most if one.type == "whole" else None)
        yield option(one.name, one.name.upper(), _help(one), nargs=nargs, **more)
        return
    flags = one.flags or (option_of(one),)
    settings: dict[str, Any] = {"dest": destination(one), "help": _help(one)}
    if one.type == "flag":
        settings["action"] = "store_true"
    elif one.type == "choice":
        settings["choices"] = one.choices
    else:
        settings["metavar"] = METAVARS.get(one.type, flags[-1].rpartition("-")[2].upper())
    if one.type in REPEATED:
        settings["action"] = "append"
    if one.type == "whole":
        settings["type"] = whole_number(one.least, one.most)
        settings["default"] = one.default
    elif one.type == "share":
        settings["type"] = share
    yield Option(flags, settings)
    for name in one.hidden_flags:
        yield Option((name,), settings | {"help": argparse.SUPPRESS})


def _shown(one: Parameter) -> str:
    """Return a positional parameter as the usage line shows it."""
    return f"{one.name.upper()}..." if one.type in SEVERAL else one.name.upper()


def destination(one: Parameter) -> str:
    """Return the attribute of a parsed parameter. `user_id` itself is a setting of the server."""
    return f"of_{one.name.removesuffix('_id')}" if one.type == "scope" else one.name


def option_of(one: Parameter) -> str:
    """Return the option by which a parameter is given."""
    return one.flags[-1] if one.flags else f"--{one.name.replace('_', '-')}"


def whole_number(least: int | None, most: int | None) -> Callable[[str], int]:
    """Return what reads a whole number in a range; for use as an argument's `type`."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        low, high = (0 if least is None else least), most
        if number is None or number < low or (high is not None and number > high):
            wanted = f"of {low} or more" if high is None else f"from {low} to {high:,}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {wanted}")
        return number

    return read


def share(text: str) -> float:
    """Return a number from 0 to 1; for use as an argument's `type`."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return number


def call_arguments(
    call: Call, args: argparse.Namespace, *, without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the arguments that were given, as the call of Memory takes them."""
    found: dict[str, Any] = {}
    for one in call.parameters:
        value = getattr(args, destination(one), None)
        if one.in_command and one.name not in without and value is not None:
            found[one.name] = _value(one, value)
    return found


def scope_ids(args: argparse.Namespace) -> dict[str, list[str]]:
    """Return the scopes that were named, as the calls of Memory take them."""
    named = {kind: getattr(args, f"of_{kind}", None) for kind in SCOPE_KINDS}
    return {f"{kind}_id": values for kind, values in named.items() if values}


def _value(one: Parameter, given: Any) -> Any:
    from worlddb.faces.cli.command_files import given_mapping, given_messages, given_text

    where = one.name.upper() if one.positional else option_of(one)
    value = given
    if one.reads_stdin:
        value = given_messages(given) if one.type == "messages" else given_text(given)
    elif one.type == "document":
        from worlddb.ingest.document_text import read_document

        value = read_document(given)
    elif one.type == "object" or (one.type == "query" and given.lstrip().startswith("{")):
        value = given_mapping(given, where)
    elif one.type == "time":
        from worlddb.model.inputs import to_micros

        value = zoned(given)
        to_micros(value, where)
    if one.most is not None and not isinstance(value, int | float) and len(value) > one.most:
        things = "characters" if isinstance(value, str) else "values"
        raise InvalidInputError(f"{where}: has {len(value):,} {things}; the limit is {one.most:,}")
    return value


def _help(one: Parameter) -> str:
    text = one.command_help or _lower(one.help).removesuffix(".")
    if one.reads_stdin:
        text += "; '-' reads stdin"
    if one.type == "whole" and one.default is not None:
        text += f" (default: {one.default})"
    return text.replace("%", "%%")


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def run_call(call: Call, args: argparse.Namespace) -> int:
    """Run a call on the store that the command line names, and print its result."""
    from worlddb.faces.cli.result_printer import print_result

    arguments = call_arguments(call, args)
    with open_for(call, args) as memory:
        if call.question:
            scopes = ", ".join(f"{key}={value}" for key, value in scope_ids(args).items())
            if not confirmed(args, call.question.format(scope=scopes).partition("?")[0]):
                return FOUND
            arguments["confirm"] = True
        result = getattr(memory, call.name)(**arguments)
        is_empty = call.reads and call.takes_scopes and not result
        empty = nothing_found(memory, args) if is_empty else "nothing found"
    print_result(result, as_json=wants_json(args), empty=empty)
    return 0


def open_for(call: Call, args: argparse.Namespace) -> Memory:
    """Open the store for a call: with the embedder and the extractor only where it needs them."""
    from worlddb.faces.cli.command_files import open_memories

    adds = call.effect == "add"
    is_new = adds and all(one.type != "id" for one in call.parameters)
    return open_memories(args, create=is_new, asks=call.effect == "search", reads=adds)


def nothing_found(memory: Memory, args: argparse.Namespace) -> str:
    """Return the message for an empty result; if no scope was named, with scopes to try."""
    if scope_ids(args) or getattr(args, "cursor", None) or not memory.db.log(after=0, limit=1):
        return "nothing found"
    import shlex

    from worlddb.faces.face_settings import settings_from

    user = settings_from(args).user_id or DEFAULT_USER
    scopes = memory.list_scopes(limit=SCOPES_HINTED + 2)
    others = [one for one in scopes if one.name != f"user:{user}"]
    flags = [f"--{one.kind}-id {shlex.quote(one.value)}" for one in others][:SCOPES_HINTED]
    more = ", … (worlddb scopes)" if len(others) > SCOPES_HINTED else ""
    parts = [f"nothing found for user:{user}"]
    if flags:
        parts.append(f"there are others: {', '.join(flags)}{more}")
    if "everyone" in args:
        parts.append("--everyone searches the whole store")
    elif not flags:
        parts.append("'worlddb children' lists nodes that are in no scope")
    return one_line("; ".join(parts))
