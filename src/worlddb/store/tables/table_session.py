"""Table session: implements the store's interface with the tables.

    TableReader   one snapshot
    TableWriter   one write transaction
    TextErasure   removes the texts of nodes; ids, validity and edges stay

Each call of the interface is a method of one table; the two session classes select it. An erasure
also removes what was derived from a text: its words, keys, vectors, and all sums over them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import Executor
from functools import cached_property
from operator import attrgetter
from typing import Any

from worlddb.model.address import ERASED
from worlddb.store.reader_groups import WholeTables
from worlddb.store.rows import ErasedEdge, without_texts
from worlddb.store.tables.derived_tables import (
    EmbeddingTables,
    LookupTable,
    PageCache,
    SetPagesTable,
    SetPagesWriter,
    TransactionJournal,
)
from worlddb.store.tables.edge_table import EdgeTable, HandledTables, WorldListing, WorldSweep
from worlddb.store.tables.node_table import FILE_AGAIN, NodeTable
from worlddb.store.tables.sql_session import IN, JournalTable, SqlSession, TextTable


class TextErasure:
    """Erases inside a write transaction; returns the commits that cannot be hashed again."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session

    def erase_nodes(self, rows: list[int]) -> set[int]:
        if self._session.warm is not None:
            self._session.warm.clear()
        self._session.texts().erase(rows)  # First: a store may need the texts.
        self._session.execute(
            "UPDATE nodes SET name = '', content = '', created_at = ?, blind = zeroblob(0), "
            f"content_key = NULL WHERE row {IN}",
            (ERASED, self._session.among(rows)),
        )
        sql = f"SELECT DISTINCT born FROM notes WHERE node {IN} AND text NOT IN ('', '{{}}')"
        commits = set(self._session.rows(sql, (self._session.among(rows),)))
        self._session.execute(
            "UPDATE notes SET text = CASE kind WHEN 'metadata' THEN '{}' ELSE '' END "
            f"WHERE node {IN}",
            (self._session.among(rows),),
        )
        self._unblind(commits)
        return commits

    def _unblind(self, commits: Iterable[int]) -> None:
        """Destroy the blinds of commits that lost a part by the erasure.

        With the blind, the hash of a commit would confirm a guess of the erased text.
        """
        sql = f"UPDATE commits SET blind = zeroblob(0) WHERE seq {IN}"
        self._session.execute(sql, (self._session.among(list(commits)),))

    def erase_edges(self, rows: list[int]) -> list[ErasedEdge]:
        """Remove the metadata texts of edges at nodes; return the edges with metadata, by row.

        None of these edges can be hashed again, because the blind of the erased end is gone.
        """
        found: list[Any] = self._session.execute(
            f"SELECT row, id, metadata FROM edges WHERE (source {IN} OR target {IN}) "
            "AND metadata != '{}' ORDER BY row",
            (self._session.among(rows), self._session.among(rows)),
        ).fetchall()
        changed = []
        for row, ident, metadata in found:
            less = _without_texts(metadata)
            if less != metadata:
                self._session.execute("UPDATE edges SET metadata = ? WHERE row = ?", (less, row))
            changed.append(ErasedEdge(row, ident))
        return changed

    def erase_staged(self, rows: list[int]) -> set[int]:
        commits: dict[int, set[str]] = {}
        for table, column, blank in (("proposals", "evidence", "{}"), ("conflicts", "reason", "")):
            where = f"(low {IN} OR high {IN}) AND {column} != ?"
            sql = f"SELECT s.born, e.id FROM {table} s JOIN edges e ON e.row = s.edge WHERE {where}"
            for born, ident in self._session.execute(
                sql, (self._session.among(rows), self._session.among(rows), blank)
            ):
                commits.setdefault(born, set()).add(ident.hex())
            values = (blank, self._session.among(rows), self._session.among(rows), blank)
            self._session.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", values)
        for seq, edges in commits.items():
            sql = "SELECT changes FROM commits WHERE seq = ?"
            blanked = _blanked(self._session.execute(sql, (seq,)).get, edges)
            self._session.execute("UPDATE commits SET changes = ? WHERE seq = ?", (blanked, seq))
        self._unblind(commits)
        return set(commits)

    def erase_derived(self, rows: list[int]) -> None:
        self._session.execute(
            f"UPDATE vectors SET vector = zeroblob(length(vector)) WHERE node {IN}",
            (self._session.among(rows),),
        )
        self._session.execute(f"DELETE FROM tokens WHERE node {IN}", (self._session.among(rows),))
        self._session.execute("DELETE FROM pools")
        self._session.execute("UPDATE models SET composed = 1, seq = -1")
        self._session.execute(f"DELETE FROM lookups WHERE node {IN}", (self._session.among(rows),))
        self._session.executemany(FILE_AGAIN, [(row,) for row in rows])
        self._session.reached = None


def _without_texts(metadata: str) -> str:
    kept = without_texts(json.loads(metadata))
    return json.dumps(kept, sort_keys=True, separators=(",", ":"))


