"""Entries: what a client has to know to reach this memory, over stdio or HTTP."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from worlddb.errors import InvalidInputError
from worlddb.faces.clients.catalog import Client

OURS = ("type", "command", "args", "env", "url", "headers", "http_headers", "bearer_token_env_var")
"""The keys of an entry that say how to reach a server; all others are the user's own."""


def launch_command() -> list[str]:
    """Return what starts this very program: absolute, for a desktop knows no shell's PATH."""
    # What uvx runs from lies in a cache that may be gone tomorrow.
    if f"{os.sep}uv{os.sep}archive-v" in sys.executable:
        return [shutil.which("uvx") or "uvx", "worlddb"]
    folder = os.path.dirname(sys.executable)
    script = shutil.which("worlddb", path=folder) or shutil.which("worlddb")
    if script:
        return [os.path.abspath(script)]
    return [sys.executable, "-m", "worlddb.faces.cli"]


def stdio_entry(client: Client, command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the entry of a server that the client starts itself."""
    entry: dict[str, Any] = {"type": "stdio"} if client.typed else {}
    entry |= {"command": command[0], "args": [*command[1:], "mcp"]}
    return entry | ({"env": dict(env)} if env else {})


def http_entry(client: Client, url: str, token: str | None) -> dict[str, Any]:
    """Return the entry of a server that runs already (`worlddb serve`).

    Raises:
        InvalidInputError: the client cannot, or the address or the token is none.
    """
    if not client.speaks_http:
        raise InvalidInputError(
            f"{client.title} starts its servers itself; leave --http out, or add {url} in its "
            "settings as a connector"
        )
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInputError(f"--http: {url!r:.100} is no address; give http://127.0.0.1:8765")
    whole = url if parts.path.strip("/") else f"{url.rstrip('/')}/mcp"
    entry: dict[str, Any] = {"type": "http"} if client.typed else {}
    entry |= {"url": whole}
    if token is not None:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidInputError("--token: has characters that no HTTP header can carry")
        headers = "http_headers" if client.format == "toml" else "headers"
        entry |= {headers: {"Authorization": f"Bearer {token}"}}
    return entry


def merged_entry(old: Any, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return our entry with what the user added to the old one: other keys, other variables."""
    if not isinstance(old, dict):
        return dict(new)
    entry = dict(new)
    if "command" in new and isinstance(old.get("env"), dict):
        entry["env"] = {**old["env"], **new.get("env", {})}
    return entry | {key: value for key, value in old.items() if key not in OURS}
