"""Node table: nodes and their notes (aliases, sources, metadata), read as of any commit."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from worlddb.errors import CorruptionError
from worlddb.language.text_tokens import indexed
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
    HistoryRow,
    NewNode,
    NodePlace,
    NoteRow,
    StateChange,
    World,
)
from worlddb.store.tables.sql_session import (
    FOREVER,
    IN,
    WARM_BATCH,
    WARM_CHARS,
    WARM_NEW_MAX,
    WAY_OUT,
    JournalTable,
    SqlSession,
)

_COLUMNS = f"""
    SELECT n.row, n.id, n.state, n.type, n.name, n.content, n.created_at, n.parent, p.id,
           n.valid_from, n.valid_to, n.born, b.time, b.actor, n.blind
    FROM nodes n LEFT JOIN nodes p ON p.row = n.parent LEFT JOIN commits b ON b.seq = n.born
    WHERE n.row {IN} ORDER BY n.row
"""
_WORLD = (
    "SELECT row, id, state, type, name, content, created_at, parent, blind FROM nodes WHERE row "
)
_BODY = "SELECT row, id, type, parent, name, content, valid_from, valid_to FROM nodes "
_ALIKE = """
    SELECT k.value, n.row FROM carray(?1) k CROSS JOIN nodes n ON n.row IN (
        SELECT row FROM nodes WHERE content_key = k.value
        ORDER BY created_at DESC, row DESC LIMIT ?2
    ) WHERE (n.valid_to IS NULL OR n.valid_to > ?3)
    ORDER BY n.created_at DESC, n.row DESC
