"""Haystack: a document store on versioned files, and a retriever that uses recall.

    store = WorldDocumentStore("memory.db")
    pipeline.add_component("retriever", WorldRetriever(store))

A document is a file: its content is the text, its other fields are metadata. Each call that writes
is one commit, and earlier versions stay readable.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.utils.filters import document_matches_filter

from worlddb.adapters.item_log import (
    Given,
    OnStore,
    folder_path,
    on_thread,
    pack_vectors,
    rank_by_cosine,
    unpack_vectors,
)
from worlddb.files.file_tree import FileText

ACTOR = "haystack"
VECTOR, ORDER = "embedding", "order"


class WorldDocumentStore(OnStore):
    """Documents in a collection; `store` is a path, an open `WorldDB` or a `Memory`."""

    def __init__(self, store: Given = ":memory:", collection: str = "documents") -> None:
        self._open(store, ACTOR)
        self._collection = collection
        self._folder = folder_path(ACTOR, collection)

    def to_dict(self) -> dict[str, Any]:
        """Return the store as data: its path and its collection."""
        path = str(self._held.db.path)
        return dict(default_to_dict(self, store=path, collection=self._collection))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> WorldDocumentStore:
        """Open the store with these settings."""
        made: WorldDocumentStore = default_from_dict(cls, data)
        return made

    def count_documents(self) -> int:
        """Return the number of documents."""
        return len(self._all())

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that match a filter; all without one."""
        found = [_document(file) for file in self._all()]
        return [one for one in found if _passes(one, filters)]

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents as one commit; return the number of documents written."""
        given = documents if isinstance(documents, list) else [None]
        if not all(isinstance(one, Document) for one in given):
            raise ValueError("documents: give a list of Document")
        written, now = 0, time.time_ns()
        with self._files.changes() as changes:
            for number, one in enumerate(documents):
                path = self._path(one.id)
                there = changes.find(path)
                if there is not None and policy != DuplicatePolicy.OVERWRITE:
                    if policy == DuplicatePolicy.SKIP:
                        continue
                    raise DuplicateDocumentError(f"there is a document {one.id} already")
                order = [now, number] if there is None else there.metadata[ORDER]
                metadata = _metadata(one) | {ORDER: order}
                changes.write(path, one.content or "", metadata=metadata)
                written += 1
        return written

    def delete_documents(self, document_ids: list[str]) -> None:
        """End documents by their ids; unknown ids are ignored."""
        with self._files.changes() as changes:
            for path in map(self._path, document_ids):
                if changes.find(path) is not None:
                    changes.delete(path)

    def delete_all_documents(self) -> None:
        """End all documents of the collection."""
        self.delete_documents([one.metadata["id"] for one in self._all()])

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """End the documents that match a filter; return their number."""
        found = self.filter_documents(filters)
        self.delete_documents([one.id for one in found])
        return len(found)

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Change the metadata of the documents that match a filter; return their number."""
        found = self.filter_documents(filters)
        made = [replace(one, meta={**one.meta, **meta}) for one in found]
        return self.write_documents(made, DuplicatePolicy.OVERWRITE)

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Return the number of documents that match a filter."""
        return len(self.filter_documents(filters))

    count_documents_async = on_thread(count_documents)
    filter_documents_async = on_thread(filter_documents)
    write_documents_async = on_thread(write_documents)
    delete_documents_async = on_thread(delete_documents)

    def recall(
        self, query: str, *, filters: dict[str, Any] | None = None, top_k: int = 10
    ) -> list[Document]:
        """Return the documents that answer a query best, by recall."""
        hits = self._recalled(query, self._folder) if query.strip() else {}
        files: dict[bytes, FileText] = {one.version: one for one in self._all()}
        found = [_document(files[key], score) for key, score in hits.items() if key in files]
        return [one for one in found if _passes(one, filters)][:top_k]

    def embedding_retrieval(
        self,
        query_embedding: list[float],
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
    ) -> list[Document]:
        """Return the documents with the nearest embeddings, by cosine."""
        files: dict[bytes, FileText] = {one.version: one for one in self._all()}
        held = {key: unpack_vectors(one.metadata.get(VECTOR, ())) for key, one in files.items()}
        found = [
            _document(files[key], score) for key, score in rank_by_cosine(query_embedding, held)
        ]
        return [one for one in found if _passes(one, filters)][:top_k]

    def _all(self) -> list[FileText]:
        """Return the files of the documents in the order of writing."""
        return sorted(self._files.read_all(self._folder), key=lambda one: one.metadata[ORDER])

    def _path(self, name: str) -> str:
        return self._folder + folder_path(name)


@component
class WorldRetriever:
    """Retrieves the documents of a `WorldDocumentStore` by recall."""

    def __init__(
        self,
        document_store: WorldDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
    ) -> None:
        self.document_store, self.filters, self.top_k = document_store, filters, top_k

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """Return the documents that answer a query best."""
        found = self.document_store.recall(
            query, filters=filters or self.filters, top_k=top_k or self.top_k
        )
        return {"documents": found}


def _metadata(document: Document) -> dict[str, Any]:
    """Return the fields of a document except its text; a long embedding is left out."""
    data = document.to_dict(flatten=False)
    data.pop("content")
    data.pop("score")
    data[VECTOR] = (
        pack_vectors([document.embedding], exact=True) if document.embedding is not None else []
    )
    data["has_content"] = document.content is not None
    return {key: value for key, value in data.items() if value is not None}


def _document(file: FileText, score: float | None = None) -> Document:
    data: dict[str, Any] = dict(file.metadata)
    vectors = unpack_vectors(data.pop(VECTOR, ()))
    has_content = data.pop("has_content", True)
    del data[ORDER]
    return Document.from_dict(
        {
            **data,
            "content": file.text if has_content else None,
            VECTOR: list(vectors[0]) if vectors else None,
            "score": score,
        }
    )


def _passes(document: Document, filters: Mapping[str, Any] | None) -> bool:
    if not filters:
        return True
    if "operator" not in filters and "conditions" not in filters:
        raise FilterError("filters: give field, operator and value, or operator and conditions")
    return bool(document_matches_filter(dict(filters), document))
