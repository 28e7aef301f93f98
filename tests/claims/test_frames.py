"""Frames: texts that say the same with another value are linked, and nothing ends."""

from __future__ import annotations

import pytest

from worlddb import Memory

EARLY, LATE = "2026-03-01T10:00:00Z", "2026-03-20T10:00:00Z"


@pytest.fixture
def memory() -> Memory:
    return Memory(":memory:", embedder="none", user_id="ada")


def linked(memory: Memory) -> set[tuple[str, str]]:
    """Return the conflicts as (newer, older) texts."""
    get = memory.db.get
    return {(get(it.left).content, get(it.right).content) for it in memory.db.conflicts()}


def test_another_value_of_the_same_frame_is_linked_and_nothing_ends(memory: Memory) -> None:
    old = memory.write("The budget is 40k.", at=EARLY)
    new = memory.write("The budget is 60k.", at=LATE)
    assert linked(memory) == {("The budget is 60k.", "The budget is 40k.")}
    assert memory.db.get(old.id).valid_to is memory.db.get(new.id).valid_to is None
    hits = memory.recall("What is the budget?")
    assert [hit.id for hit in hits] == [new.id, old.id]
    assert all(len(hit.conflicts) == 1 for hit in hits)
    assert [doubt.by for doubt in hits[1].maybe_outdated] == [new.id]
    assert memory.db.check() == []


@pytest.mark.parametrize("language", ["de", "ja", "es", "it", "pt", "ru", "fr", "amount"])
def test_frames_need_no_grammar_of_the_language(memory: Memory, language: str) -> None:
    old, new = {
        "de": ("Die Sitzung ist am Montag.", "Die Sitzung ist jetzt am Dienstag."),
        "ja": ("予算は四万です", "予算は六万です"),
        "es": ("La reunión es el lunes.", "La reunión es el martes."),
        "it": ("Il codice del cancello è 4711.", "Il codice del cancello è 8832."),
        "pt": ("A diretora do museu é Marta Gil.", "A diretora do museu é Rosa Lima."),
        "ru": ("Директор музея — Анна Петрова.", "Директор музея — Ольга Белова."),
        "fr": ("Il habite au numéro 12.", "Il habite au numéro 14."),
        "amount": ("Das Budget beträgt 40.000 Euro.", "Das Budget beträgt 60.000 Euro."),
    }[language]
    memory.write(old, at=EARLY)
    memory.write(new, at=LATE)
    assert linked(memory) == {(new, old)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ich mag Kaffee.", "Ich mag Tee."),
        ("Luc habite à Lyon.", "Marie habite à Lyon."),
        ("Ayer comí paella.", "Ayer comí tortilla."),
        ("Ho comprato pane e vino.", "Ho comprato pane e latte."),
        ("Mi piace il caffè.", "Mi piace il tè."),
        ("Я люблю кофе.", "Я люблю чай."),
        ("Иван живёт в Туле.", "Мария живёт в Туле."),
        ("昨日パンを買いました。", "昨日牛乳を買いました。"),
        ("Der Zug nach Bonn fährt um 9 Uhr.", "Der Zug nach Ulm fährt um 9 Uhr."),
    ],
)
def test_what_can_both_be_so_is_not_linked_in_any_language(
    memory: Memory, one: str, other: str
) -> None:
    memory.write(one, at=EARLY)
    memory.write(other, at=LATE)
    assert linked(memory) == set()


def test_the_newer_one_is_the_one_said_later_not_the_one_written_later(memory: Memory) -> None:
    memory.write("The budget is 60k.", at=LATE)
    memory.write("The budget is 40k.", at=EARLY)
    assert linked(memory) == {("The budget is 60k.", "The budget is 40k.")}


def test_a_series_is_a_chain(memory: Memory) -> None:
    for month in (1, 2, 3, 5, 4):
        memory.write(f"The budget is {month}0k.", at=f"2026-0{month}-01T00:00:00Z")
    pairs = {(f"The budget is {one + 1}0k.", f"The budget is {one}0k.") for one in range(1, 5)}
    # May was linked with March before April was known.
    assert linked(memory) == pairs | {("The budget is 50k.", "The budget is 30k.")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I like tea.", "I like coffee."),
        ("The budget is 40k.", "The budget is 40k!"),
        ("The budget of the house is 40k.", "The budget of the garden is 5k."),
        ("Is the budget 40k?", "Is the budget 60k?"),
    ],
)
def test_what_may_both_be_so_is_not_linked(memory: Memory, old: str, new: str) -> None:
    memory.write(old, at=EARLY)
    memory.write(new, at=LATE)
    assert linked(memory) == set()


def test_scopes_and_speakers_are_apart(memory: Memory) -> None:
    memory.write("The budget is 40k.", user_id="ben", at=EARLY)
    memory.write("The budget is 60k.", at=LATE)
    chat = [
        ("Ana", "My budget is 40k."),
        ("Ben", "My budget is 60k."),
        ("Ana", "My budget is 70k."),
    ]
    memory.write(messages=[{"speaker": who, "content": text} for who, text in chat])
    assert linked(memory) == {("My budget is 70k.", "My budget is 40k.")}


def test_a_text_that_was_amended_or_retired_is_no_rival(memory: Memory) -> None:
    first = memory.write("The budget is 40k.", at=EARLY)
    second = memory.amend(first.id, "The budget is 50k.")
    assert linked(memory) == set()
    memory.retire(second.id)
    memory.write("The budget is 60k.")
    assert linked(memory) == set()


def test_a_functional_claim_ends_the_older_one_and_needs_no_link(memory: Memory) -> None:
    memory.write("I live in Rome.", at=EARLY)
    memory.write("I live in Oslo.", at=LATE)
    assert len(memory.list()) == 1
    assert memory.db.conflicts(include_settled=True) == []
