"""A LangGraph graph whose state and long-term memory are in one WorldDB file. Needs no key.

python examples/adapters/langgraph_agent.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore

import worlddb
from worlddb.adapters.langgraph_saver import WorldSaver
from worlddb.adapters.langgraph_store import WorldStore


class State(TypedDict):
    """What goes through the graph."""

    text: str
    answer: str


def reply(state: State, *, store: BaseStore) -> dict[str, Any]:
    """Remember what the user says, and answer from what is remembered."""
    store.put(("users", "ada"), state["text"], {"said": state["text"]})
    found = store.search(("users", "ada"), query=state["text"], limit=3)
    return {"answer": " / ".join(sorted(item.value["said"] for item in found))}


def main(path: Path) -> list[str]:
    with worlddb.open(path) as db:
        builder = StateGraph(State)
        builder.add_node("reply", reply)
        builder.add_edge(START, "reply")
        graph = builder.compile(checkpointer=WorldSaver(db), store=WorldStore(db))
        config: Any = {"configurable": {"thread_id": "chat-1"}}
        said = ("Ada drinks green tea.", "Which tea does Ada drink?")
        answers = [graph.invoke({"text": text}, config)["answer"] for text in said]
        states = len(list(graph.get_state_history(config)))
        return [*answers, f"{states} checkpoints, {len(db.check())} problems"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(main(Path(folder) / "memory.db")))
