"""Item log: an ordered list of JSON texts in a world of its own, for sessions and transcripts.

    Folder "/" ─ Folder "agents" ─ Folder "session 1" ─┬─ Item '{"role": …}'
                                                       └─ Item '{"role": …}'

Every call that changes the list is one commit. A removed item ends and stays in the store's
history. The folders are in the root world, which the recall of a scope does not search: a
transcript is not a memory.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar
from urllib.parse import quote

import numpy as np

from worlddb.files.versioned_files import FileChanges, Files
from worlddb.memory.memory import Memory
from worlddb.model.address import Id
from worlddb.model.inputs import Limits
from worlddb.model.records import Node, NodeDraft
from worlddb.world_db import WorldDB

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def on_thread(
    method: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Return a method as a coroutine that runs on a thread, for async frameworks."""

    @wraps(method)
    async def run(self: S, /, *given: P.args, **named: P.kwargs) -> R:
        return await asyncio.to_thread(method, self, *given, **named)

    return run


# Framework embeddings: a framework's own vectors beside a text, and ranking by them.
#
# They are stored in the metadata of the text, so each text is embedded once. A search compares all
# texts with the question: exact, and fast for some ten thousand texts.

BYTES_MAX = 40_000  # The metadata of a node may have 65,536 bytes.
Vectors = Sequence[Sequence[float]]


EXACT = "f8:"
"""What the text of a vector begins with that is kept to the last digit."""


def pack_vectors(vectors: Vectors, *, exact: bool = False) -> list[str]:
    """Return vectors as texts for metadata; empty if they are too long, so not to be stored."""
    kind, mark = (np.float64, EXACT) if exact else (np.float32, "")
    arrays = (np.asarray(one, dtype=kind).tobytes() for one in vectors)
    made = [mark + base64.b64encode(data).decode() for data in arrays]
    return made if sum(map(len, made)) <= BYTES_MAX else []


def unpack_vectors(texts: Sequence[str]) -> Vectors:
    """Return the vectors of `pack_vectors`."""
    found = []
    for text in texts:
        kind = np.float64 if text.startswith(EXACT) else np.float32
        data = base64.b64decode(text.removeprefix(EXACT))
        found.append(np.frombuffer(data, dtype=kind).tolist())
    return found


def rank_by_cosine(
    asked: Sequence[float], held: Mapping[bytes, Vectors]
) -> list[tuple[bytes, float]]:
    """Return keys by the cosine of their nearest vector, best first; without vectors, none."""
    scored = [
        (key, max(_cosine(asked, one) for one in vectors))
        for key, vectors in held.items()
        if len(vectors)
    ]
    return sorted(scored, key=lambda pair: (-pair[1], pair[0]))


def _cosine(left: Sequence[float], right: Sequence[float]) -> float:
    one, other = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if size else 0.0


# Item log.

ITEM = "Item"
RECALLED_MAX = 1_000  # The limit of recall.
NAME_CHARS_MAX = 200  # Below the limit of a file name, with room for the encoding.
CONTENT_BYTES_MAX = 1 << 27  # Transcripts may have images.

Given = str | os.PathLike[str] | WorldDB | Memory
"""Where an adapter keeps its data: a path, an open store, or a memory on one."""


class AdapterStore(NamedTuple):
    """An open store, and whether the adapter has to close it."""

    db: WorldDB
    owned: bool

    def close(self) -> None:
        """Close the store if the adapter opened it."""
        if self.owned:
            self.db.close()


def adapter_store(given: Given) -> AdapterStore:
    """Return the store of an adapter; a path is opened."""
    if isinstance(given, Memory):
        return AdapterStore(given.db, False)
    if isinstance(given, WorldDB):
        return AdapterStore(given, False)
    limits = Limits(content_bytes_max=CONTENT_BYTES_MAX)
    return AdapterStore(WorldDB(given, limits=limits), True)


def folder_name(text: str) -> str:
    """Return a text as the name of a folder; different texts have different names."""
    name = quote(text, safe=" -_@+=,:") or "%"
    if len(name) <= NAME_CHARS_MAX:
        return name.replace(".", "%2E") if set(name) == {"."} else name
    from blake3 import blake3

    return f"{name[:100]}%{blake3(text.encode()).hexdigest(16)}"


