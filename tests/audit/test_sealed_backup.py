"""Sealed backups: erasing reaches them, the rest comes back as it was, damage and lost keys are told."""  # noqa: E501

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

import pytest

from worlddb import ConflictError, CorruptionError, Memory, StorageError, StoreKeyError
from worlddb.audit.backup_keys import KEYS_END
from worlddb.audit.store_files import repeated_erasures, restore
from worlddb.embed.embedder import HashEmbedder
from worlddb.errors import FormatError
from worlddb.model.records import Commit

SECRET = "Zanzibar"


class Backed(NamedTuple):
    """A store, a sealed backup of it in another folder, and its last commit then."""

    store: Path
    backup: Path
    last: Commit
    secret: str

    @property
    def keys(self) -> Path:
        return Path(f"{self.store}{KEYS_END}")


def opened(path: Path) -> Memory:
    return Memory(path, embedder=HashEmbedder())


def leaks(*paths: Path) -> list[str]:
    """Return the files that have the secret word, however it is written."""
    needles = [SECRET.encode(), SECRET.lower().encode(), SECRET.encode("utf-16-le")]
    return [path.name for path in paths if any(word in path.read_bytes() for word in needles)]


def beside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}*"))


@pytest.fixture
def backed(tmp_path: Path) -> Backed:
    store, backup = tmp_path / "here" / "memory.db", tmp_path / "there" / "monday.sealed"
    store.parent.mkdir()
    backup.parent.mkdir()
    with opened(store) as memory:
        told = f"Ada hides the key in {SECRET}."
        secret = memory.write(told, user_id="ada", metadata={"place": SECRET}, source=SECRET).id
        memory.write("I moved to Paris.", user_id="ada")
        memory.write("I moved to Lisbon.", user_id="ada")
        memory.write("Bob likes sailing.", user_id="bob")
        memory.recall(f"Who mentions {SECRET}?", user_id="ada")
        memory.db.backup(backup, sealed=True)
        last = memory.db.log(limit=1, newest_first=True)[0]
    return Backed(store, backup, last, str(secret))


def erase_secret(backed: Backed) -> None:
    with opened(backed.store) as memory:
        memory.db.erase(backed.secret)


def exported(path: Path) -> list[str]:
    with opened(path) as memory:
        assert memory.db.check() == []
        return list(memory.db.export())


def test_a_sealed_backup_comes_back_with_every_hash(backed: Backed, tmp_path: Path) -> None:
    target = tmp_path / "new.db"
    last = restore(backed.backup, target, keys=backed.keys)
    assert (last, repeated_erasures(last)) == (backed.last, 0)
    assert exported(target) == exported(backed.store)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_backup_and_keys_show_no_text_and_only_their_owner_reads_them(backed: Backed) -> None:
    assert leaks(backed.backup, backed.keys) == []
    assert leaks(backed.store) == ["memory.db"]  # The search for the word does find it.
    for path in (backed.backup, backed.keys):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_erased_memory_does_not_come_back(backed: Backed) -> None:
    erase_secret(backed)
    last = restore(backed.backup, backed.store, replace=True)
    assert last.seq == backed.last.seq + 1
    assert repeated_erasures(last) > 0
    lines = exported(backed.store)
    assert not any(SECRET in line for line in lines)
    assert leaks(*beside(backed.store), backed.backup) == []
    with opened(backed.store) as memory:
        assert memory.db.get(backed.secret).erased
        assert memory.recall("Where do I live?", user_id="ada").hits
        assert memory.recall("sailing", user_id="bob").hits[0].node.content == "Bob likes sailing."
        held = memory.recall(f"Who mentions {SECRET}?", user_id="ada").hits
        assert not any(SECRET in hit.node.content for hit in held)
        # All commits but the last one have the hashes that they had.
        assert memory.db.log()[backed.last.seq].hash == backed.last.hash
    assert leaks(*beside(backed.store)) == []


