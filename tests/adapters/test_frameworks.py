"""The adapters with their frameworks: runs where a framework is installed, else says what to do.

`make outside` installs all of them and also runs the frameworks' own tests.
"""

from __future__ import annotations

import asyncio
import inspect
import runpy
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import worlddb
from worlddb import Memory

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = {
    "langgraph_agent": ("langgraph", "6 checkpoints, 0 problems"),
    "langchain_retriever": ("langchain_core", "Hello / Good morning, Ada"),
    "openai_agents_session": ("agents", "4 items"),
    "anthropic_memory_tool": ("anthropic", "Green tea: 75 degrees."),
    "claude_agent_session": ("claude_agent_sdk", "s1"),
    "pydantic_ai_memory": ("pydantic_ai_harness", "tea.md"),
    "llama_index_memory": ("llama_index", "Oslo"),
    "strands_memory": ("strands", "Sarah Chen moved to Oslo."),
    "google_adk_memory": ("google.adk", "I moved to Oslo in May."),
    "agent_framework_memory": ("agent_framework", "4 messages kept"),
    "haystack_documents": ("haystack", "Green tea is brewed at 75 degrees."),
    "deepagents_files": ("deepagents", "Green tea: 75 degrees."),
    "crewai_storage": ("crewai", "Green tea is brewed at 75 degrees."),
}
EXTRAS = {
    "google.adk": "google-adk",
    "agents": "openai-agents",
    "langchain_core": "langchain",
    "pydantic_ai_harness": "pydantic-ai",
}


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # Not even the package around it.
        return False


def need(module: str) -> None:
    extra = EXTRAS.get(module, module.replace("_", "-"))
    if not _is_installed(module):
        pytest.skip(f'{module} is not installed: pip install "worlddb[{extra}]"')


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_runs_without_a_key(name: str, tmp_path: Path) -> None:
    module, last = EXAMPLES[name]
    need(module)
    main = runpy.run_path(str(REPOSITORY / "examples" / "adapters" / f"{name}.py"))["main"]
    made = main(tmp_path / "m.db")
    assert (asyncio.run(made) if inspect.iscoroutine(made) else made)[-1] == last


def test_every_adapter_has_an_extra_a_page_and_an_example() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for module, _ in EXAMPLES.values():
        extra = EXTRAS.get(module, module.replace("_", "-"))
        assert extra in extras
        page = (REPOSITORY / "docs" / "frameworks" / f"{extra}.md").read_text(encoding="utf-8")
        assert f"worlddb[{extra}]" in page
    pages = (REPOSITORY / "docs" / "frameworks").glob("*.md")
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in EXAMPLES if f"{name}.py" not in text] == []


def test_the_memory_tool_keeps_line_endings_versions_and_refuses_to_leave(tmp_path: Path) -> None:
    need("anthropic")
    from anthropic.lib.tools import ToolError

    from worlddb.adapters.anthropic import WorldMemoryTool

    with Memory(tmp_path / "m.db", embedder="none", user_id="ada") as memory:
        tool = WorldMemoryTool(memory)
        note = "/memories/n.md"
        tool.call({"command": "create", "path": note, "file_text": "a\r\nb\r\n"})
        tool.call({"command": "str_replace", "path": note, "old_str": "b", "new_str": "B"})
        tool.call({"command": "insert", "path": note, "insert_line": 1, "insert_text": "x\n"})
        assert memory.files.read(note).text == "a\r\nx\nB\r\n"
        assert len(memory.files.history(note)) == 3
        for path in ("/memories/../x", "/etc/passwd", "/memoriesx"):
            with pytest.raises(ToolError):
                tool.call({"command": "create", "path": path, "file_text": "x"})
        assert [one.path for one in memory.files.list(depth=None)] == ["/memories", note]


def test_the_store_of_langgraph_searches_with_our_own_recall(tmp_path: Path) -> None:
    need("langgraph")
    from worlddb.adapters.langgraph_store import WorldStore

    with worlddb.open(tmp_path / "m.db", embedder="none") as db:
        store = WorldStore(db)
        store.put(("users", "ada"), "tea", {"text": "Ada drinks green tea", "rank": 2})
        store.put(("users", "bob"), "tea", {"text": "Bob drinks green tea", "rank": 1})
        found = store.search(("users", "ada"), query="green tea")
        assert [(one.namespace, one.key) for one in found] == [(("users", "ada"), "tea")]
        assert [one.key for one in store.search(("users",), filter={"rank": {"$gt": 1}})] == ["tea"]
        store.put(("users", "ada"), "tea", {"text": "Ada drinks coffee"})
        assert len(db.files().history("/langgraph-store/users/ada/tea.json")) == 2
        store.delete(("users", "ada"), "tea")
        assert store.get(("users", "ada"), "tea") is None


def test_sessions_of_the_claude_sdk_pass_its_contracts() -> None:
    need("claude_agent_sdk")
    from claude_agent_sdk.testing import run_session_store_conformance

    from worlddb.adapters.claude_agent_sdk import WorldSessionStore

    def make() -> Any:
        return WorldSessionStore(worlddb.open(":memory:", embedder="none"))

    asyncio.run(run_session_store_conformance(make))


def test_an_operation_of_pydantic_ai_that_is_sent_twice_is_done_once(tmp_path: Path) -> None:
    need("pydantic_ai_harness")
    from pydantic_ai_harness.memory import (
        MemoryOperation,
        MemoryOperationConflictError,
        MetadataMemoryStore,
    )

    from worlddb.adapters.pydantic_ai import WorldMemoryStore

    async def run(store: Any) -> None:
        assert isinstance(store, MetadataMemoryStore)
        once = MemoryOperation(id="op/1", fingerprint="a")
        assert await store.get_operation(once) is None
        done = await store.write("n.md", "text", expected_version=None, operation=once)
        again = await store.write("n.md", "text", expected_version=None, operation=once)
        assert (again.version, again.replayed, again.existed) == (done.version, True, False)
        with pytest.raises(MemoryOperationConflictError):
            await store.get_operation(MemoryOperation(id="op/1", fingerprint="b"))
        file = await store.read("n.md", max_chars=2)
        assert (file.content, file.truncated, file.operation_id) == ("te", True, "op/1")
        ended = await store.delete("n.md", expected_version=done.version)
        assert (ended.version, ended.existed) == (None, True)
        assert await store.read("n.md", max_chars=10) is None
        assert await store.list_paths(limit=5) == []
        with pytest.raises(ValueError, match="invalid"):
            await store.read("../n.md", max_chars=1)

    with Memory(tmp_path / "m.db", embedder="none") as memory:
        asyncio.run(run(WorldMemoryStore(memory)))
