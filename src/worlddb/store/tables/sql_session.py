"""SQL session: the database connection that the shared tables need.

The tables are written once, for SQLite and PostgreSQL. Their SQL is the common subset, with a few
constructs of SQLite that `store/postgres/server_schema.py` translates:

    ?, ?1            values, in order or by number
    row IN …carray   a list of numbers as one value (`IN`, with `session.among(rows)`)
    carray(?) k      the same list as a table with the column `value`
    CROSS JOIN … ON  a join that SQLite does not reorder
    ON CONFLICT (…)  the key without the tenant
    COLLATE NOCASE   the case of ASCII letters does not matter

The session implements the parts that differ between the databases (text index, table audits, bulk
loads). `JournalTable` has commits and history; `TableScan` reads whole tables exactly as stored,
for `check` and `export`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple, Protocol, TypeVar

from worlddb.errors import CorruptionError
from worlddb.store.reader_groups import TextSearch, WholeTables
from worlddb.store.rows import (
    AliasRow,
    AttributesRow,
    BodyRow,
    CommitRow,
    ConflictScan,
    EdgeScan,
    Head,
    HistoryRow,
    LookupsReached,
    NewText,
    NodePlace,
    NodeScan,
    NoteRow,
    PageRow,
    PremiseRow,
    ProposalScan,
    RegistrationScan,
    World,
)

IN = "IN (SELECT value FROM carray(?))"
"""The condition for a list of rows, bound as one value: `(session.among(rows),)`."""
FOREVER = 1 << 62  # a commit number above all others
# Commits are numbered without gaps and their times increase, so a binary search finds one by its
# time; an index by time would cost every commit a page.
_COMMIT_AT = """
    WITH RECURSIVE search (low, high) AS (
        SELECT -1 + 0 * ?1, ?1
        UNION ALL
        SELECT CASE WHEN c.time <= ?2 THEN c.seq ELSE low END,
               CASE WHEN c.time <= ?2 THEN high ELSE (low + high + 1) / 2 - 1 END
        FROM search LEFT JOIN commits c ON c.seq = (low + high + 1) / 2 WHERE low < high
    )
    SELECT low FROM search WHERE low = high
