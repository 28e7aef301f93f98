"""`worlddb grants`: who outside a scope may read it or write into it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import call_arguments, call_options
from worlddb.faces.cli.command_options import action_of, command, option, wants_json
from worlddb.faces.cli.command_store import open_memories
from worlddb.faces.cli.terminal import print_hint, print_json, print_table

if TYPE_CHECKING:
    from worlddb.memory.scope_grants import Grant

GRANT, GRANTS = call_named("grant"), call_named("grants")
WORDS = {"list": (), "give": ("TO", "RIGHT"), "revoke": ("ID",), "refuse": ("ID",)}


@command(
    "grants [list | give TO RIGHT | revoke ID | refuse ID]",
    action_of(*WORDS, help=None),
    option("words", "WORD", "who gets which right, or the id of a grant or a memory", nargs="*"),
    *call_options(GRANTS),
    *(one for one in call_options(GRANT) if one.flags == ("--until",)),
)
def run(args: argparse.Namespace) -> int:
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
    if wants_json(args):
        print_json([one.to_dict() for one in found] if done is None else done.to_dict())
    elif done is not None:
        print_hint(f"refused {done.ids[0].short}")
    elif found:
        print_table(("id", "who", "right", "scope", "until"), [_row(one) for one in found])
    else:
        print_hint("there are no grants; every scope is closed to others")
    return 0


def _row(one: Grant) -> tuple[str, str, str, str, str]:
    until = "" if one.until is None else one.until.isoformat()
    return one.id.short, str(one.to), one.right, str(one.scope), until
