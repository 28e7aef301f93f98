"""Background queue: work after a commit, in a thread; its only job is reclustering.

`Recluster` compares the named nodes within two hops of a write once more, also by their vectors if
the store has any, because one memory may clarify whom another one meant. Matches are proposed with
a `same_as` edge, never merged.

`BackgroundQueue` has one thread. Nodes with the same key that wait together are processed together.
After each job the thread pauses several times as long as the job took, so under load more nodes
collect and callers keep most of the processor time. It does not pause while a caller waits for it
or closes it. `wait` returns when everything is done. `close`, and the end of the process, wait only
briefly; unfinished work is dropped and recorded in `done`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from worlddb.identity.match_values import ResolverSettings
from worlddb.identity.store_resolver import NameVectors, StoreResolver, name_index, resolver_in
from worlddb.index.search import Search
from worlddb.ingest.plan import Guess, Outcome, propose, reuse_or_guesses
from worlddb.model.address import Id
from worlddb.model.inputs import Limits, Plain
from worlddb.model.records import NOW, Proposal
from worlddb.ontology.registry import Registry
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW
from worlddb.view.visibility import find, moment_of, proposals
from worlddb.write.transaction import transact

KEPT_MAX = 100  # results kept for `db.reclustered`; bounds the memory
TOGETHER_MAX = 64
"""Puts that are processed together at most, so that no snapshot is held for long."""
RESTS = 19
"""Pauses are this many times as long as the work. Under load the work takes a twentieth of the
time: what writers lose by it is little, and more nodes of one world are compared in one go."""
REST_S_MAX = 5.0  # a long job must not delay the next one for minutes
IDLE_S = 0.2
"""How long an idle thread waits for work. A process that ends without closing waits as long."""
CLOSING_S_MAX = 1.0
"""How long closing, or the end of the process, waits for queued work."""
THREAD_NAME = "worlddb-background"

_Item = TypeVar("_Item")
Nodes = tuple[Id, ...]
Work = Callable[[Sequence[Nodes]], list[Proposal]]


class LeftError(Exception):
    """Work was dropped, because the store is closed or the process ends."""

    def __init__(self) -> None:
        super().__init__("the store was closed first; db.recluster(nodes) does it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclustered(Plain):
    """The result of comparing a neighbourhood again, or its error."""

    nodes: tuple[Id, ...]
    proposals: tuple[Proposal, ...] = ()
    error: str | None = None


@dataclass(eq=False, slots=True)
class _Task:
    work: Work
    puts: list[Nodes] = field(default_factory=list)
    is_done: bool = False


class BackgroundQueue:
    """The background queue of one open store."""

    def __init__(self) -> None:
        self._state = threading.Condition()
        self._waiting: dict[Hashable, deque[_Task]] = {}
        self._running: _Task | None = None
        self._thread: threading.Thread | None = None
        self._hurried = 0
        self._is_idle = False
        self._closed = False
        self._until: float | None = None
        self.done: deque[Reclustered] = deque(maxlen=KEPT_MAX)

    def put(self, key: Hashable, nodes: Nodes, work: Work) -> None:
        """Queue work on nodes, behind all other keys that wait.

        `work` is called once with everything that was queued under its key meanwhile. Its result or
        error is added to `done`. A closed queue does nothing.
        """
        with self._state:
            if self._closed:
                return
            tasks = self._waiting.setdefault(key, deque())
            if not tasks or len(tasks[-1].puts) >= TOGETHER_MAX:
                tasks.append(_Task(work))
            tasks[-1].puts.append(nodes)
            if self._thread is None:
                # Not a daemon: a process that ends without closing still does the work it has time
                # for.
                self._thread = threading.Thread(target=self._run, name=THREAD_NAME)
                self._thread.start()
            elif self._is_idle:
                # A thread that works or rests needs no call, and would only take turns from us.
                self._state.notify_all()

    @property
    def waiting(self) -> int:
        """The number of jobs that wait or run."""
        with self._state:
            return sum(map(len, self._waiting.values())) + (self._running is not None)

    def _run(self) -> None:
        while (task := self._next()) is not None:
            started = time.monotonic()
            done = _done(task)
            took_s = time.monotonic() - started
            with self._state:
                self.done.append(done)
                task.is_done, self._running = True, None
                self._state.notify_all()
                self._rest(min(RESTS * took_s, REST_S_MAX))

    def _next(self) -> _Task | None:
        """Take the job that has waited longest; if none comes, end the thread and return None."""
        with self._state:
            self._is_idle = True
            self._state.wait_for(lambda: self._waiting or self._closed, IDLE_S)
            self._is_idle = False
            if self._waiting and self.is_over():
                self._leave()
            if not self._waiting:
                self._thread = None
                self._state.notify_all()
                return None
            key, tasks = next(iter(self._waiting.items()))
            task = self._running = tasks.popleft()
            del self._waiting[key]
            if tasks:
                self._waiting[key] = tasks  # At the end, behind other keys.
            return task

    def is_over(self) -> bool:
        """Return whether closing, or the end of the process, no longer waits for work.

        Long work checks this now and then, and raises `LeftError` if it is true.
        """
        if self._until is None and (self._closed or _process_ends()):
            self._until = time.monotonic() + CLOSING_S_MAX
        return self._until is not None and time.monotonic() >= self._until

    def _leave(self) -> None:
        """Drop the waiting jobs, and record that in `done`."""
        for tasks in self._waiting.values():
            self.done.extend(_left(task) for task in tasks)
        self._waiting.clear()
        self._state.notify_all()

    def _rest(self, seconds: float) -> None:
        """Pause, unless a caller waits for the work or the process ends."""
        end = time.monotonic() + seconds
        while not _process_ends() and (left_s := end - time.monotonic()) > 0:
            if self._state.wait_for(lambda: self._hurried or self._closed, min(left_s, IDLE_S)):
                return

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all queued work is done; return whether that was in time.

        False if the store is closed meanwhile and work was dropped.
        """
        with self._state:
            left = [task for tasks in self._waiting.values() for task in tasks]
            left += [] if self._running is None else [self._running]
            self._hurried += 1
            self._state.notify_all()
            try:
                self._state.wait_for(
                    lambda: all(task.is_done for task in left) or self._has_ended(), timeout_s
                )
                return all(task.is_done for task in left)
            finally:
                self._hurried -= 1

    def _has_ended(self) -> bool:
        """Return whether the queue is closed and its thread has ended."""
        return self._closed and self._thread is None

    def close(self) -> None:
        """Accept no more work; finish what there is time for, and drop the rest.

        A KeyboardInterrupt drops all jobs that have not begun.
        """
        try:
            with self._state:
                self._closed = True
                if self._until is None:
                    self._until = time.monotonic() + CLOSING_S_MAX
                self._state.notify_all()
            self._join()
        except KeyboardInterrupt:
            self._closed, self._until = True, time.monotonic()
            self._join()
            raise

    def _join(self) -> None:
        """Wait until the thread has ended.

        After an interrupt, `Thread.join` reports a thread as ended that still runs.
        """
        with self._state:
            while self._thread is not None and self._thread.is_alive():
                self._state.wait(IDLE_S)


