"""Relation reader: what an English text says of how two things hang together.

    The Great Storm caused the Severn Flood.       Rex is a Labrador.
        ╰─ source ╯ frame      ╰─ target ─╯        A Labrador is a kind of dog.

The source opens its sentence, a frame of `frames.txt` follows and nothing else, and the target ends
its clause. Both are names of the text or written like names; of kinds, any noun will do. Where
anything in the sentence denies, asks or supposes, nothing is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from worlddb.language.english.prose import (
    SMALL,
    STARTERS,
    Patterns,
    in_quotes,
    looks_ordinary,
    of_a_people,
)
from worlddb.language.language_reader import Mention, StatedRelation
from worlddb.language.ranking_features import WEEKDAYS
from worlddb.language.text_tokens import MONTHS, STOP

_P = Patterns("text_relations")
# The group of a frame, its edge type, and whether what stands second is the source.
_FRAMES = (
    ("causes", "causes", False),
    ("caused_by", "causes", True),
    ("precedes", "precedes", False),
    ("follows", "precedes", True),
    ("subtype_of", "subtype_of", False),
    ("instance_of", "instance_of", False),
    ("contradicts", "contradicts", False),
    ("implies", "implies", False),
)
_CALENDAR = frozenset((*WEEKDAYS, *MONTHS))
KIND_WORDS_MAX = 2  # "guide dog"; more words are a description


def is_denied(text: str) -> bool:
    """Return whether words deny, ask or suppose what they say."""
    return _P.DENIED.search(text) is not None


def relations_in(text: str, plain: str, mentions: Sequence[Mention]) -> list[StatedRelation]:
    """Return the relations that a text surely states; an end may be no mention yet."""
    if _P.HINT.search(plain) is None:
        return []
    known = {(each.start, each.end): each for each in mentions}
    found: list[StatedRelation] = []
    for match in _P.STATED.finditer(plain):
        type_, is_turned = next((type_, turn) for name, type_, turn in _FRAMES if match[name])
        ends = []
        for side in ("source", "target"):
            span = match.span(side)
            each = known.get(span) or Mention(*span, text[slice(*span)], True, False)
            if _is_end(each, span in known, type_, side):
                ends.append(each)
        if len(ends) == 2 and not _is_doubtful(plain, match):
            source, target = reversed(ends) if is_turned else ends
            found.append(
                StatedRelation(type_, source, target, *match.span("source")[:1], ends[1].end)
            )
    return found


def _is_end(each: Mention, is_name: bool, type_: str, side: str) -> bool:
    """Return whether something can be an end of a relation."""
    if each.person:  # That somebody came before somebody says nothing of the order of the two.
        return type_ == "instance_of" and side == "source"
    if is_name:
        return True
    words = each.text.split()
    plain = [word.lower() for word in words]
    if not STOP.isdisjoint((plain[0], plain[-1])):
        return False
    if type_ == "subtype_of":
        return len(words) <= KIND_WORDS_MAX and plain[0] not in STARTERS
    if not all(word[0].isupper() or word in SMALL for word in words):
        return False
    # A word at the start of a sentence has its capital for its place.
    is_own = side == "target" or not (looks_ordinary(plain[0]) or plain[0] in STARTERS)
    return len(words) > 1 or (is_own and not of_a_people(plain[0]) and plain[0] not in _CALENDAR)


def _is_doubtful(plain: str, match: re.Match[str]) -> bool:
    """Return whether the sentence of a relation denies, asks, supposes or quotes it."""
    rest = _P.SENTENCE.match(plain, match.end())
    said = plain[match.end("source") : match.end() if rest is None else rest.end()]
    return is_denied(said) or in_quotes(plain, match.start("source"))
