"""Remarks: a statement in a chat is one, however it is written and whatever remark follows it."""

from __future__ import annotations

import pytest

from language.english.scoring import drafted
from worlddb.claims.claim_ends import claims_of

READ: list[tuple[str, str, str, str]] = [
    ("My manager is Sarah, she's really lovely", "manager", "Sarah", ""),
    ("My girlfriend is Nina and she doesn't eat fish", "girlfriend", "Nina", ""),
    ("Actually my manager is now Marcus, Sarah went on mat leave", "manager", "Marcus", ""),
    ("My new boss is Laura, Dave retired", "boss", "Laura", ""),
    ("He's retiring so my new boss is Anna", "boss", "Anna", ""),
    ("First day done. my new manager is Ines, seems chill", "manager", "Ines", ""),
    ("my accountant is Anna, she's a star", "accountant", "Anna", ""),
    ("I moved to Leeds last weekend, sharing a house with Jess", "lives in", "Leeds", ""),
    ("We moved to Leeds yesterday, knackered but happy", "lives in", "Leeds", ""),
    ("I live in Cardiff, renting a room off Gloucester Road", "lives in", "Cardiff", ""),
    ("I moved to Oslo :)", "lives in", "Oslo", ""),
    ("ive just moved to Ghent \u2764\ufe0f", "lives in", "Ghent", ""),
    ("im living in Leeds", "lives in", "Leeds", ""),
    ("i dont live in Rome anymore", "lives in", "", "Rome"),
    ("I live in Turin these days btw", "lives in", "Turin", ""),
    ("Moved to Oslo this week!!", "lives in", "Oslo", ""),
    ("im now working at Ibis, super happy", "works at", "Ibis", ""),
    ("I've just started at Kolibri as a nurse", "works at", "Kolibri", ""),
    ("Started my new job at Kolibri today!", "works at", "Kolibri", ""),
    ("my new number is 0161 496 0333, old one is dead", "phone number", "0161 496 0333", ""),
    ("My cell is 555-010-0200", "phone number", "555-010-0200", ""),
    ("turned 26 today!", "age", "26", ""),
]
# What follows says that it is not so, not for long, or in doubt; or it may be a joke.
UNREAD = """
My manager is Anna, she's filling in for Tom
My manager is Anna, she isn't official yet
My boss is Anna, they tell me
My manager is Anna, Tom is on holiday
My manager is Anna, Tom left early today
I live in Rome, they say
I live in Rome, just for the summer
I live in Rome, working remotely for now
I live in Rome, it's temporary
I live in Rome, it's not forever
I live in Rome, technically
I live in Rome, great in my dreams
My manager is Anna, she seems nice to have
I live in Rome, renting a room for the week
I live in Rome, starting next month
I moved to Oslo, so I thought
I moved to Oslo, getting my stuff next month
I live in Oslo ;)
I live in Oslo :P
I live in Oslo \U0001f602
im in Rome
My number is 12345678
my cell is dead
I started at Tern as a volunteer
turned 40 pages
If he retires so my new boss is Anna
My manager is Anna, it seems
My manager is Anna, looks like
My manager is Anna, he insisted
My manager is Anna, she's a substitute
My manager is Anna, she'll start in May
My manager is Anna, she doesn't exist
My manager is Anna but she hasn't started
My manager is Anna, they have not confirmed it
I live in Rome, she wrote
I live in Rome, I typed as a demo
I live in Rome, that's a lie
I live in Rome, that's my cover story
I live in Rome, it's an example sentence
I live in Rome, I'm lying
I live in Rome, so to speak
I live in Rome, studying there this semester
I live in Rome, sharing an Airbnb with Jess
I moved to Oslo, I came back
I moved to Oslo, it lasted two days
I moved to Oslo, love it, but I'm back in Rome
I work at Tern, hired for six weeks
I work at Tern, it's my side gig
I live in Oslo \U0001f921
I live in Oslo \U0001f914
I live in Oslo \u274c
Started working with Python
""".strip().splitlines()


def told(text: str) -> list[tuple[str, str, str]]:
    return [(claim.relation, claim.value, claim.was) for claim in claims_of(drafted(text))]


@pytest.mark.parametrize(("text", "relation", "value", "was"), READ)
def test_a_statement_is_read_whatever_remark_follows_it(
    text: str, relation: str, value: str, was: str
) -> None:
    assert told(text) == [(relation, value, was)]


@pytest.mark.parametrize("text", UNREAD)
def test_a_remark_that_puts_it_in_doubt_leaves_nothing_to_be_read(text: str) -> None:
    assert told(text) == []


def test_who_is_the_manager_there_ends_no_other_manager() -> None:
    # Claims are what may replace something; this one may only be replaced.
    assert told("I now work at Kolibri. My manager there is Ruth Adeyemi.") == [
        ("works at", "Kolibri", "")
    ]
