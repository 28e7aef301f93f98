"""The diagnosis of `worlddb doctor`: whether the configured parts exist and work.

Examines, in this order: settings file, store and indexes, embedder, chat model, server, and MCP
clients. Repairs nothing, and calls no chat model.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from worlddb.audit.backup_keys import KEYS_END
from worlddb.audit.store_files import encrypting_build, is_encrypted, kept_copies
from worlddb.errors import CorruptionError, InvalidInputError, StoreKeyError, WorldDBError
from worlddb.faces.clients.client_catalog import (
    CLIENTS,
    SERVER,
    McpClient,
)
from worlddb.faces.clients.client_file import HOOK_CLIENTS, HookClient, programs_of, servers_in
from worlddb.faces.face_settings import SERVER_REMEDY, Settings, chat_of, embedder_of, is_installed
from worlddb.faces.user_paths import IN_MEMORY, VECTORS_END, data_directory, is_file, store_key
from worlddb.model.inputs import Plain

if TYPE_CHECKING:
    from worlddb.embed.embedder import Embedder
    from worlddb.world_db import WorldDB

CHECKED_BYTES_MAX = 64_000_000  # A check of this size takes some seconds.
WAL_BYTES_MAX = 256_000_000  # A log of this size makes opening the store slow.
UNEMBEDDED_MAX = 5_000  # Embedding this many nodes delays the next recall by seconds.
HEALTH_TIMEOUT_S = 2.0  # A server on this machine answers within milliseconds.
FORMAT_OFFSET = 60  # Offset of SQLite's `user_version`, which holds the store's format.

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding(Plain):
    """One finding: the part, the verdict, the observation, and advice."""

    part: str
    verdict: Verdict
    seen: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis(Plain):
    """The findings of a diagnosis; `healthy` if none is a failure."""

    healthy: bool
    findings: tuple[DoctorFinding, ...]


def diagnosis_of(findings: Iterable[DoctorFinding]) -> Diagnosis:
    """Return a diagnosis of findings."""
    found = tuple(findings)
    return Diagnosis(healthy=all(one.verdict != "fail" for one in found), findings=found)


def examine_served(db: WorldDB) -> Iterator[DoctorFinding]:
    """Yield findings about a store that is open and served, without a check of all of it."""
    yield from _examine_open_store(db, db.path, checks=False)
    search = db.engine.search
    if search.has_vectors:
        vectors = search.vectors()
        when = "after each commit" if vectors.is_followed else "by the next recall"
        yield ok("embedder", f"{vectors.model_id}; new texts are embedded {when}")
    else:
        yield ok("embedder", "none is configured; recall uses words and names")
    waiting, last = db.engine.background.waiting, db.reclustered[-1:]
    if last and last[0].error is not None:
        advice = "write again, or db.recluster(nodes)"
        yield warn("background", f"the last look for same names failed: {last[0].error}", advice)
    else:
        yield ok("background", f"{waiting} looks for same names wait; {len(db.reclustered)} done")


def ok(part: str, seen: str) -> DoctorFinding:
    """Return the finding that a part works."""
    return DoctorFinding(part=part, verdict="ok", seen=seen)


def warn(part: str, seen: str, advice: str) -> DoctorFinding:
    """Return the finding that a part works or is optional, but needs attention."""
    return DoctorFinding(part=part, verdict="warn", seen=seen, advice=advice)


def fail(part: str, seen: str, advice: str) -> DoctorFinding:
    """Return the finding that a part does not work."""
    return DoctorFinding(part=part, verdict="fail", seen=seen, advice=advice)


def examine_config(path: str, secrets: list[str]) -> Iterator[DoctorFinding]:
    """Yield findings about the settings file; `secrets` are the names of secrets in it."""
    if not os.path.exists(path):
        yield ok("config", f"no settings file ({path}); defaults, environment and flags apply")
        return
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if secrets and mode & 0o077 and os.name == "posix":
        yield warn(
            "config",
            f"{path} holds {', '.join(secrets)}, and other users of this machine can read it",
            f"chmod 600 {path}",
        )
    else:
        yield ok("config", path)


# -- the store -------------------------------------------------------------------------------------


def examine_store(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield findings about the store and its indexes."""
    from worlddb.world_db import open as open_store

    path = settings.path
    if path == IN_MEMORY:
        yield warn("store", "is in memory and ends with each process", "give --db PATH")
        return
    if is_file(path) and not os.path.exists(path):
        folder = os.path.dirname(path) or os.curdir
        if folder == data_directory() or os.path.isdir(folder):
            advice = "write something: worlddb write 'Hello'"
            yield warn("store", f"{path}: does not exist yet", advice)
        else:
            advice = "create the folder, or give another --db"
            yield fail("store", f"{path}: the folder {folder} does not exist", advice)
        return
    try:
        # Without an embedder; a wrong embedder has its own finding.
        key = store_key(settings)
        with open_store(path, create=False, migrate=False, embedder="none", key=key) as db:
            yield from _examine_open_store(db, path)
        yield from _examine_encryption(settings)
    except StoreKeyError as error:
        yield fail("encryption", str(error), "give the right key; the store itself is not damaged")
    except CorruptionError as error:
        advice = "worlddb restore BACKUP --force, or give another --db"
        yield fail("store", f"cannot be opened: {error}", advice)
    except (WorldDBError, OSError) as error:
        yield fail("store", f"cannot be opened: {error}", "solve this, or give another --db")


