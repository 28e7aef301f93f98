"""Kept: pages of set digests that the next commit will probably need again.

Most commits touch the worlds that the last one touched. A writer keeps the pages it read and wrote
in memory as long as nobody else has committed; the hash of the last commit tells.
"""

from __future__ import annotations

KEPT_MAX = 4096


class KeptPages(dict[tuple[int, int, str], "tuple[bool, bytes] | None"]):
    """Pages by (world, kind, path) as of one commit; None says there is no such page."""

    def __init__(self) -> None:
        super().__init__()
        self._at: bytes | None = None
        self._next: bytes | None = None

    def begin(self, head: bytes) -> None:
        """Start a transaction that follows the commit `head`; what is of another one is dropped."""
        if self._at != head or len(self) > KEPT_MAX:
            self.clear()
        # Until the commit has landed, nothing here belongs to a commit that others can see.
        self._at = self._next = None

    def leads_to(self, commit: bytes) -> None:
        """Remember the commit that the transaction becomes if it lands."""
        self._next = commit

    def landed(self) -> None:
        """Keep the pages: they are now those of the last commit."""
        self._at = self._next
