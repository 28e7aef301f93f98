"""Haystack's own tests on our document store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from haystack.testing.document_store import DocumentStoreBaseExtendedTests
from haystack.testing.document_store_async import (
    CountDocumentsAsyncTest,
    DeleteDocumentsAsyncTest,
    FilterDocumentsAsyncTest,
    WriteDocumentsAsyncTest,
)

import worlddb
from worlddb.adapters.haystack import WorldDocumentStore


class TestStore(DocumentStoreBaseExtendedTests):
    @pytest.fixture
    def document_store(self) -> Iterator[Any]:
        with worlddb.open(":memory:", embedder="none") as db:
            yield WorldDocumentStore(db)

    def test_write_documents(self, document_store: Any) -> None:
        """Without a policy, a document that is there is refused."""
        self.test_write_documents_duplicate_fail(document_store)


class TestAsyncStore(
    CountDocumentsAsyncTest,
    DeleteDocumentsAsyncTest,
    FilterDocumentsAsyncTest,
    WriteDocumentsAsyncTest,
):
    @pytest.fixture
    def document_store(self) -> Iterator[Any]:
        with worlddb.open(":memory:", embedder="none") as db:
            yield WorldDocumentStore(db)

    async def test_write_documents_async(self, document_store: Any) -> None:
        """Without a policy, a document that is there is refused."""
        await self.test_write_documents_duplicate_fail_async(document_store)
