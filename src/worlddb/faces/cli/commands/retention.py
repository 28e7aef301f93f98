"""`worlddb retention`: how long the memories of a scope are kept, and what is due."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import call_arguments, call_options
from worlddb.faces.cli.command_options import YES, action_of, command, confirmed, flag, wants_json
from worlddb.faces.cli.command_store import open_memories
from worlddb.faces.cli.exit_codes import FOUND
from worlddb.faces.cli.terminal import print_hint, print_json, print_table

if TYPE_CHECKING:
    from worlddb.memory.retention_policy import RetentionPolicy, RetentionReport

SET_RETENTION, APPLY = call_named("set_retention"), call_named("apply_retention")


@command(
    "retention [list | set | apply]",
    action_of("list", "set", "apply"),
    *call_options(SET_RETENTION),
    flag("--dry-run", "of apply: say what is due, and change nothing"),
    YES,
)
def run(args: argparse.Namespace) -> int:
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
    if wants_json(args):
        print_json([one.to_dict() for one in found])
    elif found:
        print_table(("scope", "keep_days", "then", "hold"), [_row(one) for one in found])
    else:
        print_hint("there are no retention policies; all memories are kept")
    return 0


def _row(one: RetentionPolicy) -> tuple[str, str, str, str]:
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
