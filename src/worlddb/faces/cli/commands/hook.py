"""`worlddb hook`: answer an event of a coding client."""

from __future__ import annotations

import argparse

from worlddb.faces.cli.command_options import command, option
from worlddb.faces.hooks.client_dialects import DIALECTS


@command(
    "hook EVENT",
    option("event", "EVENT", "the event as the client names it, such as UserPromptSubmit"),
    option(
        "--client",
        "NAME",
        f"who sends it: {', '.join(DIALECTS)} (default: claude-code)",
        choices=tuple(DIALECTS),
        default="claude-code",
    ),
)
def run(args: argparse.Namespace) -> int:
    """Answer an event of a coding client.

    Read a client's hook JSON on stdin and answer it in the client's format: what is
    remembered about a prompt goes to the model, what was said is captured in the
    background. It never fails, blocks for a second at most, and asks no model.
    'worlddb setup CLIENT --hooks' lets a client call it. WORLDDB_HOOKS=off, or the
    prompt 'worlddb off', switches it off; see docs/hooks.md.

    Examples:
      echo '{"prompt": "How do we deploy?"}' | worlddb hook UserPromptSubmit  # try it
      worlddb hook Stop --client codex < event.json                           # as Codex calls it
    """
    from worlddb.faces.hooks.hook_command import answer

    flags = {name: getattr(args, name, None) for name in ("db", "key_file")}
    return answer(args.event, args.client, **flags)
