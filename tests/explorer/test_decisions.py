"""Inbox, names, worlds, journal and health in a real browser: each decision ends in the store."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from explorer.conftest import Explorer, watched
from faces.http.serving import serving
from patience import until
from worlddb import Memory

ADA = "scope=user%3Aada"
MANY = 20


def test_many_decisions_are_made_by_keys_one_after_the_other(browser: Any) -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory, serving(memory) as site:
        memory.set_trust({"web": "quarantine"}, user_id="ada")
        for number in range(MANY):
            memory.write(f"Shop {number} opens.", user_id="ada", origin="web", extractor="verbatim")
        shown = watched(browser, site.url, memory)
        shown.open(f"inbox?{ADA}", f"h2:has-text('Held back ({MANY})')")
        # As fast as the keys come: each one is for the card that is chosen then.
        for number in range(MANY):
            shown.page.keyboard.press("a" if number % 2 else "r")
        shown.page.wait_for_selector("text=Nothing waits for a decision")
        until(lambda: not memory.quarantine(user_id="ada").memories)
        assert len(memory.list(user_id="ada", limit=100)) == MANY // 2
        assert shown.complaints == []
        shown.page.close()


def test_a_rejection_in_quarantine_is_taken_back(browser: Any) -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory, serving(memory) as site:
        memory.set_trust({"web": "quarantine"}, user_id="ada")
        memory.write("The shop opens.", user_id="ada", origin="web", extractor="verbatim")
        shown = watched(browser, site.url, memory)
        shown.open(f"inbox?{ADA}", "article.chosen >> text=The shop opens.")
        shown.page.keyboard.press("r")
        shown.page.wait_for_selector("text=Nothing waits for a decision")
        until(lambda: not memory.quarantine(user_id="ada").memories)
        shown.page.wait_for_selector(".toast >> text=Rejected")
        shown.page.keyboard.press("u")
        shown.page.wait_for_selector("article.chosen >> text=The shop opens.")
        assert len(memory.quarantine(user_id="ada").memories) == 1
        assert shown.complaints == []
        shown.page.close()


def test_a_conflict_in_which_both_are_right_is_settled_and_taken_back(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    explorer.open(f"inbox?{ADA}", "article >> text=60k")
    page.click("button:has-text('Both are right')")
    page.wait_for_selector(".toast >> text=settled")
    assert not memory.conflicts(user_id="ada").conflicts
    assert len([one for one in memory.list(user_id="ada") if "budget" in one.text]) == 2
    page.keyboard.press("u")
    until(lambda: len(memory.conflicts(user_id="ada").conflicts) == 1)
    page.wait_for_selector("button:has-text('Both are right')")


def test_two_names_are_merged_seen_on_their_page_and_parted_again(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    explorer.open(f"inbox?{ADA}", "article li:has-text('Lunch with')")
    page.wait_for_selector("article li:has-text('Dinner with')")
    page.keyboard.press("a")
    page.wait_for_selector(".toast >> text=Merged")
    [name] = [
        node
        for node in memory.interior(type="Entity", user_id="ada")
        if node.name == "Jonathan Smyth"
    ]
    assert len(memory.identity(name.id, user_id="ada").nodes) == 2
    explorer.open(f"people/{name.id}?{ADA}", "button:text-is('Undo the merge')")
    assert page.locator(".line li").count() == 2
    page.click("button:text-is('Undo the merge')")
    page.wait_for_selector("button:text-is('Undo the merge')", state="detached")
    assert len(memory.identity(name.id, user_id="ada").nodes) == 1


def test_a_name_of_two_people_is_split(explorer: Explorer) -> None:
    page, memory = explorer.page, explorer.memory
    memory.write("Sarah Chen plays the oboe.", user_id="ada", at=datetime(2026, 9, 1, tzinfo=UTC))
    [name] = [
        node for node in memory.interior(type="Entity", user_id="ada") if node.name == "Sarah Chen"
    ]
    explorer.open(f"people?{ADA}&q=sarah", "article >> text=Sarah Chen")
    page.click("article >> text=Sarah Chen")
    page.check(".line li:has-text('oboe') input")
    page.click("text=They speak of another of this name")
    page.wait_for_selector(".toast >> text=Split")
    bearers = [
        node for node in memory.interior(type="Entity", user_id="ada") if node.name == "Sarah Chen"
    ]
    assert len(bearers) == 2
    assert {str(node.id) for node in bearers} > {str(name.id)}


def test_a_name_tells_what_holds_and_what_held(explorer: Explorer) -> None:
    [user] = [
        node
        for node in explorer.memory.interior(type="Entity", user_id="ada")
        if node.name == "user"
    ]
    explorer.open(f"people/{user.id}?{ADA}", ".claims")
    rows = explorer.page.locator(".claims tbody tr").evaluate_all(
        "all => all.map((row) => [row.className, row.children[1].textContent])"
    )
    assert sorted(map(tuple, rows)) == [("", "Lisbon"), ("ended", "Hamburg")]
    explorer.page.goto(f"{explorer.url}/#/people/{user.id}?{ADA}&as_of=2026-02-15T23:59:59Z")
    explorer.page.wait_for_selector(".line >> text=Lisbon", state="detached")
    assert explorer.page.locator(".line >> text=Hamburg").count()


def test_the_tree_of_worlds_has_sizes_and_obeys_the_clocks(explorer: Explorer) -> None:
    size = explorer.memory.interior(user_id="ada").size
    explorer.open(f"worlds?{ADA}", f"ul.tree >> text={size} inside")
    explorer.page.click("ul.tree button")
    explorer.page.wait_for_selector("ul.tree li >> text=I moved to Lisbon.")
    explorer.page.goto(f"{explorer.url}/#/worlds?{ADA}&as_of=2026-02-15T23:59:59Z")
    explorer.page.wait_for_selector("ul.tree li >> text=I moved to Lisbon.", state="detached")
    explorer.page.wait_for_selector("ul.tree li >> text=I live in Hamburg.")


def test_the_journal_compares_two_commits_and_shows_what_was_known_then(
    explorer: Explorer,
) -> None:
    page, memory = explorer.page, explorer.memory
    commits = memory.log(user_id="ada").commits
    first, last = commits[4].seq, commits[2].seq
    explorer.open(f"journal?{ADA}&first={first}&last={last}", ".card li")
    told = page.locator(".card").inner_text()
    for node in memory.diff(first, last, user_id="ada").nodes:
        assert (node.content or node.name) in told
    then = commits[3].time.isoformat().replace("+00:00", "Z")
    page.goto(f"{explorer.url}/#/journal?{ADA}&known_at={then}")
    page.wait_for_selector(f"tbody tr td:text-is('{commits[0].seq}')", state="detached")
    assert page.locator("tbody tr td").first.inner_text() == str(commits[3].seq)
    assert not page.locator("button:text-is('Undo')").count()


def test_the_journal_says_what_each_commit_wrote(explorer: Explorer) -> None:
    explorer.open(f"journal?{ADA}", "tbody tr")
    for commit in explorer.memory.log(user_id="ada").commits:
        said = [
            one.content
            for one in explorer.memory.diff(commit.seq - 1, commit.seq, user_id="ada").nodes
            if one.type == "Memory"
        ]
        row = explorer.page.locator(
            "tbody tr", has=explorer.page.locator(f"td:text-is('{commit.seq}')")
        )
        assert said
        assert all(text in row.first.inner_text() for text in said)


def test_an_answer_that_takes_long_says_why(explorer: Explorer) -> None:
    explorer.open(f"ask?{ADA}", "input[name=q]")
    held: list[Any] = []
    explorer.page.route("**/v1/recall", lambda route: held.append(route))
    explorer.page.fill("input[name=q]", "Where do I live?")
    explorer.page.keyboard.press("Enter")
    explorer.page.wait_for_selector(".slow >> text=builds its index")
    for one in held:
        one.continue_()
    explorer.page.unroute("**/v1/recall")
    explorer.page.wait_for_selector("section article")
    explorer.page.wait_for_selector(".slow", state="detached")


def test_health_examines_and_checks_the_store_step_by_step(explorer: Explorer) -> None:
    page = explorer.page
    explorer.open(f"health?{ADA}", ".doctor")
    assert "background" in page.locator(".doctor").inner_text()
    page.wait_for_selector(".plot path.area")
    page.click("button:text-is('Check the store')")
    page.wait_for_selector(".chip.good:text-is('sound')")
    commit = explorer.memory.log().commits[0]
    assert f"commit {commit.seq}" in page.locator("p:has(.chip.good)").last.inner_text()


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_a_percentile_lies_in_its_bucket(explorer: Explorer, share: float) -> None:
    explorer.open("proof", "input[type=file]")
    buckets = [("0.001", 10), ("0.01", 90), ("0.1", 100), ("+Inf", 100)]
    given = [{"labels": {"le": bound}, "value": seen} for bound, seen in buckets]
    found = explorer.page.evaluate(
        "async ([buckets, share]) => (await import('/ui/health.js')).percentile(buckets, share)",
        json.loads(json.dumps([given, share])),
    )
    assert (0.001 < found <= 0.01) if share == 0.5 else (0.01 < found <= 0.1)


def test_a_graph_has_its_worlds_as_boxes_and_grows_where_it_is_asked(explorer: Explorer) -> None:
    memory, page = explorer.memory, explorer.page
    said = [
        ("user", "I met Bruno Weber in Sintra."),
        ("assistant", "How is Bruno Weber?"),
        ("user", "Bruno Weber moved to Porto."),
    ]
    memory.write(messages=[{"role": who, "content": text} for who, text in said], user_id="ada")
    names = {node.name: node.id for node in memory.interior(type="Entity", user_id="ada")}
    explorer.open(f"worlds?{ADA}&start={names['Bruno Weber']}", ".graph circle >> nth=1")
    page.wait_for_selector(".world-name:has-text('Session: chat')")
    boxes = page.locator(".graph .world").evaluate_all(
        "all => all.map((one) => one.getBBox())"
        ".map((box) => [box.x, box.y, box.x + box.width, box.y + box.height])"
    )
    assert len(boxes) == page.locator(".world-name").count()
    before = page.locator(".graph circle").count()
    inside = page.locator(".graph g[role=button]", has_text="I met").locator("circle")
    x, y = (float(inside.get_attribute(name)) for name in ("cx", "cy"))
    assert any(left < x < right and top < y < bottom for left, top, right, bottom in boxes)
    page.locator(".graph g[role=button]", has_text="I met").click()
    page.wait_for_selector(".graph g[aria-label='Expand Sintra']")
    assert page.locator(".graph circle").count() > before


def test_the_ends_of_a_path_are_told_by_their_names(explorer: Explorer) -> None:
    names = {node.name: node.id for node in explorer.memory.interior(type="Entity", user_id="ada")}
    address = f"worlds?{ADA}&from={names['Sarah Chen']}"
    explorer.open(address, "p:has-text('From Sarah Chen to') >> text=choose the other end")
    explorer.open(f"{address}&to={names['user']}", "ol.path li >> nth=1")
    explorer.page.wait_for_selector("p:has-text('From Sarah Chen to user')")
