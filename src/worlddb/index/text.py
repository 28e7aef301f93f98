"""Text: how words become a question to the full-text index."""

from __future__ import annotations


def quoted(text: str) -> str:
    """Return text as a string of the index's language: its words in this order, never syntax."""
    return '"' + text.replace('"', '""') + '"'
