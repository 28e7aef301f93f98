"""`worlddb setup`: connect an MCP client to this memory."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from worlddb.errors import InvalidInputError
from worlddb.faces.cli.command_options import Subparsers, add_command, wants_json
from worlddb.faces.cli.terminal import clean, one_line, print_json

if TYPE_CHECKING:
    from worlddb.faces.clients.client_catalog import McpClient
    from worlddb.faces.clients.client_file import ClientEdit

NAMES = ("claude", "claude-code", "cursor", "vscode", "codex")
CARRIED = ("path", "user_id", "embedder", "models_dir")
"""Settings that are written into the entry when they come from this shell; never secrets."""


def add_parser(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = add_command(
        subparsers,
        "setup",
        arguments="CLIENT",
        summary="connect Claude, Cursor, VS Code or Codex",
        description=(
            "Print the entry that connects an MCP client to this memory, or write it into the\n"
            "client's settings. --write keeps a backup beside the file, changes only our own\n"
            "entry, and refuses a file that it cannot parse. Store, user and embedder from --db\n"
            "or your environment go into the entry. Restart the client afterwards."
        ),
        examples=(
            ("worlddb setup cursor", "print it, to paste"),
            ("worlddb setup claude --dry-run", "what would change in Claude's settings"),
            ("worlddb setup claude --write", "do it"),
            ("worlddb setup claude-code --project --write", "for this folder only (.mcp.json)"),
            ("worlddb setup vscode --http http://127.0.0.1:8765 --write", "a running server"),
        ),
    )
    parser.add_argument("client", metavar="CLIENT", choices=NAMES, help=", ".join(NAMES))
    parser.add_argument("--user-id", metavar="ID", help="whose memory it is, unless a call says")
    parser.add_argument("--http", metavar="URL", help="the address of a running 'worlddb serve'")
    parser.add_argument("--token", metavar="TEXT", help="for --http (default: $WORLDDB_TOKEN)")
    parser.add_argument("--project", action="store_true", help="settings of the present folder")
    parser.add_argument("--write", action="store_true", help="write the client's settings")
    parser.add_argument("--dry-run", action="store_true", help="show what --write would change")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print, show or write."""
    from worlddb.faces.clients.client_catalog import (
        SERVER_REMEDY,
        client_named,
        is_server_installed,
    )
    from worlddb.faces.clients.client_file import apply_edit, edit_for

    client = client_named(args.client)
    entry = _entry(args, client)
    if args.http is None and not is_server_installed():
        print(f"'worlddb mcp' is not installed yet; run: {SERVER_REMEDY}", file=sys.stderr)
    path = client.path(in_project=args.project)
    if not args.write and not args.dry_run:
        _print_snippet(args, client, entry, path)
        return 0
    edit = edit_for(client, path, entry)
    backup = apply_edit(edit) if args.write and not args.dry_run and edit.changes else None
    if wants_json(args):
        print_json(
            {
                "client": client.name,
                "path": path,
                "entry": dict(edit.entry),
                "changed": edit.changes,
                "written": edit.changes and not args.dry_run,
                "backup": backup,
            }
        )
    else:
        _print_result(args, client, edit, backup)
    return 0


def _entry(args: argparse.Namespace, client: McpClient) -> dict[str, Any]:
    from worlddb.faces.clients.client_catalog import http_entry, launch_command, stdio_entry
    from worlddb.faces.config import settings_from

    if args.http is not None:
        if args.user_id or getattr(args, "db", None):
            raise InvalidInputError("setup --http: a running server has its own store and user")
        return http_entry(client, args.http, settings_from(args).token)
    if args.token is not None:
        raise InvalidInputError("setup --token: needs --http; over stdio there is no token")
    return stdio_entry(client, launch_command(), _variables(args))


def _variables(args: argparse.Namespace) -> dict[str, str]:
    """Return the variables for the entry: a client starts the server without this shell's."""
    from worlddb.faces.config import FILE_VARIABLE, KINDS, config_path, origins, settings_from
    from worlddb.faces.user_paths import IN_MEMORY

    settings = settings_from(args)
    env = {FILE_VARIABLE: config_path()} if os.environ.get(FILE_VARIABLE) else {}
    for one in origins(args):
        if one.name in CARRIED and one.origin.startswith(("flag", "environment")):
            value = str(getattr(settings, one.name))
            is_file = KINDS[one.name].is_path and value != IN_MEMORY
            env[KINDS[one.name].variable] = os.path.abspath(value) if is_file else value
    return env


def _print_snippet(
    args: argparse.Namespace, client: McpClient, entry: dict[str, Any], path: str
) -> None:
    import json
    import shlex

    from worlddb.faces.clients.client_catalog import SERVER
    from worlddb.faces.clients.client_file import set_toml

    whole = {client.key: {SERVER: entry}}
    if wants_json(args):
        print_json({"client": client.name, "path": path, "entry": entry, "settings": whole})
        return
    print(f"for {client.title}, in {one_line(path)}:", file=sys.stderr)
    if client.format == "toml":
        print(clean(set_toml("", (client.key, SERVER), entry)), end="")
    else:
        print(json.dumps(whole, indent=2))
    more = [args.client, *(["--project"] if args.project else [])]
    print(f"'worlddb setup {shlex.join(more)} --write' puts it there for you", file=sys.stderr)


def _print_result(
    args: argparse.Namespace, client: McpClient, edit: ClientEdit, backup: str | None
) -> None:
    path = one_line(edit.path)
    if not edit.changes:
        print(f"{client.title} is already connected: {path}")
    elif args.dry_run:
        print(clean(edit.diff()), end="")
    else:
        kept = f"; backup: {one_line(backup)}" if backup else ""
        print(f"{client.title} is connected now: {path}{kept}")
        print(f"restart {client.title} to use it", file=sys.stderr)
