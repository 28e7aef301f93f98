"""Branches as files: they share what is there, keep what the trunk changes, and leave nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import worlddb
from worlddb import ConflictError, CorruptionError, InvalidInputError, NotFoundError, StorageError
from worlddb.audit.store_files import restore
from worlddb.store.sqlite import branch_file
from worlddb.store.sqlite.branch_file import PageLayer

NODES = 300


@pytest.fixture
def trunk(tmp_path: Path) -> Iterator[worlddb.WorldDB]:
    with worlddb.open(tmp_path / "store.db", embedder="none") as db:
        write(db, *(f"before {number}" for number in range(NODES)))
        yield db


def write(db: worlddb.WorldDB, *names: str) -> None:
    with db.transaction() as tx:
        for name in names:
            tx.create_node(type="Topic", name=name, content=f"about {name}")


def names(db: worlddb.WorldDB) -> set[str]:
    return {node.name for node in db.children()}


def reopened(db: worlddb.WorldDB) -> worlddb.WorldDB:
    """Close a store, which moves its log into its file, and open it again."""
    path = db.path
    db.close()
    return worlddb.open(path, embedder="none")


def test_neither_side_sees_what_the_other_writes(trunk: worlddb.WorldDB) -> None:
    before = names(trunk)
    with trunk.branch("try") as branch:
        assert branch.root_state == trunk.root_state
        write(branch, "on the branch")
        write(trunk, "on the trunk")
        assert names(branch) == before | {"on the branch"}
        assert names(trunk) == before | {"on the trunk"}
        assert branch.check() == trunk.check() == []


def test_a_branch_stays_while_the_log_of_the_trunk_is_moved_below_it(
    trunk: worlddb.WorldDB,
) -> None:
    before = names(trunk)
    with trunk.branch("try") as branch:
        write(branch, "on the branch")
        for turn in range(3):
            write(trunk, *(f"trunk {turn} {number}" for number in range(50)))
            trunk = reopened(trunk)
            assert names(branch) == before | {"on the branch"}
            assert branch.check() == []
        with reopened(branch) as again:
            assert names(again) == before | {"on the branch"}
            assert again.check() == []
            assert len(names(trunk)) == NODES + 150
    assert trunk.check() == []
    trunk.close()


def test_branches_of_different_commits_lie_over_one_file(trunk: worlddb.WorldDB) -> None:
    seen: dict[str, set[str]] = {}
    for turn in range(3):
        write(trunk, f"turn {turn}")
        seen[f"b{turn}"] = names(trunk)
        trunk.branch(f"b{turn}").close()
        trunk = reopened(trunk)
    write(trunk, "last")
    trunk = reopened(trunk)
    for name, wanted in seen.items():
        with trunk.branch(name, create=False) as branch:
            assert names(branch) == wanted
            assert branch.check() == []
    trunk.close()


def test_a_fork_beside_an_open_reader_has_what_is_still_in_the_log(
    trunk: worlddb.WorldDB,
) -> None:
    with trunk.engine.store.snapshot():  # Keeps the log from being moved.
        write(trunk, "logged")
        with trunk.branch("try") as branch:
            assert "logged" in names(branch)
            write(trunk, "later")
    trunk = reopened(trunk)
    with trunk.branch("try", create=False) as branch:
        assert "logged" in names(branch)
        assert "later" not in names(branch)
        assert branch.check() == []
    trunk.close()


def test_a_fork_takes_no_space_whatever_the_size_of_the_store(trunk: worlddb.WorldDB) -> None:
    trunk = reopened(trunk)
    trunk.branch("try").close()
    assert trunk.branches()[0].size_bytes < 1_000 < trunk.engine.store.size_bytes()
    trunk.close()


def test_a_branch_has_proofs_and_a_journal_that_goes_on_from_the_fork(
    trunk: worlddb.WorldDB,
) -> None:
    fork = trunk.log()[-1]
    with trunk.branch("try") as branch:
        write(trunk, "trunk")
        with branch.transaction() as tx:
            node = tx.create_node(type="Topic", name="proved")
        last = branch.log()[-1]
        assert last.previous == fork.hash
        assert worlddb.verify_proof(branch.prove(node.id), branch.root_state)
        assert not worlddb.verify_proof(branch.prove(node.id), trunk.root_state)
        assert branch.get(node.id).known_from == last.time
        with pytest.raises(NotFoundError):
            trunk.get(node.id)


def test_a_dropped_branch_leaves_nothing(trunk: worlddb.WorldDB, tmp_path: Path) -> None:
    with trunk.branch("try") as branch:
        write(branch, "secret of the branch")
    before = trunk.root_state
    trunk.drop_branch("try")
    assert trunk.branches() == []
    assert not (tmp_path / "store.db-branches").exists()
    with pytest.raises(NotFoundError, match="no branch 'try'"):
        trunk.branch("try", create=False)
    with pytest.raises(NotFoundError, match="no branch 'try'"):
        trunk.drop_branch("try")
    assert trunk.root_state == before
    trunk.close()
    assert os.listdir(tmp_path) == ["store.db"]


def test_a_dropped_branch_is_not_written_any_more(trunk: worlddb.WorldDB) -> None:
    with trunk.branch("try") as branch:
        trunk.drop_branch("try")
        with pytest.raises(StorageError, match="deleted, moved or replaced"):
            write(branch, "lost")


def test_a_branch_is_listed_with_its_fork(trunk: worlddb.WorldDB) -> None:
    trunk.branch("b", actor="ada").close()
    trunk.branch("a").close()
    found = trunk.branches()
    assert [one.name for one in found] == ["a", "b"]
    assert found[1].fork == trunk.log()[-1].seq
    assert found[1].hash == trunk.log()[-1].hash
    assert found[1].actor == "ada"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "-x", "x" * 65, None, 3])
def test_a_bad_name_is_refused(trunk: worlddb.WorldDB, name: Any) -> None:
    with pytest.raises(InvalidInputError, match="give a name of 1 to 64"):
        trunk.branch(name)


def test_what_cannot_be_branched_says_so(trunk: worlddb.WorldDB) -> None:
    with worlddb.open(":memory:") as db, pytest.raises(StorageError, match="store in memory"):
        db.branch("try")
    with trunk.branch("try") as branch, pytest.raises(StorageError, match="a branch cannot be"):
        branch.branch("again")
    with worlddb.open(trunk.path, read_only=True) as db:
        with db.branch("try") as branch:
            assert len(names(branch)) == NODES
        with pytest.raises(StorageError, match="read-only"):
            db.branch("new")


def test_nothing_is_erased_while_a_branch_has_a_copy(trunk: worlddb.WorldDB) -> None:
    node = trunk.children()[0]
    with trunk.branch("try") as branch:
        with pytest.raises(ConflictError, match=r"branches \(try\).*merge or drop them first"):
            trunk.erase(node.id)
        with pytest.raises(ConflictError, match="do that to the store itself"):
            branch.erase(node.id)
        with pytest.raises(ConflictError, match="merge or drop them first"):
            trunk.clean()
    assert trunk.get(node.id).content == node.content
    trunk.drop_branch("try")
    assert trunk.erase(node.id).cleaned


def test_a_backup_is_not_restored_over_a_store_with_branches(
    trunk: worlddb.WorldDB, tmp_path: Path
) -> None:
    trunk.backup(tmp_path / "copy.db")
    trunk.branch("try").close()
    trunk.close()
    with pytest.raises(ConflictError, match="drop them first"):
        restore(tmp_path / "copy.db", tmp_path / "store.db", replace=True)


def test_the_files_of_a_branch_are_private(trunk: worlddb.WorldDB, tmp_path: Path) -> None:
    with trunk.branch("try") as branch:
        write(branch, "mine")
    folder = tmp_path / "store.db-branches"
    for path in (folder, *folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_program_that_knows_no_branches_is_found_out(trunk: worlddb.WorldDB) -> None:
    with trunk.branch("try") as branch:
        write(branch, "mine")
    write(trunk, *(f"after {number}" for number in range(50)))
    path = trunk.path
    # Another process, as a shell of SQLite: it moves the log and keeps nothing.
    code = (
        "import apsw, sys\n"
        "con = apsw.Connection(sys.argv[1])\n"
        "con.pragma('user_version')\n"
        "con.wal_checkpoint()\n"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True, timeout=60)
    with pytest.raises(CorruptionError, match="a program that knows no branches"):
        trunk.branch("try", create=False)
    trunk.drop_branch("try")
    assert trunk.check() == []


def test_a_move_of_the_log_that_fails_half_way_harms_no_branch(
    trunk: worlddb.WorldDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    trunk.branch("try").close()
    write(trunk, *(f"after {number}" for number in range(50)))

    def fail(_: PageLayer, numbers: list[int]) -> None:
        assert numbers
        raise OSError("the power is gone")

    with monkeypatch.context() as broken:
        broken.setattr(PageLayer, "_add", fail)
        trunk.close()  # Keeps pages, but never their numbers, and so moves nothing.
    trunk = worlddb.open(trunk.path, embedder="none")
    for _ in range(2):
        with trunk.branch("try", create=False) as branch:
            assert len(names(branch)) == NODES
            assert branch.check() == []
        trunk = reopened(trunk)
    assert len(names(trunk)) == NODES + 50
    trunk.close()


def test_a_fork_that_fails_leaves_nothing(
    trunk: worlddb.WorldDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as broken:
        broken.setattr(branch_file, "_lay_out", fail)
        with pytest.raises(OSError, match="no space"):
            trunk.branch("try")
    assert trunk.branches() == []
    assert set(os.listdir(tmp_path / "store.db-branches")) <= {".lock"}
    write(trunk, "goes on")
    trunk.branch("try").close()


def test_another_process_reads_what_was_moved_into_a_branch(trunk: worlddb.WorldDB) -> None:
    with trunk.branch("try") as branch:
        write(branch, *(f"mine {number}" for number in range(50)))
        code = (
            "import sys, worlddb\n"
            "db = worlddb.open(sys.argv[1], embedder='none')\n"
            "print(len(db.children()), db.check())\n"
            "with db.transaction() as tx: tx.create_node(type='Topic', name='theirs')\n"
            "db.close()\n"
        )
        with closing(apsw.Connection(branch.path, vfs=branch_file.vfs_of(branch.path))) as con:
            con.pragma("user_version")
            frames, moved = branch_file.move_log(branch.path, con, apsw.SQLITE_CHECKPOINT_PASSIVE)
            assert frames == moved > 0
        command = [sys.executable, "-c", code, branch.path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.split() == [str(NODES + 50), "[]"]
        assert "theirs" in names(branch)
        assert branch.check() == []


def test_a_layer_forgets_pages_whose_numbers_were_never_written(tmp_path: Path) -> None:
    path = str(tmp_path / "layer")
    Path(path).touch()
    Path(f"{path}-numbers").write_bytes(bytes(8))
    Path(path).write_bytes(b"lost")
    one, other = PageLayer(path, 4), PageLayer(path, 4)
    assert one.get(7) is None
    other.keep([(9, b"nine"), (7, b"lost")])
    assert (one.get(7), one.get(9)) == (b"lost", b"nine")
    one.put(7, b"here")
    one.put(8, b"more")
    assert [other.get(number) for number in (7, 8, 9, 1)] == [b"here", b"more", b"nine", None]
