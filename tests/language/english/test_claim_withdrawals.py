"""Withdrawn: what a message takes back, it never claimed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import worlddb
from language.english.scoring import drafted
from worlddb.claims.claim_ends import claims_of

TAKEN_BACK = (
    "I live in Rome. Just kidding!",
    "I work at Kolibri now. April fools!",
    "I work at Kolibri. My manager is Anna. lol jk",
    "My manager is Anna. haha no it's still Tom",
    "I'm now a nurse. In the game, I mean.",
    "My favourite colour is red. Not really.",
    "I moved to Oslo. That's what I told Tom anyway.",
    "I moved to Paris. Well, I wish.",
    "My phone number is 555-0100-200. wait no, that's Tom's",
    "My email is a.b@kolibri.example. Hang on, that's not right",
    "My wife is Anna. Sorry, I meant sister.",
    "I live in Rome. Only till June though.",
    "My girlfriend is Nina. Haha just joking, still single",
    "My address is 5 High Street. Oops, wrong one",
    "Tom's like, I work at Kolibri",
    "I live in Oslo, my mum reckons",
    "I moved to Oslo. Joke.",
    "I moved to Oslo. Gotcha!",
    "I moved to Oslo. I'm lying.",
    "I moved to Oslo. Fooled you!",
    "I moved to Oslo. Haha, no.",
    "I moved to Oslo. Yeah right.",
    "My manager is Anna. It's not Anna.",
    "My manager is Anna. No, I didn't mean that.",
)
MEANT = (
    "I live in Rome. No pets though.",
    "I live in Rome. Not the nicest part.",
    "I live in Rome. It's Tom's hometown.",
    "I moved to Oslo. No regrets.",
    "I work at Tern. Maybe I should ask for a raise.",
    "My manager is Anna. Sorry for the late reply!",
    "My wife's name is Anna. Just so you know!",
    "My manager is Anna now. Sorry, I forgot to tell you.",
    "My manager is Anna now. It's not Sarah anymore.",
    "My manager is Anna now. Hold on, I have a call.",
    "My manager is Anna now. Apparently, Sarah left.",
    "I moved to Oslo. It's not cheap.",
    "I moved to Oslo. That's not a joke.",
    "I moved to Oslo. That's what I always wanted.",
    "I moved to Oslo. I mean, what a city!",
    "I moved to Oslo. At least the weather is better.",
    "I moved to Oslo. No, I don't miss Rome.",
    "I moved to Oslo. Not really missing Rome.",
    "I moved to Oslo. For now, please remind me to buy milk.",
    "I moved to Oslo. Until next time!",
    "I moved to Oslo. I'm lying on the beach.",
)


def claimed(text: str) -> list[str]:
    return [claim.value for claim in claims_of(drafted(text)) if claim.value or claim.was]


@pytest.mark.parametrize("text", TAKEN_BACK)
def test_what_the_same_message_takes_back_is_not_claimed(text: str) -> None:
    assert claimed(text) == []


@pytest.mark.parametrize("text", MEANT)
def test_a_remark_that_follows_takes_nothing_back(text: str) -> None:
    assert len(claimed(text)) == 1


def test_a_joke_ends_nothing_in_a_memory() -> None:
    with worlddb.Memory(":memory:") as memory:
        then = datetime(2026, 1, 3, tzinfo=UTC)
        home = memory.write("I live in Leeds.", user_id="ada", at=then)
        joke = memory.write("I moved to Paris. Only joking!", user_id="ada")
        assert joke.superseded == ()
        assert memory.read(home.id).valid_to is None
