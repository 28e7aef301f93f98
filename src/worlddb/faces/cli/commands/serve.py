"""`worlddb serve`, `open`, `mcp` and `tokens`: the memory as a server, and who may call it."""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import (
    CONSOLIDATE_EVERY,
    EMBEDDER,
    OK,
    TOOLS,
    action_of,
    command,
    flag,
    option,
    report,
    wants_json,
)
from worlddb.faces.cli.terminal import print_hint, print_json, print_table

if TYPE_CHECKING:
    from datetime import datetime


# `worlddb mcp`: the memory as an MCP server on stdin and stdout.

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
SQLITE = b"SQLite format 3\0"
"""How a database of SQLite begins, unless it is encrypted."""


@command(
    "mcp",
    option(
        "--user-id",
        "ID",
        "the user whose memory it is where a call names none (default: $WORLDDB_SCOPE)",
    ),
    flag("--search-fetch", "also offer the tools search and fetch"),
    TOOLS,
    CONSOLIDATE_EVERY,
)
def run_mcp(args: argparse.Namespace) -> int:
    """Serve the memory to an MCP client on stdin and stdout.

    Speak the Model Context Protocol on stdin and stdout, as Claude, Cursor, VS Code and
    others start it. It ends when the client closes stdin. Several may run on one store
    at once. Messages for people go to stderr.

    Examples:
      worlddb mcp                             # on your own store
      worlddb mcp --db work.db --user-id ada  # for one user unless a call names another
      worlddb mcp --search-fetch              # with the two tools that ChatGPT looks for
      worlddb mcp --tools graph               # with tools for edges, merges and history
      worlddb mcp --tools files               # with tools for versioned files
    """
    # Several servers run at once beside other programs. On a busy machine a small matrix product on
    # two threads takes thirty times as long as on one. Has to be set before numpy is loaded.
    for variable in ONE_THREAD:
        os.environ.setdefault(variable, "1")
    from contextlib import closing
    from functools import partial

    from worlddb.faces.face_settings import open_memory, require_server_extra, settings_from

    require_server_extra("mcp")
    settings = settings_from(args)
    # The garbage collector would take a tenth of the start-up time, for nothing.
    gc.disable()
    from worlddb.faces.mcp.stdio_transport import LateMemory, serve_stdio

    gc.freeze()
    gc.enable()
    level: Any = settings.log_level.upper()
    opening = partial(open_memory, settings, actor="mcp", consolidates=True)
    with closing(LateMemory(opening)) as late:
        if not _is_store(settings.path):
            late()  # A wrong path ends the server at once; a store is opened after the handshake.
        serve_stdio(late, search_fetch=args.search_fetch, tools=settings.tools, log_level=level)
    return OK


