"""Command options: what commands are declared with, and the commands of the declared calls.

`Command` and `Option` are the declaration; `option`, `flag`, `number` and others make the options
that commands share. A call of `faces/calls.py` with a command name and no file in `commands/` gets
the command of `call_command`: its options, its run and its output follow from the declaration.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from worlddb import errors
from worlddb.errors import InvalidInputError
from worlddb.faces.call_parts import SCOPE_KINDS, SCOPES, Call, Parameter
from worlddb.faces.cli.terminal import Cell, one_line, print_hint, print_json, print_table

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory
    from worlddb.model.records import AsOf


# Exit codes: one number per branch of the error tree, so that scripts can tell what happened.

OK = 0  # By convention.
FOUND = 1  # As of `grep` and `diff`: the command worked and found something.
BUG = 70  # EX_SOFTWARE of sysexits.h.
INTERRUPTED = 130  # 128 + SIGINT, as shells report it.
BROKEN_PIPE = 141  # 128 + SIGPIPE, as if the signal had ended us.

BY_ERROR: dict[type[Exception], int] = {
    errors.InvalidInputError: 2,
    errors.NotFoundError: 3,
    errors.ConflictError: 4,
    errors.RejectedError: 5,
    errors.FormatError: 6,
    errors.CorruptionError: 7,
    errors.StorageError: 8,
    OSError: 8,
    errors.ProviderError: 9,
    errors.StoreKeyError: 10,
    errors.WorldDBError: BUG,  # The root itself is never raised; each branch has its own number.
}

MEANINGS: dict[int, str] = {
    OK: "done; for `check` the store is sound, for `prove --verify` the proof holds",
    FOUND: "a check or a test failed, a proof does not verify, a question was denied",
    2: "the command line or a value in it is wrong",
    3: "no such node, edge or commit at that time",
    4: "another writer holds the store, or it has another history; try again or elsewhere",
    5: "an edge handler refused the write",
    6: "the file is not a WorldDB store, export or proof, or has a newer format",
    7: "stored bytes contradict each other",
    8: "the disk said no: missing, existing already, full, read-only, unreadable",
    9: "a model or an embedding endpoint failed",
    10: "the key of an encrypted store is missing or wrong",
    BUG: "a bug in worlddb; a traceback is on stderr",
    INTERRUPTED: "interrupted by Ctrl-C",
    BROKEN_PIPE: "the reader of our output went away (as with `head`); nothing is printed",
}


def exit_code(error: Exception) -> int:
    """Return the code of the closest class of `error` in the table."""
    for kind in type(error).__mro__:
        if kind in BY_ERROR:
            return BY_ERROR[kind]
    return BUG


# The parser of every command, the options that commands share, and the question before a risk.

Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"
Run: TypeAlias = Callable[[argparse.Namespace], int]
HELP_COLUMNS_MAX = 100  # Wider lines are hard to read.
COUNT_MAX = 2**63 - 1  # The largest number that a store can hold.
AGREED = {"y", "yes"}


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions; no line is wider than a page."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)
        self._width = min(self._width, HELP_COLUMNS_MAX)


_UNKNOWN_COMMAND = r"argument COMMAND: invalid choice: '(.*)' \(choose from (.*)\)"


FILE_METAVARS = {"PATH", "FILE", "TARGET"}  # Of arguments that shells complete as file names.
FILE_COMPLETION: dict[str, Any] = {}
"""How each shell completes a file name; `worlddb completion` fills it in."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are like all others: one line, exit code 2."""

    def __init__(self, **settings: Any) -> None:
        # Abbreviated options would change their meaning whenever an option is added.
        defaults: dict[str, Any] = {"formatter_class": _Layout, "allow_abbrev": False}
        super().__init__(**(defaults | settings))

    def add_argument(self, *names: Any, **settings: Any) -> argparse.Action:
        """Add an argument; one that takes a file name says so to `shtab`."""
        action = super().add_argument(*names, **settings)
        if action.metavar in FILE_METAVARS:
            setattr(action, "complete", FILE_COMPLETION)  # noqa: B010 - argparse has no such field
        return action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; words behind an option belong to the list of words before it."""
        ends = args.index("--") if args and "--" in args else None
        names = [word.partition("=")[0] for word in (args or ())[:ends]]
        unknown = {one for one in names if one.startswith("--")} - {*self._option_string_actions}
        if unknown and not self.commands:  # Its value would be taken for another argument.
            self.refuse(sorted(unknown, key=names.index))
        found, strange = super().parse_known_args(args, namespace)
        lists = [one for one in self._actions if not one.option_strings and one.nargs == "*"]
        if lists and not any(word.startswith("-") for word in strange):
            setattr(found, lists[0].dest, [*getattr(found, lists[0].dest), *strange])
            strange = []
        return found, strange

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments.

        Raises:
            InvalidInputError: always.
        """
        unknown = re.fullmatch(_UNKNOWN_COMMAND, message)
        if unknown is not None:
            near = get_close_matches(unknown[1], re.findall(r"[\w-]+", unknown[2]), n=1)
            hint = f"; the nearest is '{near[0]}'" if near else ""
            if homes := self._commands_that_take(unknown[1]):
                hint = f"; it is an action of another: {', '.join(homes)}"
            message = f"there is no command '{unknown[1]:.40}'{hint}"
        raise InvalidInputError(f"{message}; see '{self.prog} --help'")

    def _commands_that_take(self, word: str) -> list[str]:
        """Return the commands, each with its name, that take a word as their action."""
        return [
            f"'{self.prog} {name} {word}'"
            for name, parser in self.commands.items()
            if word in parser.words
        ]

    @property
    def words(self) -> set[str]:
        """The words that the arguments without an option's name may be."""
        plain = (one for one in self._actions if not one.option_strings)
        return {str(word) for one in plain for word in one.choices or ()}

    @property
    def commands(self) -> dict[str, Parser]:
        """The parsers of the commands below this one."""
        found = (one.choices for one in self._actions if isinstance(one.choices, dict))
        return next(found, {})

    def refuse(self, strange: Sequence[str]) -> NoReturn:
        """Refuse arguments that this command does not take, and name the nearest option.

        Raises:
            InvalidInputError: always.
        """
        near = get_close_matches(strange[0].partition("=")[0], self._option_string_actions, n=1)
        hint = f"; the nearest is '{near[0]}'" if near else ""
        self.error(f"unrecognized arguments: {' '.join(strange):.200}{hint}")


