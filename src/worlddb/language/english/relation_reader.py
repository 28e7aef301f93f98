"""Relation reader: what an English text says of how two things hang together."""

from __future__ import annotations

from worlddb.language.english.prose import Patterns

_P = Patterns("text_relations")


def is_denied(text: str) -> bool:
    """Return whether words deny, ask or suppose what they say."""
    return _P.DENIED.search(text) is not None