"""
_ANY_ALIKE = f"SELECT 1 FROM nodes WHERE content_key {IN} LIMIT 1"
_KEY_NIBBLES = 16  # The key is the first 8 bytes of an id.
_ROOT_WORLD = World(ROOT_ROW, ROOT_ID, None, ROOT_TYPE, ROOT_NAME, "", 0, None)
"""The root world; the same in every store, except its state."""
FILE_AGAIN = (
    "INSERT INTO lookups_moved SELECT ?1 WHERE EXISTS (SELECT 1 FROM lookups_reached "
    "WHERE number = 0) ON CONFLICT DO NOTHING"
)
"""Marks a moved or erased node for the lookup index, if there is one."""

DAMAGE = (ValueError, TypeError, AttributeError, OverflowError, struct.error, CorruptionError)
"""Errors of reading a damaged row: one flipped bit turns a number into a text or into NULL."""
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
        session = self._session
        warm = session.warm
        row = session.node_rows.get(ident)
        if row is None and warm is not None:
            row = warm.rows.get(ident)
            if row is None and ident in warm.absent:
                return None
        if row is None:
            session.need_index("nodes_key")
            sql = "SELECT row, id FROM nodes WHERE key = ?"
            found: list[Any] = session.execute(sql, (short_key(ident),)).fetchall()
            row = next((row for row, whole in found if whole == ident), None)
            if row is not None:
                session.node_rows[ident] = row
                if warm is not None:
                    warm.rows[ident] = row
            elif found and session.verifies:
                self.nodes([row for row, _ in found])  # Raises if a damaged id is the reason.
            elif warm is not None:
                warm.absent.add(ident)
        return row

    def ids_like(self, table: str, prefix: str, limit: int) -> list[Id]:
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
        warm = self._session.warm
        if warm is None or len(idents) > WARM_BATCH:
            return self._look_up(idents)
        if missing := [ident for ident in idents if ident not in warm.places]:
            warm.places.update(self._look_up(missing))
        return {ident: warm.places[ident] for ident in idents if ident in warm.places}

    def _look_up(self, idents: Sequence[bytes]) -> dict[bytes, NodePlace]:
        self._session.need_index("nodes_key")
        sql = "SELECT id, row, parent, valid_from, blind FROM nodes WHERE key "
        wanted = set(idents)
        if len(idents) == 1:
            found = self._session.execute(sql + "= ?", (short_key(idents[0]),))
        else:
            keys = self._session.among(list(map(short_key, idents)))
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
            found: list[Any] = self._session.execute(
                _COLUMNS, (self._session.among(wanted),)
            ).fetchall()
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
            origins=tuple(notes.get("origin", ())) if notes else (),
        )
        return row, node

    def bodies(self, rows: Iterable[int], known: int | None = None) -> Iterator[BodyRow]:
        wanted = list(rows)
        if not wanted:
            return iter(())
        warm = self._session.warm
        if warm is None or known is not None or len(wanted) > WARM_BATCH:
            return iter(self._bodies(wanted, known))
        kept, found = warm.bodies, {}
        if missing := [row for row in wanted if row not in kept]:
            found = {body.row: body for body in self._bodies(missing, None)}
            kept.update(item for item in found.items() if len(item[1].content) <= WARM_CHARS)
        places = [row for row in sorted(set(wanted)) if row in kept or row in found]
        return iter([kept[row] if row in kept else found[row] for row in places])

    def _bodies(self, wanted: list[int], known: int | None) -> list[BodyRow]:
        session = self._session
        past = self._journal.past(("node.valid_to", "node.parent"), wanted, known)
        found = session.execute(
            f"{_BODY} WHERE row {IN} AND born <= ? ORDER BY row",
            (self._session.among(wanted), FOREVER if known is None else known),
        )
        bodies = []
        # Not a generator: an interrupt while one is closed would be lost.
        try:
            for body in map(BodyRow._make, found):
                session.node_rows[body.id] = body.row
                if past:
                    body = body._replace(
                        parent=past.get(("node.parent", body.row), body.parent),
                        valid_to=past.get(("node.valid_to", body.row), body.valid_to),
                    )
                bodies.append(sound_body(body))
        except UnicodeDecodeError as error:
            raise first_damage(self._session, wanted, error) from error
        return bodies

    # -- worlds ------------------------------------------------------------------------------------

    def world(self, row: int) -> World:
        """Return the fields that one world's state is hashed from; CorruptionError without it."""
        found = self.worlds([row])
        if row not in found:
            raise CorruptionError(f"node row {row} is missing; run `worlddb check`")
        return found[row]

    def worlds(self, rows: Iterable[int]) -> dict[int, World]:
        wanted = list(rows)
        if wanted == [ROOT_ROW]:
            return {ROOT_ROW: _ROOT_WORLD._replace(state=self._journal.root_state(None))}
        warm = self._session.warm
        if warm is not None and len(wanted) == 1 and wanted[0] in warm.worlds:
            return {wanted[0]: warm.worlds[wanted[0]]}
        if len(wanted) == 1:
            found = self._session.execute(_WORLD + "= ?", wanted)
        else:
            found = self._session.execute(
                f"{_WORLD}{IN} ORDER BY row", (self._session.among(wanted),)
            )
        worlds = {values[0]: World._make(values) for values in found}
        if ROOT_ROW in worlds:
            state = self._journal.root_state(None)
            worlds[ROOT_ROW] = worlds[ROOT_ROW]._replace(state=state)
        elif warm is not None and len(worlds) < WARM_BATCH:
            warm.worlds.update(worlds)
        return worlds

    def children(
        self, row: int, known: int | None = None, after: int = 0, limit: int | None = None
    ) -> list[int]:
        self._session.need_index("nodes_parent")
        sql = "SELECT row FROM nodes WHERE parent = ? AND row > ? ORDER BY row LIMIT ?"
        if known is None:
            return self._session.rows(sql, (row, after, FOREVER if limit is None else limit))
        rows = set(self._session.rows(sql, (row, after, FOREVER)))
        # Nodes that were moved away since; `parents` filters those that were moved here since.
        moved = "SELECT row FROM history WHERE field = 'node.parent' AND was = ? AND row > ?"
        rows.update(self._session.rows(moved, (self._session.former(row), after)))
        then = self.parents(rows, known)
        return sorted(child for child in rows if then.get(child) == row)[:limit]

    def children_of(self, rows: Iterable[int]) -> list[int]:
        return self._session.rows(
            f"SELECT row FROM nodes WHERE parent {IN} ORDER BY parent, row",
            (self._session.among(list(rows)),),
        )

    def parents(self, rows: Iterable[int], known: int | None = None) -> dict[int, int | None]:
        """Return the parent row of each row, None for the root; without rows born after `known`."""
        wanted = list(rows)
        if not wanted:
            return {}
        sql = f"SELECT row, parent, born FROM nodes WHERE row {IN} ORDER BY row"
        found = self._session.execute(sql, (self._session.among(wanted),))
        parents = {row: parent for row, parent, born in found if known is None or born <= known}
        for (_, row), was in self._journal.past(("node.parent",), wanted, known).items():
            if row in parents:
                parents[row] = was
        return parents

    def outsiders(self, world: int) -> set[int]:
        """Return rows known to be outside a world; callers add the ones they find."""
        warm = self._session.warm
        return set() if warm is None else warm.outsiders.setdefault(world, set())

    def is_plain(self, world: int) -> bool:
        """Return whether all that is inside a world are its children; False if not known soon."""
        warm = self._session.warm
        return warm is not None and warm.is_plain(self._session, world)

    def closed_by(self, rows: Iterable[int], known: int | None = None) -> set[int]:
        wanted = list(rows)
        if not wanted:
            return set()
        warm = self._session.warm
        if warm is None or known is not None:
            return self._closed_by(wanted, known)
        if missing := [row for row in wanted if row not in warm.closed]:
            closed = self._closed_by(missing, None)
            warm.closed.update((row, row in closed) for row in missing)
        return {row for row in wanted if warm.closed[row]}

    def _closed_by(self, wanted: list[int], known: int | None) -> set[int]:
        sql = (
            f"SELECT row FROM history WHERE field = 'node.valid_to' AND row {IN} AND seq <= ? "
            "ORDER BY row"
        )
        return set(
            self._session.rows(
                sql, (self._session.among(wanted), FOREVER if known is None else known)
            )
        )

    # -- names and notes ---------------------------------------------------------------------------

    def alike(self, keys: Iterable[int], now: int, most: int) -> list[int]:
        """Return the newest `most` rows of each content key that have not ended by `now`."""
        self._session.need_index("nodes_content")
        # Ended ones count among the `most`, so that a text retired and repeated stays cheap.
        wanted = list(dict.fromkeys(keys))
        among = self._session.among(wanted)
        # A new text is looked up in several spellings, and mostly none of them is there.
        if len(wanted) > 1 and self._session.one(_ANY_ALIKE, (among,)) is None:
            return []
        found: dict[int, list[int]] = {key: [] for key in wanted}
        for key, row in self._session.execute(_ALIKE, (among, most, now)):
            found[key].append(row)
        return [row for rows in found.values() for row in rows]

    def twins(self, keys: Iterable[int], created_at: int, most: int) -> list[BodyRow]:
        self._session.need_index("nodes_content")
        sql = f"{_BODY} WHERE content_key {IN} AND created_at = ? ORDER BY row DESC LIMIT ?"
        found = self._session.execute(sql, (self._session.among(list(keys)), created_at, most))
        return list(map(BodyRow._make, found))

    def rows_named(self, names: Iterable[str]) -> list[int]:
        texts = self._session.texts()
        rows: list[int] = []
        for name in names:
            words = indexed(name)
            # If the text index has its words, the index finds the few nodes that may have the name.
            if words:
                sql = f"SELECT row FROM nodes WHERE name = ? AND row {IN} ORDER BY row"
                rows += self._session.rows(sql, (name, self._session.among(texts.named(words))))
            else:
                rows += self._session.rows(
                    "SELECT row FROM nodes WHERE name = ? ORDER BY row", (name,)
                )
        return rows

    def _notes(self, rows: list[int], known: int | None) -> dict[int, Notes]:
        sql = f"SELECT node, kind, text, born FROM notes WHERE node {IN} ORDER BY row"
        found: dict[int, Notes] = {}
        for node, kind, text, born in self._session.execute(sql, (self._session.among(rows),)):
            if text and (known is None or born <= known):  # Without text it was erased.
                found.setdefault(node, {}).setdefault(kind, []).append(text)
        return found

    def aliases(self, rows: Iterable[int], known: int | None = None) -> list[AliasRow]:
        wanted = list(rows)
        if not wanted:
            return []
        warm = self._session.warm
        if warm is None or known is not None or len(wanted) > WARM_BATCH:
            return self._aliases(wanted, known)
        if missing := [row for row in wanted if row not in warm.aliases]:
            warm.aliases.update((row, []) for row in missing)
            for found in self._aliases(missing, None):
                warm.aliases[found.node].append(found)
        return [found for row in wanted for found in warm.aliases[row]]

    def _aliases(self, wanted: list[int], known: int | None) -> list[AliasRow]:
        sql = (
            f"SELECT node, text FROM notes WHERE node {IN} AND kind = 'alias' AND born <= ? "
            "ORDER BY node, row"
        )
        values = (self._session.among(wanted), FOREVER if known is None else known)
        return list(map(AliasRow._make, self._session.execute(sql, values)))

    def rows_aliased(self, name: str) -> list[int]:
        sql = "SELECT node FROM notes WHERE kind = 'alias' AND text = ? COLLATE NOCASE ORDER BY row"
        return self._session.rows(sql, (name,))

    def aliases_after(self, note: int) -> list[AliasRow]:
        sql = "SELECT node, text FROM notes WHERE row > ? AND kind = 'alias' ORDER BY row"
        return list(map(AliasRow._make, self._session.execute(sql, (note,))))

    # -- writes ------------------------------------------------------------------------------------

    def insert_nodes(self, rows: Sequence[NewNode]) -> None:
        self._session.insert("nodes", NewNode._fields, rows)
        if (warm := self._session.warm) is None:
            return
        if warm.absent:
            warm.absent.difference_update([row.id for row in rows])
        warm.extend(self._session, {row.parent for row in rows if row.parent is not None})
        if len(rows) <= WARM_NEW_MAX:
            for new in rows:
                if len(new.content) <= WARM_CHARS:
                    place = new.type, new.parent, new.name, new.content
                    times = new.valid_from, new.valid_to
                    warm.bodies[new.row] = BodyRow(new.row, new.id, *place, *times)

    def insert_notes(self, rows: Sequence[NoteRow]) -> None:
        self._session.insert("notes", NoteRow._fields, rows)
        if self._session.warm is not None:
            self._session.warm.drop_notes([row.node for row in rows])

    def has_note(self, node: int, kind: str, text: str) -> bool:
        sql = "SELECT 1 FROM notes WHERE node = ? AND kind = ? AND text = ?"
        return self._session.one(sql, (node, kind, text)) is not None

    def was_moved(self, row: int) -> bool:
        sql = "SELECT 1 FROM history WHERE field = 'node.parent' AND row = ? LIMIT 1"
        return self._session.one(sql, (row,)) is not None

    def is_erased(self, row: int) -> bool:
        sql = "SELECT 1 FROM nodes WHERE row = ? AND created_at = ?"
        return self._session.one(sql, (row, ERASED)) is not None

    def born(self, row: int) -> int:
        seq: int = self._session.execute("SELECT born FROM nodes WHERE row = ?", (row,)).get
        return seq

    def set_parent(self, row: int, parent: int) -> list[bytes]:
        session = self._session
        session.need_index("edges_source")
        self._journal.change("node", "parent", row, parent)
        session.execute("UPDATE edges SET world = ? WHERE source = ?", (parent, row))
        session.execute(FILE_AGAIN, (row,))
        session.reached = None
        sql = "SELECT id FROM edges WHERE source = ? AND gone IS NULL ORDER BY row"
        return [ident for (ident,) in session.execute(sql, (row,))]

    def set_states(self, rows: Sequence[StateChange]) -> None:
        inner = [row for row in rows if row[0] != ROOT_ROW]
        if not inner:
            return
        session = self._session
        if (warm := session.warm) is not None:
            for row, _, state in inner:
                if row in warm.worlds:
                    warm.worlds[row] = warm.worlds[row]._replace(state=state)
        session.insert(
            "history",
            HistoryRow._fields,
            [("node.state", row, session.seq, session.former(before)) for row, before, _ in inner],
            "DO NOTHING",
        )
        session.executemany(
            "UPDATE nodes SET state = ? WHERE row = ?", [(state, row) for row, _, state in inner]
        )


