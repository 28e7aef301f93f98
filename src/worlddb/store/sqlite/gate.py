"""Gate: counts the readers of a store, admits one writer at a time, and shuts behind the last.

An interrupt (Ctrl-C) may come between any two steps, also just before a block is left, so that the
end of the block never runs. Three rules keep that harmless:

G1  Who comes and who goes is one step of a dictionary each, which no interrupt can cut in two.
G2  Every wait looks again by itself, and has an end.
G3  A thread that comes back while it is noted as the writer is let in if its block is over: the
    function that opened the block has returned, or the interrupt that is being handled left it.
"""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import _GeneratorContextManager, contextmanager, nullcontext
from functools import partial
from types import FrameType, TracebackType

import apsw

from worlddb.errors import ConflictError, InvalidInputError

TIDYING_S_MAX = 5.0
"""How long the store's own upkeep may wait for its turn, or a writer for the upkeep."""
CLOSING_S_MAX = 60.0  # Longer than any usual call takes: then closing gives up and says why.
CLOSE_PAUSE_S = 0.002  # Between two looks of who closes; nobody notices.
LOOK_S = 0.02  # How often who waits looks again: an interrupt may have swallowed the wake-up.
GENERATOR = 0x20  # The flag of a generator's code (inspect.CO_GENERATOR).
_ENTER = _GeneratorContextManager.__enter__.__code__
_EXIT = _GeneratorContextManager.__exit__.__code__


class Turn:
    """The place of one block in the queue of writers; `leave` gives it up, also twice."""

    __slots__ = ("frames", "leave", "opener", "thread", "wake")

    def __init__(self, turns: dict[Turn, None]) -> None:
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

    def turn(self) -> Turn:
        """Return a place in the queue of writers, not taken yet."""
        return Turn(self._turns)

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

    def holds(self, turn: Turn) -> bool:
        """Return whether it is still this block's turn."""
        return next(iter(self._turns), None) is turn

    def is_mine(self) -> bool:
        """Return whether this thread is the writer."""
        first = next(iter(self._turns), None)
        if first is None or first.thread is not threading.current_thread():
            return False
        if first.is_over():
            first.leave()
            return False
        return True

    def pass_on(self, turn: Turn) -> None:
        """Wake the next writer, after a turn was left."""
        turn.forget()
        first = next(iter(self._turns), None)
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
