"""Stream: the items of a large JSON file, one at a time, however long the file is.

A file is an array of items, or items one after the other, as JSON Lines are. It may be compressed:
`.gz` and `.xz` are read as their names say.
"""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

CHUNK_BYTES = 1 << 20
_SPACE = " \t\r\n"


def opened(path: str) -> IO[bytes]:
    """Open a file for reading, unpacked."""
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(path))
    return cast(IO[bytes], lzma.open(path)) if path.endswith(".xz") else Path(path).open("rb")


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
            except json.JSONDecodeError:
                if not self._read():
                    raise
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
