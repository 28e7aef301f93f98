"""LangGraph store: a `BaseStore` on versioned files, for the long-term memory of agents.

    store = WorldStore("memory.db")
    graph = builder.compile(store=store)

An item is a file: its namespace is the folder, its value the text, as JSON. Each batch of puts is a
commit, and earlier values stay readable. A search by words uses recall, or the embeddings of
`index` if they are configured.
"""

from __future__ import annotations

import asyncio
import json
import operator
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from worlddb.adapters.item_log import (
    Given,
    OnStore,
    Vectors,
    folder_path,
    pack_vectors,
    rank_by_cosine,
    unpack_vectors,
)
from worlddb.files.file_tree import FileText

ACTOR = "langgraph-store"
SUFFIX = ".json"  # A label of a namespace has no dot, so a key is never the name of a folder.
SECONDS = 60  # A time to live is in minutes.


class WorldStore(OnStore, BaseStore):
    """Items by namespace and key; `store` is a path, an open `WorldDB` or a `Memory`.

    `index` and `ttl` are the settings of LangGraph's own stores.
    """

    supports_ttl = True

    def __init__(
        self, store: Given, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        self._open(store, ACTOR)
        self.ttl_config = ttl
        self.index_config: Any = None if index is None else dict(index)
        self.embeddings: Any = None if index is None else ensure_embeddings(index.get("embed"))
        settings = self.index_config or {}
        fields = settings.get("fields") or settings.get("text_fields") or ["$"]
        self._fields = [_tokens(path) for path in fields]
        self._vectors: dict[bytes, Vectors] = {}
        self._stop = threading.Event()
        self._sweeper: threading.Thread | None = None

    def close(self) -> None:
        """Stop the sweeper, and close the store unless it was given open."""
        self.stop_ttl_sweeper()
        super().close()

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations: reads first, then all puts as one commit."""
        given = list(ops)
        results: list[Any] = [None] * len(given)
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in given:
            validate_op_namespace(op)
        for number, op in enumerate(given):
            if isinstance(op, GetOp):
                results[number] = self._get(op)
            elif isinstance(op, SearchOp):
                results[number] = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                results[number] = self._namespaces(op)
            elif isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
            else:
                raise ValueError(f"unknown operation {type(op).__name__}")
        if puts:
            self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        """Run operations on a thread; see `batch`."""
        return await asyncio.to_thread(self.batch, list(ops))

    # -- writing -----------------------------------------------------------------------------------

    def _put(self, puts: list[PutOp]) -> None:
        vectors = self._embedded(puts)
        with self._files.changes() as changes:
            for put, made in zip(puts, vectors, strict=True):
                path = _path(put.namespace, put.key)
                if put.value is None:
                    if changes.find(path) is not None:
                        changes.delete(path)
                    continue
                metadata: dict[str, Any] = {"namespace": list(put.namespace), "key": put.key}
                if made:
                    metadata["vectors"] = made
                ttl = put.ttl if isinstance(put.ttl, float | int) else None
                if ttl is not None:
                    metadata |= {"ttl": ttl, "expires": time.time() + ttl * SECONDS}
                elif put.index is False:
                    metadata["index"] = False
                changes.write(path, json.dumps(put.value, ensure_ascii=False), metadata=metadata)

    def _embedded(self, puts: list[PutOp]) -> list[list[str]]:
        """Return the vectors of each value as texts, for the metadata of its version."""
        if self.embeddings is None:
            return [[] for _ in puts]
        texts = [self._texts(put) for put in puts]
        flat = [text for some in texts for text in some]
        made = iter(self.embeddings.embed_documents(flat) if flat else [])
        return [pack_vectors([next(made) for _ in some]) for some in texts]

    def _texts(self, put: PutOp) -> list[str]:
        if put.value is None or put.index is False:
            return []
        fields = [_tokens(one) for one in put.index] if put.index else self._fields
        return [text for path in fields for text in get_text_at_path(put.value, path)]

    # -- reading -----------------------------------------------------------------------------------

    def _get(self, op: GetOp) -> Item | None:
        with self._files.tree() as tree:
            place = tree.find(_path(op.namespace, op.key))
        if place is None or place.is_folder:
            return None
        file = self._files.read(place.path)
        if self._is_expired(file):
            return None
        self._refresh([file], op.refresh_ttl)
        return Item(**_fields(file))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        found = [
            file
            for file in self._below(op.namespace_prefix)
            if _passes(json.loads(file.text), op.filter or {})
        ]
        scores: Mapping[bytes, float | None] = dict.fromkeys(
            file.version
            for file in sorted(found, key=lambda file: (file.modified, file.path), reverse=True)
        )
        if op.query:
            scores = self._scores(op.query, found, op.namespace_prefix)
        by_version = {file.version: file for file in found}
        chosen = [one for one in scores if one in by_version][op.offset : op.offset + op.limit]
        self._refresh([by_version[one] for one in chosen], op.refresh_ttl)  # type: ignore[index]
        return [
            SearchItem(**_fields(by_version[one]), score=scores[one])  # type: ignore[index]
            for one in chosen
        ]

    def _below(self, prefix: tuple[str, ...]) -> list[FileText]:
        files = self._files.read_all(folder_path(ACTOR, *prefix))
        return [file for file in files if not self._is_expired(file)]

    def _scores(
        self, query: str, files: list[FileText], prefix: tuple[str, ...]
    ) -> dict[bytes, float | None]:
        """Return the versions that match a query, best first, with their scores."""
        if self.embeddings is None:
            return {**self._recalled(query, folder_path(ACTOR, *prefix))}
        asked = self.embeddings.embed_query(query)
        return dict(rank_by_cosine(asked, {file.version: self._vectors_of(file) for file in files}))

    def _vectors_of(self, file: FileText) -> Vectors:
        if file.version not in self._vectors:
            kept = file.metadata.get("vectors")
            if kept is not None:
                self._vectors[file.version] = unpack_vectors(kept)
            elif file.metadata.get("index") is False:
                self._vectors[file.version] = []
            else:
                put = PutOp(tuple(file.metadata["namespace"]), "", json.loads(file.text))
                texts = self._texts(put)
                self._vectors[file.version] = self.embeddings.embed_documents(texts)
        return self._vectors[file.version]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {tuple(file.metadata["namespace"]) for file in self._below(())}
        chosen = {
            name[: op.max_depth]
            for name in found
            if all(_matches(one, name) for one in op.match_conditions or ())
        }
        return sorted(chosen)[op.offset : op.offset + op.limit]

    # -- time to live ------------------------------------------------------------------------------

    def _is_expired(self, file: FileText) -> bool:
        omits = bool((self.ttl_config or {}).get("omit_expired"))
        return omits and file.metadata.get("expires", float("inf")) <= time.time()

    def _refresh(self, files: Sequence[FileText], wanted: bool) -> None:
        """Restart the time to live of items that were read."""
        timed = [file for file in files if "ttl" in file.metadata]
        if not wanted or not timed:
            return
        with self._files.changes() as changes:
            for file in timed:
                expires = time.time() + file.metadata["ttl"] * SECONDS
                changes.tx.add_metadata(file.version, {"expires": expires})

    def sweep_ttl(self) -> int:
        """End the items whose time to live is over; return their number."""
        now = time.time()
        with self._files.changes() as changes:
            gone = [
                file
                for file in self._files.read_all(f"/{ACTOR}")
                if file.metadata.get("expires", float("inf")) <= now
            ]
            for file in gone:
                changes.delete(file.path, file.version)
        return len(gone)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> threading.Thread:
        """Sweep in the background at this interval, or that of `ttl`, until it is stopped."""
        every = sweep_interval_minutes or (self.ttl_config or {}).get("sweep_interval_minutes") or 5
        self._stop.set()
        stop = self._stop = threading.Event()

        def run() -> None:
            while not stop.wait(every * SECONDS):
                WorldStore.sweep_ttl(self)

        self._sweeper = threading.Thread(target=run, daemon=True, name="worlddb-ttl")
        self._sweeper.start()
        return self._sweeper

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; return whether the sweeper has ended."""
        self._stop.set()
        if self._sweeper is not None:
            self._sweeper.join(timeout)
        return self._sweeper is None or not self._sweeper.is_alive()


def _tokens(path: str) -> Any:
    return "$" if path == "$" else tokenize_path(path)  # "$" is the whole value.


def _path(namespace: tuple[str, ...], key: str) -> str:
    return f"{folder_path(ACTOR, *namespace, key)}{SUFFIX}"


def _fields(file: FileText) -> dict[str, Any]:
    return {
        "value": json.loads(file.text),
        "key": file.metadata["key"],
        "namespace": tuple(file.metadata["namespace"]),
        "created_at": file.created,
        "updated_at": file.modified,
    }


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    part = namespace[start : start + len(path)]
    return all(wanted in ("*", one) for one, wanted in zip(part, path, strict=True))


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _passes(value: Any, wanted: Mapping[str, Any]) -> bool:
    """Return whether a value matches a filter; `a.b` is `b` inside `a`."""
    return all(_fits(_inside(value, key), one) for key, one in wanted.items())


def _inside(value: Any, key: str) -> Any:
    if isinstance(value, dict) and key in value:
        return value[key]
    first, dot, rest = key.partition(".")
    inner = value.get(first) if isinstance(value, dict) else None
    return _inside(inner, rest) if dot else inner


def _fits(held: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict):
        same_kind = isinstance(held, bool) == isinstance(wanted, bool)
        return same_kind and bool(held == (list(wanted) if isinstance(wanted, tuple) else wanted))
    if not any(key.startswith("$") for key in wanted):
        return isinstance(held, dict) and _passes(held, wanted)
    return all(_compared(held, name, one) for name, one in wanted.items())


def _compared(held: Any, name: str, wanted: Any) -> bool:
    if name not in COMPARISONS:
        raise ValueError(f"Unsupported operator: {name}; use {', '.join(COMPARISONS)}")
    try:
        return COMPARISONS[name](held, wanted)
    except TypeError:
        return False  # A text is neither more nor less than a number.
