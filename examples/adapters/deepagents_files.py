"""deepagents: the files of an agent are versioned files of a scope. Needs no key.

python examples/adapters/deepagents_files.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from worlddb import Memory
from worlddb.adapters.deepagents import WorldBackend


def main(path: Path) -> list[str]:
    with Memory(path) as memory:
        backend = WorldBackend(memory, user_id="ada")  # create_deep_agent(model, backend=backend)
        backend.write("/memories/AGENTS.md", "Green tea: 80 degrees.\n")
        backend.edit("/memories/AGENTS.md", "80", "75")
        versions = memory.files_of(user_id="ada").history("/memories/AGENTS.md")
        hit = memory.recall("How hot is green tea?", user_id="ada")[0]
        return [f"{len(versions)} versions", hit.node.content.strip()]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(main(Path(folder) / "memory.db")))
