"""Scoping: the options that say whose memories a command is about."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worlddb.model.scopes import ScopeIds, ScopeName

KINDS = ("user", "agent", "app", "run")


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


def meant_scopes(args: argparse.Namespace) -> ScopeIds:
    """Return the scopes that were named, else the user of the configuration, if it has one."""
    given = scope_ids(args)
    if given:
        return given
    from worlddb.faces.config import settings_from

    user = settings_from(args).user_id
    return {} if user is None else {"user_id": user}


def scopes_text(scopes: Iterable[ScopeName]) -> str:
    """Return scopes on one line."""
    return ", ".join(str(scope) for scope in scopes)
