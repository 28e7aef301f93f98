"""`worlddb tokens`: the tokens of a server, added, listed, revoked and rotated while it serves."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import action_of, command, option, report, wants_json
from worlddb.faces.cli.terminal import print_hint, print_json, print_table

if TYPE_CHECKING:
    from datetime import datetime

KINDS = ("user_id", "agent_id", "app_id", "run_id")
ROLES = ("read", "write", "curate", "administer")
ORIGINS = ("user", "assistant", "import", "model", "tool", "web")


@command(
    "tokens [list | add | revoke | rotate] [NAME]",
    action_of("list", "add", "revoke", "rotate"),
    option("name", "NAME", "the name of the token", nargs="?"),
    option("--tokens-file", "FILE", "the file (default: $WORLDDB_TOKENS_FILE)"),
    option("--role", "ROLE", "read, write, curate (default) or administer", choices=ROLES),
    *(
        option(
            f"--{kind.replace('_', '-')}",
            "ID",
            "a scope that it opens (may be repeated)",
            dest=f"opens_{kind}",  # As a setting, its name would mean who asks.
            action="append",
        )
        for kind in KINDS
    ),
    option("--expires", "TIME", "when it ends: ISO-8601 with a time zone"),
    option("--origin", "ORIGIN", "what it brings in is of this origin at best", choices=ORIGINS),
    option("--per-minute", "N", "how many requests it may make in a minute", type=int),
    option("--memories-per-day", "N", "how many memories it may write in a day", type=int),
    option("--tenant", "NAME", "whose store it opens, with 'serve --stores'"),
)
def run(args: argparse.Namespace) -> int:
    """List, add, revoke and rotate the tokens of a server.

    Add prints the token once; the file keeps its hash. A running server reads the
    file again within a second, so a token that is revoked or rotated opens nothing
    any more. The last use is kept to the minute. A token opens the scopes that are
    named; one of the role administer opens everything. Of the roles, read only reads;
    write also writes and amends; curate also links, merges, pins, undoes, retires and
    erases.

    Examples:
      worlddb tokens add laptop --user-id ada --tokens-file tokens.toml
      worlddb tokens add crawler --user-id ada --role write --origin web --per-minute 60
      worlddb tokens                                     # who has one
      worlddb tokens rotate laptop                       # another value
      worlddb tokens revoke laptop                       # gone within a second
    """
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.http.token_file import add_token, revoke_token, rotate_token

    path = settings_from(args).tokens_file
    if path is None:
        raise InvalidInputError("tokens: give --tokens-file FILE, or set WORLDDB_TOKENS_FILE")
    if args.action == "list":
        return _listed(args, path)
    if args.name is None:
        raise InvalidInputError(f"tokens {args.action}: give the NAME of the token")
    if args.action == "revoke":
        revoke_token(path, args.name)
        return report(args, {"revoked": args.name}, f"revoked {args.name}")
    if args.action == "rotate":
        value = rotate_token(path, args.name)
    else:
        value = add_token(
            path,
            args.name,
            bounds={kind: getattr(args, f"opens_{kind}") or [] for kind in KINDS},
            role=args.role or "curate",
            expires=args.expires,
            origin=args.origin,
            per_minute=args.per_minute,
            memories_per_day=args.memories_per_day,
            tenant=args.tenant,
        )
    return report(args, {"name": args.name, "token": value}, value)


def _listed(args: argparse.Namespace, path: str) -> int:
    from datetime import UTC, datetime

    from worlddb.faces.http.token_file import state_of, tokens_in
    from worlddb.faces.http.token_uses import TokenUse, uses_beside

    now, uses, unused = datetime.now(UTC), uses_beside(path), TokenUse()
    rows = [
        {
            "name": token.name,
            "role": token.role,
            "scopes": [f"{kind}={one}" for kind, held in token.bounds.items() for one in held],
            "origin": token.origin or "user",
            "tenant": token.tenant,
            "per_minute": token.per_minute,
            "memories_per_day": token.memories_per_day,
            "expires": _time(token.expires),
            "last_used": _time(uses.get(token.digest, unused).last_used),
            "state": state_of(token, now),
        }
        for token in tokens_in(path)
    ]
    if wants_json(args):
        print_json(rows)
    elif rows:
        shown = ("name", "role", "scopes", "origin", "expires", "last_used", "state")
        print_table(shown, [tuple(_cell(row[name]) for name in shown) for row in rows])
    else:
        print_hint(f"{path} has no tokens; add one with 'worlddb tokens add NAME'")
    return 0


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _cell(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "everything"
    return "-" if value is None else str(value)
