"""The `worlddb` command: parse, run one command, turn what went wrong into an exit code.

Each command is one file in `commands/` with `add_parser(subparsers)` and `run(args) -> int`, named
in `COMMANDS`. Those files import the engine inside their functions, so that `worlddb --help`
loads argparse and nothing else.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from worlddb import __version__
from worlddb.errors import InvalidInputError, WorldDBError
from worlddb.faces.cli.exit_codes import BROKEN_PIPE, BUG, INTERRUPTED, exit_code
from worlddb.faces.cli.options import Parser, add_shared_options, examples_text
from worlddb.faces.cli.terminal import one_line

COMMANDS = (
    "mcp",
    "serve",
    "write",
    "recall",
    "list",
    "read",
    "amend",
    "retire",
    "scopes",
    "erase",
    "children",
    "log",
    "diff",
    "prove",
    "check",
    "backup",
    "restore",
    "export",
    "import_",
    "proposals",
    "extract",
    "consolidate",
    "fading",
    "reindex",
    "models",
    "eval",
    "bench",
    "setup",
    "doctor",
    "config",
    "completion",
)
"""The files of `commands/`, in the order in which `--help` lists them."""

DESCRIPTION = """\
A memory engine for AI agents, in one file. Each command works on one store:
--db PATH, else $WORLDDB_PATH, else memory.db in your data directory."""

EXAMPLES = (
    ('worlddb write "Sarah likes green tea"', "remember something"),
    ('worlddb recall "What does Sarah like?"', "and find it again"),
    ("worlddb setup claude --write", "let Claude use this memory"),
    ("worlddb read 3f2a", "one node, by the start of its id"),
    ("worlddb log", "what has been written, commit by commit"),
    ("worlddb --db work.db check", "is every byte as it was written?"),
    ("worlddb doctor", "is everything there, and does it work?"),
)

__all__ = ["COMMANDS", "make_parser", "run"]


def make_parser() -> Parser:
    """Return the parser with every command in it."""
    parser = Parser(
        prog="worlddb",
        usage="worlddb [options] COMMAND ...",
        description=DESCRIPTION,
        epilog=examples_text(EXAMPLES) + "\n\n'worlddb COMMAND --help' tells more of each.",
    )
    parser.add_argument("--version", action="version", version=f"worlddb {__version__}")
    add_shared_options(parser)
    subparsers = parser.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", prog="worlddb"
    )
    for name in COMMANDS:
        import_module(f"worlddb.faces.cli.commands.{name}").add_parser(subparsers)
    return parser


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; this is what the console script calls."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character must not stop the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _run(argv)
    except BrokenPipeError:
        return BROKEN_PIPE
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except (WorldDBError, OSError) as error:
        _complain(_message(error, sys.argv[1:] if argv is None else argv))
        return exit_code(error)
    except Exception:
        import traceback

        traceback.print_exc()
        _complain("this is a bug in worlddb; please report it with the lines above")
        return BUG
    finally:
        _let_go_of_stdout()


def _run(argv: Sequence[str] | None) -> int:
    parser = make_parser()
    try:
        args = parser.parse_args(argv)
        if args.command is None:
            parser.error("give a command")
        code: int = args.run(args)
    except SystemExit as leaving:  # argparse leaves this way after --help and --version.
        code = leaving.code if isinstance(leaving.code, int) else 0
    # Here, not when the interpreter ends: a full disk or a closed pipe must still be told.
    if sys.stdout is not None:
        sys.stdout.flush()
    return code


def _message(error: WorldDBError | OSError, argv: Sequence[str]) -> str:
    if isinstance(error, InvalidInputError) and "lone surrogate" in str(error):
        # The engine speaks to programs. Python makes these of bytes that it cannot decode.
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


def _complain(message: str) -> None:
    if sys.stderr is not None:
        print(f"worlddb: {one_line(message)}", file=sys.stderr)


def _let_go_of_stdout() -> None:
    """Flush what can be; what cannot be is dropped, or the interpreter trips over it at its end."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
