"""Checkup of clients: which of them know this memory, and can they reach it?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from worlddb.errors import WorldDBError
from worlddb.faces.clients.catalog import CLIENTS, SERVER, Client
from worlddb.faces.clients.editing import servers_in
from worlddb.faces.findings import Finding, fail, ok, warn
from worlddb.faces.places import IN_MEMORY

ANSWER_S = 2.0


def examine_clients() -> Iterator[Finding]:
    """Yield what each client that has settings here says of this memory."""
    known = 0
    for client in CLIENTS.values():
        for in_project in (False, True):
            if in_project and client.project is None:
                continue
            path = client.path(in_project=in_project)
            if in_project and path == client.path():
                continue  # The present folder is the user's home.
            try:
                servers = servers_in(client, path)
            except (WorldDBError, OSError) as error:
                yield fail(client.title, str(error), "repair it by hand; we do not touch it")
                continue
            if servers is None:
                continue
            if SERVER in servers:
                known += 1
                yield from _examine_entry(client, path, servers[SERVER], in_project)
            elif not in_project:
                yield ok(client.title, f"has settings and does not know this memory ({path})")
    if not known:
        yield warn(
            "clients", "none knows this memory", f"worlddb setup {'|'.join(CLIENTS)} --write"
        )


def _examine_entry(client: Client, path: str, entry: Any, in_project: bool) -> Iterator[Finding]:
    again = f"worlddb setup {client.name}{' --project' if in_project else ''} --write"
    if not isinstance(entry, dict):
        yield fail(client.title, f"{path}: its entry {SERVER!r} is no table", again)
        return
    if "url" in entry:
        yield _examine_url(client, str(entry["url"]))
        return
    command = entry.get("command")
    if not isinstance(command, str) or shutil.which(os.path.expanduser(command)) is None:
        yield fail(client.title, f"{path}: starts {command!r}, which is no command here", again)
        return
    store = _store_of(entry)
    if store is None or store == IN_MEMORY or os.path.exists(store):
        yield ok(client.title, f"starts {command}{f' on {store}' if store else ''} ({path})")
    elif os.path.isdir(os.path.dirname(store)):
        yield ok(client.title, f"starts {command}; will make {store} ({path})")
    else:
        yield fail(client.title, f"{path}: its store {store} is in a folder that is not", again)


def _store_of(entry: dict[str, Any]) -> str | None:
    """Return the store that an entry names; None if it leaves that to the settings."""
    args, env = entry.get("args"), entry.get("env")
    given = None
    if isinstance(args, list) and "--db" in args[:-1]:
        given = args[args.index("--db") + 1]
    elif isinstance(env, dict):
        given = env.get("WORLDDB_PATH")
    return os.path.expanduser(given) if isinstance(given, str) and given else None


def _examine_url(client: Client, url: str) -> Finding:
    """Return whether a server answers there at all."""
    import urllib.request

    parts = urlsplit(url)
    health = f"{parts.scheme}://{parts.netloc}/health"
    try:
        if parts.scheme not in ("http", "https"):
            raise ValueError("is no address")
        # What is on this machine is not asked through a proxy.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(health, timeout=ANSWER_S):
            return ok(client.title, f"{url} answers")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return warn(client.title, f"{url} does not answer: {reason}", "worlddb serve")
