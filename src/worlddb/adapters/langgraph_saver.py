"""LangGraph saver: checkpoints of graphs in a WorldDB store.

    graph = builder.compile(checkpointer=WorldSaver("memory.db"))

    /langgraph-saver/THREAD/NAMESPACE/CHECKPOINT/checkpoint.json   the state, as a file
                                                  writes/          pending writes, as items

A deleted or pruned checkpoint ends and stays in the store's history.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)

from worlddb.adapters.item_log import Given, ItemLog, OnStore, folder_name, folder_path, on_thread

ACTOR = "langgraph-saver"
FILE = "checkpoint.json"


class WorldSaver(OnStore, BaseCheckpointSaver[str]):
    """Checkpoints by thread; `store` is a path, an open `WorldDB` or a `Memory`."""

    def __init__(self, store: Given, *, serde: Any = None) -> None:
        super().__init__(serde=serde)
        self._open(store, ACTOR)

    # -- writing -----------------------------------------------------------------------------------

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Save a checkpoint; return the configuration that names it."""
        settings = config["configurable"]
        thread, space = settings["thread_id"], settings.get("checkpoint_ns", "")
        saved = {
            "thread_id": thread,
            "checkpoint_ns": space,
            "checkpoint_id": checkpoint["id"],
            "parent": settings.get("checkpoint_id"),
            "checkpoint": self._dumped(checkpoint),
            "metadata": self._dumped(get_checkpoint_metadata(config, metadata)),
        }
        self._files.write(f"{_path(thread, space, checkpoint['id'])}/{FILE}", json.dumps(saved))
        return _config(saved)

    def put_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task after a checkpoint; a write saved before stays unchanged."""
        settings = config["configurable"]
        space, ident = settings.get("checkpoint_ns", ""), settings["checkpoint_id"]
        log = self._writes(settings["thread_id"], space, ident)
        with self._files.changes() as changes:
            for number, (channel, value) in enumerate(writes):
                place = WRITES_IDX_MAP.get(channel, number)
                told = [task_id, place, channel, *self._dumped(value), task_path]
                key = f"{task_id} {place}"
                if (
                    place < 0
                ):  # Errors, interrupts and the like: the last one replaces earlier ones.
                    log.remove_in(changes, key)
                log.append_in(changes, [json.dumps(told)], [key])

    def delete_thread(self, thread_id: str) -> None:
        """End every checkpoint of a thread."""
        self._end([_path(thread_id)])

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """End the checkpoints of some runs."""
        self._end(
            _path(one["thread_id"], one["checkpoint_ns"], one["checkpoint_id"])
            for one in self._saved(_path())
            if self._loaded(one["metadata"]).get("run_id") in set(map(str, run_ids))
        )

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every checkpoint of a thread, with its writes, to another thread."""
        found = self._saved(_path(source_thread_id))
        with self._files.changes() as changes:
            for one in found:
                space, ident = one["checkpoint_ns"], one["checkpoint_id"]
                target = f"{_path(target_thread_id, space, ident)}/{FILE}"
                changes.write(target, json.dumps(one | {"thread_id": target_thread_id}))
                nodes = self._writes(source_thread_id, space, ident).nodes()
                log = self._writes(target_thread_id, space, ident)
                texts, keys = [node.content for node in nodes], [node.name for node in nodes]
                log.append_in(changes, texts, keys)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """End all checkpoints of threads, or with "keep_latest" all but the last per namespace.

        Do not prune a thread whose graph has a `DeltaChannel`: it needs its earlier checkpoints.

        Raises:
            ValueError: there is no such strategy.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"strategy {strategy!r}: use 'keep_latest' or 'delete'")
        ended: list[str] = []
        for thread in thread_ids:
            last: dict[str, str] = {}
            for one in self._saved(_path(thread)):
                space, ident = one["checkpoint_ns"], one["checkpoint_id"]
                if strategy == "delete" or ident < last.setdefault(space, ident):
                    ended.append(_path(thread, space, ident))
        self._end(ended)

    def _end(self, paths: Iterable[str]) -> None:
        with self._files.changes() as changes:
            for path in paths:
                if changes.tree.find(path) is not None:
                    changes.delete(path)

    # -- reading -----------------------------------------------------------------------------------

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        """Return the checkpoint that a configuration names, or the last of its thread."""
        settings = config["configurable"]
        space = settings.get("checkpoint_ns", "")
        folder, ident = _path(settings["thread_id"], space), get_checkpoint_id(config)
        with self._files.tree() as tree:
            if not ident:
                place = tree.find(folder)
                names = [] if place is None else [one.body.name for one in tree.inside([place])]
                ident = max(names, default="")
            place = tree.find(f"{folder}/{folder_name(ident)}/{FILE}") if ident else None
        if place is None:
            return None
        return self._tuple(json.loads(self._files.read(place.path).text))

    def list(
        self,
        config: Any,
        *,
        filter: dict[str, Any] | None = None,
        before: Any = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the latest first."""
        settings = (config or {}).get("configurable", {})
        thread, space = settings.get("thread_id"), settings.get("checkpoint_ns")
        only, end = settings.get("checkpoint_id"), get_checkpoint_id(before) if before else None
        names = () if thread is None else (thread,) if space is None else (thread, space)
        left = limit
        for one in self._saved(_path(*names)):
            ident = one["checkpoint_id"]
            if (only and ident != only) or (end and ident >= end):
                continue
            held = self._loaded(one["metadata"])
            if any(held.get(key) != value for key, value in (filter or {}).items()):
                continue
            if left is not None:
                if left <= 0:
                    return
                left -= 1
            yield self._tuple(one)

    def _saved(self, path: str) -> Sequence[dict[str, Any]]:
        """Return the checkpoints below a folder, the latest first."""
        files = self._files.read_all(path)
        return sorted(
            map(json.loads, (one.text for one in files)),
            key=lambda one: str(one["checkpoint_id"]),
            reverse=True,
        )

    def _tuple(self, saved: dict[str, Any]) -> CheckpointTuple:
        place = saved["thread_id"], saved["checkpoint_ns"], saved["checkpoint_id"]
        writes = [json.loads(text) for text in self._writes(*place).read()]
        writes.sort(key=lambda one: writes_sort_key(one[5], one[0], one[1]))
        parent = saved["parent"]
        return CheckpointTuple(
            config=_config(saved),
            checkpoint=self._loaded(saved["checkpoint"]),
            metadata=self._loaded(saved["metadata"]),
            parent_config=_config(saved | {"checkpoint_id": parent}) if parent else None,
            pending_writes=[(one[0], one[2], self._loaded(one[3:5])) for one in writes],
        )

    def _writes(self, thread: str, space: str, ident: str) -> ItemLog:
        names = (ACTOR, thread, space, ident, "writes")
        return ItemLog(self._held.db, names, actor=ACTOR)

    def _dumped(self, value: Any) -> Sequence[str]:
        kind, data = self.serde.dumps_typed(value)
        return [kind, base64.b64encode(data).decode()]

    def _loaded(self, dumped: Sequence[str]) -> Any:
        return self.serde.loads_typed((dumped[0], base64.b64decode(dumped[1])))

    # -- the same as coroutines --------------------------------------------------------------------

    aput = on_thread(put)
    aput_writes = on_thread(put_writes)
    aget_tuple = on_thread(get_tuple)
    adelete_thread = on_thread(delete_thread)
    adelete_for_runs = on_thread(delete_for_runs)
    acopy_thread = on_thread(copy_thread)
    aprune = on_thread(prune)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints; see `list`."""
        for one in await asyncio.to_thread(lambda: [*self.list(config, **options)]):
            yield one


def _path(*names: str) -> str:
    return folder_path(ACTOR, *names)


def _config(saved: dict[str, Any]) -> Any:
    keys = ("thread_id", "checkpoint_ns", "checkpoint_id")
    return {"configurable": {key: saved[key] for key in keys}}
