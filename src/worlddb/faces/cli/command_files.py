"""Files that commands read and write, and what they read from stdin.

A file that a command writes appears complete under its name, or not at all.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from worlddb.errors import InvalidInputError, StorageError
from worlddb.faces.user_paths import VECTORS_END

if TYPE_CHECKING:
    from pathlib import Path

    from worlddb.embed.embedder import Embedder
    from worlddb.memory.memory import Memory
    from worlddb.world_db import WorldDB


# Stores: which file a command works on, and how it is opened.


def store_path(args: argparse.Namespace) -> str:
    """Return the store's path: `--db`, else what the configuration says, else the user's own."""
    from worlddb.faces.face_settings import settings_from

    return settings_from(args).path


def given_key(args: argparse.Namespace) -> str | Path | None:
    """Return the key that the flags and the configuration give; None if they give none."""
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.user_paths import store_key

    return store_key(settings_from(args))


def open_to_read(args: argparse.Namespace, *, embedder: Embedder | str | None = None) -> WorldDB:
    """Open an existing store; a typo in its path makes no file, and an old format stays.

    Not read-only in SQLite's sense: such a connection leaves its `-wal` and `-shm` files behind.
    """
    from worlddb.faces.face_settings import settings_from
    from worlddb.faces.user_paths import existing_store, store_key
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
    from worlddb.faces.user_paths import creatable_store, store_key
    from worlddb.world_db import open as open_store

    settings = settings_from(args)
    return open_store(creatable_store(settings.path), key=store_key(settings))


def open_memories(
    args: argparse.Namespace,
    *,
    create: bool = False,
    asks: bool = False,
    reads: bool = False,
    writes: bool = False,
    actor: str = "cli",
) -> Memory:
    """Open a store by its memories, as `worlddb.Memory`; with `create` it may be new.

    Only a command that `reads` texts, to write them, migrates a store of an older format. One that
    `writes` finds the edge types of the settings declared.
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
    return open_memory(
        settings, create=create, migrate=reads, declares=create or writes, actor=actor
    )


def chosen_embedder(args: argparse.Namespace) -> Embedder | str | None:
    """Return the embedder of `--embedder` or the configuration; None if neither says one."""
    from worlddb.faces.face_settings import embedder_of, settings_from

    return embedder_of(settings_from(args))


# Files that commands read and write, and what they read from stdin.

STDIN = "-"
PRIVATE = 0o600  # Memories are personal: a new file is for its owner alone.
STORE_ENDS = (
    "",
    "-wal",
    "-shm",
    "-journal",
    VECTORS_END,
    "-signing-key",
    "-reads",
)  # Ends of the names of a store's files.


@contextmanager
def landing(target: str, *, replace: bool) -> Iterator[str]:
    """Yield a temporary path beside `target`, which is renamed to `target` at the end.

    If anything fails before that, `target` stays as it was.

    Raises:
        StorageError: `target` exists and `replace` is not set, is not a file, or has no folder.
    """
    from worlddb.audit.store_files import remove_abandoned_copies

    refuse_target(target, replace=replace)
    folder, name = os.path.split(os.path.realpath(target))
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.part")
    remove_abandoned_copies(folder, name)
    try:
        yield temporary
        _rename(temporary, os.path.join(folder, name), target, replace)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def refuse_target(target: str, *, replace: bool = False) -> None:
    """Raise StorageError where a command cannot write a new file; see `landing`."""
    folder = os.path.dirname(os.path.realpath(target))
    if os.path.isdir(target):
        raise StorageError(f"{target}: is a folder; give the path of a file in it")
    if os.path.exists(target) and not os.path.isfile(target):
        # Renaming would replace the device or pipe itself.
        raise StorageError(f"{target}: is not an ordinary file")
    if os.path.lexists(target) and not replace:
        raise StorageError(f"{target}: exists already; choose another path")
    if not os.path.isdir(folder):
        raise StorageError(f"{target}: the folder {folder} does not exist; create it first")


def private_opener(path: str, flags: int) -> int:
    """Open a new file for its owner alone: an `opener` of `open`."""
    return os.open(path, flags, PRIVATE)


def save_json(target: str, data: object) -> None:
    """Write data to a new file that its owner alone can read.

    Raises:
        StorageError: `target` exists, or cannot be written.
    """
    import json

    with (
        landing(target, replace=False) as path,
        open(path, "w", encoding="utf-8", opener=private_opener) as file,
    ):
        file.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def refuse_store(target: str, store: str) -> None:
    """Refuse a target that is the store itself or one of its files.

    Raises:
        StorageError: `target` is one of them, by its name or through a link.
    """
    real = os.path.realpath(store)
    for end in STORE_ENDS:
        # By name, too: SQLite would take such a file for its own, even one it has not made yet.
        if os.path.realpath(target) == real + end or _is_same(target, real + end):
            raise StorageError(
                f"{target}: is the store itself or belongs to it; choose another path"
            )


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _rename(temporary: str, path: str, target: str, replace: bool) -> None:
    """Give the finished file its name; only `replace` may take the name of another file."""
    if replace:
        os.replace(temporary, path)
    else:
        try:
            # Unlike a rename, a link fails if the name was taken in the meantime.
            os.link(temporary, path)
        except FileExistsError:
            raise StorageError(f"{target}: exists already; choose another path") from None
        except OSError:
            # A file system without links.
            os.rename(temporary, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def given_text(text: str) -> str:
    """Return a text; '-' is stdin."""
    if text != STDIN:
        return text
    with opened(STDIN) as file:
        return _decoded(file.read(), "stdin")


def given_json(text: str, where: str, example: str = "") -> Any:
    """Return the data of a JSON text; `example` shows the error's reader what is wanted.

    Raises:
        InvalidInputError: the text is not JSON.
    """
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        place = "stdin" if where == STDIN else where
        told = f"is not JSON{example and f', such as {example}'}: {error}"
        raise InvalidInputError(f"{place}: {told if text.strip() else 'is empty'}") from None


def given_messages(name: str) -> list[dict[str, Any]]:
    """Return the messages of a chat from a file: a JSON list, or one JSON object per line.

    Raises:
        InvalidInputError: the file is neither.
    """
    with opened(name) as file:
        text = _decoded(file.read(), name)
    first = text.lstrip()[:1]
    if first == "{":
        lines = [line for line in text.splitlines() if line.strip()]
        found: Any = [given_json(line, f"{name}: line {at}") for at, line in enumerate(lines, 1)]
        if len(found) == 1 and isinstance(found[0], dict) and "messages" in found[0]:
            found = found[0]["messages"]
    else:
        found = given_json(text, name)
    if not isinstance(found, list):
        raise InvalidInputError(f'{name}: give a JSON list of {{"role": …, "content": …}}')
    return found


def given_mapping(text: str, where: str) -> dict[str, Any]:
    """Return the data of a JSON object.

    Raises:
        InvalidInputError: the text is not a JSON object.
    """
    example = '{"topic": "tea"}'
    found = given_json(text, where, example)
    if not isinstance(found, dict):
        raise InvalidInputError(f"{where}: give a JSON object, such as {example}")
    return found


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Yield a file to read bytes from; '-' is stdin.

    Raises:
        StorageError: stdin is closed.
    """
    if name != STDIN:
        with open(name, "rb") as file:
            yield file
    elif sys.stdin is None:
        raise StorageError("stdin is closed; give a FILE")
    else:
        yield sys.stdin.buffer


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidInputError(f"{where}: is not UTF-8 text") from None
