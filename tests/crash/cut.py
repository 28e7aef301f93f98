"""Dies at the nth write to the disk, for n = 1, 2, 3 … until a whole life fits in.

    python cut.py FOLDER HOW DURABILITY STEP

Each life has the files FOLDER/n/store.db and FOLDER/n/acks (one line for each acknowledged commit).
SQLite writes through a VFS of our own, which counts writes, syncs, truncations and deletions. HOW
says what is left at the nth:

    kill    everything that was handed to the operating system: a child process dies there
    power   what was synced, and a random part of what was not: the machine dies there

A machine that dies leaves nothing but its disk. So one process lives once, and at each nth write
the disk of that instant is copied, without what the power cut takes. To live anew up to
each write would show the same disks, and take a quarter of an hour.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import apsw

import worlddb
from worlddb.store.sqlite import gate as checkpoint
from worlddb.store.sqlite.database_file import PAGE_BYTES

COMMITS = 4
LIFE = "life"  # The folder of the process that lives to its end.


class Disk(apsw.VFS):
    """The real file system, with a count of what is done to it and a memory of what is unsynced.

    `at` is called before an operation that is due: the first one, then each `every`th.
    """

    def __init__(self, at: Callable[[Disk], None], first: int, every: int) -> None:
        self.at = at
        self.due = first
        self.every = every
        self.done = 0
        self.unsynced: list[tuple[str, int, bytes | None, bytes, int]] = []
        # One at a time, so that while the machine dies no other thread writes, or hears from its
        # disk that something is safe.
        self.turn = threading.RLock()
        super().__init__("cut", "unix", makedefault=True)

    def xOpen(  # noqa: N802
        self, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> apsw.VFSFile:
        return DiskFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        with self.turn:
            self.step()
            super().xDelete(filename, syncdir)

    def step(self) -> None:
        """Count one operation; what is due comes before it happens."""
        self.done += 1
        if self.done == self.due:
            self.due += self.every
            self.at(self)

    def note(self, path: str, offset: int, data: bytes | None) -> None:
        """Remember what a write (or, without data, a truncation) is about to replace."""
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset)
            before = file.read(-1 if data is None else len(data))
        self.unsynced.append((path, offset, data, before, size))

    def cut_into(self, folder: Path) -> None:
        """Copy the disk of this instant, without what a power cut takes."""
        luck = random.Random(self.done)
        shutil.copytree(folder.with_name(LIFE), folder)
        for path, offset, _, before, size in reversed(self.unsynced):
            with open(folder / Path(path).name, "r+b") as file:
                file.seek(offset)
                file.write(before)
                file.truncate(size)
        for path, offset, data, _, _ in self.unsynced:
            if luck.random() < 0.5:
                with open(folder / Path(path).name, "r+b") as file:
                    file.seek(offset)
                    file.write(data or b"")
                    if data is None:
                        file.truncate()


class DiskFile(apsw.VFSFile):
    """One open file on the counted disk."""

    def __init__(self, disk: Disk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        self.disk = disk
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self.disk.turn:
            self.disk.step()
            self.disk.note(self.path, offset, bytes(data))
            super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self.disk.turn:
            self.disk.step()
            self.disk.note(self.path, newsize, None)
            super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        with self.disk.turn:
            self.disk.step()
            super().xSync(flags)
            self.disk.unsynced = [item for item in self.disk.unsynced if item[0] != self.path]


def live(folder: Path, durability: str) -> None:
    """Make a store, commit a few times, close it, open it again and commit once more."""
    acks = os.open(folder / "acks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    path = folder / "store.db"
    with worlddb.open(path, durability=durability) as db:
        for number in range(COMMITS - 1):
            commit(db, acks, number)
    with worlddb.open(path, durability=durability) as db:
        commit(db, acks, COMMITS - 1)


def commit(db: worlddb.WorldDB, acks: int, number: int) -> None:
    """Make one commit and acknowledge it."""
    with db.transaction(bulk=number == 2) as tx:
        old = tx.create_node(type="Fact", name=f"old {number}", content="rain", source="a diary")
        new = tx.create_node(type="Fact", name=f"new {number}", content="sun")
        tx.write_edge("supersedes", new.id, old.id)
        if number == 1:
            # More children than one page holds, so that the commit writes a fork.
            drafts = [worlddb.NodeDraft(type="Turn", name=f"{i}") for i in range(130)]
            tx.create_nodes(drafts)
    assert tx.commit is not None
    os.write(acks, f"{tx.commit.seq} {tx.commit.hash} {new.id}\n".encode())


def run(root: Path, how: str, durability: str, step: int) -> None:
    """Make the lives that end at each `step`th write, and after them a whole one."""
    # So that one commit is enough for the background checkpoint to have work.
    checkpoint.LOG_BYTES_MIN = 20 * PAGE_BYTES
    if how == "kill":
        killed(root, durability, step)
        return
    life = root / LIFE
    life.mkdir()
    disk = Disk(lambda disk: disk.cut_into(root / f"{disk.done}"), 1, step)
    live(life, durability)
    life.rename(root / f"{disk.done + 1}")


def killed(root: Path, durability: str, step: int) -> None:
    """Live again and again, each life a little longer; stop after the first whole one."""
    for last in itertools.count(1, step):
        folder = root / f"{last}"
        folder.mkdir()
        child = os.fork()
        if child == 0:
            disk = Disk(lambda _: os.kill(os.getpid(), signal.SIGKILL), last, step)
            live(folder, durability)
            assert disk.done
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == 0:
            return
        if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
            raise SystemExit(f"life {last} ended with {status}")


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
