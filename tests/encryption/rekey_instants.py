"""A change of the key dies at every system call; what it leaves is whole. Run by test_encryption.

One process changes the key. It is stopped at each of its system calls, and the folder is copied if
anything in it has changed: that is what a kill at this instant leaves.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import worlddb
from encryption.encrypted_stores import OTHER, RAW, leaks, recalls, remember
from worlddb import Memory, StoreKeyError
from worlddb.audit.store_files import rekey, restore

TRACE_ME, GO_TO_CALL, SET_OPTIONS = 0, 24, 0x4200  # As <sys/ptrace.h> numbers them.
MARK_CALLS = 1  # A stop at a system call is told from a stop by a signal.
AT_CALL = signal.SIGTRAP | 0x80

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this ptrace")


def _trace(request: int, process: int, data: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, process, 0, data) < 0:
        raise OSError(ctypes.get_errno(), "ptrace")


def _child(work: Callable[[], object]) -> int:
    """Start a process that waits to be led from one system call to the next."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _trace(TRACE_ME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        pytest.skip("this machine lets no process trace another")
    _trace(SET_OPTIONS, child, MARK_CALLS)
    return child


def _contents(folder: Path) -> dict[str, bytes]:
    # The index of the log is made anew by whoever comes after a crash.
    return {
        one.name: b"" if one.name.endswith("-shm") else one.read_bytes() for one in folder.iterdir()
    }


def instants(folder: Path, work: Callable[[], object]) -> Iterator[dict[str, bytes]]:
    """Yield each state that a folder is in while a process works on it."""
    child, seen, passed = _child(work), None, 0
    while True:
        _trace(GO_TO_CALL, child, passed)
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            assert os.waitstatus_to_exitcode(status) == 0
            return
        stop = os.WSTOPSIG(status)
        passed = 0 if stop in (AT_CALL, signal.SIGTRAP) else stop
        now = _contents(folder)
        if now != seen:
            seen = now
            yield now


def _fits(path: Path, key: bytes) -> bool:
    try:
        return recalls(path, key)
    except StoreKeyError:
        return False


@pytest.mark.parametrize("first", [RAW, OTHER])
def test_whatever_is_left_opens_by_one_key_and_can_be_changed_again(
    tmp_path: Path, first: bytes
) -> None:
    life, copy = tmp_path / "life", tmp_path / "copy"
    life.mkdir()
    store, left = life / "memory.db", copy / "memory.db"
    remember(store, RAW)
    count = changed = 0
    for files in instants(life, lambda: rekey(store, key=RAW, new_key=OTHER, keep=False)):
        count += 1
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name, data in files.items():
            (copy / name).write_bytes(data)
        assert leaks(copy) == []
        # The wrong key first, too; and None before both.
        with pytest.raises(StoreKeyError):
            worlddb.open(left, create=False, embedder="none")
        keys = (first, OTHER if first == RAW else RAW)
        (fitting,) = (key for key in keys if _fits(left, key))
        changed += fitting == OTHER
        new = RAW if fitting == OTHER else OTHER
        rekey(left, key=fitting, new_key=new, keep=False)
        with Memory(left, key=new, embedder="none", user_id="ada", audit_reads=True) as memory:
            assert len(memory.reads()) == 1
        assert {one.name for one in copy.iterdir()} <= {left.name, f"{left.name}-reads"}
    assert 0 < changed < count


@pytest.mark.parametrize(("old", "new"), [(RAW, OTHER), (None, RAW), (RAW, None)])
def test_sealed_backups_can_be_read_whenever_a_change_of_the_key_dies(
    tmp_path: Path, old: bytes | None, new: bytes | None
) -> None:
    life, copy, backup = tmp_path / "life", tmp_path / "copy", tmp_path / "monday.sealed"
    life.mkdir()
    store, left = life / "memory.db", copy / "memory.db"
    remember(store, old)
    with Memory(store, key=old, embedder="none") as memory:
        memory.db.backup(backup, sealed=True)
    seen: set[tuple[bytes | None, bytes]] = set()
    for files in instants(life, lambda: rekey(store, key=old, new_key=new, keep=False)):
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for name, data in files.items():
            (copy / name).write_bytes(data)
        fitting = new if _has_key(left, new) else old
        keys = files["memory.db-backup-keys"]
        if (fitting, keys) in seen:
            continue
        seen.add((fitting, keys))
        restore(backup, copy / "again.db", key=fitting, keys=f"{left}-backup-keys")
        assert recalls(copy / "again.db", fitting)
        rekey(left, key=fitting, new_key=OTHER if fitting != OTHER else RAW, keep=False)
    # The keys as they were, as both the old and the new key open them, and as they are at the end.
    assert len({keys for _, keys in seen}) >= 2
    assert {key for key, _ in seen} == {old, new}


def _has_key(path: Path, key: bytes | None) -> bool:
    try:
        worlddb.open(path, key=key, create=False, embedder="none").close()
    except StoreKeyError:
        return False
    return True
