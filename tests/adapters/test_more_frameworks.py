"""Adapters for ADK, Agent Framework, Haystack, deepagents and CrewAI, with the frameworks.

A test runs where its framework is installed, else it says what to install; see test_frameworks.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import Memory

from .test_frameworks import need


def test_sessions_of_adk_keep_events_and_three_kinds_of_state(tmp_path: Path) -> None:
    need("google.adk")
    from google.adk.errors.already_exists_error import AlreadyExistsError
    from google.adk.events.event import Event, EventActions
    from google.adk.sessions.base_session_service import GetSessionConfig

    from worlddb.adapters.google_adk import WorldSessionService

    async def run(service: Any) -> None:
        who = {"app_name": "app", "user_id": "a/b"}
        state = {"app:x": 1, "user:y": 2, "z": 3, "temp:t": 4}
        made = await service.create_session(**who, state=state, session_id="s")
        assert made.state == {"app:x": 1, "user:y": 2, "z": 3}
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**who, session_id="s")
        for number in range(3):
            delta = {"z": number, "user:y": number, "temp:t": 9}
            event = Event(author="user", actions=EventActions(state_delta=delta))
            await service.append_event(made, event)
            assert made.state["temp:t"] == 9
        found = await service.get_session(**who, session_id="s")
        assert [one.id for one in found.events] == [one.id for one in made.events]
        assert found.state == {"app:x": 1, "user:y": 2, "z": 2}
        last = GetSessionConfig(num_recent_events=1)
        few = await service.get_session(**who, session_id="s", config=last)
        assert [one.id for one in few.events] == [made.events[-1].id]
        assert await service.get_user_state(**who) == {"y": 2}
        other = await service.create_session(app_name="app", user_id="bob")
        assert other.state == {"app:x": 1}
        listed = await service.list_sessions(app_name="app")
        assert {one.user_id for one in listed.sessions} == {"a/b", "bob"}
        assert all(not one.events for one in listed.sessions)
        await service.delete_session(**who, session_id="s")
        assert await service.get_session(**who, session_id="s") is None
        with pytest.raises(ValueError, match="no session s"):
            await service.append_event(made, Event(author="user"))

    service = WorldSessionService(tmp_path / "m.db")
    asyncio.run(run(service))
    service.close()


def test_the_memory_of_adk_writes_an_event_once_and_stays_in_its_scope() -> None:
    need("google.adk")
    from google.adk.events.event import Event
    from google.adk.memory.memory_entry import MemoryEntry
    from google.genai import types

    from worlddb.adapters.google_adk import WorldMemoryService

    def said(text: str) -> Any:
        return types.Content(role="user", parts=[types.Part(text=text)])

    async def run(memory: Memory) -> None:
        service = WorldMemoryService(memory)
        who: Any = {"app_name": "app", "user_id": "ada"}
        events = [Event(author="user", content=said("I moved to Oslo."))]
        for _ in range(2):
            await service.add_events_to_memory(**who, events=events, session_id="s")
        assert len(memory.list(user_id="ada")) == 1
        await service.add_memory(**who, memories=[MemoryEntry(content=said("I like green tea."))])
        found = await service.search_memory(**who, query="Where did I move?")
        [first, *_] = found.memories
        assert first.content.parts[0].text == "I moved to Oslo."
        memory.write("I moved to Rome.", origin="web", user_id="ada", app_id="app")
        page = (await service.search_memory(**who, query="Rome")).memories[0]
        assert page.content.parts[0].text == 'web says, unconfirmed: "I moved to Rome."'
        assert (page.author, page.content.role) == ("web", "model")
        memory.retire(page.id)
        for stranger in ({"app_name": "app", "user_id": "bob"}, who | {"app_name": "other"}):
            assert (await service.search_memory(**stranger, query="Oslo")).memories == []
        await service.delete_memory(**who, memory_id=first.id)
        await service.delete_memory(**who, memory_id="f" * 64)
        left = await service.search_memory(**who, query="Oslo tea")
        assert [one.content.parts[0].text for one in left.memories] == ["I like green tea."]

    with Memory(":memory:", embedder="none") as memory:
        asyncio.run(run(memory))


def test_a_context_provider_looks_where_it_was_told_and_writes_once() -> None:
    need("agent_framework")
    from agent_framework import AgentSession, Message, SessionContext

    from worlddb.adapters.agent_framework import WorldContextProvider, WorldHistoryProvider

    async def run(memory: Memory) -> None:
        memory.write("The team meets on Mondays.", app_id="team")
        provider = WorldContextProvider(memory, search={"app_id": "team"}, user_id="ada")
        asked = Message("user", ["When does the team meet?"], message_id="m1")
        for _ in range(2):
            context = SessionContext(session_id="s", input_messages=[asked])
            options = {"agent": None, "session": AgentSession(), "context": context, "state": {}}
            await provider.before_run(**options)
            assert "Mondays" in context.get_messages()[0].text
            await provider.after_run(**options)
        assert [one.text for one in memory.list(user_id="ada")] == [
            "user: When does the team meet?"
        ]
        assert len(memory.list(app_id="team")) == 1
        history = WorldHistoryProvider(memory)
        await history.save_messages("s", [asked, Message("assistant", ["On Mondays."])])
        await history.save_messages("s", [asked])
        kept = await history.get_messages("s")
        assert [(one.role, one.text) for one in kept] == [
            ("user", "When does the team meet?"),
            ("assistant", "On Mondays."),
        ]
        assert await history.get_messages("other") == []

    with Memory(":memory:", embedder="none") as memory:
        asyncio.run(run(memory))


def test_documents_of_haystack_are_filtered_recalled_and_kept_as_they_were(tmp_path: Path) -> None:
    need("haystack")
    from haystack import Document
    from haystack.document_stores.types import DuplicatePolicy

    from worlddb.adapters.haystack import WorldDocumentStore, WorldRetriever

    store = WorldDocumentStore(tmp_path / "m.db")
    documents = [
        Document(content="Green tea at 75 degrees.", meta={"n": 1}, embedding=[0.1, 0.9]),
        Document(content="The printer is upstairs.", meta={"n": 2}, embedding=[0.9, 0.1]),
        Document(meta={"n": 3}),
    ]
    assert store.write_documents(documents) == 3
    assert store.filter_documents() == documents
    assert store.write_documents(documents, DuplicatePolicy.SKIP) == 0
    two = {"field": "meta.n", "operator": "==", "value": 2}
    [best] = WorldRetriever(store, top_k=1).run("green tea")["documents"]
    assert best.content == documents[0].content
    others = WorldRetriever(store).run("green tea", filters=two)["documents"]
    assert {one.meta["n"] for one in others} <= {2}
    assert store.embedding_retrieval([1.0, 0.0], top_k=1)[0].content == documents[1].content
    again = WorldDocumentStore.from_dict(store.to_dict())
    assert again.count_documents() == 3
    again.close()
    store.close()


def test_the_files_of_deepagents_have_versions_and_tell_errors() -> None:
    need("deepagents")
    from worlddb.adapters.deepagents import WorldBackend

    with Memory(":memory:", embedder="none") as memory:
        backend = WorldBackend(memory, user_id="ada")
        assert backend.ls("/").entries == []
        assert backend.read("/none").error is not None
        assert backend.write("/src/app/main.py", "one\ntwo\nthree\n").path == "/src/app/main.py"
        part = backend.read("/src/app/main.py", offset=1, limit=1)
        assert (part.file_data["content"], part.start_line, part.next_offset) == ("two\n", 2, 2)
        assert backend.edit("/src/app/main.py", "two", "2").occurrences == 1
        assert backend.edit("/src/app/main.py", "absent", "x").error is not None
        assert backend.edit("/none", "a", "b").error is not None
        assert [one["path"] for one in backend.glob("*.py").matches] == ["/src/app/main.py"]
        assert [one["path"] for one in backend.glob("app/*.py", "/src").matches] == [
            "/src/app/main.py"
        ]
        assert backend.glob("/*.py").matches == []
        assert backend.glob("../*").error is not None
        [line] = backend.grep("thre", path="/src").matches
        assert (line["path"], line["line"]) == ("/src/app/main.py", 3)
        assert [one["path"] for one in backend.ls("/src").entries] == ["/src/app/"]
        [sent] = backend.upload_files([("/image.png", b"\x89PNG\xff")])
        assert sent.error is None
        found = backend.download_files(["/image.png", "/src", "/none"])
        assert [(one.content, one.error) for one in found] == [
            (b"\x89PNG\xff", None),
            (None, "is_directory"),
            (None, "file_not_found"),
        ]
        assert backend.delete("/src").path == "/src"
        assert backend.delete("/src").error is not None
        assert backend.write("/a/../b", "x").error is not None
        assert len(memory.files_of(user_id="ada").history("/src/app/main.py")) == 2


def test_records_of_crewai_are_found_by_their_vectors_scopes_and_categories(tmp_path: Path) -> None:
    need("crewai")
    from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
    from crewai.memory.types import MemoryRecord

    from worlddb.adapters.crewai import WorldStorage

    storage = WorldStorage(tmp_path / "m.db")
    assert isinstance(storage, StorageBackend)
    tea = MemoryRecord(
        content="Tea at five.", scope="/house/kitchen", categories=["tea"], embedding=[1.0, 0.0]
    )
    fax = MemoryRecord(
        content="Fax upstairs.", scope="/house/office", metadata={"n": 1}, embedding=[0.0, 1.0]
    )
    storage.save([tea, fax])
    storage.save([])
    assert [one.content for one, _ in storage.search([1.0, 0.1])] == [
        "Tea at five.",
        "Fax upstairs.",
    ]
    assert [one.id for one, _ in storage.search([1.0, 0.1], min_score=0.5)] == [tea.id]
    assert [one.id for one, _ in storage.search([1, 1], categories=["tea"])] == [tea.id]
    assert [one.id for one, _ in storage.search([1, 1], metadata_filter={"n": 1})] == [fax.id]
    assert storage.search([1.0, 0.0], scope_prefix="/hous") == []
    assert storage.list_scopes("/house") == ["/house/kitchen", "/house/office"]
    assert storage.get_scope_info("/house").record_count == 2
    assert storage.list_categories() == {"tea": 1}
    with pytest.raises(EmbeddingDimensionMismatchError):
        storage.save([MemoryRecord(content="x", embedding=[1.0])])
    with pytest.raises(EmbeddingDimensionMismatchError):
        storage.search([1.0])
    storage.update(tea.model_copy(update={"content": "Tea at six."}))
    kept = storage.get_record(tea.id)
    assert kept is not None
    assert (kept.content, kept.embedding, kept.created_at) == (
        "Tea at six.",
        [1.0, 0.0],
        tea.created_at,
    )
    assert asyncio.run(storage.adelete(record_ids=[fax.id])) == 1
    assert [one.id for one in storage.list_records()] == [tea.id]
    storage.close()
    with worlddb.open(tmp_path / "m.db", embedder="none") as db:
        again = WorldStorage(db)
        assert again.count("/house") == 1
        again.reset()
        assert again.count() == 0
