"""`worlddb serve`: the memory over HTTP, as MCP and as REST."""

from __future__ import annotations

import argparse
import sys

from worlddb.faces.cli.command_options import (
    CONSOLIDATE_EVERY,
    EMBEDDER,
    TOOLS,
    command,
    flag,
    option,
    wants_json,
)
from worlddb.faces.cli.exit_codes import OK


@command(
    "serve",
    option("--host", "ADDRESS", "where to listen (default: 127.0.0.1)"),
    option("--port", "N", "the port; 0 for any that is free (default: 8765)"),
    option("--token", "TEXT", "a token that opens everything; better: $WORLDDB_TOKEN"),
    option("--tokens-file", "FILE", "tokens and the scopes they open, as TOML"),
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
    option("--user-id", "ID", "the user where a call names none (default: $WORLDDB_SCOPE)"),
    flag("--open", "also open the explorer in the browser"),
    TOOLS,
    CONSOLIDATE_EVERY,
    EMBEDDER,
)
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
      worlddb serve --host 0.0.0.0 --tokens-file t.toml --allowed-host memory.lan  # for others, too
    """  # noqa: E501
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.http.access_tokens import access_of
    from worlddb.faces.server_extra import require_server_extra

    require_server_extra("serve")
    settings = settings_from(args)
    access = access_of(settings)
    # Imported after the checks, because it takes long to load: a wrong setting is reported at once.
    from worlddb.faces.http.http_server import addresses, serve, welcome_text

    def announce(url: str) -> None:
        shown = welcome_text(url, settings.path, with_tokens=bool(access.tokens))
        print(shown, file=sys.stderr, flush=True)
        if wants_json(args):
            from worlddb.faces.cli.terminal import print_json

            print_json(addresses(url, settings.path))
            sys.stdout.flush()
        if args.open:
            import webbrowser

            webbrowser.open(f"{url}/")

    serve(settings, access, announce)
    return OK