def _is_store(path: str) -> bool:
    """Return whether a path leads to what looks like a database, by its first bytes."""
    try:
        with open(path, "rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except (OSError, ValueError):
        return False


# `worlddb tokens`: the tokens of a server, added, listed, revoked and rotated while it serves.

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
def run_tokens(args: argparse.Namespace) -> int:
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
        bounds = {kind: getattr(args, f"opens_{kind}") or [] for kind in KINDS}
        if any(bounds.values()) == (args.role == "administer"):
            raise InvalidInputError(
                "tokens add: name the scopes that it opens, such as --user-id ada, or give "
                "--role administer for everything; one of the two"
            )
        value = add_token(
            path,
            args.name,
            bounds=bounds,
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

    from worlddb.faces.http.token_file import TokenUse, state_of, tokens_in, uses_beside

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
        tenant = ("tenant",) if any(row["tenant"] for row in rows) else ()
        shown = ("name", "role", *tenant, "scopes", "origin", "expires", "last_used", "state")
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


# `worlddb serve`: the memory over HTTP, as MCP and as REST.

ANSWER_S_MAX = 2.0  # A server on this machine answers within milliseconds.
OPTIONS = (
    option("--host", "ADDRESS", "where to listen (default: 127.0.0.1)"),
    option("--port", "N", "the port; 0 for any that is free (default: 8765)"),
    option("--token", "TEXT", "a token that opens everything; better: $WORLDDB_TOKEN"),
    option("--tokens-file", "FILE", "tokens and the scopes they open, as TOML"),
    option("--stores", "DIR", "one store for each tenant, DIR/TENANT.db, instead of one for all"),
    option("--stores-keys", "DIR", "a key for each tenant, DIR/TENANT.key, made with its store"),
    option("--stores-open", "N", "how many stores of tenants are open at once (default: 100)"),
    option(
        "--workers",
        "N",
        "processes that answer requests and read, beside the one that writes (default: 0)",
    ),
    option(
        "--allowed-host",
        "NAME",
        "a name by which clients call; may be repeated",
        dest="allowed_hosts",
        action="append",
    ),
    option(
        "--allowed-origin",
        "URL",
        "a web page's origin that may call; may be repeated",
        dest="allowed_origins",
        action="append",
    ),
    option(
        "--trusted-proxy",
        "ADDRESS",
        "a proxy whose X-Forwarded-For is believed; may be repeated",
        dest="trusted_proxies",
        action="append",
    ),
    option("--oauth-issuer", "URL", "people sign in at this authorisation server"),
    option("--oauth-resource", "URL", "by which clients reach this server, for signing in"),
    option(
        "--oauth-audience",
        "NAME",
        "what a token's audience may be (default: that URL); may be repeated",
        action="append",
    ),
    option("--oauth-jwks-url", "URL", "the issuer's keys (default: as its metadata tell)"),
    option(
        "--oauth-role",
        "ROLE=SCOPE",
        "the scope of OAuth for a role (default: worlddb:ROLE); may be repeated",
        dest="oauth_roles",
        action="append",
    ),
    option(
        "--oauth-bound",
        "KIND=CLAIM",
        "the claim that names a scope (default: user_id=sub); may be repeated",
        dest="oauth_bounds",
        action="append",
    ),
    option("--oauth-tenant-claim", "CLAIM", "the claim that names the tenant, with --stores"),
    option("--oauth-per-minute", "N", "requests of each person who signs in"),
    option("--user-id", "ID", "the user where a call names none (default: $WORLDDB_SCOPE)"),
    TOOLS,
    CONSOLIDATE_EVERY,
    EMBEDDER,
)


@command("serve", *OPTIONS, flag("--open", "also open the explorer in the browser"))
def run_serve(args: argparse.Namespace) -> int:
    """Serve the memory over HTTP: explorer, MCP, REST, health, metrics.

    Serve the explorer at /, MCP at /mcp and REST at /v1 (described at /openapi.json),
    with /health and /metrics, until Ctrl-C or SIGTERM. By default only this machine reaches it. To let
    others in, give a token and the names by which they call; see docs/serving.md.

    Examples:
      worlddb serve                                                                # on 127.0.0.1:8765, on your own store
      worlddb serve --open                                                         # and show it in the browser
      worlddb serve --db work.db --port 0 --json                                   # any free port, printed as JSON
      worlddb serve --tokens-file tokens.toml                                      # each token opens its own scopes
      worlddb serve --oauth-issuer https://login.example.org/realms/team           # people sign in there
      worlddb serve --stores tenants --tokens-file tokens.toml                     # a store for each tenant
      worlddb serve --host 0.0.0.0 --tokens-file t.toml --allowed-host memory.lan  # for others, too
    """  # noqa: E501
    return _serve(args, with_browser=args.open)


@command("open", *OPTIONS)
def run_open(args: argparse.Namespace) -> int:
    """Show the explorer in the browser; serve the memory if no server does.

    Start the server of `worlddb serve` and open the explorer. If a WorldDB server
    answers at that address already, open its explorer and end. `worlddb demo` writes
    sample data to look at.

    Examples:
      worlddb open               # your own store
      worlddb --db work.db open  # another store
    """
    from worlddb.faces.face_settings import settings_from

    settings = settings_from(args)
    url = f"http://{settings.host}:{settings.port}"
    if settings.port and _is_served(url):
        _browse(url)
        return report(args, {"url": url}, f"a server answers already; the explorer is at {url}/")
    return _serve(args, with_browser=True)


def _is_served(url: str) -> bool:
    """Return whether a WorldDB server answers at an address."""
    from http.client import HTTPException
    from urllib.request import urlopen

    try:
        with urlopen(f"{url}/openapi.json", timeout=ANSWER_S_MAX) as answer:
            return bool(json.load(answer)["info"]["title"] == "WorldDB")
    except (OSError, HTTPException, ValueError, LookupError, TypeError):
        return False


def _browse(url: str) -> None:
    import webbrowser

    webbrowser.open(f"{url}/")


def _serve(args: argparse.Namespace, *, with_browser: bool) -> int:
    from worlddb.faces.face_settings import require_server_extra, settings_from
    from worlddb.faces.http.access_tokens import access_of
    from worlddb.faces.user_paths import shown_store

    require_server_extra("serve")
    settings = settings_from(args)
    access = access_of(settings)
    served = settings.stores or shown_store(settings.path)
    # Imported after the checks, because it takes long to load: a wrong setting is reported at once.
    from worlddb.faces.http.http_server import addresses, serve, welcome_text
    from worlddb.faces.http.served_stores import check_tenants

    check_tenants(settings, access)
    if settings.workers:
        from worlddb.faces.http.worker_pool import check_workers

        check_workers(settings)

    def announce(url: str) -> None:
        shown = welcome_text(url, served, with_tokens=access.needs_token)
        print(shown, file=sys.stderr, flush=True)
        if wants_json(args):
            from worlddb.faces.cli.terminal import print_json

            print_json(addresses(url, served))
            sys.stdout.flush()
        if with_browser:
            _browse(url)

    serve(settings, access, announce)
    return OK
