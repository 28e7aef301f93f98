"""Texts, names, tags, sources and scopes that try to be a page stay texts, on every page."""

from __future__ import annotations

import csv
import io
from typing import Any
from urllib.parse import quote

from explorer.conftest import Explorer, watched
from faces.http.serving import serving
from worlddb import Memory

SCRIPTS = (
    '<img src=x onerror="window.taken=1">',
    "<script>window.taken=1</script>",
    '"><svg onload=window.taken=1>',
    "javascript:window.taken=1",
    "${window.taken=1}{{window.taken=1}}",
)
USER = '<b onmouseover="window.taken=1">mallory'
FOREIGN = (
    "#app img:not([src^='/ui/']), #app script, #app iframe, #app b, #app [onerror], #app [onload],"
    " #app [onmouseover], #app a[href^='javascript']"
)


def hostile(memory: Memory) -> dict[str, str]:
    """Write hostile texts of every kind; return the pages that show them."""
    for script in SCRIPTS:
        memory.write(
            f"Budget of {script} is 40k.",
            names=[script],
            tags=[script],
            source=script,
            user_id=USER,
        )
        memory.write(f"The budget of Project Falcon is {script}.", user_id=USER)
    memory.write("Lunch with Jonathan Smyth.", user_id=USER)
    memory.write("Dinner with Jonathon Smyth.", user_id=USER, metadata={SCRIPTS[0]: SCRIPTS[1]})
    memory.write(f"I live in {SCRIPTS[0]}.", user_id=USER, ttl="5d")
    memory.set_trust({"web": "quarantine"}, user_id=USER)
    memory.write(f"Held back {SCRIPTS[2]}.", user_id=USER, origin="web")
    first = memory.list(user_id=USER)[-1]
    amended = memory.amend(first.id, f"Amended {SCRIPTS[0]}", user_id=USER)
    name = memory.interior(type="Entity", user_id=USER).nodes[0]
    found = {
        "memories": "td.text",
        f"memories?q={quote('budget ' + SCRIPTS[0])}&tag={quote(SCRIPTS[1])}": "input[name=tag]",
        f"ask?q={quote('budget ' + SCRIPTS[1])}": "section article",
        f"memory/{amended.id}": ".version",
        f"memory/{quote(SCRIPTS[0])}": ".problem",
        "inbox": "article",
        "people": "article",
        f"people/{name.id}": "h1",
        f"worlds?start={name.id}": ".graph circle",
        "journal?commit=1&first=0&last=4": "tr.open li",
        "health": ".doctor",
        "branches": "form",
        f"proof?{quote(SCRIPTS[0])}": "input[type=file]",
    }
    return {
        f"{at}{'&' if '?' in at else '?'}scope={quote('user:' + USER)}": el
        for at, el in found.items()
    }


def test_a_hostile_text_stays_a_text_on_every_page(browser: Any) -> None:
    with Memory(":memory:", embedder="none", recluster="now") as memory:
        places = hostile(memory)
        with serving(memory) as site:
            shown = watched(browser, site.url, memory)
            shown.page.on("dialog", lambda box: shown.complaints.append(box.message))
            for place, element in places.items():
                shown.open(place, element)
                shown.settle()
                assert shown.page.locator(FOREIGN).count() == 0, place
            _dialogs(shown, next(iter(places)))
            assert shown.page.evaluate("window.taken") is None
            # Only an id that is none was not found.
            assert [said for said in shown.complaints if "status of 40" not in said] == []
            shown.page.close()


def test_a_text_is_no_formula_in_a_table(explorer: Explorer) -> None:
    explorer.open("proof", "input[type=file]")
    texts = ['=HYPERLINK("http://127.0.0.1/","x")', "+1", "-1", "@SUM(A1)", "\t=1", "tea = good"]
    made = (
        "async (texts) => (await import('/ui/memories.js')).asCsv(texts.map((text) => ({ text })))"
    )
    rows = list(csv.DictReader(io.StringIO(explorer.page.evaluate(made, texts), newline="")))
    assert [row["text"] for row in rows] == [*(f"'{text}" for text in texts[:-1]), texts[-1]]


def _dialogs(shown: Explorer, place: str) -> None:
    """Open what repeats a text: the dialogs, the choices of a picker, a copied prompt."""
    shown.open(place, f"td.text >> text={SCRIPTS[1]}")
    for key in ("x", "e"):
        shown.page.keyboard.press("j")
        shown.page.keyboard.press(key)
    shown.page.wait_for_selector("dialog textarea")
    shown.page.keyboard.press("Escape")
    shown.page.click("text=Erase them")
    shown.page.wait_for_selector("dialog blockquote")
    assert shown.page.locator(FOREIGN).count() == 0
    shown.page.keyboard.press("Escape")
    shown.open(f"worlds?{place.partition('?')[2]}", "input[name=start]")
    shown.page.fill("input[name=start]", "budget")
    shown.page.wait_for_selector("[role=option]")
    assert shown.page.locator(FOREIGN).count() == 0
