"""Claim relations: what somebody has one of at a time, from `relations.txt`.

Each thing has a relation and a kind of value; several words may name one thing.
"""

from __future__ import annotations

from typing import NamedTuple

from worlddb.language.english.english_words import listed
from worlddb.language.word_lists import sections

LIVES_IN = "lives in"
WORKS_AT = "works at"
JOB_TITLE = "job title"
AGE = "age"


class Thing(NamedTuple):
    """What somebody has one of: its relation, and the kind of value it has."""

    relation: str
    kind: str


_RELATIONS = sections("language.english", "relations.txt")
THINGS = {
    word: Thing(relation, kind) for kind, relation, *words in _RELATIONS["things"] for word in words
}
PLAIN_KINDS = listed("relations", "favourites plain")
OCCUPATION_NOT = listed("relations", "occupations not")
OCCUPATION_BESIDE = listed("relations", "occupations beside")
HABITS = {"eat": "eating", "drink": "drinking", "smoke": "smoking", "vape": "vaping"}
HABIT_OF = {form: verb for verb, doing in HABITS.items() for form in (verb, f"{verb}s", doing)}
PREFERENCES = {
    (way, thing): (relation, value)
    for relation, value, ways, things in _RELATIONS["preferences"]
    for way in ways.split(",")
    for thing in things.split(",")
}


def thing_of(words: str) -> Thing:
    """Return what one's own thing is, from the words for it."""
    return THINGS[" ".join(words.lower().split())]


def favourite_of(kind: str) -> str:
    """Return the relation of somebody to their favourite of a kind."""
    plain = " ".join(kind.lower().split())
    return f"favorite {plain}".replace("colour", "color").replace("flavour", "flavor")


class Frame(NamedTuple):
    """A pattern that a home or a firm follows, and what it says of it.

    Either it is `over`, perhaps only if "any more" follows (`denied`); or it holds, perhaps only
    if it says for how long (`lasts`).
    """

    pattern: str
    relation: str
    over: bool = False
    denied: bool = False
    lasts: bool = False


STATES = (
    Frame("LIVES_NO_MORE", LIVES_IN, over=True),
    Frame("WORKS_NO_MORE", WORKS_AT, over=True),
    Frame("LIVES_NOT", LIVES_IN, over=True, denied=True),
    Frame("WORKS_NOT", WORKS_AT, over=True, denied=True),
    Frame("LIVES", LIVES_IN),
    Frame("LIVED", LIVES_IN, lasts=True),
    Frame("WORKS", WORKS_AT),
    Frame("WORKED", WORKS_AT, lasts=True),
)
