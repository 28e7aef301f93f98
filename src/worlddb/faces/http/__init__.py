"""HTTP: MCP, REST, health and metrics of one store, behind tokens, on one port.

    request ─▶ RequestLog ─▶ AuthMiddleware ─▶ BodyLimit ─▶ /mcp, /v1/…, /health, /metrics

H1  No route is reached without AuthMiddleware: it checks Host, Origin and token on every path.
H2  Only the Memory bound to the scopes of a token decides what its caller may see; no route opens
    the store itself.
H3  Neither tokens nor texts are logged.

All heavy modules are imported when a server starts.
"""
