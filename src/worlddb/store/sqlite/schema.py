"""SQLite schema: the tables, their guards, their migrations, and bulk loads.

    nodes      one row per node; all hashed columns are immutable, the others are projections; the
               root's state is only in the journal; `content_key` finds nodes with an equal text
               that were born in one world
    edges      one row per edge; `gone` is the commit that deleted it
    notes      aliases and sources of nodes
    history    the value of a projection before a commit changed it: past states are read from here
    commits    the journal, chained by hash
    pages      the set digests of each world, page by page
    waiting    changes of sets whose pages are not written yet (derived_tables.py)
    proposals, conflicts, registrations   records of edge handlers
    premises   which inferred edge rests on which (derived from metadata)
    texts      full-text index of analysed words (derived)
    models, vectors, pools   embeddings: of each text, and composed of each world (derived)
    tokens     embeddings of the single words of a text, if the model makes them (derived)
    lookups    keys of names, to find nodes by name; the last node indexed, the names per world,
               and nodes moved since (derived); row -1 of `lookups_reached` has the version of the
               keys, and after row 0 come the sums over the rows of all derived tables
               (derived_tables.py)

Rows are numbered in the order of writing, so a commit's nodes and edges are a range. An id is
looked up by `key`, its first 8 bytes as an integer: a third of an index over 32 bytes.

The guard: triggers call `worlddb_write()`, which no program defines. So INSERT, UPDATE and DELETE
fail with "no such function: worlddb_write", except on WorldDB's writing connection, which runs
no triggers (`teach_writer` in database_file.py).

A large transaction drops the indexes and builds them again at its end (`BulkLoad`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

import apsw

from worlddb.language.text_tokens import indexed, indexed_content
from worlddb.model.address import ERASED, ROOT_NAME, content_key
from worlddb.store.rows import ROOT_ROW, Head, NewText, first_commit, root_node

if TYPE_CHECKING:
    from worlddb.store.sqlite.database_file import FileSession


APPLICATION_ID = 0x57724442  # "WrDB": by which `file` and `open` recognise the store.

NODES = """
CREATE TABLE nodes (
    row INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    id BLOB NOT NULL,
    state BLOB,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    parent INTEGER,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER,
    born INTEGER NOT NULL
) STRICT;
"""

# Added to older stores by the same statements, so that both have one definition.
BLINDS = """
ALTER TABLE nodes ADD COLUMN blind BLOB NOT NULL DEFAULT x'';
ALTER TABLE nodes ADD COLUMN content_key INTEGER;
ALTER TABLE commits ADD COLUMN blind BLOB NOT NULL DEFAULT x'';
"""

EDGES = """
CREATE TABLE edges (
    row INTEGER PRIMARY KEY,
    key INTEGER NOT NULL,
    id BLOB NOT NULL,
    type TEXT NOT NULL,
    source INTEGER NOT NULL,
    target INTEGER NOT NULL,
    world INTEGER NOT NULL,
    valid_from INTEGER NOT NULL,
    valid_to INTEGER,
    metadata TEXT NOT NULL,
    generation INTEGER NOT NULL,
    born INTEGER NOT NULL,
    gone INTEGER
) STRICT;
"""

COMMITS = """
CREATE TABLE commits (
    seq INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    actor TEXT NOT NULL,
    root_state BLOB NOT NULL,
    hash BLOB NOT NULL,
    nodes INTEGER NOT NULL,
    edges INTEGER NOT NULL,
    notes INTEGER NOT NULL,
    changes TEXT NOT NULL
) STRICT;
"""

THE_REST = """
CREATE TABLE notes (
    row INTEGER PRIMARY KEY,
    node INTEGER NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    born INTEGER NOT NULL
) STRICT;
CREATE INDEX notes_node ON notes (node, kind);