def _examine_open_store(db: WorldDB, path: str, *, checks: bool = True) -> Iterator[DoctorFinding]:
    from worlddb.faces.cli.terminal import amount

    held = db.engine.store.size_bytes()
    size = os.path.getsize(path) if is_file(path) else held
    last = db.log(limit=1, newest_first=True)[0]
    yield ok(
        "store",
        f"{db.path}: {_format(path)}{amount(size, 'bytes')}, "
        + (f"commit {last.seq} of {last.time:%Y-%m-%d %H:%M}Z" if last.seq else "nothing written"),
    )
    log_size = held - size
    if db.why_read_only is not None and db.why_read_only.startswith("has format"):
        yield warn("format", f"{path}: {db.why_read_only}", "worlddb migrate")
    elif not is_file(path):
        pass  # A database server has its own log and its own access rights.
    elif log_size > WAL_BYTES_MAX:
        yield warn(
            "write-ahead log",
            f"{amount(log_size, 'bytes')} are not yet in the store itself",
            "end processes that keep the store open for long; the last to close it moves them",
        )
    else:
        yield ok("write-ahead log", f"{amount(log_size, 'bytes')}")
    if is_file(path):
        yield from _examine_rights(path)
    if not checks:
        pass
    elif size > CHECKED_BYTES_MAX:
        yield ok("soundness", f"not checked, {amount(size, 'bytes')} take a while: worlddb check")
    elif problems := db.check():
        yield fail(
            "soundness",
            f"{len(problems)} problems, the first: {problems[0].place}: {problems[0].message}",
            "worlddb check lists all; worlddb export saves what can be read",
        )
    else:
        yield ok("soundness", "every node, edge, index and commit is consistent")
    yield from _examine_vectors(db)
    if waiting := db.pending():
        reason = max(waiting, key=lambda item: item.since).error
        yield warn(
            "extraction",
            f"{len(waiting)} memories wait to be extracted: {reason:.200}",
            "worlddb extract --pending",
        )


def _examine_rights(path: str) -> Iterator[DoctorFinding]:
    """Yield warnings if other users can read the store, or you cannot write it."""
    wide = [
        path + end
        for end in ("", "-wal", "-shm", VECTORS_END, KEYS_END)
        if os.path.exists(path + end) and stat.S_IMODE(os.stat(path + end).st_mode) & 0o077
    ]
    if wide and os.name == "posix":
        yield warn(
            "rights",
            f"other users of this machine can read or write {', '.join(wide)}",
            f"chmod 600 {' '.join(wide)}, unless a group is to share the store",
        )
    if not os.access(path, os.W_OK) or not os.access(os.path.dirname(path) or ".", os.W_OK):
        yield warn("store", "you have no permission to write it", f"change the rights of {path}")


def _format(path: str) -> str:
    if not is_file(path) or is_encrypted(path):
        return ""
    with open(path, "rb") as file:
        file.seek(FORMAT_OFFSET)
        number = int.from_bytes(file.read(4), "big")
    return f"format {number}, " if number else ""  # A new store is in its write-ahead log as yet.


