"""Kept: the writer's view of the pages of sets, from one commit to the next.

A commit changes a leaf here and a leaf there, and every fork above them: many pages of the file for
a few bytes. So it writes down only what it put and dropped, in one row; the pages themselves are
kept in memory, and written together once enough changes wait. Pages in the file and the changes
that wait beside them say the same as the pages kept here.
"""

from __future__ import annotations

from worlddb.store.protocol import Head

KEPT_MAX = 4096
WAITING_MAX = 256
"""How many members may wait: so many pages a commit may have to write at once."""

Key = tuple[int, int, str]
Page = tuple[bool, bytes]


class KeptPages(dict[Key, "Page | None"]):
    """Pages by (world, kind, path) as of one commit; None says there is no such page."""

    def __init__(self) -> None:
        super().__init__()
        self.unwritten: set[Key] = set()
        self.waiting = 0
        self.is_fresh = False
        self._head: tuple[int, bytes] | None = None
        self.at: tuple[int, bytes] | None = None
        self._next: tuple[int, bytes] | None = None

    @property
    def is_full(self) -> bool:
        """Whether so much waits that pages have to be written."""
        return self.waiting > WAITING_MAX

    def begin(self, head: Head) -> None:
        """Start a transaction that follows the commit `head`."""
        self.is_fresh = self.at == (head.seq, head.hash)
        self._next = None
        if len(self) > KEPT_MAX:
            for key in self.keys() - self.unwritten:
                del self[key]

    def forget(self) -> None:
        """Drop everything: the file has it."""
        self.clear()
        self.unwritten.clear()
        self.waiting = 0

    def caught_up(self, waiting: int) -> None:
        """Say that the pages are those of the last commit, with so many more members unwritten."""
        self.is_fresh = True
        self.waiting += waiting

    def change(self, key: Key, page: Page | None) -> None:
        """Change a page. Until the commit lands, the pages are those of no commit."""
        self.at = None
        self[key] = page
        self.unwritten.add(key)

    def leads_to(self, seq: int, commit: bytes) -> None:
        """Remember the commit that the transaction becomes if it lands."""
        self._next = (seq, commit)

    def landed(self) -> None:
        """Keep the pages: they are now those of the last commit."""
        if self.is_fresh and self._next is not None:
            self.at = self._next
