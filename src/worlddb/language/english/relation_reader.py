"""Relation reader: what an English text says of how two names hang together.

    The Great Storm caused the Severn Flood.       Kestrel is a Toyota.
    ╰── source ───╯ frame      ╰─ target ─╯

Both ends are names of the text. The source opens its sentence, the words between the names are a
frame of `frames.txt` and nothing else, and the target ends its clause. Where anything in the
sentence denies, asks or supposes, nothing is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from worlddb.language.english.prose import Patterns, in_quotes
from worlddb.language.language_reader import Mention, StatedRelation

_P = Patterns("text_relations")
# The edge type, its pattern, and whether the second name is the source.
_FRAMES = (
    ("causes", "CAUSES", False),
    ("causes", "CAUSED_BY", True),
    ("precedes", "PRECEDES", False),
    ("precedes", "FOLLOWS", True),
    ("instance_of", "INSTANCE_OF", False),
    ("subtype_of", "SUBTYPE_OF", False),
    ("contradicts", "CONTRADICTS", False),
    ("implies", "IMPLIES", False),
)
BETWEEN_MAX = 40  # Room for the longest frame.
BEFORE_MAX = 20  # Room for the end of a sentence and an article.


def is_denied(text: str) -> bool:
    """Return whether words deny, ask or suppose what they say."""
    return _P.DENIED.search(text) is not None


def relations_in(plain: str, mentions: Sequence[Mention]) -> list[StatedRelation]:
    """Return the relations that a text surely states between names that follow each other."""
    found: list[StatedRelation] = []
    for number, (one, other) in enumerate(pairwise(mentions)):
        between = plain[one.end : other.start]
        # That somebody came before somebody says nothing of the order of the two.
        if other.person or not 0 < len(between) <= BETWEEN_MAX:
            continue
        for type_, name, turned in _FRAMES:
            if getattr(_P, name).fullmatch(between) is None:
                continue
            if _is_clause(plain, one, other) and not (one.person and type_ != "instance_of"):
                source, target = (number + 1, number) if turned else (number, number + 1)
                found.append(StatedRelation(type_, source, target, one.start, other.end))
            break
    return found


def _is_clause(plain: str, one: Mention, other: Mention) -> bool:
    """Return whether a statement from one name to another is a clause, and surely so."""
    if _P.OPENS.search(plain[max(0, one.start - BEFORE_MAX) : one.start]) is None:
        return False
    rest = _P.SENTENCE.match(plain, other.end)
    end = other.end if rest is None else rest.end()
    return (
        _P.CLOSES.match(plain, other.end) is not None
        and not is_denied(plain[one.end : other.start] + plain[other.end : end])
        and not in_quotes(plain, one.start)
    )
