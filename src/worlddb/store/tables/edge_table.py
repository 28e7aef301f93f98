"""Edge table: edges, the records of their handlers, and whole worlds.

    EdgeTable      edges as values, read as of any commit
    HandledTables  proposals, conflicts and custom edge types
    WorldListing   the content of worlds, by page
    WorldSweep     whole worlds and whole edge types

Listings and sweeps return row numbers, so that no unused values are built.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from typing import Any

from worlddb.errors import CorruptionError
from worlddb.model.address import short_key, trusted_id
from worlddb.model.inputs import from_micros
from worlddb.model.records import Direction, Edge
from worlddb.store.rows import (
    CauseRow,
    ClaimEdge,
    ConflictRow,
    ConflictScan,
    CoverRow,
    EdgeRow,
    InsideRow,
    ListedOnly,
    NewEdge,
    NodeTraits,
    PremiseRow,
    ProposalRow,
    ProposalScan,
    RecallRow,
    ReferenceRow,
    RegistrationRow,
    RegistrationScan,
    SummaryEnd,
    SummaryRow,
    WholeSummary,
)
from worlddb.store.tables.sql_session import (
    FOREVER,
    IN,
    WAY_OUT,
    JournalTable,
    Past,
    SqlSession,
)

MEMBERSHIP = "contains"
"""The edge type by which a node is a member of a further world."""
# CROSS JOIN keeps SQLite from reordering the join: always start at the edges.
_COLUMNS = """
    SELECT e.row, e.id, e.type, e.source, e.target, e.world, s.id, t.id, e.valid_from, e.valid_to,
           e.metadata, b.time, e.gone, g.time
    FROM edges e CROSS JOIN nodes s ON s.row = e.source CROSS JOIN nodes t ON t.row = e.target
    LEFT JOIN commits b ON b.seq = e.born LEFT JOIN commits g ON g.seq = e.gone
"""
# One world at a time: only then does SQLite read just one page from the end of the index.
_STANDING = f"""
    WITH said AS (
        SELECT row, source, metadata, CASE {{}} END AS topic,
            substr(metadata, instr(metadata, '"value":')) AS told,
            instr(metadata, '"stands_for":"') AS moved, instr(metadata, '"since":"') AS dated
        FROM edges WHERE target {IN} AND type = ? AND gone IS NULL
    )
    SELECT s.row, s.source, topic, n.valid_from, n.created_at, n.valid_to,
        CASE WHEN dated > 0 THEN substr(metadata, dated + 9, 40) ELSE '' END, told,
        CASE WHEN moved > 0 THEN substr(metadata, moved + 14, 64) ELSE '' END
    FROM said s JOIN nodes n ON n.row = s.source
    WHERE topic IS NOT NULL AND (moved > 0
        OR (n.valid_to IS NULL OR n.valid_to > ? OR n.created_at > ?)
        AND (topic, lower(hex(n.id)), told) NOT IN (
            SELECT topic, substr(metadata, moved + 14, 64), told FROM said
            WHERE moved > 0 AND topic IS NOT NULL
        ))
    ORDER BY s.row
"""
_CHILDREN = "SELECT row FROM nodes WHERE parent = ? AND row < ?"
_NEWEST = " ORDER BY row DESC LIMIT ?"
_MEMBERS = """
    SELECT DISTINCT target FROM edges
    WHERE source = ? AND type = 'contains' AND gone IS NULL AND target < ?
      AND (valid_to IS NULL OR valid_to > ?)
    ORDER BY target DESC LIMIT ?
"""
# The caller checks each edge, because the journal may have a later end or deletion.
_MEMBERS_THEN = """
    SELECT DISTINCT target FROM edges
    WHERE source = ? AND type = 'contains' AND target < ? AND born <= ?
    ORDER BY target DESC LIMIT ?
