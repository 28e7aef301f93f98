"""`worlddb serve`: the memory over HTTP, as MCP and as REST."""

from __future__ import annotations

import argparse
import json
import sys

from worlddb.faces.cli.command_options import (
    CONSOLIDATE_EVERY,
    EMBEDDER,
    TOOLS,
    command,
    flag,
    option,
    report,
    wants_json,
)
from worlddb.faces.cli.exit_codes import OK

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
def run(args: argparse.Namespace) -> int:
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
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.http.access_tokens import access_of
    from worlddb.faces.server_extra import require_server_extra
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
