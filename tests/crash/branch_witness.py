"""Branch witness: kills branchers, and holds the store and its branches to what they acknowledged.

What was announced and not acknowledged may have happened or not, but never half of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import worlddb
from crash.brancher import BRANCHES
from crash.test_kill import doomed, last_words, lines_of

BRANCHER = Path(__file__).with_name("brancher.py")
LOG_PAGES = 100  # A life writes some hundred pages, so the log is moved below open branches.
LINES_MAX = 60  # of one life; the most are acknowledged
Texts = dict[str, bool | None]
"""Text → whether it is there; None if nobody knows yet."""


class BranchWitness:
    """Remembers the texts of one store and of its branches."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trunk: Texts = {}
        self._sides: dict[str, Texts] = {name: {} for name in BRANCHES}
        self._merging = self._dropping = ""

    def kill(self, seed: int, moments: random.Random) -> tuple[int, list[str]]:
        """Let a brancher live for some lines; return how many it acknowledged, and what broke."""
        with doomed(self._path, seed, BRANCHER, LOG_PAGES) as brancher:
            said = lines_of(brancher.stdout)
            lines = list(islice(said, moments.randrange(1, LINES_MAX)))
            brancher.kill()
            lines += said
            complaint = last_words(brancher)
        if complaint:
            return 0, [f"{complaint!r:.300}"]
        for at, (what, name, text) in enumerate(lines):
            self._note(what, name, text, is_done=at % 2 == 1)
        return len(lines) // 2, list(self._settle())

    def _note(self, what: str, name: str, text: str, *, is_done: bool) -> None:
        side = self._sides[name]
        self._merging = self._dropping = ""
        if what == "write":
            self._trunk[text] = is_done or None
        elif what == "try":
            side[text] = is_done or None
        elif what == "merge":
            self._merging = "" if is_done else name
            for one, is_there in side.items():
                if not self._trunk.get(one):
                    self._trunk[one] = is_there if is_done else None
        elif is_done:
            side.clear()
        else:
            self._dropping = name

    def _settle(self) -> Iterator[str]:
        with worlddb.Memory(self._path, embedder="none", recluster="off") as memory:
            found = _texts_of(memory)
            yield from (str(problem) for problem in memory.db.check())
            if self._merging:
                new = [one for one, is_there in self._sides[self._merging].items() if is_there]
                unsure = [one for one in new if self._trunk[one] is None]
                if len(found.intersection(unsure)) not in (0, len(unsure)):
                    yield "half of a branch was merged"
            yield from _compared("the store", self._trunk, found, set())
            there = {one.name for one in memory.branches()}
            for name, side in self._sides.items():
                if name not in there:
                    if name != self._dropping and any(side.values()):
                        yield f"the branch {name} is gone"
                    side.clear()
                    continue
                with memory.branch(name, create=False) as branch:
                    yield from (f"{name}: {problem}" for problem in branch.db.check())
                    yield from _compared(name, side, _texts_of(branch), set(self._trunk))


def _compared(where: str, expected: Texts, found: set[str], others: set[str]) -> Iterator[str]:
    """Yield what is missing or too much; settle what nobody knew."""
    yield from (
        f"{where} lost {one!r}" for one, there in expected.items() if there and one not in found
    )
    yield from (f"{where} has {one!r}" for one in found - expected.keys() - others)
    for one in [one for one, there in expected.items() if there is None]:
        del expected[one]
        if one in found:
            expected[one] = True


def _texts_of(memory: worlddb.Memory) -> set[str]:
    found: set[str] = set()
    cursor = None
    while True:
        page = memory.list(limit=1_000, cursor=cursor)
        found |= {one.text for one in page}
        cursor = page.next_cursor
        if cursor is None:
            return found
