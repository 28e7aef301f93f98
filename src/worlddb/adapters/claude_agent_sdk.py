"""Claude Agent SDK: a `SessionStore` that mirrors transcripts into a WorldDB store.

    ClaudeAgentOptions(session_store=WorldSessionStore("memory.db"))

A session is a list of entries in its project; each subagent of it has a list of its own. An entry
is identified by its `uuid` and stored once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from claude_agent_sdk import fold_session_summary

from worlddb.adapters.item_log import Given, ItemLog, OnStore, folder_path
from worlddb.files.versioned_files import FileChanges

ACTOR = "claude-agent-sdk"
MAIN, PARTS, SUMMARY = "main", "parts", "summary.json"


class WorldSessionStore(OnStore):
    """Sessions by project; `store` is a path, an open `WorldDB` or a `Memory`."""

    def __init__(self, store: Given) -> None:
        self._open(store, ACTOR)

    async def append(self, key: Mapping[str, Any], entries: list[Any]) -> None:
        """Append entries to a transcript, in one commit."""
        if entries:
            await asyncio.to_thread(self._append, key, entries)

    def _append(self, key: Mapping[str, Any], entries: list[Any]) -> None:
        texts = [json.dumps(entry, ensure_ascii=False) for entry in entries]
        log = self._log(key)
        with self._files.changes() as changes:
            added = log.append_in(changes, texts, [entry.get("uuid") for entry in entries])
            if added and not key.get("subpath"):
                self._fold(changes, key, entries)

    def _fold(self, changes: FileChanges, key: Mapping[str, Any], entries: list[Any]) -> None:
        """Update the summary of a session."""
        path = f"{_folder(key['project_key'], key['session_id'])}/{SUMMARY}"
        before = changes.find(path)
        previous = None
        if before is not None:
            previous = json.loads(before.text)
        folded: Any = fold_session_summary(previous, dict(key), entries)  # type: ignore[arg-type]
        folded["mtime"] = int(changes.tx.now.timestamp() * 1000)
        changes.write(path, json.dumps(folded))

    async def load(self, key: Mapping[str, Any]) -> list[Any] | None:
        """Return the entries of a transcript; None if there are none."""
        texts = await asyncio.to_thread(self._log(key).read)
        return [json.loads(text) for text in texts] or None

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """Return the sessions of a project with the times of their last entries."""
        found = await self.list_session_summaries(project_key)
        return [{"session_id": one["session_id"], "mtime": one["mtime"]} for one in found]

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        """Return the summaries of the sessions of a project."""
        files = await asyncio.to_thread(self._files.read_all, _folder(project_key))
        return [json.loads(one.text) for one in files if one.path.endswith(f"/{SUMMARY}")]

    async def delete(self, key: Mapping[str, Any]) -> None:
        """End a transcript; without a subpath, the session with its subagents' transcripts."""
        await asyncio.to_thread(self._delete, key)

    def _delete(self, key: Mapping[str, Any]) -> None:
        path = _folder(key["project_key"], key["session_id"])
        if key.get("subpath"):
            path = self._log(key).path
        if self._files.exists(path):
            self._files.delete(path)

    async def list_subkeys(self, key: Mapping[str, Any]) -> list[str]:
        """Return the subpaths of a session that have entries."""
        from urllib.parse import unquote

        path = f"{_folder(key['project_key'], key['session_id'])}/{PARTS}"
        if not await asyncio.to_thread(self._files.exists, path):
            return []
        found = await asyncio.to_thread(self._files.list, path)
        return [unquote(one.path.rpartition("/")[2]) for one in found]

    def _log(self, key: Mapping[str, Any]) -> ItemLog:
        sub = key.get("subpath")
        below = (PARTS, sub) if sub else (MAIN,)
        names = (ACTOR, key["project_key"], key["session_id"], *below)
        return ItemLog(self._held.db, names, actor=ACTOR)


def _folder(*names: str) -> str:
    return folder_path(ACTOR, *names)
