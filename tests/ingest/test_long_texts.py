"""Long texts: the time to read one is linear in its length, and a write has a bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import product
from random import Random

import pytest

from worlddb import Memory
from worlddb.claims import claim, claim_ends
from worlddb.claims.claim import Standing, replaces
from worlddb.ingest.extractors import RulesExtractor
from worlddb.model.records import Message

AT = datetime(2026, 5, 1, tzinfo=UTC)
SYLLABLES = ("ka", "lo", "mi", "ren", "tor", "sha", "vel", "din", "gar", "pol")
ENGLISH = "My friend and I were at the house of the people, and they are in the garden with us. "
SHAPES = {
    "one claim again and again": "I live in Rome. ",
    "names without end": "Ada Bob Carl Dora ",
    "initials": "USA (United States of America) ",
    "roles": "my sister Anna's friend Bob, ",
    "dates": "on 3 May 2021 and next Tuesday ",
    "no full stop": "I live in Rome and I work at Tern and ",
    "lines": "- I live in Rome\n",
    "one letter": "a",
    "quotes": "\"I live in Rome\" 'he said' ",
}


def seconds(work: Callable[[], object]) -> float:
    """Return the processor time of this thread, so that other programs do not count."""
    began = time.thread_time()
    work()
    return time.thread_time() - began


def diary(sentences: int) -> str:
    """Return a text of many different names."""
    random = Random(1)

    def name() -> str:
        return "".join(random.choice(SYLLABLES) for _ in range(3)).capitalize()

    return " ".join(
        f"{name()} {name()} moved to {name()}ville, where I met my friend {name()}."
        for _ in range(sentences)
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_text_takes_about_four_times_as_long(shape: str) -> None:
    def read(size: int) -> float:
        text = ENGLISH * 20 + SHAPES[shape] * (size // len(SHAPES[shape]))
        return seconds(lambda: RulesExtractor().extract([Message(text=text)], AT))

    read(1_000)  # Lists and patterns are loaded by the first one.
    # The least of several: beside other programs even processor time is noisy.
    short = min(read(20_000) for _ in range(3))
    assert any(read(80_000) < 10 * max(short, 0.02) for _ in range(3))


def test_names_that_are_known_are_found_in_linear_time() -> None:
    def again(sentences: int) -> float:
        text = diary(sentences)
        with Memory(":memory:", embedder="none", recluster="off") as memory:
            memory.write(text, user_id="ada")
            return seconds(lambda: memory.write(f"{text} That is all.", user_id="ada"))

    again(50)
    # It was quadratic: 5 times the text took 16 times as long.
    assert any(again(2_500) < 13 * again(500) for _ in range(3))


def test_what_is_over_the_bound_is_written_at_once_and_read_from_the_queue() -> None:
    text = diary(1 + RulesExtractor.chars_max // 60)
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        written = memory.write(text, user_id="ada")
        assert written.created
        assert written.entities == ()
        assert f"the limit is {RulesExtractor.chars_max:,}" in (written.pending or "")
        assert memory.read(written.id).text == text
        [waiting] = memory.db.pending()
        assert (waiting.id, waiting.extractor, waiting.attempts) == (written.id, "rules", 0)
        done = memory.db.extract_pending("rules", recluster="off")
        assert done.done == (written.id,)
        assert memory.db.pending() == []
        assert memory.db.edges(written.id, types=["refers_to"])


def test_a_chat_is_bounded_as_a_whole() -> None:
    chat = [{"role": "user", "content": "I live in Rome. " * 400}] * 50
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        assert memory.write(messages=chat, user_id="ada").pending
        assert memory.write(messages=chat[:2], user_id="bob").pending is None


@pytest.mark.parametrize("towns", [1, 400])
def test_claims_of_a_chat_are_compared_with_a_few_others_each(
    towns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All pairs were compared: a chat of 5,000 short messages took a minute."""
    compared = 0

    def counted(new: Standing, old: Standing) -> bool:
        nonlocal compared
        compared += 1
        return replaces(new, old)

    for module in (claim, claim_ends):
        monkeypatch.setattr(module, "replaces", counted)
    names = ["".join(word).capitalize() for word in product(SYLLABLES, repeat=3)]
    chat = [{"role": "user", "content": f"I live in {names[n % towns]}."} for n in range(400)]
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write(messages=chat, user_id="ada")
        assert len(memory.recall("Where do I live?", user_id="ada")) > 0
    assert 399 <= compared <= 400 * 64  # not 400 * 400


def test_a_message_counts_although_it_is_short() -> None:
    chat = [{"role": "user", "content": "Hi."}] * (1 + RulesExtractor.chars_max // 100)
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        assert "2,622 messages" in (memory.write(messages=chat, user_id="ada").pending or "")
