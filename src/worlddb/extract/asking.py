"""Asking: which questions ask for what somebody has one of at a time.

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
from typing import NamedTuple

from worlddb.claims.claim import JOB_TITLE, LIVES_IN
from worlddb.extract.lexicon.relations import ONE_PERSON, favourite_of, relation_of
from worlddb.extract.lexicon.relations import THINGS as KNOWN_THINGS

WORKS_AT = "works at"
BOSSES = ("manager", "boss", "supervisor")
"""What one person may be called to whom one reports: who asks for one means any of them."""
SAME_KIND = dict.fromkeys(("film", "movie"), ("film", "movie"))
QUESTION_CHARS_MAX = 200


class AskedClaim(NamedTuple):
    """Whose claim is asked for (nobody's name: the asker's), and of which relations."""

    owner: str
    relations: tuple[str, ...]


_NAME = r"[A-Z][\w'’.-]*(?:\s+[A-Z][\w'’.-]*){0,2}"
_WHO = rf"(?:(?i:I|we|me|us)|(?P<who>{_NAME}))"
_WHOSE = rf"(?:(?i:my|our)|(?P<whose>{_NAME})['’]s?)"
_DOES = r"(?i:do|does|am|is|are|have|has)"
_NOW = r"(?:\s+(?i:now|currently|actually|these\s+days|at\s+the\s+moment|right\s+now|again))?"
_IS = r"(?:\s+(?i:is|are)|['’]?s)"  # "whats", in haste
_ALONE = r"(?<![\s\S][\s\S])"  # nothing comes first: "my location?", but not "I like my location"
_END = rf"{_NOW}\s*[?.!]*\s*\Z"
_THINGS = "|".join(sorted(map(re.escape, {*KNOWN_THINGS, *ONE_PERSON}), key=len, reverse=True))

_FORMS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(rf"(?:\A|[\s,;:]){pattern}{_END}"), relations)
    for pattern, relations in (
        (
            rf"(?i:where)\s+{_DOES}\s+{_WHO}{_NOW}\s+(?i:live|living|based|moved(?:\s+to)?|reside)",
            (LIVES_IN,),
        ),
        (
            rf"(?i:(?:which|what)\s+(?:city|town|country|place|state|village))\s+{_DOES}\s+{_WHO}"
            rf"{_NOW}\s+(?i:live|living|based|reside)(?:\s+in)?",
            (LIVES_IN,),
        ),
        (rf"(?i:where){_IS}\s+{_WHOSE}\s+(?i:home)", (LIVES_IN,)),
        (
            rf"(?i:(?:which|what)\s+(?:city|town|country|state|village))\s+{_DOES}\s+{_WHO}{_NOW}"
            r"\s+(?i:in)",
            (LIVES_IN,),
        ),
        (
            rf"(?:(?i:what|which|where){_IS}\s+|{_ALONE}){_WHOSE}(?:\s+(?i:current|present))?"
            r"\s+(?i:city|town|location|place\s+of\s+residence|residence)",
            (LIVES_IN,),
        ),
        (rf"(?i:whom?)\s+{_DOES}\s+{_WHO}{_NOW}\s+(?i:report(?:ing)?)\s+(?i:to)", BOSSES),
        (rf"(?i:where)\s+{_WHO}{_NOW}\s+(?i:lives?)", (LIVES_IN,)),
        (rf"(?i:where)\s+{_WHO}{_NOW}\s+(?i:works?)", (WORKS_AT,)),
        (rf"(?i:where)\s+{_DOES}\s+{_WHO}{_NOW}\s+(?i:work|working)", (WORKS_AT,)),
        (
            rf"(?i:(?:which|what)\s+(?:company|firm|employer))\s+{_DOES}\s+{_WHO}{_NOW}"
            r"\s+(?i:work|working)(?:\s+(?i:for|at))?",
            (WORKS_AT,),
        ),
        (rf"(?i:whom?)\s+{_DOES}\s+{_WHO}{_NOW}\s+(?i:work|working)\s+(?i:for)", (WORKS_AT,)),
        (rf"(?i:(?:who|which\s+company|what\s+company)\s+employs)\s+{_WHO}", (WORKS_AT,)),
        (rf"(?i:what|who){_IS}\s+{_WHOSE}\s+(?i:employer|workplace)", (WORKS_AT, "employer")),
        (
            rf"(?i:what)\s+{_DOES}\s+{_WHO}\s+(?i:do)\s+(?i:for\s+(?:a\s+living|work)|professionally)",
            (JOB_TITLE, WORKS_AT),
        ),
        (rf"(?i:how\s+old)\s+{_DOES}\s+{_WHO}", ("age",)),
        (rf"(?i:what){_IS}\s+{_WHOSE}\s+(?i:age)", ("age",)),
    )
)
_FAVOURITE = re.compile(
    rf"(?:(?:\A|\s)(?i:what|which|who){_IS}\s+{_WHOSE}\s+|\A\s*(?:(?i:my)\s+)?)(?i:fav(?:ou?rite|e)?)"
    rf"\s+(?P<kind>[\w -]{{2,40}}?){_END}"
)
_THING = re.compile(
    rf"(?:\A|\s)(?i:what|which|who|when){_IS}\s+{_WHOSE}(?:\s+(?i:new|current))?"
    rf"\s+(?P<thing>(?i:{_THINGS})){_END}"
)


def asked_claims(question: str) -> list[AskedClaim]:
    """Return which claims a question asks for; none for most questions."""
    if len(question) > QUESTION_CHARS_MAX:
        return []
    return list(dict.fromkeys(_found(question)))


def _found(question: str) -> Iterator[AskedClaim]:
    for form, relations in _FORMS:
        if match := form.search(question):
            yield AskedClaim(_owner(match), relations)
    if match := _FAVOURITE.search(question):
        kinds = SAME_KIND.get(match["kind"].lower(), (match["kind"],))
        yield AskedClaim(_owner(match), tuple(map(favourite_of, kinds)))
    if match := _THING.search(question):
        relation = relation_of(match["thing"])
        more: tuple[str, ...] = (WORKS_AT,) if relation == JOB_TITLE else ()
        if relation in BOSSES:
            more = tuple(word for word in BOSSES if word != relation)
        yield AskedClaim(_owner(match), (relation, *more))


def _owner(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return groups.get("who") or groups.get("whose") or ""
