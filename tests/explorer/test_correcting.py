"""What a person sees and puts right where it stands, as whom, and when: in a real browser."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from explorer.conftest import Explorer, watched
from faces.http.serving import serving
from worlddb import Memory
from worlddb.faces.http.access_tokens import AccessToken, make_access, token_digest

ADA = "scope=user%3Aada"
LIVES = f"ask?{ADA}&q=Where%20do%20I%20live%3F"
TOKEN = "a-token-of-ada"


def live(memory: Memory, **options: Any) -> list[str]:
    return [one.text for one in memory.list(user_id="ada", **options)]


def first_hit(explorer: Explorer) -> Any:
    return explorer.page.locator("article.hit").first


def signed_in(browser: Any, memory: Memory, url: str, place: str, **options: Any) -> Explorer:
    """Return a page at a place, after the token was given."""
    explorer = watched(browser, url, memory, **options)
    explorer.page.goto(f"{url}/#/{place}")
    explorer.page.fill("input[name=token]", TOKEN)
    explorer.page.click("button:text-is('Sign in')")
    return explorer


def of_ada(role: str) -> AccessToken:
    return AccessToken(
        name="ada",
        digest=token_digest(TOKEN.encode()),
        bounds={"user_id": ("ada",)},
        read_only=role == "read",
        curates=role == "curate",
    )


# -- a hit --------------------------------------------------------------------------------------


def test_a_hit_says_in_words_why_it_is_there(explorer: Explorer) -> None:
    explorer.open(LIVES, "article.hit")
    why = first_hit(explorer).locator(".why").inner_text()
    assert why.startswith("Here because ")
    assert why.endswith(".")
    weights = first_hit(explorer).locator("svg.weights").get_attribute("aria-label")
    assert weights.startswith("weights: ")


def test_the_reasons_are_what_lifts_a_hit_above_the_others(explorer: Explorer) -> None:
    explorer.open("proof", "input[type=file]")
    hits = [
        {"weighed": {"speaker": 2.0, "claim": 1.0}, "lanes": {}},
        {"weighed": {"speaker": 2.0, "text": 1.0}, "lanes": {}},
    ]
    told = explorer.page.evaluate(
        "async (hits) => { const { reasonsFor, sharedBy } = await import('/ui/hit.js');"
        " return hits.map((hit) => reasonsFor(hit, sharedBy(hits))); }",
        hits,
    )
    assert told == [["it states exactly what is asked for"], ["it shares words with the question"]]


def test_a_hit_is_amended_where_it_stands_and_taken_back(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    explorer.open(LIVES, "article.hit >> text=I moved to Lisbon.")
    first_hit(explorer).locator("button:text-is('Amend')").click()
    page.fill("dialog textarea", "I moved to Porto.")
    page.click("dialog button:text-is('Amend')")
    page.wait_for_selector("article.hit >> text=I moved to Porto.")
    assert "I moved to Porto." in live(memory)
    assert "I moved to Lisbon." not in live(memory)
    page.keyboard.press("u")
    page.wait_for_selector("article.hit >> text=I moved to Lisbon.")
    assert "I moved to Lisbon." in live(memory)


def test_a_hit_is_chosen_pinned_and_retired_by_keys(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    explorer.open(LIVES, "article.hit >> text=I moved to Lisbon.")
    page.keyboard.press("j")
    page.wait_for_selector("article.hit.chosen >> text=I moved to Lisbon.")
    page.keyboard.press("p")
    page.wait_for_selector("article.hit.chosen button:text-is('Unpin')")
    assert live(memory, where={"pinned": True}) == ["I moved to Lisbon."]
    page.keyboard.press("r")
    page.wait_for_selector(".toast >> text=Retired")
    assert "I moved to Lisbon." not in live(memory)
    page.keyboard.press("/")
    page.wait_for_selector("input[name=q]:focus")


@pytest.mark.parametrize("clock", ["as_of", "known_at"])
def test_a_question_about_the_past_gets_the_hits_of_then(explorer: Explorer, clock: str) -> None:
    commits = explorer.memory.log(user_id="ada").commits
    at = "2026-02-15T23:59:59Z" if clock == "as_of" else commits[3].time.isoformat()
    clocks: dict[str, Any] = {clock: at}
    expected = explorer.memory.recall("Where do I live?", user_id="ada", **clocks)
    then = at.replace("+00:00", "Z")
    explorer.open(f"{LIVES}&{clock}={then}", "article.hit")
    shown = explorer.page.locator("article.hit .text > a").all_inner_texts()
    assert shown == [hit.node.content for hit in expected]
    assert not explorer.page.locator("article.hit button").count()


def test_who_only_looks_makes_nothing_more_often_recalled(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    for text in ("Nordlicht sells lamps.", "The gate opens at six."):
        memory.write(text, user_id="ada", at=datetime(2020, 1, 1, tzinfo=UTC))
    explorer.open(f"memories?{ADA}&q=gate", "td.text mark")
    explorer.open(f"ask?{ADA}&q=gate", "article.hit >> text=The gate opens")
    page.wait_for_selector("pre >> text=The gate opens")
    page.fill("input[name=whynot]", "Nordlicht sells")
    page.click("[role=option] >> text=Nordlicht sells")
    page.wait_for_selector("section[aria-label='Why not'] strong")
    assert {one.recalls for one in memory.fading(user_id="ada", below=1)} == {0}
    memory.recall("gate", user_id="ada", k=1)
    assert {one.recalls for one in memory.fading(user_id="ada", below=2)} == {0, 1}


# -- the table ----------------------------------------------------------------------------------


def test_a_search_says_from_where_on_rows_are_near_in_meaning_alone(browser: Any) -> None:
    with Memory(":memory:", embedder="hash") as memory, serving(memory) as site:
        for text in ("Tea is green.", "The tea pot is blue.", "The team sleeps."):
            memory.write(text, user_id="ada", extractor="verbatim")
        shown = watched(browser, site.url, memory)
        shown.open(f"memories?{ADA}&q=tea", "tr.near")
        rows = shown.page.locator("tbody tr").evaluate_all(
            "all => all.map((row) => row.className === 'near' || /\\btea\\b/i.test(row.innerText))"
        )
        marks = shown.page.locator("tbody tr").evaluate_all(
            "all => all.findIndex((row) => row.className === 'near')"
        )
        assert rows[:marks] == [True] * marks
        assert not any(rows[marks + 1 :])
        shown.open(f"memories?{ADA}&q=xylophone", "tr.near >> text=No memory has these words")
        assert shown.complaints == []
        shown.page.close()


def test_what_was_chosen_cannot_be_changed_in_the_past(explorer: Explorer) -> None:
    explorer.open(f"memories?{ADA}", "td.text")
    explorer.page.check("tr:has-text('Lisbon') input[type=checkbox]")
    explorer.page.wait_for_selector(".bulk >> text=1 chosen")
    explorer.page.focus("input[name=known_at]")
    explorer.page.keyboard.press("Home")
    explorer.page.wait_for_selector(".past")
    assert not explorer.page.locator(".bulk").count()
    explorer.page.click("text=Back to now")
    explorer.page.wait_for_selector("td.text >> text=Lisbon")
    assert not explorer.page.locator(".bulk").count()


def test_several_are_unpinned_at_once(explorer: Explorer) -> None:
    for one in explorer.memory.list(user_id="ada"):
        if "budget" in one.text:
            explorer.memory.pin(one.id, user_id="ada")
    explorer.open(f"memories?{ADA}", ".chip.good >> nth=1")
    for place in range(2):
        explorer.page.locator("tr:has-text('budget') input[type=checkbox]").nth(place).check()
    explorer.page.click("text=Unpin them")
    explorer.page.wait_for_selector(".chip.good", state="detached")
    assert not live(explorer.memory, where={"pinned": True})


def test_before_texts_are_erased_they_are_shown(explorer: Explorer) -> None:
    explorer.open(f"memories?{ADA}", "td.text")
    explorer.page.check("tr:has-text('green tea') input[type=checkbox]")
    explorer.page.click("text=Erase them")
    explorer.page.wait_for_selector("dialog blockquote >> text=green tea")
    explorer.page.click("dialog button:text-is('Cancel')")
    explorer.page.wait_for_selector("dialog", state="detached")
    assert any("green tea" in text for text in live(explorer.memory))


# -- a newcomer ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sample_data_says_what_to_try_and_is_taken_back(browser: Any, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with Memory(":memory:", embedder="none") as memory, serving(memory) as site:
        shown = watched(browser, site.url, memory, color_scheme=scheme)
        page = shown.page
        shown.open("", ".welcome")
        assert not page.locator("input[type=search]").count()
        for place, element in {
            "memories": ".welcome",
            "inbox": ".empty",
            "people": ".empty",
            "worlds": ".empty",
            "journal": ".empty",
            "ask": ".empty",
        }.items():
            shown.open(place, element)
            found = axe.run(page)
            assert found.violations_count == 0, (place, found.generate_report())
        shown.open("memories", ".welcome")
        page.click("text=Write sample data")
        page.wait_for_selector(".steps")
        page.keyboard.press("u")
        page.wait_for_selector(".welcome")
        assert not len(memory.list(user_id="sample"))
        page.click("text=Write sample data")
        page.click(".steps >> text=see what was true in February")
        page.wait_for_selector("td.text >> text=Lisbon", state="detached")
        page.wait_for_selector("td.text >> text=I live in Hamburg")
        page.click("text=Back to now")
        page.click(".steps >> text=ask where I live")
        page.wait_for_selector("article.hit >> text=I moved to Lisbon.")
        assert shown.complaints == []
        page.close()


# -- as whom ------------------------------------------------------------------------------------


def test_a_bound_token_sees_its_scope_also_where_the_address_names_none(
    browser: Any, memory: Memory
) -> None:
    with serving(memory, make_access(host="127.0.0.1", tokens=(of_ada("read"),))) as site:
        shown = signed_in(browser, memory, site.url, "health")
        for place in ("health", "memories"):
            shown.page.goto(f"{site.url}/#/{place}")
            shown.page.wait_for_url(f"**{ADA}")
            assert shown.page.input_value("select[name=scope]") == "user:ada"
        assert shown.complaints == []
        shown.page.close()


def test_a_token_that_writes_sees_no_button_that_ends_anything(
    browser: Any, memory: Memory
) -> None:
    with serving(memory, make_access(host="127.0.0.1", tokens=(of_ada("write"),))) as site:
        shown = signed_in(browser, memory, site.url, f"memories?{ADA}")
        page = shown.page
        page.wait_for_selector("td.text >> text=I moved to Lisbon.")
        assert page.locator("td.actions button").all_inner_texts() == ["Amend"] * len(live(memory))
        assert not page.locator("input[type=checkbox][aria-label^=Choose]").count()
        page.keyboard.press("j")
        page.keyboard.press("r")
        page.click("button:text-is('Add')")
        page.fill("textarea", "The locker is 17.")
        page.click("dialog button:text-is('Remember')")
        page.wait_for_selector(".toast >> text=Remembered")
        assert not page.locator(".toast button").count()
        for place, element in (("inbox", "article"), ("journal", "td"), (LIVES, "article.hit")):
            shown.open(place if "?" in place else f"{place}?{ADA}", element)
            for button in ("Retire", "Undo", "Pin", "Not the same"):
                assert not page.locator(f"button:has-text('{button}')").count(), (place, button)
        assert "The locker is 17." in live(memory)
        assert shown.complaints == []
        page.close()


def test_what_somebody_else_wrote_into_a_scope_is_refused(browser: Any, memory: Memory) -> None:
    bob = memory.bound(user_id="bob", actor="bob")
    memory.bound(user_id="ada").grant("user:bob", "write")
    bob.write("Ada owes me a beer.", user_id="ada", extractor="verbatim")
    with serving(memory, make_access(host="127.0.0.1", tokens=(of_ada("curate"),))) as site:
        shown = signed_in(browser, memory, site.url, f"memories?{ADA}")
        shown.page.click("td.text a >> text=Ada owes me a beer.")
        shown.page.click("button:text-is('Refuse')")
        shown.page.wait_for_selector(".toast >> text=Refused")
        shown.page.wait_for_selector("td.text >> text=I moved to Lisbon.")
        assert "Ada owes me a beer." not in live(memory)
        assert shown.complaints == []
        shown.page.close()


# -- a proof ------------------------------------------------------------------------------------


def test_a_proof_that_is_saved_on_one_page_is_valid_on_the_other(explorer: Explorer) -> None:
    [one] = [one for one in explorer.memory.list(user_id="ada") if "Lisbon" in one.text]
    explorer.open(f"memory/{one.id}?{ADA}", "button:text-is('Save a proof')")
    with explorer.page.expect_download() as saved:
        explorer.page.click("button:text-is('Save a proof')")
    path = Path(saved.value.path())
    assert json.loads(path.read_text())["proof"]["id"] == str(one.id)
    explorer.open("proof", "input[type=file]")
    explorer.page.set_input_files("input[type=file]", str(path))
    explorer.page.wait_for_selector(".chip.good >> text=valid")
