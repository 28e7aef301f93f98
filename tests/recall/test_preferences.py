"""Preferences and standing instructions take part where advice or a task is asked for."""

from __future__ import annotations

import pytest

from worlddb import Memory, RecallSettings
from worlddb.language.ranking_features import wants_advice
from worlddb.recall.hit_order import preference_in

SAID = [
    "Always put the metric units first when I ask about cooking.",
    "I prefer trains to planes whenever there is a night connection.",
    "The dentist appointment was moved to the ninth.",
    "Our flight to Porto left two hours late last summer.",
    "We had soup at the station in Milan.",
    "The oven in the new flat is electric and rather small.",
    "My sister sent me a recipe for lemon cake with six eggs.",
    "I paid forty euros for the pan.",
    "Leo wants to learn how to bake bread.",
    "The kitchen scale needs new batteries.",
]


@pytest.mark.parametrize(
    "text",
    [
        "I prefer tea to coffee.",
        "Never call me before nine.",
        "Please always answer in bullet points.",
        "Thanks a lot! From now on write dates like 2024-05-01.",
        "I'm trying to keep it small, so I'd rather have few dependencies.",
        "Ich bevorzuge kurze Antworten.",
        "Antworte immer auf Deutsch.",
        "Prefiero viajar en tren.",
        "Je préfère le thé.",
        "我不喜欢香菜。",
        "返事は必ず短くしてください。必ず敬語で。",
    ],
)
def test_a_preference_or_a_standing_instruction_is_recognised(text: str) -> None:
    assert preference_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "The train left at nine.",
        "She has always lived in Rome.",
        "They never found the key.",
        "Der Zug fuhr um neun ab.",
        "昨天下雨了。",
    ],
)
def test_what_merely_tells_something_is_no_preference(text: str) -> None:
    assert not preference_in(text)


def test_a_wish_that_was_raised_is_not_left_out_for_its_other_words() -> None:
    with Memory(":memory:") as memory:
        for text in SAID:
            memory.write(text, user_id="ada")
        memory.write("Never use more than four ingredients.", user_id="ada")
        found = memory.recall("Can you suggest a dessert?", user_id="ada", min_confidence=0.03)
        plain = RecallSettings(preferences=False)
        without = memory.db.recall("Can you suggest a dessert?", settings=plain)
    by_text = {hit.node.content: hit.confidence for hit in without}
    assert by_text.get("Never use more than four ingredients.", 0.0) < 0.03
    assert "Never use more than four ingredients." in [hit.node.content for hit in found]
    assert all(hit.confidence <= found.confidence for hit in found)


def test_the_two_nearest_instructions_have_places_behind_the_best_hits() -> None:
    orders = ["Never use more than four ingredients.", "Always give the temperature in Celsius."]
    with Memory(":memory:") as memory:
        for text in [*SAID[2:], *orders]:
            memory.write(text, user_id="ada")
        question = "How should I bake a lemon cake in my small oven?"
        found = [hit.node.content for hit in memory.recall(question, user_id="ada")]
        plain = RecallSettings(preferences=False)
        before = [
            hit.node.content for hit in memory.recall(question, user_id="ada", settings=plain)
        ]
    assert set(found[3:5]) == set(orders)
    assert found[:3] == [text for text in before if text not in orders][:3]
    assert not set(orders) <= set(before[:5])


@pytest.mark.parametrize(
    "question",
    [
        "Can you suggest a drink?",
        "How should I organise my kitchen?",
        "What tools would you recommend?",
        "Kannst du mir einen Film empfehlen?",
        "¿Qué libro me recomiendas?",
        "能推荐一家餐厅吗？",
    ],
)
def test_a_question_for_advice_or_a_task_is_recognised(question: str) -> None:
    assert wants_advice(question)


@pytest.mark.parametrize(
    "question",
    [
        "What did I order last Friday?",
        "Where do I live?",
        "Can you remind me what the code was?",
        "Could you summarise our conversations so far?",
        "Wann habe ich den Wagen gekauft?",
    ],
)
def test_a_question_for_what_was_said_is_none(question: str) -> None:
    assert not wants_advice(question)


def test_an_instruction_has_a_place_among_the_first_hits_of_a_task_and_of_nothing_else() -> None:
    off = RecallSettings(preferences=False)
    with Memory(":memory:") as memory:
        for text in SAID:
            memory.write(text, user_id="ada")
        task = "Can you give me a recipe for bread that I can bake in the small oven of the flat?"
        before = [hit.node.content for hit in memory.recall(task, user_id="ada", settings=off)]
        after = memory.recall(task, user_id="ada")
        texts = [hit.node.content for hit in after]
        assert before.index(SAID[0]) > 3
        assert texts.index(SAID[0]) == 3
        assert [text for text in texts if text != SAID[0]] == [
            text for text in before if text != SAID[0]
        ]
        lifted = after[texts.index(SAID[0])]
        assert lifted.weighed["preference"] > 0
        assert abs(sum(lifted.weighed.values()) - lifted.score) < 1e-9
        fact = "What did I pay for the pan in the kitchen?"
        found = [
            [hit.id for hit in memory.recall(fact, user_id="ada", settings=settings)]
            for settings in (off, None)
        ]
        assert found[0] == found[1]


def test_a_preference_about_something_else_is_not_lifted() -> None:
    with Memory(":memory:") as memory:
        for text in SAID:
            memory.write(text, user_id="ada")
        found = memory.recall("Can you give me a recipe for lemon cake?", user_id="ada")
        assert not any(
            hit.weighed.get("preference", 0) > 0 for hit in found if hit.node.content == SAID[1]
        )