def test_an_erased_person_does_not_come_back(backed: Backed) -> None:
    with opened(backed.store) as memory:
        erased = memory.erase(user_id="ada", confirm=True).ids
    last = restore(backed.backup, backed.store, replace=True)
    assert repeated_erasures(last) == len(erased)
    with opened(backed.store) as memory:
        assert memory.db.check() == []
        assert all(memory.db.get(ident).erased for ident in erased)
        texts = "".join(memory.db.export())
        assert not any(word in texts for word in (SECRET, "Paris", "Lisbon", '"ada"'))
        # What came back can be written, erased and backed up again.
        memory.write("Bob sold his boat.", user_id="bob")
        memory.db.backup(backed.backup.with_name("tuesday.sealed"), sealed=True)
    again = restore(backed.backup.with_name("tuesday.sealed"), backed.store, replace=True)
    assert repeated_erasures(again) == 0


def test_keys_that_a_killed_erasure_left_go_with_the_next(backed: Backed) -> None:
    kept = backed.keys.read_bytes()
    erase_secret(backed)
    backed.keys.write_bytes(kept)  # As if it had been killed after its commit.
    with opened(backed.store) as memory:
        assert memory.db.erase(backed.secret).commit is None
    assert repeated_erasures(restore(backed.backup, backed.store, replace=True)) > 0
    assert leaks(*beside(backed.store)) == []


def erase_and_fail(memory: Memory, ident: str) -> None:
    with memory.db.transaction() as tx:
        tx.erase([ident])
        raise KeyError


def test_a_transaction_that_erases_destroys_the_keys_when_it_lands(backed: Backed) -> None:
    kept = backed.keys.read_bytes()
    with opened(backed.store) as memory:
        with pytest.raises(KeyError):
            erase_and_fail(memory, backed.secret)
        assert backed.keys.read_bytes() == kept  # Nothing was erased.
        with memory.db.transaction() as tx:
            tx.erase([backed.secret])
            assert backed.keys.read_bytes() == kept
        assert backed.keys.read_bytes() != kept
    assert repeated_erasures(restore(backed.backup, backed.store, replace=True)) > 0
    assert leaks(*beside(backed.store)) == []


def test_of_the_older_of_two_backups_only_the_erased_memory_is_lost(backed: Backed) -> None:
    """By the keys as they are now; a copy of them from before still has everything."""
    newer = backed.backup.with_name("tuesday.sealed")
    before = backed.keys.with_name("keys-of-monday")
    before.write_bytes(backed.keys.read_bytes())
    with opened(backed.store) as memory:
        kept = memory.write("Ada keeps bees.", user_id="ada").id
        memory.db.backup(newer, sealed=True)
    erase_secret(backed)
    for number, backup in enumerate((backed.backup, newer)):
        target = backed.store.with_name(f"restored-{number}.db")
        restore(backup, target, keys=backed.keys)
        with opened(target) as memory:
            texts = {one.content for one in memory.list(user_id="ada", include_retired=True)}
            assert not any(SECRET in text for text in texts)
            assert {"I moved to Paris.", "I moved to Lisbon."} <= texts
            assert ("Ada keeps bees." in texts) == (backup == newer)
            assert [one.content for one in memory.list(user_id="bob")] == ["Bob likes sailing."]
    with opened(backed.store.with_name("restored-1.db")) as memory:
        assert memory.db.get(kept).content == "Ada keeps bees."
    target = backed.store.with_name("with-old-keys.db")
    restore(backed.backup, target, keys=before)
    with opened(target) as memory:
        assert SECRET in memory.db.get(backed.secret).content


def test_an_old_copy_of_the_keys_brings_nothing_back_beside_newer_ones(
    backed: Backed, tmp_path: Path
) -> None:
    copy = tmp_path / "copied-keys"
    copy.write_bytes(backed.keys.read_bytes())
    erase_secret(backed)
    assert repeated_erasures(restore(backed.backup, backed.store, replace=True, keys=copy)) > 0
    assert leaks(*beside(backed.store)) == []


def test_keys_that_are_given_are_beside_the_store_from_then_on(
    backed: Backed, tmp_path: Path
) -> None:
    moved = Backed(tmp_path / "new.db", backed.backup, backed.last, backed.secret)
    restore(backed.backup, moved.store, keys=backed.keys)
    erase_secret(moved)
    assert repeated_erasures(restore(backed.backup, moved.store, replace=True)) > 0