def _merged(texts: Iterable[str]) -> dict[str, Any]:
    """Return metadata as one mapping; later values win."""
    return {key: value for text in texts for key, value in json.loads(text).items()}


def sound_body(body: BodyRow) -> BodyRow:
    """Return a body unchanged, after a check of its types.

    Raises:
        CorruptionError: a field has another type than was written.
    """
    row, ident, type_, parent, name, content, valid_from, valid_to = body
    if not (
        type(row) is int
        and type(ident) is bytes
        and type(type_) is str
        and (parent is None or type(parent) is int)
        and type(name) is str
        and type(content) is str
        and type(valid_from) is int
        and (valid_to is None or type(valid_to) is int)
    ):
        raise _damaged(body.id, "cannot be read (a field is of another type than was written)")
    return body


def refuse_changed(found: Iterable[Any]) -> None:
    """Refuse nodes (row, id, state, type, name, content, created_at, …, blind) that were changed.

    An id is the hash of type, name, content, creation time and blind, so each read compares them.
    Notes, validity and parents do not belong to the address; `check` compares them with the
    journal.

    Raises:
        CorruptionError: the fields of a node do not hash to its id.
    """
    for _, ident, _, type_, name, content, created_at, *_, blind in found:
        if not has_address(ident, type_, name, content, created_at, blind):
            raise _damaged(ident, "is not what was written (its fields do not hash to its id)")


def first_damage(session: SqlSession, rows: list[int], error: Exception) -> CorruptionError:
    """Return the error for unreadable nodes, naming the first of them."""
    sql = (
        "SELECT n.valid_from, n.valid_to, n.type, n.name, n.content, t.text FROM nodes n "
        "LEFT JOIN notes t ON t.node = n.row WHERE n.row = ?"
    )
    for row in sorted(rows):
        try:
            for valid_from, valid_to, *_ in session.execute(sql, (row,)):
                from_micros(valid_from)
                from_micros(valid_from if valid_to is None else valid_to)
        except DAMAGE as damage:
            ident = session.execute("SELECT id FROM nodes WHERE row = ?", (row,)).get
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
