"""WorldDB: the public calls on an open store. Each delegates to the room that implements it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from worlddb.audit import history
from worlddb.audit.erasure_receipt import Receipt, erase_beside, erase_texts, replay_and_clean
from worlddb.audit.journal_export import export_lines
from worlddb.audit.store_check import check
from worlddb.audit.undo import CommitNumbers, Undone, undo_commits
from worlddb.engine import OpenStore
from worlddb.ingest.extraction_queue import queue_entries
from worlddb.ingest.extractors import Input, messages_of
from worlddb.ingest.identity_change import Split, decide_merges, split
from worlddb.ingest.ingestion import EXTRACT_ACTOR, Ingested
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.inputs import Instant
from worlddb.model.proof import Proof
from worlddb.model.records import (
    NOW,
    AsOf,
    Commit,
    Conflict,
    Diff,
    Direction,
    Edge,
    Extracted,
    Extractor,
    Identity,
    Node,
    Pending,
    Problem,
    Proposal,
    ProposalStatus,
    Summarizer,
)
from worlddb.model.retention_curve import RetentionSettings
from worlddb.model.text_safety import Origin
from worlddb.query.pipeline import Subgraph
from worlddb.query.query_builder import QueryBuilder
from worlddb.query.query_spec import QuerySpec
from worlddb.store.interface import Reader
from worlddb.view import visibility as lookup
from worlddb.write.transaction import DEFAULT_ACTOR, Ontology, Transaction, transact

if TYPE_CHECKING:
    from worlddb.consolidate.consolidation_run import ConsolidationReport
    from worlddb.consolidate.fading_report import Fading
    from worlddb.identity.match_values import ResolverSettings, Tiebreaker
    from worlddb.recall.hits import Recall
    from worlddb.recall.question import RecallSettings
    from worlddb.view.visibility import Moment, Worlds


class WorldDB(OpenStore):
    """An open store; `worlddb.open(path)` makes one. Share it between threads, not processes.

    `path` is a file, created if missing, or ":memory:" for a store that is gone when closed. With
    `durability="full"` an acknowledged commit survives a power cut; `"normal"` writes faster, and a
    power cut (not a crash of the process) may lose the last commits. `embedder` is a name (`worlddb
    models list`) or an object; by default the embedder of the store's vectors, for a new store the
    one that needs no download; `"none"` disables vectors. `pooling` is how the vectors of worlds
    are composed, `models_dir` the folder of models. `verify_reads` compares each node read with its
    id; `audit_reads` records every recall. A store of an older format is migrated, and a copy is
    kept; with `migrate=False` or `read_only` a temporary copy is migrated instead. With a `key` (a
    passphrase, 64 hexadecimal digits, 32 bytes, or a Path) the file is encrypted.

    Raises:
        FormatError: the file is not a WorldDB store, or of a newer format.
        StorageError: it cannot be opened or created; StoreKeyError: its key is missing or wrong.
        InvalidInputError: an option is wrong.
        ConflictError: the store's vectors are of another embedder.
    """

    def transaction(
        self, actor: str = DEFAULT_ACTOR, *, bulk: bool = False, origin: Origin | None = None
    ) -> AbstractContextManager[Transaction]:
        """Open a transaction: `with db.transaction(actor="me") as tx:` is one commit.

        It is committed when the block ends, and rolled back if the block raises. `bulk` builds
        indexes once, at the end: for loads that are large compared with the store. With an `origin`
        such as "web" the transaction may neither end nor change more trusted nodes.

        Raises:
            StorageError: the store is read-only, or the disk refused.
            ConflictError: another writer kept the lock longer than `busy_timeout_s`.
            InvalidInputError: this thread already has a transaction open.
        """
        options: Any = {"actor": actor, "bulk": bulk, "origin": origin, "beside": erase_beside}
        engine = self.engine
        return transact(engine.store, engine.registry, limits=engine.limits, **options)

    def ontology(self, world_id: bytes | str | None = None) -> Ontology:
        """Return the edge types of a world (default: the root world), to register more.

        Raises:
            NotFoundError, InvalidInputError: no such world.
        """
        world = ROOT_ID if world_id is None else self._id(world_id)
        return Ontology(self.engine.store, self.engine.registry, world, self.engine.limits)

    def accept_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Accept a merge proposal: the ends of a `same_as` edge become one identity.

        Both nodes keep their rows. The claims of both sides become one time line: a later claim
        replaces an earlier one; without an order, claims that exclude each other are a conflict.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was rejected or withdrawn.
        """
        return self.decide_merges([edge_id], "accepted", actor=actor)[0]

    def reject_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Decide that the two ends of a `same_as` edge are different.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was accepted or withdrawn.
        """
        return self.decide_merges([edge_id], "rejected", actor=actor)[0]

    def undo_merge(self, edge_id: bytes | str, *, actor: str = DEFAULT_ACTOR) -> Proposal:
        """Reverse an accepted merge and everything that ended by it; the proposal is pending again.

        Raises:
            NotFoundError: no such proposal.
            ConflictError: it was not accepted.
        """
        return self.decide_merges([edge_id], "pending", actor=actor)[0]

    def decide_merges(
        self,
        edge_ids: Sequence[bytes | str],
        status: ProposalStatus,
        *,
        actor: str = DEFAULT_ACTOR,
    ) -> list[Proposal]:
        """Accept, reject or undo ("pending") several merges as one commit, or none of them.

        Raises:
            NotFoundError, ConflictError: as `accept_merge`, `reject_merge` and `undo_merge`.
        """
        engine, transaction = self.engine, self.transaction(actor)
        return decide_merges(engine.store, engine.clock, transaction, edge_ids, status)

    def split(
        self,
        entity_id: bytes | str,
        memory_ids: bytes | str | Sequence[bytes | str],
        *,
        actor: str = DEFAULT_ACTOR,
    ) -> Split:
        """Split a name that two people share: give the second one a node with the given memories.

        Memories that had ended because the two were taken for one are restored. `undo` reverses it.

        Raises:
            InvalidInputError: none of the memories mentions the entity, or all that do were given.
            NotFoundError: there is no such node.
        """
        engine, transaction = self.engine, self.transaction(actor)
        return split(engine.store, engine.clock, transaction, entity_id, memory_ids)

    def ingest(
        self,
        text_or_messages: Input,
        *,
        world: bytes | str | None = None,
        extractor: Extractor | str | None = None,
        at: Instant | None = None,
        source: str | Sequence[str] | None = None,
        actor: str = DEFAULT_ACTOR,
        tiebreaker: Tiebreaker | None = None,
        resolver: ResolverSettings | None = None,
        recluster: Literal["later", "now", "off"] = "later",
        supersede: bool = True,
    ) -> Ingested:
        """Store a text or messages inside `world`, as one commit, and return what was written.

        `extractor` is "rules" (the default), "verbatim", or your own. A name that matches exactly
        is reused; a likely match is proposed with its evidence and never merged. The same text
        again in the same world is the same memory with another source. Claims that the text
        replaces are superseded, unless `supersede=False`. If the extractor's model fails, the text
        is stored and waits for `extract_pending`. Afterwards the names near the new nodes are
        compared again, by default in the background (`db.wait()`, `db.reclustered`).

        Raises:
            InvalidInputError: there is no text, or an argument is wrong.
            NotFoundError: no such world.
            RejectedError: an edge handler refused.
            StorageError, ConflictError: the store cannot be written.
        """
        return self.engine.ingestion.ingest(
            messages_of(text_or_messages),
            world=world,
            extractor=extractor,
            at=at,
            source=source,
            actor=actor,
            tiebreaker=tiebreaker,
            resolver=resolver,
            recluster=recluster,
            supersede=supersede,
        )

    def recluster(
        self,
        ids: Sequence[bytes | str],
        *,
        world: bytes | str | None = None,
        resolver: ResolverSettings | None = None,
    ) -> list[Proposal]:
        """Compare the named nodes within two hops of `ids` again, and propose merges.

        At most 200 nodes are compared. A pair that was proposed before is not proposed again.
        Names are compared by their vectors, too, if the store has any.

        Raises:
            InvalidInputError, NotFoundError: no such node or world.
            StorageError, ConflictError: the store cannot be written.
        """
        return self.engine.ingestion.reclusterer.run([ids], world, resolver)

    def pending(self) -> list[Pending]:
        """Return the memories that wait for extraction: the least failed first, then the oldest."""
        with self.engine.store.read() as reader:
            return [entry.pending for entry in queue_entries(reader)]

    def extract_pending(
        self,
        extractor: Extractor | str,
        *,
        limit: int | None = None,
        actor: str = EXTRACT_ACTOR,
        recluster: Literal["later", "now", "off"] = "later",
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Extracted:
        """Extract waiting memories, at most `limit`, each as one commit, and return the results.

        An extractor object reads all of them, and texts of any length; a name ("rules") only those
        that wait for that extractor. Three failures in a row end the run, because the model is
        down. Nothing is lost by that or by an interrupt; call it again.

        Raises:
            InvalidInputError: the limit is not a positive number.
            StorageError, ConflictError: the store cannot be written.
        """
        return self.engine.ingestion.extract_pending(
            extractor, limit=limit, actor=actor, recluster=recluster, on_progress=on_progress
        )

    def get(self, id_or_prefix: bytes | str, *, as_of: AsOf = NOW) -> Node:
        """Return a node by its id or a unique prefix of at least 4 hex digits.

        Raises:
            InvalidInputError: not an id, or an ambiguous prefix.
            NotFoundError: no such node at that time.
        """
        with self._at(as_of) as (reader, moment):
            return lookup.find_node(reader, id_or_prefix, moment)[1]

    def get_edge(self, id_or_prefix: bytes | str) -> Edge:
        """Return an edge by its id or a unique prefix, deleted or not.

        Raises:
            InvalidInputError: not an id, or an ambiguous prefix.
            NotFoundError: no such edge.
        """
        with self.engine.store.read() as reader:
            return reader.edges([lookup.find(reader, id_or_prefix, "edges")])[0].edge

    def children(
        self,
        id_or_prefix: bytes | str | None = None,
        *,
        as_of: AsOf = NOW,
        include_superseded: bool = False,
    ) -> list[Node]:
        """Return the nodes that live in a world (default: the root), in the order of writing.

        Raises:
            InvalidInputError, NotFoundError: no such world at that time.
        """
        with self._at(as_of) as (reader, moment):
            given = ROOT_ID if id_or_prefix is None else id_or_prefix
            return list(lookup.children(reader, given, moment, include_superseded))

    def edges(
        self,
        id_or_prefix: bytes | str,
        direction: Direction = "out",
        types: Iterable[str] | None = None,
        *,
        as_of: AsOf = NOW,
        include_superseded: bool = False,
    ) -> list[Edge]:
        """Return the edges at a node that are not deleted, in the order of writing.

        Raises:
            InvalidInputError, NotFoundError: no such node at that time.
        """
        with self._at(as_of) as (reader, moment):
            return lookup.edges(
                reader,
                id_or_prefix,
                moment,
                direction=direction,
                types=types,
                include_ended=include_superseded,
            )

    def query(self) -> QueryBuilder:
        """Start a query: `db.query().seeds([id]).traverse("refers_to").execute()`."""
        return QueryBuilder(
            self.engine.store, self.engine.registry, self.engine.search, self.engine.clock
        )

    def run(self, spec: QuerySpec | Mapping[str, Any] | str) -> Subgraph:
        """Run a query given as a `QuerySpec`, as a JSON object, or as one line of text.

        Raises:
            InvalidInputError, NotFoundError: the query is wrong, or an id in it does not exist.
        """
        return QuerySpec.of(spec).apply(self.query()).execute()

    def recall(
        self,
        question: str = "",
        *,
        names: str | Sequence[str] | None = None,
        scope: Worlds | None = None,
        within: Sequence[Worlds] = (),
        k: int = 10,
        max_tokens: int | None = None,
        min_confidence: float | None = None,
        as_of: AsOf = NOW,
        types: Sequence[str] | None = None,
        where: Mapping[str, Any] | None = None,
        include_superseded: bool = False,
        explain: bool = True,
        at: Instant | None = None,
        settings: RecallSettings | None = None,
    ) -> Recall:
        """Return the memories that answer a question, best first, with reasons.

        Searches inside `scope` (default: the store) and one world of each item of `within`. Returns
        at most `k` hits and `max_tokens` tokens, none below `min_confidence`. `names` are added to
        the question, or replace it. `types` also finds nodes with only a name; `where` filters;
        `at` is the time of the question.

        Raises:
            InvalidInputError, NotFoundError, ProviderError: the options, the scope or the embedder.
        """
        from worlddb.recall.recaller import recall

        found = recall(
            self.engine.registry,
            self.engine.search,
            self.engine.clock(),
            question,
            names=names,
            scope=scope,
            within=within,
            k=k,
            max_tokens=max_tokens,
            min_confidence=min_confidence,
            as_of=as_of,
            types=types,
            where=where,
            include_ended=include_superseded,
            explain=explain,
            at=at,
            settings=settings,
        )
        self.engine.recalls.note([hit.node.id for hit in found.hits])
        return found

    def conflicts(self, *, as_of: AsOf = NOW, include_settled: bool = False) -> list[Conflict]:
        """Return the contradictions; with `include_settled`, also settled ones.

        Raises:
            InvalidInputError: a time without a zone.
        """
        with self._at(as_of) as (reader, moment):
            return lookup.conflicts(reader, moment, include_settled)

    def proposals(
        self, status: ProposalStatus | None = "pending", *, as_of: AsOf = NOW
    ) -> list[Proposal]:
        """Return merge proposals with a status; `status=None` for all of them.

        Raises:
            InvalidInputError: no such status, or a time without a zone.
        """
        with self._at(as_of) as (reader, moment):
            return lookup.proposals(reader, status, moment)

    def equivalence_class(self, id_or_prefix: bytes | str, *, as_of: AsOf = NOW) -> set[Id]:
        """Return the ids of all nodes accepted as the same, including this one.

        Raises:
            InvalidInputError, NotFoundError: no such node at that time.
        """
        with self._at(as_of) as (reader, moment):
            row, _ = lookup.find_node(reader, id_or_prefix, moment)
            rows = lookup.accepted_class(reader, {row}, moment)
            return {node.id for node in reader.nodes(rows, moment.known).values()}

    def export_identity(self, id_or_prefix: bytes | str, *, as_of: AsOf = NOW) -> Identity:
        """Return the names, sources and merges of everything accepted as the same as a node.

        Raises:
            InvalidInputError, NotFoundError: no such node at that time.
        """
        with self._at(as_of) as (reader, moment):
            row, _ = lookup.find_node(reader, id_or_prefix, moment)
            return lookup.export_identity(reader, row, moment)

    @property
    def root_id(self) -> Id:
        """The id of the root world; the same in every store."""
        return ROOT_ID

    @property
    def root_state(self) -> Id:
        """The state of the root world, and so of the whole store, after the last commit."""
        with self.engine.store.read() as reader:
            return Id(reader.head().root_state)

    def prove(self, id_or_prefix: bytes | str) -> Proof:
        """Return a proof that a node is in the store; verify it with `worlddb.verify_proof`.

        Raises:
            InvalidInputError, NotFoundError: no such node.
        """
        with self.engine.store.read() as reader:
            return history.prove(reader, lookup.find(reader, id_or_prefix, "nodes"))

    def log(
        self, *, after: int = -1, limit: int | None = None, newest_first: bool = False
    ) -> list[Commit]:
        """Return the journal, oldest commit first.

        Raises:
            InvalidInputError: `after` or `limit` is not a whole number.
        """
        with self.engine.store.read() as reader:
            return history.log(reader, after, limit, newest_first)

    def diff(self, seq_a: int | str, seq_b: int | None = None) -> Diff:
        """Return what the commits after `seq_a` up to `seq_b`, or those of a named branch, wrote.

        Raises:
            InvalidInputError: the later commit was given first.
            NotFoundError: there is no such commit or branch.
        """
        if isinstance(seq_a, str) and seq_b is None:
            return self.branch_diff(seq_a)
        with self.engine.store.read() as reader:
            return history.diff(reader, seq_a, seq_b)

    def undo(
        self, commit: CommitNumbers, *, dry_run: bool = False, actor: str = DEFAULT_ACTOR
    ) -> Undone:
        """Undo one or several commits by a compensating commit, and return what it did.

        Nodes that the commit ended are restored by successors with the same text and time; nodes
        that it wrote are retired from their beginning. Nodes that later memories use stay (`kept`).
        Undoing an undo brings the commit back. `dry_run` plans and writes nothing.

        Raises:
            InvalidInputError, NotFoundError: no such commit.
            ConflictError: it was undone already, or it erased texts.
            StorageError, RejectedError: the store cannot be written, or a handler refused.
        """
        engine, transaction = self.engine, self.transaction(actor)
        return undo_commits(engine.store, engine.clock, transaction, commit, dry_run=dry_run)

    def check(self) -> list[Problem]:
        """Hash everything and compare it with every index; an intact store gives an empty list."""
        return check(self.engine.store, self.engine.ingestion.names)

    def export(self, *, after: int = -1) -> Iterator[str]:
        """Yield the whole journal as JSON Lines, on one snapshot; `replay` reads it."""
        return export_lines(self.engine.store, after)

    def replay(
        self, lines: Iterable[str], *, on_commit: Callable[[int], None] = lambda seq: None
    ) -> int:
        """Replay an export into this store; return how many commits were added.

        Ids, both clocks and the root state must come out as they were, or the commit is refused. If
        the export erases anything, the file is cleaned.

        Raises:
            FormatError: not an export, or one of a newer version.
            CorruptionError: a commit was changed.
            ConflictError: this store has another history.
        """
        return replay_and_clean(self.engine.store, self.engine.search, lines, on_commit)

    def erase(
        self, id: bytes | str | Sequence[bytes | str], *, actor: str = DEFAULT_ACTOR
    ) -> Receipt:
        """Remove the texts of a node for good, and of everything inside it or derived from it.

        Name, content, creation time, aliases, sources, metadata, words, keys and vectors are
        removed, and the texts of its edges, proposals and conflicts. Id, type and validity stay, so
        the tree still verifies. Erase earlier backups (except sealed ones) and exports yourself.

        Raises:
            InvalidInputError, NotFoundError: not an id, ambiguous, or the root; no such node.
            RejectedError: some of it is in a scope under legal hold.
            StorageError, ConflictError: the store cannot be written.
        """
        return erase_texts(self.engine.store, self.engine.search, self.transaction(actor), id)

    def consolidate(
        self,
        world: bytes | str | None = None,
        *,
        summarizer: Summarizer | None = None,
        min_age: timedelta | float = 0,
        worlds_max: int = 1_000,
        edges_max: int = 1_000,
        dry_run: bool = False,
        actor: str = "consolidator",
        only: str | Iterable[str] = ("summaries", "closure", "conflicts"),
    ) -> ConsolidationReport:
        """Write summaries, infer edges and flag contradictions; return a report.

        Every world with two details or more (inside `world`, or in the whole store, except the
        root) gets a `Summary`, derived from each of them; details younger than `min_age` (a
        timedelta or seconds) wait. `causes`, `implies`, `subtype_of` and types declared transitive
        are closed: each inferred edge names its premises. Sources with more than one target under a
        functional edge type are flagged. `only` chooses some of these parts. No source is deleted
        or closed. A run is bounded (`worlds_max`, `edges_max`) and can be stopped at any time; a
        second run finds nothing to do. `dry_run` reports the decisions and writes nothing. If the
        summarizer fails, the report has the error, and the other parts continue.

        Raises:
            InvalidInputError: an option is wrong.
            NotFoundError: no such world.
            StorageError, ConflictError: the store cannot be written.
        """
        from worlddb.consolidate.consolidation_run import ConsolidationOptions
        from worlddb.consolidate.consolidator import consolidate

        options = ConsolidationOptions(
            world=None if world is None else self._id(world),
            summarizer=summarizer,
            min_age=min_age,
            worlds_max=worlds_max,
            edges_max=edges_max,
            dry_run=dry_run,
            actor=actor,
            only=only,
        )
        engine = self.engine
        return consolidate(engine.store, engine.registry, engine.clock, engine.limits, options)

    def fading(
        self,
        limit: int = 20,
        *,
        world: bytes | str | None = None,
        below: float = 0.25,
        settings: RetentionSettings | None = None,
    ) -> list[Fading]:
        """Return the memories (inside `world`, or anywhere) with the lowest retention first.

        Retention falls from 1 towards 0 with the time since a memory was made or last recalled;
        each recall and each link lengthens its half-life. The report itself retires nothing.

        Raises:
            InvalidInputError, NotFoundError: an option is wrong, or there is no such world.
        """
        from worlddb.consolidate.fading_report import fading_in

        self.engine.recalls.flush()
        with self._at(NOW) as (reader, moment):
            return fading_in(reader, moment, world, limit, below, settings)

    @contextmanager
    def _at(self, as_of: AsOf) -> Iterator[tuple[Reader, Moment]]:
        """Yield a snapshot, and the moment of a question at `as_of`."""
        with self.engine.store.read() as reader:
            yield reader, lookup.moment_of(reader, as_of, self.engine.clock())

    def _id(self, given: bytes | str) -> Id:
        with self.engine.store.read() as reader:
            return Id(reader.world(lookup.find(reader, given, "nodes")).id)


open = WorldDB  # `worlddb.open(path)`: opening a store creates the object.
