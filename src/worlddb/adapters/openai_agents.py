"""OpenAI Agents: a `Session` that keeps the conversation in a WorldDB store.

    await Runner.run(agent, "Hello", session=WorldSession("chat-1", "memory.db"))

Items are stored unchanged, in order. A removed item ends and stays in the store's history.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from agents.memory import SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from worlddb.adapters.item_log import Given, ItemLog, OnStore

ACTOR = "openai-agents"


class WorldSession(OnStore):
    """The conversation of one session id; `store` is a path, an open `WorldDB` or a `Memory`.

    Sessions in one store are separated by their ids. `session_settings` may limit how many items a
    run gets.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        store: Given,
        *,
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        if isinstance(session_settings, Mapping):
            session_settings = coerce_session_settings(dict(session_settings))
        self.session_settings = session_settings or SessionSettings()
        self._open(store, ACTOR)
        self._log = ItemLog(self._held.db, (ACTOR, session_id), actor=ACTOR)

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
        """Return the items in order; with a limit, the last ones."""
        wanted = resolve_session_limit(limit, self.session_settings)
        if wanted is not None and wanted <= 0:
            return []
        texts = await asyncio.to_thread(self._log.read, wanted)
        return [json.loads(text) for text in texts]

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        """Append items."""
        texts = [json.dumps(item, ensure_ascii=False) for item in items]
        await asyncio.to_thread(self._log.append, texts)

    async def pop_item(self, *, wrapper: Any = None) -> Any | None:
        """Remove the last item and return it; None if there is none."""
        text = await asyncio.to_thread(self._log.pop)
        return None if text is None else json.loads(text)

    async def clear_session(self, *, wrapper: Any = None) -> None:
        """Remove all items."""
        await asyncio.to_thread(self._log.clear)
