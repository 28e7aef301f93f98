"""Receipts of recalls: signed, asked again, and everything that is no longer so."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import Memory
from worlddb.audit.signed_envelope import public_bytes, signed_bytes, signing_key

pytest.importorskip("cryptography")
QUESTION = "Where do I live?"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", embedder="none", user_id="ada") as memory:
        memory.write("I live in Rome.", at="2026-01-10T00:00Z")
        memory.write("Bob lives in Oslo.", user_id="bob")
        yield memory


def payload_of(receipt: Any) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(base64.b64decode(receipt["payload"]))
    return payload


def receipt_of(memory: Memory, **options: Any) -> dict[str, Any]:
    receipt = memory.recall(QUESTION, receipt=True, **options).receipt
    assert receipt is not None
    return json.loads(json.dumps(receipt))  # type: ignore[no-any-return]


def test_a_receipt_says_what_was_asked_of_what_and_answered(memory: Memory) -> None:
    found = memory.recall(QUESTION, k=3, receipt=True)
    payload = payload_of(found.receipt)
    commit = memory.db.log()[-1]
    assert (payload["commit"], payload["commit_hash"]) == (commit.seq, str(commit.hash))
    assert payload["root_state"] == str(memory.db.root_state)
    assert payload["scope"] == {"user_id": ["ada"]}
    assert payload["options"]["k"] == 3
    assert [one["id"] for one in payload["hits"]] == [str(hit.id) for hit in found]
    assert [one["rank"] for one in payload["hits"]] == list(range(1, len(found) + 1))
    assert payload["confidence"] == found.confidence > 0
    # The question is not in the signed part, and its digest cannot be guessed.
    assert QUESTION not in json.dumps(payload)
    assert payload["asked"] != payload_of(receipt_of(memory))["asked"]


def test_an_answer_with_a_receipt_is_the_plain_answer(memory: Memory) -> None:
    plain, signed = memory.recall(QUESTION), memory.recall(QUESTION, receipt=True)
    assert plain.receipt is None
    assert plain.hits == signed.hits
    assert plain.confidence == signed.confidence


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"as_of": "2026-01-20T00:00Z"},
        {"known_at": "2999-01-01T00:00Z", "include_retired": True},
        {"where": {"type": "Memory"}, "names": ["Rome"], "at": "2026-03-01T00:00Z"},
        {"user_id": "nobody"},
    ],
    ids=str,
)
def test_the_same_question_as_of_then_has_the_same_answer_later(
    memory: Memory, options: dict[str, Any]
) -> None:
    receipt = receipt_of(memory, **options)
    first = memory.recall(QUESTION)[0]
    memory.write("I moved to Paris.", at="2026-02-20T00:00Z")
    memory.retire(first.id) if not memory.read(first.id).retired else None
    memory.write("I live in Nobody's house.", user_id="nobody")
    assert memory.recall(QUESTION)[0].id != first.id
    found = memory.verify_receipt(receipt)
    assert (found.signed, found.same, found.differences) == (True, True, ())
    assert found


def test_what_begins_later_is_in_the_answer_and_in_the_one_of_then(memory: Memory) -> None:
    memory.write("I live in Madrid from then on.", at="2999-01-01T00:00Z")
    receipt = receipt_of(memory)
    assert len(payload_of(receipt)["hits"]) == 2
    memory.write("I live in a tent.")
    assert memory.verify_receipt(receipt)


def test_a_changed_payload_a_changed_question_and_another_key_do_not_hold(memory: Memory) -> None:
    receipt = receipt_of(memory)
    payload = payload_of(receipt) | {"confidence": 1.0}
    forged = receipt | {"payload": base64.b64encode(json.dumps(payload).encode()).decode()}
    assert memory.verify_receipt(forged) == worlddb.Verification(signed=False, same=None)
    other = receipt | {"asked": receipt["asked"] | {"query": "Where does Bob live?"}}
    assert memory.verify_receipt(other).differences == ("asked",)
    assert not memory.verify_receipt(receipt, public_key="ab" * 32).signed


def test_an_erased_hit_is_told(memory: Memory) -> None:
    receipt = receipt_of(memory)
    memory.erase(payload_of(receipt)["hits"][0]["id"])
    found = memory.verify_receipt(receipt)
    assert (found.signed, found.same) == (True, False)
    assert "hits" in found.differences


def test_a_copy_of_the_store_verifies_with_the_public_key(memory: Memory, tmp_path: Path) -> None:
    receipt = receipt_of(memory)
    key = public_bytes(signing_key(memory.db.engine.store))
    memory.db.backup(tmp_path / "copy.db")
    with Memory(tmp_path / "copy.db", embedder="none") as copy:
        assert copy.verify_receipt(receipt, public_key=key.hex())
        with pytest.raises(worlddb.StorageError, match="signing key"):
            copy.verify_receipt(receipt)
    assert not (tmp_path / "copy.db-signing-key").exists()


def test_the_signature_is_one_that_any_dsse_verifier_checks(memory: Memory) -> None:
    receipt = receipt_of(memory)
    body = base64.b64decode(receipt["payload"])
    kind = receipt["payloadType"]
    encoded = f"DSSEv1 {len(kind)} {kind} {len(body)} ".encode() + body
    assert signed_bytes(kind, body) == encoded
    signature = base64.b64decode(receipt["signatures"][0]["sig"])
    signing_key(memory.db.engine.store).public_key().verify(signature, encoded)


def test_the_key_is_the_owners_alone_and_made_once(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "memory.db-signing-key"
    assert not path.exists()
    receipt_of(memory)
    made = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    receipt_of(memory)
    assert path.read_bytes() == made
    os.chmod(path, 0o644)
    with pytest.raises(worlddb.StorageError, match="chmod 600"):
        receipt_of(memory)


def test_a_bound_caller_learns_nothing_of_others_from_its_receipts(memory: Memory) -> None:
    ada = memory.bound(user_id="ada")
    before = payload_of(receipt_of(ada))
    memory.write("Bob moved to Bergen.", user_id="bob")
    after_receipt = receipt_of(ada)
    after = payload_of(after_receipt)
    free = ("asked", "asked_at")
    assert {key: after[key] for key in after if key not in free} == {
        key: before[key] for key in before if key not in free
    }
    assert after["commit"] is None
    memory.write("I moved to Paris.", user_id="ada")
    assert payload_of(receipt_of(ada))["root_state"] != after["root_state"]
    assert ada.verify_receipt(after_receipt)
    assert memory.verify_receipt(after_receipt)
    with pytest.raises(worlddb.RejectedError):
        memory.bound(user_id="bob").verify_receipt(after_receipt)


def test_to_verify_counts_no_recall(memory: Memory) -> None:
    receipt = receipt_of(memory)
    counted = [one.recalls for one in memory.db.fading(below=1)]
    assert memory.verify_receipt(receipt)
    assert [one.recalls for one in memory.db.fading(below=1)] == counted


def test_what_is_no_receipt_is_refused(memory: Memory) -> None:
    receipt = receipt_of(memory)
    for wrong in ({}, {"payload": "x", "signatures": []}, receipt | {"payloadType": "text/plain"}):
        with pytest.raises(worlddb.FormatError):
            memory.verify_receipt(wrong)
    with pytest.raises(worlddb.InvalidInputError, match="asked"):
        memory.verify_receipt({key: receipt[key] for key in receipt if key != "asked"})
    with pytest.raises(worlddb.InvalidInputError, match="default settings"):
        memory.recall(QUESTION, receipt=True, settings=worlddb.RecallSettings(c=1))


def test_a_store_in_memory_has_a_key_while_it_is_open() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("I live in Rome.")
        assert memory.verify_receipt(receipt_of(memory))


def test_what_has_expired_since_is_in_the_answer_of_then() -> None:
    now = [1_767_225_600_000_000]
    with Memory(":memory:", embedder="none", clock=lambda: now[0]) as memory:
        memory.write("I live in a hotel.", ttl="1h")
        receipt = receipt_of(memory)
        assert len(payload_of(receipt)["hits"]) == 1
        now[0] += 2 * 3_600_000_000
        memory.write("I like tea.")
        assert [hit.node.content for hit in memory.recall(QUESTION)] != ["I live in a hotel."]
        assert memory.verify_receipt(receipt)


def test_a_store_without_a_folder_says_that_it_cannot_sign(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(memory.db.engine.store), "side_file", lambda *_: None)
    with pytest.raises(worlddb.StorageError, match="needs a store in a file"):
        receipt_of(memory)
