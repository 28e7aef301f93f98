"""Search: the derived state of one open store: vectors, held worlds and recall counts.

*Search* holds these parts. An embedder is loaded by the first search that needs it. *HeldWorlds*
are the small worlds that are searched in memory. *VectorFollower* is a thread that embeds new
commits. *RecallCounter* counts how often a memory was a hit, and saves the counts in batches.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from inspect import getattr_static
from typing import TYPE_CHECKING, Literal, NamedTuple

from worlddb.errors import ConflictError, InvalidInputError, ProviderError, WorldDBError
from worlddb.model.inputs import check_choice, encode_text
from worlddb.model.records import Edge, Node
from worlddb.store.interface import Reader, Store
from worlddb.store.rows import ROOT_ROW, Head
from worlddb.view.visibility import Moment

if TYPE_CHECKING:
    from worlddb.embed.embedder import Embedder
    from worlddb.index.field_index import FieldIndex, RowFilter
    from worlddb.index.held_world import HeldWorld
    from worlddb.index.name_index import NameIndex
    from worlddb.index.store_search import StoreSearch
    from worlddb.index.vectors import Vectors
    from worlddb.model.conditions import Condition

NO_EMBEDDER = "none"
POOLINGS = ("attention", "mean")
MODEL_ID_BYTES_MAX = 4096  # stored with every store; longer than any path or model name in use

Progress = Callable[[int, int], None]
"""Called with the number of nodes done and the number of all nodes."""
HELD_MAX = 16_384  # nodes; a larger world is searched through the indexes of the whole store
NODES_MAX = 262_144  # nodes in all held worlds together; bounds the memory
UNFILED_MAX = 1_000
"""Unindexed names up to this number are compared one by one; above it they are indexed first."""
WORLDS_MAX = 1_024  # worlds held or known to be too large; each moment of a world counts as one
HELD_S_MAX = 10  # seconds; far longer than a recall holds a world; after it, another copy is made
UNSAVED_MAX = 1_000
"""Memories with unsaved counts that trigger a save; bounds the memory, and the loss by a kill."""
SAVE_EVERY_MICROS = 30_000_000
"""Counts only affect ranking, so a kill may lose half a minute of them."""
SAVE_TIMEOUT_S = 1.0  # how long a save waits for the write lock; it may fail: the counts are kept
CLOSE_TIMEOUT_S = 0.2  # how long the last save may delay `close`
LOOK_S = 0.1  # between two checks for new commits of any process
RESTS = 4  # pauses per work of embedding: a fifth of the time, and more texts in one go
REST_S_MAX = 1.0  # a recall meanwhile finds newer texts by words and names
RETRY_S = 5.0  # pause after an embedder failed: an endpoint that is down needs time
STOPPING_S_MAX = 5.0  # longer than a batch takes; after it the daemon thread is abandoned

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # A library logs nothing unless the program asks for it.


class Search:
    """The search of one open store."""

    def __init__(
        self,
        store: Store,
        embedder: Embedder | str | None,
        pooling: Literal["attention", "mean"],
        models_dir: str | os.PathLike[str] | None,
        names: NameIndex,
    ) -> None:
        check_choice(pooling, "pooling", POOLINGS)
        self._store = store
        self._given = embedder
        self._models_dir = models_dir
        self._pooling: Literal["attention", "mean"] = pooling
        self._names = names
        self._lock = threading.Lock()
        self._vectors: Vectors | None = None
        self._interiors: HeldWorlds | None = None
        self._wide: StoreSearch | None = None
        self._fields: FieldIndex | None = None
        self._follower: VectorFollower | None = None
        if embedder is not None and embedder != NO_EMBEDDER:
            self._check_model(self._made(embedder))

    @property
    def has_vectors(self) -> bool:
        """Whether this store was opened with an embedder."""
        return self._given != NO_EMBEDDER

    def vectors(self) -> Vectors:
        """Return the vectors of this store.

        Raises:
            InvalidInputError: the store was opened without an embedder.
            ProviderError: the recorded embedder is not one of WorldDB's own.
        """
        with self._lock:
            if self._vectors is None:
                from worlddb.index.vectors import Vectors

                self._vectors = Vectors(self._store, self._embedder(), self._pooling)
            return self._vectors

    @contextmanager
    def snapshot(self, *, by_meaning: bool) -> Iterator[Reader]:
        """Yield a snapshot for a recall, after the work that a bulk load left undone.

        Names are indexed first, and with `by_meaning` nodes are embedded, unless a thread does
        both.

        Raises:
            ProviderError, ConflictError: as `Vectors.catch_up`.
        """
        with self._opened(by_meaning) as reader:
            is_followed = self._vectors is not None and self._vectors.is_followed
            if is_followed or not self.lacks_names(reader):
                yield reader
                return
        self.file_names()
        with self._opened(by_meaning) as reader:
            yield reader

    def _opened(self, by_meaning: bool) -> AbstractContextManager[Reader]:
        return self.vectors().snapshot() if by_meaning else self._store.read()

    def lacks_names(self, reader: Reader) -> bool:
        """Return whether so many names are unindexed that indexing them beats comparing them."""
        nodes = reader.head().nodes
        if nodes <= HELD_MAX or self._store.read_only or reader.is_uncommitted:
            return False  # A held world has a name table of its own.
        return nodes - reader.lookups.reached()[0] > UNFILED_MAX

    def file_names(self) -> None:
        """Index all names; does nothing if the store cannot be written now."""
        with suppress(WorldDBError):
            self._names.catch_up()

    def follow_names(self) -> None:
        """Index names if many are unindexed."""
        with self._store.read() as reader:
            is_behind = self.lacks_names(reader)
        if is_behind:
            self.file_names()

    def _embedder(self) -> Embedder:
        if self._given == NO_EMBEDDER:
            raise InvalidInputError("opened with embedder='none'; open it with one to use vectors")
        if self._given is not None:
            return self._made(self._given)
        from worlddb.embed.embedder_catalog import DEFAULT

        recorded = self._recorded()
        try:
            return self._made(DEFAULT if recorded is None else recorded)
        except InvalidInputError as error:
            raise ProviderError(
                f"{self._store.path}: its vectors were made by {recorded!r}, which WorldDB does "
                "not know; pass that one as embedder=…, or embed anew with db.reindex(…)"
            ) from error

    def _recorded(self) -> str | None:
        """Return the model that made this store's vectors; None if there are none."""
        with self._store.read() as reader:
            return next((row.id for row in reader.derived.models() if row.active), None)

    def _check_model(self, embedder: Embedder) -> None:
        recorded = self._recorded()
        if recorded is not None and recorded != embedder.model_id:
            raise ConflictError(
                f"{self._store.path}: its vectors were made by {recorded}, not by "
                f"{embedder.model_id}; leave the embedder out, or embed anew with "
                "db.reindex(embedder) or: "
                f"worlddb reindex --embedder {shlex.quote(embedder.model_id)} "
                f"--db {shlex.quote(self._store.path)}"
            )

    def reindex(self, embedder: Embedder | str | None, on_progress: Progress) -> str:
        """Embed nodes without a vector, or all nodes with another embedder; return its name.

        Lost derived data is rebuilt as well, also without an embedder.

        Raises:
            ProviderError: the embedder failed; finished work is kept, and the next call goes on.
            StorageError, ConflictError: the store cannot be written.
        """
        if self._store.mend():
            self.forget()  # Held worlds were read from the damaged data.
        self._names.catch_up()
        if embedder is None and not self.has_vectors:
            return NO_EMBEDDER
        if embedder is None:
            self.vectors().complete(on_progress)
            return self.vectors().model_id
        from worlddb.index.vectors import Vectors

        made = self._made(embedder)
        vectors = Vectors(self._store, made, self._pooling)
        vectors.take_over(on_progress)
        is_followed = self._unfollow()
        with self._lock:
            self._given, self._vectors = made, vectors
            self._interiors = self._wide = None
        if is_followed:
            self.follow()
        return made.model_id

    def interior(
        self, reader: Reader, worlds: Sequence[int], moment: Moment, members: bool
    ) -> AbstractContextManager[HeldWorld | None]:
        """Hold worlds in memory at the reader's commit; yields None if they are too large."""
        return self._holders().holding(reader, worlds, moment, members)

    def large(
        self, reader: Reader, worlds: Sequence[int], moment: Moment, members: bool
    ) -> AbstractContextManager[HeldWorld | None]:
        """Hold the rows and vectors of worlds of any size, with rows of the past."""
        return self._holders().holding_rows(reader, worlds, moment, members)

    def _holders(self) -> HeldWorlds:
        with self._lock:
            if self._interiors is None:
                self._interiors = HeldWorlds()
            return self._interiors

    def wide(self) -> StoreSearch:
        """Return the search through the whole store, for worlds too large to be held."""
        with self._lock:
            if self._wide is None:
                from worlddb.index.store_search import StoreSearch

                self._wide = StoreSearch(self._store, self.large)
            return self._wide

    def follow(self, *, elsewhere: bool = False) -> None:
        """Embed in the background from now on; does nothing without an embedder.

        With `elsewhere`, another process embeds; vectors that a recall makes here are not stored.

        Raises:
            ProviderError: as `vectors`.
        """
        if elsewhere and self.has_vectors:
            self.vectors().is_followed = True
        elif self.has_vectors and self._follower is None and not self._store.read_only:
            self._follower = VectorFollower(self.vectors(), self.follow_names)

    def _unfollow(self) -> bool:
        """Stop the embedding thread; return whether there was one."""
        follower, self._follower = self._follower, None
        if follower is not None:
            follower.stop()
        return follower is not None

    def unembedded(self, reader: Reader, keep: Callable[[Iterable[int]], Collection[int]]) -> int:
        """Return how many nodes accepted by `keep` wait for a vector in the background."""
        found = self._vectors
        if found is None or not found.is_followed or found.is_current(reader):
            return 0
        return self.vectors().missing(reader, keep)

    def row_filter(self, reader: Reader, condition: Condition, known: int | None) -> RowFilter:
        """Return the filter for a condition on the rows of a snapshot, as of commit `known`."""
        with self._lock:
            if self._fields is None:
                from worlddb.index.field_index import FieldIndex

                self._fields = FieldIndex()
            fields = self._fields
        return fields.row_filter(reader, condition, known)

    def forget(self) -> None:
        """Drop all held worlds and the saved index, because something was erased."""
        with self._lock:
            for found in (self._wide, self._vectors):
                if found is not None:
                    found.forget()
            self._interiors = self._wide = self._fields = None
        from worlddb.index.store_search import SUFFIX

        if (saved := self._store.side_file(SUFFIX)) is not None:
            with suppress(FileNotFoundError):
                os.remove(saved)

    def close(self) -> None:
        """Stop the embedding thread, and save the nearest-neighbour index, if there is one."""
        self._unfollow()
        with self._lock:
            if self._wide is not None:
                self._wide.close()

    def _made(self, embedder: Embedder | str) -> Embedder:
        """Return the embedder with a name, or the given embedder after a check."""
        if isinstance(embedder, str):
            from worlddb.embed.embedder_catalog import embedder_named

            return embedder_named(embedder, models_dir=self._models_dir)
        needed = ("model_id", "dim", "embed_queries", "embed_documents")
        # An attribute is not read to see whether it exists: some embedders load a model to get
        # `dim`.
        missing = [
            name
            for name in needed
            if getattr_static(embedder, name, None) is None and not hasattr(embedder, name)
        ]
        if missing:
            raise InvalidInputError(
                f"embedder: give a name or an object with {', '.join(missing)}, "
                f"not {embedder!r:.100}"
            )
        if not encode_text(embedder.model_id, "model_id", MODEL_ID_BYTES_MAX):
            raise InvalidInputError("model_id: is empty; give the embedder's model a name")
        return embedder


