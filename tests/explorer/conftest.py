"""A real Chromium for the tests of the explorer, and a server with something in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from faces.http.serving import Site, serving
from worlddb import Memory

INSTALL_S_MAX = 180
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str:
    """Return the path of a Chromium; install Debian's where that is possible."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and shutil.which("apt-get") and os.geteuid() == 0:
        order = ["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"]
        try:
            subprocess.run(order, capture_output=True, timeout=INSTALL_S_MAX, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("chromium could not be installed in time")
        found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no chromium here; install it (Debian: apt-get install chromium)")
    return found


# For a module, not for the session: while a browser is open, `ast.parse` fails in Python 3.11.
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = chromium()
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@dataclass
class Explorer:
    """A page of the explorer, what the browser complained of, and the memory behind it."""

    page: Any
    url: str
    memory: Memory
    complaints: list[str]

    def open(self, place: str, shows: str) -> None:
        """Go to a page and wait until it shows something."""
        self.page.goto(f"{self.url}/#/{place}")
        self.page.wait_for_selector(shows)

    def settle(self) -> None:
        """Wait until nothing of the page loads any more."""
        self.page.wait_for_selector(".loading, [aria-busy=true]", state="detached")


def watched(browser: Any, url: str, memory: Memory, **options: Any) -> Explorer:
    """Return a new page whose complaints are kept: errors, and what the policy has blocked."""
    # Colours that are half drawn have too little contrast.
    page = browser.new_page(reduced_motion="reduce", **options)
    page.set_default_timeout(90_000)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def hear(said: Any) -> None:
        if said.type == "error" and "status of 401" not in said.text:  # A wrong token is no error.
            complaints.append(said.text)

    page.on("console", hear)
    return Explorer(page, url, memory, complaints)


def fill(memory: Memory) -> None:
    """Write a small history: a move, a conflict, a name that is known by two spellings."""
    for month, text in enumerate(
        (
            "My manager Sarah Chen likes green tea.",
            "I live in Hamburg.",
            "The budget of Project Falcon is 40k.",
            "I moved to Lisbon.",
            "The budget of Project Falcon is 60k.",
            "Lunch with Jonathan Smyth.",
            "Dinner with Jonathon Smyth.",
        ),
        1,
    ):
        memory.write(text, user_id="ada", at=datetime(2026, month, 1, tzinfo=UTC), source="chat")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory(":memory:", embedder="none", recluster="now") as opened:
        fill(opened)
        yield opened


@pytest.fixture
def site(memory: Memory) -> Iterator[Site]:
    with serving(memory) as found:
        yield found


@pytest.fixture
def explorer(browser: Any, site: Site, memory: Memory) -> Iterator[Explorer]:
    found = watched(browser, f"http://127.0.0.1:{site.port}", memory)
    yield found
    found.page.close()
    assert found.complaints == []
