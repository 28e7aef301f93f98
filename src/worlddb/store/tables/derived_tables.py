"""Derived tables: pages of sets, lookup keys, embeddings. All can be rebuilt from the nodes.

A commit changes single leaves of sets, and every fork above them: many pages for a few bytes. So a
commit writes only its puts and drops, in one row of `waiting`; the pages stay in memory
(`PageCache`), and are written together once enough changes wait. The pages in the file with the
waiting changes applied equal the pages in memory.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from blake3 import blake3

from worlddb.errors import CorruptionError
from worlddb.model.inputs import commit_time
from worlddb.model.records import ATTRIBUTE, from_metadata
from worlddb.store.rows import (
    ROOT_ROW,
    AttributesRow,
    CommitRow,
    Head,
    LookupsReached,
    ModelRow,
    PoolRow,
    SetChange,
    SetPage,
    StoredPool,
    StoredTokens,
    StoredVector,
    VectorRow,
)
from worlddb.store.tables.sql_session import (
    IN,
    WARM_BATCH,
    WAY_OUT,
    JournalTable,
    SqlSession,
    WarmRows,
)

BEFORE_ALL = -(1 << 63)  # below every commit number, also a damaged one
PAGES_MAX = 4_096  # pages kept in memory: a few megabytes
WAITING_MAX = 256  # members that may wait: readers have to apply them
UNWRITTEN_MAX = 64
"""Pages that may wait: the next writer writes them all. In a large world most changes are pages of
their own; this many take a millisecond or two, and writing later would save little."""
COUNTED_MAX = 1_000
"""Nodes with one name beyond which they are not counted: such a name identifies none of them."""
NOT_BEGUN = LookupsReached(ROOT_ROW, 0)
"""The progress of an empty index: the root world has no keys."""
EMBEDDING_TABLES = ("vectors", "tokens", "pools")
_HAS_ATTRIBUTES = f"kind = 'metadata' AND instr(text, '\"{ATTRIBUTE}') > 0"
# For each key, from its `most`-th newest node on.
_FIND = """
    SELECT l.key, l.node FROM carray(?1) k CROSS JOIN lookups l ON l.key = k.value
    WHERE l.node >= coalesce((
        SELECT node FROM lookups WHERE key = k.value ORDER BY node DESC LIMIT 1 OFFSET ?2 - 1
    ), 0)
"""
_FIND_RARE = """
    SELECT l.key, l.node FROM carray(?1) k CROSS JOIN lookups l ON l.key = k.value
    WHERE NOT EXISTS (SELECT 1 FROM lookups WHERE key = k.value LIMIT 1 OFFSET ?2)
"""
MODELS_SQL = (
    "SELECT number, id, dim, active, pooling, embedded, composed, seq FROM models "
    "ORDER BY active DESC, number"
)
VERSION_ROW = -1
"""The row of `lookups_reached` with the version by which the keys were made."""
REACHED_SQL = (
    "SELECT node, note, EXISTS (SELECT 1 FROM lookups_moved), "
    "(SELECT node FROM lookups_reached WHERE number = -1) FROM lookups_reached WHERE number = 0"
)
_COUNTS = """
    SELECT k.value, (SELECT count(*) FROM (SELECT 1 FROM lookups WHERE key = k.value LIMIT ?2))
    FROM carray(?1) k
"""
_SUM_BYTES = 16  # half a blake3 hash; enough against accidents
_ID_BYTES = 32  # a whole blake3 hash
_CHANGE = struct.Struct(">QBBII")
_SEQ = struct.Struct(">q")

PageKey = tuple[int, int, str]  # World, kind, path.


def size_of(changes: Iterable[SetChange]) -> int:
    """Return the number of members put or dropped."""
    return sum(len(change.put) + len(change.drop) for change in changes)


def encode(seq: int, changes: Iterable[SetChange]) -> bytes:
    """Return a commit's changes as the bytes of one row, after a checksum."""
    parts = []
    for _, world, kind, put, drop in changes:
        width = len(put[0]) if put else 0
        parts.append(_CHANGE.pack(world, kind, width, len(put), len(drop)))
        parts += put
        parts += drop
    body = b"".join(parts)
    return _sum(seq, body) + body


