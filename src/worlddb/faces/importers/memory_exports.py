"""Memories of other programs: mem0, the MCP reference server, basic-memory, Graphiti and MIF."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from worlddb.errors import FormatError
from worlddb.faces.importers.imported_item import (
    ImportedItem,
    files_in,
    json_file,
    objects,
    scope_in,
    text_in,
    time_in,
)
from worlddb.model.origin import ORIGINS


def mem0(path: str) -> Iterator[ImportedItem]:
    """Yield the memories of mem0: what `get_all` gives, as a list or under "results"."""
    data = json_file(path)
    for one in objects(data.get("results") if isinstance(data, dict) else data):
        if text := text_in(one, "memory", "text"):
            more = one.get("metadata")
            metadata = dict(more) if isinstance(more, dict) else {}
            if one.get("categories"):
                metadata["tags"] = one["categories"]
            at = time_in(one, "created_at")
            key = text_in(one, "id") or text
            yield ImportedItem(key, text, at=at, scope=scope_in(one), metadata=metadata)


def mcp_memory(path: str) -> Iterator[ImportedItem]:
    """Yield the observations and relations of the MCP reference memory server: its JSON lines."""
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                entry = json.loads(line)
            except ValueError as error:
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
_OBSERVATION = re.compile(r"- \[([^\]\[]+)\] (.+)")
_RELATION = re.compile(r"- (.*?)\s*\[\[([^\]]+)\]\]")


def basic_memory(path: str) -> Iterator[ImportedItem]:
    """Yield the observations, relations and paragraphs of basic-memory's notes: a folder."""
    if not os.path.isdir(path) and not path.endswith(".md"):
        raise FormatError(f"{path}: is neither a note (.md) nor a folder of notes")
    for file in files_in(path, ".md"):
        with open(file, encoding="utf-8-sig") as opened:
            text = opened.read()
        front = _FRONT.match(text)
        told = dict(re.findall(r"^(\w+):[ \t]*(\S.*)$", front[1], re.MULTILINE)) if front else {}
        title = told.get("title", os.path.basename(file).removesuffix(".md")).strip("\"' ")
        place = os.path.relpath(file, path) if os.path.isdir(path) else os.path.basename(file)
        at = time_in(told, "created", "date")
        for item in _note(text[front.end() if front else 0 :], title):
            key = f"{place}\n{item.key}"
            yield item._replace(key=key, at=at, metadata={"note": place, **item.metadata})


def _note(body: str, title: str) -> Iterator[ImportedItem]:
    prose: list[str] = []
    for line in [*body.splitlines(), ""]:
        observed, related = _OBSERVATION.match(line.strip()), _RELATION.match(line.strip())
        if re.match(r"\s*- \[[ xX]\] ", line):  # A box to tick is no memory.
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
    )
