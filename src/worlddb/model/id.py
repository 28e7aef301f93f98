"""Id: the 32-byte blake3 address of a node, an edge, a state or a commit."""

from __future__ import annotations

import re

from worlddb.errors import InvalidInputError

ID_BYTES = 32
PREFIX_CHARS_MIN = 4

_HEX = re.compile(r"[0-9a-f]*", re.ASCII)


class Id(bytes):
    """An address: equal and hashable as bytes, printed as hex.

    `Id("ab…64 hex digits")` and `Id(b"…32 bytes")` are the same value.
    """

    __slots__ = ()

    def __new__(cls, value: bytes | str) -> Id:
        """Check and take 32 bytes or 64 hex digits."""
        if isinstance(value, str):
            if not _HEX.fullmatch(value.lower()) or len(value) % 2:
                raise InvalidInputError(f"{value!r} is not an id: ids are 64 hexadecimal digits")
            value = bytes.fromhex(value)
        if not isinstance(value, bytes):
            raise InvalidInputError(f"an id is 32 bytes or 64 hex digits, not {value!r}")
        if len(value) != ID_BYTES:
            raise InvalidInputError(f"an id has {ID_BYTES} bytes, not {len(value)}")
        return super().__new__(cls, value)

    def __str__(self) -> str:
        return self.hex()

    def __repr__(self) -> str:
        return f"Id({self.hex()!r})"

    def __format__(self, spec: str) -> str:
        return format(self.hex(), spec)

    @property
    def short(self) -> str:
        """The first 12 hex digits: enough for a person, and a valid prefix."""
        return self.hex()[:12]


def trusted_id(address: bytes) -> Id:
    """Return an address that was hashed or stored by us as an Id, without checking it again."""
    return bytes.__new__(Id, address)


def parse_prefix(text: str) -> str:
    """Return `text` as a lower-case hex prefix of 4 to 64 digits.

    Raises:
        InvalidInputError: too short, too long, or not hexadecimal.
    """
    prefix = text.strip().lower()
    if not _HEX.fullmatch(prefix):
        raise InvalidInputError(f"{text!r} is not an id: ids are hexadecimal")
    if len(prefix) < PREFIX_CHARS_MIN:
        raise InvalidInputError(f"{text!r} is too short: give at least {PREFIX_CHARS_MIN} digits")
    if len(prefix) > 2 * ID_BYTES:
        raise InvalidInputError(f"{text!r} is too long: an id has {2 * ID_BYTES} digits")
    return prefix
