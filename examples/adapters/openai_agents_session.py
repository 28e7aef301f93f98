"""OpenAI Agents: a session in a WorldDB file. A scripted model answers, so it needs no key.

python examples/adapters/openai_agents_session.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import agents
from agents import Agent, Runner
from agents.testing import ScriptedModel, assistant_message

import worlddb
from worlddb.adapters.openai_agents import WorldSession


async def main(path: Path) -> list[str]:
    agents.set_tracing_disabled(True)
    model = ScriptedModel(
        [[assistant_message("Good morning.")], [assistant_message("You said hello.")]]
    )
    agent = Agent(name="Assistant", model=model)
    with worlddb.open(path) as db:
        session = WorldSession("chat-1", db)
        said = ("Hello", "What did I say?")
        answers = [(await Runner.run(agent, text, session=session)).final_output for text in said]
        items = await session.get_items()
        return [*answers, f"{len(items)} items"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        print("\n".join(asyncio.run(main(Path(folder) / "memory.db"))))
