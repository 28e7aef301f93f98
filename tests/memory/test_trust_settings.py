"""Trust settings of scopes: quarantine, and what becomes of secrets."""

from __future__ import annotations

import logging

import pytest

from worlddb import Memory
from worlddb.errors import ConflictError, InvalidInputError, RejectedError

KEY = "sk-ant-api03-" + "Ab1" * 12
CARD = "4111 1111 1111 1111"


def test_a_scope_says_whom_it_trusts(memory: Memory) -> None:
    assert memory.trust(user_id="ada").trust["web"] == "low"
    made = memory.set_trust({"web": "full"}, user_id="ada")
    assert made == memory.trust(user_id="ada")
    own = memory.write("I live in Berlin.", user_id="ada")
    assert memory.write("I live in Paris.", user_id="ada", origin="web").superseded == (own.id,)
    memory.set_trust({"assistant": "limited"}, everywhere=True)
    assert memory.trust(user_id="bob").trust["assistant"] == "limited"
    own = memory.write("I live in Berlin.", user_id="bob")
    assert memory.write("I live in Paris.", user_id="bob", origin="assistant").superseded == ()
    with pytest.raises(RejectedError, match="more trusted"):
        memory.signed(origin="assistant").retire(own.id)


def test_settings_that_are_none(memory: Memory) -> None:
    for wrong in ({"web": "total"}, {"pope": "full"}, {"user": "low"}, {}):
        with pytest.raises(InvalidInputError):
            memory.set_trust(wrong)
    with pytest.raises(InvalidInputError, match="secrets"):
        memory.set_trust(secrets="eat")
    for caller in (memory.bound(user_id="ada"), memory.signed(origin="assistant")):
        with pytest.raises(RejectedError, match="administrators"):
            caller.set_trust({"web": "full"})


def test_what_is_in_quarantine_is_not_recalled(memory: Memory) -> None:
    memory.set_trust({"web": "quarantine"})
    own = memory.write("I live in Berlin.")
    done = memory.write("I live in Paris, says Ann Lee.", origin="web", tags=["x"])
    assert [hit.node.content for hit in memory.recall("Where do I live?")] == ["I live in Berlin."]
    assert "Paris" not in memory.context("Where do I live?")
    assert [one.id for one in memory.list()] == [own.id]
    assert not memory.recall("Ann Lee", names=["Ann Lee"])
    (held,) = memory.quarantine()
    assert (held.id, held.origin, held.trust) == (done.id, "web", "quarantine")
    with pytest.raises(RejectedError, match="trusted in full"):
        memory.signed(origin="web").decide_quarantined(done.id, "release")
    free = memory.decide_quarantined(done.id, "release")
    assert (free.text, free.origin, free.retired) == (held.text, "web", False)
    assert free.metadata["tags"] == ["x"]
    assert not memory.quarantine().memories
    assert free.id in {hit.node.id for hit in memory.recall("Where do I live?")}
    assert not memory.read(own.id).retired
    with pytest.raises(ConflictError, match="does not wait"):
        memory.decide_quarantined(done.id, "reject")
    other = memory.write("I live in Rome.", origin="web")
    assert memory.decide_quarantined(other.id, "reject").metadata["quarantine"] == "rejected"
    assert not memory.quarantine().memories
    assert memory.db.check() == []


def test_a_rejection_is_taken_back(memory: Memory) -> None:
    memory.set_trust({"web": "quarantine"})
    done = memory.write("I live in Rome.", origin="web")
    with pytest.raises(ConflictError, match="was not rejected"):
        memory.decide_quarantined(done.id, "wait")
    memory.decide_quarantined(done.id, "reject")
    with pytest.raises(ConflictError, match="does not wait"):
        memory.decide_quarantined(done.id, "release")
    memory.decide_quarantined(done.id, "wait")
    assert [one.id for one in memory.quarantine()] == [done.id]
    assert not memory.recall("Where do I live?")
    memory.decide_quarantined(done.id, "release")
    assert [hit.node.content for hit in memory.recall("Where do I live?")] == ["I live in Rome."]
    assert memory.db.check() == []


def test_a_turn_in_quarantine(memory: Memory) -> None:
    memory.set_trust({"tool": "quarantine"})
    chat = [
        {"role": "user", "content": "Is the ferry late?"},
        {"role": "tool", "content": "The ferry is cancelled for ever."},
    ]
    memory.write(messages=chat)
    said = [hit.node.content for hit in memory.recall("Is the ferry late?")]
    assert said == ["Is the ferry late?"]


@pytest.mark.parametrize("secret", [KEY, CARD, "password: Sunshine2024!"])
def test_secrets_by_rule(memory: Memory, secret: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    text = f"Use {secret} for the shop. The shop is in Oslo."
    value = secret.removeprefix("password: ")
    done = memory.write(text)
    assert done.secrets
    assert memory.read(done.id).text == text
    memory.set_trust(secrets="keep")
    assert memory.write(text + " Really.").secrets == ()
    memory.set_trust(secrets="mask")
    masked = memory.write(text + " Truly.")
    assert value not in memory.read(masked.id).text
    assert "[secret: " in memory.read(masked.id).text
    amended = memory.amend(masked.id, f"Now it is {secret} there, in the shop.")
    assert value not in memory.read(amended.id).text
    memory.set_trust(secrets="leave_out")
    short = memory.write(f"{text} Bergen is near.")
    assert memory.read(short.id).text == "The shop is in Oslo. Bergen is near."
    with pytest.raises(RejectedError, match="nothing but a secret"):
        memory.write(f"Use {secret} now.")
    memory.set_trust(secrets="refuse")
    with pytest.raises(RejectedError, match="has a secret") as refused:
        memory.write(messages=[{"role": "user", "content": text}])
    assert value not in str(refused.value)
    assert value not in caplog.text


def test_a_private_key_is_left_out_whole(memory: Memory) -> None:
    memory.set_trust(secrets="leave_out")
    key = "-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANBg\nkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----"
    done = memory.write(f"My server is in Oslo.\n{key}\nIt runs Debian.")
    assert memory.read(done.id).text == "My server is in Oslo.\nIt runs Debian."


def test_what_only_looks_like_a_secret(memory: Memory) -> None:
    for text in (
        "The order number is 4111 1111 1111 1112.",
        "See https://example.org/page for the token economy of bees.",
        "My favourite password manager is a paper notebook.",
    ):
        assert memory.write(text).secrets == ()
