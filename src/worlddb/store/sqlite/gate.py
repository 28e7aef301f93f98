"""Gate: counts the readers of a store, admits one writer at a time, and closes when all are gone.

An interrupt (Ctrl-C) may come between any two steps, also just before a block ends, so that the end
of the block never runs. Three rules keep that harmless:

G1  Entering and leaving is one dictionary operation each, which no interrupt can split.
G2  Every wait checks its condition again by itself, and ends.
G3  A thread that is still recorded as the writer is admitted if its block is over: the function
    that opened the block has returned, or the interrupt being handled has left it.

`FileWatch` checks whether the files are still those that were opened. `Checkpointer` moves the log
into the file in turns of its own, so that no writer waits for it.
"""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import _GeneratorContextManager, contextmanager, nullcontext, suppress
from functools import partial
from queue import SimpleQueue
from types import FrameType, TracebackType

import apsw

from worlddb.errors import ConflictError, InvalidInputError, StorageError, WorldDBError
from worlddb.store.sqlite.branch_file import move_log, vfs_of
from worlddb.store.sqlite.file_encryption import StoreKey, unlocked

LOG_ENDS = ("-wal", "-shm")
TIDYING_S_MAX = 5.0
"""Seconds that the store's own upkeep waits for its turn, or a writer for the upkeep."""
LOG_BYTES_MIN = 32 << 20
"""Size at which a log is moved: frequent pages are moved once, and recovery stays fast."""
STOPPING_S_MAX = 30.0  # far longer than a checkpoint; then the thread is abandoned
TAIL_MAX = 200  # pages moved in one turn while writers wait: a millisecond or two
LOOK_PAGES = 512  # half a megabyte; between two checks of the free disk space
ROUNDS_MAX = 4  # then the rest is left to the next time
OTHERS_PATIENCE_MS = 10  # other processes wait for this lock, too; a later commit tries again
LOG_BYTES_MAX = 64 << 20  # size to which the log is cut after a large load
X_SYNC = 5
"""Index of `xSync` in a file's methods, after version, xClose, xRead, xWrite and xTruncate."""
CLOSING_S_MAX = 60.0  # longer than any usual call; then closing raises
CLOSE_PAUSE_S = 0.002  # between two checks while closing or waiting for the log
LOOK_S = 0.02  # between two checks of a waiting thread, as an interrupt may lose a wake-up
GENERATOR = 0x20  # The flag of a generator's code (inspect.CO_GENERATOR).
Identity = tuple[int, int]  # device and inode of a file
_ENTER = _GeneratorContextManager.__enter__.__code__
_EXIT = _GeneratorContextManager.__exit__.__code__


class Turn:
    """The place of one block in the queue of writers; `leave` gives it up, also twice."""

    __slots__ = ("frames", "joins", "leave", "opener", "thread", "wake")

    def __init__(self, turns: dict[Turn, None], joins: bool = False) -> None:
        self.joins = joins
        self.thread = threading.current_thread()
        self.wake = threading.Lock()
        self.wake.acquire()
        self.leave: Callable[[], None] = partial(turns.pop, self, None)
        self.frames, self.opener = _opener_of_block(inspect.currentframe())

    def is_over(self) -> bool:
        """Return whether the block has ended without calling `leave`."""
        if not self.thread.is_alive():
            return True
        if self.thread is threading.current_thread() and _was_left(self.frames):
            return True
        return has_returned(self.opener, self.thread)

    def forget(self) -> None:
        """Drop the frames, which would otherwise keep each other alive."""
        self.frames, self.opener = [], None


def _opener_of_block(frame: FrameType | None) -> tuple[list[FrameType], FrameType | None]:
    """Return the engine's generators around a block, and the frame that opened it."""
    own = []
    while frame is not None:
        is_ours = frame.f_globals.get("__name__", "").startswith("worlddb.")
        if is_ours and frame.f_code.co_flags & GENERATOR:
            own.append(frame)
        elif frame.f_code is not _ENTER and frame.f_globals is not globals():
            break
        frame = frame.f_back
    return own, frame


