"""`worlddb scopes`: list whose memories there are, or purge a scope."""

from __future__ import annotations

import argparse

from worlddb.errors import InvalidInputError, NotFoundError
from worlddb.faces.calls import call_named
from worlddb.faces.cli.call_options import call_options, run_call
from worlddb.faces.cli.command_options import YES, action_of, command, confirmed, option, wants_json
from worlddb.faces.cli.command_store import open_memories
from worlddb.faces.cli.exit_codes import FOUND
from worlddb.faces.cli.result_printer import print_retired

LIST_SCOPES = call_named("list_scopes")


@command(
    "scopes [list | purge SCOPE]",
    action_of("list", "purge"),
    option("scope", "SCOPE", "the scope to purge, such as user:ada", nargs="?"),
    *call_options(LIST_SCOPES),
    YES,
)
def run(args: argparse.Namespace) -> int:
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
    from worlddb.model.records import scope_named

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
