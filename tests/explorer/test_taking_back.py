"""Each decision, and each action on several memories, is taken back by one key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from explorer.conftest import Explorer, watched
from faces.http.serving import serving
from patience import until
from worlddb import Memory

ADA = "scope=user%3Aada"


def state(memory: Memory) -> tuple[Any, ...]:
    """Return what waits and what holds, without what an undo rightly makes anew: ids and times."""
    return (
        sorted(one.text for one in memory.list(user_id="ada", limit=100)),
        sorted(one.text for one in memory.list(user_id="ada", where={"pinned": True})),
        sorted((one.left_name, one.right_name) for one in memory.proposals(user_id="ada")),
        len(memory.conflicts(user_id="ada").conflicts),
        sorted(one.text for one in memory.quarantine(user_id="ada").memories),
    )


def hold_back(memory: Memory) -> None:
    memory.set_trust({"web": "quarantine"}, user_id="ada")
    memory.write("The shop opens at nine.", user_id="ada", origin="web")


def expire(memory: Memory) -> None:
    memory.write("The guest code is 9931.", user_id="ada", ttl="5d")


def nothing(memory: Memory) -> None:
    pass


DECISIONS: dict[str, tuple[Callable[[Memory], None], str, str]] = {
    "merge": (nothing, "Jonathan Smyth", "a"),
    "keep apart": (nothing, "Jonathan Smyth", "r"),
    "first is right": (nothing, "40k", "1"),
    "second is right": (nothing, "40k", "2"),
    "both are right": (nothing, "40k", "b"),
    "release": (hold_back, "The shop opens", "a"),
    "reject": (hold_back, "The shop opens", "r"),
    "pin what fades": (nothing, "never recalled", "p"),
    "retire what fades": (nothing, "never recalled", "r"),
    "end what expires": (expire, "The guest code", "r"),
}


@pytest.mark.parametrize("name", DECISIONS)
def test_a_decision_is_taken_back_by_one_key(browser: Any, memory: Memory, name: str) -> None:
    prepare, said, key = DECISIONS[name]
    prepare(memory)
    before = state(memory)
    with serving(memory) as site:
        shown = watched(browser, site.url, memory)
        shown.open(f"inbox?{ADA}", f"article >> text={said}")
        page = shown.page
        page.wait_for_selector("h2:has-text('Fading')")
        card = page.locator("article", has_text=said).first
        while "chosen" not in card.get_attribute("class").split():
            page.keyboard.press("j")
        page.keyboard.press(key)
        page.wait_for_selector(".toast button >> text=Undo")
        assert state(memory) != before
        page.keyboard.press("u")
        until(lambda: state(memory) == before)
        assert shown.complaints == []
        page.close()


def test_several_that_were_retired_live_again_by_one_key(explorer: Explorer) -> None:
    page, before = explorer.page, state(explorer.memory)
    explorer.open(f"memories?{ADA}", "td.text")
    page.check("input[aria-label='Choose all on this page']")
    page.click("text=Retire them")
    page.wait_for_selector(".toast >> text=memories retired")
    assert not len(explorer.memory.list(user_id="ada"))
    page.keyboard.press("u")
    page.wait_for_selector(".toast >> text=Taken back")
    assert state(explorer.memory) == before


def test_a_split_of_a_name_is_taken_back(explorer: Explorer) -> None:
    memory, page = explorer.memory, explorer.page
    memory.write("Sarah Chen plays the oboe.", user_id="ada")

    def bearers() -> list[str]:
        found = memory.interior(type="Entity", user_id="ada", limit=100)
        return [str(node.id) for node in found if node.name == "Sarah Chen"]

    [name] = bearers()
    explorer.open(f"people/{name}?{ADA}", ".line li")
    page.check(".line li:has-text('oboe') input")
    page.click("text=They speak of another of this name")
    page.wait_for_selector(".toast >> text=Split")
    assert len(bearers()) == 2
    page.keyboard.press("u")
    page.wait_for_selector(".toast >> text=Taken back")
    page.wait_for_selector(".line li >> text=oboe")
    assert bearers() == [name]
