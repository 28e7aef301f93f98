"""Config: what the faces are told. Flags win over the environment, that over a file, over defaults.

    --db x  ▷  WORLDDB_PATH=x  ▷  path = "x" in config.toml  ▷  memory.db in the data directory

The file is the one that WORLDDB_CONFIG names, else `config.toml` in the user's config directory.
An empty variable counts as unset. Nothing else in this package reads these variables.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from worlddb.errors import FormatError, InvalidInputError, StorageError
from worlddb.faces.opening import open_memory as open_memory
from worlddb.faces.places import (
    CONFIG,
    IN_MEMORY,
    STORE,
    checked_path,
    config_directory,
    data_directory,
)

FILE_VARIABLE = "WORLDDB_CONFIG"
FILE_BYTES_MAX = 1 << 20
LOG_LEVELS = ("debug", "info", "warning", "error")
EXTRACTORS = ("rules", "verbatim", "llm")
HIDDEN = "(hidden)"
DEFAULT = "default"
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a face can be told, checked."""

    path: str
    user_id: str | None = None
    token: str | None = field(default=None, repr=False)
    tokens_file: str | None = None
    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    embedder: str | None = None
    embedder_key: str | None = field(default=None, repr=False)
    models_dir: str | None = None
    llm_provider: str | None = None
    llm_base_url: str | None = None
    llm_model: str | None = None
    llm_api_key: str | None = field(default=None, repr=False)
    log_level: str = "info"
    extractor: str = "rules"
    consolidate_every_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """One setting: its name, its value as it may be shown, and who said so."""

    name: str
    value_shown: Any
    origin: str


class _Wrong(ValueError):
    """A value cannot be what it is given for; the text says what it has to be."""


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong("give text, in quotes")
    if not value.strip():
        raise _Wrong("is empty; give a value or leave it out")
    return value


def _one_of(*choices: str) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value.casefold() not in choices:
            raise _Wrong(f"{value!r:.80} is none of {', '.join(choices)}")
        return value.casefold()

    return check


def _port(value: object) -> int:
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else value
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 65_535:
        raise _Wrong(f"{value!r:.80} is no whole number from 0 to 65535")
    return number


def _seconds(value: object) -> float:
    try:
        number = float(value) if isinstance(value, str | int | float) else 0.0
    except (ValueError, OverflowError):
        number = 0.0
    if isinstance(value, bool) or not 0 < number < float("inf"):
        raise _Wrong(f"{value!r:.80} is no number of seconds above 0")
    return number


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    if not isinstance(value, list | tuple):
        raise _Wrong('give a list of texts, such as ["a", "b"]')
    return tuple(_text(name) for name in value)


@dataclass(frozen=True, slots=True)
class _Kind:
    """How one setting is given: its variable, its flag, and what makes a value of it."""

    variable: str
    make: Callable[[object], Any] = _text
    flag: str | None = None
    is_path: bool = False
    is_secret: bool = False


KINDS: Mapping[str, _Kind] = {
    "path": _Kind("WORLDDB_PATH", flag="db", is_path=True),
    "user_id": _Kind("WORLDDB_SCOPE"),
    "token": _Kind("WORLDDB_TOKEN", is_secret=True),
    "tokens_file": _Kind("WORLDDB_TOKENS_FILE", is_path=True),
    "host": _Kind("WORLDDB_HOST"),
    "port": _Kind("WORLDDB_PORT", _port),
    "allowed_hosts": _Kind("WORLDDB_ALLOWED_HOSTS", _names),
    "allowed_origins": _Kind("WORLDDB_ALLOWED_ORIGINS", _names),
    "embedder": _Kind("WORLDDB_EMBEDDER"),
    "embedder_key": _Kind("WORLDDB_EMBEDDER_KEY", is_secret=True),
    "models_dir": _Kind("WORLDDB_MODELS", is_path=True),
    "llm_provider": _Kind("WORLDDB_LLM_PROVIDER"),
    "llm_base_url": _Kind("WORLDDB_LLM_BASE_URL"),
    "llm_model": _Kind("WORLDDB_LLM_MODEL"),
    "llm_api_key": _Kind("WORLDDB_LLM_API_KEY", is_secret=True),
    "log_level": _Kind("WORLDDB_LOG_LEVEL", _one_of(*LOG_LEVELS)),
    "extractor": _Kind("WORLDDB_EXTRACTOR", _one_of(*EXTRACTORS)),
    "consolidate_every_s": _Kind("WORLDDB_CONSOLIDATE_EVERY_S", _seconds),
}
"""The settings by name, which is also their key in the file and their attribute of a flag."""