class AnyMoment(Moment):
    """Any time at all: nodes that begin later or have ended count, too."""

    __slots__ = ()

    def holds(self, thing: Node | Edge) -> bool:
        """Return True."""
        return True


class HeldKey(NamedTuple):
    """Key of a held world: some worlds, with or without their members, at a moment."""

    worlds: tuple[int, ...]
    members: bool
    valid: datetime | None
    known: int | None


def _new_world(key: HeldKey) -> HeldWorld:
    """Return an empty held world, to be read later."""
    from worlddb.index.held_world import HeldWorld  # Late: opening a store needs no numpy.

    return HeldWorld(key.worlds, key.members)


def _new_large_world(key: HeldKey) -> HeldWorld:
    """Return an empty large world, of which only the rows will be held."""
    from worlddb.index.held_world import LargeWorld

    return LargeWorld(key.worlds, key.members)


class HeldWorlds:
    """The worlds of one open store that are held in memory; the least recently used is dropped."""

    def __init__(
        self, held_max: int = HELD_MAX, make: Callable[[HeldKey], HeldWorld] = _new_world
    ) -> None:
        self._held_max = held_max
        self._make = make
        self._lock = threading.Lock()
        self._held: OrderedDict[HeldKey, HeldWorld] = OrderedDict()
        self._nodes_most = 0  # All held worlds together have no more nodes.
        self._too_large: set[HeldKey] = set()
        self._large: HeldWorlds | None = None

    def holding_rows(
        self, reader: Reader, worlds: Iterable[int], moment: Moment, members: bool
    ) -> AbstractContextManager[HeldWorld | None]:
        """Hold the rows and vectors of worlds of any size, with rows of the past."""
        with self._lock:
            if self._large is None:
                self._large = HeldWorlds(sys.maxsize, _new_large_world)
            large = self._large
        return large.holding(reader, worlds, AnyMoment(moment.now, None, None), members)

    @contextmanager
    def holding(
        self, reader: Reader, worlds: Iterable[int], moment: Moment, members: bool
    ) -> Iterator[HeldWorld | None]:
        """Yield some worlds at the reader's commit; None if they are too large.

        They are locked meanwhile and stay at that commit.
        """
        key = HeldKey(tuple(sorted(set(worlds))), members, moment.valid, moment.known)
        head = reader.head()
        if self._is_too_large(key, reader, head, moment):
            yield None
            return
        if reader.is_uncommitted:
            # The transaction may be rolled back, so this copy is not kept.
            passing = self._make(key)
            yield passing if passing.read(reader, moment, self._held_max) else None
            return
        found = self._held_or_new(key)
        if not found.lock.acquire(timeout=HELD_S_MAX):
            with self._lock:
                self._held.pop(key, None)  # It was left locked by an interrupt.
            found = self._held_or_new(key)
            found.lock.acquire()
        lock = found.lock
        try:
            if found.head is not None and found.head.seq > head.seq:
                # Another thread reads a later commit, so this snapshot gets its own copy.
                found = self._make(key)
            if self._follow(key, found, reader, moment):
                yield found
                return
        finally:
            lock.release()
        yield None

    def _is_too_large(self, key: HeldKey, reader: Reader, head: Head, moment: Moment) -> bool:
        if key.worlds == (ROOT_ROW,) and head.nodes > self._held_max + 1:
            from worlddb.index.held_world import nodes_at

            # A past state does not grow.
            return nodes_at(reader, key.known) > self._held_max + 1
        if key not in self._too_large or reader.is_uncommitted:
            return key in self._too_large
        # Only its own size decides: growth of the store elsewhere must not change how it is
        # searched.
        with self.holding_rows(reader, key.worlds, moment, key.members) as inside:
            return inside is None or len(inside) > self._held_max

    def _held_or_new(self, key: HeldKey) -> HeldWorld:
        with self._lock:
            found = self._held.pop(key, None)
            if found is None:
                found = self._make(key)
            self._held[key] = found
            return found

    def _follow(self, key: HeldKey, found: HeldWorld, reader: Reader, moment: Moment) -> bool:
        """Bring a held world to the reader's commit; return whether it fits."""
        fits, size = False, len(found)
        try:
            try:
                fits = found.follow(reader, moment, self._held_max)
            except BufferError:
                # An interrupted call may still use the arrays, so they cannot grow.
                found.restart()
                fits = found.follow(reader, moment, self._held_max)
        finally:
            with self._lock:
                self._too_large.discard(key)
                if not fits:
                    # Too large, or unusable because it was interrupted.
                    self._held.pop(key, None)
                self._nodes_most += max(0, len(found) - size)
                if self._nodes_most > NODES_MAX or len(self._held) > WORLDS_MAX:
                    nodes = sum(map(len, self._held.values()))
                    while len(self._held) > 1 and (
                        len(self._held) > WORLDS_MAX or nodes > NODES_MAX
                    ):
                        nodes -= len(self._held.popitem(last=False)[1])
                    self._nodes_most = nodes
        if not fits:
            with self._lock:
                if len(self._too_large) >= WORLDS_MAX:
                    self._too_large.clear()
                self._too_large.add(key)
        return fits


