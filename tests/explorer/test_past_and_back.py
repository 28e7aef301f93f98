"""Pages about the past tell what held then; and from each memory or name there is a way back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from explorer.conftest import Explorer, watched
from faces.http.serving import serving
from worlddb import Memory

ADA = "scope=user%3Aada"


def test_names_are_listed_at_any_time_and_say_what_held_then(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    march = "as_of=2026-03-15T23%3A59%3A59Z"
    explorer.open(f"people?{ADA}&{march}", "article >> text=Sarah Chen")
    page.fill("main input[type=search]", "arah ch")
    page.wait_for_selector("article >> text=Lisbon", state="detached")
    assert page.locator("article a").all_inner_texts() == ["Sarah Chen"]
    user = next(one for one in memory.interior(type="Entity", user_id="ada") if one.name == "user")
    # It was true then, although it has ended since.
    explorer.open(f"people/{user.id}?{ADA}&{march}", ".line >> text=I live in Hamburg.")
    assert page.locator(".ended").count() == 0
    explorer.open(f"worlds?{ADA}&{march}&start={user.id}", ".graph text:has-text('Sarah Chen')")
    assert page.locator(".graph text:has-text('Lisbon')").count() == 0


def test_a_memory_is_told_as_far_as_it_was_known_and_true(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    [moved] = [one for one in memory.list(user_id="ada") if "Lisbon" in one.text]
    [before] = [
        one
        for one in memory.list(user_id="ada", include_retired=True)
        if one.text == "I live in Hamburg."
    ]
    explorer.open(
        f"memory/{moved.id}?{ADA}&as_of=2026-02-15", "h1 >> text=not true yet on 2026-02-15"
    )
    known = (moved.known_from - timedelta(microseconds=1)).astimezone(UTC).isoformat()
    explorer.open(f"memory/{before.id}?{ADA}&known_at={known.replace('+00:00', 'Z')}", ".claims")
    page.wait_for_load_state("networkidle")
    assert "Lisbon" not in page.inner_text("main")
    assert page.locator("h1 .chip").count() == 0


def test_from_a_memory_there_is_a_way_back_to_the_search_it_was_found_by(
    explorer: Explorer,
) -> None:
    page = explorer.page
    explorer.open(f"memories?{ADA}&q=budget&source=chat", "td.text a.clamp")
    page.click("td.text a.clamp >> nth=0")
    page.click(".body a")
    page.wait_for_selector("h1:has-text('Project Falcon')")
    page.click("a:text-is('← Memories')")
    page.wait_for_selector("td.text >> text=budget")
    assert "q=budget" in page.url
    assert "source=chat" in page.url
    explorer.open(f"worlds?{ADA}&start={'ab' * 32}", ".problem >> text=It is not here")
    explorer.complaints.clear()  # The browser tells of what was not found.


def test_a_search_shows_the_best_first_and_more_on_demand(browser: Any) -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory, serving(memory) as site:
        at = datetime(2026, 1, 1, tzinfo=UTC)
        for number in range(30):
            memory.write(f"Shop {number} opens.", user_id="ada", at=at, extractor="verbatim")
        shown = watched(browser, site.url, memory)
        shown.open(f"memories?{ADA}&q=shop", "text=The best 25")
        assert shown.page.locator("td.text").count() == 25
        shown.page.keyboard.press("n")
        shown.page.wait_for_selector("text=30 memories")
        assert shown.page.locator("td.text").count() == 30
        assert shown.complaints == []
        shown.page.close()