"""
_MOVED = "SELECT DISTINCT row FROM history WHERE field = 'node.parent' AND was = ? AND row < ?"
_AFTER_ALL = "\U0010ffff"


class EdgeTable:
    """Edges, as one session sees them."""

    def __init__(self, session: SqlSession, journal: JournalTable) -> None:
        self._session = session
        self._journal = journal

    def edge_row(self, ident: bytes) -> int | None:
        self._session.need_index("edges_key")
        sql = "SELECT row FROM edges WHERE key = ? AND id = ?"
        return self._session.one(sql, (short_key(ident), ident))

    def edges_at(
        self,
        rows: Iterable[int],
        direction: Direction,
        types: Iterable[str] | None = None,
        known: int | None = None,
    ) -> list[EdgeRow]:
        """Return the edges that leave, enter or touch `rows` as of commit `known`, by row."""
        wanted = list(rows)
        if direction == "both":
            chosen = None if types is None else list(types)
            out = self.edges_at(wanted, "out", chosen, known)
            seen = {item.row for item in out}
            into = self.edges_at(wanted, "in", chosen, known)
            both = out + [item for item in into if item.row not in seen]
            return sorted(both, key=lambda item: item.row)
        self._session.need_index("edges_source", "edges_target")
        if not wanted:
            return []
        end = "source" if direction == "out" else "target"
        return self._edges(*_of_types(f"e.{end} {IN}", [self._session.among(wanted)], types), known)

    def edges(self, rows: Iterable[int], known: int | None = None) -> list[EdgeRow]:
        wanted = list(rows)
        if not wanted:
            return []
        return self._edges(f"e.row {IN}", [self._session.among(wanted)], known, deleted=True)

    def edges_between(
        self, first: int, last: int, known: int | None = None, types: Iterable[str] | None = None
    ) -> list[EdgeRow]:
        where, values = "e.row BETWEEN ? AND ?", [first, last]
        return self._edges(*_of_types(where, values, types), known, deleted=True)

    def _edges(
        self, where: str, values: list[Any], known: int | None, deleted: bool = False
    ) -> list[EdgeRow]:
        if known is not None:
            where += " AND e.born <= ?"
            values.append(known)
        if not deleted:
            where += " AND (e.gone IS NULL OR e.gone > ?)"
            values.append(FOREVER if known is None else known)
        found = self._session.execute(f"{_COLUMNS} WHERE {where} ORDER BY e.row", values)
        try:
            edges: list[Any] = found.fetchall()
            past: Past = {}
            if edges and known is not None:
                past = self._journal.past(("edge.valid_to",), [row for row, *_ in edges], known)
            return [self._value(edge, past, known) for edge in edges]
        except UnicodeDecodeError:
            raise  # The session says which.
        except (ValueError, TypeError) as error:  # No JSON, or a time that is none.
            raise CorruptionError(f"an edge cannot be read ({error}); {WAY_OUT}") from None

    def _value(self, columns: Any, past: Past, known: int | None) -> EdgeRow:
        # The columns of `_COLUMNS`, unpacked once: this is the innermost loop of every traversal.
        (row, ident, type_, source, target, world, source_id, target_id, valid_from, valid_to,
         metadata, born_time, gone, gone_time) = columns  # fmt: skip
        if past:
            valid_to = past.get(("edge.valid_to", row), valid_to)
        is_gone = gone is not None and (known is None or gone <= known)
        # The open transaction's own commit has no row yet, so no time in the join.
        now = self._session.time
        edge = Edge(
            id=trusted_id(ident),
            type=type_,
            source=trusted_id(source_id),
            target=trusted_id(target_id),
            valid_from=from_micros(valid_from),
            valid_to=None if valid_to is None else from_micros(valid_to),
            known_from=from_micros(now if born_time is None else born_time),
            known_to=from_micros(now if gone_time is None else gone_time) if is_gone else None,
            metadata={} if metadata == "{}" else json.loads(metadata),
        )
        return EdgeRow(row, source, target, world, edge)

    # -- writes ------------------------------------------------------------------------------------

    def insert_edges(self, rows: Iterable[NewEdge]) -> None:
        warm = self._session.warm
        if warm is not None and (warm.outsiders or warm.plain):
            rows = list(rows)
            if any(new.type == MEMBERSHIP for new in rows):
                warm.forget_members()
        self._session.insert("edges", NewEdge._fields, rows)

    def delete_edge(self, row: int) -> None:
        self._session.execute("UPDATE edges SET gone = ? WHERE row = ?", (self._session.seq, row))

    def insert_premises(self, rows: Iterable[tuple[int, int]]) -> None:
        self._session.insert("premises", PremiseRow._fields, rows, "DO NOTHING")

    def resting_on(self, edge: int) -> list[int]:
        sql = "SELECT edge FROM premises WHERE premise = ? ORDER BY edge"
        return self._session.rows(sql, (edge,))


def _of_types(where: str, values: list[Any], types: Iterable[str] | None) -> tuple[str, list[Any]]:
    """Return a condition on the types of edges; None means all types."""
    if types is None:
        return where, values
    chosen = list(types)
    return f"{where} AND e.type IN ({', '.join('?' * len(chosen)) or 'NULL'})", [*values, *chosen]


class HandledTables:
    """Proposals, conflicts and custom edge types, as one session sees them."""

    def __init__(self, session: SqlSession, journal: JournalTable) -> None:
        self._session = session
        self._journal = journal

    def proposals(
        self, status: str | None = None, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ProposalRow]:
        sql = "SELECT edge, low, high, status, tier, score, evidence FROM proposals WHERE born <= ?"
        chosen = None if rows is None else list(rows)
        if chosen == []:
            return []
        where, values = _at_nodes(self._session, chosen, known)
        if status is not None and known is None:
            where += " AND status = ?"
            values.append(status)
        ordered = self._session.execute(f"{sql}{where} ORDER BY edge", values)
        found = [ProposalRow(*row) for row in ordered]
        past = self._journal.past(("proposal.status",), [row.edge for row in found], known)
        then = [
            row._replace(status=past.get(("proposal.status", row.edge), row.status))
            for row in found
        ]
        return [row for row in then if status is None or row.status == status]

    def has_proposals(self) -> bool:
        return self._session.one("SELECT 1 FROM proposals LIMIT 1", ()) is not None

    def conflicts(
        self, rows: Iterable[int] | None = None, known: int | None = None
    ) -> list[ConflictRow]:
        """Return the conflicts that touch any of `rows`, by edge; `gone` is None if open then."""
        sql = "SELECT edge, low, high, reason, gone FROM conflicts WHERE born <= ?"
        chosen = None if rows is None else list(rows)
        if chosen == []:
            return []
        where, values = _at_nodes(self._session, chosen, known)
        ordered = self._session.execute(f"{sql}{where} ORDER BY edge", values)
        found = [ConflictRow(*row) for row in ordered]
        if known is not None:
            found = [
                row._replace(gone=None) if row.gone is not None and row.gone > known else row
                for row in found
            ]
        return found

    def registrations(self) -> list[RegistrationRow]:
        found = self._session.execute(
            "SELECT n.id, r.type, r.version, r.functional FROM registrations r "
            "JOIN nodes n ON n.row = r.world ORDER BY r.world, r.type"
        )
        return [
            RegistrationRow(world, type_, version, bool(flag))
            for world, type_, version, flag in found
        ]

    # -- writes ------------------------------------------------------------------------------------

    def put_proposal(self, row: ProposalRow) -> None:
        self._session.insert("proposals", ProposalScan._fields, [(*row, self._session.seq)])

    def set_status(self, edge: int, status: str) -> None:
        self._journal.change("proposal", "status", edge, status)

    def put_conflict(self, row: ConflictRow) -> None:
        values = (row.edge, row.low, row.high, row.reason, self._session.seq, None)
        self._session.insert("conflicts", ConflictScan._fields, [values])

    def settle_conflict(self, edge: int) -> None:
        self._session.execute(
            "UPDATE conflicts SET gone = ? WHERE edge = ?", (self._session.seq, edge)
        )

    def put_registration(self, world: int, type_: str, version: str, functional: bool) -> None:
        values = (world, type_, version, int(functional), self._session.seq)
        keys, columns = RegistrationScan._fields[:2], RegistrationScan._fields[2:]
        self._session.put("registrations", keys, columns, [values])


def _at_nodes(
    session: SqlSession, rows: list[int] | None, known: int | None
) -> tuple[str, list[Any]]:
    """Return a condition on the nodes that proposals or conflicts touch, and all values."""
    values: list[Any] = [FOREVER if known is None else known]
    if rows is None:
        return "", values
    among = session.among(rows)
    return f" AND (low {IN} OR high {IN})", [*values, among, among]


def _condition_of(only: ListedOnly) -> tuple[str, list[Any]]:
    """Return the conditions on children, apart from their world, as SQL and values."""
    parts: list[str] = []
    values: list[Any] = []
    if only.begun:
        parts.append(" AND valid_from <= ?")
        values.append(only.at)
    if only.lasting and only.known is None:  # A later recorded end is in the journal.
        parts.append(" AND (valid_to IS NULL OR valid_to > ?)")
        values.append(only.at)
    if only.types is not None:
        parts.append(f" AND type IN ({', '.join('?' * len(only.types))})")
        values += only.types
    return "".join(parts), values


class WorldListing:
    """The present content of worlds, by page."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def latest(self, worlds: Iterable[int], before: int, now: int, most: int) -> list[int]:
        pages = []
        for world in worlds:
            children = self._session.rows(_CHILDREN + _NEWEST, (world, before, most))
            members = self._session.rows(_MEMBERS, (world, before, now, most))
            pages += [children, members]
        return list(islice(dict.fromkeys(merge(*pages, reverse=True)), most))

    def candidates(
        self, worlds: Iterable[int], before: int, most: int, only: ListedOnly
    ) -> list[int]:
        """Return rows that may be children or members of worlds at a time, newest first.

        All that are, and some more: those that were moved here, or whose membership ended, since.
        """
        condition, values = _condition_of(only)
        pages = []
        for world in worlds:
            given = (world, before, *values, most)
            pages.append(self._session.rows(_CHILDREN + condition + _NEWEST, given))
            if only.known is None:
                pages.append(self._session.rows(_MEMBERS, (world, before, only.at, most)))
                continue
            then = (world, before, only.known, most)
            pages.append(self._session.rows(_MEMBERS_THEN, then))
            former = (self._session.former(world), before, most)
            pages.append(self._session.rows(_MOVED + _NEWEST, former))
        return list(islice(dict.fromkeys(merge(*pages, reverse=True)), most))

    def holders(self, rows: Iterable[int]) -> set[int]:
        given = list(rows)
        sql = (
            f"SELECT parent FROM nodes WHERE row {IN} AND parent IS NOT NULL UNION SELECT source "
            f"FROM edges WHERE target {IN} AND type = 'contains' AND gone IS NULL ORDER BY 1"
        )
        return set(
            self._session.rows(sql, (self._session.among(given), self._session.among(given)))
        )

    def ended(self, rows: Iterable[int], at: int) -> set[int]:
        sql = f"SELECT row FROM nodes WHERE row {IN} AND valid_to <= ? ORDER BY row"
        return set(self._session.rows(sql, (self._session.among(list(rows)), at)))

    def traits(self, first: int, last: int) -> list[NodeTraits]:
        sql = (
            "SELECT row, type, valid_from, CASE WHEN type = 'Turn' THEN name ELSE '' END "
            "FROM nodes WHERE row BETWEEN ? AND ? ORDER BY row"
        )
        return list(map(NodeTraits._make, self._session.execute(sql, (first, last))))

    def ending(self, first: int, last: int) -> list[int]:
        sql = (
            "SELECT row FROM nodes WHERE row BETWEEN ? AND ? AND valid_to IS NOT NULL ORDER BY row"
        )
        return self._session.rows(sql, (first, last))

    def ended_later(self) -> list[int]:
        sql = "SELECT DISTINCT row FROM history WHERE field = 'node.valid_to' ORDER BY row"
        return self._session.rows(sql, ())

    def typed(self, world: int, type_: str, start: str, after: int, most: int) -> list[int]:
        sql = (
            "SELECT row FROM nodes WHERE parent = ? AND row > ? AND type = ? AND name >= ? "
            "AND name < ? ORDER BY row LIMIT ?"
        )
        return self._session.rows(sql, (world, after, type_, start, start + _AFTER_ALL, most))


