"""Claude Agent SDK: transcripts mirrored into a WorldDB file. Needs no key.

python examples/adapters/claude_agent_session.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import worlddb
from worlddb.adapters.claude_agent_sdk import WorldSessionStore


async def main(path: Path) -> list[str]:
    with worlddb.open(path) as db:
        store = WorldSessionStore(db)  # ClaudeAgentOptions(session_store=store)
        key = {"project_key": "shop", "session_id": "s1"}
        entries: list[Any] = [{"type": "user", "uuid": "1", "message": {"content": "Hello"}}]
        await store.append(key, entries)
        await store.append(key, entries)  # Sent again: written once.
        sessions = [one["session_id"] for one in await store.list_sessions("shop")]
        return [f"{len(await store.load(key) or [])} entry", ", ".join(sessions)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(asyncio.run(main(Path(folder) / "memory.db"))))
