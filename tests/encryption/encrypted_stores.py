"""Encrypted stores: no file holds the plaintext, a wrong key is told. Run by test_encryption."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import worlddb
from contract.test_sqlite_store import TestFileStore as FileContract
from contract.test_sqlite_store import clock
from recall.search_stage import hold_at_most
from worlddb import CorruptionError, FormatError, Memory, StorageError, StoreKeyError
from worlddb.audit import store_files
from worlddb.audit.store_files import migrate, rekey, restore
from worlddb.embed.embedder import HashEmbedder
from worlddb.index.nearest import Nearest, saved_stamp
from worlddb.store.backends import open_store
from worlddb.store.interface import Store
from worlddb.store.sqlite import database_file, file_copy, file_encryption, sqlite_store
from worlddb.store.sqlite.file_encryption import StoreKey, is_encrypted

RAW = bytes(range(100, 132))
OTHER = bytes(range(32))
PASSPHRASE = "correct horse battery staple"
SECRET = "Zanzibar"
TEXT = f"Ada hides the key in {SECRET}."
QUESTION = f"Who mentions {SECRET}?"
FORMAT_1 = Path(__file__).parents[1] / "format" / "v1.db"
PAGE_BYTES = 1_024


def leaks(folder: Path) -> list[str]:
    """Return the files in a folder that hold the secret word, however it is written."""
    needles = [SECRET.encode(), SECRET.lower().encode(), SECRET.encode("utf-16-le")]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.name for path in files if any(word in path.read_bytes() for word in needles)]


def remember(path: Path, key: object) -> None:
    with Memory(path, key=key, embedder=HashEmbedder(), user_id="ada", audit_reads=True) as memory:
        memory.write(TEXT)
        assert SECRET in memory.recall(QUESTION).hits[0].node.content


def recalls(path: Path, key: object) -> bool:
    with Memory(path, key=key, embedder=HashEmbedder(), user_id="ada", create=False) as memory:
        assert memory.db.check() == []
        found = memory.recall(QUESTION).hits
        return bool(found) and SECRET in found[0].node.content


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passphrases less often: the number of rounds only costs time here."""
    monkeypatch.setattr(file_encryption, "ROUNDS", 1_000)


@pytest.fixture(params=["raw", "passphrase"])
def key(request: pytest.FixtureRequest) -> object:
    return RAW if request.param == "raw" else PASSPHRASE


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store" / "memory.db"
    path.parent.mkdir()
    remember(path, RAW)
    return path


def test_this_process_has_the_encrypting_build() -> None:
    assert file_encryption.encrypting_build()


class TestEncryptedStore(FileContract):
    """An encrypted file passes the contract of every store."""

    def make_store(self) -> Store:
        key = StoreKey(RAW)
        return open_store(self._path, clock=clock, durability="normal", busy_timeout_s=60, key=key)

    def insert_raw_edge(self, store: Store) -> None:
        con = file_encryption.unlocked(self._path, StoreKey(RAW))
        with closing(con):
            con.execute(
                "INSERT INTO edges VALUES (1, 1, x'00', 'refers_to', 1, 1, 1, 0, NULL, '{}', 0, 0, "
                "NULL)"
            )


def test_no_file_holds_the_plaintext_while_a_store_is_open_or_after(
    tmp_path: Path, key: object
) -> None:
    path = tmp_path / "memory.db"
    options: dict[str, Any] = {"embedder": HashEmbedder(), "user_id": "ada", "audit_reads": True}
    with Memory(path, key=key, **options) as memory:
        memory.write(TEXT)
        hold_at_most(memory.db, 0)  # So that the index of vectors is saved, too.
        assert SECRET in memory.recall(QUESTION).hits[0].node.content
        assert memory.db.recall(QUESTION)  # The index is of the whole store.
        assert (tmp_path / "memory.db-wal").stat().st_size > 0
        assert leaks(tmp_path) == []
        memory.db.backup(tmp_path / "copy.db")
    assert {one.name for one in tmp_path.iterdir()} == {
        *("memory.db", "memory.db-vectors", "memory.db-reads", "copy.db")
    }
    assert leaks(tmp_path) == []
    assert {one.stat().st_mode & 0o777 for one in tmp_path.iterdir()} == {0o600}
    assert recalls(path, key)
    assert recalls(tmp_path / "copy.db", key)
    with Memory(path, key=key, **options) as memory:
        assert [entry.question for entry in memory.reads()] == [QUESTION]
        # An export is plain: it is there to be read elsewhere.
        assert SECRET in "".join(memory.db.export())


