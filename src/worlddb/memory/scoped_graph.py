"""Scoped graph: the calls of `Memory` on edges, identity and history, inside a caller's scopes.

Lists and queries search the scopes of the call, as `recall` does. A call with an id finds the node
anywhere inside the bounds, as `read` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from worlddb.audit.history import Sight, diff
from worlddb.audit.undo import CommitEffects, CommitNumbers, Undone, undo_commits, undone_by
from worlddb.errors import ConflictError, InvalidInputError, NotFoundError
from worlddb.ingest.draft_parts import NOT_HELD, refuse_quarantined
from worlddb.ingest.identity_change import Split, decide_merges, split
from worlddb.memory.reads import MemoryReader
from worlddb.memory.results import (
    CommitPage,
    ConflictPage,
    EdgeTypeEntry,
    EdgeTypes,
    MergeProposal,
    ProposalPage,
    Proven,
    Soundness,
)
from worlddb.memory.scope_sight import (
    OwnHistory,
    inside_scopes,
    merge_proposal,
    not_yours,
    owns,
    pairs_inside,
    sees,
    sees_change,
    told_conflict,
    visible_commit,
    whole_commit,
)
from worlddb.memory.scope_view import (
    CallerScopes,
    find_memory,
    find_named,
    ids_like,
    refuse_untrusted,
)
from worlddb.memory.writes import MemoryWriter
from worlddb.model.address import Id
from worlddb.model.inputs import Groups, Instant, ScopeIds, check_choice, check_integer, to_micros
from worlddb.model.records import NOW, Commit, Diff, Edge, Identity, Node, ProposalStatus
from worlddb.model.text_safety import Origin
from worlddb.ontology.edge_types import default_handlers
from worlddb.ontology.registry import EdgeDeclaration
from worlddb.query.pipeline import Subgraph
from worlddb.query.query_builder import Plan, QueryBuilder
from worlddb.query.query_spec import QuerySpec
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW, EdgeRow
from worlddb.view import visibility as lookup
from worlddb.view.visibility import View, moment_of
from worlddb.world_db import WorldDB

if TYPE_CHECKING:
    from worlddb.consolidate.consolidation_run import ConsolidationReport

Decision = Literal["accept", "reject", "undo"]
STATUS_AFTER: dict[Decision, ProposalStatus] = {
    "accept": "accepted",
    "reject": "rejected",
    "undo": "pending",
}
PAGE_MAX = 1_000  # Bounds the memory and time of one call; a cursor gets the next page.
SEQ_DIGITS_MAX = 18  # Digits of a commit number; more do not fit into 63 bits.
T = TypeVar("T", Split, Undone)
QueryInput = QuerySpec | Mapping[str, Any] | str
"""A query: a line such as `text apple | limit 5`, or the same as JSON data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedGraph:
    """The calls of one caller on edges, identity and history."""

    db: WorldDB
    writer: MemoryWriter
    reader: MemoryReader
    scopes: CallerScopes
    actor: str
    origin: Origin | None

    # -- asking ------------------------------------------------------------------------------------

    def query(self, query: QueryInput, **scope: Unpack[ScopeIds]) -> Subgraph:
        """Run a query inside the scopes: a line such as `text apple | limit 5`, or JSON data.

        See `QuerySpec` for the steps. No step leaves the scopes.

        Raises:
            InvalidInputError, NotFoundError: the query is wrong, or names what is not there.
            RejectedError: the scope is outside the bounds of this memory.
            ProviderError: a search by vector, and the embedder failed.
        """
        return self.reader.by_grant(scope, lambda reader: self._queried(reader, query, scope))

    def _queried(
        self, reader: MemoryReader, query: QueryInput, scope: Mapping[str, Any]
    ) -> Subgraph:
        builder = self._builder(reader.scopes, query, scope)
        if builder is None:
            return Subgraph()  # No memory was written for that scope yet.
        found = builder.execute()
        reader.note("query", reader.scopes.groups(scope), "", (node.id for node in found.nodes))
        return replace(found, nodes=tuple(_without_strangers(reader.scopes, found.nodes)))

    def explain(self, query: QueryInput, **scope: Unpack[ScopeIds]) -> Plan:
        """Return how a query would be answered, without running it.

        Raises:
            InvalidInputError, NotFoundError, RejectedError: as `query`.
        """
        builder = self._builder(self.scopes.with_grants(scope), query, scope)
        if builder is None:
            raise NotFoundError("there is no such scope yet; write to it first")
        return builder.explain()

    def _builder(
        self, scopes: CallerScopes, query: QueryInput, scope: Mapping[str, Any]
    ) -> QueryBuilder | None:
        """Return a query bound to scopes; None if one of them does not exist."""
        built = QuerySpec.of(query).apply(self.db.query(), of_ended=NOT_HELD)
        with scopes.viewing(scopes.groups(scope), ended=True) as view:
            groups = [view.worlds, *view.within]
            if any(lookup.NOWHERE in group for group in groups):
                return None
            ids = [[view.reader.world(row).id for row in group] for group in groups]
        return built.within(ids)

    # -- edges -------------------------------------------------------------------------------------

    def link(
        self,
        type: str,
        source: bytes | str,
        target: bytes | str,
        *,
        valid_from: Instant | None = None,
        valid_to: Instant | None = None,
        metadata: Mapping[str, Any] | None = None,
        **scope: Unpack[ScopeIds],
    ) -> Edge:
        """Write an edge between memories or names, given by id or name, through its type's handler.

        Raises:
            InvalidInputError: no such edge type, several of one name, or an argument is wrong.
            NotFoundError: there is no such memory or name here.
            RejectedError: a handler refused, or the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        reach = self.scopes.reach(scope)
        (metadata,), _ = self.writer.without_secret_values((metadata,), scope)
        with self.db.transaction(self.actor, origin=self.origin) as tx:
            with self.scopes.viewing(reach, ended=True) as view:
                meant = self._view(view.reader, self.scopes.groups(scope))
                rows = [find_named(view, meant, one) for one in (source, target)]
                ends = view.reader.nodes(rows, view.moment.known)
                refuse_quarantined(view.reader, self.origin, ends[rows[0]].parent)
            more: Any = {"valid_from": valid_from, "valid_to": valid_to, "metadata": metadata}
            return tx.write_edge(type, *(ends[row].id for row in rows), **more)

    def unlink(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Edge:
        """Delete an edge by its id; it stays visible as of an earlier known time.

        Raises:
            InvalidInputError, NotFoundError: there is no such edge here, or it was deleted already.
            RejectedError: a handler refused, or the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        reach = self.scopes.reach(scope)
        with self.db.transaction(self.actor, origin=self.origin) as tx:
            with self.scopes.viewing(reach, ended=True) as view:
                row = self._edge(view, id)
            return tx.delete_edge(row.edge.id)

    def _edge(self, view: View, given: bytes | str) -> EdgeRow:
        """Return an edge whose ends can be seen."""
        reader = view.reader
        if view.worlds == [ROOT_ROW]:
            return reader.edges([lookup.find(reader, given, "edges")])[0]
        rows = (reader.edge_row(ident) for ident in ids_like(reader, given, "edges"))
        items = reader.edges(row for row in rows if row is not None)
        ends = inside_scopes(view, {end for item in items for end in (item.source, item.target)})
        found = [item for item in items if {item.source, item.target} <= ends]
        if len(found) == 1:
            return found[0]
        shown = given.hex() if isinstance(given, bytes) else given
        if found:
            raise InvalidInputError(f"{shown!r} is the start of several ids; give more")
        raise NotFoundError(f"no edge here has the id {shown:.64}")

    # -- identity ----------------------------------------------------------------------------------

    def proposals(
        self,
        *,
        status: Literal["pending", "accepted", "rejected", "withdrawn", "all"] = "pending",
        limit: int = 50,
        **scope: Unpack[ScopeIds],
    ) -> ProposalPage:
        """Return pairs of names that may be the same, the surest first, with the evidence.

        Raises:
            InvalidInputError: no such status, or the limit is wrong.
            RejectedError: the scope is outside the bounds of this memory.
        """
        check_integer(limit, "limit", 1, PAGE_MAX)
        with self.scopes.viewing(self.scopes.groups(scope), ended=True) as view:
            wanted: Any = None if status == "all" else status
            found = lookup.proposals(view.reader, wanted, view.moment)
            kept = pairs_inside(view, [(one.left, one.right) for one in found])
            mine = [one for one, keep in zip(found, kept, strict=True) if keep]
            mine.sort(key=lambda one: (-one.score, one.edge))
            return ProposalPage(
                proposals=tuple(merge_proposal(view.reader, one) for one in mine[:limit]),
                left=len(mine[limit:]),
            )

    def decide_merge(
        self, id: bytes | str, decision: Decision, **scope: Unpack[ScopeIds]
    ) -> MergeProposal:
        """Accept or reject a merge proposal, or undo an accepted one; `id` is its edge.

        Raises:
            InvalidInputError: no such decision.
            NotFoundError: there is no such proposal here.
            ConflictError: it was decided otherwise before; or the store is busy.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError: the store cannot be written.
        """
        check_choice(decision, "decision", STATUS_AFTER)
        with self.scopes.viewing(self.scopes.reach(scope), ended=True) as view:
            edge = self._edge(view, id).edge.id
        engine = self.db.engine
        tx = self.db.transaction(self.actor, origin=self.origin)
        done = decide_merges(engine.store, engine.clock, tx, [edge], STATUS_AFTER[decision])[0]
        with self.db.engine.store.read() as reader:
            return merge_proposal(reader, done)

    def accept_merge(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> MergeProposal:
        """Accept a merge proposal. Raises: as `decide_merge`."""
        return self.decide_merge(id, "accept", **scope)

    def reject_merge(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> MergeProposal:
        """Reject a merge proposal. Raises: as `decide_merge`."""
        return self.decide_merge(id, "reject", **scope)

    def undo_merge(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> MergeProposal:
        """Undo an accepted merge. Raises: as `decide_merge`."""
        return self.decide_merge(id, "undo", **scope)

    def split(
        self, id: bytes | str, memories: Sequence[bytes | str], **scope: Unpack[ScopeIds]
    ) -> Split:
        """Give the second person with a name (or its id) a node, with memories of their own.

        Raises:
            InvalidInputError: several bear it; none of the memories speaks of it, or all do.
            NotFoundError: there is no such name or memory here.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        given = [memories] if isinstance(memories, bytes | str) else memories
        with self.scopes.viewing(self.scopes.reach(scope), ended=True) as view:
            meant = self._view(view.reader, self.scopes.groups(scope))
            [entity] = view.reader.bodies([find_named(view, meant, id)])
            mine = [find_memory(view, one)[1].id for one in given]
        engine, tx = self.db.engine, self.db.transaction(self.actor, origin=self.origin)
        return self._own(split(engine.store, engine.clock, tx, Id(entity.id), mine))

    def identity(self, id: bytes | str, **scope: Unpack[ScopeIds]) -> Identity:
        """Return all nodes that were accepted as the same as one, given by name or id.

        Raises:
            InvalidInputError, NotFoundError: there is no such name here, or several bear it.
            RejectedError: the scope is outside the bounds of this memory.
        """
        with self.scopes.viewing(self.scopes.reach(scope), ended=True) as view:
            row = find_named(view, self._view(view.reader, self.scopes.groups(scope)), id)
            # Nodes outside the bounds neither count nor lead to others.
            keep = partial(inside_scopes, view) if view.worlds != [ROOT_ROW] else None
            found = lookup.export_identity(view.reader, row, view.moment, keep)
        nodes, ids = found.nodes, {node.id for node in found.nodes}
        nodes = tuple(_without_strangers(self.scopes, nodes))
        names = [name for node in nodes for name in (node.name, *node.aliases) if name]
        sources = [source for node in nodes for source in node.provenance]
        return Identity(
            ids=tuple(node.id for node in nodes),
            nodes=nodes,
            names=tuple(dict.fromkeys(names)),
            provenance=tuple(dict.fromkeys(sources)),
            merges=tuple(one for one in found.merges if {one.left, one.right} <= ids),
        )

    def conflicts(
        self, *, include_settled: bool = False, limit: int = 50, **scope: Unpack[ScopeIds]
    ) -> ConflictPage:
        """Return pairs of memories that cannot both be right, the latest first, with their texts.

        Raises:
            InvalidInputError: the limit is wrong.
            RejectedError: the scope is outside the bounds of this memory.
        """
        check_integer(limit, "limit", 1, PAGE_MAX)
        with self.scopes.viewing(self.scopes.groups(scope)) as view:
            found = lookup.conflicts(view.reader, view.moment, include_settled)[::-1]
            kept = pairs_inside(view, [(one.left, one.right) for one in found])
            mine = [one for one, keep in zip(found, kept, strict=True) if keep]
            return ConflictPage(
                conflicts=tuple(told_conflict(view.reader, one) for one in mine[:limit]),
                left=len(mine[limit:]),
            )

    # -- history -----------------------------------------------------------------------------------

    def undo(
        self, commit: CommitNumbers, *, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> Undone:
        """Undo one or several commits: a write, an amendment, a retirement, an import.

        Memories that the commit ended are restored by new memories with the same text and time;
        those that it wrote are retired from their beginning. An undo can be undone. With a scope,
        or inside bounds, every change of the commit must be in that scope.

        Raises:
            InvalidInputError, NotFoundError: no such commit.
            RejectedError: the commit changed something outside the scope or the bounds, or the
                caller is not trusted in full.
            ConflictError: it was undone already, or it erased texts; or the store is busy.
            StorageError: the store cannot be written.
        """
        reach = self.scopes.reach(scope)
        self._refuse_untrusted(reach, "undo; retire what you wrote instead")

        def check(reader: Reader, effects: CommitEffects) -> Callable[[set[int]], set[int]]:
            view = self._view(reader, reach)
            if reach and not owns(view, effects):
                raise not_yours()
            return partial(inside_scopes, view) if self.scopes.bounds else set

        engine = self.db.engine
        transaction = self.db.transaction(self.actor, origin=self.origin)
        if not self.scopes.bounds:
            return undo_commits(
                engine.store, engine.clock, transaction, commit, dry_run=dry_run, check=check
            )
        given = [commit] if isinstance(commit, int | Commit) else commit
        if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
            raise InvalidInputError(f"undo: give a commit number or several, not {given!r:.80}")
        own = list(given)
        with engine.store.read() as reader:
            undone = set(undone_by(reader, range(1, reader.head().seq + 1)))
            history = OwnHistory(self.scopes, reader, self._view(reader, reach))
            seqs = history.numbers(own, undone)
            if any(seq in undone for seq in seqs):
                raise ConflictError("this commit was undone already; undo the undo")
        done = undo_commits(
            engine.store, engine.clock, transaction, seqs, dry_run=dry_run, check=check
        )
        numbers = tuple(sorted(one.seq if isinstance(one, Commit) else one for one in own))
        return replace(self._own(done), commits=numbers)

    def _own(self, done: T) -> T:
        """Return a result with the commit number and the state of the caller's own scope."""
        if not self.scopes.bounds:
            return done
        commit, root = self.scopes.own_commit(done.commit)
        return replace(done, commit=commit, root_state=root)

    def log(
        self, *, limit: int = 50, cursor: str | None = None, **scope: Unpack[ScopeIds]
    ) -> CommitPage:
        """Return the commits, the latest first, a page at a time.

        With a scope, or inside bounds: only commits and changes there.

        Raises:
            InvalidInputError: the limit is wrong, or no page begins at that cursor.
            RejectedError: the scope is outside the bounds of this memory.
        """
        check_integer(limit, "limit", 1, PAGE_MAX)
        reach = self.scopes.reach(scope)
        with self.db.engine.store.read() as reader:
            head = reader.head().seq
            last = head if cursor is None else _before(reader, cursor)
            if self.scopes.bounds:
                walk = OwnHistory(self.scopes, reader, self._view(reader, reach)).walk(last)
            else:
                walk = self._walk(reader, reach, last)
            found = [commit for _, commit in islice(walk, limit)]
            more = next(walk, None) if len(found) == limit else None
        # The cursor is the time of a commit, which tells nothing of other callers.
        cursor = str(to_micros(found[-1].time, "time")) if more is not None else None
        return CommitPage(commits=tuple(found), next_cursor=cursor)

    def _walk(self, reader: Reader, reach: Groups, last: int) -> Iterator[tuple[int, Commit]]:
        view = self._view(reader, reach)
        for seq in range(last, -1, -1):
            commit = visible_commit(view, seq) if reach else whole_commit(reader, seq)
            if commit is not None:
                yield seq, commit

    def diff(
        self, first: int, last: int, *, limit: int | None = None, **scope: Unpack[ScopeIds]
    ) -> Diff:
        """Return the changes of the commits after `first` up to `last`, inside scope and bounds.

        `limit` is the maximum of nodes, of edges and of changes; `cut` says if there are more.

        Raises:
            InvalidInputError: the later one was given first.
            NotFoundError: there is no such commit.
            RejectedError: the scope is outside the bounds of this memory.
        """
        reach = self.scopes.reach(scope)
        if limit is not None:
            check_integer(limit, "limit", 1)
        with self.db.engine.store.read() as reader:
            if not reach:
                return diff(reader, first, last, limit)
            view = self._view(reader, reach)
            if self.scopes.bounds:
                for number in (first, last):
                    check_integer(number, "diff", 0)
                history = OwnHistory(self.scopes, reader, view)
                first, last = history.upper(first), history.upper(last)
            sight = Sight(partial(sees, view), partial(sees_change, view))
            found = diff(reader, first, last, limit, sight)
            return replace(found, nodes=tuple(_without_strangers(self.scopes, found.nodes)))

    def prove(self, id: bytes | str) -> Proven:
        """Return a proof that a node is in the store; `worlddb.verify_proof` checks it.

        Raises:
            InvalidInputError, NotFoundError: no such node.
            RejectedError: this memory is bound; a proof names nodes of others.
        """
        self.scopes.refuse_bound("a proof")
        with self.db.engine.store.read() as reader:
            proof = self.db.prove(id)
            root = Id(reader.head().root_state)
        return Proven(id=Id(proof.id), root_state=root, proof=proof.to_dict())

    def check(self) -> Soundness:
        """Hash everything and compare it with every index.

        Raises:
            RejectedError: this memory is bound; a check is about the whole store.
        """
        self.scopes.refuse_bound("a check")
        problems = tuple(self.db.check())
        last = None if problems else self.db.log(limit=1, newest_first=True)[0]
        return Soundness(
            sound=not problems,
            problems=problems,
            commit=None if last is None else last.seq,
            root_state=None if last is None else last.root_state,
        )

    def consolidate(
        self, *, min_age: float = 0, dry_run: bool = False, **scope: Unpack[ScopeIds]
    ) -> ConsolidationReport:
        """Summarise, infer and flag contradictions: in one scope, or in the whole store.

        `min_age` is the minimum age of worlds in seconds. The next run continues an interrupted
        one. See `WorldDB.consolidate`.

        Raises:
            InvalidInputError: an option is wrong, or several scopes are named.
            NotFoundError: there is no such scope yet.
            RejectedError: the scope is outside the bounds of this memory.
            StorageError, ConflictError: the store cannot be written.
        """
        world = self._one_world(scope, "consolidate")
        chosen = None if world == self.db.root_id else world
        report = self.db.consolidate(chosen, min_age=min_age, dry_run=dry_run)
        return replace(report, commits=()) if self.scopes.bounds else report

    # -- ontology ----------------------------------------------------------------------------------

    def edge_types(self, **scope: Unpack[ScopeIds]) -> EdgeTypes:
        """Return the built-in edge types, and those declared for the scope or the whole store.

        Raises:
            InvalidInputError, NotFoundError: several scopes are named, or there is none.
            RejectedError: the scope is outside the bounds of this memory.
        """
        worlds = dict.fromkeys([self._one_world(scope, "edge_types"), self.db.root_id])
        found = {
            one.type: EdgeTypeEntry(
                type=one.type,
                ships=False,
                world=world,
                functional=one.functional,
                declaration=one.declaration,
            )
            for world in reversed(worlds)  # The inner world overrides the outer one.
            for one in self.db.ontology(world).types()
        }
        shipped = {
            one.type: EdgeTypeEntry(
                type=one.type, ships=True, world=None, functional=False, declaration=None
            )
            for one in default_handlers()
        }
        return EdgeTypes(types=tuple(one for _, one in sorted((shipped | found).items())))

    def declare(
        self,
        type: str,
        *,
        functional: bool = False,
        newer_ends_older: bool = False,
        symmetric: bool = False,
        transitive: bool = False,
        acyclic: bool = False,
        pierces: bool = False,
        inverse: str | None = None,
        **scope: Unpack[ScopeIds],
    ) -> EdgeDeclaration:
        """Declare an edge type for the scope, or for the whole store; see `EdgeDeclaration`.

        Raises:
            InvalidInputError: a trait is wrong, the type ships, or several scopes are named.
            NotFoundError: there is no such scope yet.
            RejectedError: the scope is outside the bounds, or the caller is not trusted in full.
            StorageError, ConflictError: the store cannot be written.
        """
        self._refuse_untrusted(self.scopes.reach(scope), "declare an edge type")
        return self.db.ontology(self._one_world(scope, "declare")).declare(
            type,
            actor=self.actor,
            functional=functional,
            newer_ends_older=newer_ends_older,
            symmetric=symmetric,
            transitive=transitive,
            acyclic=acyclic,
            pierces=pierces,
            inverse=inverse,
        )

    def _one_world(self, scope: Mapping[str, Any], what: str) -> Id:
        """Return the world of the one scope of a call; without a scope, the root world."""
        reach = self.scopes.reach(scope)
        if not reach:
            return self.db.root_id
        if len(reach) > 1 or len(reach[0]) > 1:
            raise InvalidInputError(f"{what}: name one scope, or none for the whole store")
        with self.scopes.viewing(reach) as view:
            if view.worlds == [lookup.NOWHERE]:
                raise NotFoundError(f"there is no scope {reach[0][0]}; write to it first")
            return Id(view.reader.world(view.worlds[0]).id)

    def _refuse_untrusted(self, reach: Groups, what: str) -> None:
        """Refuse a caller whose origin the first scope of a call does not trust in full."""
        if self.origin is not None:
            with self.db.engine.store.read() as reader:
                refuse_untrusted(reader, self.origin, reach[0][0] if reach else None, what)

    def _view(self, reader: Reader, groups: Groups) -> View:
        moment = moment_of(reader, NOW, self.scopes.clock())
        return self.scopes.view(reader, groups, moment, ended=True)


def _without_strangers(scopes: CallerScopes, nodes: Iterable[Node]) -> Iterator[Node]:
    """Yield nodes without the ids of parent worlds outside the bounds."""
    with scopes.viewing(scopes.bounds, ended=True) as view:
        for node in nodes:
            row = None if node.parent is None else view.reader.node_row(node.parent)
            seen = not scopes.bounds or row is None or inside_scopes(view, {row})
            yield node if seen else replace(node, parent=None)


def _before(reader: Reader, cursor: str) -> int:
    """Return the number of the commit before the cursor's one."""
    if not isinstance(cursor, str) or not cursor.isdecimal() or len(cursor) > SEQ_DIGITS_MAX:
        raise InvalidInputError(f"cursor {cursor!r:.80}: give the next_cursor of the page before")
    found = reader.commit_at(int(cursor) - 1)
    return -1 if found is None else found
