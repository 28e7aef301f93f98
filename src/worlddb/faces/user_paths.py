"""User paths: the paths of a user's store and settings, and the source of a store's key.

    --key-file  ▷  WORLDDB_KEY_FILE, WORLDDB_KEY, WORLDDB_KEYRING  ▷  the same in config.toml

The package keyring is imported only when a keyring is named.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from worlddb.errors import FormatError, InvalidInputError, StorageError, StoreKeyError

if TYPE_CHECKING:
    from pathlib import Path

    from worlddb.faces.face_settings import Settings


APPLICATION = "worlddb"
STORE = "memory.db"
CONFIG = "config.toml"
IN_MEMORY = ":memory:"
SERVERS = ("postgresql://", "postgres://")  # Prefixes of the addresses of database servers.
_PASSWORD = re.compile(r":[^/@\s]*@")
VECTORS_END = "-vectors"  # Suffix of the vectors file, after the name of the store.


def is_file(path: str) -> bool:
    """Return whether a store's address is the path of a file."""
    return path != IN_MEMORY and not path.startswith(SERVERS)


def shown_store(path: str) -> str:
    """Return a store's address without its password, to be displayed."""
    return _PASSWORD.sub("@", path) if path.startswith(SERVERS) else path


def data_directory() -> str:
    """Return the folder of the user's store, whether it exists or not."""
    return _home("XDG_DATA_HOME", "~/.local/share", "LOCALAPPDATA")


def config_directory() -> str:
    """Return the folder of the user's settings, whether it exists or not."""
    return _home("XDG_CONFIG_HOME", "~/.config", "APPDATA")


def _home(xdg: str, default: str, windows: str) -> str:
    if sys.platform == "darwin":
        home = os.path.expanduser("~/Library/Application Support")
    else:
        home = os.environ.get(windows if sys.platform == "win32" else xdg, "")
        # The XDG specification says to ignore a relative path.
        if not os.path.isabs(home):
            home = os.path.expanduser(default)
    return os.path.join(home, APPLICATION)


def checked_path(path: str) -> str:
    """Return a path after a check that SQLite can open it.

    Raises:
        InvalidInputError: it is not UTF-8.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InvalidInputError(f"{path!r}: the path of a store must be UTF-8 text") from None
    return path


def toml_in(data: bytes, path: str) -> dict[str, Any]:
    """Return the data of a TOML file.

    Raises:
        FormatError: it is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        reason = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise FormatError(f"{path}: is not TOML: {reason}") from None


def replace_private_file(
    path: str, text: str, check: Callable[[str], object] = lambda made: None
) -> None:
    """Replace a file atomically, readable by its owner alone, unless `check` refuses the new text.

    Raises:
        OSError: it cannot be written.
    """
    folder = os.path.dirname(os.path.abspath(path))
    handle, made = tempfile.mkstemp(prefix=".worlddb-", dir=folder)  # With the mode 0600.
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        check(made)
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise


def existing_store(path: str, advice: str = "give --db PATH or set WORLDDB_PATH") -> str:
    """Return the path of an existing store, so that a typing error creates no file.

    `advice` says how to give another path.

    Raises:
        StorageError: there is no store.
    """
    if not is_file(path):
        return path
    if not os.path.exists(path):
        raise StorageError(f"{path}: there is no store here; {advice}")
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise StorageError(f"{path}: is an empty file, not a store")
    return path


def creatable_store(path: str) -> str:
    """Return the path of a store that may not exist; creates the user's data directory for it."""
    if os.path.dirname(path) == data_directory():
        os.makedirs(data_directory(), mode=0o700, exist_ok=True)
    return path


SERVICE = "worlddb"  # The default service of a keyring entry.


def store_key(settings: Settings) -> str | Path | None:
    """Return the key of a store from the settings; None if they have none.

    Raises:
        StoreKeyError: the keyring has no such key, or cannot be asked.
    """
    if settings.key_file is not None:
        from pathlib import Path

        return Path(settings.key_file)
    if settings.key is not None or settings.keyring is None:
        return settings.key
    found = _ask(settings.keyring, "get_password")
    if found is None:
        raise StoreKeyError(
            f"the keyring has no key {settings.keyring!r}; 'worlddb rekey --new-keyring' makes one"
        )
    return str(found)


