"""Recency: of two memories that answer alike, the later one comes first, and nothing else moves."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from worlddb import Memory, Recall
from worlddb.language.rival_frames import is_rival
from worlddb.language.statement import statement_of
from worlddb.recall import answer_network
from worlddb.recall.answer_network import enough, new_answers

# An older text, a later text, and a question. In `updates` the later text answers the question; in
# `decoys` it is about something else.
DATA = Path(__file__).parents[2] / "bench" / "data"
PAIRS = json.loads((DATA / "everyday_updates.json").read_text(encoding="utf-8"))
# The last forty of each were written last, when only details of the reading were left to do.
FURTHER = json.loads((DATA / "further_updates.json").read_text(encoding="utf-8"))
FRESH = 40
DECOYS_TOUCHED = 1  # of 74: "The bus leaves at 9 now" after "The train leaves at 8"
EARLY, LATE = "2026-03-01T10:00:00Z", "2026-03-20T10:00:00Z"


def asked(old: str, new: str, question: str, **options: object) -> Recall:
    memory = Memory(":memory:", embedder="none")
    memory.write(old, at=EARLY)
    memory.write(new, at=LATE)
    return memory.recall(question, **options)  # type: ignore[arg-type]


def probability(old: str, new: str, question: str, *others: str) -> float:
    texts = [old, new, *others]
    return new_answers(question, texts, [(0, 1)]).get((0, 1), 0.0)


def is_newer_answer(old: str, new: str, question: str) -> bool:
    return probability(old, new, question) >= enough()


def texts(found: Recall) -> list[str]:
    return [hit.node.content for hit in found]


def test_most_everyday_updates_come_before_what_they_update() -> None:
    right = [texts(asked(*pair))[:1] == [pair[1]] for pair in PAIRS["updates"]]
    assert sum(right) >= 0.8 * len(right)


def test_what_is_about_something_else_is_not_touched() -> None:
    touched = [pair for pair in PAIRS["decoys"] if any(hit.maybe_outdated for hit in asked(*pair))]
    assert len(touched) <= DECOYS_TOUCHED


def test_further_updates_are_read_as_such_and_further_decoys_are_not() -> None:
    def is_read(old: str, new: str, question: str) -> bool:
        before, after = statement_of(old), statement_of(new)
        assert before is not None
        assert after is not None
        return is_rival(before, after) or is_newer_answer(old, new, question)

    right = [is_read(*pair) for pair in FURTHER["updates"]]
    assert sum(right) >= 0.78 * len(right)
    assert sum(right[-FRESH:]) >= 0.75 * FRESH
    touched = [pair for pair in FURTHER["decoys"] if is_read(*pair)]
    assert len(touched) <= 0.05 * len(FURTHER["decoys"])


def test_pairs_of_everyday_life_are_told_apart() -> None:
    lines = (DATA / "update_pairs_everyday.jsonl").read_text(encoding="utf-8").splitlines()
    items = [json.loads(line) for line in lines[::8]]
    updates = [(it["older"], text, it["question"]) for it in items for text in it["updates"]]
    decoys = [(it["older"], text, it["question"]) for it in items for _, text in it["decoys"]]
    assert sum(is_newer_answer(*it) for it in updates) >= 0.6 * len(updates)
    assert sum(is_newer_answer(*it) for it in decoys) <= 0.05 * len(decoys)


def test_what_was_learned_comes_from_the_pairs_in_the_repository() -> None:
    path = Path(answer_network.__file__).with_name("answer_network.json")
    learned = json.loads(path.read_text(encoding="utf-8"))
    digest = hashlib.sha256()
    for name in learned["data"]:
        digest.update((DATA / name).read_bytes())
    assert learned["data_sha256"] == digest.hexdigest()


@pytest.mark.parametrize(
    ("question", "old", "update", "decoy"),
    [
        (
            "Where do I live?",
            "I live in Bristol.",
            "Moved to Cardiff!",
            "My cousin moved to Cardiff.",
        ),
        (
            "When is the gala?",
            "The gala is on 3 May.",
            "The gala is on 9 May now.",
            "The gala might be on 9 May.",
        ),
        (
            "Wo wohne ich?",
            "Ich wohne in Bremen.",
            "Ich wohne jetzt in Kiel.",
            "Mein Bruder wohnt in Kiel.",
        ),
    ],
)
def test_an_update_is_likelier_than_what_is_said_of_another_or_as_a_doubt(
    question: str, old: str, update: str, decoy: str
) -> None:
    assert probability(old, update, question) > probability(old, decoy, question) + 0.2


EVERYDAY = (
    "I live in Hamburg.",
    "We meet on Tuesdays at 10.",
    "I'm vegetarian.",
    "Our cat is called Miso.",
    "Bought oat milk and rice today.",
    "Finally settled in Lisbon!",
    "Dr. Weber retired, so I go to Dr. Ahmadi these days.",
    "Team sync moved to Thursdays.",
    "I eat fish again.",
    "Cancelled FitX and joined the climbing hall.",
)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Where do I live?", "Finally settled in Lisbon!"),
        ("What is my cat's name?", "Our cat is called Miso."),
        ("When do we meet?", "Team sync moved to Thursdays."),
        ("Am I vegetarian?", "I eat fish again."),
    ],
)
def test_what_has_nothing_to_do_with_it_stays_below_and_the_first_hit_is_the_surest(
    question: str, first: str
) -> None:
    with Memory(":memory:") as memory:
        for day, text in enumerate(EVERYDAY, 1):
            memory.write(text, at=f"2026-03-{day:02}T10:00:00Z")
        found = memory.recall(question, k=3)
    assert texts(found)[0] == first
    sure = [hit.confidence for hit in found]
    assert sure[0] == max(sure)


def test_without_the_word_table_other_words_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = "I drive a Skoda.", "Sold the Skoda, I drive a Zoe now."
    assert is_newer_answer(old, new, "What do I drive?")
    monkeypatch.setattr(answer_network, "static_vectors", lambda texts: None)
    assert new_answers("What do I drive?", [old, new], [(0, 1)]) == {}


def test_many_updates_in_one_store_do_not_mix() -> None:
    memory = Memory(":memory:", embedder="none")
    pairs = PAIRS["decoys"]
    for number, at in ((0, EARLY), (1, LATE)):
        for pair in pairs:
            memory.write(pair[number], at=at)
    marked = {
        pair[0]: hit.maybe_outdated
        for pair in pairs
        for hit in memory.recall(pair[2])
        if hit.node.content == pair[0] and hit.maybe_outdated
    }
    assert len(marked) <= DECOYS_TOUCHED


def test_what_is_said_of_two_names_answers_for_neither() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("The capital of Italy is Rome.", at=EARLY)
        memory.write("The capital of Romania is Bucharest.", at=LATE)
        found = memory.recall("What is the capital of Japan?")
    assert len(found) == 2
    assert not any(hit.maybe_outdated for hit in found)


def test_the_older_answer_stays_and_names_the_newer() -> None:
    found = asked(
        "The alarm code is 2204.", "The alarm code is 7719 now.", "What is the alarm code?"
    )
    new, old = found
    assert new.node.content == "The alarm code is 7719 now."
    assert (new.maybe_outdated, new.outdated, old.outdated) == ((), (), ())
    (doubt,) = old.maybe_outdated
    assert (doubt.by, doubt.since) == (new.id, new.valid_from)
    assert old.valid_to is None
    assert f"maybe outdated by {new.id.short} of 2026-03-20" in old.text


def test_of_three_the_newest_is_first_whatever_was_written_first() -> None:
    memory = Memory(":memory:", embedder="none")
    for year, code in ((2025, 22), (2026, 33), (2024, 11)):
        memory.write(f"The alarm code is {code}.", at=f"{year}-01-01T00:00:00Z")
    found = memory.recall("What is the alarm code?")
    assert texts(found) == [f"The alarm code is {code}." for code in (33, 22, 11)]
    assert [hit.maybe_outdated[0].by for hit in found.hits[1:]] == [found[0].id] * 2


def test_with_one_hit_it_is_the_newer_one() -> None:
    found = asked(
        "The gym closes at 22:00.", "The gym closes at 21:00.", "When does it close?", k=1
    )
    assert texts(found) == ["The gym closes at 21:00."]


@pytest.mark.parametrize("question", ["What was the old alarm code?", "What was the code before?"])
def test_a_question_for_an_earlier_time_keeps_the_order(question: str) -> None:
    found = asked("The old alarm code is 2204.", "The alarm code is 7719 now.", question)
    assert not any(hit.maybe_outdated for hit in found)


def test_the_memories_of_others_are_not_compared() -> None:
    memory = Memory(":memory:", embedder="none")
    memory.write("The alarm code is 2204.", user_id="ada", app_id="home", at=EARLY)
    memory.write("The alarm code is 7719.", user_id="ben", app_id="home", at=LATE)
    found = memory.recall("What is the alarm code?", app_id="home")
    assert len(found) == 2
    assert not any(hit.maybe_outdated for hit in found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The budget is 40k.", "The budget is 60k."),
        ("The chairperson of the club is Ana Ruiz.", "The chairperson of the club is Ana Soto."),
        ("Lee Park was born in the city of Busan.", "Lee Park was born in the city of Seoul."),
        ("Mauro is the head chef.", "Priya is the head chef."),
        ("Die Sitzung ist am Montag.", "Die Sitzung ist am Dienstag."),
        ("予算は4万です", "予算は6万です"),
        ("我的经理是王芳。", "我的经理是李强。"),
        ("Kapı kodu 4711", "Kapı kodu 8822"),
        ("رمز الباب هو 4711", "رمز الباب هو 8822"),
        ("दरवाज़े का कोड 4711 है", "दरवाज़े का कोड 8822 है"),
        ("예산은 40만원입니다", "예산은 60만원입니다"),
    ],
)
def test_one_frame_with_two_values(old: str, new: str) -> None:
    one, other = statement_of(old), statement_of(new)
    assert one is not None
    assert other is not None
    assert is_rival(one, other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("I like tea.", "I like coffee."),
        ("I visited Rome in May.", "I visited Oslo in May."),
        ("Ana plays the position of goalkeeper.", "Ben plays the position of goalkeeper."),
        ("The capital of France is Paris.", "The capital of Spain is Paris."),
        ("The door code of the studio is 4471.", "The door code of the garage is 9032."),
        ("The recipe needs 200 g of sugar.", "The recipe needs 3 eggs."),
        ("Tom is a doctor.", "Tom is a father."),
        ("The car is red.", "The car is fast."),
        ("私はお茶が好きです", "私はコーヒーが好きです"),
        ("The budget is 40k.", "The budget might be 60k."),
        ("Long time no see!", "Long time no talk!"),
        ("I ran 5 km", "I ran 7 km"),
        ("My dog ate 2 apples", "My dog ate 3 apples"),
        ("Anna's hobbies are chess", "Anna's hobbies are tennis"),
        ("Anna is allergic to nuts", "Anna is allergic to milk"),
        ("Ben is my friend", "Tom is my friend"),
        ("La reunión trató de ventas", "La reunión trató de compras"),
        ("私は東京に行きました", "私は京都に行きました"),
        ("我的猫喜欢鱼", "我的猫喜欢肉"),
        ("The budget is 40k.", "The budget is 40k!"),
    ],
)
def test_what_can_both_be_so_is_no_rival(old: str, new: str) -> None:
    one, other = statement_of(old), statement_of(new)
    assert one is not None
    assert other is not None
    assert not is_rival(one, other)


def test_only_the_first_hits_are_compared_by_their_words() -> None:
    before = (
        "How much rent covers water? Our rent does.",
        "Our rent covers water.",
        "Ben asked how much our rent is.",
        "How much our rent is, is our secret.",
    )
    old, new, question = (
        "Our rent is 1,150 euros.",
        "Rent went up to 1,240 euros.",
        "How much is our rent?",
    )
    assert is_newer_answer(old, new, question)
    memory = Memory(":memory:", embedder="none")
    memory.write(old, at=EARLY)
    for text in (new, *before):  # What comes first is not older, so nothing replaces it.
        memory.write(text, at=LATE)
    found = texts(memory.recall(question))
    assert set(found[:4]) == set(before)
    assert found.index(old) < found.index(new)


NOTES = [
    "We deploy the payments service with Helm to the eu-west cluster.",
    "Use pnpm, not npm, in the frontend repo.",
    "CI runs on Buildkite. The build takes 14 minutes.",
    "Priya owns the billing module; Tom reviews her changes.",
    "The API rate limit is 100 requests per second per key.",
    "Tom left the company; Jonas reviews billing changes now.",
    "The flaky test test_checkout_retry fails because of a timezone bug on the runner.",
    "Fixed the timezone bug: runners now use UTC.",
    "Python 3.12 is the minimum version for the backend.",
]


@pytest.mark.parametrize(
    ("question", "marked"),
    [
        ("What's the minimum Python version?", set()),
        ("Who reviews billing changes?", {NOTES[3]}),
        ("What timezone do runners use?", set()),
    ],
)
def test_what_does_not_answer_is_not_marked(question: str, marked: set[str]) -> None:
    memory = Memory(":memory:")
    for day, text in enumerate(NOTES, 1):
        memory.write(text, at=f"2026-03-{day:02}T10:00:00Z")
    found = memory.recall(question, k=len(NOTES))
    assert {hit.node.content for hit in found if hit.maybe_outdated} == marked
