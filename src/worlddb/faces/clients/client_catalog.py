"""The catalogue of MCP clients: where each keeps its settings, and what our entry there says."""

from __future__ import annotations

import ipaddress
import os
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import urlsplit

from worlddb.errors import InvalidInputError

SERVER = "worlddb"  # The name of our entry in a client's settings.
TOKEN_VARIABLE = "WORLDDB_TOKEN"
OURS = {"type", "command", "args", "env", "url", "headers", "http_headers"}
OURS |= {"bearer_token_env_var", "cmd", "envs", "environment", "uri", "serverUrl", "httpUrl"}
"""The keys of an entry that we write; all others are the user's own."""
ENVIRONMENTS = ("env", "envs", "environment")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that uses MCP servers.

    `folders` are the folders of its settings file by platform, "~" and variables unexpanded;
    `project` is its file in the folder of a project. `key` is the table of servers in the file.
    `types` are what its entries call a server that it starts and one that runs. `variable` is how
    its settings name a variable of the environment (empty: they do not); Codex has a key for a
    token's variable instead. `names` are its own names of "command", "env" and "url"; `more` is
    what its entries need besides; `one_command` has the arguments in one list with the command.
    """

    name: str
    title: str
    file: str
    folders: dict[str, str]
    key: str
    project: str | None = None
    format: Literal["json", "toml", "yaml"] = "json"
    types: Sequence[str] = ()
    speaks_http: bool = True
    home_variable: str | None = None
    variable: str = "${{env:{name}}}"
    names: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    one_command: bool = False

    def path(self, *, in_project: bool = False) -> str:
        """Return the path of its settings file, whether it exists or not.

        Raises:
            InvalidInputError: the client has no settings for a project.
        """
        if in_project:
            if self.project is None:
                raise InvalidInputError(f"{self.title} has no settings for a project")
            return os.path.abspath(self.project)
        home = os.environ.get(self.home_variable) if self.home_variable else None
        return os.path.join(home or _expanded(self.folders), self.file)

    def shaped(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry in this client's own form: `command`, `args`, `env`, `url`, `headers`."""
        entry = dict(plain)
        if self.one_command and "command" in entry:
            entry["command"] = [entry["command"], *entry.pop("args")]
        named = {self.names.get(key, key): value for key, value in entry.items()}
        kind = {"type": self.types["url" in plain]} if self.types else {}
        return {**kind, **named, **self.more}

    def plain(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        """Return an entry of this client's form with the names that most clients have."""
        own = {name: key for key, name in self.names.items()}
        found = {own.get(key, key): value for key, value in entry.items()}
        command = found.get("command")
        if self.one_command and isinstance(command, list) and command:
            found |= {"command": command[0], "args": command[1:]}
        return found


def _expanded(folders: dict[str, str]) -> str:
    folder = folders.get(sys.platform, folders["linux"])
    if folder.startswith("%APPDATA%"):
        default = os.path.join("~", "AppData", "Roaming")
        folder = folder.replace("%APPDATA%", os.environ.get("APPDATA") or default, 1)
    return os.path.expanduser(folder)


def catalog(part: str) -> dict[str, dict[str, Any]]:
    """Return the tables of `clients.toml` under "mcp" or "hooks", by the names of the clients."""
    text = files("worlddb.faces.clients").joinpath("clients.toml").read_text("utf-8")
    tables: dict[str, dict[str, Any]] = tomllib.loads(text)[part]
    return tables


CLIENTS = {name: McpClient(name=name, **table) for name, table in catalog("mcp").items()}


def client_named(name: str) -> McpClient:
    """Return the client of a name.

    Raises:
        InvalidInputError: there is no such client.
    """
    if name not in CLIENTS:
        raise InvalidInputError(f"{name!r:.80}: no such client; known are {', '.join(CLIENTS)}")
    return CLIENTS[name]


def launch_command(*, in_project: bool = False) -> list[str]:
    """Return the command that starts this program, with an absolute path: clients have no PATH.

    The settings of a project are shared with others, on whose machines the path is another one.
    """
    if in_project:
        return ["worlddb"]
    # The folder of uvx is a cache that may be cleared at any time.
    if f"{os.sep}uv{os.sep}archive-v" in sys.executable:
        return [shutil.which("uvx") or "uvx", "worlddb"]
    folder = os.path.dirname(sys.executable)
    script = shutil.which("worlddb", path=folder) or shutil.which("worlddb")
    if script:
        return [os.path.abspath(script)]
    return [sys.executable, "-m", "worlddb"]


def stdio_entry(
    client: McpClient, command: Sequence[str], env: Mapping[str, str]
) -> dict[str, Any]:
    """Return the entry for a server that the client starts."""
    entry: dict[str, Any] = {"command": command[0], "args": [*command[1:], "mcp"]}
    return client.shaped(entry | ({"env": dict(env)} if env else {}))


def http_entry(
    client: McpClient, url: str, token: str | None, *, in_project: bool = False
) -> dict[str, Any]:
    """Return the entry for a running server (`worlddb serve`).

    In the settings of a project, which are shared, the token's variable stands for the token.

    Raises:
        InvalidInputError: the client has no HTTP, or the address or the token is wrong.
    """
    if not client.speaks_http:
        # Its connectors are called from the vendor's machines, which reach no address of this one.
        others = "" if _is_near(url) else f", or add {url} as a connector in its settings"
        raise InvalidInputError(
            f"{client.title} starts its servers itself; leave --http out{others}"
        )
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInputError(
            f"--http: {url!r:.100} is not an address; give one like http://127.0.0.1:8765"
        )
    whole = url if parts.path.strip("/") else f"{url.rstrip('/')}/mcp"
    entry: dict[str, Any] = {"url": whole}
    if token is not None:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InvalidInputError("--token: contains characters that HTTP headers do not allow")
        if in_project and client.format == "toml":
            return entry | {"bearer_token_env_var": TOKEN_VARIABLE}
        told = token
        if in_project:
            if not client.variable:
                raise InvalidInputError(
                    f"{client.title} reads no variable in its settings, and a project's settings "
                    "are no place for a token; leave --project out"
                )
            told = client.variable.format(name=TOKEN_VARIABLE)
        headers = "http_headers" if client.format == "toml" else "headers"
        entry |= {headers: {"Authorization": f"Bearer {told}"}}
    return client.shaped(entry)


def _is_near(url: str) -> bool:
    """Return whether only this machine or its network reaches an address."""
    host = urlsplit(url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return host == "localhost" or "." not in host or host.endswith((".local", ".lan"))


def merged_entry(old: Any, new: Mapping[str, Any]) -> dict[str, Any]:
    """Return our entry with the keys and variables that the user added to the old one."""
    if not isinstance(old, dict):
        return dict(new)
    entry = dict(new)
    for key in ENVIRONMENTS:
        if "command" in new or "cmd" in new:
            if isinstance(old.get(key), dict):
                entry[key] = {**old[key], **new.get(key, {})}
    return entry | {key: value for key, value in old.items() if key not in OURS}
