"""MCP: the memory as tools, resources and a prompt of the Model Context Protocol.

    arguments ─▶ tools ─▶ Memory ─▶ answers          server: puts them together; stdio: runs it

Imported late: the SDK takes most of a second to load.
"""