def unless(is_over: Callable[[], bool], items: Iterable[_Item]) -> Iterator[_Item]:
    """Yield items until `is_over` is true."""
    for item in items:
        if is_over():
            raise LeftError
        yield item


def _process_ends() -> bool:
    """Return whether only threads of this queue keep the process alive."""
    return not threading.main_thread().is_alive() and all(
        thread.daemon or thread.name == THREAD_NAME or not thread.is_alive()
        for thread in threading.enumerate()
    )


def _left(task: _Task) -> Reclustered:
    """Return the record of dropped work."""
    nodes = tuple(ident for put in task.puts for ident in put)
    error = LeftError()
    return Reclustered(nodes=nodes, error=f"{type(error).__name__}: {error}")


def _done(task: _Task) -> Reclustered:
    """Run a job; return its record."""
    nodes = tuple(ident for put in task.puts for ident in put)
    try:
        return Reclustered(nodes=nodes, proposals=tuple(task.work(task.puts)))
    except Exception as error:  # Any error: it is recorded, and the next job runs.
        return Reclustered(nodes=nodes, error=f"{type(error).__name__}: {error}")


RECLUSTER_ACTOR = "recluster"
HOPS = 2  # a name, the texts about it, and the other names in these texts
NEIGHBOURS_MAX = 200  # bounds the work at a hub; the nearest nodes come first


