"""Conformance: the same history in SQLite and in PostgreSQL gives the same hashes and answers."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import worlddb
from property.test_fuzz import Fuzzer, everything_of
from thinning import DEEP
from worlddb import AsOf, Memory, NodeDraft
from worlddb.store.postgres import word_table
from worlddb.store.sqlite import database_file
from worlddb.testing.derived_contract import words

OPERATIONS = 2_000 if DEEP else 120
CHECK_EVERY = 40
TURNS = 120 if DEEP else 14
PEOPLE = ("Ada Lovelace", "Charles Babbage", "Mary Somerville", "Bob")
PLACES = ("Paris", "London", "Berlin", "Turin")
SAYINGS = (
    "{0} moved to {2}.",
    "{0} and {1} met in {2} to talk about engines.",
    "I like {2} better than {3}.",
    "{0} works for {1} since 1840.",
    "My favourite drink is {4}.",
    "Ich wohne mit {0} in {2} und trinke gern {4}.",
)
QUESTIONS = (
    "Where does Ada Lovelace live?",
    "What do I like?",
    "Who met in Paris?",
    "Wo wohne ich?",
)
SECOND = 1_000_000


def test_a_random_history_has_the_same_hashes_and_states_in_both_stores(
    address: str, path: Path
) -> None:
    file, server = Fuzzer(77, str(path)), Fuzzer(77, address)
    try:
        for step in range(1, OPERATIONS + 1):
            file.step()
            server.step()
            assert server.db.log(limit=1, newest_first=True) == file.db.log(
                limit=1, newest_first=True
            )
            if step % CHECK_EVERY == 0:
                file.check()
                server.check()
        assert server.db.log() == file.db.log()
        times = [commit.time for commit in file.db.log()]
        for known in (None, *random.Random(5).sample(times, 3)):
            as_of = AsOf(known=known)
            assert everything_of(server.db, as_of) == everything_of(file.db, as_of)
        lines = list(server.db.export())
        assert lines == list(file.db.export())
        assert server.db.check() == []
    finally:
        file.db.close()
        server.db.close()


class Chat:
    """A user's memories, written by a seed."""

    def __init__(self, address: str) -> None:
        self._rng = random.Random(3)
        self._now = 1_700_000_000 * SECOND
        blinds = random.Random(4).randbytes
        self.memory = Memory(address, clock=lambda: self._now, random_bytes=blinds)
        self._written: list[Any] = []

    def turn(self) -> list[object]:
        """Do one thing; return everything that a caller sees afterwards."""
        rng, memory = self._rng, self.memory
        self._now += 3_600 * SECOND
        kind = rng.choice(("write", "write", "write", "amend", "retire"))
        text = rng.choice(SAYINGS).format(
            *rng.sample(PEOPLE, 2), *rng.sample(PLACES, 2), rng.choice(("tea", "coffee"))
        )
        if kind == "write" or not self._written:
            self._written.append(memory.write(text, user_id=rng.choice(("ada", "eve"))).id)
        elif kind == "amend":
            chosen = self._written.pop(rng.randrange(len(self._written)))
            self._written.append(memory.amend(chosen, text).id)
        else:
            memory.retire(self._written.pop(rng.randrange(len(self._written))))
        assert memory.db.wait(60)
        return self.seen()

    def seen(self) -> list[object]:
        """Return the last commit, and what is recalled and listed."""
        memory = self.memory
        question = QUESTIONS[len(memory.db.log()) % len(QUESTIONS)]
        return [
            memory.db.log(limit=1, newest_first=True),
            memory.recall(question, user_id="ada").hits,
            memory.recall("engines", user_id=["ada", "eve"]).hits,
            memory.list(user_id="ada"),
            memory.db.proposals(None),
        ]


def test_memories_are_recalled_alike_after_every_write(address: str) -> None:
    file, server = Chat(":memory:"), Chat(address)
    with file.memory, server.memory:
        for _ in range(TURNS):
            assert server.turn() == file.turn()
        for commit in file.memory.db.log()[:: max(TURNS // 4, 1)]:
            then = [
                chat.memory.recall(QUESTIONS[0], user_id="ada", known_at=commit.time).hits
                for chat in (file, server)
            ]
            assert then[0] == then[1]
        assert server.memory.db.check() == []


TEXTS = (
    "the blue house by the lake", "a house that was painted blue", "C++ and don't-care houses",
    "Blue blue blue", "日本 語 and a house", "user@example.com wrote 3.5 letters", "",
)  # fmt: skip
ASKED: tuple[Callable[[Any], object], ...] = (
    lambda index: index.match(words("blue house"), 99),
    lambda index: index.match(words("letters nobody blue"), 2),
    lambda index: index.match_all(words("blue house"), False, 99),
    lambda index: index.match_all(words("blue house"), True, 99),
    lambda index: index.match(words("C++ don't-care"), 99),
    lambda index: index.match(words("user@example.com 3.5 日本"), 99),
    lambda index: index.latest(words("house the"), 9),
    lambda index: index.latest(words("house blue"), 99),
    lambda index: index.latest(words("the blue title"), 3),
    lambda index: index.latest(words("title"), 2),
    lambda index: index.counts(words("blue house letters zebra c++ title"), 999),
    lambda index: index.named(" ".join(words("title 3"))),
    lambda index: index.average_length(),
)


@pytest.mark.parametrize("times", [1, 20], ids=["rows", "lists"])
def test_the_text_indexes_of_both_stores_find_and_score_alike(
    address: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (database_file, word_table):
        monkeypatch.setattr(module, "COUNTED_MAX", 50)  # Lists that go beyond it.
    drafts = [
        NodeDraft(type="Fact", name=f"title {number}", content=text)
        for number, text in enumerate(TEXTS * times)
    ]
    answers = []
    for where in (":memory:", address):
        with worlddb.open(where) as db:
            with db.transaction(bulk=True) as tx:
                first, *_ = tx.create_nodes(drafts)
            with db.transaction() as tx:
                tx.create_nodes(drafts[:3])
            with db.transaction(bulk=True) as tx:
                *_, last, _ = tx.create_nodes(drafts)
            for gone in (None, first, last):
                if gone is not None:
                    db.erase(gone)
                with db.engine.store.read() as reader:
                    answers.append([ask(reader.texts) for ask in ASKED])
            assert db.check() == []
    assert answers[3:] == answers[:3]


def test_a_list_of_words_that_was_changed_is_found_and_mended(address: str) -> None:
    drafts = [NodeDraft(type="Fact", content=text) for text in TEXTS * 20]
    with worlddb.open(address) as db:
        with db.transaction(bulk=True) as tx:
            tx.create_nodes(drafts)
        with db.engine.store.derive() as session:
            sql = "UPDATE words SET places = set_byte(places, length(places) - 4, 9)"
            own: Any = session
            own.session.execute(f"{sql} WHERE word = 'hous' AND length < 0")
        assert any("words" in problem for problem in map(str, db.check()))
        assert db.engine.store.mend()
        assert db.check() == []
