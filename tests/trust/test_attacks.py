"""No attack succeeds, and what is harmless stays as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from worlddb import Memory

from .attacks import ATTACKS, FACTS, ON_A_BRANCH, Attack, Fact, successes
from .honest_texts import after_a_tool, conversations


def named(one: object) -> str:
    return str(getattr(one, "__name__", None) or getattr(one, "value", one))


@pytest.mark.parametrize("fact", FACTS, ids=named)
@pytest.mark.parametrize("attack", ATTACKS, ids=named)
def test_no_attack_succeeds(attack: Attack, fact: Fact) -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write(fact.own)
        attack(memory, fact)
        assert list(successes(memory, fact)) == []


@pytest.mark.parametrize("fact", FACTS[:2], ids=named)
@pytest.mark.parametrize("attack", ON_A_BRANCH, ids=named)
def test_no_branch_carries_an_attack(attack: Attack, fact: Fact, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", embedder="none", recluster="off") as memory:
        memory.write(fact.own)
        attack(memory, fact)
        assert list(successes(memory, fact)) == []


@pytest.mark.parametrize("fact", FACTS, ids=named)
def test_the_same_words_of_the_user_count(fact: Fact) -> None:
    """The referee can fail: what the user says takes effect."""
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write(fact.own)
        memory.write(fact.forged)
        assert list(successes(memory, fact)) != []


@pytest.mark.parametrize("fact", FACTS, ids=named)
@pytest.mark.parametrize("origin", ["assistant", "import", "model"])
def test_trusted_origins_work_as_ever(fact: Fact, origin: str) -> None:
    """An agent that writes for its user gets the same answers as without origins."""
    told = []
    for said in (None, origin):
        with Memory(":memory:", embedder="none", recluster="off") as memory:
            memory.write(fact.own)
            done = memory.write(fact.forged, origin=said)  # type: ignore[arg-type]
            hits = [hit.node.content for hit in memory.recall(fact.question)]
            told.append((len(done.superseded), hits, fact.value in memory.context()))
    assert told[0] == told[1]


def test_harmless_pages_are_found_and_marked() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write("I am going to Bergen in June.")
        memory.write("The ferry to Bergen leaves at nine.", origin="web")
        first = memory.recall("When does the ferry to Bergen leave?")[0]
        assert (first.node.origin, first.conflicts) == ("web", ())
        assert 'web says, unconfirmed: "The ferry' in memory.context("When does the ferry leave?")


@pytest.mark.parametrize(
    "said",
    [
        "The code of the gate is 4711.",  # The user's own words, beside another number of a page.
        "The code of the gate is 9000.",  # A number that nobody has said.
        "Ann Lee likes coffee.",
        "The user asked about the gate.",
    ],
)
def test_an_assistant_that_does_not_repeat_a_page_keeps_its_trust(said: str) -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write("The code of the gate is 4711.")
        memory.write("The code of the gate is 6666. Many people like coffee at Ann.", origin="web")
        done = memory.write(said, origin="assistant")
        assert memory.read(done.id).trust == "full"


def test_what_others_wrote_elsewhere_is_no_echo() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write("I live in Paris.", origin="web", user_id="bob")
        done = memory.write("Note: I live in Paris.", origin="assistant", user_id="ada")
        assert memory.read(done.id, user_id="ada").trust == "full"


def test_phrases_that_any_two_texts_share_are_no_echo() -> None:
    """ "We did it" and "are you going to stay?" were: 7 of 431 turns after an unrelated tool."""
    friends, project, _ = conversations()
    assert after_a_tool(friends[:6], project[:6]).lowered == 0
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        memory.write("We did it! In the calendar. Are you going to stay? I'm sorry.", origin="web")
        for said in ("Thank you all: we did it.", "Are you going to stay?", "In the calendar."):
            assert memory.read(memory.write(said, origin="assistant").id).trust == "full"


def test_a_session_of_a_tool_is_not_trusted_for_its_summary() -> None:
    said = ("The gate has the code 6666. " * 3, "Victor guards the gate.", "Victor owns the gate.")
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        chat = [{"role": "tool", "content": one} for one in said]
        memory.write(messages=chat, at="2025-01-01", user_id="default", run_id="r7")
        memory.consolidate(min_age=0)
        (session,) = memory.recall("The chat", types=["Session"])
        assert (session.trust, session.origin, session.node.origin) == ("limited", "tool", "user")
        assert session.text.endswith("(from tool)")
        told = memory.context("The chat", types=["Session"]).text
        assert 'tool says, unconfirmed: "' in told
        turns = memory.recall("Who guards the gate?", types=["Turn"])
        assert {hit.said for hit in turns} == {
            f'tool says, unconfirmed: "{hit.node.content}"' for hit in turns
        }
        first = memory.recall("Who guards the gate?", summaries="first")[0]
        assert (first.node.type, first.trust) == ("Summary", "limited")


def test_a_chat_and_a_document_are_listed_with_the_trust_of_what_is_shown() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        said = ["The code is 6666.", *(f"Step {number} is done." for number in range(6))]
        chat = [{"role": "assistant", "content": one} for one in said[1:]]
        memory.write(messages=[*chat, {"role": "tool", "content": said[0]}], run_id="r1")
        (short,), whole = memory.list(run_id="r1"), memory.read(memory.list(run_id="r1")[0].id)
        assert [said[0] in one.text for one in (short, whole)] == [False, True]
        assert ((short.trust, short.origin), whole.trust) == (("full", "assistant"), "limited")
        page = "The code of the gate is 6666."
        memory.write(page, origin="web")
        note = {"name": "n.md", "text": f"# A\n\nTea is hot.\n\n# B\n\n{page}"}
        done = memory.write(document=note, origin="assistant")
        assert (memory.read(done.id).trust, memory.read(done.id).origin) == ("low", "web")


def test_what_is_outdated_in_a_page_is_in_quotes_too() -> None:
    with Memory(":memory:", embedder="none", recluster="off") as memory:
        page = memory.signed(origin="web")
        page.write("Anna works at Siemens and lives in Rome.", at="2024-01-01")
        page.write("Anna lives in Paris.", at="2025-01-01")
        told = memory.context("Where does Anna live?").text
        assert told.count("no longer so") == 1
        assert ': "lives in Rome.")' in told


@pytest.mark.anyio
async def test_a_model_is_told_who_said_it(tmp_path: Path) -> None:
    from mcp import Client

    from worlddb.faces.mcp.mcp_server import make_server

    with Memory(tmp_path / "m.db", embedder="none", recluster="off") as memory:
        memory.write("I work at Harbour Bank.")
        page = memory.write("I work at Storm Bank.", origin="web").id

        async with Client(make_server(lambda: memory, tools="all")) as client:

            async def asked(tool: str, **given: object) -> str:
                answer = (await client.call_tool(tool, given)).structured_content
                return json.dumps(answer)

            query = {"text": "Storm"}
            for told in (
                await asked("memory_recall", query="Where do I work?"),
                await asked("memory_list"),
                await asked("memory_query", query=query),
                await asked("memory_read", id=str(page)),
            ):
                assert told.count('"origin": "web"') == told.count('"I work at Storm Bank."')
            # Alone, the user's own memory names the page that contradicts it.
            alone = await asked("memory_recall", query="Where do I work?", k=1)
            assert '"text": "I work at Storm Bank.", "origin": "web"' in alone
