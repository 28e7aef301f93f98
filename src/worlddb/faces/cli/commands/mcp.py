"""`worlddb mcp`: the memory as an MCP server on stdin and stdout."""

from __future__ import annotations

import argparse
import gc
import os
from typing import Any

from worlddb.faces.cli.command_options import CONSOLIDATE_EVERY, TOOLS, command, flag, option
from worlddb.faces.cli.exit_codes import OK

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SQLITE = b"SQLite format 3\0"
"""How a database of SQLite begins, unless it is encrypted."""


@command(
    "mcp",
    option(
        "--user-id",
        "ID",
        "the user whose memory it is where a call names none (default: $WORLDDB_SCOPE)",
    ),
    flag("--search-fetch", "also offer the tools search and fetch"),
    TOOLS,
    CONSOLIDATE_EVERY,
)
def run(args: argparse.Namespace) -> int:
    """Serve the memory to an MCP client on stdin and stdout.

    Speak the Model Context Protocol on stdin and stdout, as Claude, Cursor, VS Code and
    others start it. It ends when the client closes stdin. Several may run on one store
    at once. Messages for people go to stderr.

    Examples:
      worlddb mcp                             # on your own store
      worlddb mcp --db work.db --user-id ada  # for one user unless a call names another
      worlddb mcp --search-fetch              # with the two tools that ChatGPT looks for
      worlddb mcp --tools graph               # with tools for edges, merges and history
      worlddb mcp --tools files               # with tools for versioned files
    """
    # Several servers run at once beside other programs. On a busy machine a small matrix product on
    # two threads takes thirty times as long as on one. Has to be set before numpy is loaded.
    for variable in ONE_THREAD:
        os.environ.setdefault(variable, "1")
    from contextlib import closing
    from functools import partial

    from worlddb.faces.face_settings import open_memory, settings_from
    from worlddb.faces.server_extra import require_server_extra

    require_server_extra("mcp")
    settings = settings_from(args)
    # The garbage collector would take a tenth of the start-up time, for nothing.
    gc.disable()
    from worlddb.faces.mcp.stdio_transport import LateMemory, serve_stdio

    gc.freeze()
    gc.enable()
    level: Any = settings.log_level.upper()
    opening = partial(open_memory, settings, actor="mcp", consolidates=True)
    with closing(LateMemory(opening)) as late:
        if not _is_store(settings.path):
            late()  # A wrong path ends the server at once; a store is opened after the handshake.
        serve_stdio(late, search_fetch=args.search_fetch, tools=settings.tools, log_level=level)
    return OK


def _is_store(path: str) -> bool:
    """Return whether a path leads to what looks like a database, by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except (OSError, ValueError):
        return False