def count(text: str) -> int:
    """Return a whole number of 0 or more; for use as an argument's `type`."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= COUNT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return number


class Option(NamedTuple):
    """One option or argument of a command, as `argparse` takes it."""

    flags: tuple[str, ...]
    settings: dict[str, Any]

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Add the option to a parser."""
        parser.add_argument(*self.flags, **self.settings)


class Command(NamedTuple):
    """One command: what it is called and takes, what `--help` says, and what it runs.

    `usage` is the name and the arguments as the usage line shows them: argparse would wrap and
    order that line differently in each version of Python.
    """

    usage: str
    help: str
    options: Sequence[Option]
    run: Run

    def add_to(self, subparsers: Subparsers) -> None:
        """Add the command, with the options that all of them have."""
        # Python 3.13 removes the indentation of docstrings, older versions do not.
        lines = [line.removeprefix("    ") for line in self.help.splitlines()]
        summary, _, rest = "\n".join(lines).partition("\n\n")
        description, _, examples = rest.partition("\n\nRaises:")[0].partition("\n\nExamples:\n")
        name, _, arguments = self.usage.partition(" ")
        parser = subparsers.add_parser(
            name,
            usage=f"worlddb {name} [options] {arguments}".rstrip(),
            help=summary[:1].lower() + summary[1:].removesuffix("."),
            description=description.rstrip(),
            epilog=f"examples:\n{examples.rstrip()}" if examples else "",
        )
        add_shared_options(parser)
        for one in self.options:
            one.add_to(parser)
        parser.set_defaults(run=self.run)


DECLARED: dict[str, Command] = {}  # The commands of the files that are loaded.


