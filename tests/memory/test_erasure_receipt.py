"""Receipts of erasures and exports: signed, and compared with the store or the export again."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import Memory
from worlddb.audit.signed_envelope import KEY_END, public_bytes, signing_key
from worlddb.audit.store_files import restore

pytest.importorskip("cryptography")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder="none") as memory:
        memory.write("Ada lives in Rome.", user_id="ada")
        memory.write("Bob lives in Oslo.", user_id="bob")
        yield memory


def as_sent(data: Any) -> Any:
    return json.loads(json.dumps(data))


def test_a_signed_erasure_names_what_is_gone_and_by_which_commit(memory: Memory) -> None:
    done = memory.erase(user_id="ada", confirm="ada", receipt=True)
    assert done.envelope is not None
    told = json.loads(base64.b64decode(done.envelope["payload"]))
    last = memory.db.log()[-1]
    assert (told["commit"], told["commit_hash"]) == (last.seq, str(last.hash))
    assert told["scope"] == {"user_id": ["ada"]}
    assert told["ids"] == [str(ident) for ident in done.ids]
    assert "Rome" not in json.dumps(told)
    assert memory.verify_receipt(as_sent(done.envelope))
    assert memory.verify_receipt(as_sent(done.to_dict()))  # Within the answer, too.
    memory.write("Somebody else moves in.", user_id="cem")
    assert memory.verify_receipt(done.envelope)


def test_without_being_asked_nothing_is_signed(memory: Memory, tmp_path: Path) -> None:
    assert memory.erase(user_id="ada", confirm="ada").envelope is None
    assert not (tmp_path / f"memory.db{KEY_END}").exists()


def test_a_forged_receipt_does_not_hold(memory: Memory) -> None:
    done = memory.erase(user_id="ada", confirm="ada", receipt=True)
    assert done.envelope is not None
    told = json.loads(base64.b64decode(done.envelope["payload"]))
    bob = memory.list(user_id="bob")[0].id
    forged = base64.b64encode(json.dumps(told | {"ids": [str(bob)]}).encode()).decode()
    found = memory.verify_receipt({**done.envelope, "payload": forged})
    assert (bool(found), found.signed, found.same) == (False, False, None)


def test_an_old_backup_in_the_place_of_the_store_is_found_out(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Memory(path, embedder="none") as memory:
        memory.write("Ada lives in Rome.", user_id="ada")
        memory.db.backup(tmp_path / "old.db")
        one = memory.list(user_id="ada")[0].id
        by_id = memory.erase(one, receipt=True)
        whole = memory.erase(user_id="ada", confirm=True, receipt=True)
        assert by_id.envelope is not None
        assert whole.envelope is not None
        assert all(map(memory.verify_receipt, (by_id.envelope, whole.envelope)))
        key = public_bytes(signing_key(memory.db.engine.store))
    restore(tmp_path / "old.db", path, replace=True)
    with Memory(path, embedder="none") as memory:
        for receipt in (by_id.envelope, whole.envelope):
            found = memory.verify_receipt(receipt)
            assert (found.signed, found.same) == (True, False)
            assert found.differences == ("ids", "commit")
            assert memory.verify_receipt(receipt, again=False).signed
    with Memory(":memory:", embedder="none") as other:
        assert other.verify_receipt(whole.envelope, public_key=key).differences == ("ids", "commit")


def test_a_bound_caller_gets_a_receipt_without_commits_of_the_store(memory: Memory) -> None:
    ada, bob = memory.bound(user_id="ada"), memory.bound(user_id="bob")
    done = ada.erase(user_id="ada", confirm="ada", receipt=True)
    assert done.envelope is not None
    told = json.loads(base64.b64decode(done.envelope["payload"]))
    assert (told["commit"], told["commit_hash"]) == (None, None)
    assert ada.verify_receipt(done.envelope)
    assert memory.verify_receipt(done.envelope)
    with pytest.raises(worlddb.RejectedError):
        bob.verify_receipt(done.envelope)


def test_without_a_key_nothing_is_erased(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / f"memory.db{KEY_END}").write_text("no key")
    (tmp_path / f"memory.db{KEY_END}").chmod(0o600)
    with pytest.raises(worlddb.StorageError, match="is not a signing key"):
        memory.erase(user_id="ada", confirm="ada", receipt=True)
    assert len(memory.list(user_id="ada")) == 1


def test_an_export_is_verified_whole(memory: Memory) -> None:
    found = as_sent(memory.export(user_id="ada", receipt=True).to_dict())
    assert memory.verify_receipt(found)
    found["memories"][0]["text"] = "Ada lives in Paris."
    assert memory.verify_receipt(found).differences == ("digest",)
    assert memory.verify_receipt(found["receipt"], again=False).signed
    with pytest.raises(worlddb.InvalidInputError, match="no export around it"):
        memory.verify_receipt(found["receipt"])
