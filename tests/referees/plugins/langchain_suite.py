"""LangChain's own standard tests on our vector store and our retriever."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

import worlddb
from worlddb.adapters.langchain import MemoryRetriever, WorldVectorStore


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> Iterator[Any]:
        with worlddb.open(":memory:", embedder="none") as db:
            yield WorldVectorStore(db, embedding=self.get_embeddings())


class TestRetriever(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> Any:
        return MemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        memory = worlddb.Memory(":memory:", embedder="none")
        for number in range(12):
            memory.write(f"Ada likes tea number {number}.")
        return {"memory": memory}

    @property
    def retriever_query_example(self) -> str:
        return "Ada likes tea"
