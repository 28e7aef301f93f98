"""`worlddb files`: the files of a scope, with every version."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import SCOPES, Call
from worlddb.faces.cli.command_files import given_text, open_memories
from worlddb.faces.cli.command_options import (
    FOUND,
    action_of,
    call_options,
    command,
    flag,
    option,
    scope_ids,
    wants_json,
)
from worlddb.faces.cli.terminal import iso, one_line, print_json, print_table

if TYPE_CHECKING:
    from worlddb.files.versioned_files import Files

SCOPED = Call("files", "", "", "", SCOPES, result="", effect="read")
GIVEN = {
    "list": (0, 1, "[PATH]"),
    "read": (1, 1, "PATH"),
    "write": (2, 2, "PATH TEXT"),
    "edit": (3, 3, "PATH OLD NEW"),
    "move": (2, 2, "PATH TARGET"),
    "delete": (1, 1, "PATH"),
    "history": (1, 1, "PATH"),
    "glob": (1, 1, "PATTERN"),
    "grep": (1, 2, "PATTERN [PATH]"),
}
"""What each action takes: at least, at most, and how its help shows it."""
CHANGING = ("write", "edit", "move", "delete")


@command(
    "files ACTION [PATH ...]",
    action_of(*GIVEN, help="what to do (default: list)"),
    option("given", "PATH", "a path such as /notes/today.md, and what the action takes", nargs="*"),
    flag("--all", "list: everything below; edit: every occurrence"),
    option("--version", "ID", "read: this version; write, edit, delete: only if this is the last"),
    option("--as-of", "TIME", "list, read, glob: as the files were then"),
    flag("--new", "write: only if the file does not exist"),
    flag("--ignore-case", "grep: upper and lower case are the same"),
    *call_options(SCOPED),
)
def run(args: argparse.Namespace) -> int:
    """Keep files with all their versions.

    A folder tree inside a scope. Each change is a commit; every old version can be read.
    What files say is found by 'worlddb recall'. A TEXT of '-' is read from stdin.

      list [PATH]           what lies in a folder
      read PATH             what a file says
      write PATH TEXT       write a file
      edit PATH OLD NEW     replace a text that occurs once
      move PATH TARGET      move a file or a folder
      delete PATH           end a file or a folder
      history PATH          the versions of a file
      glob PATTERN          files by name, such as '/notes/**/*.md'
      grep PATTERN [PATH]   lines by a regular expression

    Examples:
      worlddb files write /notes/tea.md "Green tea: 80 degrees"
      worlddb files read /notes/tea.md --version 3f2a
      worlddb files grep -- '[0-9]+ degrees' /notes
    """
    least, most, shown = GIVEN[args.action]
    if not least <= len(args.given) <= most:
        raise InvalidInputError(f"files {args.action}: give {shown}")
    create = args.action == "write"
    with open_memories(args, create=create, reads=create) as memory:
        scope: Any = scope_ids(args)
        files = memory.files_of(**scope)
        if args.action in CHANGING:
            return _change(files, args)
        return _show(files, args)


def _change(files: Files, args: argparse.Namespace) -> int:
    """Run an action that writes, and say what it did."""
    version: Any = None if args.new else args.version or "any"
    if args.new and args.action != "write":
        raise InvalidInputError("--new: only for write")
    if args.version and args.action != "move":  # The first digits will do.
        known = [one.version for one in files.history(args.given[0])]
        version = next((one for one in known if str(one).startswith(args.version)), args.version)
    match args.action, args.given:
        case "write", [path, text]:
            done = files.write(path, given_text(text), expected=version)
        case "edit", [path, old, new]:
            done = files.edit(path, old, new, every=args.all, expected=version)
        case "move", [path, target]:
            done = files.move(path, target)
        case _, [path, *_]:
            done = files.delete(path, expected=version)
    if wants_json(args):
        print_json(done.to_dict() | {"commit": None if done.commit is None else done.commit.seq})
    elif done.commit is None:
        print(one_line(f"{done.path}: unchanged"))
    else:
        now = "" if done.version is None else f", version {done.version.short}"
        print(one_line(f"{args.action} {done.path}{now}, commit {done.commit.seq}"))
    return 0


def _show(files: Files, args: argparse.Namespace) -> int:
    """Run an action that reads, and print what it found."""
    path = args.given[0] if args.given else "/"
    if args.action == "read":
        file = files.read(path, version=args.version, as_of=args.as_of)
        if wants_json(args):
            print_json(file.to_dict())
        else:
            sys.stdout.write(file.text)
        return 0
    found: Sequence[Any]
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    match args.action:
        case "list":
            found = files.list(path, depth=None if args.all else 1, as_of=args.as_of)
            heads = ("bytes", "modified", "version", "path")
            rows = [
                (str(one.bytes), iso(one.modified), one.version.short, one.path)
                if one.version
                else ("", "", "", one.path + "/")
                for one in found
            ]
        case "history":
            found, heads = files.history(path), ("version", "modified", "ended", "bytes", "path")
            rows = [
                (one.version.short, iso(one.modified), iso(one.ended), str(one.bytes), one.path)
                for one in found
            ]
        case "glob":
            found, heads = files.glob(path, as_of=args.as_of), ("path",)
            rows = [(one,) for one in found]
        case _:
            where = args.given[1] if len(args.given) > 1 else "/"
            found = files.grep(path, path=where, ignore_case=args.ignore_case)
            heads = ("path", "line", "text")
            rows = [(one.path, str(one.line), one.text) for one in found]
    if wants_json(args):
        print_json([one if isinstance(one, str) else one.to_dict() for one in found])
    elif rows:
        print_table(heads, rows)
    else:
        print("nothing found", file=sys.stderr)
    return 0 if found or args.action == "list" else FOUND
