"""Data sets: reads benchmark files as cases.

    file ──opened──▶ items ──DataSet.case──▶ Case, checked, each question with a unique id

A data set has a name, a key that only its items have, and a function from an item to cases; a new
one is added to `DATA_SETS`. Files are JSON arrays or JSON Lines, plain or compressed (gzip, xz,
bzip2), recognised by their first bytes. Items are read one at a time, so files may be large.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import IO, Any

from worlddb.errors import FormatError, InvalidInputError
from worlddb.evaluate.benchmark_cases import Case, GoldQuestion, LayoutError, check_case, object_in
from worlddb.evaluate.data_formats import (
    beam_cases,
    dmr_cases,
    facts_cases,
    locomo_cases,
    longmemeval_cases,
    memdaily_cases,
    multihop_cases,
    timeqa_cases,
)

CHUNK_BYTES = 1 << 20  # larger chunks are no faster
SLACK = 64
"""How near the end of what is held an error may only mean that the rest is not there yet."""
SHOWN = 20  # characters of a damaged place in an error message
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
TAR_AT, TAR = 257, b"ustar"  # the magic of a tar archive, and its offset


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One format of benchmark files.

    `sign` is a key that only items of this format have. `gold_rule` says what counts as gold if the
    file marks none, and `without_gold` why a question cannot be measured then. `reading` is the
    default reader: "rules" if the texts are memories by themselves. `headline` names the figures
    that are usually reported for the set.
    """

    name: str
    sign: str
    cases: Callable[[dict[str, Any], int], Iterable[Case]]
    headline: tuple[str, ...]
    gold_rule: str = ""
    without_gold: str = "without marked evidence"
    reading: str = "verbatim"


DATA_SETS = {
    one.name: one
    for one in (
        DataSet(
            name="longmemeval",
            sign="haystack_sessions",
            cases=longmemeval_cases,
            headline=("all@5", "all@10", "ndcg@10"),
        ),
        DataSet(
            name="locomo",
            sign="conversation",
            cases=locomo_cases,
            headline=("recall@5", "recall@10"),
        ),
        DataSet(
            name="dmr",
            sign="self_instruct",
            cases=dmr_cases,
            headline=("recall@5", "recall@10"),
            gold_rule="questions whose answer's words stand in a row in some turn. The benchmark "
            "marks no evidence: these turns, and their sessions, are taken for gold by a rule of "
            "ours",
            without_gold="without a turn that has the answer's words in a row",
        ),
        DataSet(
            name="beam",
            sign="sessions",
            cases=beam_cases,
            headline=("all@5", "recall@10", "turns@50"),
        ),
        DataSet(
            name="timeqa",
            sign="paras",
            cases=timeqa_cases,
            headline=("recall@1", "recall@3", "recall@5"),
        ),
        DataSet(
            name="memdaily",
            sign="01_simple_events",
            cases=memdaily_cases,
            headline=("recall@5", "recall@10"),
        ),
        DataSet(
            name="multihop",
            sign="passages",
            cases=multihop_cases,
            headline=("recall@5", "turns@5"),
            reading="rules",
        ),
        DataSet(
            name="facts",
            sign="context",
            cases=facts_cases,
            headline=("recall@1", "outdated@gold", "last@10", "turns@10"),
            gold_rule="questions whose fact, or chain of facts, a rule of ours finds. The file "
            "marks only the answers",
            without_gold="without a fact that ends with an accepted answer",
            reading="rules",
        ),
    )
}
FORMATS = tuple(DATA_SETS)
_OTHER_LAYOUT = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError),
)
"""What an item of another format raises."""
_DAMAGED = (
    *(ValueError, EOFError, RecursionError),
    *(gzip.BadGzipFile, zlib.error, lzma.LZMAError, OSError),
)
"""What a damaged file raises."""


def load_cases(path: str, form: str) -> Iterator[Case]:
    """Yield the cases of a benchmark file, one at a time."""
    if form not in DATA_SETS:
        raise InvalidInputError(f"format {form!r}: use one of {', '.join(FORMATS)}")
    seen: set[str] = set()
    for place, item in enumerate(_items(path)):
        try:
            found = list(DATA_SETS[form].cases(object_in(item, "the item"), place))
        except _OTHER_LAYOUT as error:
            raise FormatError(
                f"{path}: is not in the format {form}: {_why(item, place, form, error)}"
            ) from error
        for case in found:
            case = replace(case, questions=tuple(_named(one, seen) for one in case.questions))
            try:
                check_case(case)
            except LayoutError as error:
                told = _item_named(item, place)
                raise FormatError(
                    f"{path}: {told}: {error}; correct it, or remove the item"
                ) from None
            yield case


