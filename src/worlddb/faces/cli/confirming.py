"""Confirming: what ends many memories at once is said twice."""

from __future__ import annotations

import argparse
import sys

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.terminal import one_line

YES = {"y", "yes"}


def add_yes_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that answers the question beforehand."""
    parser.add_argument("--yes", action="store_true", help="do not ask")


def confirmed(args: argparse.Namespace, what: str) -> bool:
    """Return whether `what` may be done: by `--yes`, or by somebody at a terminal.

    Raises:
        InvalidInputError: nobody is there to ask.
    """
    if args.yes:
        return True
    asked = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if not asked:
        raise InvalidInputError(f"{what}: give --yes to do that where nobody can be asked")
    sys.stderr.write(f"{one_line(what)}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().casefold() in YES:
        return True
    print("nothing was done", file=sys.stderr)
    return False
