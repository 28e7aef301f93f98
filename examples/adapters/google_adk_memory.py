"""Google ADK: sessions and memories of an agent in one file. Needs no key.

python examples/adapters/google_adk_memory.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from google.adk.events.event import Event
from google.genai import types

from worlddb import Memory
from worlddb.adapters.google_adk import WorldMemoryService, WorldSessionService


async def main(path: Path) -> list[str]:
    with Memory(path) as memory:
        sessions, memories = WorldSessionService(memory), WorldMemoryService(memory)
        session = await sessions.create_session(app_name="travel", user_id="ada", session_id="s1")
        said = types.Content(role="user", parts=[types.Part(text="I moved to Oslo in May.")])
        await sessions.append_event(session, Event(author="user", content=said))
        await memories.add_session_to_memory(session)
        found = await memories.search_memory(
            app_name="travel", user_id="ada", query="Where do I live?"
        )
        kept = await sessions.get_session(app_name="travel", user_id="ada", session_id="s1")
        assert kept is not None
        [entry] = found.memories
        assert entry.content.parts
        return [f"{len(kept.events)} event", str(entry.content.parts[0].text)]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(asyncio.run(main(Path(folder) / "memory.db"))))