def decode(seq: int, row: bytes) -> list[SetChange]:
    """Return the changes from their bytes; CorruptionError if the checksum is wrong."""
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
        found = self._session.execute(
            "SELECT fork, body FROM pages WHERE world = ? AND kind = ? AND path = ?",
            (world, kind, path),
        ).fetchone()
        return None if found is None else SetPage(bool(found[0]), found[1])

    def waiting(self, after: int | None = None) -> list[SetChange]:
        """Return the changes that are not in pages yet, of all commits or those after one."""
        sql = "SELECT seq, body FROM waiting WHERE seq > ? ORDER BY seq"
        found = self._session.execute(sql, (BEFORE_ALL if after is None else after,))
        return [change for seq, body in found for change in decode(seq, body)]


class PageCache(dict[PageKey, "SetPage | None"]):
    """The writer's pages, kept from commit to commit; None means that there is no such page."""

    def __init__(self) -> None:
        super().__init__()
        self.unwritten: set[PageKey] = set()
        self.waiting = 0
        self.is_fresh = False
        self.at: tuple[int, bytes] | None = None
        self.coming: tuple[int, bytes] | None = None
        self.warm = WarmRows()

    def begin(self, head: Head) -> None:
        """Start a transaction that follows the commit `head`."""
        self.is_fresh = self.at == (head.seq, head.hash)
        self.warm.begin(self.is_fresh)
        self.coming = None
        if len(self) > PAGES_MAX:
            for key in self.keys() - self.unwritten:
                del self[key]

    def leads_to(self, seq: int, commit: bytes) -> None:
        """Record the commit that the transaction will become."""
        self.coming = (seq, commit)

    def landed(self) -> None:
        """Keep the pages, which now belong to the last commit."""
        if self.is_fresh and self.coming is not None:
            self.at = self.coming
        self.warm.landed()


SCANNED_FROM = 100  # vectors; for fewer a search for each costs less than the rows in between


class TransactionJournal:
    """The start of a write transaction and the commit it ends with; the page cache follows both."""

    def __init__(self, session: SqlSession, journal: JournalTable, cache: PageCache) -> None:
        self._session = session
        self._journal = journal
        self._cache = cache

    def begin(self, clock: Callable[[], int]) -> None:
        """Start a transaction that follows the last commit, at a later time than that."""
        session = self._session
        session.forget()
        head = self._journal.head()  # No other writer can commit meanwhile.
        session.seq = head.seq + 1
        session.time = commit_time(clock(), head.time)
        self._cache.begin(head)
        session.warm = self._cache.warm

    def insert_commit(self, row: CommitRow) -> None:
        self._cache.leads_to(row.seq, row.hash)
        self._journal.insert_commit(row)


