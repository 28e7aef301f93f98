"""Sealed backups of a store on a server: the keys lie in a file that its address names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faces.command import in_process
from worlddb import InvalidInputError, Memory, StorageError
from worlddb.audit.store_files import repeated_erasures, restore

OPTIONS: dict[str, Any] = {"embedder": "none", "recluster": "off"}
TEXTS = {"ada": "Ada hides the key in Zanzibar.", "bob": "Bob likes sailing.", "eve": "Eve sings."}


@pytest.fixture(autouse=True)
def with_encryption() -> None:
    pytest.importorskip("cryptography")


def with_keys(address: str, keys: Path) -> str:
    return f"{address}{'&' if '?' in address else '?'}backup_keys={keys}"


def restored(backup: Path, keys: Path, target: Path) -> tuple[set[str], int]:
    """Return the texts that a backup brings back, and how many nodes it brings back as erased."""
    last = restore(backup, target, keys=keys)
    with Memory(target, **OPTIONS) as memory:
        assert memory.db.check() == []
        found = {one.text for user in TEXTS for one in memory.list(user_id=user) if one.text}
    return found, repeated_erasures(last)


def test_what_is_erased_leaves_every_sealed_backup(address: str, tmp_path: Path) -> None:
    keys, backup = tmp_path / "keys", tmp_path / "monday.sealed"
    with Memory(with_keys(address, keys), **OPTIONS) as memory:
        for user, text in TEXTS.items():
            memory.write(text, user_id=user)
        memory.db.backup(backup, sealed=True)
        assert (keys.stat().st_mode & 0o777, backup.stat().st_mode & 0o777) == (0o600, 0o600)
        whole = keys.read_bytes()
        assert restored(backup, keys, tmp_path / "1.db") == (set(TEXTS.values()), 0)
        memory.erase(user_id="ada", confirm="ada")
    found, erased = restored(backup, keys, tmp_path / "2.db")
    assert found == {TEXTS["bob"], TEXTS["eve"]}
    assert erased > 0
    # A program that was not told of the keys erases; the next one that was destroys them.
    with Memory(address, **OPTIONS) as memory:
        memory.erase(user_id="bob", confirm="bob")
    assert restored(backup, keys, tmp_path / "3.db")[0] == {TEXTS["bob"], TEXTS["eve"]}
    with Memory(with_keys(address, keys), **OPTIONS) as memory:
        memory.db.backup(tmp_path / "tuesday.sealed", sealed=True)
    assert restored(backup, keys, tmp_path / "4.db")[0] == {TEXTS["eve"]}
    assert keys.read_bytes() != whole


def test_a_restored_store_goes_back_to_a_server(
    address: str, new_tenant: Callable[[], str], tmp_path: Path
) -> None:
    keys, backup, target = tmp_path / "keys", tmp_path / "monday.sealed", new_tenant()
    with Memory(with_keys(address, keys), **OPTIONS) as memory:
        memory.write(TEXTS["bob"], user_id="bob")
        root = memory.db.root_state
    done = in_process("backup", "--sealed", backup, "--db", with_keys(address, keys), "--json")
    assert (done.code, done.data["keys"]) == (0, str(keys)), done.err
    made = tmp_path / "made.db"
    assert in_process("restore", backup, "--db", made, "--keys", keys).code == 0
    assert in_process("copy", made, target).code == 0
    with Memory(target, **OPTIONS) as memory:
        assert memory.db.root_state == root
        assert [one.text for one in memory.list(user_id="bob")] == [TEXTS["bob"]]


def test_without_a_place_for_keys_nothing_is_sealed(address: str, tmp_path: Path) -> None:
    with Memory(address, **OPTIONS) as memory:
        with pytest.raises(StorageError, match="add backup_keys=/PATH/TO/FILE to the address"):
            memory.db.backup(tmp_path / "monday.sealed", sealed=True)
        assert "backup_keys" not in memory.db.path
    with pytest.raises(InvalidInputError, match="backup_keys: give a whole path"):
        Memory(with_keys(address, Path("keys")), **OPTIONS)
    assert list(tmp_path.iterdir()) == []
