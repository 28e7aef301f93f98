"""Gate: counts the readers of a store, admits one writer at a time, and shuts behind the last.

An interrupt (Ctrl-C) may come between any two steps, also just before a block is left, so that the
end of the block never runs. Three rules keep that harmless:

G1  Who comes and who goes is one step of a dictionary each, which no interrupt can cut in two.
G2  Every wait looks again by itself, and has an end.
G3  A thread that comes back while it is noted as the writer is let in if its block is over: the
    function that opened the block has returned, or the interrupt that is being handled left it.

`FileWatch` says whether the files behind the gate are still those that were opened. `Checkpointer`
moves the log into the file in turns of its own, off every writer's path.
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
"""How long the store's own upkeep may wait for its turn, or a writer for the upkeep."""
LOG_BYTES_MIN = 32 << 20
"""A log of this size is moved: pages written often are moved once, and a crash re-reads it fast."""
STOPPING_S_MAX = 30.0  # Far longer than a checkpoint takes; then the thread is left behind.
TAIL_MAX = 200  # What one turn may move while writers wait: a millisecond or two.
LOOK_PAGES = 512  # Half a megabyte, of a disk that has as much room for the log as the log takes.
ROUNDS_MAX = 4  # A writer that is faster than the disk leaves the rest to the next time.
OTHERS_PATIENCE_MS = 10  # Other processes wait for this lock, too; a later commit tries again.
LOG_BYTES_MAX = 64 << 20  # What the log keeps of its size when it begins anew after a large load.
X_SYNC = 5
"""Where `xSync` is in a file's methods, after version, xClose, xRead, xWrite and xTruncate."""
CLOSING_S_MAX = 60.0  # Longer than any usual call takes: then closing gives up and says why.
CLOSE_PAUSE_S = 0.002  # Between two looks of who closes, or waits for the log; nobody notices.
LOOK_S = 0.02  # How often who waits looks again: an interrupt may have swallowed the wake-up.
GENERATOR = 0x20  # The flag of a generator's code (inspect.CO_GENERATOR).
Identity = tuple[int, int]  # Device and number of a file.
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
        """Return whether the block has ended without having said so."""
        if not self.thread.is_alive():
            return True
        if self.thread is threading.current_thread() and _was_left(self.frames):
            return True
        return has_returned(self.opener, self.thread)

    def forget(self) -> None:
        """Let go of the frames, which would keep each other alive."""
        self.frames, self.opener = [], None


def _opener_of_block(frame: FrameType | None) -> tuple[list[FrameType], FrameType | None]:
    """Return the engine's own generators that a block goes through, and who opened the block."""
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
    """Return the function that a block was opened for, by however many generators."""
    while frame is not None and (frame.f_code is _ENTER or frame.f_code.co_flags & GENERATOR):
        frame = frame.f_back
    return frame


def has_returned(opener: FrameType | None, thread: threading.Thread) -> bool:
    """Return whether a function of a thread has returned; a generator that pauses has not."""
    # Only its own thread asks: the frames of others can be had by a call that may deadlock.
    if thread is not threading.current_thread():
        return False
    frame = inspect.currentframe()
    while frame is not None:
        if frame is opener:
            return False
        frame = frame.f_back
    return opener is not None and opener.f_back is not None


