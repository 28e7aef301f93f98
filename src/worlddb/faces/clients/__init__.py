"""MCP clients: how Claude, Cursor, VS Code and Codex are connected to this memory.

    Settings ──stdio_entry()──▶ entry ──edit_for()──▶ diff, or the client's file (backup, atomic)

K1  Only our own entry changes in a client's file: every other byte stays, or the edit is refused.
    Each edit is parsed and compared before it is written.
K2  A file that cannot be parsed is refused, never repaired.
"""
