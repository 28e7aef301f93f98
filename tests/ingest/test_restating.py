"""Restating: pairs of texts as people and agents write them; one ends the other."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import worlddb
from worlddb.claims.claim import value_key

FIRST = datetime(2026, 6, 1, 12, tzinfo=UTC)
THEN = datetime(2026, 11, 15, 12, tzinfo=UTC)  # a Sunday


def ended(first: str, second: str) -> list[str]:
    """Return what the second text ends of the first."""
    with worlddb.open(":memory:", embedder="none") as db:
        db.ingest(first, at=FIRST, recluster="off")
        told = db.ingest(second, at=THEN, recluster="off")
        return [db.get(ident).content for ident in told.superseded]


ENDING = [
    ("The user lives in Rome.", "The user now lives in Paris."),
    ("User lives in Rome.", "User lives in Paris."),
    ("I live in Rome.", "The user moved to Paris."),
    ("The user lives in Rome.", "I moved to Paris."),
    ("User's favorite food is sushi.", "User's favorite food is pizza."),
    ("The user's name is Ada.", "The user's name is Eve."),
    ("The user's email is ada@x.com.", "The user's email is bob@x.com."),
    ("The user's phone is 555-123-4567.", "My phone number is 555-999-0000."),
    ("The user works at Acme.", "The user works at Beta."),
    ("The user's manager is Sarah Chen.", "The user's manager is Priya Shah."),
    ("Lives in Rome", "Lives in Paris"),
    ("My email is a@x.com.", "My email is b@x.com."),
    ("My email is ada@x.com.", "My email is x.ada@x.com."),
    ("My favorite color is red.", "My favorite color is blue."),
    ("My favorite color is blue.", "My favorite color is red."),
    ("My favorite movie is Alien.", "My favorite movie is The Matrix."),
    ("My favorite movie is Jaws.", "My favorite movie is Heat."),
    ("I live in Rome.", "I moved to Paris last week."),
    ("I live in Rome.", "Last week I moved to Paris."),
    ("I live in Rome.", "I moved to Szolnok."),
    ("I live in Zürich.", "I live in Basel."),
    ("i live in rome", "i moved to paris"),
    ("I am a nurse.", "I am now a teacher."),
    ("I'm a nurse at Acme.", "I'm a teacher now."),
    ("I'm a nurse.", "I was promoted to head nurse."),
    ("The user is a nurse.", "The user is now a teacher."),
    ("I quit Acme and joined Beta.", "I work at Gamma."),
]

BOTH_STAY = [
    ("The user lives in Rome.", "The customer lives in Paris."),
    ("I live in Rome.", "I moved to Marketing."),
    ("I live in Rome.", "I moved to Kubernetes."),
    ("I live in Rome.", "I moved to the Platform team."),
    ("I live in Rome.", "Moved to Falcon."),
    ("I live in Munich.", "I moved to München."),
    ("I live in Zurich.", "I live in Zürich."),
    ("I live in New York.", "I live in NYC."),
    ("I am a nurse.", "I am a teacher."),
    ("I am now a teacher.", "I am a nurse."),
    ("I'm an artist.", "I'm now a teacher."),
    ("I work at Tern.", "I quit Acme and joined Beta."),
    ("I work at Tern.", "I quit Twitter and joined Bluesky."),
    ("I quit Twitter and joined Bluesky.", "I work at Tern."),
    ("My name is Ana.", "My name is Bob."),
    ("My email is A@x.com.", "My email is a@X.com."),
]


@pytest.mark.parametrize(("first", "second"), ENDING)
def test_what_is_said_anew_ends_what_was_said(first: str, second: str) -> None:
    assert ended(first, second) == [first]


@pytest.mark.parametrize(("first", "second"), BOTH_STAY)
def test_what_may_hold_together_stays(first: str, second: str) -> None:
    assert ended(first, second) == []


def test_who_quit_and_joined_ends_the_sentence_about_the_old_work() -> None:
    assert ended("I work at Acme as a nurse.", "I quit Acme and joined Beta.") == ["I work at Acme"]


def test_an_address_is_one_word() -> None:
    assert value_key("A@x.com") == ("a@x.com",)
    assert value_key("A Café") == ("cafe",)


def test_an_end_mark_or_a_first_capital_makes_no_other_memory() -> None:
    memory = worlddb.Memory(":memory:", embedder="none")
    first = memory.write("I like green tea.")
    for text in (
        "I like green tea",
        "i like green tea.",
        "I like green tea!",
        " I like  green tea",
    ):
        again = memory.write(text)
        assert (again.id, again.created) == (first.id, False)
    assert memory.write("I like green tea?").created
    assert memory.write("The code is abC.").created
    assert memory.write("The code is abc.").created
