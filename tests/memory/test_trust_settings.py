"""Trust settings of scopes: quarantine, and what becomes of secrets."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from worlddb import Id, Memory
from worlddb.errors import ConflictError, InvalidInputError, RejectedError

KEY = "sk-ant-api03-" + "Ab1" * 12
CARD = "4111 1111 1111 1111"
WORD = "Sunshine2024!"


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


def test_metadata_of_a_caller_puts_nothing_into_quarantine(memory: Memory) -> None:
    own = memory.write("I live in Berlin.")
    for state in ("pending", "released", 1):
        forged = {"quarantine": state}
        with pytest.raises(InvalidInputError, match="use another key"):
            memory.write("I live in Rome.", metadata=forged)
        with pytest.raises(InvalidInputError, match="use another key"):
            memory.amend(own.id, "I live in Rome.", metadata=forged)
        with pytest.raises(InvalidInputError, match="use another key"):
            memory.write(document="# Rome\n\nI live there.", metadata=forged)
    assert not memory.quarantine().memories


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


WAYS: dict[str, Any] = {
    "metadata": lambda one: one.write("The shop is in Oslo.", metadata={"how": {"key": [KEY]}}),
    "a key of metadata": lambda one: one.write("The shop is big.", metadata={"password": WORD}),
    "tags": lambda one: one.write("The shop is old.", tags=["shop", KEY]),
    "names": lambda one: one.write("The shop is far.", names=["Blue Shop", KEY]),
    "aliases": lambda one: one.write("It is near.", names=["Red Shop"], aliases=["The Red", KEY]),
    "source": lambda one: one.write("The shop is shut.", source=f"https://ann:{WORD}@shop.org/a"),
    "a document": lambda one: one.write(document={"text": f"# A\n\nUse {KEY}.", "name": "a.md"}),
    "marks of a document": lambda one: one.write(
        document={"text": "# B\n\nA shop.", "name": "b.md"}, metadata={"note": f"use {KEY}"}
    ),
    "an amendment": lambda one: one.amend(
        one.write("The shop is red.").id, "The shop is blue.", metadata={"token": WORD}
    ),
    "a number": lambda one: one.write("The shop is wide.", metadata={"card": 5105105105105100}),
    "the name of a document": lambda one: one.write(
        document={"text": "# C\n\nA street.", "name": f"{KEY}.md"}
    ),
    "a speaker": lambda one: one.write(
        messages=[{"role": "user", "name": KEY, "content": "A shop.", "id": f"id-{KEY}"}]
    ),
    "a file": lambda one: one.write_file("/a.md", f"Tea is green.\nUse {KEY}."),
    "an edit": lambda one: (
        one.write_file("/b.md", "Tea is hot."),
        one.edit_file("/b.md", "hot", f"hot, {KEY}"),
    ),
    "an edge": lambda one: one.link(
        "implies",
        one.write("Rain falls.").id,
        one.write("Roads are wet.").id,
        metadata={"why": KEY},
    ),
}


@pytest.mark.parametrize("rule", ["mask", "leave_out"])
@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_carries_a_secret(tmp_path: Path, way: str, rule: str) -> None:
    with Memory(tmp_path / "memory.db", embedder="none", recluster="off") as memory:
        memory.set_trust(secrets=rule)
        WAYS[way](memory)
        told = json.dumps(memory.export(user_id="default").to_dict(), default=str)
        assert "Oslo" in told or way != "metadata"
    held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert not any(one in told or one.encode() in held for one in (KEY, WORD, "5105105105105100"))


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_is_refused_with_a_secret(memory: Memory, way: str) -> None:
    memory.set_trust(secrets="refuse")
    with pytest.raises(RejectedError, match="has a secret") as refused:
        WAYS[way](memory)
    assert KEY not in str(refused.value)
    assert WORD not in str(refused.value)


@pytest.mark.parametrize("rule", ["mask", "leave_out", "refuse"])
def test_no_path_of_a_file_has_a_secret(memory: Memory, rule: str) -> None:
    memory.write_file("/a.md", "Tea is green.")
    memory.set_trust(secrets=rule)
    for call, given in (
        (memory.write_file, (f"/{KEY}.md", "x")),
        (memory.move_file, ("/a.md", f"/{KEY}/b.md")),
    ):
        with pytest.raises(RejectedError, match="the file has a secret") as refused:
            call(*given)
        assert KEY not in str(refused.value)
    assert memory.read_file("/a.md").text == "Tea is green."


def test_the_record_of_reads_has_no_secret(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db", embedder="none", audit_reads=True) as memory:
        memory.recall(f"What is {KEY} for?")
        assert [one.question for one in memory.reads()] == ["What is [secret: api key] for?"]


def test_secrets_beside_a_text_are_told(memory: Memory) -> None:
    assert memory.write("The shop is in Oslo.", metadata={"password": WORD}).secrets == (
        "password",
    )
    assert memory.write("The shop is old.", metadata={"count": 3, "of": ["a", None]}).secrets == ()


def test_a_tool_in_quarantine_writes_no_file(memory: Memory) -> None:
    memory.set_trust({"tool": "quarantine"})
    with pytest.raises(RejectedError, match="quarantine"):
        memory.signed(origin="tool").write_file("/news.md", "The bank has moved.")
    assert len(memory.recall("Where is the bank?")) == 0


def test_no_question_finds_what_is_in_quarantine_not_even_one_for_ended_texts(
    memory: Memory,
) -> None:
    memory.set_trust({"web": "quarantine"})
    page = memory.signed(origin="web")
    own = memory.write("The old gate is in the garden.").id
    memory.retire(own)
    held = page.write("The gate has the code 6666.").id

    def found() -> list[Id]:
        asked = memory.recall("Which code has the gate?", include_retired=True)
        told = memory.query({"text": "gate", "include_superseded": True})
        steps: Any = [{"op": "include_superseded"}, {"op": "filter_type", "types": ["Memory"]}]
        more = memory.query({"text": "gate", "steps": steps})
        assert {node.id for node in told.nodes} == {node.id for node in more.nodes}
        assert {hit.id for hit in asked} == {node.id for node in told.nodes}
        return [hit.id for hit in asked]

    assert found() == [own]
    memory.decide_quarantined(held, "reject")
    assert found() == [own]
    memory.decide_quarantined(held, "wait")
    memory.decide_quarantined(held, "release")
    assert held in found()


def test_an_origin_in_quarantine_writes_no_edge(memory: Memory) -> None:
    one, other = (memory.write(text).id for text in ("Tea is green.", "Milk is white."))
    memory.set_trust({"web": "quarantine"})
    page = memory.signed(origin="web")
    with pytest.raises(RejectedError, match="held in quarantine"):
        page.link("refers_to", one, other, metadata={"relation": "obeys Victor"})
    assert memory.signed(origin="tool").link("refers_to", one, other).id