class SetPagesWriter:
    """The pages with the write transaction's changes: the cache over the file."""

    def __init__(self, session: SqlSession, cache: PageCache) -> None:
        self._session = session
        self._table = SetPagesTable(session)
        self._cache = cache

    def page(self, world: int, kind: int, path: str) -> SetPage | None:
        key = (world, kind, path)
        if key not in self._cache:
            self._cache[key] = self._table.page(world, kind, path)
        return self._cache[key]

    def unseen(self) -> list[SetChange]:
        """Return the earlier changes that this transaction's pages do not contain yet, by commit.

        If this process was the last writer, its cached pages continue. Otherwise they lack the
        waiting changes of others; if those have been written, the pages must be read again.
        """
        cache = self._cache
        if cache.is_fresh:
            return []
        at = None
        if cache.at is not None:
            sql = "SELECT hash FROM commits WHERE seq = ? AND (SELECT min(seq) FROM waiting) <= seq"
            found = self._session.execute(sql, cache.at[:1]).get
            at = cache.at[0] if found == cache.at[1] else None
        if at is None:  # The file is complete.
            cache.clear()
            cache.unwritten.clear()
            cache.waiting = 0
        unseen = self._table.waiting(at)
        cache.is_fresh = True
        cache.waiting += size_of(unseen)
        return unseen

    def put_pages(
        self, world: int, kind: int, pages: Mapping[str, tuple[int, bytes] | None]
    ) -> None:
        cache = self._cache
        cache.at = None  # Until the commit, the pages belong to no commit.
        for path, page in pages.items():
            key = (world, kind, path)
            cache[key] = None if page is None else SetPage(bool(page[0]), page[1])
            cache.unwritten.add(key)

    def keep_changes(self, changes: Sequence[SetChange]) -> None:
        if not changes:
            return
        self._cache.waiting += size_of(changes)
        if self._cache.waiting > WAITING_MAX or len(self._cache.unwritten) > UNWRITTEN_MAX:
            self.write_pages()
        else:
            seq = self._session.seq
            self._session.insert("waiting", ("seq", "body"), [(seq, encode(seq, changes))])

    def write_pages(self) -> None:
        cache = self._cache
        put, gone = [], []
        for key in sorted(cache.unwritten):
            page = cache[key]
            if page is None:
                gone.append(key)
            else:
                put.append((*key, int(page.is_fork), page.body))
        self._session.executemany(
            "DELETE FROM pages WHERE world = ? AND kind = ? AND path = ?", gone
        )
        self._session.put("pages", ("world", "kind", "path"), ("fork", "body"), put)
        self._session.execute("DELETE FROM waiting")
        cache.unwritten.clear()
        cache.waiting = 0