def settings_from(args: argparse.Namespace) -> Settings:
    """Return what flags, environment and file say. A flag is an attribute of `args`, if not None.

    Raises:
        InvalidInputError: a value is wrong, or the file has a key that is no setting.
        FormatError: the file is no TOML.
        StorageError: WORLDDB_CONFIG names a file that cannot be read.
    """
    values = {name: value for name, value, _ in _said(args)}
    return Settings(**({"path": _default_path()} | values))


def origins(args: argparse.Namespace) -> list[Origin]:
    """Return every setting with who said it; secrets are hidden, as are passwords in addresses.

    Raises:
        InvalidInputError, FormatError, StorageError: as `settings_from`.
    """
    said = {name: (value, origin) for name, value, origin in _said(args)}
    settings = settings_from(args)
    return [
        Origin(
            name=name,
            value_shown=_shown(kind, getattr(settings, name)),
            origin=said[name][1] if name in said else DEFAULT,
        )
        for name, kind in KINDS.items()
    ]


def config_path() -> str:
    """Return the path of the file that holds settings, whether it exists or not."""
    given = os.environ.get(FILE_VARIABLE)
    if given:
        return os.path.abspath(os.path.expanduser(given))
    return os.path.join(config_directory(), CONFIG)


def _said(args: argparse.Namespace) -> Iterator[tuple[str, Any, str]]:
    """Yield the settings that somebody gave: name, value, and who."""
    path = config_path()
    held = _file(path)
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
        elif name in held:
            made = _made(kind, held[name], f"{path}: {name}", os.path.dirname(path))
            yield name, made, f"file {path}"


def _made(kind: _Kind, given: object, where: str, folder: str = "") -> Any:
    try:
        value = kind.make(given)
    except _Wrong as wrong:
        raise InvalidInputError(f"{where}: {wrong}") from None
    if not kind.is_path or value == IN_MEMORY:
        return value
    # No shell has expanded what comes from a file; and a relative path in it starts from there.
    return checked_path(os.path.join(folder, os.path.expanduser(value)))


def _default_path() -> str:
    return checked_path(os.path.join(data_directory(), STORE))


def _shown(kind: _Kind, value: Any) -> Any:
    if kind.is_secret and value is not None:
        return HIDDEN
    if isinstance(value, tuple):
        return list(value)
    return _CREDENTIALS.sub("***@", value) if isinstance(value, str) else value


def _file(path: str) -> dict[str, Any]:
    """Return what the file says; nothing if it is only where it would be by default.

    Raises:
        InvalidInputError: it has a key that is no setting.
        FormatError: it is no TOML.
        StorageError: it was named and cannot be read.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        if missing and not os.environ.get(FILE_VARIABLE):
            return {}
        told = "is not there, and WORLDDB_CONFIG names it" if missing else "cannot be read"
        raise StorageError(f"{path}: the settings file {told}") from None
    if not data:
        return {}
    if len(data) > FILE_BYTES_MAX:
        raise FormatError(f"{path}: is too large for a settings file")
    import tomllib

    try:
        held = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        told = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise FormatError(f"{path}: is no TOML: {told}") from None
    if strange := sorted(held.keys() - KINDS.keys()):
        raise InvalidInputError(
            f"{path}: {strange[0]!r:.80} is no setting; known are {', '.join(KINDS)}"
        )
    return held
