"""Node table: nodes, their notes and their words.

NodeTable  nodes and their notes (aliases, sources, metadata), read as of any commit
TextIndex  the words of every node (FTS5); words come analysed, and are never FTS5 syntax
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from types import NoneType
from typing import Any, NamedTuple

import apsw

from worlddb.errors import CorruptionError
from worlddb.language.text_tokens import indexed, indexed_content
from worlddb.model.address import (
    ERASED,
    ROOT_ID,
    ROOT_NAME,
    ROOT_TYPE,
    Id,
    has_address,
    short_key,
    trusted_id,
)
from worlddb.model.inputs import from_micros
from worlddb.model.records import Node
from worlddb.store.rows import (
    ROOT_ROW,
    AliasRow,
    BodyRow,
    NewNode,
    NewText,
    NodePlace,
    NoteRow,
    StateChange,
    TextHit,
    World,
)
from worlddb.store.sqlite.database_file import (
    FOREVER,
    IN,
    WAY_OUT,
    JournalTable,
    SqlSession,
    among,
)

_COLUMNS = f"""
    SELECT n.row, n.id, n.state, n.type, n.name, n.content, n.created_at, n.parent, p.id,
           n.valid_from, n.valid_to, n.born, b.time, b.actor, n.blind
    FROM nodes n LEFT JOIN nodes p ON p.row = n.parent LEFT JOIN commits b ON b.seq = n.born
    WHERE n.row {IN}
"""
_WORLD = (
    "SELECT row, id, state, type, name, content, created_at, parent, blind FROM nodes WHERE row "
)
_BODY = "SELECT row, id, type, parent, name, content, valid_from, valid_to FROM nodes "
_ALIKE = """
    SELECT k.value, n.row FROM carray(?1) k CROSS JOIN nodes n
    WHERE n.row IN (
        SELECT row FROM nodes WHERE content_key = k.value
        ORDER BY created_at DESC, row DESC LIMIT ?2
    ) AND (n.valid_to IS NULL OR n.valid_to > ?3)
    ORDER BY n.created_at DESC, n.row DESC
