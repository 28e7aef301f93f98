"""The table of memories and the questions: filters, keys, pages, bulk actions, export, code."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from explorer.conftest import Explorer, watched
from faces.http.serving import serving
from worlddb import Memory
from worlddb.faces.http.access_tokens import AccessToken, make_access, token_digest

ADA = "scope=user%3Aada"


def live(memory: Memory, **options: Any) -> list[str]:
    return [one.text for one in memory.list(user_id="ada", **options)]


def shown(explorer: Explorer) -> list[str]:
    return list(explorer.page.locator("td.text > a.clamp").all_inner_texts())


FILTERED = {
    "type=Session": [],
    "tag=wifi": ["The wifi word is swordfish."],
    "source=router": ["The wifi word is swordfish."],
    "pinned=1": ["The wifi word is swordfish."],
    "expiring=1": ["The guest code is 9931."],
    "ended=only": ["The tram is late.", "I live in Hamburg."],
    "since=2026-05-01&before=2026-05-15": ["The budget of Project Falcon is 60k."],
}


def test_words_are_marked_and_a_tag_leads_to_all_that_have_it(explorer: Explorer) -> None:
    page = explorer.page
    explorer.memory.write("The wifi word is swordfish.", user_id="ada", tags=["home"])
    explorer.open(f"memories?{ADA}&q=swordfish", "td.text mark:text-is('swordfish')")
    assert page.locator("td.text mark").all_inner_texts() == ["swordfish"]
    page.click("td.text a.chip:text-is('home')")
    page.wait_for_selector("td.text >> text=I moved to Lisbon.", state="detached")
    page.wait_for_function("location.hash.includes('tag=home')")
    page.wait_for_selector("td.text >> text=swordfish")
    assert shown(explorer) == ["The wifi word is swordfish."]


def test_each_filter_shows_what_it_means(explorer: Explorer) -> None:
    memory = explorer.memory
    memory.write(
        "The wifi word is swordfish.", user_id="ada", tags=["wifi"], pin=True, source="router"
    )
    memory.write("The guest code is 9931.", user_id="ada", ttl="5d")
    memory.retire(memory.write("The tram is late.", user_id="ada").id, user_id="ada")
    for place, expected in FILTERED.items():
        explorer.open(f"memories?{ADA}", "td.text >> text=I moved to Lisbon.")
        explorer.page.goto(f"{explorer.url}/#/memories?{ADA}&{place}")
        explorer.page.wait_for_selector("td.text >> text=I moved to Lisbon.", state="detached")
        assert shown(explorer) == expected, place
    explorer.page.click("text=Clear filters")
    explorer.page.wait_for_selector("td.text >> text=I moved to Lisbon.")
    assert "since" not in explorer.page.url


def test_the_filters_are_used_by_keys_alone(explorer: Explorer) -> None:
    explorer.memory.write("The wifi word is swordfish.", user_id="ada", tags=["wifi"])
    explorer.open(f"memories?{ADA}", "td.text")
    explorer.page.focus("input[name=type]")
    explorer.page.keyboard.press("Tab")
    explorer.page.keyboard.type("wifi")
    explorer.page.keyboard.press("Enter")
    explorer.page.wait_for_url("**tag=wifi**")
    explorer.page.wait_for_selector("td.text >> text=Lisbon", state="detached")
    assert shown(explorer) == ["The wifi word is swordfish."]


def test_rows_are_chosen_amended_pinned_and_retired_by_keys_and_taken_back(
    explorer: Explorer,
) -> None:
    page, memory = explorer.page, explorer.memory
    first, second = live(memory)[:2]
    explorer.open(f"memories?{ADA}", "td.text")
    page.keyboard.press("j")
    page.wait_for_selector(f"tr.current >> text={first}")
    page.keyboard.press("p")
    page.wait_for_selector("tr.current .chip.good")
    assert [one.text for one in memory.list(user_id="ada", where={"pinned": True})] == [first]
    page.keyboard.press("u")
    page.wait_for_selector("tr.current .chip.good", state="detached")
    assert not len(memory.list(user_id="ada", where={"pinned": True}))
    page.keyboard.press("e")
    page.fill("textarea", "Supper with Jonathon Smyth.")
    page.click("dialog button:text-is('Amend')")
    page.wait_for_selector("td.text >> text=Supper with")
    assert first not in live(memory)
    page.keyboard.press("u")
    page.wait_for_selector(f"td.text >> text={first}")
    page.reload()
    page.wait_for_selector(f"td.text >> text={second}")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.wait_for_selector("tr.current")
    chosen = page.locator("tr.current td.text > a").inner_text()
    page.keyboard.press("r")
    page.wait_for_selector(".toast >> text=Retired")
    assert chosen not in live(memory)
    page.keyboard.press("u")
    page.wait_for_selector(f"td.text >> text={chosen}")
    assert chosen in live(memory)


def test_several_are_pinned_exported_and_erased_at_once(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    explorer.open(f"memories?{ADA}", "td.text")
    budgets = page.locator("tr:has-text('budget') input[type=checkbox]")
    for place in range(2):
        budgets.nth(place).check()
    page.click("text=Pin them")
    page.wait_for_selector(".toast >> text=2 memories")
    assert len(memory.list(user_id="ada", where={"pinned": True})) == 2
    page.locator(".toast", has_text="Pinned").locator("button").click()
    page.wait_for_selector(".chip.good", state="detached")
    assert not len(memory.list(user_id="ada", where={"pinned": True}))

    for place in range(2):
        budgets.nth(place).check()
    page.click("text=Export them")
    page.select_option("select[name=format]", "csv")
    with page.expect_download() as saved:
        page.click("dialog button:text-is('Save')")
    with open(saved.value.path(), encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["text"] for row in rows) == sorted(
        text for text in live(memory) if "budget" in text
    )

    page.click("text=Erase them")
    page.wait_for_selector("dialog >> text=cannot be undone")
    with page.expect_download() as saved:
        page.click("dialog button:text-is('Erase')")
    receipts = json.loads(Path(saved.value.path()).read_text())
    assert {ident for one in receipts for ident in one["ids"]} >= {row["id"] for row in rows}
    assert all(memory.db.get(row["id"]).erased for row in rows)
    page.wait_for_selector(".toast >> text=no way back")
    assert not page.locator(".toast", has_text="Erased").locator("button").count()


def test_all_that_a_filter_leaves_is_exported_through_its_pages(explorer: Explorer) -> None:
    for number in range(60):
        explorer.memory.write(f"Note {number}.", user_id="ada", tags=["note"], extractor="verbatim")
    explorer.open(f"memories?{ADA}&tag=note", "td.text")
    explorer.page.keyboard.press("n")
    explorer.page.wait_for_selector("text=page 2, rows 51 to 60")
    assert shown(explorer) == live(explorer.memory, where={"tags": "note"}, limit=100)[50:]
    here = explorer.page.url
    explorer.page.keyboard.press("b")
    explorer.page.wait_for_selector("text=page 1, rows 1 to 50")
    explorer.page.click("button:text-is('Export')")
    explorer.page.check("input[value=all]")
    with explorer.page.expect_download() as saved:
        explorer.page.click("dialog button:text-is('Save')")
    assert len(json.loads(Path(saved.value.path()).read_text())) == 60
    explorer.page.goto("about:blank")
    explorer.page.goto(here)  # The address of the second page, sent to a colleague.
    explorer.page.wait_for_selector("text=page 2, rows 51 to 60")


def test_what_is_added_has_its_tags_its_source_its_times_and_its_pin(explorer: Explorer) -> None:
    page = explorer.page
    explorer.open(f"memories?{ADA}", "td.text")
    page.keyboard.press("a")
    page.fill("textarea", "The locker is 17.")
    page.click("summary")
    page.fill("input[name=tags]", "gym, code")
    page.fill("dialog input[name=source]", "note")
    page.fill("input[name=at]", "2026-03-01")
    page.fill("input[name=expires_at]", "2099-01-01")
    page.check("dialog input[name=pin]")
    page.click("dialog button:text-is('Remember')")
    page.wait_for_selector(".toast >> text=Remembered")
    [one] = explorer.memory.list(user_id="ada", where={"tags": "gym"})
    assert (one.text, one.metadata) == (
        "The locker is 17.",
        {"tags": ["gym", "code"], "pinned": True},
    )
    assert one.valid_from == datetime(2026, 3, 1, tzinfo=UTC)
    assert one.valid_to == datetime(2099, 1, 1, tzinfo=UTC)
    page.keyboard.press("u")
    page.wait_for_selector(".toast >> text=Taken back")
    assert not len(explorer.memory.list(user_id="ada", where={"tags": "gym"}))


def test_another_address_changes_the_question_and_its_settings(explorer: Explorer) -> None:
    explorer.open(f"ask?{ADA}&q=budget", "article")
    explorer.open(f"ask?{ADA}&q=green%20tea&ak=1&most=300", "article >> text=green tea")
    assert explorer.page.input_value("input[name=q]") == "green tea"
    assert explorer.page.input_value("input[name=ak]") == "1"
    assert explorer.page.input_value("input[name=most]") == "300"


def test_a_hit_shows_its_lanes_and_the_text_that_speaks_against_it(explorer: Explorer) -> None:
    explorer.open(f"ask?{ADA}&q=budget", "article")
    first = explorer.page.locator("article").first
    hit = explorer.memory.recall("budget", user_id="ada")[0]
    other = (
        hit.conflicts[0].right if hit.conflicts[0].left == hit.node.id else hit.conflicts[0].left
    )
    said = explorer.memory.db.get(other).content
    assert first.locator("div", has_text="conflicts with").locator(f"text={said}").count()
    for lane, ranked in hit.lanes.items():
        assert first.locator(f"text={lane} #{ranked.rank}").count()


def test_a_hit_that_no_lane_found_says_which_one_it_replaces(explorer: Explorer) -> None:
    memory = explorer.memory
    memory.write("I live in Bremen and work at Nordlicht.", user_id="ada", at="2026-08-01")
    memory.write("I moved to Porto.", user_id="ada", at="2026-09-01")
    hits = memory.recall("Nordlicht", user_id="ada")
    [new] = [place for place, hit in enumerate(hits, 1) if not hit.lanes]
    [old] = [place for place, hit in enumerate(hits, 1) if hit.outdated]
    explorer.open(f"ask?{ADA}&q=Nordlicht", "article")
    shown_hit = explorer.page.locator("article").nth(new - 1)
    assert shown_hit.locator(f".chip:text-is('replaces hit {old}')").count() == 1


def test_the_code_that_is_copied_asks_the_same_question_as_of_the_same_time(
    explorer: Explorer,
) -> None:
    page = explorer.page
    explorer.open(
        f"ask?{ADA}&q=Where%20do%20I%20live%3F&as_of=2026-02-15T23:59:59Z&ak=2", "article"
    )
    made = page.evaluate(
        "async () => { const { asCode } = await import('/ui/ask.js');"
        " const given = { query: 'Where do I live?', k: 2, include_retired: undefined,"
        " user_id: 'ada', as_of: '2026-02-15T23:59:59Z' };"
        " return ['python', 'curl', 'test'].map((kind) =>"
        " asCode(kind, given, [{ node: { content: 'I live in Hamburg.' } }])); }"
    )
    python, curl, test = made
    run = partial(
        subprocess.run,
        env=os.environ | {"NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=True,
    )
    run([sys.executable, "-c", f"{test}\n\ntest_recall()"])
    done = run([sys.executable, "-c", python])
    assert done.stdout.splitlines()[0] == "I live in Hamburg."
    assert "Authorization" not in curl  # This server asks for no token.
    sent = json.loads(curl.partition(" -d '")[2].rstrip("'"))
    assert sent == {
        "query": "Where do I live?",
        "k": 2,
        "user_id": "ada",
        "as_of": "2026-02-15T23:59:59Z",
    }


def test_the_curl_that_is_copied_names_the_token_and_does_not_hold_it(
    browser: Any, memory: Memory
) -> None:
    value = "a-token-that-reads"
    reader = AccessToken(name="reader", digest=token_digest(value.encode()), bounds={})
    with serving(memory, make_access(host="127.0.0.1", tokens=(reader,))) as site:
        explorer = watched(browser, site.url, memory)
        page = explorer.page
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        explorer.open(f"ask?{ADA}&q=Where%20do%20I%20live%3F", "input[name=token]")
        page.fill("input[name=token]", value)
        page.click("button:text-is('Sign in')")
        page.click("button[aria-label='Copy as curl']:enabled")
        page.wait_for_selector(".toast >> text=Copied")
        curl = page.evaluate("navigator.clipboard.readText()")
        page.close()
        assert '-H "Authorization: Bearer $WORLDDB_TOKEN"' in curl
        assert value not in curl
        if not shutil.which("curl"):
            pytest.skip("there is no curl here")
        told = subprocess.run(
            ["sh", "-c", curl],
            env=os.environ | {"WORLDDB_TOKEN": value, "NO_PROXY": "127.0.0.1"},
            capture_output=True,
            check=True,
        )
    assert "Lisbon" in json.loads(told.stdout)["hits"][0]["node"]["content"]


def test_two_settings_show_what_moved(explorer: Explorer) -> None:
    explorer.open(f"ask?{ADA}&q=budget&two=1&bk=1&bat=2026-03-15", "section >> nth=1 >> article")
    explorer.page.wait_for_selector("section >> nth=0 >> text=only here")
    assert "40k" in explorer.page.locator("section").nth(1).inner_text()


def test_a_memory_shows_its_claims_its_commits_and_its_versions_in_time(
    explorer: Explorer,
) -> None:
    [one] = [one for one in explorer.memory.list(user_id="ada") if "Lisbon" in one.text]
    explorer.open(f"memory/{one.id}?{ADA}", ".claims")
    assert explorer.page.locator(".claim").first.get_attribute("title") == "lives in: Lisbon"
    assert explorer.page.locator(".claims td").all_inner_texts()[:1] == ["user"]
    [written] = [
        commit
        for commit in explorer.memory.log(user_id="ada").commits
        if commit.time == one.known_from
    ]
    assert explorer.page.locator(f"dd a:text-is('{written.seq}')").count() == 1
    bars = explorer.page.locator(".version svg").evaluate_all(
        "all => all.map((one) => one.getAttribute('aria-label'))"
    )
    assert [bar.partition(",")[0] for bar in bars] == [
        "true from 2026-02-01 to 2026-04-01",
        "true from 2026-04-01 to now",
    ]


def test_the_keys_are_told_and_lead_from_page_to_page(explorer: Explorer) -> None:
    explorer.open(f"memories?{ADA}", "td.text")
    explorer.page.keyboard.press("?")
    explorer.page.wait_for_selector("dialog >> text=undo what was done last")
    explorer.page.keyboard.press("Escape")
    explorer.page.wait_for_selector("dialog", state="detached")
    explorer.page.keyboard.press("g")
    explorer.page.keyboard.press("j")
    explorer.page.wait_for_selector("h1:text-is('Journal')")
