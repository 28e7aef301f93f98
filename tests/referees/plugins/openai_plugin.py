"""Puts our session in the place of the SQLite session of the OpenAI Agents SDK, for its tests."""

from __future__ import annotations

from typing import Any

import agents
import agents.memory

import worlddb
from worlddb.adapters.openai_agents import WorldSession

STORES: dict[str, worlddb.WorldDB] = {}


class Session(WorldSession):
    def __init__(
        self,
        session_id: str,
        db_path: Any = ":memory:",
        sessions_table: str = "",
        messages_table: str = "",
        session_settings: Any = None,
    ) -> None:
        path = str(db_path)
        if path == ":memory:":
            store = worlddb.open(path, embedder="none")
        else:
            if path not in STORES:
                STORES[path] = worlddb.open(f"{path}.world", embedder="none", durability="normal")
            store = STORES[path]
        super().__init__(session_id, store, session_settings=session_settings)


agents.SQLiteSession = Session
agents.memory.SQLiteSession = Session