def function_of(frame: FrameType | None) -> FrameType | None:
    """Return the function that opened a block, through any number of generators."""
    while frame is not None and (frame.f_code is _ENTER or frame.f_code.co_flags & GENERATOR):
        frame = frame.f_back
    return frame


def has_returned(opener: FrameType | None, thread: threading.Thread) -> bool:
    """Return whether a function of a thread has returned; a paused generator has not."""
    # Only the thread itself: reading the frames of others may deadlock.
    if thread is not threading.current_thread():
        return False
    frame = inspect.currentframe()
    while frame is not None:
        if frame is opener:
            return False
        frame = frame.f_back
    return opener is not None and opener.f_back is not None


def _was_left(frames: list[FrameType]) -> bool:
    """Return whether the error being handled was raised while one of the blocks was left."""
    error = sys.exc_info()[1]
    while error is not None:
        trace: TracebackType | None = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code in (_ENTER, _EXIT):
                block = getattr(trace.tb_frame.f_locals.get("self"), "gen", None)
                if getattr(block, "gi_frame", None) in frames:
                    return True
            trace = trace.tb_next
        error = error.__context__
    return False


class Gate:
    """Counts readers, admits one writer at a time, and closes when all are gone."""

    def __init__(self, path: str, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._readers: dict[object, threading.Thread] = {}
        self._turns: dict[Turn, None] = {}
        self._tidier: Turn | None = None
        self._closed = False
        self._long_lived: dict[apsw.Connection, None] = {}

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count as a reader for the length of the block."""
        me = object()
        try:
            self._readers[me] = threading.current_thread()
            self.check_open()
            yield
        finally:
            self._readers.pop(me, None)

    @contextmanager
    def staying(self) -> Iterator[None]:
        """Keep the store open for the length of the block, even if closing has begun."""
        me = object()
        try:
            self._readers[me] = threading.current_thread()
            yield
        finally:
            self._readers.pop(me, None)

    def turn(self, joins: bool = False) -> Turn:
        """Return a place in the queue of writers, not taken yet.

        A writer that `joins` continues in the transaction that the one before left open.
        """
        return Turn(self._turns, joins)

    def next_joins(self, turn: Turn) -> bool:
        """Return whether the writer behind the present one would join."""
        return any(other.joins for other in list(self._turns)[1:2]) and self.holds(turn)

    def is_idle(self) -> bool:
        """Return whether no thread writes or waits to write."""
        if self._turns:
            self._drop_dead()
        return not self._turns

    def take(self, turn: Turn, timeout_s: float | None = None) -> None:
        """Wait for a writer's turn; the caller must then `leave` and `pass_on`.

        Raises:
            InvalidInputError: the store is closed, or this thread is the writer already.
            ConflictError: another thread stayed the writer for longer than the time-out.
        """
        patience_s = self._timeout_s if timeout_s is None else timeout_s
        self._end_own(
            turn, "this thread already has a transaction open; use that one, or end it first"
        )
        self.check_open()
        self._turns[turn] = None
        if not self._wait_for_turn(turn, patience_s):
            waited = f"longer than {patience_s:g} s" if patience_s else "too long"
            raise ConflictError(
                f"{self._path}: another thread's transaction took {waited}; try again"
            )
        self.check_open()

    def _first(self) -> Turn | None:
        """Return the present turn; the copy of the list is one step, while others come and go."""
        return next(iter(list(self._turns)), None)

    def holds(self, turn: Turn) -> bool:
        """Return whether a block still has the turn."""
        return self._first() is turn

    def is_mine(self) -> bool:
        """Return whether this thread is the writer."""
        first = self._first()
        if first is None or first.thread is not threading.current_thread():
            return False
        if first.is_over():
            first.leave()
            return False
        return True

    def pass_on(self, turn: Turn) -> None:
        """Wake the next writer after a turn was left."""
        turn.forget()
        first = self._first()
        if first is not None and first.wake.locked():
            first.wake.release()

    @contextmanager
    def writing(self, timeout_s: float | None = None) -> Iterator[Turn]:
        """Be the only writer for the length of the block; errors as of `take`."""
        turn = self.turn()
        try:
            self.take(turn, timeout_s)
            yield turn
        finally:
            turn.leave()
            self.pass_on(turn)

    @contextmanager
    def settling(self) -> Iterator[None]:
        """Be the only writer to finish what was begun, even if closing has begun."""
        turn = self.turn()
        try:
            self._turns[turn] = None
            while not self._wait(turn, TIDYING_S_MAX):
                pass  # Every writer ends at some time.
            yield
        finally:
            turn.leave()
            self.pass_on(turn)

    @contextmanager
    def tidying(self) -> Iterator[None]:
        """Be the only writer for a short upkeep of the store."""
        turn = self._tidier = self.turn()
        try:
            self.take(turn, TIDYING_S_MAX)
            yield
        finally:
            turn.leave()
            self._tidier = None
            self.pass_on(turn)

    def _end_own(self, turn: Turn | None, complaint: str) -> None:
        """Drop the turn of a finished block of this thread; refuse if a block is not finished."""
        for other in list(self._turns):
            if other is not turn and other.thread is threading.current_thread():
                if not other.is_over():
                    raise InvalidInputError(complaint)
                other.leave()

    def _wait_for_turn(self, turn: Turn, patience_s: float) -> bool:
        """Wait until a writer may enter; one without patience still waits for upkeep."""
        if self._wait(turn, patience_s):
            return True
        is_ours = self._tidier is not None and self.holds(self._tidier)
        return is_ours and self._wait(turn, TIDYING_S_MAX)

    def _wait(self, turn: Turn, patience_s: float) -> bool:
        deadline = time.monotonic() + patience_s
        while not self.holds(turn):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            if not turn.wake.acquire(timeout=min(left_s, LOOK_S)):
                self._drop_dead()
        return True

    def _drop_dead(self) -> None:
        """Forget blocks that nobody can leave any more: the thread or the function has ended."""
        for turn in list(self._turns):
            if turn.is_over():
                turn.leave()
        for reader, thread in list(self._readers.items()):
            if not thread.is_alive():
                self._readers.pop(reader, None)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclude every other thread for the length of the block; the writer may enter."""
        with nullcontext() if self.is_mine() else self.writing():
            yield

    def adopt(self, con: apsw.Connection) -> None:
        """Record a connection outside the count, to close it with the store."""
        self._long_lived[con] = None

    def drop(self, con: apsw.Connection) -> None:
        """Forget an adopted connection."""
        self._long_lived.pop(con, None)

    def close(self) -> list[apsw.Connection]:
        """Admit nobody more, wait until all have left, and return the adopted connections.

        Raises:
            InvalidInputError: this thread has a transaction open.
            ConflictError: another thread did not leave in time.
        """
        self._end_own(
            None, "this thread has a transaction open; leave its block, then close the store"
        )
        self._closed = True
        deadline = time.monotonic() + CLOSING_S_MAX
        me = threading.current_thread()
        while any(thread is not me for thread in [*self._readers.values()]) or self._turns:
            self._drop_dead()
            if time.monotonic() > deadline:
                raise ConflictError(
                    f"{self._path}: another thread has been using the store for {CLOSING_S_MAX:g} s"
                    ", so it is not closed yet; end that call, then close the store again"
                )
            time.sleep(CLOSE_PAUSE_S)
        return list(self._long_lived)

    def check_open(self) -> None:
        """Raise InvalidInputError if the store is closed."""
        if self._closed:
            raise InvalidInputError(f"{self._path}: is closed; open it again")


def close_connection(con: apsw.Connection, path: str) -> None:
    """Close a connection, after another thread's call in it has ended."""
    deadline = time.monotonic() + CLOSING_S_MAX
    while True:
        try:
            return con.close()
        except apsw.ThreadingViolationError:
            if time.monotonic() > deadline:
                raise ConflictError(
                    f"{path}: another thread is still inside a call; close the store again later"
                ) from None
        time.sleep(CLOSE_PAUSE_S)


class LostLogError(StorageError):
    """The log beside a store was deleted, moved or replaced while the store was open."""


class FileWatch:
    """The paths of a store's files, and the files they led to when the store was opened.

    A store is a file and the log beside it (`-wal`, with its index `-shm`). SQLite keeps writing to
    the files it has opened, wherever their paths lead by now. Nobody would find these writes, so
    they must not be acknowledged.
    """

    def __init__(self, path: str, file: str | None, con: apsw.Connection) -> None:
        """Record the files of an open connection."""
        self._path = path
        self._file = file
        self._found = None if file is None else _identity(os.stat(file))
        real = "" if file is None else os.path.realpath(file)
        # A read-only file may have no log.
        self._logs = [
            (real + end, _identity(os.stat(real + end)))
            for end in LOG_ENDS
            if file is not None and os.path.exists(real + end)
        ]
        moved = array("i", [0])
        if file is not None:
            con.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, moved.buffer_info()[0])
        if moved[0]:
            raise StorageError(f"{path}: was replaced while it was being opened; open it again")

    def refuse_lost(self, *, to_read: bool = False) -> None:
        """Raise StorageError if a path leads to another file or none, or the file has two names.

        A second name does not matter for reading.
        """
        if self._file is None or self._found is None:
            return
        about = _look(self._file, self._found)
        if about is None:
            raise StorageError(
                f"{self._path}: was deleted, moved or replaced while it was open here, so nothing "
                "is written any more; put the right file in its place (a backup, by 'worlddb "
                "restore') and start this program again"
            )
        if about.st_nlink > 1 and not to_read:
            raise StorageError(f"{self._path}: {second_name(self._path)}")
        for log, found in self._logs:
            if found is not None and _look(log, found) is None:
                raise LostLogError(
                    f"{self._path}: its log {os.path.basename(log)} was deleted, moved or replaced "
                    "while the store was open, so nothing is written any more; end this program "
                    "(closing the store moves what the log held into the file) and start it again"
                )


