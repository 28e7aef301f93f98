"""Signed envelope: a JSON payload under an Ed25519 signature, as a DSSE envelope.

    {"payloadType": …, "payload": base64, "signatures": [{"keyid": …, "sig": base64}]}

The signature covers DSSE's pre-authentication encoding (`signed_bytes`), so a payload cannot pass
for one of another type. Any DSSE verifier can check it. The private key lies beside the store,
readable by its owner alone, or in a table of the server, and is made by the first signature. A
store in memory has its own key while it is open.

`cryptography` signs (the extra `receipts`; the extra `server` includes it): an implementation in
plain Python would leak the key by its timing.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from blake3 import blake3

from worlddb.errors import FormatError, InvalidInputError, StorageError
from worlddb.store.interface import SideLines, Store

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_END = "-signing-key"
"""Suffix of the key's file name, after that of the store."""
IN_MEMORY = ":memory:"  # The path of a store that is gone when closed.
PRIVATE = 0o600  # The owner alone may read the key.
OTHERS = 0o077  # Rights of the group and of everybody else.
KEY_BYTES = 32  # Of an Ed25519 key, private or public.
KEY_ID_CHARS = 16  # distinguishes keys; the signature itself proves which key is right

_unsaved: WeakKeyDictionary[Store, Ed25519PrivateKey] = WeakKeyDictionary()
"""The keys of stores in memory, by store."""


def canonical_json(data: object) -> bytes:
    """Return JSON with sorted keys and no white space: equal data, equal bytes."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def signed_bytes(kind: str, payload: bytes) -> bytes:
    """Return the bytes to sign: DSSE's pre-authentication encoding of payload and type."""
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def sign(store: Store, kind: str, payload: bytes) -> dict[str, Any]:
    """Return a payload in an envelope signed by the key of a store.

    Raises:
        InvalidInputError: the package for signatures is missing.
        StorageError: the key cannot be made or read, or others may read it.
    """
    return signed_by(signing_key(store), kind, payload)


def signed_by(key: Ed25519PrivateKey, kind: str, payload: bytes) -> dict[str, Any]:
    """Return a payload in an envelope signed by a key."""
    signature = key.sign(signed_bytes(kind, payload))
    return {
        "payloadType": kind,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {"keyid": key_id(public_bytes(key)), "sig": base64.b64encode(signature).decode()}
        ],
    }


def opened_payload(envelope: Mapping[str, Any], kind: str, public_key: bytes) -> bytes | None:
    """Return the payload of an envelope; None if the key has not signed it.

    Raises:
        FormatError: it is not an envelope of this kind.
        InvalidInputError: the package for signatures is missing.
    """
    from cryptography.exceptions import InvalidSignature

    keys = _keys()
    try:
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"]]
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise FormatError(
            "this is not a DSSE envelope: payload or signatures are missing"
        ) from None
    if envelope.get("payloadType") != kind:
        raise FormatError(f"this is an envelope of {envelope.get('payloadType')!r:.80}, not {kind}")
    for signature in signatures:
        with suppress(InvalidSignature):
            verifier = keys.Ed25519PublicKey.from_public_bytes(public_key)
            verifier.verify(signature, signed_bytes(kind, payload))
            return payload
    return None


def key_id(public_key: bytes) -> str:
    """Return a short name of a key."""
    return blake3(public_key).hexdigest()[:KEY_ID_CHARS]


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """Return the 32 bytes of the public key."""
    return key.public_key().public_bytes_raw()


def signing_key(store: Store, *, create: bool = True) -> Ed25519PrivateKey:
    """Return the key of a store; with `create`, made if there is none.

    Raises:
        InvalidInputError: the package for signatures is missing.
        StorageError: the key cannot be made or read, others may read it, or it does not exist.
    """
    keys = _keys()
    lines = store.side_lines(KEY_END)
    if lines is not None:
        return keys.Ed25519PrivateKey.from_private_bytes(_in_database(store, lines, create))  # type: ignore[no-any-return]
    path = file_beside(store, KEY_END, "a signing key")
    if path is None:
        return _unsaved.setdefault(store, keys.Ed25519PrivateKey.generate())
    if create and not os.path.exists(path):
        _save(path, keys.Ed25519PrivateKey.generate().private_bytes_raw())
    return keys.Ed25519PrivateKey.from_private_bytes(_load(path))  # type: ignore[no-any-return]


def _in_database(store: Store, lines: SideLines, create: bool) -> bytes:
    """Return the key in a table; if two processes create one at once, the first one is used."""
    if create and not lines.read():
        lines.add(_keys().Ed25519PrivateKey.generate().private_bytes_raw().hex())
    for line in lines.read().values():
        return bytes.fromhex(line)
    raise StorageError(f"{store.path}: has no signing key yet; to check a signature, pass a key")


def file_beside(store: Store, end: str, what: str) -> str | None:
    """Return the path of a file beside a store; None for a store in memory."""
    path = store.side_file(end)
    if path is None and store.path != IN_MEMORY:
        raise StorageError(
            f"{store.path}: {what} needs a store in a file of its own, of the present format"
        )
    return path


def _save(path: str, key: bytes) -> None:
    """Write a new key; if another process was faster, its key is used."""
    made = f"{path}.{os.getpid()}.part"
    try:
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE)
        try:
            os.write(file, key.hex().encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)
        with suppress(FileExistsError):
            os.link(made, path)
    except OSError as error:
        raise StorageError(f"{path}: the signing key cannot be made: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)


def _load(path: str) -> bytes:
    try:
        with open(path, encoding="ascii") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & OTHERS:
                raise StorageError(
                    f"{path}: others may read the signing key; run: chmod 600 {path}"
                )
            key = bytes.fromhex(file.read().strip())
    except (ValueError, UnicodeDecodeError):
        key = b""
    except OSError as error:
        raise StorageError(
            f"{path}: the signing key cannot be read: {error.strerror}; to check a signature with "
            "a public key, pass that key"
        ) from error
    if len(key) != KEY_BYTES:
        raise StorageError(f"{path}: is not a signing key: 64 hexadecimal digits are expected")
    return key


def _keys() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise InvalidInputError(
            "signatures need the package cryptography (not installed); run: "
            'pip install "worlddb[receipts]"'
        ) from None
    return ed25519
