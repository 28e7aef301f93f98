"""NodeTable: nodes and their notes (aliases, sources, metadata), read as of any commit."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import apsw

from worlddb.errors import CorruptionError
from worlddb.language.text_tokens import indexed
from worlddb.model.address import ERASED, ROOT_ID, ROOT_NAME, ROOT_TYPE, Id, short_key, trusted_id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Node
from worlddb.store.rows import (
    ROOT_ROW,
    AliasRow,
    BodyRow,
    NewNode,
    NodePlace,
    NoteRow,
    StateChange,
    World,
)
from worlddb.store.sqlite.journal_table import JournalTable
from worlddb.store.sqlite.sql_session import FOREVER, IN, SqlSession, among
from worlddb.store.sqlite.text_index import TextIndex

_COLUMNS = f"""
    SELECT n.row, n.id, n.state, n.type, n.name, n.content, n.created_at, n.parent, p.id,
           n.valid_from, n.valid_to, n.born, b.time
    FROM nodes n LEFT JOIN nodes p ON p.row = n.parent LEFT JOIN commits b ON b.seq = n.born
    WHERE n.row {IN}
"""
_WORLD = "SELECT row, id, state, type, name, content, created_at, parent FROM nodes WHERE row "
_KEY_NIBBLES = 16
_ROOT_WORLD = World(ROOT_ROW, ROOT_ID, None, ROOT_TYPE, ROOT_NAME, "", 0, None)
"""The same in every store, but for its state."""
FILE_AGAIN = (
    "INSERT OR IGNORE INTO lookups_moved SELECT ?1 WHERE EXISTS (SELECT 1 FROM lookups_reached)"
)
"""A moved or erased node is put into the lookup index again, once there is such an index."""

Notes = dict[str, list[str]]
"""The notes of one node by kind."""


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


class NodeTable:
    """Nodes, as one session sees them."""

    def __init__(self, session: SqlSession, journal: JournalTable) -> None:
        self._session = session
        self._journal = journal

    # -- ids ---------------------------------------------------------------------------------------

    def node_row(self, ident: bytes) -> int | None:
        """Return the row of a node by its whole id; ids never change rows, so it is read once."""
        session = self._session
        row = session.node_rows.get(ident)
        if row is None:
            session.need_index("nodes_key")
            sql = "SELECT row FROM nodes WHERE key = ? AND id = ?"
            row = session.one(sql, (short_key(ident), ident))
            if row is not None:
                session.node_rows[ident] = row
        return row

    def ids_like(self, table: str, prefix: str, limit: int) -> list[Id]:
        """Return up to `limit` ids that begin with the hex `prefix`, in order."""
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
        """Return where the nodes among `idents` that exist are."""
        self._session.need_index("nodes_key")
        sql = "SELECT id, row, parent, valid_from FROM nodes WHERE key "
        wanted = set(idents)
        if len(idents) == 1:
            found = self._session.execute(sql + "= ?", (short_key(idents[0]),))
        else:
            keys = apsw.carray(array("q", map(short_key, idents)))
            found = self._session.execute(sql + IN, (keys,))
        # The root has no parent; its outgoing edges are interior to itself.
        return {
            ident: NodePlace(row, parent or row, valid_from)
            for ident, row, parent, valid_from in found
            if ident in wanted
        }

    # -- nodes as values ---------------------------------------------------------------------------

    def nodes(self, rows: Iterable[int], known: int | None = None) -> dict[int, Node]:
        """Return nodes by row, as of commit `known`; those not yet born then are left out."""
        wanted = list(rows)
        if not wanted:
            return {}
        found: list[Any] = self._session.execute(_COLUMNS, (among(wanted),)).fetchall()
        if known is not None or ROOT_ROW in wanted:
            found = self._then(map(_NodeColumns._make, found), wanted, known)
        notes = self._notes(wanted, known)
        return dict([self._value(columns, notes) for columns in found])

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
        (
            row,
            id_,
            state,
            type_,
            name,
            content,
            created_at,
            _,
            parent_id,
            valid_from,
            valid_to,
            _,
            born_time,
        ) = columns
        notes = notes_of.get(row)
        ident = trusted_id(id_)
        born = self._time(born_time)
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
        )
        return row, node

    def _time(self, time: int | None) -> datetime:
        """Return a commit's time; the open transaction's own commit has no row yet."""
        return from_micros(self._session.time if time is None else time)

    def bodies(self, rows: Iterable[int], known: int | None = None) -> Iterator[BodyRow]:
        """Yield the searchable part of nodes by row, as of commit `known`."""
        wanted = list(rows)
        if not wanted:
            return
        past = self._journal.past(("node.valid_to", "node.parent"), wanted, known)
        found = self._session.execute(
            "SELECT row, id, type, parent, name, content, valid_from, valid_to FROM nodes "
            f"WHERE row {IN} AND born <= ? ORDER BY row",
            (among(wanted), FOREVER if known is None else known),
        )
        for body in map(BodyRow._make, found):
            if past:
                body = body._replace(
                    parent=past.get(("node.parent", body.row), body.parent),
                    valid_to=past.get(("node.valid_to", body.row), body.valid_to),
                )
            yield body

    # -- worlds ------------------------------------------------------------------------------------

    def world(self, row: int) -> World:
        """Return the fields that a world's state is hashed from."""
        found = self.worlds([row])
        if row not in found:
            raise CorruptionError(f"node row {row} is missing; run `worlddb check`")
        return found[row]

    def worlds(self, rows: Iterable[int]) -> dict[int, World]:
        """Return the fields that the states of worlds are hashed from."""
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
        """Return the rows of a world's children, in the order they were written."""
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
        """Return the rows of the present children of several worlds."""
        return self._session.rows(f"SELECT row FROM nodes WHERE parent {IN}", (among(list(rows)),))

    def parents(self, rows: Iterable[int], known: int | None = None) -> dict[int, int | None]:
        """Return the parent row of each row; rows not born by `known` are left out."""
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

    def rows_named(self, names: Iterable[str]) -> list[int]:
        """Return the rows of the nodes with exactly one of these names."""
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
        """Return the aliases of nodes as of commit `known`."""
        wanted = list(rows)
        if not wanted:
            return []
        sql = f"SELECT node, text FROM notes WHERE node {IN} AND kind = 'alias' AND born <= ?"
        values = (among(wanted), FOREVER if known is None else known)
        return list(map(AliasRow._make, self._session.execute(sql, values)))

    def rows_aliased(self, name: str) -> list[int]:
        """Return the rows of the nodes that have this alias, whatever its case."""
        sql = "SELECT node FROM notes WHERE kind = 'alias' AND text = ? COLLATE NOCASE"
        return self._session.rows(sql, (name,))

    def aliases_after(self, note: int) -> list[AliasRow]:
        """Return the aliases among the notes written after one."""
        sql = "SELECT node, text FROM notes WHERE row > ? AND kind = 'alias'"
        return list(map(AliasRow._make, self._session.execute(sql, (note,))))

    # -- writes ------------------------------------------------------------------------------------

    def insert_nodes(self, rows: Iterable[NewNode]) -> None:
        """Insert all columns but the state, which a new node has not."""
        self._session.executemany(
            "INSERT INTO nodes (row, key, id, type, name, content, created_at, parent, valid_from, "
            "valid_to, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )

    def insert_notes(self, rows: Iterable[NoteRow]) -> None:
        """Insert notes."""
        self._session.executemany("INSERT INTO notes VALUES (?, ?, ?, ?, ?)", rows)

    def has_note(self, node: int, kind: str, text: str) -> bool:
        """Return whether a node already has this note."""
        sql = "SELECT 1 FROM notes WHERE node = ? AND kind = ? AND text = ?"
        return self._session.one(sql, (node, kind, text)) is not None

    def was_moved(self, row: int) -> bool:
        """Return whether a node was ever moved from where it was born."""
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
        """Move a node; return the ids of its live outgoing edges, which move with it."""
        session = self._session
        session.need_index("edges_source")
        self._journal.change("node", "parent", row, parent)
        session.execute("UPDATE edges SET world = ? WHERE source = ?", (parent, row))
        session.execute(FILE_AGAIN, (row,))
        sql = "SELECT id FROM edges WHERE source = ? AND gone IS NULL"
        return [ident for (ident,) in session.execute(sql, (row,))]

    def set_states(self, rows: Sequence[StateChange]) -> None:
        """Give worlds their new states; the journal has the root's."""
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
