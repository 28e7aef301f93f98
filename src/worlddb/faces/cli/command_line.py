"""The command line: parse, run one command, turn an error into an exit code.

`COMMANDS` names the file of each command in `commands/`, where a family of commands shares one;
there `@command` declares the function that runs it. Only the file of the invoked command is
imported. These files import the engine inside their functions, so that `--help` loads argparse and
nothing else.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from worlddb import __version__
from worlddb.errors import InvalidInputError, WorldDBError
from worlddb.faces.calls import CALLS
from worlddb.faces.cli.command_options import (
    BROKEN_PIPE,
    BUG,
    DECLARED,
    INTERRUPTED,
    Parser,
    Subparsers,
    add_shared_options,
    exit_code,
)
from worlddb.faces.cli.terminal import one_line

COMMANDS = {
    "mcp": "serve",
    "serve": "serve",
    "open": "serve",
    "tokens": "serve",
    "demo": "write",
    "write": "write",
    "recall": "recall",
    "list": "recall",
    "read": "recall",
    "amend": "write",
    "retire": "retire",
    "scopes": "scopes",
    "erase": "retire",
    "retention": "scopes",
    "branch": "check",
    "merge": "check",
    "grants": "scopes",
    "files": "scopes",
    "children": "recall",
    "log": "check",
    "diff": "check",
    "prove": "check",
    "verify": "check",
    "check": "check",
    "backup": "backup",
    "restore": "backup",
    "migrate": "backup",
    "rekey": "backup",
    "copy": "backup",
    "export": "backup",
    "import": "backup",
    "query": "query",
    "ontology": "query",
    "proposals": "query",
    "extract": "consolidate",
    "consolidate": "consolidate",
    "fading": "consolidate",
    "reindex": "consolidate",
    "models": "config",
    "test": "eval",
    "eval": "eval",
    "bench": "eval",
    "setup": "config",
    "doctor": "config",
    "hook": "config",
    "config": "config",
    "completion": "config",
}
"""Each command and its file in `commands/`, in the order in which `--help` lists them."""

DESCRIPTION = """\
A memory engine for AI agents, in one file. Each command works on one store:
--db PATH, else $WORLDDB_PATH, else memory.db in your data directory."""

EXAMPLES = """\
examples:
  worlddb write "Sarah likes green tea"   # remember something
  worlddb recall "What does Sarah like?"  # and find it again
  worlddb setup claude --write            # let Claude use this memory
  worlddb read 3f2a                       # one node, by the start of its id
  worlddb log                             # what was written, commit by commit
  worlddb --db work.db check              # is the store sound?
  worlddb doctor                          # is everything installed and working?

Run 'worlddb COMMAND --help' for each command."""

__all__ = ["COMMANDS", "command_names", "make_parser", "run"]


def command_names() -> list[str]:
    """Return all commands: those with a file, then those of calls that have none."""
    return list(dict.fromkeys([*COMMANDS, *(call.command for call in CALLS if call.command)]))


def make_parser(only: str | None = None) -> Parser:
    """Return the parser with every command in it, or with one command only."""
    parser = Parser(
        prog="worlddb",
        usage="worlddb [options] COMMAND ...",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    parser.add_argument("--version", action="version", version=f"worlddb {__version__}")
    add_shared_options(parser)
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", prog="worlddb"
    )
    for name in command_names() if only is None else [only]:
        _add_command(subparsers, name)
    return parser


def _add_command(subparsers: Subparsers, name: str) -> None:
    if name in COMMANDS:
        import_module(f"worlddb.faces.cli.commands.{COMMANDS[name]}")
        DECLARED[name].add_to(subparsers)
    else:
        from worlddb.faces.cli.command_options import call_command

        call_command(next(call for call in CALLS if call.command == name)).add_to(subparsers)


def _command_in(argv: Sequence[str]) -> str | None:
    """Return the command that is invoked, so that only that one is imported; None if unsure."""
    words = iter(argv)
    for word in words:
        if word in ("--db", "--key-file", "--branch"):
            next(words, None)
        elif not word.startswith("-"):
            return word if word in command_names() else None
    return None


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A character that the terminal cannot show must not stop the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(argv)
    except BrokenPipeError:
        return BROKEN_PIPE
    except KeyboardInterrupt:
        _print_error("interrupted")
        return INTERRUPTED
    except (WorldDBError, OSError) as error:
        _print_error(_message(error, sys.argv[1:] if argv is None else argv))
        return exit_code(error)
    except Exception:
        import traceback

        traceback.print_exc()
        _print_error("this is a bug in worlddb; please report it with the lines above")
        return BUG
    finally:
        _release_stdout()


def _run(argv: Sequence[str] | None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["help"]:
        argv = [*given[1:], "--help"]
    elif not given:
        argv = ["--help"]
    parser = make_parser(_command_in(sys.argv[1:] if argv is None else argv))
    try:
        args, strange = parser.parse_known_args(argv)
        if args.command is None:
            parser.error("give a command")
        if strange:
            parser.commands[args.command].refuse(strange)
        code: int = args.run(args)
    except SystemExit as leaving:  # argparse leaves this way after --help and --version.
        code = leaving.code if isinstance(leaving.code, int) else 0
    # Flush here, not when the interpreter exits: a full disk must still be reported.
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _message(error: WorldDBError | OSError, argv: Sequence[str]) -> str:
    if isinstance(error, InvalidInputError) and "lone surrogate" in str(error):
        # Python turns bytes that it cannot decode into lone surrogates.
        for given in argv:
            if not _is_text(given):
                return (
                    f"the argument {os.fsencode(given)!r:.100} is not UTF-8; use a UTF-8 terminal, "
                    "or convert it: iconv -f LATIN1 -t UTF-8 FILE | worlddb write -"
                )
    if isinstance(error, OSError) and error.strerror:
        where = f"{os.fspath(error.filename)}: " if isinstance(error.filename, str) else ""
        return f"{where}{error.strerror.lower()}"
    return str(error)


def _is_text(given: str) -> bool:
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def _print_error(message: str) -> None:
    if sys.stderr is not None:
        print(f"worlddb: {one_line(message)}", file=sys.stderr)


def _release_stdout() -> None:
    """Flush stdout; drop what cannot be written, or the interpreter fails at its exit."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