class WorldSweep:
    """Whole worlds, edge types and recalls, as one session sees them."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def worlds(self) -> list[int]:
        sql = (
            "SELECT parent FROM nodes WHERE parent IS NOT NULL GROUP BY parent "
            "UNION SELECT source FROM edges WHERE type = 'contains' AND gone IS NULL "
            "ORDER BY 1"
        )
        return self._session.rows(sql, ())

    def inside(self, worlds: Iterable[int]) -> list[InsideRow]:
        rows = list(worlds)
        columns = (
            "n.row, n.type, n.content != '', n.name != '', n.state IS NOT NULL, n.born, "
            "n.created_at, n.valid_to"
        )
        sql = (
            f"SELECT n.parent, {columns}, 0, NULL FROM nodes n WHERE n.parent {IN} "
            f"UNION ALL SELECT e.source, {columns}, 1, e.valid_to "
            f"FROM edges e CROSS JOIN nodes n ON n.row = e.target WHERE e.source {IN} "
            "AND e.type = 'contains' AND e.gone IS NULL AND n.parent != e.source ORDER BY 1, 2"
        )
        return list(
            map(
                InsideRow._make,
                self._session.execute(sql, (self._session.among(rows), self._session.among(rows))),
            )
        )

    def covers(
        self, rows: Iterable[int], types: Sequence[str] | None, direction: Direction = "out"
    ) -> list[CoverRow]:
        self._session.need_index("edges_source", "edges_target")
        chosen = [MEMBERSHIP] if types is None else types
        kinds = "!= ?" if types is None else f"IN ({', '.join('?' * len(types)) or 'NULL'})"
        end = "source" if direction == "out" else "target"
        sql = (
            "SELECT row, source, target, valid_from, valid_to FROM edges "
            f"WHERE {end} {IN} AND type {kinds} AND gone IS NULL ORDER BY row"
        )
        found = self._session.execute(sql, [self._session.among(list(rows)), *chosen])
        return list(map(CoverRow._make, found))

    def saying(self, targets: Iterable[int], type_: str, said: Sequence[str]) -> list[int]:
        """Return the rows of the edges of a type into nodes whose metadata hold one of some texts.

        Metadata is canonical JSON, so a member can be searched as text.
        """
        return sorted(row for rows in self.saying_of(targets, type_, said).values() for row in rows)

    def saying_of(
        self, targets: Iterable[int], type_: str, said: Sequence[str], after: int = 0
    ) -> dict[int, list[int]]:
        """Return the rows of the same edges by the node that they enter; those `after` a row."""
        sql = (
            f"SELECT target, row FROM edges WHERE target {IN} AND type = ? AND gone IS NULL "
            f"AND row > ? AND ({' OR '.join(['instr(metadata, ?) > 0'] * len(said))}) ORDER BY row"
        )
        values = (self._session.among(list(targets)), type_, after, *said)
        found: dict[int, list[int]] = {}
        for target, row in self._session.execute(sql, values) if said else ():
            found.setdefault(target, []).append(row)
        return found

    def references(self, rows: Iterable[int]) -> list[ReferenceRow]:
        """Return edges as they are stored: a tenth of the time that edges as values take."""
        wanted = list(rows)
        if not wanted:
            return []
        sql = f"SELECT {', '.join(ReferenceRow._fields)} FROM edges WHERE row {IN} ORDER BY row"
        found = self._session.execute(sql, (self._session.among(wanted),))
        return list(map(ReferenceRow._make, found))

    def leaving(self, sources: Iterable[int], type_: str) -> list[ReferenceRow]:
        """Return the present edges of a type from nodes, as they are stored, by row."""
        wanted = list(sources)
        if not wanted:
            return []
        self._session.need_index("edges_source")
        sql = (
            f"SELECT {', '.join(ReferenceRow._fields)} FROM edges "
            f"WHERE source {IN} AND type = ? AND gone IS NULL ORDER BY row"
        )
        found = self._session.execute(sql, (self._session.among(wanted), type_))
        return list(map(ReferenceRow._make, found))

    def standing(
        self,
        targets: Iterable[int],
        type_: str,
        said: Mapping[str, str],
        after: tuple[int, int],
    ) -> list[ClaimEdge]:
        """Return edges as `saying` does, without ended and repeated ones.

        The texts of `said` are searched. An edge that also has the other text of its pair is left
        out, unless that is empty; so is an edge whose source ended by the first time of `after` and
        was created by the second, and one for whose source and value another edge stands. The
        database does this, because there may be thousands.
        """
        topics = " ".join(
            "WHEN instr(metadata, ?) > 0 THEN CASE WHEN length(?) > 0 AND instr(metadata, ?) > 0 "
            f"THEN NULL ELSE {number} END"
            for number in range(len(said))
        )
        values: list[Any] = [it for pair in said.items() for it in (*pair, pair[1])]
        values += [self._session.among(list(targets)), type_, *after]
        if not said:
            return []
        found = self._session.execute(_STANDING.format(topics), tuple(values))
        return list(map(ClaimEdge._make, found))

    def noted(self, rows: Iterable[int], start: str) -> dict[int, list[str]]:
        sql = (
            f"SELECT node, text FROM notes WHERE node {IN} AND kind = 'source' "
            "AND instr(text, ?) = 1 ORDER BY node, row"
        )
        found: dict[int, list[str]] = {}
        for node, text in self._session.execute(sql, (self._session.among(list(rows)), start)):
            found.setdefault(node, []).append(text)
        return found

    def summaries_in(self, worlds: Iterable[int], start: str) -> list[SummaryRow]:
        sql = (
            f"SELECT n.parent, n.row, n.valid_to FROM nodes n WHERE n.parent {IN} "
            "AND n.type = 'Summary' AND EXISTS (SELECT 1 FROM notes t WHERE t.node = n.row "
            "AND t.kind = 'source' AND instr(t.text, ?) = 1) ORDER BY n.row"
        )
        found = self._session.execute(sql, (self._session.among(list(worlds)), start))
        return list(map(SummaryRow._make, found))

    def wholes(self, worlds: Iterable[int], start: str, now: int) -> list[WholeSummary]:
        """Return the summaries that are the last child of their world and have such a source.

        Only worlds without members whose state no later commit has changed; a state does not
        witness members. It does not witness validity either: the summary must be live, and nothing
        is returned if any edge of the store was ever closed.
        """
        sql = (
            "SELECT w.value, n.row, t.text FROM carray(?1) w CROSS JOIN nodes n "
            "ON n.row = (SELECT max(row) FROM nodes WHERE parent = w.value) CROSS JOIN notes t "
            "ON t.node = n.row AND t.kind = 'source' AND instr(t.text, ?2) = 1 "
            "WHERE n.type = 'Summary' AND (n.valid_to IS NULL OR n.valid_to > ?3) "
            "AND NOT EXISTS (SELECT 1 FROM history WHERE field = 'node.state' AND row = w.value "
            "AND seq > n.born) AND NOT EXISTS (SELECT 1 FROM edges WHERE source = w.value "
            "AND type = 'contains' AND gone IS NULL) "
            "AND NOT EXISTS (SELECT 1 FROM history WHERE field = 'edge.valid_to') "
            "ORDER BY w.value, t.row"
        )
        found = self._session.execute(sql, (self._session.among(list(worlds)), start, now))
        return list(map(WholeSummary._make, found))

    def summaries_below(self, rows: Iterable[int]) -> list[SummaryEnd]:
        sql = (
            "SELECT n.row, n.valid_to FROM edges e CROSS JOIN nodes n ON n.row = e.target "
            f"WHERE e.source {IN} AND e.type = 'derived_from' AND e.gone IS NULL "
            "AND n.type = 'Summary' ORDER BY n.row"
        )
        return list(
            map(SummaryEnd._make, self._session.execute(sql, (self._session.among(list(rows)),)))
        )

    def typed(self, type_: str) -> Iterator[CauseRow]:
        sql = (
            "SELECT row, id, source, target, world, valid_from, valid_to, "
            "CASE WHEN instr(metadata, '\"inferred\":true') > 0 THEN metadata END, gone "
            "FROM edges WHERE type = ? ORDER BY row"
        )
        return map(CauseRow._make, self._session.execute(sql, (type_,)))

    def recalls(self, rows: Iterable[int]) -> list[RecallRow]:
        joined, counted = "", "0, NULL"
        if self._session.need_table("recalls"):
            joined = "LEFT JOIN recalls r ON r.node = n.row"
            counted = "coalesce(r.count, 0), r.last"
        links = "SELECT count(*) FROM edges e WHERE e.{} = n.row AND e.gone IS NULL"
        sql = (
            f"SELECT n.row, n.created_at, {counted}, ({links.format('source')}) + "
            f"({links.format('target')}) FROM nodes n {joined} WHERE n.row {IN} ORDER BY n.row"
        )
        return list(
            map(RecallRow._make, self._session.execute(sql, (self._session.among(list(rows)),)))
        )

    def add_recalls(self, rows: Iterable[tuple[int, int, int]]) -> None:
        self._session.need_table("recalls", is_written=True)
        self._session.insert(
            "recalls",
            ("node", "count", "last"),
            rows,
            "(node) DO UPDATE SET count = recalls.count + excluded.count, last = CASE WHEN "
            "recalls.last > excluded.last THEN recalls.last ELSE excluded.last END",
        )