class LookupTable:
    """Nodes by keys of names, attributes and contents, as one session sees them.

    Keys are numbers; several nodes may share one, also by chance.
    """

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def is_begun(self, version: int) -> bool:
        self.reached()
        return self._session.keys_version == version

    def begin(self, version: int) -> None:
        for table in ("lookups", "lookups_worlds", "lookups_moved"):
            self._session.execute(f"DELETE FROM {table}")
        rows = [(0, *NOT_BEGUN), (VERSION_ROW, version, 0)]
        self._session.put("lookups_reached", ("number",), ("node", "note"), rows)
        self._session.reached = None

    def reached(self) -> LookupsReached:
        """Return the last node and note in the index, (1, 0) in a new store; cached."""
        session = self._session
        if session.reached is None:
            found: Any = session.execute(REACHED_SQL).fetchone()
            session.reached = NOT_BEGUN if found is None else LookupsReached(*found[:2])
            session.has_moved = found is not None and bool(found[2])
            session.keys_version = None if found is None else found[3]
        return session.reached

    def set_reached(self, node: int, note: int) -> None:
        session = self._session
        self.reached()
        session.put("lookups_reached", ("number",), ("node", "note"), [(0, node, note)])
        if session.has_moved:
            session.execute("DELETE FROM lookups_moved WHERE node IS NOT NULL")
        session.reached, session.has_moved = LookupsReached(node, note), False

    def moved(self) -> list[int]:
        self.reached()
        if not self._session.has_moved:
            return []
        return self._session.rows("SELECT node FROM lookups_moved ORDER BY node", ())

    def names(self, world: int) -> int:
        sql = "SELECT names FROM lookups_worlds WHERE world = ?"
        return self._session.one(sql, (world,)) or 0

    def add_names(self, names: Mapping[int, int]) -> None:
        if names:
            counted = "(world) DO UPDATE SET names = lookups_worlds.names + excluded.names"
            self._session.insert("lookups_worlds", ("world", "names"), names.items(), counted)

    def put(self, rows: Iterable[tuple[int, int]]) -> None:
        last, given = self.reached().node, set(rows)
        new = {row for row in given if row[1] > last}  # The index has no key of these nodes yet.
        self._session.insert_fresh("lookups", ("key", "node"), sorted(new))
        if old := sorted(given - new):
            self._session.insert("lookups", ("key", "node"), old, "DO NOTHING")

    def find(self, keys: Sequence[int], most: int) -> dict[int, list[int]]:
        return self._nodes_by_key(_FIND, keys, most) if most > 0 else {key: [] for key in keys}

    def find_rare(self, keys: Sequence[int], most: int) -> dict[int, list[int]]:
        return self._nodes_by_key(_FIND_RARE, keys, most)

    def _nodes_by_key(self, sql: str, keys: Sequence[int], most: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {key: [] for key in keys}
        if found:
            for key, node in self._session.execute(sql, (self._session.among(list(found)), most)):
                found[key].append(node)
        for nodes in found.values():
            nodes.sort(reverse=True)  # SQLite has them oldest first, others in any order.
        return found

    def counts(self, keys: Iterable[int]) -> dict[int, int]:
        wanted = dict.fromkeys(keys)
        if not wanted:
            return {}
        return dict(
            self._session.execute(_COUNTS, (self._session.among(list(wanted)), COUNTED_MAX))
        )

    def attributes(self, nodes: Sequence[int]) -> list[AttributesRow]:
        warm = self._session.warm
        if warm is None or len(nodes) > WARM_BATCH:
            among = self._session.among(list(nodes))
            return self._attributes(f"node {IN}", (among,)) if nodes else []
        if missing := [node for node in nodes if node not in warm.attributes]:
            warm.attributes.update((node, []) for node in missing)
            for found in self._attributes(f"node {IN}", (self._session.among(missing),)):
                warm.attributes[found.node].append(found)
        return [found for node in nodes for found in warm.attributes[node]]

    def attributes_after(self, note: int) -> list[AttributesRow]:
        return self._attributes("row > ?", (note,))

    def _attributes(self, where: str, values: tuple[Any, ...]) -> list[AttributesRow]:
        sql = f"SELECT node, text FROM notes WHERE {where} AND {_HAS_ATTRIBUTES} ORDER BY row"
        found = self._session.execute(sql, values)
        try:
            return [AttributesRow(node, from_metadata(json.loads(text))) for node, text in found]
        except UnicodeDecodeError:
            raise  # The session raises the precise error.
        except (ValueError, TypeError, AttributeError) as error:
            raise CorruptionError(f"a note cannot be read ({error}); {WAY_OUT}") from None


class EmbeddingTables:
    """Embeddings, as one session sees them.

    A model's row records its progress: nodes up to `embedded` have a vector, nodes up to `composed`
    count in their worlds, as of commit `seq`. One model is active; another one may be filled
    meanwhile.
    """

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def models(self) -> list[ModelRow]:
        return [ModelRow(*row) for row in self._session.execute(MODELS_SQL)]

    def add_model(self, ident: str, dim: int, pooling: str) -> ModelRow:
        self._session.execute(
            "INSERT INTO models (number, id, dim, active, pooling, embedded, composed, seq) "
            "SELECT coalesce(max(number), 0) + 1, ?, ?, CASE WHEN count(*) = 0 THEN 1 ELSE 0 END, "
            "?, 1, 1, -1 FROM models",
            (ident, dim, pooling),
        )
        model = next(row for row in self.models() if row.id == ident)
        # If a model's row was deleted by hand, vectors may remain under this number.
        for table in EMBEDDING_TABLES:
            self._session.execute(f"DELETE FROM {table} WHERE model = ?", (model.number,))
        return model

    def activate(self, number: int) -> None:
        self._session.execute("DELETE FROM models WHERE number != ?", (number,))
        for table in EMBEDDING_TABLES:
            self._session.execute(f"DELETE FROM {table} WHERE model != ?", (number,))
        self._session.execute("UPDATE models SET active = 1")

    def set_embedded(self, number: int, node: int) -> None:
        self._session.execute("UPDATE models SET embedded = ? WHERE number = ?", (node, number))

    def set_composed(self, number: int, node: int, seq: int) -> None:
        sql = "UPDATE models SET composed = ?, seq = ? WHERE number = ?"
        self._session.execute(sql, (node, seq, number))

    def start_pools(self, number: int, pooling: str) -> None:
        self._session.execute("DELETE FROM pools WHERE model = ?", (number,))
        sql = "UPDATE models SET composed = 1, seq = -1, pooling = ? WHERE number = ?"
        self._session.execute(sql, (pooling, number))

    def vectors(self, number: int, nodes: list[int]) -> list[VectorRow]:
        return list(map(VectorRow._make, self._of("vectors", "node, vector", number, nodes)))

    def _of(self, table: str, columns: str, number: int, nodes: list[int]) -> Iterable[Any]:
        """Yield the rows of nodes in a table of embeddings, by node."""
        sql = f"SELECT {columns} FROM {table} WHERE model = ? AND node"
        first, last = min(nodes, default=0), max(nodes, default=0)
        if len(nodes) > SCANNED_FROM and last - first < 2 * len(nodes):
            # Most of a range is wanted: one scan instead of a search for each.
            wanted = set(nodes)
            found = self._session.stream(
                f"{sql} BETWEEN ? AND ? ORDER BY node", (number, first, last)
            )
            if len(wanted) == last - first + 1:
                return found
            return (row for row in found if row[0] in wanted)
        return self._session.execute(
            f"{sql} {IN} ORDER BY node", (number, self._session.among(nodes))
        )

    def vectors_after(self, number: int, node: int, seq: int) -> Iterator[VectorRow]:
        whole = self._session.stream(
            "SELECT v.node, coalesce(p.vector, v.vector) FROM vectors v LEFT JOIN pools p "
            "ON p.model = v.model AND p.node = v.node WHERE v.model = ? AND v.node >= ? "
            "ORDER BY v.node",
            (number, node),
        )
        yield from map(VectorRow._make, whole)
        composed = self._session.execute(
            "SELECT node, vector FROM pools WHERE model = ? AND seq > ? AND node < ? ORDER BY node",
            (number, seq, node),
        )
        yield from map(VectorRow._make, composed)

    def composed_after(self, number: int, seq: int) -> set[int]:
        sql = "SELECT node FROM pools WHERE model = ? AND seq > ?"
        return {row for (row,) in self._session.execute(sql, (number, seq))}

    def pools(self, number: int, nodes: list[int]) -> list[PoolRow]:
        columns = "node, children, weight, total, vector"
        return list(map(PoolRow._make, self._of("pools", columns, number, nodes)))

    def put_vectors(self, number: int, items: Iterable[tuple[int, bytes]]) -> None:
        rows = ((number, node, vector) for node, vector in items)
        self._session.put("vectors", ("model", "node"), ("vector",), rows)

    def tokens(self, number: int, nodes: list[int]) -> list[VectorRow]:
        sql = f"SELECT node, vectors FROM tokens WHERE model = ? AND node {IN} ORDER BY node"
        return list(
            map(VectorRow._make, self._session.execute(sql, (number, self._session.among(nodes))))
        )

    def without_tokens(self, number: int, after: int, most: int) -> list[int]:
        sql = (
            "SELECT row FROM nodes WHERE row > ?2 "
            "AND row <= (SELECT embedded FROM models WHERE number = ?1) "
            "AND (name != '' OR content != '') "
            "AND row NOT IN (SELECT node FROM tokens WHERE model = ?1) ORDER BY row LIMIT ?3"
        )
        return self._session.rows(sql, (number, after, most))

    def put_tokens(self, number: int, items: Iterable[tuple[int, bytes]]) -> None:
        rows = ((number, node, vectors) for node, vectors in items)
        self._session.put("tokens", ("model", "node"), ("vectors",), rows)

    def put_pools(self, number: int, pools: Iterable[PoolRow], seq: int) -> None:
        rows = ((number, *pool, seq) for pool in pools)
        columns = ("children", "weight", "total", "vector", "seq")
        self._session.put("pools", ("model", "node"), columns, rows)

    def all_vectors(self) -> Iterator[StoredVector]:
        sql = "SELECT model, node, vector FROM vectors ORDER BY model, node"
        return map(StoredVector._make, self._session.stream(sql))

    def all_tokens(self) -> Iterator[StoredTokens]:
        sql = "SELECT model, node, length(vectors) FROM tokens ORDER BY model, node"
        return map(StoredTokens._make, self._session.stream(sql))

    def all_pools(self) -> Iterator[StoredPool]:
        sql = (
            "SELECT model, seq, node, children, weight, total, vector FROM pools "
            "ORDER BY model, node"
        )
        for number, seq, *pool in self._session.stream(sql):
            yield StoredPool(number, seq, PoolRow(*pool))
