"""Saved: one file with a vector index in it, whole or not at all.

    magic · format · dim · counts · length of the stamp and of each section   (fixed size)
    stamp · digest of everything before it
    sections, one after the other
    digest of all sections

The index is derived state, so the file is not forced to disk: after a power cut it may be short,
which the lengths and digests show, and the index is built again. A new file takes the place of the
old one by renaming.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO

from blake3 import blake3

from worlddb.errors import InvalidInputError, StorageError

MAGIC = b"WDBNEAR\n"
FORMAT = 1
SECTIONS = 6
STAMP_MAX = 1_024
DIGEST = 32

_FIXED = struct.Struct(f"<8sIIQI{SECTIONS}Q")


@dataclass(frozen=True, slots=True)
class Head:
    """What a saved file says about itself."""

    dim: int
    mark: int
    stamp: bytes
    lengths: tuple[int, ...]

    def pack(self) -> bytes:
        """Return the head as it is written."""
        fixed = _FIXED.pack(MAGIC, FORMAT, self.dim, self.mark, len(self.stamp), *self.lengths)
        return fixed + self.stamp + blake3(fixed + self.stamp).digest()


def write(path: str, dim: int, mark: int, stamp: bytes, sections: Sequence[memoryview]) -> None:
    """Write the file in place of the one that is there.

    Raises:
        InvalidInputError: the stamp is too long.
        StorageError: the disk refused; the old file is as it was.
    """
    if len(stamp) > STAMP_MAX:
        raise InvalidInputError(f"a stamp of {len(stamp)} bytes; at most {STAMP_MAX} are kept")
    head = Head(dim, mark, stamp, tuple(section.nbytes for section in sections))
    draft = f"{path}.{os.getpid()}.part"
    try:
        with open(draft, "wb") as file:
            file.write(head.pack())
            digest = blake3()
            for section in sections:
                digest.update(section)
                file.write(section)
            file.write(digest.digest())
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            os.remove(draft)
        raise StorageError(f"cannot save the vector index at {path!r}: {error}") from error


def saved_stamp(path: str) -> bytes | None:
    """Return the stamp a file was saved with, or None when there is no such file to load."""
    try:
        with open(path, "rb") as file:
            head = _read_head(file)
    except OSError:
        return None
    return None if head is None else head.stamp


def read(path: str, stamp: bytes | None, dim: int | None) -> tuple[Head, list[memoryview]] | None:
    """Return the head and the sections of a file, or None unless it is whole and the one asked for.

    Every section is checked before any of them is returned.
    """
    try:
        with open(path, "rb") as file:
            head = _read_head(file)
            if head is None or (stamp is not None and head.stamp != stamp):
                return None
            if dim is not None and head.dim != dim:
                return None
            whole = file.tell() + sum(head.lengths) + DIGEST
            if os.fstat(file.fileno()).st_size != whole:
                return None
            digest, sections = blake3(), []
            for length in head.lengths:
                section = memoryview(bytearray(length))
                if length and file.readinto(section) != length:
                    return None
                digest.update(section)
                sections.append(section)
            return (head, sections) if file.read() == digest.digest() else None
    except OSError:
        return None


def _read_head(file: BinaryIO) -> Head | None:
    fixed = file.read(_FIXED.size)
    if len(fixed) != _FIXED.size:
        return None
    magic, version, dim, mark, stamp_length, *lengths = _FIXED.unpack(fixed)
    if magic != MAGIC or version != FORMAT or stamp_length > STAMP_MAX:
        return None
    stamp = file.read(stamp_length)
    if file.read(DIGEST) != blake3(fixed + stamp).digest():
        return None
    return Head(dim, mark, stamp, tuple(lengths))
