"""Haystack: a document store and a retriever in a pipeline. Needs no key.

python examples/adapters/haystack_documents.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from haystack import Document, Pipeline

from worlddb.adapters.haystack import WorldDocumentStore, WorldRetriever


def main(path: Path) -> list[str]:
    store = WorldDocumentStore(path)
    store.write_documents(
        [
            Document(content="Green tea is brewed at 75 degrees.", meta={"kind": "tea"}),
            Document(content="The printer is on the second floor.", meta={"kind": "office"}),
        ]
    )
    pipeline = Pipeline()
    pipeline.add_component("retriever", WorldRetriever(store, top_k=1))
    found = pipeline.run({"retriever": {"query": "How hot is green tea?"}})
    told = [one.content for one in found["retriever"]["documents"]]
    store.close()
    return told


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(main(Path(folder) / "memory.db")))
