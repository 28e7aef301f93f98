"""Stores: which file a command works on, and how it is opened."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from worlddb.embed.embedder import Embedder
    from worlddb.memory.memory import Memory
    from worlddb.world_db import WorldDB


def store_path(args: argparse.Namespace) -> str:
    """Return the store's path: `--db`, else what the configuration says, else the user's own."""
    from worlddb.faces.face_settings import settings_from

    return settings_from(args).path


def given_key(args: argparse.Namespace) -> str | Path | None:
    """Return the key that the flags and the configuration give; None if they give none."""
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.store_keys import store_key

    return store_key(settings_from(args))


def open_to_read(args: argparse.Namespace, *, embedder: Embedder | str | None = None) -> WorldDB:
    """Open an existing store; a typo in its path makes no file, and an old format stays.

    Not read-only in SQLite's sense: such a connection leaves its `-wal` and `-shm` files behind.
    """
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.store_keys import store_key
    from worlddb.faces.user_paths import existing_store
    from worlddb.world_db import open as open_store

    settings = settings_from(args)
    path = existing_store(settings.path)
    return open_store(
        path,
        create=False,
        embedder=embedder,
        models_dir=settings.models_dir,
        verify_reads=settings.verify_reads,
        migrate=False,
        key=store_key(settings),
    )


def open_to_write(args: argparse.Namespace) -> WorldDB:
    """Open a store, making it if it is new, and the user's data directory with it."""
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.store_keys import store_key
    from worlddb.faces.user_paths import creatable_store
    from worlddb.world_db import open as open_store

    settings = settings_from(args)
    return open_store(creatable_store(settings.path), key=store_key(settings))


def open_memories(
    args: argparse.Namespace, *, create: bool = False, asks: bool = False, reads: bool = False
) -> Memory:
    """Open a store by its memories, as `worlddb.Memory`; with `create` it may be new.

    Only a command that `reads` texts, to write them, migrates a store of an older format.
    The embedder is that of the settings only for a command that `asks` questions or `reads` texts,
    the extractor only for one that `reads` texts: no other has to mind what is wrong with them.
    """
    from dataclasses import replace

    from worlddb.faces.face_settings import open_memory, settings_from

    settings = settings_from(args)
    if not asks and not reads:
        settings = replace(settings, embedder=None)
    if not reads:
        settings = replace(settings, extractor="rules")
    return open_memory(settings, create=create, migrate=reads, actor="cli")


def chosen_embedder(args: argparse.Namespace) -> Embedder | str | None:
    """Return the embedder of `--embedder` or the configuration; None if neither says one."""
    from worlddb.faces.face_settings import embedder_of, settings_from

    return embedder_of(settings_from(args))
