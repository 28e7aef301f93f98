"""What holds on every page: both clocks, no jumps, no button for who may only read, errors told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import worlddb
from explorer.conftest import Explorer, watched
from explorer.test_pages import places
from faces.http.serving import Site, serving
from worlddb import Memory
from worlddb.faces.http.access_tokens import AccessToken, make_access, token_digest

ADA = "scope=user%3Aada"
FOLDER = Path(worlddb.__file__).parent / "faces" / "http" / "pages"
TOKEN = "a-token-that-only-reads"
SHIFT_MAX = 0.1  # Above it, Chromium's own report calls a page one that jumps.
CHANGING = re.compile(
    r"^(Add|Amend|Pin|Unpin|Retire|Erase|Undo|Create|Merge|Drop|Refuse|Release|Reject"
    r"|The same|Not the same|The first is right|The second is right|Both are right|End it"
    r"|Remember|Write|Rotate|Revoke|They speak)"
)
SHIFTS = """() => { window.shifted = 0; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.shifted += one.value;
}).observe({ type: "layout-shift", buffered: true }); }"""


def addresses(memory: Memory) -> dict[str, str]:
    """Return the address of every page as of ada, with what it shows when it is loaded."""
    return {
        place if "scope=" in place else f"{place}?{ADA}": element
        for place, element in places(memory).items()
    }


def test_both_clocks_are_on_every_page_and_go_along_to_the_next(explorer: Explorer) -> None:
    page = explorer.page
    then = "as_of=2026-07-15T23%3A59%3A59Z"
    for place in addresses(explorer.memory):
        explorer.open(f"{place}&{then}", ".past >> text=what was true on 2026-07-15")
        for clock in ("as_of", "known_at"):
            assert page.locator(f"input[type=range][name={clock}]").count() == 1, place
        links = page.locator("nav a.item").evaluate_all("all => all.map((one) => one.hash)")
        assert all(then in link for link in links), place
    page.click(".what")
    page.wait_for_selector("dialog >> text=since when this memory knows it")


def test_a_clock_that_is_moved_leaves_the_other_one_where_it_is(explorer: Explorer) -> None:
    page = explorer.page
    page.set_viewport_size({"width": 1280, "height": 800})
    explorer.open(f"memories?{ADA}", "table a")
    before = page.locator("input[name=known_at]").bounding_box()
    page.focus("input[name=as_of]")
    page.keyboard.press("Home")
    page.wait_for_selector(".past")
    assert page.locator("input[name=known_at]").bounding_box() == before
    page.focus("input[name=known_at]")
    page.keyboard.press("Home")
    page.wait_for_selector(".past >> text=as far as it was known on")
    page.wait_for_url("**known_at=**")
    assert page.locator("input[name=known_at]").bounding_box() == before


def test_no_page_jumps_while_it_loads(explorer: Explorer) -> None:
    explorer.page.add_init_script(f"({SHIFTS})()")
    for place, element in addresses(explorer.memory).items():
        explorer.page.goto("about:blank")
        explorer.open(place, element)
        explorer.page.wait_for_load_state("networkidle")
        assert explorer.page.evaluate("window.shifted") < SHIFT_MAX, place


def test_rows_stay_where_they_are_when_one_is_chosen(explorer: Explorer) -> None:
    explorer.open(f"memories?{ADA}", "td.text")
    row = explorer.page.locator("tbody tr").nth(2)
    before = row.bounding_box()
    row.locator("input[type=checkbox]").check()
    explorer.page.wait_for_selector(".bulk >> text=1 chosen")
    assert row.bounding_box() == before
    assert (
        explorer.page.locator(".bulk").bounding_box()["y"] < explorer.page.viewport_size["height"]
    )


def test_who_only_reads_sees_no_button_that_changes_anything(browser: Any, memory: Memory) -> None:
    memory.set_trust({"web": "quarantine"}, user_id="ada")
    memory.write("Held back.", user_id="ada", origin="web")
    memory.write("The guest code is 9931.", user_id="ada", ttl="5d")
    reader = AccessToken(
        name="reader",
        digest=token_digest(TOKEN.encode()),
        bounds={"user_id": ("ada",)},
        read_only=True,
    )
    with serving(memory, make_access(host="127.0.0.1", tokens=(reader,))) as site:
        shown = watched(browser, site.url, memory)
        shown.page.goto(f"{site.url}/#/memories?{ADA}")
        shown.page.fill("input[name=token]", TOKEN)
        shown.page.click("button:text-is('Sign in')")
        shown.page.wait_for_selector("td.text")
        for place, element in addresses(memory).items():
            if place.startswith(
                ("branches", "health")
            ):  # Of these a reader sees no more than a notice.
                element = "h1"
            shown.open(place, element)
            shown.settle()
            named = shown.page.locator("main button").all_inner_texts()
            assert [name for name in named if CHANGING.match(name)] == [], place
            assert not shown.page.locator("main td input[type=checkbox]").count(), place
        shown.open(f"health?{ADA}", "text=More needs an admin token")
        assert not shown.page.locator(
            "nav a:has-text('Branches'), nav a:has-text('Tokens')"
        ).count()
        shown.page.close()


def test_a_server_that_does_not_answer_is_told_and_tried_again(explorer: Explorer) -> None:
    page = explorer.page
    explorer.open(f"memories?{ADA}", "td.text")
    page.route("**/v1/**", lambda route: route.abort())
    page.click("nav a:has-text('Journal')")
    page.wait_for_selector(".problem[role=alert] >> text=Is it still running?")
    page.unroute("**/v1/**")
    page.click(".problem >> text=Try again")
    page.wait_for_selector("table")
    explorer.complaints.clear()  # The browser tells of each request that was cut off.


def test_a_time_has_its_exact_value_on_hover(explorer: Explorer) -> None:
    explorer.open(f"memories?{ADA}", "td.text")
    times = explorer.page.locator("tbody time").evaluate_all(
        "all => all.map((one) => [one.textContent, one.dateTime, one.title])"
    )
    assert times
    for told, exact, title in times:
        assert exact == title
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", exact)
        assert told.endswith(("ago", "now")) or told.startswith("in ")


def test_the_theme_can_be_chosen(explorer: Explorer) -> None:
    explorer.open(f"memories?{ADA}", "td.text")
    grounds = []
    for theme in ("light", "dark"):
        explorer.page.select_option(".foot select", theme)
        explorer.page.wait_for_selector(f"html[data-theme={theme}]")
        grounds.append(explorer.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(set(grounds)) == 2


def test_the_pages_use_public_calls_alone(site: Site) -> None:
    told = json.loads(site.get("/openapi.json").body)["paths"]
    public = {re.sub(r"\{[^}]*\}", "x", path) for path in told} | {"/health", "/metrics"}
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.js"))
    called = set(re.findall(r"[\"`](/(?:v1/|health|metrics)[^\"`?]*)[\"`]", scripts))
    assert len(called) > 20
    for path in called:
        shape = re.sub(r"\\\$\\\{.*?\\\}+", "[^/]+", re.escape(path))
        assert any(re.fullmatch(shape, known) for known in public), path
