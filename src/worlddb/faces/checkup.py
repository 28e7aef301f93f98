"""Checkup: is what the settings describe there, and does it work? Nothing is repaired."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from worlddb.errors import CorruptionError, InvalidInputError, WorldDBError
from worlddb.faces.findings import Finding, fail, ok, warn
from worlddb.faces.opening import chat_of, embedder_of
from worlddb.faces.places import IN_MEMORY, data_directory

if TYPE_CHECKING:
    from worlddb.embed.protocol import Embedder
    from worlddb.faces.config import Settings
    from worlddb.world_db import WorldDB

CHECKED_BYTES_MAX = 64_000_000
WAL_BYTES_MAX = 256_000_000
BEHIND_MAX = 5_000
VERSION_AT = 60
"""Where SQLite keeps the number that we use for the format."""


def examine_config(path: str, secrets: list[str]) -> Iterator[Finding]:
    """Yield what the settings file is like; `secrets` are the names of those it holds."""
    if not os.path.exists(path):
        yield ok("config", f"no settings file ({path}); defaults, environment and flags hold")
        return
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if secrets and mode & 0o077 and os.name == "posix":
        yield warn(
            "config",
            f"{path} holds {', '.join(secrets)}, and others on this machine can read it",
            f"chmod 600 {path}",
        )
    else:
        yield ok("config", path)


def examine_store(settings: Settings) -> Iterator[Finding]:
    """Yield how the store and its indexes are."""
    from worlddb.world_db import open as open_store

    path = settings.path
    if path == IN_MEMORY:
        yield warn("store", "is in memory, and gone with each process", "give --db PATH")
        return
    if not os.path.exists(path):
        folder = os.path.dirname(path) or os.curdir
        if folder == data_directory() or os.path.isdir(folder):
            advice = "write something: worlddb write 'Hello'"
            yield warn("store", f"{path}: there is none yet", advice)
        else:
            advice = "create the folder, or give another --db"
            yield fail("store", f"{path}: the folder {folder} does not exist", advice)
        return
    try:
        # Without an embedder, so that a wrong one is told where it belongs.
        with open_store(path, create=False, embedder="none") as db:
            yield from _examine_open(db, path)
    except CorruptionError as error:
        advice = "worlddb restore BACKUP --force, or give another --db"
        yield fail("store", f"cannot be opened: {error}", advice)
    except (WorldDBError, OSError) as error:
        yield fail("store", f"cannot be opened: {error}", "mend that, or give another --db")


def _examine_open(db: WorldDB, path: str) -> Iterator[Finding]:
    from worlddb.faces.cli.progress import amount

    size = os.path.getsize(path)
    last = db.log(limit=1, newest_first=True)[0]
    yield ok(
        "store",
        f"{path}: format {_format(path)}, {amount(size, 'bytes')}, commit {last.seq} "
        f"of {last.time:%Y-%m-%d %H:%M}Z",
    )
    log = f"{path}-wal"
    waiting = os.path.getsize(log) if os.path.exists(log) else 0
    if waiting > WAL_BYTES_MAX:
        yield warn(
            "write-ahead log",
            f"{amount(waiting, 'bytes')} wait to be folded into the store",
            "end processes that keep it open for long; the last to close it folds them in",
        )
    else:
        yield ok("write-ahead log", f"{amount(waiting, 'bytes')}")
    if not os.access(path, os.W_OK) or not os.access(os.path.dirname(path) or ".", os.W_OK):
        yield warn("store", "cannot be written by you", f"give yourself rights on {path}")
    if size > CHECKED_BYTES_MAX:
        yield ok("soundness", f"not checked: {amount(size, 'bytes')} take a while; worlddb check")
    elif problems := db.check():
        yield fail(
            "soundness",
            f"{len(problems)} problems, the first: {problems[0].place}: {problems[0].message}",
            "worlddb check tells all; worlddb export saves what can be read",
        )
    else:
        yield ok("soundness", "every node, edge, index and commit fits")
    yield from _examine_vectors(db)
    if waits := db.pending():
        why = max(waits, key=lambda item: item.since).error
        yield warn(
            "extraction",
            f"{len(waits)} memories wait for a model: {why:.200}",
            "worlddb extract --pending",
        )


def _format(path: str) -> int:
    with open(path, "rb") as file:
        file.seek(VERSION_AT)
        return int.from_bytes(file.read(4), "big")


def _examine_vectors(db: WorldDB) -> Iterator[Finding]:
    with db.engine.store.read() as reader:
        model = next((row for row in reader.derived.models() if row.active), None)
        nodes = reader.head().nodes
    if model is None:
        yield ok("vectors", "none yet; the first recall embeds what there is")
        return
    behind = max(nodes - model.embedded, 0)
    seen = f"{nodes - behind:,} of {nodes:,} nodes embedded by {model.id} ({model.dim} numbers)"
    if behind > BEHIND_MAX:
        yield warn("vectors", seen, "worlddb reindex, or the next recall waits for it")
    else:
        yield ok("vectors", seen)


def examine_embedder(settings: Settings) -> Iterator[Finding]:
    """Yield whether the embedder loads and answers."""
    from worlddb.embed.protocol import checked

    if settings.embedder == "none":
        yield ok("embedder", "none was chosen; recall goes by words and names")
        return
    try:
        embedder = _embedder(settings)
        began = time.perf_counter()
        vector = checked(embedder, ["Does this work?"], "query")
        took = 1000 * (time.perf_counter() - began)
    except (WorldDBError, OSError) as error:
        advice = "worlddb models; or choose another by --embedder or WORLDDB_EMBEDDER"
        yield fail("embedder", str(error), advice)
        return
    yield ok("embedder", f"{embedder.model_id}: {vector.shape[1]} numbers, {took:.0f} ms to start")
    recorded = _recorded(settings)
    if recorded is not None and recorded != embedder.model_id:
        yield fail(
            "embedder",
            f"the store's vectors are of {recorded}, not of {embedder.model_id}",
            f"leave the embedder out, or: worlddb reindex --embedder {embedder.model_id}",
        )


def _embedder(settings: Settings) -> Embedder:
    from worlddb.embed.names import DEFAULT, embedder_named

    chosen = embedder_of(settings)
    if chosen is not None and not isinstance(chosen, str):
        return chosen
    name = _recorded(settings) or DEFAULT
    return embedder_named(name, models_dir=settings.models_dir, api_key=settings.embedder_key)


def _recorded(settings: Settings) -> str | None:
    """Return the model that made the store's vectors, if it can be opened and has any."""
    from worlddb.world_db import open as open_store

    try:
        with (
            open_store(settings.path, create=False, embedder="none") as db,
            db.engine.store.read() as reader,
        ):
            return next((row.id for row in reader.derived.models() if row.active), None)
    except (WorldDBError, OSError):
        return None


def examine_model(settings: Settings) -> Iterator[Finding]:
    """Yield whether a language model is configured; none is asked."""
    said = {
        "provider": settings.llm_provider,
        "model": settings.llm_model,
        "base_url": settings.llm_base_url,
        "api_key": settings.llm_api_key,
    }
    if not any(said.values()) and settings.extractor != "llm":
        yield ok("language model", "none, and none is needed")
        return
    try:
        chat_of(settings)
    except (InvalidInputError, ImportError) as error:
        yield fail("language model", str(error), "see 'worlddb config'")
        return
    key = "with a key" if settings.llm_api_key else "without a key"
    yield ok("language model", f"{settings.llm_provider} {settings.llm_model}, {key}; not asked")