def _look(path: str, found: Identity) -> os.stat_result | None:
    """Return the file at a path; None if it is not the recorded one."""
    try:
        about = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # A folder that may no longer be read says nothing about the file.
        return os.stat_result((0, found[1], found[0], 1, 0, 0, 0, 0, 0, 0))
    return about if _identity(about) == found else None


def _identity(about: os.stat_result) -> Identity | None:
    """Return the identity of a file; None on a file system without inode numbers."""
    return (about.st_dev, about.st_ino) if about.st_ino else None


def second_name(path: str) -> str:
    """Return an error text about a file with two names, with a remedy."""
    return (
        "has a second name (a hard link), and each name would get a log of its own, so it is not "
        f"opened or written; remove the other name (find FOLDER -samefile {path}), or copy the "
        "store by 'worlddb backup' instead of linking it"
    )


def sync_file(con: apsw.Connection) -> None:
    """Wait until everything moved into the file is on the disk.

    Through SQLite's own handle, by its public table of methods: to open and close the file a second
    time would drop this process's locks.
    """
    import ctypes

    words = ctypes.POINTER(ctypes.c_void_p)
    file = ctypes.c_void_p()
    con.file_control("main", apsw.SQLITE_FCNTL_FILE_POINTER, ctypes.addressof(file))
    methods = ctypes.cast(ctypes.cast(file, words)[0], words)
    sync = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(methods[X_SYNC] or 0)
    sync(file, apsw.SQLITE_SYNC_NORMAL)


