"""Commit groups: blocks that wait together share one database transaction and one fsync.

    block ─▶ block ─▶ block ─▶ COMMIT ─▶ all three are acknowledged

A block that has ended checks whether the next writer in the queue may join. If so, it leaves the
database transaction open, passes the turn on, and waits. Each further block runs inside a
savepoint, so a block that fails undoes only its own part. A block without a follower commits for
all. Nothing is acknowledged before the COMMIT.

One thread can write many blocks by itself (`gathering`): none of them waits, and they are committed
at the end. Threads that hand the turn to each other pay a switch for each block; one thread does
not.

Interrupts are handled as in `gate`: a waiting thread checks again by itself, and commits a group
that no other thread will commit.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Protocol

from worlddb.errors import StorageError
from worlddb.store.sqlite.gate import LOOK_S, Gate, Turn

GROUP_MAX = 32
"""Blocks per group. The first waits for the last: 32 short writes take less than a tenth of a
second, and an fsync shared by more would save little."""

Mark = tuple[int, bytes]
"""Number and hash of a commit."""


class GroupTransaction(Protocol):
    """The database transaction that a group shares."""

    @property
    def is_open(self) -> bool: ...
    def begin(self) -> None: ...
    def begin_block(self) -> None: ...  # inside the transaction, after another block
    def end_block(self, is_nested: bool) -> None: ...  # whatever it wrote was accepted
    def undo_block(self) -> None: ...  # without an error if there is none
    def commit(self) -> None: ...
    def rollback(self) -> None: ...  # without an error
    def has(self, mark: Mark) -> bool: ...  # whether a commit can be read


class CommitGroup:
    """Finished blocks that wait for their shared COMMIT.

    `mark` is the last of their commits; `in_block` if a savepoint may be open.
    """

    __slots__ = ("error", "in_block", "is_over", "mark", "members")

    def __init__(self) -> None:
        self.members: list[Turn] = []
        self.mark: Mark | None = None
        self.in_block = False
        self.error: Exception | None = None
        self.is_over = False

    def end(self, error: Exception | None = None) -> None:
        """Release the members: their blocks are durable, or have failed."""
        self.error = error
        self.is_over = True
        for turn in self.members:
            if turn.wake.locked():
                with suppress(RuntimeError):  # It has woken by itself just now.
                    turn.wake.release()


class GatheredBlocks:
    """The groups of the blocks that one thread writes without waiting for each.

    `began` is when the last block got its turn; at first, when the gathering began.
    """

    __slots__ = ("_told", "began", "groups")

    def __init__(self) -> None:
        self.groups: list[CommitGroup] = []
        self.began = time.monotonic()
        self._told = 0

    def note(self, group: CommitGroup) -> None:
        """Record the group of one more block."""
        if group not in self.groups[self._told :]:
            self.groups.append(group)

    def landing(self) -> Callable[[], None]:
        """Return a check of the blocks since the last call, for after the gathering."""
        groups = self.groups[self._told :]
        self._told = len(self.groups)
        return partial(refuse_unlanded, groups)


def refuse_unlanded(groups: Sequence[CommitGroup]) -> None:
    """Raise the error of the COMMIT of these groups, if there was one.

    Raises:
        Exception: nothing of the group was written.
    """
    for group in groups:
        if group.error is not None:
            raise type(group.error)(*group.error.args) from group.error


class SharedCommit:
    """The group with the open transaction, if any; used by the thread that has the turn."""

    def __init__(self, gate: Gate, transaction: GroupTransaction) -> None:
        self._gate = gate
        self._transaction = transaction
        self._open: CommitGroup | None = None
        self._gathered: dict[int, GatheredBlocks] = {}
        """By the identity of the thread that gathers."""

    @property
    def is_open(self) -> bool:
        """Whether finished blocks wait for a COMMIT."""
        return self._open is not None and self._transaction.is_open

    def begin(self) -> CommitGroup:
        """Begin a block, inside the open group or in a transaction of its own."""
        group = self._open
        if group is None:
            self._transaction.begin()
            group = CommitGroup()
        else:
            self._clear(group)
            group.in_block = True
            self._transaction.begin_block()
        if gathered := self._gathered.get(threading.get_ident()):
            gathered.began = time.monotonic()
        return group

    def hand_in(self, group: CommitGroup, turn: Turn, mark: Mark | None, stays: bool) -> None:
        """End a block: leave the COMMIT to the next writer if that one joins, or commit for all."""
        goes_on = stays and self._goes_on(group, turn, 1)
        if goes_on or group.in_block:
            self._transaction.end_block(group.in_block)
            group.in_block = False
        group.mark = mark or group.mark
        group.members.append(turn)
        if goes_on:
            self._open = group
        else:
            self._land(group)

    def _goes_on(self, group: CommitGroup, turn: Turn, more: int = 0) -> bool:
        if len(group.members) + more >= GROUP_MAX:
            return False
        if threading.get_ident() in self._gathered:
            return turn.joins and self._gate.holds(turn)
        return self._gate.next_joins(turn)

    @contextmanager
    def gathering(self) -> Iterator[GatheredBlocks]:
        """Commit the joining blocks of this thread at the end, or when another writer does so.

        None of them is durable before; then `landing` of each tells.
        """
        me = threading.get_ident()
        if me in self._gathered:
            raise AssertionError("this thread gathers blocks already")
        gathered = self._gathered[me] = GatheredBlocks()
        with self._gate.staying():
            try:
                yield gathered
            finally:
                del self._gathered[me]
                for group in gathered.groups:
                    if not group.is_over:
                        self._settle(group)

    def patience_s(self, full_s: float) -> float:
        """Return how long a block may wait for its turn.

        If a gathered block has waited in vain for the full time, the next ones do not wait: all
        their callers have waited with it.
        """
        gathered = self._gathered.get(threading.get_ident())
        is_used_up = gathered is not None and time.monotonic() - gathered.began >= full_s
        return 0.0 if is_used_up else full_s

    def take_back(self, turn: Turn, error: BaseException) -> None:
        """Undo only the block of a failed writer."""
        group = self._open
        if group is None:
            if self._transaction.is_open:
                self._transaction.rollback()
        elif not self._transaction.is_open:
            # The database has rolled back the whole transaction, for example because the disk is
            # full.
            if isinstance(error, Exception):
                self._open = None
                group.end(error)
        elif turn not in group.members:  # Otherwise an interrupt came after its end.
            self._clear(group)
            if not self._goes_on(group, turn):
                self.land_open()

    def _clear(self, group: CommitGroup) -> None:
        """Undo an unfinished block, if there is one."""
        if group.in_block:
            self._transaction.undo_block()
            group.in_block = False

    def land_open(self) -> None:
        """Commit the open group before other work begins; an error goes to its members."""
        group = self._open
        if group is not None:
            self._clear(group)
            with suppress(Exception):
                self._land(group)

    def _land(self, group: CommitGroup) -> None:
        transaction = self._transaction
        try:
            transaction.commit()
        except Exception as error:
            if transaction.is_open:
                transaction.rollback()
            self._open = None
            group.end(error)
            raise
        except BaseException:
            # An interrupt. If it came before the COMMIT, the other blocks are still committed.
            if transaction.is_open and len(group.members) > 1:
                self._open = group
            raise
        self._open = None
        group.end()

    def wait(self, group: CommitGroup, turn: Turn) -> None:
        """Wait until the group of a block is committed.

        Raises:
            Exception: the error of the COMMIT; nothing of the group was written.
        """
        gathered = self._gathered.get(threading.get_ident())
        if gathered is not None:
            gathered.note(group)
            return
        if group.is_over:
            return
        with self._gate.staying():
            while not group.is_over:
                if not turn.wake.acquire(timeout=LOOK_S) and self._gate.is_idle():
                    self._settle(group)
        refuse_unlanded((group,))

    def _settle(self, group: CommitGroup) -> None:
        """Commit a group that no other thread will, after a writer gave up or an error."""
        with self._gate.settling():
            if group.is_over:
                return
            if self._open is group and self._transaction.is_open:
                self.land_open()
                return
            # An interrupt came between the COMMIT and its acknowledgement.
            landed = group.mark is None or self._transaction.has(group.mark)
            self._open = None
            group.end(None if landed else StorageError("the commit was interrupted; write again"))
