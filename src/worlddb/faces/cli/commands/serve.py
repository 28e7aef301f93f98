"""`worlddb serve`: the memory over HTTP, as MCP and as REST."""

from __future__ import annotations

import argparse
import sys

from worlddb.faces.cli.command_options import (
    Subparsers,
    add_command,
    add_embedder_option,
    wants_json,
)
from worlddb.faces.cli.exit_codes import OK


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "serve",
        summary="serve the memory over HTTP: MCP, REST, health, metrics",
        description=(
            "Serve MCP at /mcp and REST at /v1 (described at /openapi.json), with /health and\n"
            "/metrics, until Ctrl-C or SIGTERM. By default only this machine reaches it. To let\n"
            "others in, give a token and the names by which they call; see docs/serving.md."
        ),
        examples=(
            ("worlddb serve", "on 127.0.0.1:8765, on your own store"),
            ("worlddb serve --db work.db --port 0 --json", "any free port, printed as JSON"),
            ("worlddb serve --tokens-file tokens.toml", "each token opens its own scopes"),
            (
                "worlddb serve --host 0.0.0.0 --tokens-file t.toml --allowed-host memory.lan",
                "for others, too",
            ),
        ),
    )
    add = parser.add_argument
    add("--host", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    add("--port", metavar="N", help="the port; 0 for any that is free (default: 8765)")
    add("--token", metavar="TEXT", help="a token that opens everything; better: $WORLDDB_TOKEN")
    add("--tokens-file", metavar="FILE", help="tokens and the scopes they open, as TOML")
    add(
        "--allowed-host",
        dest="allowed_hosts",
        metavar="NAME",
        action="append",
        help="a name by which clients call; may be repeated",
    )
    add(
        "--allowed-origin",
        dest="allowed_origins",
        metavar="URL",
        action="append",
        help="a web page's origin that may call; may be repeated",
    )
    add(
        "--user-id",
        metavar="ID",
        help="the user where a call names none (default: $WORLDDB_SCOPE)",
    )
    add(
        "--consolidate-every-s",
        metavar="SECONDS",
        help="consolidate in the background this often (default: never)",
    )
    add_embedder_option(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until a signal stops it."""
    from worlddb.faces.config import settings_from
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

    serve(settings, access, announce)
    return OK