def tenant_key(settings: Settings, path: str) -> str | Path | None:
    """Return the key of a tenant's store: its own, created with the store, or a shared one.

    Raises:
        StoreKeyError, StorageError: the key cannot be read or made.
    """
    if settings.stores_keys is None:
        return store_key(settings)
    import os

    from worlddb.audit.store_files import make_key_file

    key = tenant_key_file(settings.stores_keys, path)
    # A lost key of an existing store is not replaced: no new key could read the store.
    if not os.path.exists(path):
        make_key_file(str(key))
    return key


def tenant_key_file(folder: str, path: str) -> Path:
    """Return the path of the key file of a tenant's store."""
    from pathlib import Path

    return Path(folder, f"{Path(path).stem}.key")


def new_keyring_key(name: str) -> str:
    """Return the key with a name in the keyring; created if there is none."""
    from os import urandom

    found = _ask(name, "get_password")
    if found is None:
        found = urandom(32).hex()
        _ask(name, "set_password", found)
    return str(found)


def _ask(name: str, call: str, *values: str) -> Any:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise StoreKeyError(
            "a key in the keyring needs the package keyring (not installed); run: "
            "pip install keyring"
        ) from None
    service, _, user = name.rpartition("/")
    try:
        return getattr(keyring, call)(service or SERVICE, user, *values)
    except KeyringError as error:
        raise StoreKeyError(f"the keyring cannot be asked for {name!r}: {error}") from None


# Files of other programs: JSON files, alone or in a folder or ZIP file.


def text_in_file(path: str) -> str:
    """Return the text of a file; FormatError if it is not UTF-8."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            return file.read()
    except UnicodeDecodeError:
        raise FormatError(f"{path}: is not UTF-8 text") from None


def json_file(path: str) -> Any:
    """Return the data of a JSON file.

    Raises:
        FormatError: it is not JSON.
    """
    import zipfile

    if os.path.isdir(path):
        raise FormatError(f"{path}: is a folder; give the file in it")
    if zipfile.is_zipfile(path):
        raise FormatError(f"{path}: is a ZIP file; give the JSON file in it")
    return _json(path, text_in_file(path))


def exported(path: str, wanted: re.Pattern[str], usual: str) -> Iterator[Any]:
    """Yield the data of each JSON file of an export: one file, or a ZIP file or folder of them.

    A large export comes as several ZIP files, and a folder may have them all. `usual` is the name
    of a wanted file, for the error.

    Raises:
        FormatError: a file is not JSON, or none is wanted.
    """
    import zipfile

    if not os.path.isdir(path) and not zipfile.is_zipfile(path):
        yield json_file(path)
        return
    is_empty = True
    for data in _exported(path, wanted):
        is_empty = False
        yield data
    if is_empty:
        raise FormatError(f"{path}: has no {usual} in it")


def _exported(path: str, wanted: re.Pattern[str]) -> Iterator[Any]:
    import zipfile

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            for name in sorted(packed.namelist()):
                if wanted.search(name) and not name.startswith("__MACOSX"):
                    yield _json(f"{path}: {name}", packed.read(name))
        return
    for file in files_in(path, (".json", ".zip")):
        if wanted.search(os.path.relpath(file, path).replace(os.sep, "/")):
            yield json_file(file)
        elif zipfile.is_zipfile(file):
            yield from _exported(file, wanted)


def _json(name: str, text: str | bytes) -> Any:
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name}: is not JSON: {error}") from None


def files_in(path: str, end: str | tuple[str, ...]) -> list[str]:
    """Return a file, or all files below a folder with this suffix, in order."""
    if not os.path.isdir(path):
        return [path]
    found = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.endswith(end)
    ]
    return sorted(found)
