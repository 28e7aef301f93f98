"""Processes on an encrypted store are killed; nothing is lost, or readable. Run by chaos.trials."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import worlddb
from crash import test_kill
from crash.test_kill import Witness
from encryption.encrypted_stores import OTHER, RAW, leaks, recalls, remember
from worlddb import Memory
from worlddb.audit.store_files import rekey, restore

WORDS = (b"Lisbon", b"lisbon", b"a diary", b"two birthdays")
"""What the writer of the kill trials writes."""
ROUNDS = int(os.environ.get("WORLDDB_TEST_KILLS", "2"))
SEED = int(os.environ.get("WORLDDB_TEST_SEED", "1"))
REKEYS = """
import sys
from worlddb.audit.store_files import rekey
path, *keys = sys.argv[1:]
print("ready", flush=True)
while True:
    rekey(path, key=keys[0], new_key=keys[1], keep=False)
    print("done", flush=True)
    keys.reverse()
"""


def plain_files(folder: Path) -> list[str]:
    """Return the files in a folder that hold what the writer wrote."""
    files = sorted(one for one in folder.iterdir() if one.is_file())
    return [one.name for one in files if any(word in one.read_bytes() for word in WORDS)]


def test_a_killed_writer_loses_nothing_and_leaves_no_plaintext(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_kill, "KEY", RAW.hex())
    monkeypatch.setenv("WORLDDB_TEST_KEY", RAW.hex())
    witness = Witness(tmp_path / "store.db")
    moments, total = random.Random(SEED), 0
    for number in range(ROUNDS):
        total += witness.kill(SEED + number, moments.choice((3, 8, 15)), moments.uniform(0, 0.02))
        assert plain_files(tmp_path) == []
    assert total >= ROUNDS * 3


def test_a_killed_rekey_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    remember(path, RAW)
    backup = tmp_path / "monday.sealed"
    with Memory(path, key=RAW, embedder="none") as memory:
        memory.db.backup(backup, sealed=True)
    keys, moments = [RAW.hex(), OTHER.hex()], random.Random(SEED)
    began = time.monotonic()
    for old, new in (keys, keys[::-1]):
        rekey(path, key=old, new_key=new, keep=False)
    change_s = (time.monotonic() - began) / 2
    for number in range(ROUNDS):
        program = subprocess.Popen(
            [sys.executable, "-c", REKEYS, str(path), *keys], stdout=subprocess.PIPE
        )
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == b"ready\n"
            for _ in range(number % 2):
                assert program.stdout.readline() == b"done\n"
            # Not a wait for anything: the moment of death is what varies, over a whole change.
            time.sleep(moments.uniform(0, 1.2 * change_s))
        finally:
            program.kill()
            program.communicate()
        fits = [key for key in keys if _opens(path, key)]
        assert len(fits) == 1
        again = tmp_path / f"again-{number}.db"
        restore(backup, again, key=fits[0], keys=f"{path}-backup-keys")
        assert recalls(again, fits[0])
        assert leaks(tmp_path) == []
        keys = [*fits, *(key for key in keys if key not in fits)]
    rekey(path, key=keys[0], new_key=keys[1], keep=False)  # And it goes on where it was.
    assert _opens(path, keys[1])


def _opens(path: Path, key: str) -> bool:
    try:
        with worlddb.open(path, key=key, create=False, embedder="none") as db:
            return db.check() == []
    except worlddb.StoreKeyError:
        return False
