"""Settings of the faces, from flags, environment and file; and the store that they describe.

    --db x  ▷  WORLDDB_PATH=x  ▷  path = "x" in config.toml  ▷  memory.db in the data directory

A flag wins over the environment, the environment over the settings file, the file over the default.
The file is the one that WORLDDB_CONFIG names, else `config.toml` in the user's config directory. An
empty variable counts as unset. Nothing else in this package reads these variables.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from worlddb.errors import FormatError, InvalidInputError, NotFoundError, StorageError
from worlddb.faces.user_paths import (
    CONFIG,
    STORE,
    checked_path,
    config_directory,
    creatable_store,
    data_directory,
    existing_store,
    is_file,
    store_key,
    toml_in,
)

if TYPE_CHECKING:
    import argparse

    from worlddb.embed.embedder import Embedder
    from worlddb.memory.memory import Memory
    from worlddb.model.records import Extractor
    from worlddb.models.chat_client import Chat


# The extra `server`: the packages that `worlddb mcp` and `worlddb serve` need.

SERVER_PACKAGES = ("mcp", "pydantic", "starlette", "uvicorn")


SERVER_REMEDY = 'pip install "worlddb[server]"'


def require_server_extra(command: str) -> None:
    """Check that the packages of a server are installed, before any of them is imported.

    Raises:
        InvalidInputError: some are missing; the message says how to install them.
    """
    missing = [name for name in SERVER_PACKAGES if not is_installed(name)]
    if missing:
        raise InvalidInputError(
            f"{command}: needs {', '.join(missing)} (not installed); run: {SERVER_REMEDY}"
        )


def is_installed(name: str = "mcp") -> bool:
    """Return whether a package of the extra is installed."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


# Settings of the faces, and the store that they describe.

FILE_VARIABLE = "WORLDDB_CONFIG"
FILE_BYTES_MAX = 1 << 20  # A larger file is not a settings file.
LOG_LEVELS = ("debug", "info", "warning", "error")
EXTRACTORS = ("rules", "verbatim", "llm")
TOOLSETS = ("memory", "graph", "files", "all")
HIDDEN = "(hidden)"
DEFAULT = "default"
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One setting: its name, its value with secrets hidden, and its source."""

    name: str
    value_shown: Any
    origin: str


class _Wrong(ValueError):
    """Raised for a setting of the wrong form; the message names the right form."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong("give text, in quotes")
    if not value.strip():
        raise _Wrong("is empty; give a value or leave it out")
    return value


def _one_of(*choices: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value.casefold() not in choices:
            raise _Wrong(f"{value!r:.80} is not one of {', '.join(choices)}")
        return value.casefold()

    return check


def _port(value: object) -> int:
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 65_535:
        raise _Wrong(f"{value!r:.80} is not a whole number from 0 to 65535")
    return number


def _count(value: object) -> int:
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,6}", value) else value
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise _Wrong(f"{value!r:.80} is not a whole number above 0")
    return number


def _workers(value: object) -> int:
    return 0 if value in ("0", 0) and value is not False else _count(value)


def _seconds(value: object) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else 0.0
    except (ValueError, OverflowError):
        number = 0.0
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise _Wrong(f"{value!r:.80} is not a number of seconds above 0")
    return number


def _flag(value: object) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    found = value if isinstance(value, bool) else known.get(str(value).casefold())
    if found is None:
        raise _Wrong(f"{value!r:.80} is neither true nor false")
    return found


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if not isinstance(value, list | tuple):
        raise _Wrong('give a list of texts, such as ["a", "b"]')
    return tuple(_text(name) for name in value)


def _edge_types(value: object) -> tuple[Mapping[str, Any], ...]:
    if isinstance(value, str):
        with suppress(ValueError):
            value = json.loads(value)
    if not isinstance(value, list | tuple) or not all(
        isinstance(one, dict) and isinstance(one.get("type"), str) for one in value
    ):
        raise _Wrong('give a list of edge types, such as [{"type": "manages", "acyclic": true}]')
    return tuple(value)


