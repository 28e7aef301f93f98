"""Clients: how Claude, Cursor, VS Code and Codex are told of this memory.

    Settings ──entry_for()──▶ entry ──merged text──▶ diff, or the client's file (backup, atomic)

K1  Nothing but our own entry changes in a client's file: every other byte stays, or the edit is
    refused. Each edit is read back and compared before it is written.
K2  What cannot be parsed is refused, never repaired.
"""
