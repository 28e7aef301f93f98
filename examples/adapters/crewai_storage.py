"""CrewAI: a storage for its memory. CrewAI embeds; here a toy embedder does. Needs no key.

python examples/adapters/crewai_storage.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from crewai.memory.types import MemoryRecord

from worlddb.adapters.crewai import WorldStorage

WORDS = ("tea", "printer", "degrees", "floor")


def embedded(text: str) -> list[float]:
    """Return which of a few words a text has, as a vector."""
    return [float(word in text) for word in WORDS]


def main(path: Path) -> list[str]:
    storage = WorldStorage(path)  # Memory(storage=storage, embedder=…, llm=…)
    texts = ["Green tea is brewed at 75 degrees.", "The printer is on the second floor."]
    storage.save(
        [MemoryRecord(content=one, scope="/house", embedding=embedded(one)) for one in texts]
    )
    found = storage.search(embedded("How hot is tea, in degrees?"), scope_prefix="/house", limit=1)
    told = [record.content for record, _ in found]
    storage.close()
    return told


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(main(Path(folder) / "memory.db")))
