"""Interchange: imports chats and memories of other programs, and exports a scope for them.

Each source yields `ImportedItem`s with a key. `import_items` writes every item once, even if the
import is repeated.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, uuid5

from worlddb import __version__
from worlddb.errors import ConflictError, FormatError, InvalidInputError
from worlddb.faces.hooks.client_dialects import text_of, turns_in
from worlddb.faces.user_paths import exported, files_in, json_file, text_in_file
from worlddb.ingest.draft_parts import QUARANTINE
from worlddb.memory.memory import Memory
from worlddb.memory.results import Remembered
from worlddb.memory.scope_view import DEFAULT_USER
from worlddb.model.records import Node
from worlddb.model.text_safety import (
    ORIGINS,
    USER,
    less_trusted_of,
    without_secret_values,
    without_secrets,
)

# One item of an import, and the functions that several formats use.


class ImportedItem(NamedTuple):
    """Something to remember: a key that is unique in its source, its text, and its metadata.

    `role` is the speaker in a chat; `messages` is a whole chat, whose turns `text` lists; `scope`
    has user, agent, app and run as in the source; `until` is when it stopped being true; `origin`
    is who brought it into the source, if known.
    """

    key: str
    text: str
    role: str | None = None
    at: str | None = None
    until: str | None = None
    names: tuple[str, ...] = ()
    scope: Mapping[str, str] = {}
    metadata: Mapping[str, Any] = {}
    origin: str | None = None
    messages: tuple[Mapping[str, str], ...] = ()


Reader = Callable[[str], Iterator[ImportedItem]]


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; none if the value is not a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_in(value: Mapping[str, Any], *keys: str) -> str:
    """Return the first text under some keys; empty if there is none."""
    for key in keys:
        if isinstance(value.get(key), str) and value[key].strip():
            return str(value[key]).strip()
    return ""


def time_in(value: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first time under some keys, with a time zone: ISO-8601, or seconds since 1970."""
    for key in keys:
        given = value.get(key)
        try:
            if isinstance(given, int | float) and not isinstance(given, bool):
                return datetime.fromtimestamp(given, UTC).isoformat()
            if isinstance(given, str) and given:
                made = datetime.fromisoformat(given)
                return (made if made.tzinfo else made.replace(tzinfo=UTC)).isoformat()
        except (ValueError, OverflowError, OSError):
            continue
    return None


