"""`worlddb scopes`, `grants`, `retention`, `files`: what scopes hold, and who may see it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.faces.call_parts import SCOPES, Call
from worlddb.faces.calls import call_named
from worlddb.faces.cli.command_files import given_text, open_memories
from worlddb.faces.cli.command_options import (
    FOUND,
    YES,
    action_of,
    call_arguments,
    call_options,
    command,
    confirmed,
    flag,
    option,
    report_rows,
    run_call,
    scope_ids,
    wants_json,
    whole_number,
)
from worlddb.faces.cli.terminal import (
    iso,
    one_line,
    print_hint,
    print_json,
    print_retired,
    print_table,
)
from worlddb.faces.version_calls import MATCHES_MAX

if TYPE_CHECKING:
    from worlddb.files.versioned_files import Files
    from worlddb.memory.scope_grants import Grant
    from worlddb.memory.scope_policies import RetentionPolicy, RetentionReport


# `worlddb grants`: who outside a scope may read it or write into it.

GRANT, GRANTS = call_named("grant"), call_named("grants")
WORDS = {"list": (), "give": ("TO", "RIGHT"), "revoke": ("ID",), "refuse": ("ID",)}


@command(
    "grants [list | give TO RIGHT | revoke ID | refuse ID]",
    action_of(*WORDS, help=None),
    option("words", "WORD", "who gets which right, or the id of a grant or a memory", nargs="*"),
    *call_options(GRANTS),
    *(one for one in call_options(GRANT) if one.flags == ("--until",)),
)
def run_grants(args: argparse.Namespace) -> int:
    """Let others read a scope or write into it.

    List grants, give one, revoke one, or refuse what somebody else wrote into a scope.
    TO is a scope such as user:bob or agent:desk: whoever is bound to it has the grant.
    RIGHT is read or write. What is written by a grant lives with its writer and is shown
    as theirs. A refusal takes it out of the scope again, and takes no more of them.

    Examples:
      worlddb grants                                     # all that stand
      worlddb grants give user:bob read --user-id ada    # Bob may read what Ada has
      worlddb grants give agent:desk write --user-id ada --until 2027-01-01
      worlddb grants revoke 3f2a
      worlddb grants refuse 90aa --user-id ada           # a memory that is not Ada's own
    """
    wanted = WORDS[args.action]
    if len(args.words) != len(wanted):
        raise InvalidInputError(f"grants {args.action}: give {' and '.join(wanted) or 'no words'}")
    until = call_arguments(GRANT, args, without=("to", "right")).get("until")
    if until is not None and args.action != "give":
        raise InvalidInputError("--until belongs to 'grants give'")
    given = call_arguments(GRANTS, args)
    if given.pop("include_ended", None) and args.action != "list":
        raise InvalidInputError("--include-ended belongs to 'grants list'")
    done: Any = None
    with open_memories(args) as memory:
        if args.action == "list":
            found = list(memory.grants(include_ended=bool(args.include_ended), **given))
        elif args.action == "give":
            found = [memory.grant(*args.words, until=until, **given)]
        elif args.action == "revoke":
            found = [memory.revoke(*args.words, **given)]
        else:
            done, found = memory.refuse(*args.words, **given), []
    if done is not None and not wants_json(args):
        print_hint(f"refused {done.ids[0].short}")
        return 0
    return report_rows(
        args,
        [one.to_dict() for one in found] if done is None else done.to_dict(),
        ("id", "who", "right", "scope", "until"),
        [_grant_row(one) for one in found],
        "there are no grants; every scope is closed to others",
    )


def _grant_row(one: Grant) -> tuple[str, str, str, str, str]:
    until = "" if one.until is None else one.until.isoformat()
    return one.id.short, str(one.to), one.right, str(one.scope), until


# `worlddb retention`: how long the memories of a scope are kept, and what is due.

SET_RETENTION, APPLY = call_named("set_retention"), call_named("apply_retention")


@command(
    "retention [list | set | apply]",
    action_of("list", "set", "apply"),
    *call_options(SET_RETENTION),
    flag("--dry-run", "of apply: say what is due, and change nothing"),
    YES,
)
def run_retention(args: argparse.Namespace) -> int:
    """Keep memories for some days, or under legal hold.

    List the policies, set the policy of one scope, or apply all policies: retire or
    erase the memories that were written longer ago than their scope keeps them. What
    is pinned stays. Under --hold on nothing of the scope is erased, whoever asks for
    it. Every change is a commit. Apply asks before it erases, unless --yes is given.

    Examples:
      worlddb retention set --user-id ada --keep-days 90  # then retire them
      worlddb retention set --run-id r42 --keep-days 7 --then erase
      worlddb retention set --user-id ada --hold on       # nothing of Ada's is erased
      worlddb retention apply --dry-run                   # what is due
      worlddb retention apply --yes                       # for a timer
    """
    given = call_arguments(SET_RETENTION, args)
    if args.action == "list" and given:
        raise InvalidInputError("retention list: takes no options; to change a policy, use 'set'")
    if args.action == "apply" and given.keys() & {"keep_days", "then", "hold"}:
        raise InvalidInputError("retention apply: --keep-days, --then and --hold belong to 'set'")
    if args.action != "apply" and args.dry_run:
        raise InvalidInputError("--dry-run belongs to 'retention apply'")
    with open_memories(args) as memory:
        if args.action == "apply":
            planned = memory.apply_retention(dry_run=True, **given)
            erased = sum(len(one.ids) for one in planned.due if one.then == "erase")
            if args.dry_run:
                return _print_report(args, planned)
            if erased and not confirmed(args, f"erase {erased} memories for good"):
                return FOUND
            return _print_report(args, memory.apply_retention(**given))
        policies = [memory.set_retention(**given)] if args.action == "set" else memory.retention()
        found = list(policies)
    return report_rows(
        args,
        [one.to_dict() for one in found],
        ("scope", "keep_days", "then", "hold"),
        [_policy_row(one) for one in found],
        "there are no retention policies; all memories are kept",
    )


def _policy_row(one: RetentionPolicy) -> tuple[str, str, str, str]:
    days = "for ever" if one.keep_days is None else str(one.keep_days)
    return str(one.scope), days, one.then, "on" if one.hold else ""


def _print_report(args: argparse.Namespace, found: RetentionReport) -> int:
    if wants_json(args):
        print_json(found.to_dict())
        return 0
    rows = [(str(one.scope), one.then, len(one.ids), one.pinned, one.held) for one in found.due]
    print_table(("scope", "then", "due", "pinned", "held"), rows)
    if found.dry_run:
        print_hint("nothing was changed")
    return 0


# `worlddb scopes`: list whose memories there are, or purge a scope.

LIST_SCOPES = call_named("list_scopes")


@command(
    "scopes [list | purge SCOPE]",
    action_of("list", "purge"),
    option("scope", "SCOPE", "the scope to purge, such as user:ada", nargs="?"),
    *call_options(LIST_SCOPES),
    YES,
)
def run_scopes(args: argparse.Namespace) -> int:
    """List users, agents, apps and runs, or purge one.

    List whose memories there are, or purge one: end the scope with every memory and
    every name in it, also those that are in other scopes. Nothing is deleted, and a
    scope of that name can be written to again and begins empty. A purge asks unless
    --yes is given; without a terminal to ask at it is refused.

    Examples:
      worlddb scopes                 # everybody
      worlddb scopes --kind run      # the runs
      worlddb scopes purge user:ada  # end all of Ada's
    """
    if args.action == "purge":
        return _purge(args)
    if args.scope or args.yes:
        raise InvalidInputError("scopes list: takes no SCOPE and no --yes")
    return run_call(LIST_SCOPES, args)


def _purge(args: argparse.Namespace) -> int:
    from worlddb.model.inputs import scope_named

    if not args.scope:
        raise InvalidInputError("scopes purge: give the SCOPE, such as user:ada")
    if args.kind or args.cursor or args.include_retired:
        raise InvalidInputError("scopes purge: takes no --kind, --cursor or --include-retired")
    scope = scope_named(args.scope)
    with open_memories(args) as memory:
        if not confirmed(args, f"purge {scope}: end every memory and every name in it"):
            return FOUND
        done = memory.purge_scope(confirm=True, **scope.ids())
    if not done.scopes:
        raise NotFoundError(f"there is no scope {scope}; see 'worlddb scopes'")
    print_retired([done], wants_json(args))
    return 0


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
LINES = whole_number(1, MATCHES_MAX)


@command(
    "files ACTION [PATH ...]",
    action_of(*GIVEN, help="what to do (default: list)"),
    option("given", "PATH", "a path such as /notes/today.md, and what the action takes", nargs="*"),
    flag("--all", "list: everything below; edit: every occurrence"),
    option("--version", "ID", "read: this version; write, edit, delete: only if this is the last"),
    option("--as-of", "TIME", "list, read, glob: as the files were then"),
    flag("--new", "write: only if the file does not exist"),
    flag("--ignore-case", "grep: upper and lower case are the same"),
    flag("--literal", "grep: the pattern is plain text"),
    option("--glob", "GLOB", "grep: only files that match this, such as '*.md'"),
    option("--limit", "N", "grep: at most N lines (default: 100)", type=LINES, default=100),
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
        print_json(done.to_dict())
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
    named: str  # As the calls of files name what they found.
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]]
    match args.action:
        case "list":
            found = files.list(path, depth=None if args.all else 1, as_of=args.as_of)
            named = "entries"
            heads = ("bytes", "modified", "version", "path")
            rows = [
                (str(one.bytes), iso(one.modified), one.version.short, one.path)
                if one.version
                else ("", "", "", one.path + "/")
                for one in found
            ]
        case "history":
            found, named = files.history(path), "versions"
            heads = ("version", "modified", "ended", "bytes", "path")
            rows = [
                (one.version.short, iso(one.modified), iso(one.ended), str(one.bytes), one.path)
                for one in found
            ]
        case "glob":
            found, named = files.glob(path, as_of=args.as_of), "paths"
            heads = ("path",)
            rows = [(one,) for one in found]
        case _:
            where = args.given[1] if len(args.given) > 1 else "/"
            found = files.grep(
                path,
                path=where,
                glob=args.glob,
                ignore_case=args.ignore_case,
                literal=args.literal,
                limit=args.limit,
            )
            named, heads = "matches", ("path", "line", "text")
            rows = [(one.path, str(one.line), one.text) for one in found]
    if wants_json(args):
        print_json({named: [one if isinstance(one, str) else one.to_dict() for one in found]})
    elif rows:
        print_table(heads, rows)
    else:
        print("nothing found", file=sys.stderr)
    return 0 if found or args.action == "list" else FOUND
