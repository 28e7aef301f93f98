"""Store keys: where the key of an encrypted store comes from, for every face.

    --key-file  ▷  WORLDDB_KEY_FILE, WORLDDB_KEY, WORLDDB_KEYRING  ▷  the same in config.toml

The package keyring is imported only when a keyring is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worlddb.errors import StoreKeyError

if TYPE_CHECKING:
    from pathlib import Path

    from worlddb.faces.face_settings import Settings

SERVICE = "worlddb"  # The service of a keyring entry that names none.


def store_key(settings: Settings) -> str | Path | None:
    """Return the key that the settings give for a store; None if they give none.

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
    """Return the key of a tenant's store: one of its own, made with its store, or that of all.

    Raises:
        StoreKeyError, StorageError: the key cannot be read or made.
    """
    if settings.stores_keys is None:
        return store_key(settings)
    import os

    from worlddb.audit.store_rekey import make_key_file

    key = tenant_key_file(settings.stores_keys, path)
    # A key that is gone is never made anew for a store that is there: it would fit nothing.
    if not os.path.exists(path):
        make_key_file(str(key))
    return key


def tenant_key_file(folder: str, path: str) -> Path:
    """Return the file of the key of a tenant's store."""
    from pathlib import Path

    return Path(folder, f"{Path(path).stem}.key")


def new_keyring_key(name: str) -> str:
    """Return the key of a name in the keyring, made if there is none yet."""
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