@dataclass(frozen=True, slots=True)
class _SettingKind:
    """The declaration of one setting: its variable, its flag, and its check."""

    variable: str
    make: Callable[[object], Any]
    flag: str | None
    is_path: bool
    is_secret: bool


def _setting(
    variable: str,
    make: Callable[[object], Any] = _text,
    *,
    default: Any = None,
    flag: str | None = None,
    is_path: bool = False,
    is_secret: bool = False,
) -> Any:
    kind = _SettingKind(variable, make, flag, is_path, is_secret)
    return field(default=default, repr=not is_secret, metadata={"kind": kind})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings, checked. A name is also the key in the file and the attribute of the flag."""

    path: str = _setting("WORLDDB_PATH", default=MISSING, flag="db", is_path=True)
    user_id: str | None = _setting("WORLDDB_SCOPE")
    token: str | None = _setting("WORLDDB_TOKEN", is_secret=True)
    url: str | None = _setting("WORLDDB_URL")
    # A prompt waits for its hook; a person notices a second.
    hook_timeout_s: float = _setting("WORLDDB_HOOK_TIMEOUT_S", _seconds, default=0.8)
    tokens_file: str | None = _setting("WORLDDB_TOKENS_FILE", is_path=True)
    host: str = _setting("WORLDDB_HOST", default="127.0.0.1")
    port: int = _setting("WORLDDB_PORT", _port, default=8765)
    allowed_hosts: tuple[str, ...] = _setting("WORLDDB_ALLOWED_HOSTS", _names, default=())
    allowed_origins: tuple[str, ...] = _setting("WORLDDB_ALLOWED_ORIGINS", _names, default=())
    stores: str | None = _setting("WORLDDB_STORES", is_path=True)
    stores_keys: str | None = _setting("WORLDDB_STORES_KEYS", is_path=True)
    # Each has some open files; the usual limit of a process is 1,024.
    stores_open: int = _setting("WORLDDB_STORES_OPEN", _count, default=100)
    workers: int = _setting("WORLDDB_WORKERS", _workers, default=0)
    trusted_proxies: tuple[str, ...] = _setting("WORLDDB_TRUSTED_PROXIES", _names, default=())
    oauth_issuer: str | None = _setting("WORLDDB_OAUTH_ISSUER")
    oauth_resource: str | None = _setting("WORLDDB_OAUTH_RESOURCE")
    oauth_audience: tuple[str, ...] = _setting("WORLDDB_OAUTH_AUDIENCE", _names, default=())
    oauth_jwks_url: str | None = _setting("WORLDDB_OAUTH_JWKS_URL")
    oauth_roles: tuple[str, ...] = _setting("WORLDDB_OAUTH_ROLES", _names, default=())
    oauth_bounds: tuple[str, ...] = _setting("WORLDDB_OAUTH_BOUNDS", _names, default=())
    oauth_tenant_claim: str | None = _setting("WORLDDB_OAUTH_TENANT_CLAIM")
    oauth_per_minute: int | None = _setting("WORLDDB_OAUTH_PER_MINUTE", _count)
    embedder: str | None = _setting("WORLDDB_EMBEDDER")
    embedder_key: str | None = _setting("WORLDDB_EMBEDDER_KEY", is_secret=True)
    models_dir: str | None = _setting("WORLDDB_MODELS", is_path=True)
    llm_provider: str | None = _setting("WORLDDB_LLM_PROVIDER")
    llm_base_url: str | None = _setting("WORLDDB_LLM_BASE_URL")
    llm_model: str | None = _setting("WORLDDB_LLM_MODEL")
    llm_api_key: str | None = _setting("WORLDDB_LLM_API_KEY", is_secret=True)
    log_level: str = _setting("WORLDDB_LOG_LEVEL", _one_of(*LOG_LEVELS), default="info")
    extractor: str = _setting("WORLDDB_EXTRACTOR", _one_of(*EXTRACTORS), default="rules")
    verify_reads: bool = _setting("WORLDDB_VERIFY_READS", _flag, default=True)
    audit_reads: bool = _setting("WORLDDB_AUDIT_READS", _flag, default=False)
    key: str | None = _setting("WORLDDB_KEY", flag="store_key", is_secret=True)
    key_file: str | None = _setting("WORLDDB_KEY_FILE", is_path=True)
    keyring: str | None = _setting("WORLDDB_KEYRING")
    consolidate_every_s: float | None = _setting("WORLDDB_CONSOLIDATE_EVERY_S", _seconds)
    edge_types: tuple[Mapping[str, Any], ...] = _setting(
        "WORLDDB_EDGE_TYPES", _edge_types, default=()
    )
    tools: str = _setting("WORLDDB_TOOLS", _one_of(*TOOLSETS), default="memory")


KEYS = ("key", "key_file", "keyring")  # The settings that give a store's key.
KINDS: Mapping[str, _SettingKind] = {one.name: one.metadata["kind"] for one in fields(Settings)}


def settings_from(args: argparse.Namespace) -> Settings:
    """Return the settings from flags, environment and file. Flags are attributes of `args`."""
    values = {name: value for name, value, _ in _given(args)}
    own = checked_path(os.path.join(data_directory(), STORE))
    settings = Settings(**({"path": own} | values))
    branch = getattr(args, "branch", None)
    if branch is None:
        return settings
    from worlddb.ingest.branch_merge import branch_path

    return replace(settings, path=branch_path(settings.path, branch))


def origins(args: argparse.Namespace) -> list[Origin]:
    """Return every setting with its source; secrets and passwords in addresses are hidden."""
    given = {name: origin for name, _, origin in _given(args)}
    settings = settings_from(args)
    return [
        Origin(
            name=name,
            value_shown=_shown(kind, getattr(settings, name)),
            origin=given.get(name, DEFAULT),
        )
        for name, kind in KINDS.items()
    ]


def config_path() -> str:
    """Return the path of the settings file, whether it exists or not."""
    given = os.environ.get(FILE_VARIABLE)
    if given:
        return os.path.abspath(os.path.expanduser(given))
    return os.path.join(config_directory(), CONFIG)


def _given(args: argparse.Namespace) -> list[tuple[str, Any, str]]:
    """Return the settings that are not defaults: name, value, source.

    Of several keys of the store only one counts: flag before environment before file.

    Raises:
        InvalidInputError: a setting is wrong, or two of one origin give the key.
    """
    given = list(_found(args))
    keys = {name: origin.split()[0] for name, _, origin in given if name in KEYS}
    for where in ("flag", "environment", "file"):
        chosen = [name for name, origin in keys.items() if origin == where]
        if len(chosen) > 1:
            variables = " and ".join(KINDS[name].variable for name in chosen)
            raise InvalidInputError(f"{variables}: each gives the key of the store; give one")
        if chosen:
            return [one for one in given if one[0] not in KEYS or one[0] in chosen]
    return given


def _found(args: argparse.Namespace) -> Iterator[tuple[str, Any, str]]:
    path = config_path()
    in_file = _file(path)
    for name, kind in KINDS.items():
        flag = kind.flag or name
        given = getattr(args, flag, None)
        variable = os.environ.get(kind.variable)
        if given is not None and given != []:
            where = f"--{flag.replace('_', '-')}"
            yield name, _made(kind, given, where), f"flag {where}"
        elif variable:
            made = _made(kind, variable, kind.variable)
            yield name, made, f"environment {kind.variable}"
        elif name in in_file:
            made = _made(kind, in_file[name], f"{path}: {name}", os.path.dirname(path))
            yield name, made, f"file {path}"


def _made(kind: _SettingKind, given: object, where: str, folder: str = "") -> Any:
    try:
        value = kind.make(given)
    except _Wrong as wrong:
        raise InvalidInputError(f"{where}: {wrong}") from None
    if not kind.is_path or not is_file(value):
        return value
    # No shell expands values in a file. Relative paths start from the folder of the file.
    return checked_path(os.path.join(folder, os.path.expanduser(value)))


def _shown(kind: _SettingKind, value: Any) -> Any:
    if kind.is_secret and value is not None:
        return HIDDEN
    if isinstance(value, tuple):
        return list(value)
    return _CREDENTIALS.sub("***@", value) if isinstance(value, str) else value


def _file(path: str) -> dict[str, Any]:
    """Return the content of the settings file; empty if the default file does not exist."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        if missing and not os.environ.get(FILE_VARIABLE):
            return {}
        reason = "does not exist, but WORLDDB_CONFIG names it" if missing else "cannot be read"
        raise StorageError(f"{path}: the settings file {reason}") from None
    if not data:
        return {}
    if len(data) > FILE_BYTES_MAX:
        raise FormatError(f"{path}: the settings file is larger than 1 MiB")
    content = toml_in(data, path)
    if unknown := sorted(content.keys() - KINDS.keys()):
        raise InvalidInputError(
            f"{path}: {unknown[0]!r:.80} is not a setting; known are {', '.join(KINDS)}"
        )
    return content