def test_the_search_for_plaintext_finds_it_in_a_plain_store(tmp_path: Path) -> None:
    remember(tmp_path / "memory.db", None)
    assert leaks(tmp_path) == ["memory.db", "memory.db-reads"]


def test_what_sqlite_keeps_for_a_moment_stays_in_memory(store: Path) -> None:
    with worlddb.open(store, key=RAW) as db:
        with db.engine.store.read() as reader:
            assert reader.con.pragma("temp_store") == 2  # type: ignore[attr-defined]
        with db.engine.store.derive() as session:
            assert session.con.pragma("temp_store") == 2  # type: ignore[attr-defined]


def test_a_missing_or_wrong_key_is_told_and_changes_nothing(store: Path) -> None:
    before = store.read_bytes()
    for key in (OTHER, OTHER.hex(), "another passphrase"):
        with pytest.raises(StoreKeyError, match="the key does not fit"):
            worlddb.open(store, key=key)
    with pytest.raises(StoreKeyError, match="is encrypted; give its key"):
        worlddb.open(store)
    with pytest.raises(StoreKeyError, match="is encrypted; give its key"):
        worlddb.open(store, read_only=True)
    assert store.read_bytes() == before
    assert recalls(store, RAW)


def test_a_key_for_a_plain_store_or_for_one_in_memory_is_refused(tmp_path: Path) -> None:
    remember(tmp_path / "plain.db", None)
    with pytest.raises(StoreKeyError, match="is not encrypted, but a key is given"):
        worlddb.open(tmp_path / "plain.db", key=RAW)
    with pytest.raises(StoreKeyError, match="never written to a disk; leave the key out"):
        worlddb.open(":memory:", key=RAW)


def test_one_key_in_every_form(store: Path, tmp_path: Path) -> None:
    forms: list[tuple[str, bytes]] = [
        ("raw", RAW),
        ("hex", RAW.hex().encode()),
        ("line", RAW.hex().upper().encode() + b"\n"),
    ]
    assert recalls(store, RAW.hex())
    for name, data in forms:
        file = tmp_path / name
        file.write_bytes(data)
        assert recalls(store, file), name
    text = tmp_path / "passphrase"
    text.write_text(f"{PASSPHRASE}\n", encoding="utf-8")
    remember(tmp_path / "second.db", text)
    assert recalls(tmp_path / "second.db", PASSPHRASE)


def test_another_program_opens_it_by_the_passphrase(tmp_path: Path) -> None:
    remember(tmp_path / "memory.db", PASSPHRASE)
    with closing(apsw.Connection(str(tmp_path / "memory.db"))) as con:
        con.pragma("kdf_iter", file_encryption.ROUNDS)
        con.pragma("key", PASSPHRASE)
        assert con.pragma("application_id")


def test_a_passphrase_fits_a_file_that_another_process_made_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    remember(path, PASSPHRASE)
    real, heads = file_encryption.head_of, iter([b""])  # As it was before the other had made it.
    monkeypatch.setattr(file_encryption, "head_of", lambda path: next(heads, None) or real(path))
    assert recalls(path, PASSPHRASE)


