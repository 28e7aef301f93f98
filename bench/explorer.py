"""The explorer in a real Chromium, on stores of ten thousand and a million memories.

python -m bench.explorer [--sizes 10000] [--asked 20]
python -m bench.explorer --pictures docs/images

A server of its own with the default embedder serves a store of one user. Measured in the page: the
first paint, the first rows of the table, the time from the last key of a search to its results, the
next page of the table, and a question taken apart. With `--pictures` every page is photographed in
light and dark, on a store of sample data.
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

BATCH = 1_000_000  # One transaction: small ones each lay out the digests again.
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PROGRAM = [sys.executable, "-m", "worlddb.faces.cli"]
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
VIEW = {"width": 1200, "height": 860}
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


def fill(path: Path, size: int) -> list[str]:
    """Write memories of one user; return words to search for, two of one memory each."""
    rng, made = random.Random(5), drafts(size)
    with Memory(path, embedder="none", recluster="off") as memory:
        memory.write("begin", user_id="ada")
        scope = memory.list_scopes()[0].id
        for first in range(0, size, BATCH):
            with memory.db.transaction("bench", bulk=True) as tx:
                texts = made[first : first + BATCH]
                # As `Memory.write` makes them: all words in the text, no name.
                plain = [
                    replace(one, type="Memory", parent=scope, name="", content=_words(one))
                    for one in texts
                ]
                tx.create_nodes(plain, reuse=False)
    return [" ".join(rng.sample(one.content.split(), 2)) for one in rng.sample(made, 200)]


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
    started = time.perf_counter()
    page.goto(f"{url}/#/memories?{ADA}")
    page.wait_for_selector("main tbody tr")
    print(f"  first visit: the table after {(time.perf_counter() - started) * 1000:,.0f} ms")
    started = time.perf_counter()
    page.evaluate(TYPED, words[0])
    print(f"  first search: {(time.perf_counter() - started) * 1000:,.0f} ms (loads the embedder)")
    paints, tables = [], []
    for _ in range(5):
        page.goto("about:blank")
        started = time.perf_counter()
        page.goto(f"{url}/#/memories?{ADA}")
        page.wait_for_selector("main tbody tr")
        tables.append((time.perf_counter() - started) * 1e6)
        paints.append(float(page.evaluate(PAINT)) * 1000)
    print(line("first paint", paints))
    print(line("table with fifty rows", tables))
    typed = [float(page.evaluate(TYPED, text)) * 1000 for text in words[1 : asked + 1]]
    print(line("last key to results", typed), flush=True)
    print(line("next page of the table", [_turned(page, url, turn) for turn in range(3)]))
    asked_ns = [_asked(page, url, text) for text in words[asked + 1 : asked + 6]]
    print(line("a question taken apart", asked_ns), flush=True)
    page.close()


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
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000])
    parser.add_argument("--asked", type=int, default=20)
    parser.add_argument("--pictures", type=Path)
    args = parser.parse_args()
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or sys.exit(
        "install chromium (Debian: apt-get install chromium)"
    )
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=FLAGS)
        if args.pictures is not None:
            photograph(browser, args.pictures)
            return
        print(machine())
        for size in args.sizes:
            print(f"{size:,} memories", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                store = Path(folder) / "memory.db"
                words = fill(store, size)
                with served(store, folder) as url:
                    measure(browser, url, words, args.asked)


if __name__ == "__main__":
    main()
