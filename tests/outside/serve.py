"""Serve the real MCP server over HTTP on a free port, and print its address.

python tests/outside/serve.py STORE [--fixtures]      (sessions, as the older era wants them)
"""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import uvicorn

import worlddb
from worlddb.faces.mcp.mcp_server import make_server

sys.path.insert(0, str(Path(__file__).parents[1]))


def main() -> None:
    path, *flags = sys.argv[1:]
    with worlddb.Memory(path) as memory:
        server = make_server(lambda: memory, log_level="ERROR")
        if "--fixtures" in flags:
            from outside.asking import add_asking
            from outside.fixtures import add_fixtures

            add_fixtures(server)
            add_asking(server)
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(server.streamable_http_app(), log_level="error", ws="none")
        print(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", flush=True)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
