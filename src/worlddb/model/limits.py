"""Limits on what one call may bring, and the checks that hold them.

Everything that reaches the address or the disk passes here first, so bad input is refused before
anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worlddb.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes of UTF-8 unless said otherwise."""

    type_bytes_max: int = 128
    name_bytes_max: int = 4_096
    content_bytes_max: int = 1 << 20
    metadata_bytes_max: int = 1 << 16
    note_bytes_max: int = 4_096
    notes_max: int = 1_000


def encode_text(value: str, what: str, bytes_max: int) -> bytes:
    """Return `value` as UTF-8.

    Raises:
        InvalidInputError: no text, NUL or lone surrogates in it, or longer than `bytes_max`.
    """
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"{what}: character {error.start} is a lone surrogate and no text; "
            "decode the source with errors='replace'"
        ) from None
    except AttributeError:
        raise InvalidInputError(f"{what}: give text, not {type(value).__name__}") from None
    if b"\0" in data:
        raise InvalidInputError(f"{what}: has a NUL character; remove it")
    if len(data) > bytes_max:
        raise InvalidInputError(
            f"{what}: {len(data):,} bytes, the limit is {bytes_max:,}; split it into several nodes"
        )
    return data


def check_type(value: str, limits: Limits) -> None:
    """Check the type of a node or an edge: short, printable, no white space around it."""
    encode_text(value, "type", limits.type_bytes_max)
    if not value or value != value.strip() or not value.isprintable():
        raise InvalidInputError(f"type: {value!r} is no type; use a word such as 'Fact'")


def check_notes(values: Sequence[str] | str | None, what: str, limits: Limits) -> tuple[str, ...]:
    """Return aliases or sources as a tuple of distinct, checked strings in their given order."""
    if not values:
        return ()
    given = (values,) if isinstance(values, str) else tuple(values)
    if len(given) > limits.notes_max:
        raise InvalidInputError(f"{what}: {len(given)} given, the limit is {limits.notes_max}")
    for value in given:
        if not encode_text(value, what, limits.note_bytes_max).strip():
            raise InvalidInputError(f"{what}: an empty one says nothing; leave it out")
    return tuple(dict.fromkeys(given))


def encode_metadata(metadata: Mapping[str, Any] | None, limits: Limits) -> str:
    """Return metadata as canonical JSON text: sorted keys, no white space, no ASCII escapes.

    Raises:
        InvalidInputError: not JSON data, or longer than the limit.
    """
    if not metadata:
        return "{}"
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(f"metadata: give a mapping, not {type(metadata).__name__}")
    try:
        text = json.dumps(
            _json_only(metadata),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError(f"metadata: not JSON data: {error}") from None
    encode_text(text, "metadata", limits.metadata_bytes_max)
    return text


def _json_only(value: Any) -> Any:
    """Return `value` with mappings as dicts; refuse keys that JSON would silently rename."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not text")
        return {key: _json_only(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json_only(item) for item in value]
    return value
