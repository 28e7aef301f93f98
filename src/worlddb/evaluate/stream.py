"""Stream: the items of a large JSON file, one at a time, however long the file is.

A file is an array of items, or items one after the other, as JSON Lines are. It may be compressed
(gzip, xz, bzip2), which its first bytes say, whatever its name does.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from typing import IO, Any

CHUNK_BYTES = 1 << 20
SLACK = 64
"""How near the end of what is held an error may only mean that the rest is not there yet."""
SHOWN = 20
_SPACE = " \t\r\n"
_PACKED: tuple[tuple[bytes, Callable[[str], Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"\xfd7zXZ\x00", lzma.open),
    (b"BZh", bz2.open),
)
_STRANGE = (
    (b"PK\x03\x04", "is a zip archive: unpack it, and give the file in it"),
    (b"\x28\xb5\x2f\xfd", "is packed by zstd: unpack it first"),
    (b"version https://git-lfs", "is a pointer of Git LFS, not the data: run `git lfs pull`"),
    (b"<", "is a web page, not the data: download the file itself"),
)
TAR_AT, TAR = 257, b"ustar"


class NotDataError(ValueError):
    """What somebody took for the data is something else."""


def opened(path: str) -> IO[bytes]:
    """Open a file for reading, unpacked.

    Raises:
        NotDataError: it is an archive, or what a failed download leaves.
        OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        head = file.read(512)
    for sign, told in _STRANGE:
        if head.lstrip().startswith(sign):
            raise NotDataError(told)
    unpack = next((unpack for sign, unpack in _PACKED if head.startswith(sign)), None)
    whole: Any = open(path, "rb") if unpack is None else unpack(path)  # noqa: SIM115
    try:
        if whole.peek(512)[TAR_AT:].startswith(TAR):
            raise NotDataError("is a tar archive: unpack it, and give the file in it")
    except BaseException:
        whole.close()
        raise
    opened_file: IO[bytes] = whole
    return opened_file


def items_of(file: IO[bytes]) -> Iterator[Any]:
    """Yield the items of a file.

    Raises:
        ValueError: it is no JSON, or breaks off.
        RecursionError: it is nested too deeply.
    """
    text = _Text(file)
    in_array = text.next_is("[")
    if not in_array and text.is_at_end():
        raise ValueError("is empty")
    while not (text.next_is("]") if in_array else text.is_at_end()):
        yield text.value()
        if in_array and not text.next_is(","):
            if not text.next_is("]"):
                raise ValueError("an array breaks off, or lacks a comma")
            break
    if not text.is_at_end():
        raise ValueError("something follows the end of the array")


class _Text:
    """The part of a file that is in memory, and where in it we are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._parser = json.JSONDecoder()
        self._held = ""
        self._place = 0
        self._has_more = True

    def next_is(self, sign: str) -> bool:
        """Step over a sign if it comes next."""
        if self.is_at_end() or self._held[self._place] != sign:
            return False
        self._place += 1
        return True

    def is_at_end(self) -> bool:
        """Return whether nothing but white space is left; step over that."""
        while True:
            while self._place < len(self._held) and self._held[self._place] in _SPACE:
                self._place += 1
            if self._place < len(self._held):
                return False
            if not self._read():
                return True

    def value(self) -> Any:
        """Return the next value.

        Raises:
            ValueError: there is none.
        """
        self.is_at_end()
        while True:
            try:
                found, self._place = self._parser.raw_decode(self._held, self._place)
            except json.JSONDecodeError as error:
                # A string that has no end yet is told of by where it begins.
                is_open = error.msg.startswith("Unterminated string")
                is_wrong = not is_open and len(self._held) - error.pos > SLACK
                if is_wrong or not self._read():
                    is_begun = not is_wrong and error.pos > self._place
                    found = repr(self._held[error.pos : error.pos + SHOWN])
                    raise ValueError("breaks off" if is_begun else f"no JSON: {found}") from None
            else:
                return found

    def _read(self) -> bool:
        """Take in about as much again as is held, so that no value is parsed often."""
        if not self._has_more:
            return False
        left = self._held[self._place :]
        data = self._file.read(max(CHUNK_BYTES, len(left)))
        self._has_more = bool(data)
        self._held = left + self._decoder.decode(data, final=not data)
        self._place = 0
        return True
