"""The `worlddb` command. `hook` runs at once; `command_line` parses and runs all others."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["run"]


def run(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; this is what the console script calls."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["hook"]:
        # Clients start a hook with every prompt: the parser would take half of its time.
        from worlddb.faces.hooks.hook_command import run as run_hook

        code = run_hook(given[1:])
        if code is not None:
            return code
        from worlddb.faces.cli.command_line import run as run_command

        # Clients take exit code 2 for "block the prompt"; any other is an error that they show.
        return min(run_command(argv), 1)
    from worlddb.faces.cli.command_line import run as run_command

    return run_command(argv)
