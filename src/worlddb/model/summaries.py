"""Summaries: what a summarizer is asked, and what it gives back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from worlddb.model.drafts import Message


class Summarizer(Protocol):
    """Says in few words what several messages say. It is never called inside a transaction."""

    name: str

    def summarize(self, title: str, messages: Sequence[Message]) -> str:
        """Return a summary of what was said in the world that `title` names."""
