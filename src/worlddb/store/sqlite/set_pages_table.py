"""SetPagesTable: the pages of the sets of worlds, and the changes that wait for theirs.

A commit changes a leaf here and a leaf there, and every fork above them: many pages of the file for
a few bytes. So a commit writes only what it put and dropped, in one row of `waiting`; the pages
themselves stay in memory, and are written together once enough changes wait. The pages in the file
and the changes that wait beside them say the same as the pages in memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

from blake3 import blake3

from worlddb.errors import CorruptionError
from worlddb.store.rows import Head, SetChange, SetPage
from worlddb.store.sqlite.sql_session import SqlSession

PAGES_MAX = 4_096
"""How many pages stay in memory: a few megabytes."""
WAITING_MAX = 256
"""How many members may wait: so many pages a commit may have to write at once."""

_SUM_BYTES = 16
_ID_BYTES = 32
_CHANGE = struct.Struct(">QBBII")
_SEQ = struct.Struct(">q")

PageKey = tuple[int, int, str]
"""World, kind, path."""


def size_of(changes: Iterable[SetChange]) -> int:
    """Return how many members were put or dropped."""
    return sum(len(change.put) + len(change.drop) for change in changes)


def encode(seq: int, changes: Iterable[SetChange]) -> bytes:
    """Return a commit's changes as one row's bytes, behind a sum over them."""
    parts = []
    for _, world, kind, put, drop in changes:
        width = len(put[0]) if put else 0
        parts.append(_CHANGE.pack(world, kind, width, len(put), len(drop)))
        parts += put
        parts += drop
    body = b"".join(parts)
    return _sum(seq, body) + body


def decode(seq: int, row: bytes) -> list[SetChange]:
    """Return the changes that `encode` wrote.

    Raises:
        CorruptionError: these are not the bytes that were written.
    """
    body = row[_SUM_BYTES:]
    if row[:_SUM_BYTES] != _sum(seq, body):
        raise CorruptionError(f"what waits of commit {seq} is damaged; restore a backup")
    changes, at = [], 0
    while at < len(body):
        world, kind, width, puts, drops = _CHANGE.unpack_from(body, at)
        at += _CHANGE.size
        put = [body[at + i * width : at + (i + 1) * width] for i in range(puts)]
        at += puts * width
        drop = [body[at + i * _ID_BYTES : at + (i + 1) * _ID_BYTES] for i in range(drops)]
        at += drops * _ID_BYTES
        changes.append(SetChange(seq, world, kind, put, drop))
    return changes


def _sum(seq: int, body: bytes) -> bytes:
    return blake3(_SEQ.pack(seq) + body).digest()[:_SUM_BYTES]


class SetPagesTable:
    """The pages and waiting changes in the file, as one session sees them."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def page(self, world: int, kind: int, path: str) -> SetPage | None:
        """Return one page of a world's set."""
        found = self._session.execute(
            "SELECT fork, body FROM pages WHERE world = ? AND kind = ? AND path = ?",
            (world, kind, path),
        ).fetchone()
        return None if found is None else SetPage(bool(found[0]), found[1])

    def waiting(self, after: int | None = None) -> list[SetChange]:
        """Return the changes of sets whose pages are not written, of all commits or after one."""
        sql = "SELECT seq, body FROM waiting WHERE ?1 IS NULL OR seq > ?1 ORDER BY seq"
        found = self._session.execute(sql, (after,))
        return [change for seq, body in found for change in decode(seq, body)]


class PageCache(dict[PageKey, "SetPage | None"]):
    """The writer's pages from one commit to the next; None says there is no such page."""

    def __init__(self) -> None:
        super().__init__()
        self.unwritten: set[PageKey] = set()
        self.waiting = 0
        self.is_fresh = False
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
        if len(self) > PAGES_MAX:
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

    def change(self, key: PageKey, page: SetPage | None) -> None:
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


class SetPagesWriter:
    """The pages as the write transaction changes them: the cache over the file."""

    def __init__(self, session: SqlSession, cache: PageCache) -> None:
        self._session = session
        self._table = SetPagesTable(session)
        self._cache = cache

    def page(self, world: int, kind: int, path: str) -> SetPage | None:
        """Return one page of a world's set."""
        key = (world, kind, path)
        if key not in self._cache:
            self._cache[key] = self._table.page(world, kind, path)
        return self._cache[key]

    def unseen(self) -> list[SetChange]:
        """Return the changes of sets that the pages of this session do not show yet.

        The last writer's pages go on if this process was it. After others they lack what those
        did, if that still waits; if it was written, pages must be read again.
        """
        cache = self._cache
        if cache.is_fresh:
            return []
        at = None
        if cache.at is not None:
            sql = "SELECT hash FROM commits WHERE seq = ? AND (SELECT min(seq) FROM waiting) <= seq"
            found = self._session.execute(sql, cache.at[:1]).get
            at = cache.at[0] if found == cache.at[1] else None
        if at is None:
            cache.forget()
        unseen = self._table.waiting(at)
        cache.caught_up(size_of(unseen))
        return unseen

    def put_pages(
        self, world: int, kind: int, pages: Mapping[str, tuple[int, bytes] | None]
    ) -> None:
        """Change pages of a set, for this session and the ones after it; None removes one."""
        for path, page in pages.items():
            changed = None if page is None else SetPage(bool(page[0]), page[1])
            self._cache.change((world, kind, path), changed)

    def keep_changes(self, changes: Sequence[SetChange]) -> None:
        """Write down what the commit changed in sets; or, once enough waits, all pages."""
        if not changes:
            return
        self._cache.waiting += size_of(changes)
        if self._cache.is_full:
            self.write_pages()
        else:
            seq = self._session.seq
            self._session.execute("INSERT INTO waiting VALUES (?, ?)", (seq, encode(seq, changes)))

    def write_pages(self) -> None:
        """Write every page that is different in the file; nothing waits any more."""
        cache = self._cache
        put, gone = [], []
        for key in sorted(cache.unwritten):
            page = cache[key]
            if page is None:
                gone.append(key)
            else:
                put.append((*key, *page))
        self._session.executemany(
            "DELETE FROM pages WHERE world = ? AND kind = ? AND path = ?", gone
        )
        self._session.executemany(
            "INSERT INTO pages (world, kind, path, fork, body) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (world, kind, path) DO UPDATE SET fork = excluded.fork, "
            "body = excluded.body",
            put,
        )
        self._session.execute("DELETE FROM waiting")
        cache.unwritten.clear()
        cache.waiting = 0
