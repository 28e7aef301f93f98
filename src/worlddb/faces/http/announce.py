"""Announce: what to paste into a client, once the server listens."""

from __future__ import annotations

import json
from typing import Any

from worlddb import __version__
from worlddb.faces.http.access import is_loopback

EVERYWHERE = ("0.0.0.0", "::", "")


def address(host: str, port: int, allowed_hosts: tuple[str, ...] = ()) -> str:
    """Return the URL that clients use: by a name that is allowed, if `host` is no name."""
    if is_loopback(host) or not allowed_hosts:
        name = "127.0.0.1" if host in EVERYWHERE else host
        if ":" in name:
            name = f"[{name.strip('[]')}]"
        return f"http://{name}:{port}"
    name = allowed_hosts[0].removesuffix(":*")
    has_port = ":" in name.rpartition("]")[2]
    return f"http://{name}" if has_port else f"http://{name}:{port}"


def as_data(url: str, path: str) -> dict[str, Any]:
    """Return where everything is, for programs."""
    return {
        "url": url,
        "mcp": f"{url}/mcp",
        "rest": f"{url}/v1",
        "openapi": f"{url}/openapi.json",
        "health": f"{url}/health",
        "metrics": f"{url}/metrics",
        "store": path,
    }


def as_text(url: str, path: str, *, with_tokens: bool) -> str:
    """Return what a person pastes; a token stands in it by the name of its variable alone."""
    bearer = "Authorization: Bearer $WORLDDB_TOKEN"
    header = f' --header "{bearer}"' if with_tokens else ""
    curl = f' -H "{bearer}"' if with_tokens else ""
    entry: dict[str, Any] = {"type": "http", "url": f"{url}/mcp"}
    if with_tokens:
        entry["headers"] = {"Authorization": "Bearer ${WORLDDB_TOKEN}"}
    asked = "content-type: application/json"
    return f"""\
worlddb {__version__} serves {path}
  MCP      {url}/mcp
  REST     {url}/v1   ({url}/openapi.json)
  health   {url}/health
  metrics  {url}/metrics

Claude Code:
  claude mcp add --transport http worlddb {url}/mcp{header}
Other MCP clients:
  {json.dumps({"mcpServers": {"worlddb": entry}})}
REST:
  curl{curl} -H '{asked}' {url}/v1/memories -d '{{"text": "I like green tea"}}'
  curl{curl} -H '{asked}' {url}/v1/recall -d '{{"query": "what do I like?"}}'

Ctrl-C ends it."""
