"""Form: what is seen of a text, whatever it is about. Found once for each."""

from __future__ import annotations

from typing import NamedTuple

from worlddb.language.telling import DONE, NOTHING, only_asks, telling


class Form(NamedTuple):
    """How much a text tells of its speaker, how long it is, and whether it asks."""

    telling: int
    chars: int
    asks: int


TELLING, CHARS, ASKS = range(len(Form._fields))
"""The columns of a table of forms."""


def form_of(text: str, *, is_turn: bool) -> Form:
    """Return the form of a text: few turns of a conversation tell of somebody.

    A memory always does, unless it is nothing but a question that somebody had.
    """
    tells = telling(text) if is_turn else NOTHING if only_asks(text) else DONE
    return Form(tells, len(text), int("?" in text))