"""
HEAD_SQL = (
    "SELECT seq, time, hash, root_state, nodes, edges, notes FROM commits ORDER BY seq DESC LIMIT 1"
)
_HELD = (
    "SELECT count(*), count(state), (SELECT count(*) FROM (SELECT 1 FROM edges WHERE source = ? "
    "AND type = 'contains' AND gone IS NULL LIMIT 1) m) "
    "FROM (SELECT state FROM nodes WHERE parent = ? LIMIT ?) c"
)
"""How many children a world has, how many of these are worlds, and whether it has members."""
PLAIN_MAX = 1_000  # children looked at for `is_plain`: their rows are read in a millisecond
WARM_MAX = 20_000  # rows of nodes that a writer caches: some ten megabytes
WARM_CHARS = 1_000  # longer texts are not cached: names and most memories are shorter
WARM_NEW_MAX = 64  # new nodes cached per commit: those that the next texts may mention, too
WARM_BATCH = 2_000  # a larger read is not the write of a text, and is not cached
WAY_OUT = "`worlddb check` lists all damage; restore a backup"

R = TypeVar("R", bound=NamedTuple)

Past = dict[tuple[str, int], Any]  # Former values by (field, row).


class SessionContext:
    """Shared by all sessions of a store: a count of statements, a setting, and randomness."""

    __slots__ = ("random_bytes", "statements", "verifies")

    def __init__(self, verifies: bool, random_bytes: Callable[[int], bytes]) -> None:
        self.random_bytes = random_bytes
        self.statements = 0
        self.verifies = verifies


class WarmRows:
    """The rows of nodes that the writer has read, cached from one commit to the next.

    The cache holds while the commits of this writer follow each other. A transaction after another
    writer's commit, or after a rollback, begins with an empty cache. `above` are the parents of
    worlds, `absent` are ids without a node, `closed` says of a row whether its validity was ever
    closed. `outsiders` are rows that were never inside a world, by the row of that world; `plain`
    says of a world whether all that is inside it are its children.
    """

    __slots__ = (
        "above",
        "absent",
        "aliases",
        "attributes",
        "bodies",
        "closed",
        "is_open",
        "is_settled",
        "outsiders",
        "places",
        "plain",
        "rows",
        "worlds",
    )

    def __init__(self) -> None:
        self.is_open = self.is_settled = False
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.above: dict[int, int | None] = {}
        self.absent: set[bytes] = set()
        self.aliases: dict[int, list[AliasRow]] = {}
        self.attributes: dict[int, list[AttributesRow]] = {}
        self.bodies: dict[int, BodyRow] = {}
        self.closed: dict[int, bool] = {}
        self.outsiders: dict[int, set[int]] = {}
        self.places: dict[bytes, NodePlace] = {}
        self.plain: dict[int, bool] = {}
        self.rows: dict[bytes, int] = {}
        self.worlds: dict[int, World] = {}

    def begin(self, is_fresh: bool) -> None:
        """Begin a transaction; `is_fresh` if it follows the last commit of this writer."""
        size = len(self.bodies) + len(self.rows) + len(self.places) + len(self.closed)
        size += sum(map(len, self.outsiders.values()))
        if self.is_open or not is_fresh or size > WARM_MAX:
            self.clear()
        self.is_open = self.is_settled = True

    def landed(self) -> None:
        """Keep the cache: the transaction becomes a commit."""
        self.is_open = False

    def drop(self, row: int, column: str) -> None:
        """Drop a node of which a column has changed."""
        self.bodies.pop(row, None)
        self.closed.pop(row, None)
        self.worlds.pop(row, None)
        if column == "parent":
            self.places.clear()
            self.above.clear()
            self.forget_members()

    def is_plain(self, session: SqlSession, world: int) -> bool:
        """Return whether all that is inside a world are its children; False if it has many.

        A node that becomes a world has a state only at the end of a transaction, so a world is
        looked at before the transaction has written nodes.
        """
        found = self.plain.get(world, False)
        if self.is_settled and world not in self.plain:
            session.need_index("edges_source")
            held: Any = session.execute(_HELD, (world, world, PLAIN_MAX + 1)).fetchone()
            found = self.plain[world] = held[0] <= PLAIN_MAX and not held[1] and not held[2]
        return found

    def extend(self, session: SqlSession, worlds: set[int]) -> None:
        """Record that nodes were written into worlds: what is around these is no longer plain."""
        self.is_settled = False
        if not self.plain:
            return
        if missing := list(worlds - self.above.keys()):
            sql = f"SELECT row, parent FROM nodes WHERE row {IN}"
            self.above.update(session.execute(sql, (session.among(missing),)))
        for world in worlds:
            self.plain.pop(self.above[world] or 0, None)

    def forget_members(self) -> None:
        """Forget what is inside worlds: a membership was written, or a node moved."""
        self.is_settled = False
        self.outsiders.clear()
        self.plain.clear()

    def drop_notes(self, nodes: Iterable[int]) -> None:
        """Drop the notes of nodes that get further notes."""
        for node in nodes:
            self.aliases.pop(node, None)
            self.attributes.pop(node, None)


class DeferredIndexes(Protocol):
    """A bulk load with deferred indexes."""

    names: set[str]

    def keep(self, rows: Iterable[NewText]) -> None: ...
    def analyse(self, pool: Executor) -> None: ...
    def build(self) -> None: ...


class Found(Protocol):
    """The rows that a statement found."""

    @property
    def get(self) -> Any: ...  # the first column of the first row, or None
    def fetchone(self) -> Any: ...
    def fetchall(self) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


class TextTable(TextSearch, Protocol):
    """The full-text index of a session that may write."""

    def insert(self, rows: Iterable[NewText]) -> None: ...
    def erase(self, rows: Sequence[int]) -> None: ...


class SqlSession(ABC):
    """One connection, from the beginning of a transaction to its end.

    It counts statements, caches what cannot change during a snapshot, and knows whether a bulk load
    has deferred indexes. `seq` and `time` are those of the commit that a write becomes.
    """

    __slots__ = (
        "con",
        "context",
        "deferred",
        "has_moved",
        "head",
        "keys_version",
        "node_rows",
        "reached",
        "seq",
        "time",
        "verifies",
        "warm",
    )

    def __init__(self, con: Any, context: SessionContext, time: int = 0) -> None:
        self.con = con
        self.seq = 0
        self.time = time
        self.verifies = context.verifies
        self.context = context
        self.forget()

    def forget(self) -> None:
        """Drop the cache of a transaction before the next one."""
        self.deferred: DeferredIndexes | None = None
        self.head: Head | None = None
        self.reached: LookupsReached | None = None
        self.has_moved = False
        self.keys_version: int | None = None
        self.node_rows: dict[bytes, int] = {}
        self.warm: WarmRows | None = None

    def at(self, time: int) -> None:
        """Set the time of the commit that a write becomes: a replay repeats the original time."""
        self.time = time

    def insert_texts(self, rows: Iterable[NewText]) -> None:
        """Index the texts of new nodes; a bulk load keeps them until its end."""
        if self.deferred is not None:
            self.deferred.keep(rows)
        else:
            self.texts().insert(rows)

    # -- implemented by each database --------------------------------------------------------------

    @abstractmethod
    def execute(self, sql: str, values: Any = None) -> Found:
        """Run one statement."""

    @abstractmethod
    def executemany(self, sql: str, rows: Iterable[Any]) -> None:
        """Run one statement for many rows; it counts once."""

    @abstractmethod
    def stream(self, sql: str, values: tuple[Any, ...] = ()) -> Iterator[Any]:
        """Yield the rows of a whole table without holding all of them in memory."""

    @abstractmethod
    def insert(
        self, table: str, columns: Sequence[str], rows: Iterable[Any], conflict: str = ""
    ) -> None:
        """Insert rows; `conflict` follows ON CONFLICT."""

    @abstractmethod
    def among(self, rows: Sequence[int]) -> Any:
        """Return rows as a value for `IN`; 0 matches no row."""

    @abstractmethod
    def texts(self) -> TextTable:
        """Return the full-text index."""

    @abstractmethod
    def scan(self) -> WholeTables:
        """Return the whole tables."""

    def bulk_load(self, head: Head) -> DeferredIndexes | None:
        """Defer indexes, if the database gains by it."""
        return None

    def need_table(self, name: str, *, is_written: bool = False) -> bool:
        """Return whether a table exists that is created when first written."""
        return True

    def former(self, value: Any) -> Any:
        """Return a value of any type in the form stored in `history`; `current` is the inverse."""
        return value

    def former_of(self, column: str) -> str:
        """Return the SQL that converts a column by `former`."""
        return column

    def current(self, was: Any) -> Any:
        """Return the value stored in `history`."""
        return was

    def insert_fresh(self, table: str, columns: Sequence[str], rows: Sequence[Any]) -> None:
        """Insert different rows that the table does not have yet."""
        self.insert(table, columns, rows, "DO NOTHING")

    # -- shorthands --------------------------------------------------------------------------------

    def put(
        self, table: str, keys: Sequence[str], columns: Sequence[str], rows: Iterable[Any]
    ) -> None:
        """Write rows of `keys` and `columns`, replacing existing ones."""
        changed = ", ".join(f"{column} = excluded.{column}" for column in columns)
        conflict = f"({', '.join(keys)}) DO UPDATE SET {changed}"
        self.insert(table, (*keys, *columns), rows, conflict)

    def one(self, sql: str, values: tuple[Any, ...]) -> int | None:
        """Return the first column of the first row, an integer, or None."""
        found: int | None = self.execute(sql, values).get
        return found

    def rows(self, sql: str, values: tuple[Any, ...]) -> list[int]:
        """Return the only column of all rows, integers."""
        return [row for (row,) in self.execute(sql, values)]

    def need_index(self, *names: str) -> None:
        """Build the deferred indexes, if one of these is among them."""
        if self.deferred is not None and not self.deferred.names.isdisjoint(names):
            self.deferred.build()


class JournalTable:
    """Commits and history, as one session sees them.

    Tables hold the present. The past is the present with `history` applied: the first change after
    the requested commit has the value before it.
    """

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def head(self) -> Head:
        session = self._session
        if session.head is None:
            found = session.execute(HEAD_SQL).fetchone()
            if found is None:
                raise CorruptionError("the journal is empty; restore a backup")
            session.head = Head(*found)
        return session.head

    def commit_at(self, time: int) -> int | None:
        found = self._session.one(_COMMIT_AT, (self.head().seq, time))
        return None if found is None or found < 0 else found

    def commits(self, after: int, limit: int | None, newest_first: bool) -> list[CommitRow]:
        order = "DESC" if newest_first else "ASC"
        found = self._session.execute(
            f"SELECT {', '.join(CommitRow._fields)} FROM commits WHERE seq > ? "
            f"ORDER BY seq {order} LIMIT ?",
            (after, FOREVER if limit is None else limit),
        )
        return [CommitRow(*row) for row in found]

    def state_count(self, row: int) -> int:
        sql = "SELECT count(*) FROM history WHERE field = 'node.state' AND row = ?"
        return self._session.one(sql, (row,)) or 0

    def root_state(self, known: int | None) -> bytes:
        """Return the root's state, which only the commits have."""
        if known is None:
            return self.head().root_state
        sql = "SELECT root_state FROM commits WHERE seq = ?"
        state: bytes = self._session.execute(sql, (known,)).get
        return state

    def past(self, fields: tuple[str, ...], rows: list[int], known: int | None) -> Past:
        """Return the values at commit `known` of fields that have changed since."""
        if known is None:
            return {}
        marks = ", ".join("?" * len(fields))
        session = self._session
        found = session.execute(
            f"SELECT field, row, was FROM history h WHERE field IN ({marks}) AND row {IN} "
            "AND seq = (SELECT min(seq) FROM history l WHERE l.field = h.field AND l.row = h.row "
            "AND l.seq > ?)",
            [*fields, session.among(rows), known],
        )
        return {(field, row): session.current(was) for field, row, was in found}

    def change(self, kind: str, column: str, row: int, value: Any) -> None:
        """Change a field, and record its value before this commit.

        Of several changes in one commit, only the first is recorded. `kind` is node, edge or
        proposal.
        """
        key = "edge" if kind == "proposal" else "row"
        if kind == "node" and self._session.warm is not None:
            self._session.warm.drop(row, column)
        self._session.execute(
            f"INSERT INTO history SELECT '{kind}.{column}', {key}, ?, "
            f"{self._session.former_of(column)} FROM {kind}s WHERE {key} = ? "
            "ON CONFLICT DO NOTHING",
            (self._session.seq, row),
        )
        self._session.execute(f"UPDATE {kind}s SET {column} = ? WHERE {key} = ?", (value, row))

    def set_valid_to(self, kind: str, row: int, valid_to: int) -> None:
        self.change(kind, "valid_to", row, valid_to)

    def insert_commit(self, row: CommitRow) -> None:
        """Write the journal's row."""
        self._session.insert("commits", CommitRow._fields, [row])


