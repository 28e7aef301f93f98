"""Google ADK: a memory service on a WorldDB memory, and a session service.

    Runner(agent=agent, app_name="app", session_service=WorldSessionService("memory.db"),
           memory_service=WorldMemoryService(worlddb.Memory("memory.db")))

ADK's app is the scope `app_id`, its user `user_id`, its session the run. Each event is stored once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.base_session_service import (
    BaseSessionService,
    GetSessionConfig,
    ListSessionsResponse,
)
from google.adk.sessions.session import Session
from google.adk.sessions.state import State
from google.genai import types

from worlddb.adapters.item_log import Given, ItemLog, OnStore, folder_name
from worlddb.errors import NotFoundError
from worlddb.files.versioned_files import FileChanges
from worlddb.model.inputs import said_by

ACTOR = "google-adk"
RESULTS = 10  # As ADK's own service returns.
SESSION, EVENTS, STATE = "session.json", "events", "state.json"


class WorldMemoryService(BaseMemoryService):
    """Memories of ADK's users and apps; `memory` is a `Memory` or a `Client`."""

    def __init__(self, memory: Any, *, k: int = RESULTS) -> None:
        self._memory, self._k = memory, k

    async def add_session_to_memory(self, session: Session) -> None:
        """Write the events of a session; events written before are skipped."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Write the texts of some events; events written before are skipped."""
        scope = {"user_id": user_id, "app_id": app_name}
        scope |= {"run_id": session_id} if session_id else {}
        for event in events:
            text = _text(event.content)
            if not text:
                continue
            said = {"role": event.author or "user", "content": text}
            said["at"] = datetime.fromtimestamp(event.timestamp, UTC).isoformat()
            await asyncio.to_thread(
                self._memory.write,
                messages=[said],
                metadata=dict(custom_metadata or {}) or None,
                idempotency_key=f"{ACTOR}:{app_name}:{session_id or ''}:{event.id}",
                **scope,
            )

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Write entries unchanged."""
        for entry in memories:
            metadata = {**(custom_metadata or {}), **entry.custom_metadata}
            await asyncio.to_thread(
                self._memory.write,
                _text(entry.content),
                metadata=metadata or None,
                user_id=user_id,
                app_id=app_name,
            )

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """Return the memories that match a query, best first."""
        if not query.strip():
            return SearchMemoryResponse()
        found = await asyncio.to_thread(
            self._memory.recall, query, k=self._k, user_id=user_id, app_id=app_name
        )
        return SearchMemoryResponse(memories=[_entry(hit) for hit in found.hits])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """End one memory by its id; an unknown id is ignored."""
        if memory_id is None:
            raise ValueError("memory_id: say which memory; an entry of search_memory has its id")
        try:
            await asyncio.to_thread(
                self._memory.retire, memory_id, user_id=user_id, app_id=app_name
            )
        except NotFoundError:
            return


class WorldSessionService(OnStore, BaseSessionService):
    """Sessions with their events and states; `store` is a path, an open `WorldDB` or a `Memory`.

    State with the prefix `app:` belongs to the app, with `user:` to the user of the app; state with
    `temp:` is not stored. Each event and its state changes are one commit.
    """

    def __init__(self, store: Given) -> None:
        self._open(store, ACTOR)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session.

        Raises:
            AlreadyExistsError: a session has that id.
        """
        name = (session_id or "").strip() or str(uuid4())
        await asyncio.to_thread(self._create, (app_name, user_id, name), state or {})
        found = await self.get_session(app_name=app_name, user_id=user_id, session_id=name)
        assert found is not None
        return found

    def _create(self, key: tuple[str, str, str], state: Mapping[str, Any]) -> None:
        with self._files.changes() as changes:
            if changes.find(_path(*key, SESSION)) is not None:
                raise AlreadyExistsError(f"there is a session {key[2]} already")
            own = self._keep(changes, key, state)
            told = {"id": key[2], "user_id": key[1], "state": own, "updated": time.time()}
            changes.write(_path(*key, SESSION), _json(told))

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """Return a session with its events; None if there is none."""
        return await asyncio.to_thread(self._get, (app_name, user_id, session_id.strip()), config)

    def _get(self, key: tuple[str, str, str], config: GetSessionConfig | None) -> Session | None:
        path = _path(*key, SESSION)
        if not self._files.exists(path):
            return None
        events = [Event.model_validate_json(text) for text in self._log(key).read()]
        if config is not None and config.after_timestamp:
            events = [one for one in events if one.timestamp >= config.after_timestamp]
        if config is not None and config.num_recent_events is not None:
            events = events[-config.num_recent_events :] if config.num_recent_events else []
        return self._session(key[0], json.loads(self._files.read(path).text), events)

    def _session(self, app: str, told: Mapping[str, Any], events: list[Event]) -> Session:
        shared = {State.APP_PREFIX: _path(app, STATE)}
        shared[State.USER_PREFIX] = _path(app, told["user_id"], STATE)
        state = dict(told["state"])
        for prefix, path in shared.items():
            state |= {prefix + key: value for key, value in self._state(path).items()}
        return Session(
            app_name=app,
            user_id=told["user_id"],
            id=told["id"],
            state=state,
            events=events,
            last_update_time=told["updated"],
        )

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """Return the sessions of an app, or of one user, without events, the latest last."""

        def run() -> ListSessionsResponse:
            folder = _path(app_name) if user_id is None else _path(app_name, user_id)
            files = self._files.read_all(folder)
            told = [json.loads(one.text) for one in files if one.path.endswith("/" + SESSION)]
            told.sort(key=lambda one: (one["updated"], one["user_id"], one["id"]))
            return ListSessionsResponse(sessions=[self._session(app_name, one, []) for one in told])

        return await asyncio.to_thread(run)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """End a session; its history stays readable."""

        def run() -> None:
            path = _path(app_name, user_id, session_id.strip())
            with self._files.changes() as changes:
                if changes.tree.find(path) is not None:
                    changes.delete(path)

        await asyncio.to_thread(run)

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """Return the state of a user in an app, without the prefix."""
        return await asyncio.to_thread(self._state, _path(app_name, user_id, STATE))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event to a session, with its state changes, as one commit.

        Raises:
            SessionNotFoundError: the session was deleted.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await asyncio.to_thread(self._append, session, event)
        session.last_update_time = event.timestamp
        return self._commit_event_to_session(session, event)

    def _append(self, session: Session, event: Event) -> None:
        key = (session.app_name, session.user_id, session.id)
        path = _path(*key, SESSION)
        with self._files.changes() as changes:
            file = changes.find(path)
            if file is None:
                raise SessionNotFoundError(f"there is no session {session.id}; create one")
            told = json.loads(file.text)
            own = self._keep(changes, key, event.actions.state_delta or {})
            told["state"] = {**told["state"], **own}
            told["updated"] = event.timestamp
            changes.write(path, _json(told))
            text = event.model_dump_json(exclude_none=True)
            self._log(key).append_in(changes, [text], [event.id])

    def _keep(
        self, changes: FileChanges, key: tuple[str, str, str], state: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Write the state of the app and of the user; return that of the session."""
        shared = {State.APP_PREFIX: _path(key[0], STATE), State.USER_PREFIX: _path(*key[:2], STATE)}
        left = {one: value for one, value in state.items() if not one.startswith(State.TEMP_PREFIX)}
        for prefix, path in shared.items():
            more = {one: left.pop(one) for one in list(left) if one.startswith(prefix)}
            if more:
                file = changes.find(path)
                held = {} if file is None else json.loads(file.text)
                held |= {one.removeprefix(prefix): value for one, value in more.items()}
                changes.write(path, _json(held))
        return left

    def _state(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self._files.exists(path):
            found = json.loads(self._files.read(path).text)
        return found

    def _log(self, key: tuple[str, str, str]) -> ItemLog:
        return ItemLog(self._held.db, (ACTOR, *key, EVENTS), actor=ACTOR)


def _path(*names: str) -> str:
    """Return a path in the adapter's folder; the last name may be a file name of the adapter."""
    files = (SESSION, STATE)
    return "/" + "/".join(one if one in files else folder_name(one) for one in (ACTOR, *names))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _text(content: types.Content | None) -> str:
    parts = (content.parts or []) if content is not None else []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def _entry(hit: Any) -> MemoryEntry:
    node = hit.node
    author = said_by(node.name) if node.type == "Turn" else None
    author = author if hit.trust == "full" else hit.origin
    role = "user" if author in (None, "user") else "model"
    return MemoryEntry(
        content=types.Content(role=role, parts=[types.Part(text=hit.said)]),
        custom_metadata=dict(node.metadata),
        id=str(node.id),
        author=author,
        timestamp=node.valid_from.isoformat(),
    )