def test_a_link_to_the_keys_stays_one(backed: Backed, tmp_path: Path) -> None:
    elsewhere = tmp_path / "stick"
    os.rename(backed.keys, elsewhere)
    backed.keys.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    erase_secret(backed)
    assert backed.keys.is_symlink()
    assert elsewhere.read_bytes() != before


def test_missing_wrong_old_and_damaged_keys_are_told(backed: Backed, tmp_path: Path) -> None:
    target = tmp_path / "new.db"
    with pytest.raises(StoreKeyError, match="no keys of sealed backups beside the store"):
        restore(backed.backup, target)
    with opened(tmp_path / "other.db") as memory:
        memory.write("Eve waits.", user_id="eve")
        memory.db.backup(tmp_path / "other.sealed", sealed=True)
    others = tmp_path / f"other.db{KEYS_END}"
    with pytest.raises(StoreKeyError, match="was sealed by other keys"):
        restore(backed.backup, tmp_path / "a.db", keys=others)
    with pytest.raises(ConflictError, match="has the keys of other backups"):
        restore(backed.backup, tmp_path / "other.db", keys=backed.keys, replace=True)
    old = tmp_path / "old-keys"
    old.write_bytes(backed.keys.read_bytes())
    with opened(backed.store) as memory:
        memory.write("Something new.", user_id="ada")
        memory.db.backup(tmp_path / "newer.sealed", sealed=True)
    with pytest.raises(StoreKeyError, match="the keys are older than this backup"):
        restore(tmp_path / "newer.sealed", tmp_path / "b.db", keys=old)
    data = bytearray(backed.keys.read_bytes())
    data[60] ^= 1
    old.write_bytes(data)
    with pytest.raises(CorruptionError, match="damaged"):
        restore(backed.backup, tmp_path / "c.db", keys=old)
    old.write_bytes(b"no keys at all")
    with pytest.raises(FormatError, match="is not a file of backup keys"):
        restore(backed.backup, tmp_path / "d.db", keys=old)
    assert not any((tmp_path / f"{name}.db").exists() for name in ("new", "a", "b", "c", "d"))


def test_every_flipped_byte_and_every_cut_is_noticed(backed: Backed, tmp_path: Path) -> None:
    whole = backed.backup.read_bytes()
    changed = tmp_path / "changed.sealed"
    target = tmp_path / "new.db"
    step = max(1, len(whole) // 60)
    for at in range(0, len(whole), step):
        changed.write_bytes(whole[:at] + bytes((whole[at] ^ 1,)) + whole[at + 1 :])
        with pytest.raises((CorruptionError, StoreKeyError, FormatError)):
            restore(changed, target, keys=backed.keys)
        changed.write_bytes(whole[:at])
        with pytest.raises((CorruptionError, FormatError)):
            restore(changed, target, keys=backed.keys)
    changed.write_bytes(whole + b"more")
    with pytest.raises(CorruptionError, match="changed or cut off"):
        restore(changed, target, keys=backed.keys)
    assert not target.exists()


def test_a_large_store_takes_several_chunks(
    backed: Backed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worlddb.audit.sealed_backup.CHUNK_CHARS", 300)
    several = tmp_path / "several.sealed"
    with opened(backed.store) as memory:
        memory.db.backup(several, sealed=True)
    assert restore(several, tmp_path / "new.db", keys=backed.keys) == backed.last


def test_a_sealed_backup_replaces_nothing_and_needs_a_file(backed: Backed) -> None:
    with opened(backed.store) as memory, pytest.raises(StorageError, match="exists already"):
        memory.db.backup(backed.backup, sealed=True)
    with (
        Memory(":memory:", embedder="none") as memory,
        pytest.raises(StorageError, match="no place for the"),
    ):
        memory.db.backup(backed.backup.with_name("x"), sealed=True)
    assert sorted(path.name for path in backed.backup.parent.iterdir()) == ["monday.sealed"]