def scope_in(value: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids of user, agent, app and run in an object."""
    kinds = ("user_id", "agent_id", "app_id", "run_id")
    return {kind: text_in(value, kind) for kind in kinds if text_in(value, kind)}


# Chats: transcripts of Claude Code and Codex, and the exports of ChatGPT and Claude.

CHATS = re.compile(r"(?:^|/)conversations(?:-\d+)?\.json$")
"""Files with chats; a large export has them in parts with numbers."""
CHATS_AND_MEMORIES = re.compile(CHATS.pattern + r"|(?:^|/)memories(?:(?:-\d+)?|/[^/]+)\.json$")
EXPORT = "conversations.json"
ROLES = {"user": "user", "human": "user", "assistant": "assistant"}
HEARERS = (None, "all", "bio")
"""To whom ChatGPT says something: the person, or its own memory of the person. Others are tools."""


def _objects_of(path: str, wanted: re.Pattern[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects in the files of an export."""
    for data in exported(path, wanted, EXPORT):
        yield from objects(data if isinstance(data, list) else [data])


_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


def transcripts(form: str, path: str) -> Iterator[ImportedItem]:
    """Yield the turns of a coding client's transcripts: one file, or a folder of them."""
    for file in files_in(path, ".jsonl"):
        stem = os.path.basename(file).removesuffix(".jsonl")
        # Codex puts the time before the id of the session, which is all that its hooks tell.
        session = named[0] if (named := _SESSION.search(stem)) else stem
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
    """Yield the messages of a ChatGPT export: its ZIP file, its folder, or one of its files.

    What a model sends to a tool, what the client hides, and chats that shall not be remembered are
    left out.
    """
    for chat in _objects_of(path, CHATS):
        ident = text_in(chat, "conversation_id", "id") or str(chat.get("create_time"))
        for node in () if chat.get("is_do_not_remember") is True else _branch(chat):
            message = node["message"]
            author, about = message.get("author"), message.get("metadata")
            hides = isinstance(about, dict) and about.get("is_visually_hidden_from_conversation")
            if hides or message.get("recipient") not in HEARERS:
                continue
            content = message.get("content")
            parts = content.get("parts") if isinstance(content, dict) else None
            said = (_part(one) for one in parts or ()) if isinstance(parts, list) else ()
            text = _CITATION.sub("", "\n".join(one for one in said if one))
            role = text_in(author, "role") if isinstance(author, dict) else ""
            yield from _message(
                chat, ident, text_in(message, "id"), role, text, time_in(message, "create_time")
            )


_CITATION = re.compile("\ue200[^\ue201]*\ue201")
"""Where ChatGPT shows the link to a source."""


def _part(part: object) -> str:
    """Return the text of a part of a message: what was written, or what was said aloud."""
    if isinstance(part, dict) and part.get("content_type") == "audio_transcription":
        return text_in(part, "text")
    return part if isinstance(part, str) else ""


def _branch(chat: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the nodes with messages on the last active branch of a chat, in order."""
    nodes = chat.get("mapping")
    if not isinstance(nodes, dict):
        return []
    way = _way_to(nodes, chat.get("current_node"), "parent")
    found = way or [one for one in nodes.values() if isinstance(one, dict)]
    return [one for one in found if isinstance(one.get("message"), dict)]


def _way_to(nodes: Mapping[str, Any], leaf: object, parent: str) -> list[dict[str, Any]]:
    """Return the nodes from the root of a tree to a leaf."""
    at, way = leaf, list[dict[str, Any]]()
    while isinstance(at, str) and isinstance(nodes.get(at), dict) and len(way) <= len(nodes):
        way.append(nodes[at])
        at = nodes[at].get(parent)
    return way[::-1]


def claude(path: str) -> Iterator[ImportedItem]:
    """Yield the messages and memories of a Claude export: its ZIP file, its folder, or a file."""
    for chat in _objects_of(path, CHATS_AND_MEMORIES):
        yield from _claude_memories(chat)
        for message in _claude_branch(objects(chat.get("chat_messages"))):
            text = text_of(message.get("content")) or text_in(message, "text")
            yield from _message(
                chat,
                text_in(chat, "uuid"),
                text_in(message, "uuid"),
                text_in(message, "sender"),
                text,
                time_in(message, "created_at"),
            )


def _claude_branch(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages on the branch of the latest one; a regenerated answer is not said."""
    nodes = {text_in(one, "uuid"): one for one in messages}
    if not any(one.get("parent_message_uuid") in nodes for one in messages):
        return messages
    latest = max(messages, key=lambda one: time_in(one, "created_at") or "")
    return _way_to(nodes, latest.get("uuid"), "parent_message_uuid")


def _claude_memories(given: Mapping[str, Any]) -> Iterator[ImportedItem]:
    """Yield what Claude itself keeps of all chats and of each project, paragraph by paragraph."""
    projects = given.get("project_memories")
    kept = {"": given.get("conversations_memory")}
    kept |= projects if isinstance(projects, dict) else {}
    for project, text in kept.items():
        title = ""
        for paragraph in re.split(r"\n\s*\n", text) if isinstance(text, str) else ():
            said = " ".join(paragraph.split())
            if heading := re.fullmatch(r"\*\*([^*]+)\*\*|#+ (.+)", said):
                title = heading[1] or heading[2]
            elif said:
                metadata = {"title": title, "project": project}
                yield ImportedItem(
                    f"memory:{project}:{said}",
                    said,
                    metadata={name: value for name, value in metadata.items() if value},
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


# Memories of other programs: mem0, the MCP reference server, basic-memory, Graphiti and MIF.


def mem0(path: str) -> Iterator[ImportedItem]:
    """Yield the memories of mem0: what `get_all` gives, as a list or under "results"."""
    data = json_file(path)
    for one in objects(data.get("results") if isinstance(data, dict) else data):
        if text := text_in(one, "memory", "text"):
            more = one.get("metadata")
            metadata = dict(more) if isinstance(more, dict) else {}
            if one.get("categories"):
                metadata["tags"] = one["categories"]
            at, until = time_in(one, "created_at"), _day_after(one, "expiration_date")
            key = text_in(one, "id") or text
            yield ImportedItem(key, text, None, at, until, scope=scope_in(one), metadata=metadata)


def _day_after(value: Mapping[str, Any], key: str) -> str | None:
    """Return the end of the day that `value` names; None if it names none."""
    try:
        return (date.fromisoformat(text_in(value, key)) + timedelta(days=1)).isoformat()
    except (ValueError, OverflowError):
        return None


def mcp_memory(path: str) -> Iterator[ImportedItem]:
    """Yield the observations and relations of the MCP reference memory server: its JSON lines."""
    for number, line in enumerate(text_in_file(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path}: line {number} is not JSON: {error}") from None
        yield from _graph_entry(entry if isinstance(entry, dict) else {})


def _graph_entry(entry: Mapping[str, Any]) -> Iterator[ImportedItem]:
    name = text_in(entry, "name")
    if entry.get("type") == "entity" and name:
        kind = text_in(entry, "entityType")
        for text in entry.get("observations") or ():
            if isinstance(text, str) and text.strip():
                metadata = {"entity_type": kind} if kind else {}
                yield _about(name, text.strip(), metadata)
    elif entry.get("type") == "relation":
        yield from _relation(
            text_in(entry, "from"), text_in(entry, "relationType"), text_in(entry, "to")
        )


def _about(name: str, text: str, metadata: Mapping[str, Any]) -> ImportedItem:
    whole = text if name.casefold() in text.casefold() else f"{name}: {text}"
    return ImportedItem(f"{name}\n{text}", whole, names=(name,), metadata=metadata)


def _relation(left: str, relation: str, right: str) -> Iterator[ImportedItem]:
    if left and relation and right:
        text = f"{left} {relation.replace('_', ' ')} {right}."
        yield ImportedItem(f"{left}\n{relation}\n{right}", text, names=(left, right))


_FRONT = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
_TAGS = re.compile(r"^tags:(.*(?:\n[ \t]*- .*)*)", re.MULTILINE)
_OBSERVATION = re.compile(r"- \[([^\]\[]+)\] (.+)")
_RELATION = re.compile(r"- (.*?)\s*\[\[([^\]]+)\]\]")


def basic_memory(path: str) -> Iterator[ImportedItem]:
    """Yield the observations, relations and paragraphs of basic-memory's notes: a folder."""
    if not os.path.isdir(path) and not path.endswith(".md"):
        raise FormatError(f"{path}: is neither a note (.md) nor a folder of notes")
    for file in files_in(path, ".md"):
        text = text_in_file(file)
        front = _FRONT.match(text)
        told = dict(re.findall(r"^(\w+):[ \t]*(\S.*)$", front[1], re.MULTILINE)) if front else {}
        title = told.get("title", os.path.basename(file).removesuffix(".md")).strip("\"' ")
        place = os.path.relpath(file, path) if os.path.isdir(path) else os.path.basename(file)
        at = time_in(told, "created", "date")
        listed = _TAGS.search(front[1]) if front else None
        tags = re.findall(r"[^\s\[\],'\"#-][^\[\],'\"\n]*", listed[1]) if listed else []
        for item in _note(text[front.end() if front else 0 :], title):
            metadata = {"note": place, **item.metadata}
            if all_tags := dict.fromkeys([*tags, *metadata.get("tags", ())]):
                metadata["tags"] = [one.strip() for one in all_tags]
            yield item._replace(key=f"{place}\n{item.key}", at=at, metadata=metadata)


def _note(body: str, title: str) -> Iterator[ImportedItem]:
    prose: list[str] = []
    for line in [*body.splitlines(), ""]:
        observed, related = _OBSERVATION.match(line.strip()), _RELATION.match(line.strip())
        if re.match(r"\s*- \[[ xX]\] ", line):  # A task is not a memory.
            continue
        if observed:
            tags = re.findall(r"#(\w[\w-]*)", observed[2])
            said = re.sub(r"\s*#\w[\w-]*", "", observed[2]).strip()
            metadata = {"category": observed[1], **({"tags": tags} if tags else {})}
            yield _about(title, said, metadata)
        elif related:
            yield from _relation(title, related[1] or "relates to", related[2])
        elif line.strip() and not line.startswith("#"):
            prose.append(line.strip())
        elif prose:
            yield _about(title, " ".join(prose), {})
            prose = []


def graphiti(path: str) -> Iterator[ImportedItem]:
    """Yield the facts, episodes and summaries of a Graphiti graph: its nodes and edges as JSON."""
    data = json_file(path)
    if not isinstance(data, dict):
        raise FormatError(f"{path}: is not an object with edges, nodes or episodes")
    nodes = objects(data.get("nodes") or data.get("entities"))
    names = {text_in(one, "uuid"): text_in(one, "name") for one in nodes}
    for one in objects(data.get("edges")):
        ends = (text_in(one, "source_node_uuid"), text_in(one, "target_node_uuid"))
        if text := text_in(one, "fact"):
            yield ImportedItem(
                text_in(one, "uuid") or text,
                text,
                at=time_in(one, "valid_at", "created_at"),
                until=time_in(one, "invalid_at", "expired_at"),
                names=tuple(names[end] for end in ends if names.get(end)),
                metadata={"relation": text_in(one, "name")} if text_in(one, "name") else {},
            )
    for one in objects(data.get("episodes")):
        if text := text_in(one, "content"):
            at = time_in(one, "valid_at", "created_at")
            yield ImportedItem(text_in(one, "uuid") or text, text, at=at)
    for one in nodes:
        if (text := text_in(one, "summary")) and text_in(one, "name"):
            yield _about(text_in(one, "name"), text, {})._replace(
                key=text_in(one, "uuid") or text, at=time_in(one, "created_at")
            )


def mif(path: str) -> Iterator[ImportedItem]:
    """Yield the memories and relationships of a file in the Memory Interchange Format 2."""
    data = json_file(path)
    if not isinstance(data, dict) or not str(data.get("mif_version", "")).startswith("2"):
        raise FormatError(f"{path}: is not a MIF file of version 2")
    meta = data.get("export_meta")
    usual = scope_in(meta) if isinstance(meta, dict) else {}
    for one in objects(data.get("memories")):
        if text := text_in(one, "content"):
            yield _mif_memory(one, text, usual)
    graph = data.get("knowledge_graph")
    if isinstance(graph, dict):
        known = {text_in(one, "id"): text_in(one, "name") for one in objects(graph.get("entities"))}
        for one in objects(graph.get("relationships")):
            ends = [known.get(text_in(one, f"{end}_entity_id"), "") for end in ("source", "target")]
            for item in _relation(ends[0], text_in(one, "relation_type"), ends[1]):
                at, until = time_in(one, "created_at"), time_in(one, "invalidated_at")
                yield item._replace(at=at, until=until)


def _mif_memory(one: Mapping[str, Any], text: str, usual: Mapping[str, str]) -> ImportedItem:
    extensions = one.get("vendor_extensions")
    ours = extensions.get("worlddb") if isinstance(extensions, dict) else None
    ours = ours if isinstance(ours, dict) else {}
    more = one.get("metadata")
    metadata = dict(more) if isinstance(more, dict) else {}
    if one.get("tags"):
        metadata["tags"] = one["tags"]
    scopes = ours.get("scopes")
    return ImportedItem(
        text_in(one, "id") or text,
        text,
        role=text_in(ours, "speaker") or None,
        at=time_in(ours, "valid_from") or time_in(one, "created_at"),
        until=time_in(ours, "valid_to"),
        names=tuple(text_in(name, "name") for name in objects(one.get("entities"))),
        scope=scope_in(scopes) if isinstance(scopes, dict) else {**usual, **scope_in(one)},
        metadata=metadata,
        origin=origin if (origin := text_in(ours, "origin")) in ORIGINS else None,
        messages=tuple(one for one in objects(ours.get("messages")) if _is_message(one)),
    )


def _is_message(one: Mapping[str, Any]) -> bool:
    return "content" in one and all(isinstance(value, str) for value in one.values())


def _by_time(read: Reader) -> Reader:
    """Return a reader that gives the oldest items first: an end comes before a successor."""
    last = datetime.max.replace(tzinfo=UTC)

    def read_in_order(path: str) -> Iterator[ImportedItem]:
        yield from sorted(
            read(path), key=lambda item: datetime.fromisoformat(item.at) if item.at else last
        )

    return read_in_order


READERS: dict[str, Reader] = {
    "claude-code": partial(transcripts, "claude-code"),
    "codex": partial(transcripts, "codex"),
    "chatgpt": chatgpt,
    "claude": claude,
    "mem0": mem0,
    "mcp-memory": mcp_memory,
    "basic-memory": basic_memory,
    "graphiti": _by_time(graphiti),
    "mif": _by_time(mif),
}
PAGE = 500  # Memories read at a time for an export.


@dataclass(slots=True, kw_only=True)
class ImportCounts:
    """The result of an import: items read, written, known before, ended, and refused."""

    items: int = 0
    created: int = 0
    known: int = 0
    ended: int = 0
    refused: int = 0

    def to_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


def import_items(
    memory: Memory,
    kind: str,
    items: Iterable[ImportedItem],
    scope: Mapping[str, Any],
    *,
    user_id: str = DEFAULT_USER,
    on_item: Callable[[], None] = lambda: None,
    on_refused: Callable[[str], None] = lambda _: None,
) -> ImportCounts:
    """Write the items of a source. `scope` overrides the scopes of the source.

    `user_id` is the user of items for which neither gives a user or an agent: a chat export gives a
    run only, and in no user's scope nobody would find it.

    A refused item is reported to `on_refused` and does not stop the import.

    Raises:
        StorageError: the store cannot be written; what was written before stays.
    """
    counts = ImportCounts()
    for item in items:
        counts.items += 1
        try:
            _write(memory, kind, item, _scope_of(item, scope, user_id), counts)
        except (InvalidInputError, ConflictError) as error:
            counts.refused += 1
            on_refused(f"{without_secrets(item.text)[:60]!r}: {error}")
        on_item()
    return counts


def _scope_of(item: ImportedItem, scope: Mapping[str, Any], user_id: str) -> dict[str, Any]:
    """Return the scope of an item, with the default user if there is no user or agent."""
    named = {**item.scope, **scope}
    return named if named.keys() & {"user_id", "agent_id"} else {"user_id": user_id, **named}


def _write(
    memory: Memory, kind: str, item: ImportedItem, scope: Mapping[str, Any], counts: ImportCounts
) -> None:
    # Nobody reads each text of an import, so secrets are masked whatever the scope's rule.
    text, names = without_secrets(item.text), [without_secrets(one) for one in item.names]
    given: dict[str, Any] = {"text": text, "at": item.at, "names": names or None}
    if item.messages or item.role is not None:
        single = {"role": item.role, "content": text, **({"at": item.at} if item.at else {})}
        said = [{**one, "content": without_secrets(one["content"])} for one in item.messages]
        given = {"messages": said or [single]}
    # Trust decisions of another store do not apply here.
    told = {name: value for name, value in item.metadata.items() if name != QUARANTINE}
    key = sha256(f"{kind}\n{item.key}".encode(errors="replace")).hexdigest()
    done = memory.write(
        **given,
        source=f"import {kind}",
        metadata=without_secret_values(told) or None,
        idempotency_key=f"import:{key}",
        origin=less_trusted_of(item.origin, "import"),
        **scope,
    )
    counts.created += done.created
    counts.known += not done.created
    # What the store itself has ended, because it knows what came after, needs no end.
    if item.until is not None and done.created and memory.read(done.id).valid_to is None:
        memory.retire(done.id, at=item.until)
        counts.ended += 1


def mif_document(memory: Memory, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the memories of a scope, ended ones included, in the Memory Interchange Format 2.

    Data without a field in the format are in "vendor_extensions", so a second import restores them.
    """
    return {
        "mif_version": "2.0",
        "generator": {"name": "worlddb", "version": __version__},
        "memories": [_mif_entry(one, memory) for one in _memories(memory, scope)],
    }


def _memories(memory: Memory, scope: Mapping[str, Any]) -> Iterator[Remembered]:
    cursor: str | None = None
    while True:
        page = memory.list(limit=PAGE, cursor=cursor, include_retired=True, **scope)
        yield from page.memories
        cursor = page.next_cursor
        if cursor is None:
            return


SPEAKERS = ("user", "assistant", "system", "developer", "tool")  # Others are names of users.


def _mif_message(turn: Node) -> dict[str, str]:
    who = {"role": turn.name} if turn.name in SPEAKERS else {"role": "user", "name": turn.name}
    return {**who, "content": turn.content, "at": turn.valid_from.isoformat()}


def _mif_entry(one: Remembered, memory: Memory) -> dict[str, Any]:
    ours: dict[str, Any] = {
        "id": str(one.id),
        "type": one.type,
        "valid_from": one.valid_from.isoformat(),
        "scopes": {f"{scope.kind}_id": scope.value for scope in one.scopes},
    }
    if one.origin != USER:
        ours["origin"] = one.origin
    if one.valid_to is not None:
        ours["valid_to"] = one.valid_to.isoformat()
    if one.speaker:
        ours["speaker"] = one.speaker
    if one.type == "Session":
        turns = memory.db.children(one.id, include_superseded=one.retired)
        ours["messages"] = [_mif_message(turn) for turn in turns if turn.type == "Turn"]
    metadata = {key: value for key, value in one.metadata.items() if key != "tags"}
    made: dict[str, Any] = {
        "id": str(uuid5(NAMESPACE_OID, str(one.id))),
        "content": one.text,
        "memory_type": "conversation" if one.type in ("Turn", "Session") else "observation",
        "created_at": one.valid_from.isoformat(),
        "external_id": str(one.id),
        "vendor_extensions": {"worlddb": ours},
    }
    if metadata:
        made["metadata"] = metadata
    tags = one.metadata.get("tags")
    if isinstance(tags, list | tuple) and tags:
        made["tags"] = [str(tag) for tag in tags]
    return made
