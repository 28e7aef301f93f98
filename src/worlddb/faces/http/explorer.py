"""The explorer: static pages that call the REST API from the browser.

The pages are in `pages/` and in the wheel: plain ES modules, no build step, nothing from a network.
They hold no data, so they need no token; the page asks for one and keeps it in memory alone. The
policy forbids inline scripts, inline styles and every other host.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from blake3 import blake3
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from worlddb.faces.http.auth_middleware import PAGES_PATH
from worlddb.faces.http.http_problems import HttpError

KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    # The browser asks each time whether the file has changed; the answer is mostly "no".
    "Cache-Control": "no-cache",
}


@cache
def page_files() -> dict[str, tuple[bytes, str, str]]:
    """Return the content, kind and tag of every page file by its path below `/ui/`."""
    found = {}
    folder = files("worlddb.faces.http") / "pages"
    for part in (folder, folder / "vendor"):
        prefix = "" if part == folder else "vendor/"
        for item in part.iterdir():
            kind = KINDS.get(item.name.rpartition(".")[2])
            if kind and item.is_file():
                data = item.read_bytes()
                found[prefix + item.name] = data, kind, f'"{blake3(data).hexdigest()[:16]}"'
    return found


def explorer_routes() -> list[Route]:
    """Return the routes of the pages."""
    return [
        Route("/", _page, methods=["GET"]),
        Route(PAGES_PATH + "{path:path}", _page, methods=["GET"]),
    ]


async def _page(request: Request) -> Response:
    name = request.path_params.get("path", "index.html")
    try:
        data, kind, tag = page_files()[name]
    except KeyError:
        raise HttpError(404, "there is no such page; open / for the explorer") from None
    headers = {**HEADERS, "ETag": tag, "Content-Type": kind}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers)