class Checkpointer:
    """A thread that sleeps until the log has grown, then moves it into the file.

    A log restarts only if all of it has been moved when the next writer begins. If writers never
    pause, the log would grow without limit. So most of the log is moved beside the writers, and the
    rest in a turn of its own. If the disk is nearly full, writers wait for the thread, because a
    log that outruns it would take the room of the file.
    """

    def __init__(
        self,
        path: str,
        key: StoreKey | None,
        writer: apsw.Connection,
        gate: Gate,
        watch: FileWatch,
    ) -> None:
        self._path = path
        self._key = key
        self._gate = gate
        self._watch = watch
        # Not an Event: an interrupt inside `set` would leave the thread asleep.
        self._due: SimpleQueue[None] = SimpleQueue()
        self._is_due = False
        self._is_behind = False
        self._stopped = False
        self._thread: threading.Thread | None = None
        self._pages = 0
        self._tried = 0
        self._looked = 0
        self._tight = False
        self.follow(writer)

    def follow(self, writer: apsw.Connection) -> None:
        """Watch the commits of a connection."""
        self._pages_min = LOG_BYTES_MIN // int(str(writer.pragma("page_size")))
        writer.pragma("journal_size_limit", LOG_BYTES_MAX)
        writer.set_wal_hook(self._after_commit)

    def _after_commit(self, con: apsw.Connection, database: str, pages: int) -> int:
        if pages < self._pages:
            self._tried = self._looked = 0  # The log has restarted.
        self._pages = pages
        grown = pages - self._tried
        is_tight = grown >= TAIL_MAX and self._is_tight(pages)
        self._is_behind = is_tight and self._is_due
        if (is_tight or grown >= self._pages_min) and not self._is_due:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="worlddb-checkpoint", daemon=True
                )
                self._thread.start()
            self._is_due = True
            self._due.put(None)
        return apsw.SQLITE_OK

    def let_catch_up(self) -> None:
        """Wait briefly if the log outruns the thread on a nearly full disk."""
        deadline = time.monotonic() + TIDYING_S_MAX if self._is_behind else 0.0
        while self._is_behind and self._is_due and time.monotonic() < deadline:
            time.sleep(CLOSE_PAUSE_S)
        self._is_behind = False

    def _is_tight(self, pages: int) -> bool:
        """Return whether the disk is nearly full: the file needs as much room as its log.

        The disk is checked once per so many pages; on a nearly full disk, at each commit.
        """
        if not self._tight and pages - self._looked < LOOK_PAGES:
            return False
        self._looked = pages
        try:
            free = shutil.disk_usage(os.path.dirname(self._path)).free
        except OSError:
            return False
        self._tight = free < 2 * pages * LOG_BYTES_MIN // self._pages_min
        return self._tight

    def _run(self) -> None:
        con: apsw.Connection | None = None
        try:
            while not self._stopped:
                self._due.get()
                # A failed checkpoint loses nothing: the log stays, and a later commit tries again.
                with suppress(apsw.Error, WorldDBError):
                    self._watch.refuse_lost()  # A new connection would start a new log.
                    con = con or self._connect()
                    if not self._stopped:
                        self._move(con)
                self._tried = self._pages
                self._is_due = False
        finally:
            if con is not None:
                con.close()

    def _connect(self) -> apsw.Connection:
        con = unlocked(self._path, self._key, vfs=vfs_of(self._path, self._key))
        con.set_busy_timeout(OTHERS_PATIENCE_MS)
        return con

    def _move(self, con: apsw.Connection) -> None:
        """Move the log into the file, all of it if readers allow."""
        # A connection that has read nothing does not know the log, and would move nothing.
        con.pragma("user_version")
        for _ in range(ROUNDS_MAX):
            _, moved = move_log(self._path, con, apsw.SQLITE_CHECKPOINT_PASSIVE, self._key)
            # SQLite waits for the disk only with the last page; here no writer waits for it.
            sync_file(con)
            if self._pages - moved <= TAIL_MAX:
                with self._gate.tidying():
                    move_log(self._path, con, apsw.SQLITE_CHECKPOINT_FULL, self._key)
                return

    def stop(self) -> None:
        """End the thread; the last connection to close moves the rest of the log."""
        self._stopped = True
        self._due.put(None)
        with suppress(RuntimeError):  # An interrupt may have come before the thread began.
            if self._thread is not None:
                self._thread.join(STOPPING_S_MAX)