class _StoppedError(Exception):
    """The store is being closed."""


class VectorFollower:
    """A thread that embeds every new commit, so that no recall has to.

    A server has one (`db.embed_in_background()`). It also indexes names after a bulk load. While it
    runs, a recall uses the vectors that exist and embeds only the newest few visible nodes itself;
    the others are found by words and names until the thread has embedded them.
    """

    def __init__(self, vectors: Vectors, follow_names: Callable[[], None]) -> None:
        self._vectors = vectors
        self._follow_names = follow_names
        self._stop = threading.Event()
        vectors.is_followed = True
        self._thread = threading.Thread(target=self._run, name="worlddb-vectors", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause_s = LOOK_S
        while not self._stop.wait(pause_s):
            pause_s = LOOK_S
            began = time.perf_counter()
            try:
                self._follow_names()
                self._vectors.catch_up(self._progress)
                pause_s = max(LOOK_S, min(RESTS * (time.perf_counter() - began), REST_S_MAX))
            except _StoppedError:
                return
            except WorldDBError as error:
                log.warning("vectors wait: %s", error)
                pause_s = RETRY_S

    def _progress(self, done: int, total: int) -> None:
        if self._stop.is_set():
            raise _StoppedError

    def stop(self) -> None:
        """Stop the thread; vectors made so far are kept."""
        self._stop.set()
        self._thread.join(STOPPING_S_MAX)
        self._vectors.is_followed = False


class RecallCounter:
    """Counts how often each memory of one open store was recalled, and saves in batches.

    A thread saves the counts, without a commit: when there are many, after some time, and when the
    store closes. Counts that cannot be saved are kept. A read-only store counts nothing.
    """

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._unsaved: dict[bytes, tuple[int, int]] = {}
        self._since = 0
        self._saver: threading.Thread | None = None
        self._is_off = store.read_only

    def silent(self) -> RecallCounter:
        """Return a counter of the same store that counts nothing."""
        found = RecallCounter(self._store, self._clock)
        found._is_off = True
        return found

    def note(self, ids: Iterable[bytes]) -> None:
        """Count memories as recalled now. Never waits for the disk, and never raises."""
        if self._is_off:
            return
        now = self._clock()
        with self._lock:
            unsaved = self._unsaved
            if not unsaved:
                self._since = now
            for ident in ids:
                count, _ = unsaved.get(ident, (0, 0))
                unsaved[ident] = count + 1, now
            is_due = len(unsaved) >= UNSAVED_MAX or now - self._since >= SAVE_EVERY_MICROS
            if not is_due or self._saver is not None:
                return
            saver = threading.Thread(target=self._save, name="worlddb-recalls", daemon=True)
            self._saver = saver
        try:
            saver.start()
        except RuntimeError:  # No thread can start, or the interpreter is ending.
            with self._lock:
                self._saver = None

    def _save(self) -> None:
        try:
            self.flush()
        finally:
            with self._lock:
                self._saver = None

    def flush(self, timeout_s: float = SAVE_TIMEOUT_S) -> bool:
        """Save the counts; return whether all are saved."""
        with self._lock:
            taken, self._unsaved = self._unsaved, {}
        if not taken or self._is_off:
            return True
        try:
            with self._store.derive(timeout_s) as session:
                places = session.lookup(list(taken))
                known = [(place.row, *taken[ident]) for ident, place in places.items()]
                session.sweep.add_recalls(known)
        except WorldDBError:
            with self._lock:
                for ident, (count, last) in self._unsaved.items():
                    more, _ = taken.get(ident, (0, 0))
                    taken[ident] = count + more, last
                self._unsaved = taken
                self._since = self._clock()
            return False
        return True

    def close(self) -> None:
        """Save the remaining counts if that is quick, and stop counting."""
        self.wait()
        self.flush(CLOSE_TIMEOUT_S)
        self._is_off = True

    def wait(self) -> None:
        """Wait until a running save has ended."""
        with self._lock:
            saver = self._saver
        if saver is not None:
            with suppress(RuntimeError):
                saver.join()
