"""Chats: transcripts of Claude Code and Codex, and the exports of ChatGPT and Claude."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from worlddb.faces.hooks.transcript_lines import text_of, turns_in
from worlddb.faces.importers.imported_item import (
    ImportedItem,
    files_in,
    json_file,
    objects,
    text_in,
    time_in,
)
from worlddb.model.secret_patterns import without_secrets

EXPORT = "conversations.json"
ROLES = {"user": "user", "human": "user", "assistant": "assistant"}


def claude_code(path: str) -> Iterator[ImportedItem]:
    """Yield the turns of Claude Code's transcripts: one file, or a folder of them."""
    yield from _transcripts(path, "claude-code")


def codex(path: str) -> Iterator[ImportedItem]:
    """Yield the turns of Codex's transcripts: one file, or a folder of them."""
    yield from _transcripts(path, "codex")


def _transcripts(path: str, form: str) -> Iterator[ImportedItem]:
    for file in files_in(path, ".jsonl"):
        session = os.path.basename(file).removesuffix(".jsonl")
        start, place = -1, 0
        while place > start:
            start = place
            for after, turn in turns_in(file, form, start):
                place = after
                if turn is not None:
                    text = without_secrets(turn.text)
                    key, run = f"{session}:{turn.key}", {"run_id": session}
                    yield ImportedItem(key, text, turn.role, turn.at, scope=run)


def chatgpt(path: str) -> Iterator[ImportedItem]:
    """Yield the messages of a ChatGPT export: conversations.json, its folder, or its ZIP file."""
    for chat in objects(json_file(path, EXPORT)):
        ident = text_in(chat, "conversation_id", "id") or str(chat.get("create_time"))
        for node in _branch(chat):
            message = node["message"]
            author = message.get("author")
            content = message.get("content")
            parts = content.get("parts") if isinstance(content, dict) else None
            text = "\n".join(one for one in parts or () if isinstance(one, str))
            role = text_in(author, "role") if isinstance(author, dict) else ""
            yield from _message(
                chat, ident, text_in(message, "id"), role, text, time_in(message, "create_time")
            )


def _branch(chat: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes with messages on the branch that the chat ended on, in order."""
    nodes = chat.get("mapping")
    if not isinstance(nodes, dict):
        return []
    at, way = chat.get("current_node"), list[dict[str, Any]]()
    while isinstance(at, str) and isinstance(nodes.get(at), dict) and len(way) <= len(nodes):
        way.append(nodes[at])
        at = nodes[at].get("parent")
    found = way[::-1] or [one for one in nodes.values() if isinstance(one, dict)]
    return [one for one in found if isinstance(one.get("message"), dict)]


def claude(path: str) -> Iterator[ImportedItem]:
    """Yield the messages of a Claude export: conversations.json, its folder, or its ZIP file."""
    for chat in objects(json_file(path, EXPORT)):
        for message in objects(chat.get("chat_messages")):
            text = text_of(message.get("content")) or text_in(message, "text")
            yield from _message(
                chat,
                text_in(chat, "uuid"),
                text_in(message, "uuid"),
                text_in(message, "sender"),
                text,
                time_in(message, "created_at"),
            )


def _message(
    chat: Mapping[str, Any], ident: str, key: str, role: str, text: str, at: str | None
) -> Iterator[ImportedItem]:
    if role in ROLES and text.strip():
        title = text_in(chat, "title", "name")
        yield ImportedItem(
            f"{ident}:{key}",
            text.strip(),
            ROLES[role],
            at,
            scope={"run_id": ident} if ident else {},
            metadata={"title": title} if title else {},
        )
