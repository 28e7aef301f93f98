"""The explorer in a real Chromium, on stores of ten thousand and a million memories.

python -m bench.explorer [--memories 10000 1000000] [--searches 40] [--keep FOLDER]
python -m bench.explorer --pictures docs/images

A server of its own with the default embedder serves a store of one user, whose texts are embedded.
Measured in the page: the first paint, the first rows of the table, the time from the last key of a
search to its results, the next page of the table, a question taken apart, one memory, the journal,
and the difference that the one large commit made. With `--keep` a store is made once and used
again. With `--pictures` every page is photographed in light and dark, on a store of sample data.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.corpus import drafts
from bench.percentiles import line, machine
from worlddb import Memory, NodeDraft

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PROGRAM = [sys.executable, "-m", "worlddb"]
WAIT_MS = 120_000
SAMPLE = "src/worlddb/faces/http/pages/sample.json"
ADA = "scope=user:ada"
PICTURES = {
    "memories": ("memories", "main tbody tr"),
    "ask": ("ask?q=What is the budget of Project Falcon?", "section article"),
    "memory": ("memory/{memory}", ".version"),
    "inbox": ("inbox", "article li"),
    "people": ("people/{person}", ".claims"),
    "worlds": ("worlds?start={person}", ".graph circle"),
    "journal": ("journal", ".plot path"),
    "branches": ("branches", "form"),
    "health": ("health", ".doctor"),
    "proof": ("proof", "input[type=file]"),
}
VIEW = {"width": 1280, "height": 860}
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
# From the last key until the rows of the table are others.
TYPED = """(text) => new Promise((done) => {
  const box = document.querySelector("input[type=search]");
  const rows = () => document.querySelector("main tbody")?.textContent ?? "";
  const before = rows();
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
  const started = performance.now();
  const watch = new MutationObserver(() => {
    if (rows() && rows() !== before) { watch.disconnect(); done(performance.now() - started); }
  });
  watch.observe(document.body, { childList: true, subtree: true, characterData: true });
  set.call(box, text);
  box.dispatchEvent(new Event("input", { bubbles: true }));
})"""


def fill(path: Path, size: int) -> None:
    """Write memories of one user, each text with its vector."""
    made = drafts(size)
    with Memory(path, recluster="off") as memory:
        memory.write("begin", user_id="ada")
        scope = memory.list_scopes()[0].id
        # As `Memory.write` makes them: all words in the text, no name.
        with memory.db.transaction("bench", bulk=True) as tx:
            tx.create_nodes(
                (
                    replace(one, type="Memory", parent=scope, name="", content=_words(one))
                    for one in made
                ),
                reuse=False,
            )
        memory.db.reindex()


def asked_words(size: int) -> list[str]:
    """Return words to search for, two of one memory each."""
    rng = random.Random(5)
    return [" ".join(rng.sample(one.content.split(), 2)) for one in rng.sample(drafts(size), 200)]


def _words(draft: NodeDraft) -> str:
    return f"{draft.name} {draft.content}"


@contextmanager
def served(path: Path, folder: str) -> Iterator[str]:
    """Serve the store, and give the address of the explorer."""
    env = os.environ | {"XDG_DATA_HOME": folder, "WORLDDB_CONFIG": os.devnull}
    order = [*PROGRAM, "serve", "--port", "0", "--db", str(path), "--json"]
    server = subprocess.Popen(order, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
    try:
        assert server.stdout
        told = b""
        while not told.endswith(b"}\n"):
            told += server.stdout.readline()
        yield json.loads(told)["url"].rstrip("/").removesuffix("/mcp")
    finally:
        server.terminate()
        server.wait()


def measure(browser: Any, url: str, words: list[str], asked: int) -> None:
    """Print the figures of one store."""
    page = browser.new_page()
    page.set_default_timeout(WAIT_MS)
    first = _opened(page, f"{url}/#/memories?{ADA}", "main tbody tr")
    print(f"  first visit: the table after {first / 1000:,.0f} ms")
    loaded = float(page.evaluate(TYPED, words[0]))
    print(f"  first search: {loaded:,.0f} ms (loads the embedder)", flush=True)
    paints, tables = [], []
    for _ in range(5):
        tables.append(_opened(page, f"{url}/#/memories?{ADA}", "main tbody tr"))
        paints.append(float(page.evaluate(PAINT)) * 1000)
    print(line("first paint", paints))
    print(line("table with fifty rows", tables))
    typed = [float(page.evaluate(TYPED, text)) * 1000 for text in words[1 : asked + 1]]
    print(line("last key to results", typed), flush=True)
    print(line("next page of the table", [_turned(page, url, turn) for turn in range(5)]))
    asked_us = [_asked(page, url, text) for text in words[asked + 1 : asked + 11]]
    print(line("a question taken apart", asked_us), flush=True)
    page.goto(f"{url}/#/memories?{ADA}")
    page.wait_for_selector("[data-row]")
    ids = [row.get_attribute("data-row") for row in page.query_selector_all("[data-row]")[:5]]
    opened = [_opened(page, f"{url}/#/memory/{one}?{ADA}", ".version, dl") for one in ids]
    print(line("one memory", opened))
    journal = [_opened(page, f"{url}/#/journal?{ADA}", ".plot path") for _ in range(5)]
    print(line("journal with its curve", journal), flush=True)
    change = f"{url}/#/journal?first=1&last=2&{ADA}"
    print(
        line("what the large commit wrote", [_opened(page, change, ".card li") for _ in range(5)])
    )
    page.close()


def _opened(page: Any, address: str, shows: str) -> float:
    """Return how long a page takes from its address until it shows something, in microseconds."""
    page.goto("about:blank")
    started = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(shows)
    return (time.perf_counter() - started) * 1e6


def _turned(page: Any, url: str, turn: int) -> float:
    """Return how long the next page of the table takes, in microseconds."""
    if turn == 0:
        page.goto(f"{url}/#/memories?{ADA}")
        page.wait_for_selector("text=page 1, rows")
    started = time.perf_counter()
    page.keyboard.press("n")
    page.wait_for_selector(f"text=page {turn + 2}, rows")
    page.wait_for_selector("main .busy", state="detached")
    return (time.perf_counter() - started) * 1e6


def _asked(page: Any, url: str, text: str) -> float:
    """Return how long a question takes with its lanes, its weights and its prompt."""
    page.goto(f"{url}/#/ask?{ADA}")
    page.wait_for_selector("input[name=q]")
    page.fill("input[name=q]", text)
    started = time.perf_counter()
    page.keyboard.press("Enter")
    page.wait_for_selector("section article")
    return (time.perf_counter() - started) * 1e6


def fill_sample(path: Path) -> dict[str, str]:
    """Write the sample data of the explorer, and something for each part of its inbox."""
    with Memory(path, embedder="none", recluster="now", user_id="ada") as memory:
        for one in json.loads(Path(SAMPLE).read_text(encoding="utf-8")):
            memory.write(one["text"], at=one["at"], source="sample data")
        memory.write("Lunch with Jonathan Smyth.", source="calendar")
        memory.write("Dinner with Jonathon Smyth.", source="calendar")
        memory.write("The wifi word is swordfish.", tags=["wifi", "home"], pin=True)
        memory.write("The guest code is 9931.", ttl="5d")
        moved = next(one for one in memory.list() if "Lisbon" in one.text)
        user = next(one for one in memory.interior(type="Entity") if one.name == "user")
        return {"memory": str(moved.id), "person": str(user.id)}


def photograph(browser: Any, folder: Path) -> None:
    """Save a picture of every page, in light and dark."""
    with tempfile.TemporaryDirectory() as place:
        store = Path(place) / "memory.db"
        ids = fill_sample(store)
        with served(store, place) as url:
            for scheme, end in (("light", ""), ("dark", "-dark")):
                page = browser.new_page(color_scheme=scheme, viewport=VIEW)
                page.set_default_timeout(WAIT_MS)
                for name, (address, shows) in PICTURES.items():
                    address = address.format(**ids)
                    page.goto(f"{url}/#/{address}{'&' if '?' in address else '?'}{ADA}")
                    page.wait_for_selector(shows)
                    page.wait_for_load_state("networkidle")
                    page.screenshot(path=str(folder / f"{name}{end}.png"))
                page.close()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, nargs="+", default=[10_000])
    parser.add_argument("--searches", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="a folder for the stores")
    parser.add_argument("--pictures", type=Path)
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or sys.exit(
        "install chromium (Debian: apt-get install chromium)"
    )
    with sync_playwright() as running, tempfile.TemporaryDirectory() as folder:
        browser = running.chromium.launch(executable_path=path, args=FLAGS)
        if args.pictures is not None:
            photograph(browser, args.pictures)
            return
        print(machine())
        for size in args.memories:
            store = (args.keep or Path(folder)) / f"memories-{size}.db"
            if not store.exists():
                store.parent.mkdir(parents=True, exist_ok=True)
                started = time.perf_counter()
                fill(store, size)
                print(f"{size:,} memories written in {time.perf_counter() - started:,.0f} s")
            print(f"{size:,} memories, {store.stat().st_size / 1e6:,.0f} MB", flush=True)
            with served(store, folder) as url:
                measure(browser, url, asked_words(size), args.searches)


if __name__ == "__main__":
    main()
