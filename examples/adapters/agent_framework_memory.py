"""Microsoft Agent Framework: what is remembered is added before a run. Needs no key.

python examples/adapters/agent_framework_memory.py
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Message

from worlddb import Memory
from worlddb.adapters.agent_framework import WorldContextProvider, WorldHistoryProvider


class Echo(BaseChatClient):
    """A model that tells how many messages it was given, and the first of them."""

    def _inner_get_response(
        self, *, messages: Any, stream: bool, options: Any, **_: Any
    ) -> Awaitable[ChatResponse]:
        async def answer() -> ChatResponse:
            said = f"{len(messages)} messages: {messages[0].text}"
            return ChatResponse(messages=[Message("assistant", [said])])

        return answer()


async def main(path: Path) -> list[str]:
    with Memory(path) as memory:
        memory.write("Ada moved to Oslo in May.", user_id="ada")
        agent = Agent(
            Echo(),
            context_providers=[
                WorldContextProvider(memory, user_id="ada"),
                WorldHistoryProvider(memory),
            ],
        )
        session = agent.create_session(session_id="s1")
        first = await agent.run("Where does Ada live?", session=session)
        await agent.run("And since when?", session=session)
        told = "knows Oslo" if "Oslo" in first.text else first.text
        kept = await WorldHistoryProvider(memory).get_messages("s1")
        return [told, f"{len(kept)} messages kept"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(asyncio.run(main(Path(folder) / "memory.db"))))
