"""Asking: which questions ask for what somebody has one of at a time."""

from __future__ import annotations

import pytest

from worlddb.language.ranking_features import AskedClaim, asked_claims


@pytest.mark.parametrize(
    ("question", "owner", "relation"),
    [
        ("Where do I live?", "", "lives in"),
        ("where do i live now", "", "lives in"),
        ("Hey, which city are we based in these days?", "", "lives in"),
        ("Do you remember where I live?", "", "lives in"),
        ("Where's my home?", "", "lives in"),
        ("Where does Anna live?", "Anna", "lives in"),
        ("Where does Sarah Chen work?", "Sarah Chen", "works at"),
        ("Which company employs me?", "", "works at"),
        ("Who do I work for?", "", "works at"),
        ("What's my job?", "", "job title"),
        ("What is my favourite colour?", "", "favorite color"),
        ("What is Anna's e-mail?", "Anna", "email"),
        ("What’s my mobile number?", "", "phone number"),
        ("Who is my dentist?", "", "dentist"),
        ("How old am I?", "", "age"),
        ("What's my current city", "", "lives in"),
        ("What town am I in?", "", "lives in"),
        ("Which country is Anna in now?", "Anna", "lives in"),
        ("my location?", "", "lives in"),
        ("Where am I based?", "", "lives in"),
        ("Who's my boss?", "", "boss"),
        ("Who do I report to?", "", "manager"),
        ("Who does Anna report to?", "Anna", "manager"),
        ("whats my number", "", "phone number"),
        ("wheres my home?", "", "lives in"),
        ("whos my dentist", "", "dentist"),
        ("fav color?", "", "favorite color"),
        ("my favourite band?", "", "favorite band"),
        ("Favourite movie?", "", "favorite film"),
    ],
)
def test_a_question_for_what_one_has_one_of_is_understood(
    question: str, owner: str, relation: str
) -> None:
    found = asked_claims(question)
    assert len(found) == 1
    assert (found[0].owner, found[0].relations[0]) == (owner, relation)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Where did I live before Paris?",
        "Where do I live in summer?",
        "Where do my parents live?",
        "How old is my cat?",
        "Where do I work out?",
        "What town am I in love with?",
        "What town was I in?",
        "I like my location",
        "Did I change my location?",
        "Who do I report bugs to?",
        "Who reports to me?",
        "What did I say about my job?",
        "Who was my manager?",
        "I live in Rome",
        "Where do I live? " * 20,
        "I like my favourite movie",
        "favourite memories of Rome and what we ate there on the first evening?",
    ],
)
def test_what_goes_on_otherwise_is_left_to_its_words(question: str) -> None:
    assert asked_claims(question) == []


def test_whom_one_reports_to_is_asked_for_by_any_of_the_words_for_it() -> None:
    (asked,) = asked_claims("Who is my boss?")
    assert asked.relations == ("boss", "manager", "supervisor")
    (asked,) = asked_claims("Who do I report to?")
    assert set(asked.relations) == {"boss", "manager", "supervisor"}


def test_a_question_for_work_is_answered_by_a_title_or_a_place_of_work() -> None:
    asked = asked_claims("What do I do for a living?")
    assert asked == [AskedClaim("", ("job title", "works at"))]