@dataclass(frozen=True, slots=True)
class Reclusterer:
    """Compares the names in a neighbourhood of one store again."""

    store: Store
    registry: Registry
    search: Search
    limits: Limits
    clock: Callable[[], int]

    def run(
        self,
        groups: Sequence[Sequence[bytes | str]],
        world: bytes | str | None,
        settings: ResolverSettings | None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[Proposal]:
        """Recluster around several groups of nodes, as if one after the other.

        A proposal may make a less similar match possible at the next comparison. So a node near
        several groups is compared once per group, as long as that finds anything.

        Raises:
            LeftError: `is_over` became true before the end.
        """
        outcome = Outcome()
        for turn in range(1, len(groups) + 1):
            found = self._guesses(groups, turn, world, settings, is_over)
            if not found:
                break
            with transact(
                self.store, self.registry, actor=RECLUSTER_ACTOR, bulk=False, limits=self.limits
            ) as tx:
                for ident, guess in found:
                    propose(tx, ident, guess, outcome)
        if not outcome.proposed:
            return []
        wanted = set(outcome.proposed)
        with self.store.read() as reader:
            moment = moment_of(reader, NOW, self.clock())
            staged = proposals(reader, None, moment)
        return [proposal for proposal in staged if proposal.edge in wanted]

    def _guesses(
        self,
        groups: Sequence[Sequence[bytes | str]],
        turn: int,
        world: bytes | str | None,
        settings: ResolverSettings | None,
        is_over: Callable[[], bool],
    ) -> list[tuple[Id, Guess]]:
        """Return the candidates for nodes that are near at least `turn` of the groups."""
        name_index(self.store).catch_up()
        by_meaning = settings is None or "embedding" in settings.tiers
        vectors = NameVectors.at_hand(self.search, self.store) if by_meaning else None
        with self.store.read() as reader:
            inside = ROOT_ROW if world is None else _row(reader, world)
            resolver = resolver_in(reader, inside, self.clock(), settings, vectors=vectors)
            around = _Neighbourhoods(reader)
            near: Counter[int] = Counter()
            for ids in unless(is_over, groups):
                near.update(around.of({_row(reader, ident) for ident in ids}))
            own = resolver.view.keep_world(near)  # An edge may lead to another user's name.
            often = [row for row, times in near.items() if times >= turn and row in own]
            resolver.read_notes(often)
            return _new_guesses(resolver, unless(is_over, often))


def _row(reader: Reader, given: bytes | str) -> int:
    return find(reader, given, "nodes")


def _new_guesses(resolver: StoreResolver, rows: Iterable[int]) -> list[tuple[Id, Guess]]:
    """Return the candidates that were not proposed before, each pair once."""
    reader = resolver.reader
    found: list[tuple[Id, Guess]] = []
    pairs: set[frozenset[bytes]] = set()
    for row in rows:
        named = resolver.named(row)
        if named is None:
            continue
        proposed = reader.proposals(rows=[row])
        apart = {side for item in proposed for side in (item.low, item.high)} | {row}
        same, guesses = reuse_or_guesses(resolver, resolver.of(named, apart))
        ident = Id(reader.world(row).id)
        if same is not None:
            guesses = [Guess(id=same, tier="exact", score=1.0, evidence={})]
        for guess in guesses:
            pair = frozenset({bytes(ident), bytes(guess.id)})
            if pair not in pairs:
                pairs.add(pair)
                found.append((ident, guess))
    return found


class _Neighbourhoods:
    """The nodes within two hops of given nodes, for many of them on one snapshot.

    Texts written together mention mostly the same few names, and a name in many texts has many
    edges. So the edges of each node are read once, however many neighbourhoods it is in.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._ends: dict[int, tuple[int, ...]] = {}

    def of(self, rows: set[int]) -> list[int]:
        """Return the rows within two hops, nearest first, `NEIGHBOURS_MAX` at most."""
        seen = dict.fromkeys(sorted(rows))
        frontier = set(rows)
        for _ in range(HOPS):
            self._read(frontier)
            ends = {end for row in frontier for end in self._ends[row]}
            frontier = ends - seen.keys()
            seen.update(dict.fromkeys(sorted(frontier)))
            if len(seen) > NEIGHBOURS_MAX:
                break
        return list(seen)[:NEIGHBOURS_MAX]

    def _read(self, rows: Iterable[int]) -> None:
        """Read the other ends of the edges of rows that were not read before."""
        fresh = {row: set[int]() for row in rows if row not in self._ends}
        # Two nodes in one scope need not be related, and the root refers to the queued texts.
        for item in self._reader.sweep.covers(fresh, None, "out") if fresh else ():
            fresh[item.source].add(item.target)
        for item in self._reader.sweep.covers(fresh, None, "in") if fresh else ():
            fresh[item.target].add(item.source)
        for row, ends in fresh.items():
            # Twice the bound, so that enough remain without those already in the neighbourhood.
            self._ends[row] = tuple(sorted(ends - {ROOT_ROW})[: 2 * NEIGHBOURS_MAX])
