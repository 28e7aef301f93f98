"""HTTP: MCP, REST, health and metrics of one store, behind tokens, on one port.

    request ─▶ watching ─▶ doors ─▶ bodies ─▶ /mcp, /v1/…, /health, /metrics, /openapi.json
               counts      who?     how much?

H1  No route is reached past the doors: Host, Origin and token are checked for every path.
H2  What a caller may see is decided by the Memory it is given, bound to its token's scopes, and by
    nothing else; no route opens the store itself.
H3  Neither tokens nor texts are logged.

Everything heavy is imported when a server is started, not before.
"""