# -- the store and its models ----------------------------------------------------------------------


def open_memory(
    settings: Settings,
    *,
    create: bool = True,
    migrate: bool = True,
    actor: str,
    consolidates: bool = False,
    declares: bool | None = None,
) -> Memory:
    """Open the store as `worlddb.Memory`; without `create` it must exist.

    With `consolidates` it is consolidated in the background, if the settings say how often. With
    `declares`, or else with `create`, the edge types of the settings are declared; who only reads
    writes nothing.
    """
    from worlddb.memory.memory import Memory

    path = creatable_store(settings.path) if create else existing_store(settings.path)
    memory = Memory(
        path,
        create=create,
        embedder=embedder_of(settings),
        models_dir=settings.models_dir,
        verify_reads=settings.verify_reads,
        audit_reads=settings.audit_reads,
        key=store_key(settings),
        migrate=migrate,
        extractor=extractor_of(settings),
        user_id=settings.user_id,
        actor=actor,
        consolidate_every_s=settings.consolidate_every_s if consolidates else None,
    )
    return (
        with_edge_types(memory, settings) if (declares or (create and declares is None)) else memory
    )


def with_edge_types(memory: Memory, settings: Settings) -> Memory:
    """Return an open memory after declaring the edge types of the settings; closed on an error."""
    try:
        for given in settings.edge_types:
            _declare(memory, given)
    except BaseException:
        memory.close()
        raise
    return memory


