"""Ingestion: the path of a write that starts from text.

    messages ──extract──▶ draft ──prepare──▶ plan ──apply──▶ commit ──▶ recluster

Extraction and tie-breaking, which may ask a person or a model, end before the transaction begins.
`Memory.write`, `Memory.amend`, `db.ingest` and the extraction queue all use this path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from worlddb.errors import InvalidInputError, ProviderError, RejectedError
from worlddb.identity.match_values import ResolverSettings, Tiebreaker
from worlddb.identity.store_resolver import alike, name_index, resolver_in
from worlddb.index.name_index import NameIndex
from worlddb.index.search import Search
from worlddb.ingest.background_queue import BackgroundQueue, Reclusterer
from worlddb.ingest.draft_parts import Origins, origins_of
from worlddb.ingest.extraction_queue import (
    MEMORY,
    QueueEntry,
    TakenError,
    Waiting,
    failure,
    put_into_queue,
    queue_entries,
    remove_from_queue,
    waiting_text,
)
from worlddb.ingest.extractors import dated, spellings
from worlddb.ingest.plan import Outcome, RefusedRelationError, Relation, WritePlan, apply, prepare
from worlddb.ingest.write_request import NOTHING, Target, WorldDestination, WriteRequest
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.inputs import (
    Instant,
    Limits,
    Plain,
    check_choice,
    check_integer,
    from_micros,
    to_micros,
)
from worlddb.model.records import (
    NOW,
    Commit,
    Draft,
    Extracted,
    Extractor,
    Message,
    Pending,
    Proposal,
)
from worlddb.model.text_safety import Origin
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import find, moment_of, proposal_value
from worlddb.write.transaction import Transaction, transact

EXTRACT_ACTOR = "extract"
FAILURES_IN_A_ROW_MAX = 3
"""Failures in a row after which the endpoint counts as down; the rest waits for another run."""
MESSAGE_CHARS = 100  # cost of a message (node, edges, claims), counted as so many characters
AT_ONCE_CHARS_MAX = 4_000
"""Characters; planned in a few milliseconds. A longer text must not make other writers wait."""
CALM_WRITES = 8
"""Writes in a row without an overtaken plan after which the crowd counts as gone."""

When: TypeAlias = Literal["later", "now", "off"]


class DatedDraft(NamedTuple):
    """A draft, its queue entry if the extraction waits, and the time of its messages."""

    draft: Draft
    waiting: Waiting | None
    at: int


class FinishedWrite(NamedTuple):
    """A finished write: its request, its outcome, its commit, and where it went."""

    request: WriteRequest
    outcome: Outcome
    commit: Commit | None
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested(Plain):
    """The result of an ingest: memories, new and reused nodes, proposals, and the commit.

    `superseded` are the facts that ended because of the text. `commit` is None if everything
    existed already. `pending` is the reason why the model's part of the extraction waits
    (`db.pending()`), or None. `left_out` lists the relations of the text that were not written,
    with reasons: of an unknown type, without evidence, or refused.
    """

    memories: tuple[Id, ...]
    created: tuple[Id, ...]
    reused: tuple[Id, ...]
    proposals: tuple[Proposal, ...]
    commit: Commit | None
    pending: str | None = None
    superseded: tuple[Id, ...] = ()
    left_out: tuple[str, ...] = ()


def ended_by(commit: Commit | None) -> tuple[Id, ...]:
    """Return the nodes that a commit ended, each once."""
    changes = commit.changes if commit is not None else ()
    return tuple(dict.fromkeys(item.id for item in changes if item.kind == "close_node"))


def check_when(recluster: str) -> None:
    """Check a `recluster` option.

    Raises:
        InvalidInputError: it is none of "later", "now" and "off".
    """
    check_choice(recluster, "recluster", ("later", "now", "off"))


def extractor_of(given: Extractor | str | None) -> Extractor:
    """Return an extractor from its name, or the given object; by default the rules."""
    if given == "llm":
        raise InvalidInputError(
            "extractor 'llm': the name does not say which model; pass LlmExtractor(Chat("
            "ChatSettings(provider='openai', base_url=…, model=…))), or LlmExtractor(function) "
            "with a function from messages to text"
        )
    if given is None or isinstance(given, str):
        from worlddb.ingest.extractors import extractor_named

        return extractor_named(given or "rules")
    return given


def is_immediate(extractor: Extractor | str | None) -> bool:
    """Return whether an extractor surely calls no model, so that a snapshot may stay open.

    Those with a name are built in: the rules and verbatim. Any other may call a model.
    """
    return extractor is None or isinstance(extractor, str)


def is_short(extractor: Extractor | str | None, messages: Sequence[Message]) -> bool:
    """Return whether messages are extracted and planned so fast that other writers may wait."""
    size = sum([len(message.text) + MESSAGE_CHARS for message in messages])
    return size <= AT_ONCE_CHARS_MAX and is_immediate(extractor)


def origins_by_key(draft: Draft, messages: Sequence[Message], whole: Origin | None) -> Origins:
    """Return the origins of a draft's nodes by key; empty if all of it is the user's."""
    if whole is None and all(message.origin is None for message in messages):
        return NOTHING
    return origins_of(draft, messages, whole)


def draft_or_wait(
    extractor: Extractor, messages: Sequence[Message], at: datetime
) -> tuple[Draft, Waiting | None]:
    """Return the draft of some messages; if the model fails, the draft of the fallback.

    The fallback is the extractor's own `fallback`, else verbatim: the text is never lost. If the
    extractor's `resting()` gives a reason, the extractor is not called. If it has a `chars_max`, a
    longer text is not extracted now. A message without a time has the time of the one before it;
    the first has `at`.
    """
    messages = dated(messages, at)
    resting: Callable[[], str | None] = getattr(extractor, "resting", lambda: None)
    reason = _too_long(extractor, messages) or resting()
    if reason is not None:
        waiting = failure(extractor, reason, attempts=0)
    else:
        try:
            return extractor.extract(messages, at).merged(), None
        except ProviderError as error:
            waiting = failure(extractor, error)
    fallback: Extractor | None = getattr(extractor, "fallback", None)
    if fallback is None or _too_long(fallback, messages):
        fallback = extractor_of("verbatim")
    return fallback.extract(messages, at).merged(), waiting


def _too_long(extractor: Extractor, messages: Sequence[Message]) -> str | None:
    """Return why a text is too long for an extractor to read at once; None if it is not."""
    most: int | None = getattr(extractor, "chars_max", None)
    size = sum(len(message.text) for message in messages)
    if most is None or size + MESSAGE_CHARS * len(messages) <= most:
        return None
    of_messages = f" in {len(messages):,} messages" if len(messages) > 1 else ""
    return (
        f"{size:,} characters{of_messages} are too many to be read while the caller waits "
        f"(the limit is {most:,}); run: worlddb extract --pending"
    )


class WriteContention:
    """Whether other writers often commit between a plan and its transaction; a hint."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = 0

    @property
    def is_contended(self) -> bool:
        """Whether another commit overtook one of the last plans."""
        return self._left > 0

    def record(self, *, overtaken: bool) -> None:
        """Count a write, and whether another commit overtook its plan."""
        self._left = CALM_WRITES if overtaken else max(0, self._left - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestion:
    """Writes texts into one open store."""

    store: Store
    registry: Registry
    search: Search
    limits: Limits
    clock: Callable[[], int]
    background: BackgroundQueue
    crowd: WriteContention = field(default_factory=WriteContention)

    @property
    def names(self) -> NameIndex:
        """The index of names, attributes and contents."""
        return name_index(self.store)

    @property
    def reclusterer(self) -> Reclusterer:
        """Compares the neighbourhoods of nodes again."""
        return Reclusterer(self.store, self.registry, self.search, self.limits, self.clock)

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        """Yield a snapshot whose name index is up to date."""
        with self.store.read() as reader:
            if self.names.is_current(reader):
                yield reader
                return
        self.names.catch_up()
        with self.store.read() as reader:
            yield reader

    def transact(
        self, actor: str, origin: Origin | None = None, *, together: bool = False
    ) -> AbstractContextManager[Transaction]:
        """Open a write transaction; for `together` see `write.transaction.transact`."""
        return transact(
            self.store,
            self.registry,
            actor=actor,
            bulk=False,
            limits=self.limits,
            together=together,
            origin=origin,
        )

    def draft(
        self,
        messages: Sequence[Message],
        at: Instant | None,
        extractor: Extractor | str | None,
        last: int = 0,
    ) -> DatedDraft:
        """Return the draft of messages that were said at `at`, or now.

        Now is always after the `last` commit; otherwise, after a clock was set back, a later
        statement would count as the older one.
        """
        when = max(self.clock(), last + 1) if at is None else to_micros(at, "at")
        return DatedDraft(
            *draft_or_wait(extractor_of(extractor), messages, from_micros(when)), when
        )

    def with_known_spelling(
        self, reader: Reader, messages: list[Message], target: Target
    ) -> tuple[list[Message], tuple[int, str] | None]:
        """Return a single text in the spelling of the live memory with the same text.

        Then everything read from it is the same again, including its spans. A chat is returned
        unchanged. The second part is the commit and the text if no memory has it.
        """
        row = target.home_row
        if len(messages) != 1 or row is None:
            return messages, None
        text = messages[0].text
        # The index ignores only white space, so every spelling is looked up.
        forms = spellings(text)
        now, head = self.clock(), reader.head()
        rows = alike(reader, [(MEMORY, "", form) for form in forms], row, max(now, head.time))
        if not rows:
            return messages, (head.seq, text)
        resolver = resolver_in(reader, row, now, within=target.within)
        there = [
            body.content
            for body in reader.bodies(sorted(resolver.said.keep(rows)))
            if (body.parent, body.type) == (row, MEMORY)
            and not forms.isdisjoint({body.content, " ".join(body.content.split())})
        ]
        if not there or text in there:
            return messages, None
        return [replace(messages[0], text=there[0])], None

    def plan(self, request: WriteRequest, reader: Reader | None = None) -> WritePlan | WriteRequest:
        """Return the plan of a write before anything is locked, on `reader` or a new snapshot.

        If many writers commit, another commit would overtake the plan. Then the request is
        returned, and planned once, inside the transaction.

        Raises:
            NotFoundError, ConflictError: the destination has ended.
        """
        if request.tiebreaker is None and self.crowd.is_contended:
            return request
        if reader is not None:
            return prepare(reader, request, self.clock())
        with self.snapshot() as reader:
            return prepare(reader, request, self.clock())

    def commit(self, work: WritePlan | WriteRequest) -> FinishedWrite:
        """Write a plan as one commit; return its outcome and where it went.

        If another writer has committed since the plan was made, it is made again inside the
        transaction, where nobody else can write. A relation of the text that a handler refuses is
        left out, so that the text itself is kept.

        Raises:
            NotFoundError, ConflictError: the destination has ended.
            RejectedError: an edge handler refused.
            StorageError: the store cannot be written.
        """
        plan = work if isinstance(work, WritePlan) else None
        request = work.asked if isinstance(work, WritePlan) else work
        if work.target.written is not None:
            return FinishedWrite(request, Outcome(), None, work.target)
        refused: dict[Relation, str] = {}
        while True:
            try:
                with self.transact(request.actor, request.caller, together=True) as tx:
                    overtaken = tx.follows != (plan or request.target).commit
                    self.crowd.record(overtaken=overtaken)
                    if plan is None or overtaken:
                        # By the transaction: earlier commits may not be visible to others yet.
                        plan = prepare(tx.reader, request, self.clock(), before=plan)
                    outcome = apply(tx, plan, self.names, refused)
            except RefusedRelationError as error:
                refused[error.relation] = error.reason  # Each attempt has one relation fewer.
                continue
            outcome.left_out.extend(request.draft.left_out)
            return FinishedWrite(request, outcome, tx.commit, plan.target)

    def write_at_once(
        self, actor: str, caller: Origin | None, ask: Callable[[Reader], WriteRequest | None]
    ) -> FinishedWrite | None:
        """Get the request, plan it and write it, all in one transaction.

        A plan on a snapshot would read the same rows by another connection, whose cached pages the
        last commit has made stale. `ask` gets the store as the transaction sees it, and returns
        None if there is nothing to write.

        Raises:
            NotFoundError, ConflictError, RejectedError, StorageError: as `commit`.
        """
        refused: dict[Relation, str] = {}
        may_lag = False
        while True:
            try:
                with self.transact(actor, caller, together=True) as tx:
                    is_behind = not may_lag and not self.names.is_current(tx.reader)
                    request = None if is_behind else ask(tx.reader)
                    if request is not None:
                        plan = prepare(tx.reader, request, self.clock())
                        outcome = apply(tx, plan, self.names, refused)
            except RefusedRelationError as error:
                refused[error.relation] = error.reason  # Each attempt has one relation fewer.
                continue
            if is_behind:
                self.names.catch_up()
                may_lag = True  # By the writes of others since.
            elif request is None:
                return None
            else:
                outcome.left_out.extend(request.draft.left_out)
                return FinishedWrite(request, outcome, tx.commit, plan.target)

    def ingest(
        self,
        messages: list[Message],
        *,
        world: bytes | str | None,
        extractor: Extractor | str | None,
        at: Instant | None,
        source: str | Sequence[str] | None,
        actor: str,
        tiebreaker: Tiebreaker | None,
        resolver: ResolverSettings | None,
        recluster: When,
        supersede: bool,
    ) -> Ingested:
        """Store messages inside a world; see `WorldDB.ingest`."""
        check_when(recluster)
        if at is not None:
            to_micros(at, "at")
        with self.snapshot() as reader:
            row = ROOT_ROW if world is None else find(reader, world, "nodes")
            home = Id(reader.world(row).id)
            head = reader.head()
            target = Target(commit=head.seq, home=home, home_row=row)
            messages, unsaid = self.with_known_spelling(reader, messages, target)
        draft, waiting, _ = self.draft(messages, at, extractor, head.time)
        request = WriteRequest(
            draft=draft,
            memory=draft.nodes[0].key if draft.nodes else "",
            destination=WorldDestination(target),
            target=target,
            actor=actor,
            source=source,
            waiting=waiting,
            supersede=supersede,
            resolver=resolver,
            tiebreaker=tiebreaker,
            origins=origins_by_key(draft, messages, None),
            unsaid=unsaid,
        )
        _, outcome, commit, _ = self.commit(self.plan(request))
        self.recluster_around(target.home, outcome.created, recluster, resolver)
        says = [node.key for node in draft.nodes if not node.resolvable]
        return Ingested(
            memories=tuple(outcome.ids[key] for key in says),
            created=tuple(outcome.created),
            reused=tuple(outcome.reused),
            proposals=self.proposals_of(outcome),
            commit=commit,
            pending=None if waiting is None else waiting.error,
            superseded=ended_by(commit),
            left_out=tuple(outcome.left_out),
        )

    def recluster_around(
        self,
        world: Id,
        created: Sequence[Id],
        when: When,
        settings: ResolverSettings | None = None,
    ) -> None:
        """Compare the neighbourhood of new nodes again, in the background or at once."""
        if not created or when == "off":
            return
        around = self.reclusterer
        nodes = tuple(created)
        if when == "now":
            around.run([nodes], world, settings)
            return
        is_over = self.background.is_over
        self.background.put(
            (world, settings), nodes, lambda groups: around.run(groups, world, settings, is_over)
        )

    def proposals_of(self, outcome: Outcome) -> tuple[Proposal, ...]:
        """Return the merge proposals that a write staged."""
        if not outcome.proposed:
            return ()
        with self.store.read() as reader:
            rows = (reader.edge_row(ident) for ident in outcome.proposed)
            edges = {
                item.row: item for item in reader.edges(row for row in rows if row is not None)
            }
            found = reader.proposals(None, {item.source for item in edges.values()}, None)
        return tuple(
            proposal_value(row, edge.id, edge.source, edge.target)
            for row in found
            if row.edge in edges
            for edge in (edges[row.edge].edge,)
        )

    # -- the extraction queue ----------------------------------------------------------------------

    def extract_pending(
        self,
        extractor: Extractor | str,
        *,
        limit: int | None,
        actor: str,
        recluster: When,
        on_progress: Callable[[int, int], None],
    ) -> Extracted:
        """Extract the queued texts; see `WorldDB.extract_pending`."""
        if limit is not None:
            check_integer(limit, "limit", 1)
        with self.store.read() as reader:
            todo = [
                entry
                for entry in queue_entries(reader)
                if not isinstance(extractor, str) or entry.pending.extractor == extractor
            ][:limit]
        extractor = extractor_of(extractor)
        done: list[Id] = []
        dropped: list[Id] = []
        left_out: list[str] = []
        failures: list[Pending] = []
        in_a_row = 0
        for number, entry in enumerate(todo):
            on_progress(number, len(todo))
            try:
                outcome = self._extract_one(entry, extractor, actor, recluster)
            except TakenError:
                continue
            except (ProviderError, InvalidInputError, RejectedError) as error:
                failures.append(self._put_back(entry, extractor, error, actor))
                in_a_row += 1
                if in_a_row == FAILURES_IN_A_ROW_MAX:
                    break
                continue
            in_a_row = 0
            (dropped if outcome is None else done).append(entry.pending.id)
            left_out += outcome.left_out if outcome is not None else ()
        on_progress(len(done) + len(dropped) + len(failures), len(todo))
        with self.store.read() as reader:
            left = len(queue_entries(reader))
        return Extracted(
            done=tuple(done),
            failed=tuple(failures),
            dropped=tuple(dropped),
            left=left,
            left_out=tuple(left_out),
        )

    def _extract_one(
        self, entry: QueueEntry, extractor: Extractor, actor: str, recluster: When
    ) -> Outcome | None:
        """Extract one text; return None if the memory has ended and only leaves the queue."""
        with self.store.read() as reader:
            moment = moment_of(reader, NOW, self.clock())
            text = waiting_text(reader, entry.pending.id, moment)
            home = ROOT_ID if text is None or text.node.parent is None else text.node.parent
            commit, row = reader.head().seq, reader.node_row(home)
        if text is None:
            with self.transact(actor) as tx:
                remove_from_queue(tx, entry.edges)
            return None
        messages = text.messages()
        draft = extractor.extract(messages, text.node.valid_from).merged()
        anchors = text.anchors(draft)
        # The messages are in the store already; the other nodes are written around them.
        rest = tuple(node for node in draft.nodes if node.key not in anchors)
        target = Target(
            commit=commit, home=home, home_row=row, anchors=anchors, name_worlds=text.worlds
        )
        request = WriteRequest(
            draft=replace(draft, nodes=rest),
            memory=next(iter(anchors), ""),
            destination=WorldDestination(target),
            target=target,
            actor=actor,
            source=text.node.provenance or None,
            # A document states its own claims, not claims of the person who keeps it.
            supersede=text.node.type != "Document",
            queue_edges=entry.edges,
            origins=origins_by_key(draft, messages, None),
        )
        outcome = self.commit(self.plan(request)).outcome
        self.recluster_around(home, outcome.created, recluster)
        return outcome

    def _put_back(
        self, entry: QueueEntry, extractor: Extractor, error: Exception, actor: str
    ) -> Pending:
        """Record another failure of an extraction; that moves it to the end of the queue."""
        waiting = failure(extractor, error, entry.pending.attempts + 1)
        with suppress(TakenError), self.transact(actor) as tx:
            remove_from_queue(tx, entry.edges)
            put_into_queue(tx, entry.pending.id, waiting)
        return replace(
            entry.pending,
            extractor=waiting.extractor,
            error=waiting.error,
            attempts=waiting.attempts,
        )