def folder_path(*names: str) -> str:
    """Return the path of a folder by its names, in any characters."""
    return "/" + "/".join(map(folder_name, names))


class OnStore:
    """An adapter on a store: a path, which it opens and closes, an open `WorldDB` or a `Memory`."""

    _held: AdapterStore
    _files: Files

    def _open(self, store: Given, actor: str) -> None:
        self._held = adapter_store(store)
        self._files = self._held.db.files(actor=actor)

    def close(self) -> None:
        """Close the store, unless it was given open."""
        self._held.close()

    def _recalled(self, query: str, folder: str) -> dict[bytes, float]:
        """Return the nodes in a folder that answer a query, best first, with their scores."""
        with self._files.tree() as tree:
            place = tree.find(folder)
        if place is None:
            return {}
        hits = self._held.db.recall(query, scope=Id(place.body.id), k=RECALLED_MAX).hits
        return {hit.node.id: hit.score for hit in hits}


class ItemLog:
    """The items of one list. `names` are the folders that lead to it, in any characters."""

    def __init__(self, db: WorldDB, names: Sequence[str], *, actor: str) -> None:
        self.db = db
        self.files: Files = db.files(actor=actor)
        self.names = tuple(map(folder_name, names))

    @property
    def path(self) -> str:
        """The path of the list's folder."""
        return "/" + "/".join(self.names)

    def folder(self) -> Id | None:
        """Return the world that holds the items; None before the first item."""
        with self.files.tree() as tree:
            place = tree.find(self.path)
            return None if place is None else Id(place.body.id)

    def nodes(self) -> list[Node]:
        """Return the live items as nodes, in order."""
        world = self.folder()
        found = [] if world is None else self.db.children(world)
        return [node for node in found if node.type == ITEM]

    def read(self, limit: int | None = None) -> list[str]:
        """Return the items in order; with `limit`, the last ones."""
        texts = [node.content for node in self.nodes()]
        return texts if limit is None else texts[-limit:] if limit > 0 else []

    def append(self, items: Iterable[str], *, keys: Sequence[str | None] = ()) -> int:
        """Append items except those with a known key; return the number of items appended."""
        texts = list(items)
        if not texts:
            return 0
        with self.files.changes() as changes:
            return self.append_in(changes, texts, keys)

    def append_in(
        self, changes: FileChanges, texts: Sequence[str], keys: Sequence[str | None] = ()
    ) -> int:
        """Append items inside a transaction; see `append`."""
        world = changes.folder(self.names)
        known = {node.name for node in self._in(changes)} if any(keys) else set()
        added = 0
        for number, text in enumerate(texts):
            key = keys[number] if number < len(keys) else None
            if key is not None and key in known:
                continue
            known.add(key or "")
            draft = NodeDraft(type=ITEM, name=key or "", content=text, parent=world)
            changes.tx.create_nodes([draft], reuse=False)  # Equal items are items of their own.
            added += 1
        return added

    def remove_in(self, changes: FileChanges, key: str) -> None:
        """Remove the items of a key, inside a transaction."""
        for node in self._in(changes):
            if node.name == key:
                changes.tx.retire(node.id)

    def _in(self, changes: FileChanges) -> list[Node]:
        reader, place = changes.tx.reader, changes.tree.find(self.path)
        if place is None:
            return []
        rows = reader.children(place.body.row)
        live = sorted(set(rows) - reader.closed_by(rows))
        return [node for node in reader.nodes(live).values() if node.type == ITEM]

    def pop(self) -> str | None:
        """Remove the last item and return it; None if there is none."""
        with self.files.changes() as changes:
            found = self._in(changes)
            if not found:
                return None
            changes.tx.retire(found[-1].id)
            return found[-1].content

    def replace(self, items: Sequence[str]) -> None:
        """Replace all items."""
        with self.files.changes() as changes:
            for node in self._in(changes):
                changes.tx.retire(node.id)
            self.append_in(changes, items)

    def clear(self) -> None:
        """Remove all items."""
        self.replace([])
