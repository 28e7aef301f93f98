"""`worlddb demo`: sample data, so that a newcomer sees something alive."""

from __future__ import annotations

import argparse
import json
from importlib.resources import files

from worlddb.faces.cli.command_options import command, option, report

SAMPLE_USER = "sample"


@command(
    "demo",
    option("--user-id", "ID", f"whose memories the sample becomes (default: {SAMPLE_USER})"),
)
def run(args: argparse.Namespace) -> int:
    """Write sample data to look at.

    Write a handful of memories of half a year: a move, a changed budget, colleagues
    and a wish. They are those of the button in the explorer, for the user 'sample'
    and thus apart from your own. To write them twice changes nothing.

    Examples:
      worlddb demo && worlddb open                                       # look at it in the browser
      worlddb recall "Where do I live?" --user-id sample                 # ask
      worlddb erase --scope user:sample                                  # remove it for good
    """
    from worlddb.faces.cli.command_store import open_memories

    page = files("worlddb.faces.http") / "pages" / "sample.json"
    user = args.user_id or SAMPLE_USER
    with open_memories(args, create=True, reads=True) as memory:
        done = [
            memory.write(one["text"], at=one["at"], source="sample data", user_id=user)
            for one in json.loads(page.read_text(encoding="utf-8"))
        ]
    data = {"user_id": user, "memories": len(done), "created": sum(one.created for one in done)}
    text = f"{data['created']} of {len(done)} memories written for {user}; see them: worlddb open"
    return report(args, data, text)
