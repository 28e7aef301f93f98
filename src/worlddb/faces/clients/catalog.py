"""The catalog: which clients there are, where each keeps its settings, and in which form."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Literal

from worlddb.errors import InvalidInputError

SERVER = "worlddb"
"""The name under which a client knows us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One program that speaks MCP.

    `folders` are where its file lies on each platform, "~" and variables unexpanded; `project` is
    its file in the folder of a project. `key` is the table of servers in it.
    """

    name: str
    title: str
    file: str
    folders: dict[str, str]
    project: str | None
    key: str
    format: Literal["json", "toml"] = "json"
    typed: bool = False
    speaks_http: bool = True
    home_variable: str | None = None

    def path(self, *, in_project: bool = False) -> str:
        """Return the path of its settings, whether they exist or not.

        Raises:
            InvalidInputError: it has none for a project.
        """
        if in_project:
            if self.project is None:
                raise InvalidInputError(f"{self.title} has no settings for a project")
            return os.path.abspath(self.project)
        home = os.environ.get(self.home_variable) if self.home_variable else None
        return os.path.join(home or _expanded(self.folders), self.file)


def _expanded(folders: dict[str, str]) -> str:
    folder = folders.get(sys.platform, folders["linux"])
    if folder.startswith("%APPDATA%"):
        usual = os.path.join("~", "AppData", "Roaming")
        folder = folder.replace("%APPDATA%", os.environ.get("APPDATA") or usual, 1)
    return os.path.expanduser(folder)


CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Client(
            name="claude",
            title="Claude Desktop",
            file="claude_desktop_config.json",
            folders={
                "linux": "~/.config/Claude",
                "darwin": "~/Library/Application Support/Claude",
                "win32": "%APPDATA%/Claude",
            },
            project=None,
            key="mcpServers",
            speaks_http=False,
        ),
        Client(
            name="claude-code",
            title="Claude Code",
            file=".claude.json",
            folders={"linux": "~"},
            project=".mcp.json",
            key="mcpServers",
            typed=True,
            home_variable="CLAUDE_CONFIG_DIR",
        ),
        Client(
            name="cursor",
            title="Cursor",
            file="mcp.json",
            folders={"linux": "~/.cursor"},
            project=".cursor/mcp.json",
            key="mcpServers",
        ),
        Client(
            name="vscode",
            title="VS Code",
            file="mcp.json",
            folders={
                "linux": "~/.config/Code/User",
                "darwin": "~/Library/Application Support/Code/User",
                "win32": "%APPDATA%/Code/User",
            },
            project=".vscode/mcp.json",
            key="servers",
            typed=True,
        ),
        Client(
            name="codex",
            title="Codex",
            file="config.toml",
            folders={"linux": "~/.codex"},
            project=".codex/config.toml",
            key="mcp_servers",
            format="toml",
            home_variable="CODEX_HOME",
        ),
    )
}


def client_named(name: str) -> Client:
    """Return a client by its name.

    Raises:
        InvalidInputError: there is none.
    """
    if name not in CLIENTS:
        raise InvalidInputError(f"{name!r:.80}: no such client; known are {', '.join(CLIENTS)}")
    return CLIENTS[name]
