"""`worlddb erase`: texts leave the file, after somebody has said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from worlddb import Memory

from .command import in_process


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Memory(tmp_path / "memory.db", embedder="none") as memory:
        memory.write("the xylophone is in the cellar", user_id="ada")
        memory.write("tea", user_id="bob")
    return tmp_path / "memory.db"


def test_without_yes_and_without_a_terminal_nothing_is_erased(path: Path) -> None:
    done = in_process("--db", path, "erase", "--scope", "user:ada")
    assert done.code == 2
    assert "--yes" in done.err
    assert b"xylophone" in path.read_bytes()


def test_a_scope_is_erased_with_all_that_lives_in_it(path: Path) -> None:
    done = in_process("--db", path, "erase", "--scope", "user:ada", "--yes", "--json")
    receipt = done.data
    assert (done.code, receipt["cleaned"], len(receipt["ids"])) == (0, True, 2)
    assert b"xylophone" not in path.read_bytes()
    assert b"user:ada" not in path.read_bytes()
    assert in_process("--db", path, "check").code == 0
    again = in_process("--db", path, "erase", "--scope", "user:nobody", "--yes")
    assert (again.code, "user:nobody" in again.err) == (3, True)


def test_a_node_is_erased_by_its_id_and_a_typo_erases_nothing(path: Path) -> None:
    listed = in_process("--db", path, "list", "--user-id", "ada", "--json").data
    ident = listed["memories"][0]["id"]
    bad = in_process("--db", path, "erase", ident[:12], "0000000000", "--yes")
    assert bad.code != 0
    assert b"xylophone" in path.read_bytes()
    done = in_process("--db", path, "erase", ident[:12], "--yes")
    assert done.out.startswith("erased 1 nodes in commit ")
    assert b"xylophone" not in path.read_bytes()


def test_a_tenant_without_a_key_is_removed_and_its_backups_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "tenants").mkdir()
    for tenant in ("acme", "acme-2"):
        with Memory(tmp_path / "tenants" / f"{tenant}.db", embedder="none") as memory:
            memory.write("the xylophone is in the cellar", user_id="ada")
            memory.create_branch("draft")
    erase = ("erase", "--tenant", "acme", "--stores", tmp_path / "tenants")
    assert in_process(*erase).code == 2  # Nobody has said yes.
    done = in_process(*erase, "--yes")
    assert (done.code, "backups of it can still be read" in done.out) == (0, True), done.err
    left = {one.name for one in (tmp_path / "tenants").iterdir()}
    assert left >= {"acme-2.db", "acme-2.db-branches"}
    assert not [name for name in left if name.startswith("acme.")]
    for wrong in (("--tenant", "../acme"), ("--tenant", "acme"), ("--tenant", "x", "a1b2")):
        assert in_process("erase", *wrong, "--stores", tmp_path / "tenants", "--yes").code in (2, 8)
    assert in_process("erase", "--tenant", "acme-2", "--yes").code == 2  # In which folder?


def test_either_ids_or_a_scope_have_to_be_given(path: Path) -> None:
    for arguments in ([], ["abcd", "--scope", "user:ada"], ["--scope", "nobody"]):
        assert in_process("--db", path, "erase", *arguments, "--yes").code == 2


def test_with_a_tenant_the_keys_of_its_sealed_backups_are_destroyed(tmp_path: Path) -> None:
    store, stick = tmp_path / "tenants" / "acme.db", tmp_path / "stick"
    store.parent.mkdir()
    with Memory(store, embedder="none") as memory:
        memory.write("the xylophone is in the cellar")
        memory.db.backup(tmp_path / "monday.sealed", sealed=True)
    keys = Path(f"{store}-backup-keys")
    keys.rename(stick)
    keys.symlink_to(stick)  # On another disk, where the removal of the folder does not reach them.
    same = tmp_path / "the-same-bytes"
    same.hardlink_to(stick)
    size = stick.stat().st_size
    erase = ("erase", "--tenant", "acme", "--stores", store.parent, "--yes")
    assert in_process(*erase).code == 0
    assert not stick.exists()
    assert not keys.is_symlink()
    assert same.read_bytes() == bytes(size)
    lost = in_process("restore", tmp_path / "monday.sealed", "--db", store)
    assert (lost.code != 0, "no keys of sealed backups" in lost.err) == (True, True), lost.err