CREATE TABLE history (
    field TEXT NOT NULL,
    row INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    was ANY,
    PRIMARY KEY (field, row, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE proposals (
    edge INTEGER PRIMARY KEY,
    low INTEGER NOT NULL,
    high INTEGER NOT NULL,
    status TEXT NOT NULL,
    tier TEXT NOT NULL,
    score REAL NOT NULL,
    evidence TEXT NOT NULL,
    born INTEGER NOT NULL
) STRICT;
CREATE INDEX proposals_low ON proposals (low, high);
CREATE INDEX proposals_high ON proposals (high);
CREATE INDEX proposals_status ON proposals (status);

CREATE TABLE conflicts (
    edge INTEGER PRIMARY KEY,
    low INTEGER NOT NULL,
    high INTEGER NOT NULL,
    reason TEXT NOT NULL,
    born INTEGER NOT NULL,
    gone INTEGER
) STRICT;
CREATE INDEX conflicts_low ON conflicts (low);
CREATE INDEX conflicts_high ON conflicts (high);

CREATE TABLE premises (
    premise INTEGER NOT NULL,
    edge INTEGER NOT NULL,
    PRIMARY KEY (premise, edge)
) STRICT, WITHOUT ROWID;

CREATE TABLE registrations (
    world INTEGER NOT NULL,
    type TEXT NOT NULL,
    version TEXT NOT NULL,
    functional INTEGER NOT NULL,
    born INTEGER NOT NULL,
    PRIMARY KEY (world, type)
) STRICT, WITHOUT ROWID;

"""

DERIVED = """
CREATE TABLE models (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    dim INTEGER NOT NULL,
    active INTEGER NOT NULL,
    pooling TEXT NOT NULL,
    embedded INTEGER NOT NULL,
    composed INTEGER NOT NULL,
    seq INTEGER NOT NULL
) STRICT;

CREATE TABLE vectors (
    model INTEGER NOT NULL,
    node INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (model, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE pools (
    model INTEGER NOT NULL,
    node INTEGER NOT NULL,
    children INTEGER NOT NULL,
    weight REAL NOT NULL,
    total BLOB NOT NULL,
    vector BLOB NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (model, node)
) STRICT, WITHOUT ROWID;
CREATE INDEX pools_seq ON pools (model, seq);

CREATE INDEX notes_alias ON notes (text COLLATE NOCASE) WHERE kind = 'alias';
"""

LOOKUPS = """
CREATE TABLE lookups (
    key INTEGER NOT NULL,
    node INTEGER NOT NULL,
    PRIMARY KEY (key, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE lookups_reached (
    number INTEGER PRIMARY KEY,
    node INTEGER NOT NULL,
    note INTEGER NOT NULL
) STRICT;
CREATE TABLE lookups_worlds (
    world INTEGER PRIMARY KEY,
    names INTEGER NOT NULL
) STRICT;
CREATE TABLE lookups_moved (
    node INTEGER PRIMARY KEY
) STRICT;
"""

RECALLS = """
CREATE TABLE IF NOT EXISTS recalls (
    node INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    last INTEGER NOT NULL
) STRICT
"""
"""Created when the first recall is counted: derived, and missing from most files."""

# Not WITHOUT ROWID: there a body of more than 1,000 bytes would take a page of its own.
TOKENS = """
CREATE TABLE tokens (
    model INTEGER NOT NULL,
    node INTEGER NOT NULL,
    vectors BLOB NOT NULL,
    PRIMARY KEY (model, node)
) STRICT;
"""

SETS = """
CREATE TABLE pages (
    world INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    path TEXT NOT NULL,
    fork INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (world, kind, path)
) STRICT;

CREATE TABLE waiting (
    seq INTEGER PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;
"""

TEXTS = """
CREATE VIRTUAL TABLE texts USING fts5 (
    name, content, content='', contentless_delete=1, tokenize='ascii'
);
"""
INDEX_TEXTS = (
    "INSERT INTO texts (rowid, name, content) "
    "SELECT row, worlddb_words(name, 0), worlddb_words(content, 1) FROM nodes WHERE row >= ?"
)
"""Needs the function `worlddb_words`, which every writing connection has."""
INDEX_NEW = INDEX_TEXTS.replace("row >= ?", "row > (SELECT max(id) FROM texts_docsize)")
"""Indexes the nodes after the last one that is indexed; that is the order in which it is done."""

USUAL_HASH_BYTES = 1 << 20  # FTS5's default
USUAL_MERGE = 4  # FTS5's default; a bulk load changes both for its duration

DEFERRED_INDEXES = {
    "nodes_key": "CREATE INDEX nodes_key ON nodes (key)",
    "nodes_parent": "CREATE INDEX nodes_parent ON nodes (parent)",
    "nodes_content": "CREATE INDEX nodes_content ON nodes (content_key, created_at)",
    "edges_key": "CREATE INDEX edges_key ON edges (key)",
    "edges_source": "CREATE INDEX edges_source ON edges (source, type)",
    "edges_target": "CREATE INDEX edges_target ON edges (target, type)",
}
"""Built at the end of a bulk load instead of row by row."""

NEVER_DELETED = ("nodes", "edges", "notes", "history", "commits")
STAGED = ("proposals", "conflicts", "premises", "registrations")
GUARDED = (*NEVER_DELETED, "pages", "waiting", *STAGED)


def guards() -> dict[str, str]:
    """Return the guard triggers: name → the statement that creates it."""
    found = {}
    for table in GUARDED:
        for action in ("INSERT", "UPDATE", "DELETE"):
            name = f"{table}_guard_{action.lower()}"
            is_never = action == "DELETE" and table in NEVER_DELETED
            condition = "1" if is_never else "worlddb_write() IS NOT 1"
            found[name] = (
                f"CREATE TRIGGER {name} BEFORE {action} ON {table} WHEN {condition} "
                f"BEGIN SELECT RAISE(ABORT, 'WorldDB: {table} are written by edge handlers only'); "
                "END"
            )
    return found


def write_genesis(con: apsw.Connection) -> None:
    """Write the root world and commit 0; both are the same in every store."""
    for table, row in (("nodes", root_node()), ("commits", first_commit())):
        marks = ", ".join("?" * len(row))
        con.execute(f"INSERT INTO {table} ({', '.join(row._fields)}) VALUES ({marks})", row)
    con.execute(
        "INSERT INTO texts (rowid, name, content) VALUES (?, ?, '')", (ROOT_ROW, indexed(ROOT_NAME))
    )


def teach_words(con: apsw.Connection) -> None:
    """Register the function that `INDEX_TEXTS` calls on a connection."""

    def words(*values: Any) -> str:
        text, is_content = values
        return (indexed_content if is_content else indexed)(str(text))

    con.create_scalar_function("worlddb_words", words, 2, deterministic=True)


def create(con: apsw.Connection) -> None:
    """Create a new store: every table, the root world, the indexes and the guards."""
    tables = NODES + EDGES + COMMITS + THE_REST + DERIVED + LOOKUPS + TOKENS + SETS + TEXTS
    con.execute(tables + BLINDS)
    write_genesis(con)
    for statement in (*DEFERRED_INDEXES.values(), *guards().values()):
        con.execute(statement)


def _guard_names(table: str) -> list[str]:
    return [f"{table}_guard_{action}" for action in ("insert", "update", "delete")]


def from_1_to_2(con: apsw.Connection) -> None:
    """Index analysed words instead of raw text, add embeddings, drop the index by time.

    The words come from WorldDB's own analysis, for the store's index and for held worlds alike.
    """
    names = _guard_names("commits")
    for name in names:
        con.execute(f"DROP TRIGGER {name}")
    con.execute("ALTER TABLE commits RENAME TO commits_1")
    con.execute(COMMITS)
    con.execute("INSERT INTO commits SELECT * FROM commits_1")
    con.execute("DROP TABLE commits_1")
    for name in names:
        con.execute(guards()[name])
    con.execute(DERIVED)
    con.execute("DROP TABLE texts")
    con.execute(TEXTS)
    teach_words(con)
    con.execute(INDEX_TEXTS, (0,))


def from_2_to_3(con: apsw.Connection) -> None:
    """Store pages of sets in less space; add waiting changes, and tokens.

    The root's states, which the journal has for every commit, are no longer stored twice.
    """
    pages, waiting = _guard_names("pages"), _guard_names("waiting")
    roots = ["nodes_guard_update", "history_guard_delete"]
    for name in pages + roots:
        con.execute(f"DROP TRIGGER {name}")
    con.execute("ALTER TABLE pages RENAME TO pages_2")
    con.execute(TOKENS + SETS)
    con.execute("INSERT INTO pages SELECT * FROM pages_2 ORDER BY world, kind, path")
    con.execute("DROP TABLE pages_2")
    con.execute("UPDATE nodes SET state = NULL WHERE row = ?", (ROOT_ROW,))
    con.execute("DELETE FROM history WHERE field = 'node.state' AND row = ?", (ROOT_ROW,))
    for name in pages + waiting + roots:
        con.execute(guards()[name])


def from_3_to_4(con: apsw.Connection) -> None:
    """Index names and contents by their world, too; the index is built again when needed."""
    con.execute("DROP TABLE IF EXISTS lookups; DROP TABLE IF EXISTS lookups_reached")
    con.execute(LOOKUPS)


def from_4_to_5(con: apsw.Connection) -> None:
    """Add blinds, and the content index with every node.

    Existing nodes and commits keep their hashes and have no blind. The name index, which contained
    contents as well, is built again when needed.
    """
    guard = "nodes_guard_update"
    con.execute(f"DROP TRIGGER {guard}")
    con.execute(BLINDS)
    key: Any = content_key
    con.create_scalar_function("worlddb_content_key", key, 4, deterministic=True)
    # By the world in which a node was born; the history has it if the node was moved.
    con.execute(
        "UPDATE nodes SET content_key = worlddb_content_key(type, name, content, coalesce("
        "(SELECT was FROM history WHERE field = 'node.parent' AND history.row = nodes.row "
        "ORDER BY seq LIMIT 1), parent)) WHERE parent IS NOT NULL AND created_at != ?",
        (ERASED,),
    )
    con.execute(DEFERRED_INDEXES["nodes_content"])
    con.execute(guards()[guard])
    for table in ("lookups", "lookups_reached", "lookups_worlds", "lookups_moved"):
        con.execute(f"DELETE FROM {table}")


MIGRATIONS: tuple[Callable[[apsw.Connection], None], ...] = (
    from_1_to_2,
    from_2_to_3,
    from_3_to_4,
    from_4_to_5,
)
"""Never edited once released; a change of layout is another function, and one in `create`."""

FORMAT_VERSION = 1 + len(MIGRATIONS)


BULK_HASH_BYTES = 64 << 20
"""Bytes of text that FTS5 collects during a load: one large segment instead of many small ones."""
SORTING_CACHE_KIB = 2_000
"""SQLite sorts in runs as large as its cache; runs that fit the processor's cache are faster."""
TEXTS_KEPT_MAX = 2_000_000
"""Texts that a load keeps in memory; further ones are read back from the nodes."""
TEXTS_BATCH = 10_000
"""Texts analysed at once: enough that handing them over costs nothing."""
_BETWEEN = "\x1f"  # separates name and content; no word contains it
_INSERT_BATCH = (
    "INSERT INTO texts (rowid, name, content) SELECT ? + rowid - 1, "
    "substr(value, 1, instr(value, char(31)) - 1), substr(value, instr(value, char(31)) + 1) "
    "FROM carray(?)"
)
"""Takes a whole batch as one value, so that SQLite need not stop for Python."""


def _analysed(rows: Sequence[NewText]) -> tuple[int, tuple[str, ...]]:
    """Return the first of consecutive rows, and the words of all of them."""
    words = tuple([f"{indexed(name)}{_BETWEEN}{indexed_content(text)}" for _, name, text in rows])
    return rows[0][0], words


class BulkLoad:
    """A load that drops indexes which are cheaper to build once, and builds them at its end.

    The transaction hides that from all other connections.
    """

    def __init__(self, session: FileSession, head: Head) -> None:
        # The load may repeat existing rows, so their keys must be found.
        kept = {name for name in ("nodes_key", "edges_key") if head.nodes > ROOT_ROW}
        self.names = DEFERRED_INDEXES.keys() - kept
        self._session = session
        self._texts: list[NewText] = []
        self._batches: list[Future[tuple[int, tuple[str, ...]]]] = []
        self._texts_from = (session.one("SELECT max(row) FROM nodes", ()) or 0) + 1
        for name in self.names:
            session.execute(f"DROP INDEX {name}")
        self._tune(BULK_HASH_BYTES, 0)

    def keep(self, rows: Iterable[NewText]) -> None:
        """Keep texts in memory until the indexes are built."""
        if len(self._texts) < TEXTS_KEPT_MAX:
            self._texts.extend(rows)

    def analyse(self, pool: Executor) -> None:
        """Analyse the words while SQLite builds indexes, which needs no Python."""
        self._batches = [pool.submit(_analysed, batch) for batch in self._split()]

    def _split(self) -> list[list[NewText]]:
        texts = self._texts
        return [texts[at : at + TEXTS_BATCH] for at in range(0, len(texts), TEXTS_BATCH)]

    def build(self) -> None:
        """Build the deferred indexes, and end the load."""
        session = self._session
        session.deferred = None
        usual = session.con.pragma("cache_size")
        session.execute(f"PRAGMA cache_size = -{SORTING_CACHE_KIB}")
        for name in DEFERRED_INDEXES:
            if name in self.names:
                session.execute(DEFERRED_INDEXES[name])
        session.execute(f"PRAGMA cache_size = {usual}")
        for batch in self._batches or map(_analysed, self._split()):
            first, words = batch if isinstance(batch, tuple) else batch.result()
            session.execute(_INSERT_BATCH, (first, apsw.carray(words)))
        # Texts that were not kept are read back from the nodes.
        session.execute(INDEX_TEXTS, (self._texts_from + len(self._texts),))
        self._tune(USUAL_HASH_BYTES, USUAL_MERGE)
        # One segment on a high level: left on the lowest, the next few small writes would each
        # wait while FTS5 merges itself into the whole load.
        session.execute("INSERT INTO texts (texts) VALUES ('optimize')")

    def _tune(self, hash_bytes: int, merge: int) -> None:
        """Set how much text FTS5 collects before it writes, and how eagerly it merges."""
        for option, value in (("hashsize", hash_bytes), ("automerge", merge)):
            self._session.execute("INSERT INTO texts (texts, rank) VALUES (?, ?)", (option, value))
