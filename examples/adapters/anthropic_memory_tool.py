"""Anthropic's memory tool on versioned files: the calls that the API would send. Needs no key.

python examples/adapters/anthropic_memory_tool.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from worlddb import Memory
from worlddb.adapters.anthropic import WorldMemoryTool


def main(path: Path) -> list[str]:
    with Memory(path, user_id="ada") as memory:
        tool = WorldMemoryTool(memory)  # tools=[tool] in client.beta.messages.tool_runner(…)
        note = "/memories/tea.md"
        tool.call({"command": "create", "path": note, "file_text": "Green tea: 80 degrees.\n"})
        tool.call({"command": "str_replace", "path": note, "old_str": "80", "new_str": "75"})
        return [
            str(tool.call({"command": "view", "path": note})).splitlines()[1].strip(),
            f"{len(memory.files.history(note))} versions",
            memory.recall("How hot is green tea?").hits[0].node.content.strip(),
        ]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(main(Path(folder) / "memory.db")))