def _was_left(frames: list[FrameType]) -> bool:
    """Return whether the error that is being handled came while one of the blocks was left."""
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
    """Counts readers, admits one writer at a time, and shuts when both are gone."""

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
        """Keep the store from being closed for the length of the block, also if closing began."""
        me = object()
        try:
            self._readers[me] = threading.current_thread()
            yield
        finally:
            self._readers.pop(me, None)

    def turn(self, joins: bool = False) -> Turn:
        """Return a place in the queue of writers, not taken yet.

        A writer that `joins` goes on in a transaction that the one before it has left open.
        """
        return Turn(self._turns, joins)

    def next_joins(self, turn: Turn) -> bool:
        """Return whether the writer behind the one whose turn it is would join."""
        return any(other.joins for other in list(self._turns)[1:2]) and self.holds(turn)

    def is_idle(self) -> bool:
        """Return whether nobody writes or waits for that."""
        if self._turns:
            self._drop_dead()
        return not self._turns

    def take(self, turn: Turn, timeout_s: float | None = None) -> None:
        """Wait until it is a writer's turn. The caller has to `leave` and `pass_on`, however.

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
            raise ConflictError(
                f"{self._path}: another thread's transaction took longer than "
                f"{patience_s:g} s; try again"
            )
        self.check_open()

    def _first(self) -> Turn | None:
        """Return the turn that it is; a list is made in one step, while others come and go."""
        return next(iter(list(self._turns)), None)

    def holds(self, turn: Turn) -> bool:
        """Return whether it is still this block's turn."""
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
        """Wake the next writer, after a turn was left."""
        turn.forget()
        first = self._first()
        if first is not None and first.wake.locked():
            first.wake.release()

    @contextmanager
    def writing(self, timeout_s: float | None = None) -> Iterator[Turn]:
        """Be the one writer for the length of the block; errors as of `take`."""
        turn = self.turn()
        try:
            self.take(turn, timeout_s)
            yield turn
        finally:
            turn.leave()
            self.pass_on(turn)

    @contextmanager
    def settling(self) -> Iterator[None]:
        """Be the one writer to end what was begun, also if closing the store has begun."""
        turn = self.turn()
        try:
            self._turns[turn] = None
            while not self._wait(turn, TIDYING_S_MAX):
                pass  # Every writer has an end.
            yield
        finally:
            turn.leave()
            self.pass_on(turn)

    @contextmanager
    def tidying(self) -> Iterator[None]:
        """Be the one writer for a moment that is the store's own business."""
        turn = self._tidier = self.turn()
        try:
            self.take(turn, TIDYING_S_MAX)
            yield
        finally:
            turn.leave()
            self._tidier = None
            self.pass_on(turn)

    def _end_own(self, turn: Turn | None, complaint: str) -> None:
        """Drop the turn of a block of this thread that is over; refuse if one is not."""
        for other in list(self._turns):
            if other is not turn and other.thread is threading.current_thread():
                if not other.is_over():
                    raise InvalidInputError(complaint)
                other.leave()

    def _wait_for_turn(self, turn: Turn, patience_s: float) -> bool:
        """Wait until a writer may pass; one without patience still waits while we tidy up."""
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
        """Forget blocks that nobody is left to leave: the thread or the function has ended."""
        for turn in list(self._turns):
            if turn.is_over():
                turn.leave()
        for reader, thread in list(self._readers.items()):
            if not thread.is_alive():
                self._readers.pop(reader, None)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other thread out for the length of the block; the writer passes."""
        with nullcontext() if self.is_mine() else self.writing():
            yield

    def adopt(self, con: apsw.Connection) -> None:
        """Remember a connection that lives outside the count, to close it with the store."""
        self._long_lived[con] = None

    def drop(self, con: apsw.Connection) -> None:
        """Forget an adopted connection."""
        self._long_lived.pop(con, None)

    def close(self) -> list[apsw.Connection]:
        """Admit nobody more, wait until all others are out, and return the adopted connections.

        Raises:
            InvalidInputError: this thread has a transaction open.
            ConflictError: another thread is still in there after a long time.
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
    """Close a connection, after the call of another thread that is still inside it has ended.

    Raises:
        ConflictError: that call has not ended after a long time.
    """
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
    """The paths of a store's files, and the files that they led to when the store was opened.

    A store is a file and the log beside it (`-wal`, with its index `-shm`). SQLite goes on writing
    to the files it has opened, whatever their paths lead to by now. Nobody would find what was
    written there, so it must not be acknowledged.
    """

    def __init__(self, path: str, file: str | None, con: apsw.Connection) -> None:
        """Look at the files of an open connection.

        Raises:
            StorageError: the file was replaced while the connection waited for it.
        """
        self._path = path
        self._file = file
        self._found = None if file is None else _identity(os.stat(file))
        real = "" if file is None else os.path.realpath(file)
        # Of a file that can only be read, there may be no log.
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
        """Raise StorageError if a path leads to another file by now, or to none, or got a twin.

        A twin does not matter to who only reads.

        Raises:
            LostLogError: it is the log. What the log held can still be moved into the file.
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
    """Return what a path leads to; None if that is not the file that was found there."""
    try:
        about = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        # A folder that we may not look into any more says nothing about the file.
        return os.stat_result((0, found[1], found[0], 1, 0, 0, 0, 0, 0, 0))
    return about if _identity(about) == found else None


def _identity(about: os.stat_result) -> Identity | None:
    """Return what tells a file from others; None on a file system that numbers none."""
    return (about.st_dev, about.st_ino) if about.st_ino else None


def second_name(path: str) -> str:
    """Return what is wrong with a file that has two names, and the way out."""
    return (
        "has a second name (a hard link), and each name would get a log of its own, so it is not "
        f"opened or written; remove the other name (find FOLDER -samefile {path}), or copy the "
        "store by 'worlddb backup' instead of linking it"
    )


def sync_file(con: apsw.Connection) -> None:
    """Wait until the disk has what was moved into the file.

    Through SQLite's own handle, by its public table of methods: to open the file a second time and
    close it again would take away the locks that this process has on it.
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

    A log begins anew only if all of it has been moved when the next writer starts. A writer that
    never rests writes on meanwhile, and the log would grow without end. So most of the log is moved
    beside the writers, and the little that is left in a turn of its own. Where the disk is nearly
    full, writers wait for the thread: a log that outruns it would take the room of the file.
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
        # No event: an interrupt inside `set` would leave the thread asleep.
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
        """Hear of the commits of a connection."""
        self._pages_min = LOG_BYTES_MIN // int(str(writer.pragma("page_size")))
        writer.pragma("journal_size_limit", LOG_BYTES_MAX)
        writer.set_wal_hook(self._after_commit)

    def _after_commit(self, con: apsw.Connection, database: str, pages: int) -> int:
        if pages < self._pages:
            self._tried = self._looked = 0  # The log has begun anew.
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
        """Wait a moment if the log outruns the thread on a disk that is nearly full."""
        deadline = time.monotonic() + TIDYING_S_MAX if self._is_behind else 0.0
        while self._is_behind and self._is_due and time.monotonic() < deadline:
            time.sleep(CLOSE_PAUSE_S)
        self._is_behind = False

    def _is_tight(self, pages: int) -> bool:
        """Return whether the disk is nearly full: the file needs as much room as its log has.

        The disk is looked at once for so many pages, but for each commit where it is nearly full.
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
                # A failed checkpoint loses nothing: the log stays, and a later commit asks again.
                with suppress(apsw.Error, WorldDBError):
                    self._watch.refuse_lost()  # A new connection would begin a new log.
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
        # A connection that has read nothing does not know of the log, and would move nothing.
        con.pragma("user_version")
        for _ in range(ROUNDS_MAX):
            _, moved = move_log(self._path, con, apsw.SQLITE_CHECKPOINT_PASSIVE, self._key)
            # SQLite waits for the disk only with the last page; here no writer waits with it.
            sync_file(con)
            if self._pages - moved <= TAIL_MAX:
                with self._gate.tidying():
                    move_log(self._path, con, apsw.SQLITE_CHECKPOINT_FULL, self._key)
                return

    def stop(self) -> None:
        """End the thread; the last connection to close checkpoints what is left."""
        self._stopped = True
        self._due.put(None)
        with suppress(RuntimeError):  # An interrupt may have come before the thread began.
            if self._thread is not None:
                self._thread.join(STOPPING_S_MAX)
