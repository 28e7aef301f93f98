"""HTTP: MCP, REST, health and metrics of one store, behind tokens, on one port.

    request ─▶ RequestLog ─▶ AuthMiddleware ─▶ BodyLimit ─▶ /mcp, /v1/…, /health, /metrics

H1  No route is reached without AuthMiddleware: it checks Host, Origin and token on every path.
H2  What a caller may see is decided by the Memory bound to its token's scopes and by nothing else;
    no route opens the store itself.
H3  Neither tokens nor texts are logged.

All heavy modules are imported when a server is started, not before.
"""
