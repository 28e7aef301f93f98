"""Pending: extracting later what could not be extracted when it was written.

    queue ──▶ messages, as they were written ──extract──▶ draft ──▶ one commit, out of the queue

Each memory is a commit of its own, so a run can be stopped at any time and goes on at the next.
The model is asked between transactions. What failed goes to the end of the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from worlddb.errors import (
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ProviderError,
    RejectedError,
)
from worlddb.ingest.extraction_queue import QUEUE_EDGE, Waits, failed, put_into_queue, read_waits
from worlddb.ingest.ingest import Ingesting
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.drafts import Draft, Extracted, Extractor, Message, Pending
from worlddb.model.inputs import check_whole
from worlddb.model.records import NOW, Node
from worlddb.store.protocol import ROOT_ROW
from worlddb.view.visibility import moment_of
from worlddb.write.transaction import Transaction, transact

if TYPE_CHECKING:
    from worlddb.ingest.apply import Outcome
    from worlddb.store.protocol import Reader


EXTRACT_ACTOR = "extract"
FAILURES_IN_A_ROW_MAX = 3
"""After so many the endpoint is taken to be down, and the rest is left for another run."""
MEMORY, SESSION, TURN = "Memory", "Session", "Turn"


class _Taken(ConflictError):
    """Somebody else has extracted it meanwhile."""


@dataclass(frozen=True, slots=True)
class _Queued:
    pending: Pending
    edges: tuple[Id, ...]


class Extracting(Ingesting):
    """The part of WorldDB that finishes what a failing model left."""

    def pending(self) -> list[Pending]:
        """Return what waits for extraction: what failed least often first, then the oldest."""
        with self._store.read() as reader:
            return [queued.pending for queued in _queue(reader)]

    def extract_pending(
        self,
        extractor: Extractor,
        *,
        limit: int | None = None,
        actor: str = EXTRACT_ACTOR,
        recluster: Literal["later", "now", "off"] = "later",
        on_progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> Extracted:
        """Extract what waits, at most `limit` of it, each as one commit; say what that did.

        Three failures in a row end the run: the model is down. Nothing is lost by that, nor by
        stopping it; call it again.

        Raises:
            InvalidInputError: the limit is no positive number.
            StorageError, ConflictError: the store cannot be written.
        """
        if limit is not None:
            check_whole(limit, "limit", 1)
        with self._store.read() as reader:
            queue = list(_queue(reader))
        todo = queue[:limit]
        done: list[Id] = []
        dropped: list[Id] = []
        failures: list[Pending] = []
        in_a_row = 0
        for number, queued in enumerate(todo):
            on_progress(number, len(todo))
            ident = queued.pending.id
            try:
                kept = self._extract_one(queued, extractor, actor, recluster)
            except _Taken:
                continue
            except (ProviderError, InvalidInputError, RejectedError) as error:
                failures.append(self._put_back(queued, extractor, error, actor))
                in_a_row += 1
                if in_a_row == FAILURES_IN_A_ROW_MAX:
                    break
                continue
            in_a_row = 0
            (done if kept else dropped).append(ident)
        on_progress(len(done) + len(dropped) + len(failures), len(todo))
        with self._store.read() as reader:
            left = len(list(_queue(reader)))
        return Extracted(
            done=tuple(done), failed=tuple(failures), dropped=tuple(dropped), left=left
        )

    def _extract_one(
        self,
        queued: _Queued,
        extractor: Extractor,
        actor: str,
        recluster: Literal["later", "now", "off"],
    ) -> bool:
        """Extract one; return False if it has ended and only left the queue."""
        with self._store.read() as reader:
            node, turns, scopes = self._waiting(reader, queued.pending.id)
        if node is None:
            with self._transact(actor) as tx:
                _unqueue(tx, queued)
            return False
        home = node.parent or ROOT_ID
        draft = extractor.extract(_messages(node, turns), node.valid_from).merged()
        given = _given(draft, node, turns)
        # What was said is there already; the rest is written around it.
        draft = replace(draft, nodes=tuple(it for it in draft.nodes if it.key not in given))

        def before(tx: Transaction) -> None:
            _unqueue(tx, queued)

        def after(tx: Transaction, outcome: Outcome) -> None:
            for drafted in draft.nodes:
                for scope in scopes if drafted.parent is None else ():
                    tx.write_edge("contains", scope, outcome.ids[drafted.key])

        outcome, _ = self._land(
            draft,
            home,
            source=node.provenance or None,
            actor=actor,
            places=given,
            before=before,
            after=after,
        )
        self._look_again(home, outcome.created, recluster)
        return True

    def _transact(self, actor: str) -> AbstractContextManager[Transaction]:
        return transact(self._store, self._registry, actor=actor, bulk=False, limits=self._limits)

    def _put_back(
        self, queued: _Queued, extractor: Extractor, error: Exception, actor: str
    ) -> Pending:
        """Note that it failed once more; that moves it to the end of the queue."""
        waits = failed(extractor, error, queued.pending.attempts + 1)
        with suppress(_Taken), self._transact(actor) as tx:
            _unqueue(tx, queued)
            put_into_queue(tx, queued.pending.id, waits)
        return replace(
            queued.pending,
            extractor=waits.extractor,
            error=waits.error,
            attempts=waits.attempts,
        )

    def _waiting(self, reader: Reader, ident: Id) -> tuple[Node | None, list[Node], tuple[Id, ...]]:
        """Return a node that waits, its turns, and the worlds it is a member of; None if ended."""
        row = reader.node_row(ident)
        if row is None:
            return None, [], ()
        node = reader.nodes([row])[row]
        moment = moment_of(reader, NOW, self._clock())
        turns: list[Node] = []
        if node.type == SESSION:
            found = reader.nodes(reader.children(row))
            turns = [found[child] for child in sorted(found) if found[child].type == TURN]
            turns = [turn for turn in turns if moment.holds(turn)]
        says = any(turn.content.strip() for turn in turns) or bool(node.content.strip())
        if not moment.holds(node) or not says:
            return None, [], ()
        members = reader.edges_at([row], "in", ("contains",), moment.known)
        scopes = (item.edge.source for item in members if moment.holds(item.edge))
        return node, turns, tuple(dict.fromkeys(scopes))


def _queue(reader: Reader) -> Iterator[_Queued]:
    """Yield what waits, each once, with all the edges that say so."""
    found: dict[Id, list[tuple[Waits, Id, datetime]]] = {}
    for item in reader.edges_at([ROOT_ROW], "out", (QUEUE_EDGE,)):
        waits = read_waits(item.edge.metadata)
        if waits is not None:
            said = (waits, item.edge.id, item.edge.known_from)
            found.setdefault(item.edge.target, []).append(said)
    queue = [
        _Queued(
            Pending(
                id=ident,
                extractor=said[-1][0].extractor,
                error=said[-1][0].error,
                attempts=max(waits.attempts for waits, _, _ in said),
                since=min(since for _, _, since in said),
            ),
            tuple(edge for _, edge, _ in said),
        )
        for ident, said in found.items()
    ]
    queue.sort(key=lambda queued: (queued.pending.attempts, queued.pending.since))
    yield from queue


def _unqueue(tx: Transaction, queued: _Queued) -> None:
    try:
        for edge in queued.edges:
            tx.delete_edge(edge)
    except NotFoundError:
        raise _Taken(f"{queued.pending.id.short}: is out of the queue already") from None


def _messages(node: Node, turns: list[Node]) -> list[Message]:
    """Return what was said, as it was written."""
    if not turns:
        return [Message(text=node.content, at=node.valid_from)]
    return [
        Message(text=turn.content, speaker=turn.name, at=turn.valid_from)
        for turn in turns
        if turn.content.strip()
    ]


def _given(draft: Draft, node: Node, turns: list[Node]) -> dict[str, Id]:
    """Return which drafted nodes are the very ones that wait."""
    said = [turn for turn in turns if turn.content.strip()]
    # Of a session only one turn may be left; a single message is drafted as a memory.
    top = said[0] if len(said) == 1 else node
    wanted = {MEMORY, node.type} if len(said) == 1 else {node.type}
    tops = [item for item in draft.nodes if item.parent is None and item.type in wanted]
    if not tops:
        return {}
    given = {tops[0].key: top.id}
    parts = [item for item in draft.nodes if item.parent == tops[0].key and item.type == TURN]
    if len(parts) == len(said):
        given |= {part.key: turn.id for part, turn in zip(parts, said, strict=True)}
    return given
