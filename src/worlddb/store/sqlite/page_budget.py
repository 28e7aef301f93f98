"""Page budget: the memory for pages that all connections of this process share.

SQLite gives each connection a page cache of its own and has no limit over all of them. So each
connection gets an equal share, anew whenever it is taken or given back: one alone may use it all,
nine use no more together than one would.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import apsw

BUDGET_KIB = 131_072
"""The indexes of a million nodes fit. The kernel keeps the file in memory as well, so more gains
little; unused pages cost nothing."""
SHARE_KIB_MIN = 2_000  # SQLite's own default: with less, a larger commit spills to the disk.


class PageBudget:
    """The open connections, and the share that each was given last."""

    def __init__(self, kib: int = BUDGET_KIB) -> None:
        self._kib = kib
        self._shares: WeakKeyDictionary[apsw.Connection, int] = WeakKeyDictionary()

    def share(self, con: apsw.Connection) -> None:
        """Give a connection its share; pages beyond the share are freed at once."""
        self._shares.setdefault(con, 0)
        share = max(self._kib // len(self._shares), SHARE_KIB_MIN)
        if self._shares[con] != share:
            con.pragma("cache_size", -share)
            self._shares[con] = share

    def leave(self, con: apsw.Connection) -> None:
        """Forget a connection that closes; the others get more when they are used next."""
        self._shares.pop(con, None)


PAGE_BUDGET = PageBudget()
