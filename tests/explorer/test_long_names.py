"""Long names of users and unknown ids: nothing is pushed away, nothing needs sideways scrolling."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from explorer.conftest import Explorer, watched
from faces.http.serving import Site
from worlddb import Memory

LONG = "account-" + "0123456789abcdef" * 6
SCOPE = f"scope={quote(f'user:{LONG}')}"
CLOCKS = "as_of=2026-02-15T23:59:59Z&known_at=2026-03-15T23:59:59Z"
NARROW = 390
UNKNOWN = {"memory": "ab" * 32, "people": "cd" * 32}


@pytest.fixture
def memory(memory: Memory) -> Memory:
    memory.write("I live in Porto.", user_id=LONG)
    return memory


@pytest.mark.parametrize("clocks", ["", CLOCKS])
def test_a_long_name_leaves_the_scope_and_both_clocks_on_one_line(
    explorer: Explorer, clocks: str
) -> None:
    page = explorer.page
    page.set_viewport_size({"width": 1280, "height": 800})
    explorer.open(f"journal?{SCOPE}&{clocks}", f"select[name=scope][title='user {LONG}']")
    page.wait_for_selector(f"select[name=scope] option[value='user:{LONG}']", state="attached")
    middles = page.locator(".top > *").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect())"
        ".map((box) => box.top + box.height / 2)"
    )
    assert len(middles) == 4  # And what tells what the clocks mean.
    assert max(middles) - min(middles) < 10
    shown = page.locator("select[name=scope]")
    assert shown.evaluate("one => getComputedStyle(one).textOverflow") == "ellipsis"
    page.set_viewport_size({"width": NARROW, "height": 800})
    assert shown.bounding_box()["width"] > NARROW / 2


@pytest.mark.parametrize("place", ["worlds", *(f"{page}/{id}" for page, id in UNKNOWN.items())])
def test_a_long_name_or_id_is_broken_on_a_narrow_screen(
    browser: Any, site: Site, memory: Memory, place: str
) -> None:
    narrow = watched(browser, site.url, memory, viewport={"width": NARROW, "height": 800})
    narrow.open(f"{place}?{SCOPE}", ".tree button" if place == "worlds" else ".problem")
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= NARROW
    narrow.page.close()
