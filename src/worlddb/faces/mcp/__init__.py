"""MCP: the memory as tools, resources and a prompt of the Model Context Protocol.

    calls ─▶ memory_tools ─▶ Memory ─▶ tool_answers     mcp_server: all parts; stdio_transport: runs

Imported late, because the SDK takes most of a second to load.
"""
