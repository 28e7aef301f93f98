"""Microsoft Agent Framework: a context provider on a memory, and a history provider.

    agent = Agent(client, context_providers=[WorldContextProvider(memory, user_id="ada")])

Before a run the provider adds memories that match the question; after it, it writes the messages.
The scopes that it writes to and searches may differ.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_framework import ContextProvider, HistoryProvider, Message

from worlddb.adapters.item_log import Given, ItemLog, OnStore

ACTOR = "agent-framework"
ROLES = ("user", "assistant")  # Messages of other roles, such as tools, are not written.


class WorldContextProvider(ContextProvider):
    """Adds the memories of a scope before a run, and writes the messages after it.

    `memory` is a `Memory` or a `Client`; memories are written to `scope`. `search` is the scope
    that is searched, by default the same; it never inherits ids from `scope`.
    """

    def __init__(
        self,
        memory: Any,
        *,
        source_id: str = "worlddb",
        max_tokens: int = 1_000,
        search: Mapping[str, Any] | None = None,
        store: bool = True,
        **scope: Any,
    ) -> None:
        super().__init__(source_id)
        self._memory, self._scope, self._store = memory, scope, store
        self._search = dict(scope if search is None else search)
        self._max_tokens = max_tokens

    async def before_run(
        self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]
    ) -> None:
        """Add the memories that match the last message, as a message of the user."""
        asked = [one.text for one in context.input_messages if one.role == "user" and one.text]
        found = await asyncio.to_thread(
            lambda: self._memory.context(
                asked[-1] if asked else None, max_tokens=self._max_tokens, **self._search
            )
        )
        if found.text:
            context.extend_messages(self, [Message("user", [found.text])])

    async def after_run(
        self, *, agent: Any, session: Any, context: Any, state: dict[str, Any]
    ) -> None:
        """Write the messages of the user and the agent; known texts are not written again."""
        response = context.response
        said = [*context.input_messages, *(response.messages if response is not None else ())]
        chat = [
            {"role": one.role, "content": one.text}
            | ({"id": one.message_id} if one.message_id else {})
            for one in said
            if one.role in ROLES and one.text and one.text.strip()
        ]
        if self._store and chat:
            await asyncio.to_thread(lambda: self._memory.write(messages=chat, **self._scope))


class WorldHistoryProvider(OnStore, HistoryProvider):
    """The messages of each session; `store` is a path, an open `WorldDB` or a `Memory`."""

    def __init__(self, store: Given, *, source_id: str = "worlddb-history", **options: Any) -> None:
        super().__init__(source_id, **options)
        self._open(store, ACTOR)

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **_: Any
    ) -> list[Message]:
        """Return the messages of a session, in order."""
        texts = await asyncio.to_thread(self._log(session_id).read)
        return [Message.from_dict(json.loads(text)) for text in texts]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Append messages to a session as one commit; messages with a known id are skipped."""
        texts = [json.dumps(one.to_dict(), ensure_ascii=False, default=str) for one in messages]
        keys = [one.message_id for one in messages]
        await asyncio.to_thread(self._log(session_id).append, texts, keys=keys)

    def _log(self, session_id: str | None) -> ItemLog:
        return ItemLog(self._held.db, (ACTOR, self.source_id, session_id or ""), actor=ACTOR)
