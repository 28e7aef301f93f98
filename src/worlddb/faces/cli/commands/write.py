"""`worlddb write`: remember a text, a chat, or a text on each line."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.given import given_mapping, given_messages, given_text, opened
from worlddb.faces.cli.options import Subparsers, add_command, add_writing_options, wants_json
from worlddb.faces.cli.progress import Progress
from worlddb.faces.cli.scoping import add_scope_options, scope_ids
from worlddb.faces.cli.stores import open_memories
from worlddb.faces.cli.terminal import print_json
from worlddb.faces.cli.told import print_written

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "write",
        arguments="TEXT | -",
        summary="remember something",
        description=(
            "Remember a text, the messages of a chat, or each line of a file, and say what that\n"
            "did. The store is made if it is new. Without a scope it is a memory of the user that\n"
            "$WORLDDB_SCOPE or the settings file names, else of the user 'default'. What is known\n"
            "already is not written twice, so a write that was interrupted can be repeated."
        ),
        examples=(
            ('worlddb write "My manager Sarah likes green tea"', "for you"),
            ('worlddb write "Prefers metric units" --user-id ada', "for somebody"),
            ("pbpaste | worlddb write - --source clipboard", "what stdin says"),
            ("worlddb write --messages chat.json --run-id r42", "a whole conversation"),
            ("worlddb write --lines notes.txt", "one memory for each line"),
        ),
    )
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what to remember; '-' is stdin")
    parser.add_argument(
        "--messages",
        metavar="FILE",
        help='a chat as JSON, [{"role": …, "content": …}, …]; \'-\' is stdin',
    )
    parser.add_argument("--lines", metavar="FILE", help="one memory for each line; '-' is stdin")
    add_scope_options(parser)
    add_writing_options(parser)
    parser.add_argument(
        "--idempotency-key", metavar="KEY", help="the same key again does nothing more"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write, and say what that did."""
    given = [way for way in (args.text, args.messages, args.lines) if way is not None]
    if len(given) != 1:
        raise InvalidInputError(
            "write: give one of TEXT ('-' is stdin), --messages FILE and --lines FILE"
        )
    options: dict[str, Any] = {
        "at": args.at,
        "source": args.source,
        "metadata": given_mapping(args.metadata, "--metadata"),
        **scope_ids(args),
    }
    if args.lines is not None:
        return _write_lines(args, options)
    what = given_text(args.text) if args.text is not None else given_messages(args.messages)
    with open_memories(args, create=True, reads=True) as memory:
        done = memory.write(what, idempotency_key=args.idempotency_key, **options)
    print_written(done, as_json=wants_json(args))
    return 0


def _write_lines(args: argparse.Namespace, options: dict[str, Any]) -> int:
    if args.idempotency_key is not None:
        raise InvalidInputError("--idempotency-key: is for one memory, not for lines")
    told: dict[str, Any] = {"lines": 0, "created": 0, "known": 0, "commit": None}
    with opened(args.lines) as file, Progress("writing", unit="bytes") as progress:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode):
            progress.total = status.st_size
        with open_memories(args, create=True, reads=True) as memory:
            for number, line in _lines(file, args.lines, progress):
                _write_line(memory, line, f"{args.lines}: line {number}", options, told)
    if wants_json(args):
        print_json(told)
    else:
        print(
            f"{told['lines']:,} lines: {told['created']:,} remembered, "
            f"{told['known']:,} known already"
        )
    return 0


def _write_line(
    memory: Memory, line: str, where: str, options: dict[str, Any], told: dict[str, Any]
) -> None:
    try:
        done = memory.write(line, **options)
    except InvalidInputError as error:
        raise InvalidInputError(f"{where}: {error}; the lines before it are written") from None
    told["lines"] += 1
    told["created" if done.created else "known"] += 1
    if done.commit is not None:
        told["commit"] = done.commit.seq


def _lines(file: BinaryIO, name: str, progress: Progress) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, with their numbers.

    Raises:
        InvalidInputError: one is no UTF-8.
    """
    for number, data in enumerate(file, 1):
        progress.done += len(data)
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise InvalidInputError(
                f"{name}: line {number}: is not UTF-8 text; the lines before it are written"
            ) from None
        if line:
            yield number, line