def command(usage: str, *options: Option) -> Callable[[Run], Run]:
    """Declare a command; the docstring of the function that runs it is its help text."""

    def declare(run: Run) -> Run:
        DECLARED[usage.split()[0]] = Command(usage, run.__doc__ or "", options, run)
        return run

    return declare


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that may stand before or after the command's name.

    They have no default: a subcommand's default would overwrite what was given before its name.
    """
    add = partial(parser.add_argument, default=argparse.SUPPRESS)
    add("--db", metavar="PATH", help="the store (default: $WORLDDB_PATH, then your memory.db)")
    add("--key-file", metavar="PATH", help="the key of an encrypted store, if not in the settings")
    add("--branch", metavar="NAME", help="a branch of the store, see 'worlddb branch'")
    add("--json", action="store_true", help="print JSON, with whole ids and times")


def option(name: str, metavar: str | None, help: str, **settings: Any) -> Option:
    """Return an option or argument that takes a value."""
    named = {} if metavar is None else {"metavar": metavar}
    return Option((name,), {**named, "help": help, **settings})


def flag(name: str, help: str, **settings: Any) -> Option:
    """Return an option without a value."""
    return Option((name,), {"action": "store_true", "help": help, **settings})


def number(name: str, metavar: str, help: str, **settings: Any) -> Option:
    """Return an option that takes a whole number."""
    return option(name, metavar, help, type=count, **settings)


def action_of(*actions: str, help: str | None = "what to do (default: list)") -> Option:
    """Return the argument that chooses one of several actions; the first is the default."""
    shown: dict[str, Any] = {"metavar": " | ".join(actions), "nargs": "?", "help": help}
    return Option(("action",), shown | {"choices": actions, "default": actions[0]})


AS_OF = (
    option("--as-of", "TIME", "what was true at this time (ISO-8601)"),
    option("--known-at", "TIME", "as far as was known at this time"),
    # Their old names, which scripts may still use.
    option("--valid", "TIME", argparse.SUPPRESS, dest="as_of"),
    option("--known", "TIME", argparse.SUPPRESS, dest="known_at"),
)
EMBEDDER = option(
    "--embedder", "NAME", "see 'worlddb models' (default: $WORLDDB_EMBEDDER, then the store's own)"
)
EXTRACTOR = option("--extractor", "NAME", "what reads the text: rules (default), verbatim or llm")
YES = flag("--yes", "do not ask for confirmation")
TOOLS = option(
    "--tools",
    "SET",
    "the tools to offer: memory (the nine), or these and those of graph, files, all",
)
CONSOLIDATE_EVERY = option(
    "--consolidate-every-s", "SECONDS", "consolidate in the background this often (default: never)"
)


def as_of(args: argparse.Namespace) -> AsOf:
    """Return the two times that `--as-of` and `--known-at` give."""
    from worlddb.model.inputs import to_micros
    from worlddb.model.records import AsOf

    for flag, time in (("--as-of", args.as_of), ("--known-at", args.known_at)):
        if time is not None:
            to_micros(time, flag)
    return AsOf(valid=args.as_of, known=args.known_at)


def wants_json(args: argparse.Namespace) -> bool:
    """Return whether `--json` was given, before or after the command's name."""
    return getattr(args, "json", False)


def report(args: argparse.Namespace, data: Any, text: str) -> int:
    """Print what a command did, as JSON data if `--json` was given, else as text; return 0."""
    if wants_json(args):
        print_json(data)
    else:
        print(text)
    return 0


def report_rows(
    args: argparse.Namespace,
    data: Any,
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    empty: str = "",
) -> int:
    """Print `data` as JSON if `--json` was given, else rows as a table; return 0.

    Without rows, `empty` is printed in place of the table, if it is given.
    """
    if wants_json(args):
        print_json(data)
    elif rows or not empty:
        print_table(headers, rows)
    else:
        print_hint(empty)
    return 0


def confirmed(args: argparse.Namespace, what: str) -> bool:
    """Return whether `what` may be done: `--yes` was given, or a person at the terminal agrees.

    Raises:
        InvalidInputError: there is no terminal to ask at.
    """
    if args.yes:
        return True
    agrees = agreed_at_terminal(what)
    if agrees is None:
        raise InvalidInputError(f"{what}: there is no terminal to ask at; give --yes to confirm")
    if not agrees:
        print("nothing was changed", file=sys.stderr)
    return agrees


