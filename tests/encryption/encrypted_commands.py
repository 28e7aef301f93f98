"""Commands and servers on an encrypted store: where the key comes from. See test_encryption."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from encryption.encrypted_stores import RAW, SECRET, leaks, recalls, remember
from faces.command import Result, in_process, worlddb
from worlddb import Memory, StoreKeyError
from worlddb.audit.signed_envelope import public_bytes, signing_key
from worlddb.audit.store_files import restore
from worlddb.faces.face_settings import settings_from
from worlddb.faces.http.served_stores import TenantStores, tenant_stores


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "key").write_text(RAW.hex() + "\n", encoding="ascii")
    (tmp_path / "key").chmod(0o600)
    remember(tmp_path / "memory.db", RAW)
    return tmp_path


def test_the_key_comes_from_flag_environment_or_settings(folder: Path) -> None:
    (folder / "config.toml").write_text('key_file = "key"\n', encoding="utf-8")
    (folder / "wrong").write_text("nonsense", encoding="ascii")
    ask = ("recall", f"Who mentions {SECRET}?", "--db", folder / "memory.db")
    ways: list[tuple[tuple[object, ...], dict[str, str]]] = [
        ((*ask, "--key-file", folder / "key"), {"WORLDDB_KEY": "nonsense"}),
        (("--key-file", folder / "key", *ask), {}),
        (ask, {"WORLDDB_KEY_FILE": str(folder / "key")}),
        (ask, {"WORLDDB_KEY": RAW.hex()}),
        (ask, {"WORLDDB_CONFIG": str(folder / "config.toml")}),
    ]
    for arguments, env in ways:
        told = in_process(*arguments, env=env | {"WORLDDB_SCOPE": "ada"})
        assert told.code == 0, told.err
        assert SECRET in told.out
    missing = in_process(*ask, env={})
    assert (missing.code, "is encrypted; give its key" in missing.err) == (10, True)
    env = {"WORLDDB_KEY_FILE": str(folder / "wrong"), "WORLDDB_CONFIG": str(folder / "config.toml")}
    assert "the key does not fit" in in_process(*ask, env=env).err
    both = in_process(*ask, env={"WORLDDB_KEY": "x", "WORLDDB_KEY_FILE": "y"})
    assert (both.code, "give one" in both.err) == (2, True)
    assert "nonsense" not in in_process("config", env={"WORLDDB_KEY": "nonsense"}).out


def test_rekey_makes_a_key_encrypts_and_keeps_a_copy(tmp_path: Path) -> None:
    store, key = tmp_path / "memory.db", tmp_path / "new.key"
    remember(store, None)
    told = in_process("rekey", "--db", store, "--new-key-file", key, "--json", env={})
    assert told.data == {
        "path": str(store),
        "encrypted": True,
        "commit": 1,
        "kept": f"{store}.before-rekey",
    }
    assert key.stat().st_mode & 0o777 == 0o600
    assert recalls(store, key)
    env = {"WORLDDB_KEY_FILE": str(key)}
    findings = json.loads(in_process("doctor", "--db", store, "--json", env=env).out)["findings"]
    told_of = [(one["verdict"], one["seen"]) for one in findings if one["part"] == "encryption"]
    assert [verdict for verdict, _ in told_of] == ["ok", "warn"]
    assert f"{store}.before-rekey" in told_of[1][1]
    (tmp_path / "memory.db.before-rekey").unlink()
    assert leaks(tmp_path) == []
    shutil.copy(store, tmp_path / "backup.db")
    change = ("rekey", "--db", store, "--new-key-file", tmp_path / "k2", "--destroy-old-key")
    refused = in_process(*change, env=env)
    assert (refused.code, "--discard" in refused.err, key.exists()) == (2, True, True)
    again = in_process(*change, "--discard", env=env)
    assert again.code == 0, again.err
    assert not key.exists()
    with pytest.raises(StoreKeyError, match="does not fit"):
        recalls(tmp_path / "backup.db", tmp_path / "k2")
    assert recalls(store, tmp_path / "k2")
    gone = in_process(
        "rekey", "--db", store, "--key-file", tmp_path / "k2", "--remove-key", env=env
    )
    assert gone.code == 0, gone.err
    assert recalls(store, None)
    assert in_process("rekey", "--db", store, env={}).code == 2


def test_backup_restore_check_copy_and_doctor(folder: Path) -> None:
    env = {"WORLDDB_KEY_FILE": str(folder / "key"), "WORLDDB_PATH": str(folder / "memory.db")}
    for arguments in (
        ("backup", folder / "copy.db"),
        ("check",),
        ("check", "--db", folder / "copy.db"),
        ("restore", folder / "copy.db", "--force"),
        ("migrate",),
        ("copy", folder / "memory.db", folder / "second.db"),
        ("write", "Another memory."),
    ):
        told = in_process(*arguments, env=env)
        assert told.code == 0, (arguments, told.err)
    assert recalls(folder / "second.db", RAW)
    assert leaks(folder) == []
    export = in_process("export", folder / "plain.jsonl", env=env)
    assert export.code == 0
    assert leaks(folder) == ["plain.jsonl"]  # Plain, as every export.


def test_a_hook_and_the_entry_of_a_client_get_the_key(folder: Path) -> None:
    told = worlddb(
        *("hook", "UserPromptSubmit", "--db", folder / "memory.db", "--key-file", folder / "key"),
        stdin=json.dumps({"prompt": f"Who mentions {SECRET}?", "session_id": "s"}).encode(),
        env={"HOME": str(folder), "WORLDDB_SCOPE": "ada", "WORLDDB_HOOK_TIMEOUT_S": "60"},
    )
    assert f"hides the key in {SECRET}" in told.out, told.err
    assert leaks(folder) == []
    flags = ("--db", folder / "memory.db", "--key-file", folder / "key")
    entry = in_process("setup", "cursor", *flags, env={"HOME": str(folder)})
    assert json.loads(entry.out)["mcpServers"]["worlddb"]["env"] == {
        "WORLDDB_PATH": str(folder / "memory.db"),
        "WORLDDB_KEY_FILE": str(folder / "key"),
    }
    hooks = in_process("setup", "claude-code", "--hooks", *flags, env={"HOME": str(folder)})
    assert f"--key-file {folder / 'key'}" in hooks.out


def test_doctor_says_that_a_store_without_its_key_is_not_damaged(folder: Path) -> None:
    told = in_process("doctor", "--db", folder / "memory.db", "--json", env={})
    found = {one["part"]: one for one in told.data["findings"]}
    assert found["encryption"]["verdict"] == "fail"
    assert "is encrypted; give its key" in found["encryption"]["seen"]
    assert "store" not in found


def test_the_keyring_keeps_a_key(tmp_path: Path) -> None:
    import keyring
    from keyring.backend import KeyringBackend

    kept: dict[tuple[str, str], str] = {}

    class MemoryKeyring(KeyringBackend):  # type: ignore[misc]
        """Keeps passwords as long as the test runs."""

        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            kept[service, username] = password

    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeyring())
    try:
        store = tmp_path / "memory.db"
        remember(store, None)
        env = {"WORLDDB_PATH": str(store), "WORLDDB_KEYRING": "notes/ada", "WORLDDB_SCOPE": "ada"}
        missing = in_process("recall", SECRET, env=env)
        assert "the keyring has no key 'notes/ada'" in missing.err
        told = in_process("rekey", "--new-keyring", "notes/ada", "--discard", env=env)
        assert told.code == 0, told.err
        assert SECRET in in_process("recall", SECRET, env=env).out
        assert recalls(store, kept["notes", "ada"])
    finally:
        keyring.set_keyring(before)


@pytest.fixture
def tenants(tmp_path: Path) -> Callable[..., TenantStores]:
    def make(**given: str) -> TenantStores:
        settings = settings_from(Namespace(embedder="none", **given))
        return tenant_stores(settings, str(tmp_path / "tenants"))

    return make


def test_the_stores_of_tenants_are_encrypted_by_one_key(
    tmp_path: Path, tenants: Callable[..., TenantStores]
) -> None:
    (tmp_path / "key").write_bytes(RAW)
    stores = tenants(key_file=str(tmp_path / "key"))
    with closing(stores), stores.lease("acme") as memory:
        memory.write(f"Ada hides it in {SECRET}.", user_id="ada")
    assert leaks(tmp_path) == []
    assert recalls(tmp_path / "tenants" / "acme.db", RAW)


def test_each_tenant_has_a_key_and_without_it_no_copy_can_be_read(
    tmp_path: Path, tenants: Callable[..., TenantStores]
) -> None:
    keys = tmp_path / "keys"
    with closing(tenants(stores_keys=str(keys))) as stores:
        for tenant in ("acme", "globex"):
            with stores.lease(tenant) as memory:
                memory.write(f"Ada hides it in {SECRET}.", user_id="ada")
                memory.db.backup(tmp_path / f"{tenant}-copy.db")
    assert leaks(tmp_path) == []
    assert [one.stat().st_mode & 0o777 for one in sorted(keys.iterdir())] == [0o600, 0o600]
    assert recalls(tmp_path / "acme-copy.db", keys / "acme.key")
    with pytest.raises(StoreKeyError, match="does not fit"):
        recalls(tmp_path / "acme-copy.db", keys / "globex.key")
    (keys / "acme.key").unlink()
    with closing(tenants(stores_keys=str(keys))) as stores:
        with pytest.raises(StoreKeyError, match="key file cannot be read"), stores.lease("acme"):
            pass
        with stores.lease("globex") as memory:
            assert SECRET in memory.list(user_id="ada")[0].content
    assert not (keys / "acme.key").exists()


@pytest.fixture
def served(tmp_path: Path, tenants: Callable[..., TenantStores]) -> Callable[[], TenantStores]:
    """Return a function that serves two tenants with a key each, of which acme has a backup."""
    with closing(tenants(stores_keys=str(tmp_path / "keys"))) as stores:
        for tenant in ("acme", "acme-2"):
            with stores.lease(tenant) as memory:
                memory.write(f"Ada hides it in {SECRET}.", user_id="ada")
                memory.db.backup(tmp_path / f"{tenant}-copy.db")
    return lambda: tenants(stores_keys=str(tmp_path / "keys"))


def erase_acme(folder: Path, *more: object) -> Result:
    where = ("--stores", folder / "tenants", "--stores-keys", folder / "keys")
    return in_process("erase", "--tenant", "acme", *where, "--yes", *more, env={})


def test_after_a_tenant_is_erased_no_old_backup_can_be_read(
    tmp_path: Path, served: Callable[[], TenantStores]
) -> None:
    with Memory(tmp_path / "tenants" / "acme.db", key=tmp_path / "keys" / "acme.key") as memory:
        public = public_bytes(signing_key(memory.db.engine.store)).hex()
    backup = tmp_path / "acme-copy.db"
    assert recalls(backup, tmp_path / "keys" / "acme.key")
    done = erase_acme(tmp_path, "--receipt", tmp_path / "erased.json")
    assert (done.code, "no backup of it can be read any more" in done.out) == (0, True), done.err
    left = {one.name for folder in ("tenants", "keys") for one in (tmp_path / folder).iterdir()}
    assert left == {"acme-2.db", "acme-2.key"}
    with closing(served()) as stores, stores.lease("acme") as memory:  # It begins anew, empty.
        assert len(memory.list(user_id="ada")) == 0
    for key in (tmp_path / "keys" / "acme.key", tmp_path / "keys" / "acme-2.key"):
        with pytest.raises(StoreKeyError, match="does not fit"):
            restore(backup, tmp_path / "again.db", key=key)
    with pytest.raises(StoreKeyError, match="is encrypted; give its key"):
        restore(backup, tmp_path / "again.db")
    assert recalls(tmp_path / "acme-2-copy.db", tmp_path / "keys" / "acme-2.key")
    with Memory(":memory:", embedder="none") as memory:
        receipt = json.loads((tmp_path / "erased.json").read_text())
        assert memory.verify_receipt(receipt, public_key=public).signed
        assert not memory.verify_receipt(receipt, public_key="ab" * 32).signed


def test_an_erasure_that_ended_after_the_key_is_finished_by_the_next(
    tmp_path: Path, served: Callable[[], TenantStores]
) -> None:
    (tmp_path / "keys" / "acme.key").unlink()
    assert "nothing to sign with" in erase_acme(tmp_path, "--receipt", tmp_path / "r.json").err
    done = erase_acme(tmp_path)
    assert done.code == 0, done.err
    assert [one.name for one in (tmp_path / "tenants").iterdir()] == ["acme-2.db"]
    assert erase_acme(tmp_path).code == 8  # There is no such store.


def test_a_tenant_under_legal_hold_is_not_erased(
    tmp_path: Path, served: Callable[[], TenantStores]
) -> None:
    key = tmp_path / "keys" / "acme.key"
    with Memory(tmp_path / "tenants" / "acme.db", key=key) as memory:
        memory.set_retention(hold="on", user_id="ada")
    done = erase_acme(tmp_path)
    assert (done.code, "under legal hold: user:ada" in done.err) == (5, True), done.err
    assert recalls(tmp_path / "tenants" / "acme.db", key)


def test_an_erasure_with_a_new_key_reaches_old_backups(folder: Path) -> None:
    store, backup, new = folder / "memory.db", folder / "old-copy.db", folder / "new.key"
    with Memory(store, key=folder / "key", embedder="none") as memory:
        memory.write("Bob likes tea.", user_id="bob")
        memory.db.backup(backup)
    erase = ("erase", "--scope", "user:ada", "--db", store, "--yes", "--new-key-file")
    for wrong in ((folder / "key", "--key-file", folder / "key"), (new,)):
        env = {} if len(wrong) > 1 else {"WORLDDB_KEY": RAW.hex()}
        assert in_process(*erase, *wrong, env=env).code == 2
    assert recalls(store, folder / "key")  # Nothing was erased.
    done = in_process(*erase, new, "--key-file", folder / "key", env={})
    assert (done.code, "no backup from before can be read" in done.err) == (0, True), done.err
    assert not (folder / "key").exists()
    with Memory(store, key=new, embedder="none") as memory:
        assert [one.text for one in memory.list(user_id="bob")] == ["Bob likes tea."]
        assert len(memory.list(user_id="ada")) == 0
    with pytest.raises(StoreKeyError):
        restore(backup, folder / "again.db", key=new)