def _blanked(changes: str, edges: set[str]) -> str:
    """Return a commit's changes without the evidence and reasons of some edges."""
    rows = json.loads(changes)
    for kind, ident, detail in rows:
        if ident in edges and kind == "propose":
            detail["evidence"] = "{}"
        elif ident in edges and kind == "flag":
            detail["reason"] = ""
    return json.dumps(rows, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class TableReader:
    """One snapshot of the database."""

    def __init__(self, session: SqlSession, *, is_uncommitted: bool = False) -> None:
        self.session = session
        self.con = session.con
        self.is_uncommitted = is_uncommitted
        self._journal = journal = JournalTable(session)
        self.head, self.commit_at, self.commits = journal.head, journal.commit_at, journal.commits
        self.state_count = journal.state_count
        self._nodes = nodes = NodeTable(session, journal)
        self.node_row, self.ids_like = nodes.node_row, nodes.ids_like
        self.lookup = nodes.lookup
        self.nodes = nodes.nodes
        self.bodies = nodes.bodies
        self.world = nodes.world
        self.worlds = nodes.worlds
        self.children = nodes.children
        self.children_of = nodes.children_of
        self.parents, self.closed_by = nodes.parents, nodes.closed_by
        self.outsiders = nodes.outsiders
        self.is_plain = nodes.is_plain
        self.alike = nodes.alike
        self.rows_named = nodes.rows_named
        self.aliases = nodes.aliases
        self.rows_aliased = nodes.rows_aliased
        self.aliases_after = nodes.aliases_after

        self._edges = edges = EdgeTable(session, journal)
        self.edge_row = edges.edge_row
        self.edges_at = edges.edges_at
        self.edges = edges.edges
        self.edges_between = edges.edges_between

        self._handled = handled = HandledTables(session, journal)
        self.proposals = handled.proposals
        self.has_proposals = handled.has_proposals
        self.conflicts = handled.conflicts
        self.registrations = handled.registrations

        pages = SetPagesTable(session)
        self.page = pages.page
        self.waiting = pages.waiting
        self.sweep = WorldSweep(session)

    @cached_property
    def texts(self) -> TextTable:
        return self.session.texts()

    @cached_property
    def lookups(self) -> LookupTable:
        return LookupTable(self.session)

    @cached_property
    def derived(self) -> EmbeddingTables:
        return EmbeddingTables(self.session)

    @cached_property
    def placed(self) -> WorldListing:
        """Worlds a page at a time."""
        return WorldListing(self.session)

    @cached_property
    def scan(self) -> WholeTables:
        return self.session.scan()


class TableWriter(TableReader):
    """The write transaction; `seq` and `time` are those of the commit it will become.

    A store has one, used for one transaction after the other, because creating it is expensive.
    """

    def __init__(self, session: SqlSession, cache: PageCache) -> None:
        super().__init__(session)
        self.random_bytes = session.context.random_bytes
        journal = TransactionJournal(session, self._journal, cache)
        self.begin, self.insert_commit = journal.begin, journal.insert_commit
        self.insert_texts = session.insert_texts

        nodes = self._nodes
        self.twins = nodes.twins
        self.insert_nodes = nodes.insert_nodes
        self.insert_notes = nodes.insert_notes
        self.has_note = nodes.has_note
        self.was_moved = nodes.was_moved
        self.is_erased = nodes.is_erased
        self.born = nodes.born
        self.set_parent = nodes.set_parent
        self.set_states = nodes.set_states
        self.set_valid_to = self._journal.set_valid_to

        edges = self._edges
        self.insert_edges = edges.insert_edges
        self.delete_edge = edges.delete_edge
        self.insert_premises = edges.insert_premises
        self.resting_on = edges.resting_on

        handled = self._handled
        self.put_proposal = handled.put_proposal
        self.set_status = handled.set_status
        self.put_conflict = handled.put_conflict
        self.settle_conflict = handled.settle_conflict
        self.put_registration = handled.put_registration

        pages = SetPagesWriter(session, cache)
        self.page = pages.page
        self.unseen = pages.unseen
        self.put_pages = pages.put_pages
        self.keep_changes = pages.keep_changes
        self.write_pages = pages.write_pages

        erasure = TextErasure(session)
        self.erase_nodes = erasure.erase_nodes
        self.erase_edges = erasure.erase_edges
        self.erase_staged = erasure.erase_staged
        self.erase_derived = erasure.erase_derived

    seq = property(attrgetter("session.seq"))
    time = property(attrgetter("session.time"), lambda self, time: self.session.at(time))

    # -- a bulk load -------------------------------------------------------------------------------

    is_deferred = property(attrgetter("session.deferred"))

    def defer_indexes(self) -> None:
        if self.session.deferred is None:
            self.session.deferred = self.session.bulk_load(self.head())

    def analyse_texts(self, pool: Executor) -> None:
        if self.session.deferred is not None:
            self.session.deferred.analyse(pool)

    def build_indexes(self) -> None:
        if self.session.deferred is not None:
            self.session.deferred.build()
