"""Export of one person: everything of the scope, nothing of others, and a receipt."""

from __future__ import annotations

import base64
import json

import pytest

import worlddb
from worlddb import Memory


def test_everything_of_one_person_and_nothing_of_others_is_handed_over() -> None:
    with Memory(":memory:", embedder="none") as memory:
        old = memory.write("I live in Rome.", user_id="ada", metadata={"topic": "home"})
        memory.amend(old.id, "I live in Paris.", user_id="ada")
        turns = [{"role": "user", "content": f"Number {number} is mine."} for number in range(9)]
        memory.write(messages=turns, user_id="ada")
        memory.files_of(user_id="ada").write("notes/a.md", "Buy tea.")
        memory.write("Bob lives in Oslo.", user_id="bob")
        found = memory.export(user_id="ada")
        texts = [one.text for one in found.memories]
        assert {"I live in Rome.", "I live in Paris."} <= set(texts)
        assert any("Number 8 is mine." in text for text in texts)  # The whole chat.
        assert not any("Bob" in text for text in texts)
        assert [(one.path, one.text) for one in found.files] == [("/notes/a.md", "Buy tea.")]
        assert found.receipt is None
        again = memory.export(user_id="ada")
        assert again.digest == found.digest
        memory.write("I like tea.", user_id="ada")
        assert memory.export(user_id="ada").digest != found.digest


def test_a_receipt_names_the_digest_of_what_was_exported() -> None:
    pytest.importorskip("cryptography")
    with Memory(":memory:", embedder="none") as memory:
        memory.write("I live in Rome.", user_id="ada")
        found = memory.export(user_id="ada", receipt=True)
        assert found.receipt is not None
        told = json.loads(base64.b64decode(found.receipt["payload"]))
        assert (told["scope"], told["memories"], told["files"]) == ("user:ada", 1, 0)
        assert told["digest"] == str(found.digest)


def test_a_bound_caller_exports_its_own_scope_alone() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("I live in Rome.", user_id="ada")
        memory.write("Bob lives in Oslo.", user_id="bob")
        ada = memory.bound(user_id="ada")
        assert [one.text for one in ada.export(user_id="ada").memories] == ["I live in Rome."]
        with pytest.raises(worlddb.RejectedError):
            ada.export(user_id="bob")
        with pytest.raises(worlddb.NotFoundError):
            memory.export(user_id="nobody")
        with pytest.raises(worlddb.InvalidInputError):
            memory.export()


def test_after_an_erasure_nothing_is_left_to_export() -> None:
    with Memory(":memory:", embedder="none") as memory:
        memory.write("I live in Rome.", user_id="ada")
        memory.erase(user_id="ada", confirm="ada")
        assert memory.export(user_id="ada").memories == ()
