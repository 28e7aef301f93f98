"""verify: a receipt from the command line, checked there and over REST's answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from worlddb import Memory

from .command import in_process

pytest.importorskip("cryptography")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    with Memory(path) as memory:
        memory.write("I live in Rome.")
    return path


def test_a_receipt_is_written_and_verified_after_more_was_written(
    store: Path, tmp_path: Path
) -> None:
    file = tmp_path / "answer.json"
    asked = in_process("recall", "Where do I live?", "--db", store, "--receipt", file)
    assert (asked.code, "Rome" in asked.out) == (0, True)
    assert file.stat().st_mode & 0o777 == 0o600
    with Memory(store) as memory:
        memory.write("I moved to Paris.")
    done = in_process("verify", file, "--db", store)
    assert (done.code, done.out) == (
        0,
        "holds: signed, and the recall has the same answer again\n",
    )
    key = in_process("verify", "--db", store).out.strip()
    only = in_process("verify", file, "--db", store, "--key", key, "--signature-only", "--json")
    assert only.data == {"holds": True, "signed": True, "same": None, "differences": []}


def test_what_does_not_hold_has_exit_code_1(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    in_process("recall", "Where do I live?", "--db", store, "--receipt", file)
    data = json.loads(file.read_text())
    data["asked"]["query"] = "Where did I live?"
    file.write_text(json.dumps(data))
    assert in_process("verify", file, "--db", store).out.startswith("does not hold: signed, but")
    other = in_process("verify", file, "--db", store, "--key", "ab" * 32)
    assert (other.code, "has not signed" in other.out) == (1, True)


def test_an_erasure_and_an_export_are_verified(store: Path, tmp_path: Path) -> None:
    export, erased, byid = (tmp_path / name for name in ("ada.json", "erased.json", "id.json"))
    with Memory(store) as memory:
        memory.write("Ada likes tea.", user_id="ada")
        ident = memory.write("Ada likes cake.", user_id="ada").id
        memory.db.backup(tmp_path / "old.db")
    ada = ("export", "--to", "person", "--user-id", "ada", "--receipt", export, "--db", store)
    assert in_process(*ada).code == 0
    assert "the export is as it was signed" in in_process("verify", export, "--db", store).out
    for file, what in ((byid, (ident,)), (erased, ("--scope", "user:ada"))):
        done = in_process("erase", *what, "--yes", "--receipt", file, "--db", store)
        assert (done.code, file.stat().st_mode & 0o777) == (0, 0o600), done.err
        told = in_process("verify", file, "--db", store)
        assert (told.code, told.out) == (
            0,
            "holds: signed, and what it names is erased in this store\n",
        )
    again = in_process(
        "erase", "--scope", "user:default", "--yes", "--receipt", file, "--db", store
    )
    assert (again.code, "exists already" in again.err) == (8, True)
    assert in_process("restore", tmp_path / "old.db", "--force", "--db", store).code == 0
    told = in_process("verify", erased, "--db", store)
    assert (told.code, told.out) == (1, "does not hold: signed, but not so any more: ids, commit\n")
    changed = export.read_text().replace("likes tea", "hates tea")
    export.write_text(changed)
    assert in_process("verify", export, "--db", store).code == 1


@pytest.mark.parametrize("content", [b"\xff", b"[]", b"no", b"{}"])
def test_what_is_no_receipt_has_exit_code_6(store: Path, tmp_path: Path, content: bytes) -> None:
    in_process("verify", "--db", store)
    file = tmp_path / "answer.json"
    file.write_bytes(content)
    assert in_process("verify", file, "--db", store).code == 6


def test_a_receipt_needs_a_scope(store: Path, tmp_path: Path) -> None:
    done = in_process("recall", "x", "--everyone", "--receipt", tmp_path / "r", "--db", store)
    assert done.code == 2


def test_a_proof_of_the_history_holds_without_the_store(store: Path, tmp_path: Path) -> None:
    then = in_process("prove", "--since", "0", "--json", "--db", store).data["last"]
    with Memory(store) as memory:
        memory.write("I moved to Paris.")
    file = tmp_path / "now.json"
    made = in_process("prove", "--since", then["commit"], "--json", "--db", store)
    file.write_text(made.out)
    nowhere = ("--db", tmp_path / "none.db")
    done = in_process("verify", file, "--first", then["log_head"], *nowhere)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"holds: nothing was rewritten from {then['log_head']} to ")
    wrong = in_process("verify", file, "--first", "ab" * 32, "--json", *nowhere)
    assert (wrong.code, wrong.data["holds"]) == (1, False)
    shown = in_process("prove", "--since", "0", "--db", store).out
    assert made.data["last"]["log_head"] in shown
