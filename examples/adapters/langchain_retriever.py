"""LangChain: a retriever on a memory, a vector store and a chat history. Needs no key.

python examples/adapters/langchain_retriever.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage

from worlddb import Memory
from worlddb.adapters.langchain import MemoryRetriever, WorldChatHistory, WorldVectorStore


def main(path: Path) -> list[str]:
    with Memory(path, user_id="ada") as memory:
        memory.write("Sarah Chen moved to Oslo.")
        retriever = MemoryRetriever(memory=memory, k=1)
        found = retriever.invoke("Where does Sarah Chen live?")

        documents = WorldVectorStore(memory)
        documents.add_texts(["Green tea: 80 degrees.", "Rye bread: 220 degrees."])
        nearest = documents.similarity_search("How hot is green tea?", k=1)

        history = WorldChatHistory("chat-1", memory)
        history.add_messages([HumanMessage("Hello"), AIMessage("Good morning, Ada")])
        return [
            found[0].page_content,
            nearest[0].page_content,
            " / ".join(str(message.content) for message in history.messages),
        ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(main(Path(folder) / "memory.db")))
