"""Claim questions: which questions ask for what somebody has one of at a time.

    Where do I live?                 the asker   lives in
    Which company does Anna work for Anna        works at
    What's my favourite colour?      the asker   favorite color

These are the claims of `claims`, from the other side: who asks so wants the one that stands,
however it was put ("I moved to Paris"). A question that goes on otherwise ("Where do I live in
summer?") asks for something else, and is left to the words in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from worlddb.language.english.claim_relations import (
    AGE,
    JOB_TITLE,
    LIVES_IN,
    WORKS_AT,
    favourite_of,
    thing_of,
)
from worlddb.language.english.grammar import Patterns
from worlddb.language.language_reader import AskedClaim

_P = Patterns("claim_questions")

BOSSES = ("manager", "boss", "supervisor")
"""What one person may be called to whom one reports: who asks for one means any of them."""
SAME_KIND = dict.fromkeys(("film", "movie"), ("film", "movie"))
QUESTION_CHARS_MAX = 200


_ASKED: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((f"LIVES_{name}", (LIVES_IN,)) for name in ("WHERE", "WHICH", "HOME", "IN", "TOWN", "SAID")),
    ("REPORTS", BOSSES),
    *((f"WORKS_{name}", (WORKS_AT,)) for name in ("SAID", "WHERE", "WHICH", "FOR", "EMPLOYS")),
    ("EMPLOYER", (WORKS_AT, "employer")),
    ("DOES_WHAT", (JOB_TITLE, WORKS_AT)),
    ("AGE_HOW", (AGE,)),
    ("AGE_WHAT", (AGE,)),
)


def asked_claims(question: str) -> list[AskedClaim]:
    """Return which claims a question asks for; none for most questions."""
    if len(question) > QUESTION_CHARS_MAX:
        return []
    return list(dict.fromkeys(_found(question)))


def _found(question: str) -> Iterator[AskedClaim]:
    for name, relations in _ASKED:
        if match := getattr(_P, name).search(question):
            yield AskedClaim(_owner(match), relations)
    if match := _P.FAVOURITE.search(question):
        kinds = SAME_KIND.get(match["kind"].lower(), (match["kind"],))
        yield AskedClaim(_owner(match), tuple(map(favourite_of, kinds)))
    if match := _P.THING.search(question):
        relation = thing_of(match["thing"]).relation
        more: tuple[str, ...] = (WORKS_AT,) if relation == JOB_TITLE else ()
        if relation in BOSSES:
            more = tuple(word for word in BOSSES if word != relation)
        yield AskedClaim(_owner(match), (relation, *more))


def _owner(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return groups.get("who") or groups.get("whose") or ""
