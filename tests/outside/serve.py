"""Serve the app of `worlddb serve` on a free port, and print the address of MCP.

python tests/outside/serve.py STORE [--fixtures]      (with the tools that the suite calls)
"""

from __future__ import annotations

import sys
from pathlib import Path

import worlddb
from worlddb.faces.http.access_tokens import make_access
from worlddb.faces.http.http_app import make_app
from worlddb.faces.http.http_server import HttpServer, listener_on

sys.path.insert(0, str(Path(__file__).parents[1]))


def main() -> None:
    path, *flags = sys.argv[1:]
    with worlddb.Memory(path) as memory, listener_on("127.0.0.1", 0) as listener:
        app = make_app(memory, access=make_access(host="127.0.0.1", tokens=()))
        if "--fixtures" in flags:
            from outside.asking import add_asking
            from outside.fixtures import add_fixtures

            add_fixtures(app.state.mcp_server)
            add_asking(app.state.mcp_server)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        HttpServer(app, lambda: print(url, flush=True)).run(sockets=[listener])


if __name__ == "__main__":
    main()
