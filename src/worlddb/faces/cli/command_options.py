"""The parser of every command, the options that commands share, and the question before a risk."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.terminal import one_line

if TYPE_CHECKING:
    from worlddb.model.records import AsOf


Subparsers: TypeAlias = "argparse._SubParsersAction[Parser]"
Examples: TypeAlias = Sequence[tuple[str, str]]
HELP_COLUMNS_MAX = 100  # Wider lines are hard to read.
COUNT_MAX = 2**63 - 1  # The largest number that a store can hold.
YES = {"y", "yes"}


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of descriptions; no line is wider than a page."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)
        self._width = min(self._width, HELP_COLUMNS_MAX)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are like all others: one line, exit code 2."""

    def __init__(self, **settings: Any) -> None:
        # Abbreviated options would change their meaning whenever an option is added.
        defaults: dict[str, Any] = {"formatter_class": _Layout, "allow_abbrev": False}
        super().__init__(**(defaults | settings))

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments.

        Raises:
            InvalidInputError: always.
        """
        raise InvalidInputError(f"{message}; see '{self.prog} --help'")


def add_command(
    subparsers: Subparsers,
    name: str,
    *,
    arguments: str = "",
    summary: str,
    description: str,
    examples: Examples = (),
) -> Parser:
    """Add a command with the options that all of them have, and return its parser.

    `arguments` are the positional ones as the usage line shows them: argparse would wrap and order
    that line differently in each version of Python.
    """
    parser = subparsers.add_parser(
        name,
        usage=f"worlddb {name} [options] {arguments}".rstrip(),
        help=summary,
        description=description,
        epilog=examples_text(examples),
    )
    add_shared_options(parser)
    return parser


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that may stand before or after the command's name.

    They have no default: a subcommand's default would overwrite what was given before its name.
    """
    option = partial(parser.add_argument, default=argparse.SUPPRESS)
    option("--db", metavar="PATH", help="the store (default: $WORLDDB_PATH, then your memory.db)")
    option("--json", action="store_true", help="print JSON, with whole ids and times")


def examples_text(examples: Examples) -> str:
    """Return examples as the last part of a help text."""
    if not examples:
        return ""
    width = max(len(line) for line, _ in examples)
    return "\n".join(["examples:", *(f"  {line:<{width}}  # {why}" for line, why in examples)])


def add_as_of_options(parser: argparse.ArgumentParser) -> None:
    """Add the two times, for commands that read nodes or edges."""
    parser.add_argument("--as-of", metavar="TIME", help="what was true at this time (ISO-8601)")
    parser.add_argument("--known-at", metavar="TIME", help="as far as was known at this time")
    # Their old names, which scripts may still use.
    parser.add_argument("--valid", dest="as_of", metavar="TIME", help=argparse.SUPPRESS)
    parser.add_argument("--known", dest="known_at", metavar="TIME", help=argparse.SUPPRESS)


def add_embedder_option(parser: argparse.ArgumentParser) -> None:
    """Add the choice of an embedder, for commands that search by meaning."""
    parser.add_argument(
        "--embedder",
        metavar="NAME",
        help="see 'worlddb models' (default: $WORLDDB_EMBEDDER, then the store's own)",
    )


def add_extractor_option(parser: argparse.ArgumentParser) -> None:
    """Add the choice of an extractor, for commands that write texts."""
    parser.add_argument(
        "--extractor", metavar="NAME", help="what reads the text: rules (default), verbatim or llm"
    )


def as_of(args: argparse.Namespace) -> AsOf:
    """Return the two times that `--as-of` and `--known-at` give.

    Raises:
        InvalidInputError: one of them is not a time, or has no time zone.
    """
    from worlddb.model.inputs import to_micros
    from worlddb.model.records import AsOf

    for flag, time in (("--as-of", args.as_of), ("--known-at", args.known_at)):
        if time is not None:
            to_micros(time, flag)
    return AsOf(valid=args.as_of, known=args.known_at)


def wants_json(args: argparse.Namespace) -> bool:
    """Return whether `--json` was given, before or after the command's name."""
    return getattr(args, "json", False)


def count(text: str) -> int:
    """Return a whole number of 0 or more; for use as an argument's `type`."""
    try:
        number = int(text)
    except ValueError:
        number = -1
    if not 0 <= number <= COUNT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 0 or more")
    return number


def add_yes_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that answers the question in advance."""
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def confirmed(args: argparse.Namespace, what: str) -> bool:
    """Return whether `what` may be done: `--yes` was given, or a person at the terminal agrees.

    Raises:
        InvalidInputError: there is no terminal to ask at.
    """
    if args.yes:
        return True
    asked = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if not asked:
        raise InvalidInputError(f"{what}: there is no terminal to ask at; give --yes to confirm")
    sys.stderr.write(f"{one_line(what)}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() in YES:
        return True
    print("nothing was changed", file=sys.stderr)
    return False