def _declare(memory: Memory, given: Mapping[str, Any]) -> None:
    """Declare an edge type of the settings, unless its scope does not exist yet."""
    try:
        memory.declare(**given)
    except TypeError as error:
        raise InvalidInputError(f"edge_types, {given['type']!r:.80}: {error}") from None
    except NotFoundError:
        pass


def embedder_of(settings: Settings) -> Embedder | str | None:
    """Return the configured embedder; None for the store's own."""
    if settings.embedder is None or settings.embedder == "none":
        return settings.embedder
    from worlddb.embed.embedder_catalog import embedder_named

    return embedder_named(
        settings.embedder, models_dir=settings.models_dir, api_key=settings.embedder_key
    )


def extractor_of(settings: Settings) -> Extractor | str:
    """Return the configured extractor."""
    if settings.extractor != "llm":
        return settings.extractor
    from worlddb.models.model_tasks import LlmExtractor

    return LlmExtractor(chat_of(settings))


def chat_of(settings: Settings) -> Chat:
    """Return a client for the configured chat model.

    Raises:
        InvalidInputError: no chat model is configured, or one of its settings is wrong.
    """
    if not settings.llm_provider or not settings.llm_model:
        raise InvalidInputError(
            "no language model is configured; set at least WORLDDB_LLM_PROVIDER and "
            "WORLDDB_LLM_MODEL (and, if needed, WORLDDB_LLM_BASE_URL and WORLDDB_LLM_API_KEY)"
        )
    from worlddb.models.chat_client import chat_from

    return chat_from(
        settings.llm_provider, settings.llm_base_url, settings.llm_model, settings.llm_api_key
    )
