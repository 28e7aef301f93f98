"""LangChain: a retriever on a memory, a vector store, and a chat history.

MemoryRetriever(memory=Memory("memory.db"), scope={"user_id": "ada"})
WorldVectorStore("memory.db", embedding=OpenAIEmbeddings())
WorldChatHistory("chat-1", "memory.db")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from pydantic import Field

from worlddb.adapters.item_log import (
    Given,
    ItemLog,
    OnStore,
    folder_path,
    pack_vectors,
    rank_by_cosine,
    unpack_vectors,
)
from worlddb.files.file_tree import FileText

ACTOR = "langchain"


class MemoryRetriever(BaseRetriever):
    """Documents from `recall`. `memory` is a `Memory` or a `Client`.

    `scope` has the scope ids of each call, `options` further arguments of `recall`, such as `as_of`
    or `types`. A document has the id of its memory; its metadata have the memory's beginning of
    validity, its origin and source, and its score. The text of one that is not trusted in full is
    in quotes, with its origin.
    """

    memory: Any
    k: int = 10
    scope: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **given: Any
    ) -> list[Document]:
        arguments = {"k": self.k} | self.options | self.scope | given
        return [
            Document(
                id=str(hit.node.id),
                page_content=hit.said,
                metadata={
                    **hit.node.metadata,
                    "origin": hit.origin,
                    "score": hit.score,
                    "type": hit.node.type,
                    "valid_from": hit.valid_from.isoformat(),
                    "valid_to": None if hit.valid_to is None else hit.valid_to.isoformat(),
                    "provenance": list(hit.provenance),
                },
            )
            for hit in self.memory.recall(query, **arguments).hits
        ]


class WorldVectorStore(OnStore, VectorStore):
    """Documents in a collection; each is a file, so earlier versions stay readable.

    With `embedding`, documents are ranked by its vectors, otherwise by recall. `store` is a path,
    an open `WorldDB` or a `Memory`.
    """

    def __init__(
        self, store: Given, *, embedding: Any = None, collection: str = "documents"
    ) -> None:
        self._open(store, ACTOR)
        self._embedding = embedding
        self._folder = folder_path(ACTOR, collection)

    @property
    def embeddings(self) -> Any:
        """The embedder that ranks documents; None for recall."""
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[str]:
        """Write texts as one commit and return their ids; a text replaces one with the same id."""
        given = list(texts)
        names = [one or str(uuid4()) for one in ids or [None] * len(given)]
        vectors = self._embedding.embed_documents(given) if self._embedding and given else []
        with self._files.changes() as changes:
            for number, (name, text) in enumerate(zip(names, given, strict=True)):
                metadata: dict[str, Any] = {
                    "id": name,
                    "metadata": metadatas[number] if metadatas else {},
                }
                if vectors:
                    metadata["vectors"] = pack_vectors([vectors[number]])
                changes.write(self._path(name), text, metadata=metadata)
        return names

    def add_documents(self, documents: list[Document], **options: Any) -> list[str]:
        """Write documents as one commit; see `add_texts`."""
        options.setdefault("ids", [one.id for one in documents])
        texts = [one.page_content for one in documents]
        return self.add_texts(texts, [one.metadata for one in documents], **options)

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """End documents by their ids, or all documents; unknown ids are ignored."""
        with self._files.changes() as changes:
            paths = [self._folder] if ids is None else list(map(self._path, ids))
            for path in paths:
                if changes.tree.find(path) is not None:
                    changes.delete(path)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids; unknown ids are ignored."""
        paths = [path for path in map(self._path, ids) if self._files.exists(path)]
        return [_document(self._files.read(path)) for path in paths]

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """Return the documents nearest to a query, best first."""
        return [one for one, _ in self.similarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        *,
        filter: dict[str, Any] | Callable[[Document], bool] | None = None,
        **_: Any,
    ) -> list[tuple[Document, float]]:
        """Return documents with their scores; `filter` is metadata, or a test of a document."""
        files: dict[bytes, FileText] = {
            one.version: one for one in self._files.read_all(self._folder)
        }
        if self._embedding is None:
            found = list(self._recalled(query, self._folder).items())
        else:
            held = {key: unpack_vectors(one.metadata["vectors"]) for key, one in files.items()}
            found = rank_by_cosine(self._embedding.embed_query(query), held)
        chosen = ((_document(files[key]), score) for key, score in found if key in files)
        return [pair for pair in chosen if _passes(pair[0], filter)][:k]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: (score + 1) / 2 if self._embedding else score

    def _path(self, name: str) -> str:
        return self._folder + folder_path(name)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Any,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        store: Given = ":memory:",
        **options: Any,
    ) -> WorldVectorStore:
        """Return a vector store with these texts in it."""
        made = cls(store, embedding=embedding, **options)
        made.add_texts(texts, metadatas, ids=ids)
        return made


class WorldChatHistory(OnStore, BaseChatMessageHistory):
    """The messages of one session; `store` is a path, an open `WorldDB` or a `Memory`."""

    def __init__(self, session_id: str, store: Given) -> None:
        self._open(store, ACTOR)
        self._log = ItemLog(self._held.db, ("langchain-chats", session_id), actor=ACTOR)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, in order."""
        return messages_from_dict([json.loads(text) for text in self._log.read()])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages as one commit."""
        self._log.append([json.dumps(message_to_dict(one), ensure_ascii=False) for one in messages])

    def clear(self) -> None:
        """Remove all messages; they stay in the store's history."""
        self._log.clear()


def _document(file: FileText) -> Document:
    return Document(
        id=file.metadata["id"], page_content=file.text, metadata=dict(file.metadata["metadata"])
    )


def _passes(document: Document, wanted: Any) -> bool:
    if callable(wanted):
        return bool(wanted(document))
    return all(document.metadata.get(key) == value for key, value in (wanted or {}).items())
