"""Scoping: the options that say whose memories a command is about."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from worlddb.faces.cli.terminal import one_line

if TYPE_CHECKING:
    from worlddb.memory.memory import Memory
    from worlddb.model.scopes import ScopeIds, ScopeName

KINDS = ("user", "agent", "app", "run")
DEFAULT_USER = "default"
HINTED = 5


def add_scope_options(parser: argparse.ArgumentParser) -> None:
    """Add the four kinds of scope. Each may be repeated; they are not settings of a face."""
    for kind in KINDS:
        again = " (may be repeated)" if kind == KINDS[0] else ""
        parser.add_argument(
            f"--{kind}-id",
            dest=f"of_{kind}",
            metavar="ID",
            action="append",
            help=f"of this {kind}{again}",
        )


def scope_ids(args: argparse.Namespace) -> ScopeIds:
    """Return the scopes that were named, as the calls of `worlddb.Memory` take them."""
    given: ScopeIds = {}
    if args.of_user:
        given["user_id"] = args.of_user
    if args.of_agent:
        given["agent_id"] = args.of_agent
    if args.of_app:
        given["app_id"] = args.of_app
    if args.of_run:
        given["run_id"] = args.of_run
    return given


def nothing_found(memory: Memory, args: argparse.Namespace) -> str:
    """Return that nothing was found; to somebody who named nobody also where there is more."""
    if scope_ids(args) or not memory.db.log(after=0, limit=1):
        return "nothing found"
    import shlex

    from worlddb.faces.config import settings_from

    user = settings_from(args).user_id or DEFAULT_USER
    scopes = [one for one in memory.list_scopes(limit=HINTED + 2) if one.name != f"user:{user}"]
    flags = [f"--{one.kind}-id {shlex.quote(one.value)}" for one in scopes][:HINTED]
    more = ", … (worlddb scopes)" if len(scopes) > HINTED else ""
    told = [f"nothing found for user:{user}"]
    if flags:
        told.append(f"there are others: {', '.join(flags)}{more}")
    if "everyone" in args:
        told.append("--everyone looks in the whole store")
    elif not flags:
        told.append("'worlddb children' lists what is in no scope")
    return one_line("; ".join(told))


def scopes_text(scopes: Iterable[ScopeName]) -> str:
    """Return scopes on one line."""
    return ", ".join(str(scope) for scope in scopes)