def agreed_at_terminal(what: str) -> bool | None:
    """Ask a yes-or-no question; return None if there is no terminal to ask at."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
        return None
    sys.stderr.write(f"{one_line(what)}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in AGREED


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


def scope_options() -> list[Option]:
    """Return the options that name scopes, for a command that is more than one call."""
    return [made for one in SCOPES for made in _options(one)]


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
    # The name that the other faces have works, too: `--tags` is `--tag`.
    others = {*one.hidden_flags, plain_option(one)}
    for name in sorted(others.difference(flags)):
        yield Option((name,), settings | {"help": argparse.SUPPRESS})


def _shown(one: Parameter) -> str:
    """Return a positional parameter as the usage line shows it."""
    return f"{one.name.upper()}..." if one.type in SEVERAL else one.name.upper()


def destination(one: Parameter) -> str:
    """Return the attribute of a parsed parameter. `user_id` itself is a setting of the server."""
    return f"of_{one.name.removesuffix('_id')}" if one.type == "scope" else one.name


def option_of(one: Parameter) -> str:
    """Return the option by which a parameter is given."""
    return one.flags[-1] if one.flags else plain_option(one)


def plain_option(one: Parameter) -> str:
    """Return the option that is the name of a parameter."""
    return f"--{one.name.replace('_', '-')}"


def whole_number(least: int | None, most: int | None) -> Callable[[str], int]:
    """Return a reader of whole numbers in a range; for use as an argument's `type`."""

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
    from worlddb.faces.cli.terminal import print_result

    arguments = call_arguments(call, args)
    with open_for(call, args) as memory:
        if call.question:
            scopes = ", ".join(f"{key}={value}" for key, value in scope_ids(args).items())
            if not confirmed(args, call.question.format(scope=scopes).partition("?")[0]):
                return FOUND
            arguments["confirm"] = True
        result = getattr(memory, call.name)(**arguments)
        is_empty = call.reads and call.takes_scopes and not result
        empty = nothing_found(memory, args, call.empty) if is_empty else call.empty
    print_result(result, as_json=wants_json(args), empty=empty)
    return 0


def open_for(call: Call, args: argparse.Namespace) -> Memory:
    """Open the store for a call: with the embedder and the extractor only where it needs them."""
    from worlddb.faces.cli.command_files import open_memories

    adds = call.effect == "add"
    is_new = adds and all(one.type != "id" for one in call.parameters)
    return open_memories(
        args,
        create=is_new,
        asks=call.effect == "search",
        reads=adds,
        writes=call.effect == "change" and not getattr(args, "dry_run", False),
    )


def user_of(args: argparse.Namespace) -> str:
    """Return the user whose memories are meant where a command names none."""
    from worlddb.faces.face_settings import settings_from

    return settings_from(args).user_id or DEFAULT_USER


def nothing_found(memory: Memory, args: argparse.Namespace, empty: str = "nothing found") -> str:
    """Return the message for an empty result; if no scope was named, with scopes to try."""
    if scope_ids(args) or getattr(args, "cursor", None) or not memory.db.log(after=0, limit=1):
        return empty
    import shlex

    user = user_of(args)
    scopes = memory.list_scopes(limit=SCOPES_HINTED + 2)
    others = [one for one in scopes if one.name != f"user:{user}"]
    flags = [f"--{one.kind}-id {shlex.quote(one.value)}" for one in others][:SCOPES_HINTED]
    more = ", … (worlddb scopes)" if len(others) > SCOPES_HINTED else ""
    parts = [f"{empty} for user:{user}"]
    if flags:
        parts.append(f"there are others: {', '.join(flags)}{more}")
    if "everyone" in args:
        parts.append("--everyone searches the whole store")
    elif not flags and empty == "nothing found":
        parts.append("'worlddb children' lists nodes that are in no scope")
    return one_line("; ".join(parts))