class TableScan:
    """Reads every row of a table once."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def _all(self, row: type[R], table: str, order: str) -> Iterator[R]:
        sql = f"SELECT {', '.join(row._fields)} FROM {table} ORDER BY {order}"
        return map(row._make, self._session.stream(sql))

    def _part(self, row: type[R], table: str, first: int, last: int | None) -> Iterator[R]:
        if last is None:
            return self._all(row, table, "row")
        sql = f"SELECT {', '.join(row._fields)} FROM {table} WHERE row BETWEEN ? AND ? ORDER BY row"
        return map(row._make, self._session.stream(sql, (first, last)))

    def nodes(self, first: int = 0, last: int | None = None) -> Iterator[NodeScan]:
        return self._part(NodeScan, "nodes", first, last)

    def edges(self, first: int = 0, last: int | None = None) -> Iterator[EdgeScan]:
        return self._part(EdgeScan, "edges", first, last)

    def notes(self, first: int = 0, last: int | None = None) -> Iterator[NoteRow]:
        return self._part(NoteRow, "notes", first, last)

    def history(self) -> Iterator[HistoryRow]:
        for row in self._all(HistoryRow, "history", "field, row, seq"):
            yield row._replace(was=self._session.current(row.was))

    def pages(self) -> Iterator[PageRow]:
        return self._all(PageRow, "pages", "world, kind, path")

    def proposals(self) -> Iterator[ProposalScan]:
        return self._all(ProposalScan, "proposals", "edge")

    def conflicts(self) -> Iterator[ConflictScan]:
        return self._all(ConflictScan, "conflicts", "edge")

    def registrations(self) -> Iterator[RegistrationScan]:
        return self._all(RegistrationScan, "registrations", "world, type")

    def premises(self) -> Iterator[PremiseRow]:
        return self._all(PremiseRow, "premises", "premise, edge")

    def lookups(self) -> Iterator[tuple[int, int]]:
        return ((key, node) for key, node in self._session.stream("SELECT key, node FROM lookups"))

    def lookup_worlds(self) -> list[tuple[int, int]]:
        found = self._session.execute("SELECT world, names FROM lookups_worlds")
        return [(world, names) for world, names in found]

    def recalls(self) -> list[tuple[int, int, int]]:
        if not self._session.need_table("recalls"):
            return []
        found = self._session.execute("SELECT node, count, last FROM recalls ORDER BY node")
        return [(node, count, last) for node, count, last in found]