def format_of(path: str) -> str:
    """Return the format of a file, by the keys of its first item."""
    found = _formats_in(next(_items(path), None))
    if not found:
        raise FormatError(
            f"{path}: is none of {', '.join(FORMATS)}: its first item has none of "
            f"{', '.join(one.sign for one in DATA_SETS.values())}"
        )
    return found[0]


def _items(path: str) -> Iterator[Any]:
    """Yield the items of a file; raise `FormatError` if it is damaged or has no data."""
    done = 0
    try:
        with opened(path) as file:
            for item in items_of(file):
                yield item
                done += 1
    except NotDataError as error:
        raise FormatError(f"{path}: {error}") from None
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        after = f"after item {done}" if done else "from the start"
        raise FormatError(
            f"{path}: is damaged {after} ({error!s:.200}); get the file again"
        ) from error


def _why(item: Any, place: int, form: str, error: Exception) -> str:
    """Return the error in an item, for the owner of the file."""
    for other in _formats_in(item):
        if other != form:
            return f"it has the layout of {other}; run `worlddb eval {other}`, or give another file"
    if isinstance(error, LayoutError):
        told = str(error)
    elif isinstance(error, KeyError):
        told = f"lacks {error}"
    else:
        # Python's own message does not help to find the error in the file.
        told = f"is laid out otherwise than the items of {form} are"
    return f"{_item_named(item, place)}: {told}; give the file as its authors publish it"


def _item_named(item: Any, place: int) -> str:
    """Return a name for an item: its index from 1, and its id if it has one."""
    known = item if isinstance(item, dict) else {}
    more = known.get("metadata")
    names = [known.get("question_id"), known.get("sample_id")]
    names += [more.get("initial_data_id")] if isinstance(more, dict) else []
    name = next((name for name in names if isinstance(name, str) and name), None)
    return f"item {place + 1}" + (f" ({name[:80]!r})" if name else "")


def _formats_in(item: Any) -> list[str]:
    known = item if isinstance(item, dict) else {}
    # A multi-hop file has the names of sets as its keys; the known keys are one level deeper.
    deeper = next((value for value in known.values() if isinstance(value, dict)), {})
    signs = {*known, *({"passages"} & deeper.keys())}
    return [one.name for one in DATA_SETS.values() if one.sign in signs]


def _named(question: GoldQuestion, seen: set[str]) -> GoldQuestion:
    """Return a question with a unique id."""
    name, number = question.id, 1
    while name in seen:
        number += 1
        name = f"{question.id}#{number}"
    seen.add(name)
    return question if name == question.id else replace(question, id=name)


# Reading a file piece by piece.


class NotDataError(ValueError):
    """The file is an archive, a web page or a pointer, not data."""


def opened(path: str) -> IO[bytes]:
    """Open a file for reading, decompressed; NotDataError if it is an archive or a web page."""
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
    """Yield the items of a file; ValueError or RecursionError if it is not complete JSON."""
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
    """The part of a file that is in memory, and the read position in it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._parser = json.JSONDecoder()
        self._held = ""
        self._place = 0
        self._has_more = True

    def next_is(self, sign: str) -> bool:
        """Skip a sign if it comes next, and return whether it did."""
        if self.is_at_end() or self._held[self._place] != sign:
            return False
        self._place += 1
        return True

    def is_at_end(self) -> bool:
        """Skip white space, and return whether the end follows."""
        while True:
            while self._place < len(self._held) and self._held[self._place] in _SPACE:
                self._place += 1
            if self._place < len(self._held):
                return False
            if not self._read():
                return True

    def value(self) -> Any:
        """Return the next value; ValueError if there is none."""
        self.is_at_end()
        while True:
            try:
                found, self._place = self._parser.raw_decode(self._held, self._place)
            except json.JSONDecodeError as error:
                # A string that is not complete is reported at its beginning.
                is_open = error.msg.startswith("Unterminated string")
                is_wrong = not is_open and len(self._held) - error.pos > SLACK
                if is_wrong or not self._read():
                    is_begun = not is_wrong and error.pos > self._place
                    found = repr(self._held[error.pos : error.pos + SHOWN])
                    raise ValueError("breaks off" if is_begun else f"no JSON: {found}") from None
            else:
                return found

    def _read(self) -> bool:
        """Read about as much as is held, so that no value is parsed many times."""
        if not self._has_more:
            return False
        left = self._held[self._place :]
        data = self._file.read(max(CHUNK_BYTES, len(left)))
        self._has_more = bool(data)
        self._held = left + self._decoder.decode(data, final=not data)
        self._place = 0
        return True
