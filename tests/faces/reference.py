"""Write docs/reference/command-line.md from the command's own help texts.

    python tests/faces/reference.py

The test beside it fails when the page on disk is not what this would write.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
COLUMNS = "100"

HEAD = """\
# The command line

<!-- Written by tests/faces/reference.py from the help texts; run it instead of editing. -->

`worlddb` works on one store at a time: `--db PATH`, else the file that the environment variable
`WORLDDB_PATH` names, else your own store: `memory.db` in `$XDG_DATA_HOME/worlddb`
(`~/.local/share/worlddb` if that is not set), on macOS in `~/Library/Application Support/worlddb`.
`--db` and `--json` may stand before or after the command's name.

Commands that read never make a file, so a typo in a path is an error and not an empty store.
On a terminal, tables are cut to its width and coloured a little; set `NO_COLOR` to do without. In a
pipe they are whole and plain. Tables show the first 12 digits of an id, which is enough to give
back; `--json` prints whole ids. All times are ISO-8601. Control characters in what a node contains
are shown as escapes; `--json` has them as they are.

"""

KEEPING = """\
## Backups and exports

A **backup** is a store like any other, so restoring one is opening it: `--db backup.db`, or
`worlddb.open("backup.db")`. To put it where the old store was, end the processes that use that,
move the old file and its `-wal` and `-shm` files away, and move the backup there. It is taken while
others read and write, and appears under its name only when it is complete.

An **export** is text: one JSON object per line, commit by commit, readable without WorldDB and
compressed if its name ends in `.gz`. Importing it into a new store gives the same ids, both clocks,
the same commit hashes and the same root state; a commit that does not is refused.

```console
$ worlddb backup monday.db
$ worlddb check --db monday.db
$ worlddb export monday.jsonl.gz
$ worlddb import monday.jsonl.gz --db copy.db
```

"""


def page() -> str:
    """Return the page as it should be."""
    from worlddb.faces.cli import COMMANDS
    from worlddb.faces.cli.exit_codes import MEANINGS

    # What the width of help texts and the names of folders would otherwise depend on.
    os.environ["COLUMNS"] = COLUMNS
    parts = [HEAD, _section("worlddb", [])]
    parts += [_section(name, [name]) for name in (it.removesuffix("_") for it in COMMANDS)]
    parts.append(KEEPING)
    parts.append("## Exit codes\n\nErrors are one line on stderr, `worlddb: message`.\n\n")
    parts.append("| code | meaning |\n|---|---|\n")
    parts += [f"| {code} | {meaning} |\n" for code, meaning in MEANINGS.items()]
    return "".join(parts)


def _section(title: str, arguments: list[str]) -> str:
    import contextlib
    import io

    from worlddb.faces.cli import run

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        assert run([*arguments, "--help"]) == 0
    return f"## {title}\n\n```text\n{text.getvalue().rstrip()}\n```\n\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} written\n")
