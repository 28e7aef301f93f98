"""Damaged exports: whatever happened to one on its way, it is refused, and said in one line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import worlddb as engine
from thinning import some

from .command import in_process
from .samples import Sample

REFUSALS = {2, 3, 4, 6, 7}
WRONG_VALUES: list[Any] = [
    None,
    -1,
    2**63,
    2**200,
    1.5,
    True,
    "",
    "x",
    "ab" * 32,
    "a\0b",
    "\ud800",
    [],
    [1],
    {},
    {"a": 1},
]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def places(record: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every (container, key) inside a record."""
    keys = record.keys() if isinstance(record, dict) else range(len(record))
    for key in keys:
        yield record, key
        if isinstance(record[key], dict | list):
            yield from places(record[key])


def kinds(lines: list[str]) -> list[int]:
    """Return the numbers of lines that differ in shape: one of each kind of record and change."""
    seen: dict[str, int] = {}
    for number, line in enumerate(lines):
        record = json.loads(line)
        shape = ",".join(record) + ",".join(change[0] for change in record.get("changes", ()))
        seen.setdefault(shape, number)
    return list(seen.values())


def test_one_changed_word_is_found_and_nothing_of_its_commit_is_kept(
    sample: Sample, tmp_path: Path
) -> None:
    lines = [line.replace("the CEO is B", "the CEO is C") for line in sample.lines]
    file, copy = write(tmp_path / "export.jsonl", lines), tmp_path / "copy.db"
    done = in_process("import", file, "--db", copy)
    assert (done.code, done.out) == (7, "")
    assert done.err.startswith("worlddb: commit 2 ")
    assert done.err.count("\n") == 1
    with engine.open(copy, create=False) as db:
        assert [commit.seq for commit in db.log()] == [0, 1]
        assert db.check() == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"hello\n",
        b"[]\n",
        b'{"memory": 1}\n',
        b'{"worlddb": 3}\n',
        b"\xff\xfe\x00\n",
        b"\x1f\x8b",
        b"\x1f\x8bnot really compressed",
        b"[" * 100_000,
    ],
)
def test_what_is_no_export_makes_no_store(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "export"
    file.write_bytes(content)
    done = in_process("import", file, "--db", tmp_path / "copy.db")
    assert (done.code, done.out) == (6, "")
    assert [path.name for path in tmp_path.iterdir()] == ["export"]


def test_a_missing_file_makes_no_store(tmp_path: Path) -> None:
    done = in_process("import", tmp_path / "no.jsonl", "--db", tmp_path / "copy.db")
    assert (done.code, done.out) == (8, "")
    assert done.err == f"worlddb: {tmp_path}/no.jsonl: no such file or directory\n"
    assert list(tmp_path.iterdir()) == []


def test_a_compressed_export_that_was_cut_off_is_refused(sample: Sample, tmp_path: Path) -> None:
    packed = gzip.compress("".join(f"{line}\n" for line in sample.lines).encode())
    for length in (len(packed) - 1, len(packed) // 2, 30):
        file = tmp_path / "export.gz"
        file.write_bytes(packed[:length])
        done = in_process("import", file, "--db", tmp_path / f"{length}.db")
        assert (done.code, done.out) == (6, "")


def test_an_export_that_was_cut_inside_a_commit_is_refused(sample: Sample, tmp_path: Path) -> None:
    heads = {at for at, line in enumerate(sample.lines) if line.startswith('{"commit"')}
    for length in range(4, len(sample.lines), 7):
        if length not in heads:
            file = write(tmp_path / "export.jsonl", sample.lines[:length])
            done = in_process("import", file, "--db", tmp_path / f"{length}.db")
            assert done.code == 7, length


def test_an_export_that_was_cut_between_two_commits_is_refused(
    sample: Sample, tmp_path: Path
) -> None:
    heads = [at for at, line in enumerate(sample.lines) if line.startswith('{"commit"')]
    for length in heads:
        file = write(tmp_path / "export.jsonl", sample.lines[:length])
        done = in_process("import", file, "--db", tmp_path / f"{length}.db")
        assert done.code in REFUSALS, length


def test_a_count_that_swallows_the_rest_of_the_export_is_refused(
    sample: Sample, tmp_path: Path
) -> None:
    genesis = json.loads(sample.lines[1])
    assert genesis["commit"] == 0
    for kind in ("nodes", "edges", "notes"):
        changed = json.dumps(genesis | {kind: 10**9})
        file = write(tmp_path / "export.jsonl", [sample.lines[0], changed, *sample.lines[2:]])
        done = in_process("import", file, "--db", tmp_path / f"{kind}.db")
        assert done.code in REFUSALS, kind


@pytest.mark.parametrize("wrong", WRONG_VALUES, ids=repr)
def test_a_wrong_value_anywhere_is_refused_or_changes_nothing(
    sample: Sample, tmp_path: Path, wrong: Any
) -> None:
    surprises = []
    shift = [repr(value) for value in WRONG_VALUES].index(repr(wrong))
    for number in kinds(sample.lines):
        count = len(list(places(json.loads(sample.lines[number]))))
        for place in some(range(count), 3, start=shift):
            record = json.loads(sample.lines[number])
            container, key = list(places(record))[place]
            container[key] = wrong
            lines = [*sample.lines[:number], json.dumps(record), *sample.lines[number + 1 :]]
            surprises += surprise(lines, sample, f"line {number}, {key} = {wrong!r}")
    assert surprises == []


def surprise(lines: list[str], sample: Sample, what: str) -> list[str]:
    """Return what is wrong with how the engine took a damaged export, as a list of at most one."""
    with engine.open(":memory:") as db:
        try:
            db.replay(lines)
        except engine.WorldDBError:
            return [f"{what}: left an unsound store"] if db.check() else []
        except Exception as error:  # A crash is what this looks for.
            return [f"{what}: {type(error).__name__}: {error}"]
        return [] if db.root_state == sample.root_state else [f"{what}: was taken in silence"]


def test_lines_that_are_lost_doubled_or_swapped_are_refused(sample: Sample, tmp_path: Path) -> None:
    chosen = [at for at in kinds(sample.lines) if at > 0]
    surprises = []
    for at in chosen:
        lost = [*sample.lines[:at], *sample.lines[at + 1 :]]
        doubled = [*sample.lines[: at + 1], *sample.lines[at:]]
        swapped = list(sample.lines)
        swapped[at], swapped[at - 1] = swapped[at - 1], swapped[at]
        nested = [*sample.lines[:at], "[" * 100_000, *sample.lines[at:]]
        for what, lines in {
            "lost": lost,
            "doubled": doubled,
            "swapped": swapped,
            "nested": nested,
        }.items():
            surprises += surprise(lines, sample, f"line {at} {what}")
    assert surprises == []