def _examine_encryption(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield whether the store is encrypted, and whether others can read its key or an old copy."""
    path, file = settings.path, settings.key_file
    if not is_file(path):
        return
    if not is_encrypted(path):
        yield ok("encryption", "none: whoever can read the file can read the memories")
        return
    yield ok(
        "encryption", f"the store and the files beside it are encrypted ({encrypting_build()})"
    )
    if file is not None and os.name == "posix" and os.stat(file).st_mode & 0o077:
        advice = f"chmod 600 {file}"
        yield warn("encryption", f"other users of this machine can read the key {file}", advice)
    if plain := [copy for copy in kept_copies(path) if not is_encrypted(copy)]:
        yield warn(
            "encryption",
            f"copies of the store as it was are not encrypted: {', '.join(plain)}",
            "remove them, or encrypt each by 'worlddb rekey --discard --db COPY'",
        )


class _VectorIndex(NamedTuple):
    """The embedder of a store's vectors, and the progress of embedding."""

    model_id: str | None
    dim: int
    embedded: int
    nodes: int


def _vector_index(db: WorldDB) -> _VectorIndex:
    with db.engine.store.read() as reader:
        model = next((row for row in reader.derived.models() if row.active), None)
        nodes = reader.head().nodes
    if model is None:
        return _VectorIndex(None, 0, 0, nodes)
    return _VectorIndex(model.id, model.dim, min(model.embedded, nodes), nodes)


def _examine_vectors(db: WorldDB) -> Iterator[DoctorFinding]:
    index = _vector_index(db)
    if index.model_id is None:
        yield ok("vectors", "none yet; the first recall embeds all nodes")
        return
    seen = (
        f"{index.embedded:,} of {index.nodes:,} nodes embedded by {index.model_id} "
        f"({index.dim} numbers)"
    )
    if index.nodes - index.embedded > UNEMBEDDED_MAX:
        yield warn("vectors", seen, "worlddb reindex, or the next recall waits for it")
    else:
        yield ok("vectors", seen)


# -- embedder and chat model -----------------------------------------------------------------------


def examine_embedder(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield whether the embedder loads and works, and whether it made the store's vectors."""
    from worlddb.embed.embedder import checked

    if settings.embedder == "none":
        yield ok("embedder", "none is configured; recall uses words and names")
        return
    recorded = _recorded_model(settings)
    try:
        embedder = _embedder(settings, recorded)
        began = time.perf_counter()
        vector = checked(embedder, ["Does this work?"], "query")
        took_ms = 1000 * (time.perf_counter() - began)
    except (WorldDBError, OSError) as error:
        advice = "worlddb models; or choose another by --embedder or WORLDDB_EMBEDDER"
        yield fail("embedder", str(error), advice)
        return
    seen = f"{embedder.model_id}: {vector.shape[1]} numbers, {took_ms:.0f} ms to start"
    yield ok("embedder", seen)
    if recorded is not None and recorded != embedder.model_id:
        yield fail(
            "embedder",
            f"the vectors of the store come from {recorded}, not from {embedder.model_id}",
            f"leave the embedder out, or: worlddb reindex --embedder {embedder.model_id}",
        )


def _embedder(settings: Settings, recorded: str | None) -> Embedder:
    from worlddb.embed.embedder_catalog import DEFAULT, embedder_named

    chosen = embedder_of(settings)
    if chosen is not None and not isinstance(chosen, str):
        return chosen
    return embedder_named(
        recorded or DEFAULT, models_dir=settings.models_dir, api_key=settings.embedder_key
    )


def _recorded_model(settings: Settings) -> str | None:
    """Return the embedder of the store's vectors; None if it has none or cannot be opened."""
    from worlddb.world_db import open as open_store

    try:
        key, path = store_key(settings), settings.path
        with open_store(path, create=False, migrate=False, embedder="none", key=key) as db:
            return _vector_index(db).model_id
    except (WorldDBError, OSError):
        return None


def examine_model(settings: Settings) -> Iterator[DoctorFinding]:
    """Yield whether a chat model is configured; it is not called."""
    configured = (
        settings.llm_provider,
        settings.llm_model,
        settings.llm_base_url,
        settings.llm_api_key,
    )
    if not any(configured) and settings.extractor != "llm":
        yield ok("language model", "none, and none is needed")
        return
    try:
        chat_of(settings)
    except (InvalidInputError, ImportError) as error:
        yield fail("language model", str(error), "see 'worlddb config'")
        return
    key = "with a key" if settings.llm_api_key else "without a key"
    yield ok("language model", f"{settings.llm_provider} {settings.llm_model}, {key}; not called")


# -- server and clients ----------------------------------------------------------------------------


def examine_clients() -> Iterator[DoctorFinding]:
    """Yield whether MCP can be served, and what each client's settings say about this memory."""
    if is_installed():
        yield ok("server", "MCP and REST are installed")
    else:
        yield warn("server", "MCP and REST are not installed; clients need them", SERVER_REMEDY)
    connected = 0
    for client in CLIENTS.values():
        for in_project in (False, True):
            if in_project and client.project is None:
                continue
            path = client.path(in_project=in_project)
            if in_project and path == client.path():
                continue  # The present folder is the user's home.
            try:
                servers = servers_in(client, path)
            except (WorldDBError, OSError) as error:
                yield fail(client.title, str(error), "repair the file by hand")
                continue
            if servers is None:
                continue
            if SERVER in servers:
                connected += 1
                yield from _examine_entry(client, path, servers[SERVER], in_project)
            elif not in_project:
                yield ok(client.title, f"has settings without an entry for this memory ({path})")
    if not connected:
        advice = f"worlddb setup {'|'.join(CLIENTS)} --write"
        if any(programs for _, _, programs, _ in _hook_files()):
            seen = "hooks are set, but no client has the tools of this memory (MCP)"
            yield ok("clients", f"{seen}; to give them: {advice}")
        else:
            yield warn("clients", "none is connected to this memory", advice)


def examine_hooks() -> Iterator[DoctorFinding]:
    """Yield whether the programs that client hooks call can be started."""
    for client, path, programs, error in _hook_files():
        if error:
            yield fail(f"{client.title} hooks", error, "repair the file by hand")
        for program in sorted(programs):
            if shutil.which(os.path.expanduser(program)) is None:
                more = "" if path == client.path() else " --project"
                seen = f"{path}: start {program!r}, which is not a command here"
                again = f"worlddb setup {client.name} --hooks{more} --write"
                yield fail(f"{client.title} hooks", seen, again)
            else:
                yield ok(f"{client.title} hooks", f"start {program} ({path})")


def _hook_files() -> Iterator[tuple[HookClient, str, set[str], str]]:
    """Yield each hook settings file with the programs that it starts, or why it is unreadable."""
    for client in HOOK_CLIENTS.values():
        for path in dict.fromkeys((client.path(), client.path(in_project=True))):
            try:
                yield client, path, set(programs_of(client, path)), ""
            except (WorldDBError, OSError, ValueError) as error:
                yield client, path, set(), str(error)


def _examine_entry(
    client: McpClient, path: str, entry: Any, in_project: bool
) -> Iterator[DoctorFinding]:
    again = f"worlddb setup {client.name}{' --project' if in_project else ''} --write"
    if not isinstance(entry, dict):
        yield fail(client.title, f"{path}: its entry {SERVER!r} is not a table", again)
        return
    entry = client.plain(entry)
    if "url" in entry:
        yield _examine_url(client, str(entry["url"]), _authorization(entry), again)
        return
    command = entry.get("command")
    if not isinstance(command, str) or shutil.which(os.path.expanduser(command)) is None:
        yield fail(client.title, f"{path}: starts {command!r}, which is not a command here", again)
        return
    store = _store_of(entry)
    if store is None or not is_file(store) or os.path.exists(store):
        yield ok(client.title, f"starts {command}{f' on {store}' if store else ''} ({path})")
    elif os.path.isdir(os.path.dirname(store)):
        yield ok(client.title, f"starts {command}; will create {store} ({path})")
    else:
        yield fail(client.title, f"{path}: the folder of its store {store} does not exist", again)


def _store_of(entry: dict[str, Any]) -> str | None:
    """Return the store that an entry names; None if the settings choose the store."""
    args, env = entry.get("args"), entry.get("env")
    store = None
    if isinstance(args, list) and "--db" in args[:-1]:
        store = args[args.index("--db") + 1]
    elif isinstance(env, dict):
        store = env.get("WORLDDB_PATH")
    return os.path.expanduser(store) if isinstance(store, str) and store else None


def _authorization(entry: dict[str, Any]) -> str | None:
    """Return the authorization header of an entry, with variables expanded."""
    variable = entry.get("bearer_token_env_var")
    if isinstance(variable, str):
        return f"Bearer {os.environ.get(variable, '')}"
    headers = entry.get("headers", entry.get("http_headers"))
    given = headers.get("Authorization") if isinstance(headers, dict) else None
    if not isinstance(given, str):
        return None
    return re.sub(r"\$\{(?:env:)?(\w+)\}", lambda found: os.environ.get(found[1], ""), given)


def _examine_url(
    client: McpClient, url: str, authorization: str | None, again: str
) -> DoctorFinding:
    """Return whether a server answers at an address, and accepts this client."""
    import urllib.error
    import urllib.request

    parts = urlsplit(url)
    # A call that changes nothing and needs the token.
    asked = f"{parts.scheme}://{parts.netloc}/v1/scopes?limit=1"
    try:
        if parts.scheme not in ("http", "https"):
            raise ValueError("is not an address")
        request = urllib.request.Request(asked)
        if authorization is not None:
            request.add_header("Authorization", authorization)
        # Without a proxy, which could not reach a server on this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=HEALTH_TIMEOUT_S):
            return ok(client.title, f"{url} answers")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code in (401, 429):
            told = "has no token" if authorization is None else "has a token that is not valid"
            advice = (
                f"set WORLDDB_TOKEN, then: {again.replace(' --write', '')} --http {url} --write"
            )
            return fail(client.title, f"{url} answers, but the entry {told}", advice)
        return warn(client.title, f"{url} answers with status {error.code}", "see the server's log")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        return warn(client.title, f"{url} does not answer: {reason}", "worlddb serve")