def test_damage_is_not_taken_for_a_wrong_key(store: Path) -> None:
    data = bytearray(store.read_bytes())
    for page in range(1, len(data) // PAGE_BYTES):
        data[page * PAGE_BYTES + 100] ^= 1
    store.write_bytes(data)
    with pytest.raises(CorruptionError, match="damaged"):
        worlddb.open(store, key=RAW)


def test_a_backup_is_restored_also_over_a_damaged_store(store: Path, tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    with worlddb.open(store, key=RAW) as db:
        db.backup(backup)
    with pytest.raises(StoreKeyError, match=r"backup\.db: is encrypted; give its key"):
        restore(backup, store, replace=True)
    with pytest.raises(StoreKeyError, match="does not fit"):
        restore(backup, store, replace=True, key=OTHER)
    data = bytearray(store.read_bytes())
    data[-100] ^= 1
    store.write_bytes(data)
    restore(backup, store, replace=True, key=RAW)
    assert recalls(store, RAW)
    restore(backup, tmp_path / "new.db", key=RAW)
    assert recalls(tmp_path / "new.db", RAW)
    assert leaks(tmp_path) == []


def test_plain_and_encrypted_do_not_replace_each_other(store: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.db"
    remember(plain, None)
    with pytest.raises(StoreKeyError, match=r"plain\.db: is not encrypted, but a key is given"):
        restore(store, plain, replace=True, key=RAW)
    with pytest.raises(StoreKeyError, match="is encrypted; give its key"):
        restore(plain, store, replace=True)
    assert recalls(plain, None)
    assert recalls(store, RAW)


@pytest.fixture
def old_format(tmp_path: Path) -> Path:
    """Return an encrypted store of the first format."""
    path = tmp_path / "old" / "v1.db"
    path.parent.mkdir()
    shutil.copyfile(FORMAT_1, tmp_path / "v1.db")
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    with closing(apsw.Connection(str(tmp_path / "v1.db"), flags=flags)) as con:
        con.execute("VACUUM INTO ?", (StoreKey(RAW).address(str(path)),))
    return path


def test_migration_keeps_an_encrypted_copy(old_format: Path) -> None:
    with pytest.raises(FormatError, match="worlddb migrate"):
        rekey(old_format, key=RAW, new_key=OTHER)
    with worlddb.open(old_format, key=RAW, migrate=False) as view:
        assert view.check() == []  # From a temporary copy, which is encrypted, too.
    before, present = migrate(old_format, key=RAW)
    assert before < present
    copy = old_format.with_name(f"v1.db.format-{before}")
    assert is_encrypted(str(copy))
    assert migrate(copy, key=RAW)[0] == before


def test_the_saved_index_of_vectors_is_sealed(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).standard_normal((5_000, 64)).astype(np.float32)
    rows = np.arange(5_000)
    index = Nearest(64)
    index.put(rows, vectors)
    path, seal = str(tmp_path / "x-vectors"), StoreKey(RAW).seal("x")
    index.save(path, b"stamp", seal=seal)
    assert (tmp_path / "x-vectors").stat().st_size > vectors.nbytes > 1 << 20  # Several blocks.
    assert saved_stamp(path, seal) == b"stamp"
    found = Nearest.load(path, b"stamp", seal=seal)
    assert found is not None
    assert found.search(vectors[7], 3) == index.search(vectors[7], 3)
    assert Nearest.load(path, b"stamp", seal=StoreKey(OTHER).seal("x")) is None
    assert saved_stamp(path) is None


# -- another key -----------------------------------------------------------------------------------


def test_every_change_of_the_key(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    remember(path, None)
    (tmp_path / "memory.db-vectors").write_text(SECRET)
    with worlddb.open(path) as db:
        root = db.root_state
    keys = [None, PASSPHRASE, RAW, OTHER, None, RAW]
    for number, (old, new) in enumerate(pairwise(keys), 1):
        last, kept = rekey(path, key=old, new_key=new, keep=False)
        assert (kept, last.root_state) == (None, root)
        assert recalls(path, new)
        assert path.stat().st_mode & 0o777 == 0o600
        with Memory(path, key=new, embedder="none", user_id="ada", audit_reads=True) as memory:
            assert len(memory.reads()) == 1, number
        assert bool(leaks(tmp_path)) == (new is None)
    assert [one.name for one in tmp_path.iterdir() if "rekey" in one.name] == []


def test_the_store_as_it_was_is_kept(store: Path) -> None:
    _, kept = rekey(store, key=RAW, new_key=OTHER)
    _, second = rekey(store, key=OTHER, new_key=RAW)
    assert kept == f"{store}.before-rekey"
    assert second == f"{store}.before-rekey-2"
    assert recalls(Path(kept), RAW)
    assert recalls(Path(second), OTHER)
    assert leaks(store.parent) == []


def test_rekey_refuses_what_it_cannot_do(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_copy, "BUSY_S", 0)
    with pytest.raises(StoreKeyError, match="does not fit"):
        rekey(store, key=OTHER, new_key=RAW)
    with pytest.raises(worlddb.InvalidInputError, match="no new key"):
        rekey(store, key=None, new_key=None)
    with pytest.raises(StorageError, match="only a store in a file"):
        rekey(":memory:", key=None, new_key=RAW)
    with worlddb.open(store, key=RAW) as db:
        with pytest.raises(worlddb.ConflictError, match="is open in another program"):
            rekey(store, key=RAW, new_key=OTHER)
        db.ingest("It still can be written.")
    assert recalls(store, RAW)
    assert {one.name for one in store.parent.iterdir()} == {"memory.db", "memory.db-reads"}


def test_a_store_with_branches_keeps_its_key(tmp_path: Path) -> None:
    for key, other in ((None, RAW), (RAW, OTHER)):
        path = tmp_path / f"{other.hex()}.db"
        with worlddb.open(path, key=key, embedder="none") as db:
            db.branch("draft").close()
        with pytest.raises(worlddb.ConflictError, match="has branches"):
            rekey(path, key=key, new_key=other)


def test_a_branch_of_an_encrypted_store_is_encrypted_and_sound(tmp_path: Path, key: object) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, key=key, embedder="none", recluster="off") as memory:
        memory.write(TEXT)
        with memory.branch("trial") as trial:
            trial.write(f"Bob hides the map in {SECRET}.")
        for number in range(30):  # Pages below the branch change, and are kept for it.
            memory.write(f"Number {number} is in {SECRET}.")
    with Memory(path, key=key, embedder="none", recluster="off") as memory:
        with memory.db.engine.store.read() as reader:
            reader.head()  # Keeps the log where it is: the next fork copies pages out of it.
            memory.write(f"Late, but in {SECRET}.")
            with memory.branch("late") as late:
                assert len(late.list(limit=100)) == 32
                assert late.check().sound
        with memory.branch("trial") as trial:
            assert [one.text for one in trial.list()] == [f"Bob hides the map in {SECRET}.", TEXT]
            assert trial.check().sound
        assert leaks(tmp_path) == []
        memory.merge("trial")
        assert len(memory.list(limit=100)) == 33
        assert memory.check().sound
        memory.drop_branch("late")
        branch = memory.branches().branches[0].path
    for wrong in (None, OTHER, "no such words"):
        with pytest.raises(StoreKeyError):
            worlddb.open(branch, key=wrong)


class _Crash(BaseException):
    """The end of a process, at a place that the test chooses."""


@pytest.fixture
def crash_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[object, str], None]]:
    def arm(module: object, name: str) -> None:
        def crash(*_: object, **__: object) -> None:
            raise _Crash

        monkeypatch.setattr(module, name, crash)

    yield arm
    monkeypatch.undo()


@pytest.mark.parametrize("name", ["copy_to_new", "sync"])
def test_a_rekey_that_ends_early_leaves_the_old_store(
    store: Path, crash_at: Callable[[object, str], None], name: str
) -> None:
    crash_at(file_copy, name)
    with pytest.raises(_Crash):
        rekey(store, key=RAW, new_key=OTHER)
    with Memory(store, key=RAW, embedder="none", user_id="ada", audit_reads=True) as memory:
        assert len(memory.reads()) == 1
    assert recalls(store, RAW)


def test_a_rekey_that_ends_just_before_the_record_of_reads_is_finished_later(
    store: Path, crash_at: Callable[[object, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_at(store_files, "finish_reseal")
    with pytest.raises(_Crash):
        rekey(store, key=RAW, new_key=OTHER)
    monkeypatch.undo()
    with Memory(store, key=OTHER, embedder="none", user_id="ada", audit_reads=True) as memory:
        assert len(memory.reads()) == 1
        memory.recall("Anything else?")
        assert len(memory.reads()) == 2
    assert not Path(f"{store}-reads.rekeyed").exists()
    assert recalls(store, OTHER)


def test_a_rekey_after_one_that_was_killed_just_before_its_end_goes_on(
    store: Path, crash_at: Callable[[object, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_at(store_files, "finish_reseal")
    with pytest.raises(_Crash):
        rekey(store, key=RAW, new_key=OTHER, keep=False)
    monkeypatch.undo()
    rekey(store, key=OTHER, new_key=RAW, keep=False)
    with Memory(store, key=RAW, embedder="none", user_id="ada", audit_reads=True) as memory:
        assert len(memory.reads()) == 1


def test_what_a_killed_rekey_left_of_the_record_of_reads_is_settled_by_opening(
    store: Path, crash_at: Callable[[object, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, left = Path(f"{store}-reads"), Path(f"{store}-reads.rekeyed")
    rekey(store, key=RAW, new_key=None, keep=False)
    plain = reads.read_bytes()
    crash_at(store_files, "finish_reseal")
    with pytest.raises(_Crash):
        rekey(store, key=None, new_key=OTHER, keep=False)
    monkeypatch.undo()
    assert reads.read_bytes() == plain
    with worlddb.open(store, key=OTHER, embedder="none"):
        assert SECRET.encode() not in reads.read_bytes()  # Also by who records no reads.
    assert not left.exists()
    sealed = reads.read_bytes()
    crash_at(file_copy, "sync")  # And before the store has the new key, the copy goes.
    with pytest.raises(_Crash):
        rekey(store, key=OTHER, new_key=RAW, keep=False)
    monkeypatch.undo()
    assert left.exists()
    with worlddb.open(store, key=OTHER, embedder="none", read_only=True):
        assert left.exists()
    with worlddb.open(store, key=OTHER, embedder="none"):
        assert not left.exists()
    assert reads.read_bytes() == sealed


HALF_WRITTEN = """
import os, signal, sys
from worlddb.store.sqlite.file_encryption import StoreKey, unlocked
con = unlocked(sys.argv[1], StoreKey(bytes.fromhex(sys.argv[2])))
con.pragma("journal_mode", "delete")
con.pragma("cache_size", 5)
con.execute("BEGIN IMMEDIATE")
con.execute("CREATE TABLE large AS SELECT randomblob(1000) FROM sqlite_schema, sqlite_schema AS b")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("wrong", [None, OTHER, PASSPHRASE])
def test_a_store_with_a_journal_of_a_killed_program_survives_the_wrong_key_and_none(
    store: Path, wrong: bytes | str | None
) -> None:
    command = [sys.executable, "-c", HALF_WRITTEN, str(store), RAW.hex()]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert Path(f"{store}-journal").stat().st_size > PAGE_BYTES
    with pytest.raises(StoreKeyError):
        worlddb.open(store, key=wrong, create=False, embedder="none")
    assert recalls(store, RAW)


def test_a_record_of_reads_by_another_key_is_told(store: Path) -> None:
    rekey(store, key=RAW, new_key=OTHER, keep=False)
    remember(store.with_name("other.db"), RAW)
    shutil.copy(store.with_name("other.db-reads"), f"{store}-reads")
    with (
        Memory(store, key=OTHER, embedder="none", user_id="ada", audit_reads=True) as memory,
        pytest.raises(StoreKeyError, match="sealed by another key"),
    ):
        memory.reads()


def test_a_store_that_is_replaced_while_it_is_opened_is_not_written(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = database_file.connect_somehow

    def replaced(*given: object, **options: object) -> object:
        found = real(*given, **options)  # type: ignore[arg-type]
        shutil.copy(store, tmp_path / "another")
        (tmp_path / "another").replace(store)
        return found

    monkeypatch.setattr(sqlite_store, "connect_somehow", replaced)
    with pytest.raises(StorageError, match="was replaced while it was being opened"):
        worlddb.open(store, key=RAW)


def test_sealed_backups_of_an_encrypted_store_follow_its_key(tmp_path: Path, key: Any) -> None:
    path, backup = tmp_path / "store" / "memory.db", tmp_path / "monday.sealed"
    path.parent.mkdir()
    remember(path, key)
    with Memory(path, key=key, embedder=HashEmbedder(), user_id="ada") as memory:
        memory.write("Ada likes tea.")
        memory.db.backup(backup, sealed=True)
        secret = next(one.id for one in memory.list() if SECRET in one.content)
    rekey(path, key=key, new_key=OTHER, keep=False)
    keys = Path(f"{path}-backup-keys")
    with pytest.raises(StoreKeyError, match="is sealed by another key"):
        restore(backup, tmp_path / "new.db", key=RAW if key != RAW else PASSPHRASE, keys=keys)
    restore(backup, path, key=OTHER, replace=True)
    assert recalls(path, OTHER)
    with Memory(path, key=OTHER, embedder=HashEmbedder(), user_id="ada") as memory:
        memory.db.erase(secret)
    restore(backup, path, key=OTHER, replace=True)
    assert not recalls(path, OTHER)
    assert leaks(tmp_path) == []