"""
_KEY_NIBBLES = 16  # The key is the first 8 bytes of an id.
_ROOT_WORLD = World(ROOT_ROW, ROOT_ID, None, ROOT_TYPE, ROOT_NAME, "", 0, None)
"""The same in every store, but for its state."""
FILE_AGAIN = (
    "INSERT OR IGNORE INTO lookups_moved SELECT ?1 WHERE EXISTS (SELECT 1 FROM lookups_reached "
    "WHERE number = 0)"
)
"""A moved or erased node is put into the lookup index again, once there is such an index."""

COUNTED_MAX = 2_000
"""More nodes with a word than this are estimated: counting them all takes as long as a search."""
DAMAGE = (ValueError, TypeError, AttributeError, OverflowError, struct.error, CorruptionError)
"""What reading a damaged row raises. One flipped bit turns a number into a text or into nothing."""
_BODY_TYPES = frozenset(
    (int, bytes, str, parent, str, str, int, valid_to)
    for parent, valid_to in product((int, NoneType), repeat=2)
)
"""What the fields of a body may be; SQLite checks them only when they are written."""
Notes = dict[str, list[str]]  # The notes of one node by kind.


class _NodeColumns(NamedTuple):
    """A node joined with the id of its parent and the time of its commit."""

    row: int
    id: bytes
    state: bytes | None
    type: str
    name: str
    content: str
    created_at: int
    parent: int | None
    parent_id: bytes | None
    valid_from: int
    valid_to: int | None
    born: int
    born_time: int | None
    actor: str | None
    blind: bytes


class NodeTable:
    """Nodes, as one session sees them."""

    def __init__(self, session: SqlSession, journal: JournalTable) -> None:
        self._session = session
        self._journal = journal

    # -- ids ---------------------------------------------------------------------------------------

    def node_row(self, ident: bytes) -> int | None:
        """Return the row of the node with this whole id."""
        session = self._session
        row = session.node_rows.get(ident)
        if row is None:
            session.need_index("nodes_key")
            sql = "SELECT row, id FROM nodes WHERE key = ?"
            found: list[Any] = session.execute(sql, (short_key(ident),)).fetchall()
            row = next((row for row, whole in found if whole == ident), None)
            if row is not None:
                session.node_rows[ident] = row
            elif found and session.verifies:
                self.nodes([row for row, _ in found])  # A damaged id is why it is not found?
        return row

    def ids_like(self, table: str, prefix: str, limit: int) -> list[Id]:
        """Return up to `limit` ids of "nodes" or "edges" that begin with a hex prefix, sorted."""
        self._session.need_index("nodes_key", "edges_key")
        low = short_key(bytes.fromhex(prefix[:_KEY_NIBBLES].ljust(_KEY_NIBBLES, "0")))
        high = short_key(bytes.fromhex(prefix[:_KEY_NIBBLES].ljust(_KEY_NIBBLES, "f")))
        found = self._session.execute(
            f"SELECT id FROM {table} WHERE key BETWEEN ? AND ? ORDER BY key, id", (low, high)
        )
        ids = []
        for (ident,) in found:
            if ident.hex().startswith(prefix):
                ids.append(Id(ident))
                if len(ids) == limit:
                    break
        return ids

    def lookup(self, idents: Sequence[bytes]) -> dict[bytes, NodePlace]:
        """Return where the nodes with these ids are; ids of no node are left out."""
        self._session.need_index("nodes_key")
        sql = "SELECT id, row, parent, valid_from, blind FROM nodes WHERE key "
        wanted = set(idents)
        if len(idents) == 1:
            found = self._session.execute(sql + "= ?", (short_key(idents[0]),))
        else:
            keys = apsw.carray(array("q", map(short_key, idents)))
            found = self._session.execute(sql + IN, (keys,))
        # The root has no parent; its outgoing edges are interior to itself.
        return {
            ident: NodePlace(row, parent or row, valid_from, blind)
            for ident, row, parent, valid_from, blind in found
            if ident in wanted
        }

    # -- nodes as values ---------------------------------------------------------------------------

    def nodes(self, rows: Iterable[int], known: int | None = None) -> dict[int, Node]:
        """Return nodes by row, as of commit `known`; those not yet born then are left out."""
        wanted = list(rows)
        if not wanted:
            return {}
        try:
            found: list[Any] = self._session.execute(_COLUMNS, (among(wanted),)).fetchall()
            if self._session.verifies:
                refuse_changed(found)
            if known is not None or ROOT_ROW in wanted:
                found = self._then(map(_NodeColumns._make, found), wanted, known)
            notes = self._notes(wanted, known)
            return dict([self._value(columns, notes) for columns in found])
        except DAMAGE as error:  # No UTF-8, no JSON, no time, or of another type.
            raise first_damage(self._session, wanted, error) from error

    def _then(
        self, found: Iterable[_NodeColumns], rows: list[int], known: int | None
    ) -> list[_NodeColumns]:
        """Return nodes as they were at commit `known`, the root with the state of that commit."""
        past = self._journal.past(("node.valid_to", "node.parent", "node.state"), rows, known)
        then = []
        for node in found:
            if known is not None and node.born > known:
                continue
            row, parent, parent_id = node.row, node.parent, node.parent_id
            state = past.get(("node.state", row), node.state)
            if row == ROOT_ROW:
                state = self._journal.root_state(known)
            if ("node.parent", row) in past:
                parent = past["node.parent", row]
                sql = "SELECT id FROM nodes WHERE row = ?"
                parent_id = self._session.execute(sql, (parent,)).get
            valid_to = past.get(("node.valid_to", row), node.valid_to)
            then.append(
                node._replace(state=state, parent=parent, parent_id=parent_id, valid_to=valid_to)
            )
        return then

    def _value(self, columns: Any, notes_of: Mapping[int, Notes]) -> tuple[int, Node]:
        """Return `_NodeColumns` as (row, value)."""
        # A plain tuple, unpacked once: this is the innermost loop of most reads.
        (row, id_, state, type_, name, content, created_at, _, parent_id, valid_from, valid_to, _,
         born_time, actor, _) = columns  # fmt: skip
        notes = notes_of.get(row)
        ident = trusted_id(id_)
        # The open transaction's own commit has no row yet, so no time in the join.
        born = from_micros(self._session.time if born_time is None else born_time)
        node = Node(
            id=ident,
            state=ident if state is None else trusted_id(state),
            type=type_,
            name=name,
            content=content,
            created_at=born if created_at == ERASED else from_micros(created_at),
            parent=None if parent_id is None else trusted_id(parent_id),
            valid_from=from_micros(valid_from),
            valid_to=None if valid_to is None else from_micros(valid_to),
            known_from=born,
            aliases=tuple(notes.get("alias", ())) if notes else (),
            provenance=tuple(notes.get("source", ())) if notes else (),
            metadata=_merged(notes.get("metadata", ())) if notes else {},
            erased=created_at == ERASED,
            actor=actor or "",
        )
        return row, node

    def bodies(self, rows: Iterable[int], known: int | None = None) -> Iterator[BodyRow]:
        """Yield the searchable part of nodes by row, as of commit `known`."""
        wanted = list(rows)
        if not wanted:
            return
        session = self._session
        past = self._journal.past(("node.valid_to", "node.parent"), wanted, known)
        found = session.execute(
            f"{_BODY} WHERE row {IN} AND born <= ? ORDER BY row",
            (among(wanted), FOREVER if known is None else known),
        )
        try:
            for body in map(BodyRow._make, found):
                session.node_rows[body.id] = body.row
                if past:
                    body = body._replace(
                        parent=past.get(("node.parent", body.row), body.parent),
                        valid_to=past.get(("node.valid_to", body.row), body.valid_to),
                    )
                yield sound_body(body)
        except UnicodeDecodeError as error:
            raise first_damage(self._session, wanted, error) from error

    # -- worlds ------------------------------------------------------------------------------------

    def world(self, row: int) -> World:
        """Return the fields that one world's state is hashed from; CorruptionError without it."""
        found = self.worlds([row])
        if row not in found:
            raise CorruptionError(f"node row {row} is missing; run `worlddb check`")
        return found[row]

    def worlds(self, rows: Iterable[int]) -> dict[int, World]:
        """Return the fields that the states of worlds are hashed from, by row."""
        wanted = list(rows)
        if wanted == [ROOT_ROW]:
            return {ROOT_ROW: _ROOT_WORLD._replace(state=self._journal.root_state(None))}
        if len(wanted) == 1:
            found = self._session.execute(_WORLD + "= ?", wanted)
        else:
            found = self._session.execute(_WORLD + IN, (among(wanted),))
        worlds = {values[0]: World._make(values) for values in found}
        if ROOT_ROW in worlds:
            state = self._journal.root_state(None)
            worlds[ROOT_ROW] = worlds[ROOT_ROW]._replace(state=state)
        return worlds

    def children(
        self, row: int, known: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[int]:
        """Return the rows above `after` that live in a world, by row."""
        self._session.need_index("nodes_parent")
        sql = "SELECT row FROM nodes WHERE parent = ? AND row > ? ORDER BY row LIMIT ?"
        if known is None:
            return self._session.rows(sql, (row, after, -1 if limit is None else limit))
        rows = set(self._session.rows(sql, (row, after, -1)))
        # Those that were moved away since; those that were moved here since fall to parents().
        moved = "SELECT row FROM history WHERE field = 'node.parent' AND was = ? AND row > ?"
        rows.update(self._session.rows(moved, (row, after)))
        then = self.parents(rows, known)
        return sorted(child for child in rows if then.get(child) == row)[:limit]

    def children_of(self, rows: Iterable[int]) -> list[int]:
        """Return the rows that live in any of some worlds now, in no order."""
        return self._session.rows(f"SELECT row FROM nodes WHERE parent {IN}", (among(list(rows)),))

    def parents(self, rows: Iterable[int], known: int | None = None) -> dict[int, int | None]:
        """Return the parent row of each row, None for the root; without rows born after `known`."""
        wanted = list(rows)
        if not wanted:
            return {}
        sql = f"SELECT row, parent, born FROM nodes WHERE row {IN}"
        found = self._session.execute(sql, (among(wanted),))
        parents = {row: parent for row, parent, born in found if known is None or born <= known}
        for (_, row), was in self._journal.past(("node.parent",), wanted, known).items():
            if row in parents:
                parents[row] = was
        return parents

    def closed_by(self, rows: Iterable[int], known: int | None = None) -> set[int]:
        """Return those nodes whose validity some commit up to `known` has closed."""
        wanted = list(rows)
        if not wanted:
            return set()
        sql = f"SELECT row FROM history WHERE field = 'node.valid_to' AND row {IN} AND seq <= ?"
        return set(self._session.rows(sql, (among(wanted), FOREVER if known is None else known)))

    # -- names and notes ---------------------------------------------------------------------------

    def alike(self, keys: Iterable[int], now: int, most: int) -> list[int]:
        """Return the newest `most` rows of each content key that have not ended by `now`."""
        self._session.need_index("nodes_content")
        # Ended ones count among the `most`: a text that is retired and said again stays cheap.
        wanted = list(dict.fromkeys(keys))
        found: dict[int, list[int]] = {key: [] for key in wanted}
        for key, row in self._session.execute(_ALIKE, (among(wanted), most, now)):
            found[key].append(row)
        return [row for rows in found.values() for row in rows]

    def twins(self, keys: Iterable[int], created_at: int, most: int) -> list[BodyRow]:
        """Return the last `most` nodes with one of these content keys and this time of creation."""
        self._session.need_index("nodes_content")
        sql = f"{_BODY} WHERE content_key {IN} AND created_at = ? ORDER BY row DESC LIMIT ?"
        found = self._session.execute(sql, (among(list(keys)), created_at, most))
        return list(map(BodyRow._make, found))

    def rows_named(self, names: Iterable[str]) -> list[int]:
        """Return the rows with exactly these names, name by name and by row."""
        texts = TextIndex(self._session)
        rows: list[int] = []
        for name in names:
            words = indexed(name)
            # Where the text index has words for it, it finds the few that may have that name.
            if words:
                sql = f"SELECT row FROM nodes WHERE name = ? AND row {IN}"
                rows += self._session.rows(sql, (name, among(texts.named(words))))
            else:
                rows += self._session.rows("SELECT row FROM nodes WHERE name = ?", (name,))
        return rows

    def _notes(self, rows: list[int], known: int | None) -> dict[int, Notes]:
        sql = f"SELECT node, kind, text, born FROM notes WHERE node {IN} ORDER BY row"
        found: dict[int, Notes] = {}
        for node, kind, text, born in self._session.execute(sql, (among(rows),)):
            if text and (known is None or born <= known):  # Without text it was erased.
                found.setdefault(node, {}).setdefault(kind, []).append(text)
        return found

    def aliases(self, rows: Iterable[int], known: int | None = None) -> list[AliasRow]:
        """Return the aliases of nodes as of commit `known`, in no order."""
        wanted = list(rows)
        if not wanted:
            return []
        sql = f"SELECT node, text FROM notes WHERE node {IN} AND kind = 'alias' AND born <= ?"
        values = (among(wanted), FOREVER if known is None else known)
        return list(map(AliasRow._make, self._session.execute(sql, values)))

    def rows_aliased(self, name: str) -> list[int]:
        """Return the rows that have this alias; the case of ASCII letters does not matter."""
        sql = "SELECT node FROM notes WHERE kind = 'alias' AND text = ? COLLATE NOCASE"
        return self._session.rows(sql, (name,))

    def aliases_after(self, note: int) -> list[AliasRow]:
        """Return the aliases among the notes above row `note`."""
        sql = "SELECT node, text FROM notes WHERE row > ? AND kind = 'alias'"
        return list(map(AliasRow._make, self._session.execute(sql, (note,))))

    # -- writes ------------------------------------------------------------------------------------

    def insert_nodes(self, rows: Iterable[NewNode]) -> None:
        """Insert nodes; their texts come by `insert_texts`."""
        self._session.executemany(
            "INSERT INTO nodes (row, key, id, type, name, content, created_at, parent, valid_from, "
            "valid_to, born, blind, content_key) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def insert_notes(self, rows: Iterable[NoteRow]) -> None:
        """Insert aliases, sources and metadata."""
        self._session.executemany("INSERT INTO notes VALUES (?, ?, ?, ?, ?)", rows)

    def has_note(self, node: int, kind: str, text: str) -> bool:
        """Return whether a node has this note."""
        sql = "SELECT 1 FROM notes WHERE node = ? AND kind = ? AND text = ?"
        return self._session.one(sql, (node, kind, text)) is not None

    def was_moved(self, row: int) -> bool:
        """Return whether a node was ever moved to another world."""
        sql = "SELECT 1 FROM history WHERE field = 'node.parent' AND row = ? LIMIT 1"
        return self._session.one(sql, (row,)) is not None

    def is_erased(self, row: int) -> bool:
        """Return whether a node was erased."""
        sql = "SELECT 1 FROM nodes WHERE row = ? AND created_at = ?"
        return self._session.one(sql, (row, ERASED)) is not None

    def born(self, row: int) -> int:
        """Return the commit that wrote a node."""
        seq: int = self._session.execute("SELECT born FROM nodes WHERE row = ?", (row,)).get
        return seq

    def set_parent(self, row: int, parent: int) -> list[bytes]:
        """Move a node and its outgoing edges; return the ids of those that are not deleted."""
        session = self._session
        session.need_index("edges_source")
        self._journal.change("node", "parent", row, parent)
        session.execute("UPDATE edges SET world = ? WHERE source = ?", (parent, row))
        session.execute(FILE_AGAIN, (row,))
        session.reached = None
        sql = "SELECT id FROM edges WHERE source = ? AND gone IS NULL"
        return [ident for (ident,) in session.execute(sql, (row,))]

    def set_states(self, rows: Sequence[StateChange]) -> None:
        """Give worlds their new states; the root's is in the commit alone."""
        inner = [row for row in rows if row[0] != ROOT_ROW]
        if not inner:
            return
        self._session.executemany(
            "INSERT OR IGNORE INTO history VALUES ('node.state', ?, ?, ?)",
            [(row, self._session.seq, before) for row, before, _ in inner],
        )
        self._session.executemany(
            "UPDATE nodes SET state = ? WHERE row = ?", [(state, row) for row, _, state in inner]
        )


def _merged(texts: Iterable[str]) -> dict[str, Any]:
    """Return metadata as one mapping; what was written later wins."""
    return {key: value for text in texts for key, value in json.loads(text).items()}


def sound_body(body: BodyRow) -> BodyRow:
    """Return a body as it is.

    Raises:
        CorruptionError: a field is of another type than was written.
    """
    if tuple(map(type, body)) not in _BODY_TYPES:
        raise _damaged(body.id, "cannot be read (a field is of another type than was written)")
    return body


def refuse_changed(found: Iterable[Any]) -> None:
    """Refuse nodes (row, id, state, type, name, content, created_at, …, blind) that were changed.

    An id is the hash of type, name, content, creation time and blind, so each read compares them.
    Notes, validity and parents are no part of the address; `check` compares those with the journal.

    Raises:
        CorruptionError: the fields of a node do not hash to its id.
    """
    for _, ident, _, type_, name, content, created_at, *_, blind in found:
        if not has_address(ident, type_, name, content, created_at, blind):
            raise _damaged(ident, "is not what was written (its fields do not hash to its id)")


def first_damage(session: SqlSession, rows: list[int], error: Exception) -> CorruptionError:
    """Return the error for nodes of which a field cannot be read, naming the first of them."""
    sql = (
        "SELECT n.id, n.valid_from, n.valid_to, cast(n.type || n.name || n.content || "
        "coalesce((SELECT group_concat(text) FROM notes WHERE node = n.row), '') AS BLOB) "
        f"FROM nodes n WHERE n.row {IN} ORDER BY n.row"
    )
    for ident, valid_from, valid_to, texts in session.execute(sql, (among(rows),)):
        try:
            texts.decode()
            from_micros(valid_from)
            from_micros(valid_from if valid_to is None else valid_to)
        except DAMAGE as damage:
            return _damaged(ident, f"cannot be read ({damage})")
    if isinstance(error, CorruptionError):
        return error
    return CorruptionError(f"a node cannot be read ({error}); {WAY_OUT}")


def _damaged(ident: Any, what: str) -> CorruptionError:
    name = ident.hex() if isinstance(ident, bytes) else repr(ident)
    return CorruptionError(
        f"node {name} {what}: the file was damaged or changed by another program; "
        f"{WAY_OUT}, or open the store with verify_reads=False to see what is there"
    )


class TextIndex:
    """The words of every node, as one session sees them."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def counts(self, words: Sequence[str], nodes: int) -> dict[str, int]:
        """Return about how many of all `nodes` have each word; exact while there are few.

        Counting a common word would take longer than the search. So only the first that have it
        are counted, and how far down the store those reach says how many there are in all.
        """
        sql = (
            "SELECT count(*), max(rowid) FROM (SELECT rowid FROM texts WHERE texts MATCH ? LIMIT ?)"
        )
        found = {}
        for word in words:
            count, last = next(self._session.execute(sql, (f'"{word}"', COUNTED_MAX)))
            found[word] = count if count < COUNTED_MAX else max(count, count * nodes // last)
        return found

    def match(self, words: Sequence[str], most: int) -> list[TextHit]:
        """Return the nodes that have any of the words, best first."""
        return self._ranked(" OR ".join(map(_quoted, words)), most)

    def match_all(self, words: Sequence[str], phrase: bool, most: int) -> list[TextHit]:
        """Return the nodes that have all words, or have them as a phrase, best first."""
        return self._ranked(_quoted(" ".join(words)) if phrase else _all_of(words), most)

    def _ranked(self, expression: str, most: int) -> list[TextHit]:
        sql = "SELECT rowid, -rank FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT ?"
        return list(map(TextHit._make, self._session.execute(sql, (expression, most))))

    def latest(self, words: Sequence[str], most: int) -> list[int]:
        """Return the newest nodes that have all words, newest first."""
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid DESC LIMIT ?"
        return self._session.rows(sql, (_all_of(words), most))

    def named(self, words: str) -> list[int]:
        """Return the nodes whose name has the words as a phrase, by row."""
        sql = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rowid"
        return self._session.rows(sql, (f"name : {_quoted(words)}",))

    def average_length(self) -> float:
        """Return how many words a node has on average."""
        body = self._session.execute("SELECT block FROM texts_data WHERE id = 1").get
        nodes, *columns = _varints(body if isinstance(body, bytes) else b"")
        return sum(columns) / nodes if nodes else 0.0

    def insert(self, rows: Iterable[NewText]) -> None:
        """Index new nodes."""
        words = ((row, indexed(name), indexed_content(content)) for row, name, content in rows)
        self._session.executemany(
            "INSERT INTO texts (rowid, name, content) VALUES (?, ?, ?)", words
        )


def _quoted(words: str) -> str:
    return f'"{words}"'


def _all_of(words: Iterable[str]) -> str:
    return " AND ".join(map(_quoted, words))


def _varints(body: bytes) -> list[int]:
    """Return the numbers of FTS5's record of totals: nodes, then words per column."""
    numbers, value = [], 0
    for byte in body:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return numbers or [0]
