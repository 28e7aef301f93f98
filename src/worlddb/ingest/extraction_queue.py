"""Extraction queue: texts that are stored but not extracted yet: too long, or the model failed.

    extractor fails ──▶ draft of its fallback + Waiting ──▶ root --refers_to--> memory

The queue consists of edges from the root world to the waiting memories, with the reason in their
metadata. So one look-up finds it, it has both clocks and a journal, and it needs no table. The
commit that writes the extracted nodes deletes the edge.

`PendingReader` extracts long texts on a thread of its own, one at a time, and pauses several times
as long as each took. Texts left when it stops stay in the queue. Texts that wait for a language
model are left to `extract_pending`, because calling the model costs money.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from worlddb.errors import ConflictError, NotFoundError, WorldDBError
from worlddb.model.address import ROOT_ID, Id
from worlddb.model.records import DOCUMENT, WHOLES, Draft, Extractor, Message, Node, Pending
from worlddb.model.text_safety import check_origin
from worlddb.store.interface import Reader
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import Moment
from worlddb.write.transaction import Transaction

if TYPE_CHECKING:
    from worlddb.ingest.ingestion import Ingestion

QUEUE_EDGE = "refers_to"
TASK = "extract"
ERROR_CHARS_MAX = 500  # enough to see what failed; a provider's whole reply is too long
MEMORY, SESSION, TURN = "Memory", "Session", "Turn"


class TakenError(ConflictError):
    """Another process has extracted the memory already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An extraction to be done: by which extractor, why it waits, and how often it failed."""

    extractor: str
    error: str
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A memory that waits, and its queue edges."""

    pending: Pending
    edges: tuple[Id, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingText:
    """The text of a queued memory: the node, its live turns or passages, and its other worlds."""

    node: Node
    turns: tuple[Node, ...]
    worlds: tuple[Id, ...]

    @property
    def said(self) -> list[Node]:
        """The turns that have text."""
        return [turn for turn in self.turns if turn.content.strip()]

    def messages(self) -> list[Message]:
        """Return the messages as they were written."""
        if not self.turns:
            return [_message(self.node, "user")]
        return [_message(turn, turn.name if turn.type == TURN else DOCUMENT) for turn in self.said]

    def anchors(self, draft: Draft) -> dict[str, Id]:
        """Return the drafted nodes that are the waiting nodes themselves, by key."""
        said = self.said
        # If one turn of a session is left, it is drafted as a single memory.
        top = said[0] if len(said) == 1 else self.node
        whole = SESSION if self.turns else self.node.type
        wanted = {MEMORY, whole} if len(said) == 1 else {whole}
        tops = [item for item in draft.nodes if item.parent is None and item.type in wanted]
        if not tops:
            return {}
        found = {tops[0].key: top.id}
        parts = [item for item in draft.nodes if item.parent == tops[0].key and item.type == TURN]
        if len(parts) == len(said):
            found |= {part.key: turn.id for part, turn in zip(parts, said, strict=True)}
        return found


def _message(node: Node, speaker: str) -> Message:
    origin = None if not node.origins else check_origin(node.origin)
    return Message(text=node.content, speaker=speaker, at=node.valid_from, origin=origin)


def failure(extractor: Extractor, error: Exception | str, attempts: int = 1) -> Waiting:
    """Return the queue entry of an extraction that failed or was not tried."""
    name = str(getattr(extractor, "name", type(extractor).__name__))
    return Waiting(extractor=name, error=str(error)[:ERROR_CHARS_MAX], attempts=attempts)


def put_into_queue(tx: Transaction, memory: Id, waiting: Waiting) -> None:
    """Queue a memory or a session in this transaction."""
    metadata = {
        "task": TASK,
        "extractor": waiting.extractor,
        "error": waiting.error,
        "attempts": waiting.attempts,
    }
    tx.write_edge(QUEUE_EDGE, ROOT_ID, memory, metadata=metadata)


def remove_from_queue(tx: Transaction, edges: Iterable[Id]) -> None:
    """Remove an entry in this transaction."""
    try:
        for edge in edges:
            tx.delete_edge(edge)
    except NotFoundError:
        raise TakenError("the memory is out of the extraction queue already") from None


def queue_entries(reader: Reader) -> list[QueueEntry]:
    """Return the queue, each memory once: those with the fewest failures first, then the oldest."""
    found: dict[Id, list[tuple[Waiting, Id, datetime]]] = {}
    for item in reader.edges_at([ROOT_ROW], "out", (QUEUE_EDGE,)):
        waiting = _waiting(item.edge.metadata)
        if waiting is not None:
            note = (waiting, item.edge.id, item.edge.known_from)
            found.setdefault(item.edge.target, []).append(note)
    queue = [
        QueueEntry(
            Pending(
                id=ident,
                extractor=notes[-1][0].extractor,
                error=notes[-1][0].error,
                attempts=max(waiting.attempts for waiting, _, _ in notes),
                since=min(since for _, _, since in notes),
            ),
            tuple(edge for _, edge, _ in notes),
        )
        for ident, notes in found.items()
    ]
    queue.sort(key=lambda entry: (entry.pending.attempts, entry.pending.since))
    return queue


def _waiting(metadata: Mapping[str, Any]) -> Waiting | None:
    """Return the queue entry in an edge from the root; None if the edge is not one."""
    if metadata.get("task") != TASK:
        return None
    attempts = metadata.get("attempts")
    return Waiting(
        extractor=str(metadata.get("extractor", "")),
        error=str(metadata.get("error", "")),
        attempts=attempts if isinstance(attempts, int) else 1,
    )


def waiting_text(reader: Reader, ident: Id, moment: Moment) -> WaitingText | None:
    """Return the text of a queued memory; None if it has ended or has no text."""
    row = reader.node_row(ident)
    if row is None:
        return None
    node = reader.nodes([row])[row]
    turns: list[Node] = []
    if node.type in WHOLES:
        found = reader.nodes(reader.children(row))
        kind = WHOLES[node.type]
        turns = [found[child] for child in sorted(found) if found[child].type == kind]
        turns = [turn for turn in turns if moment.holds(turn)]
    says = any(turn.content.strip() for turn in turns) or bool(node.content.strip())
    if not moment.holds(node) or not says:
        return None
    members = reader.edges_at([row], "in", ("contains",), moment.known)
    worlds = (item.edge.source for item in members if moment.holds(item.edge))
    return WaitingText(node=node, turns=tuple(turns), worlds=tuple(dict.fromkeys(worlds)))


READER = "rules"
ACTOR = "extract"
LOOK_EVERY_S = 5.0  # Other processes queue texts, too; a check is one small read.
RESTS = 9  # pauses per work: a tenth of the time is work
REST_S_MAX = 30.0  # the longest text takes a few seconds
STOP_S_MAX = 2.0
"""How long stopping waits. A text that is being read is given up; nothing of it is written."""

log = logging.getLogger(__name__)


class PendingReader:
    """Extracts the waiting texts of one open store, from `start` to `stop`."""

    def __init__(self, ingestion: Ingestion) -> None:
        self._ingestion = ingestion
        self._stop = threading.Event()
        # A daemon thread: a process that ends does not wait for a text.
        self._thread = threading.Thread(target=self._work, name="worlddb-extract", daemon=True)

    def start(self) -> None:
        """Start to extract the texts that wait, now and later."""
        self._thread.start()

    def stop(self) -> None:
        """Stop extracting; returns soon, also while a text is being read."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S_MAX)

    def _work(self) -> None:
        pause_s = 0.0
        while not self._stop.wait(pause_s):
            began = time.monotonic()
            try:
                is_read = self._read_one()
            except WorldDBError as error:  # Disk full, or another writer: try later.
                is_read = False
                if not self._stop.is_set():
                    log.warning("a long text is not read yet: %s", error)
            took_s = time.monotonic() - began
            pause_s = min(RESTS * took_s, REST_S_MAX) if is_read else LOOK_EVERY_S

    def _read_one(self) -> bool:
        """Extract the text that has waited longest; return whether there was one."""
        with self._ingestion.store.read() as reader:
            waits = any(
                entry.pending.extractor == READER and not entry.pending.attempts
                for entry in queue_entries(reader)
            )
        if waits:  # A text that failed once is left for a person.
            self._ingestion.extract_pending(
                READER, limit=1, actor=ACTOR, recluster="later", on_progress=lambda *_: None
            )
        return waits
