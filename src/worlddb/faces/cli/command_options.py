"""The parser of every command, the options that commands share, and the question before a risk."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from worlddb import errors
from worlddb.errors import InvalidInputError
from worlddb.faces.cli.terminal import one_line, print_json

if TYPE_CHECKING:
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

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments.

        Raises:
            InvalidInputError: always.
        """
        unknown = re.fullmatch(_UNKNOWN_COMMAND, message)
        if unknown is not None:
            near = get_close_matches(unknown[1], re.findall(r"[\w-]+", unknown[2]), n=1)
            hint = f"; the nearest is '{near[0]}'" if near else ""
            message = f"there is no command '{unknown[1]:.40}'{hint}"
        raise InvalidInputError(f"{message}; see '{self.prog} --help'")


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
    return Option(
        ("action",),
        {
            "metavar": " | ".join(actions),
            "nargs": "?",
            "choices": actions,
            "default": actions[0],
            "help": help,
        },
    )


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
    "--consolidate-every-s",
    "SECONDS",
    "consolidate in the background this often (default: never)",
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
