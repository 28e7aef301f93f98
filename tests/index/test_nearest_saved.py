"""The vector index on disk: whole or not at all, and without what was removed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from worlddb.errors import InvalidInputError, StorageError
from worlddb.index.nearest import STAMP_MAX, Nearest, saved_stamp

from .vector_sets import Floats, clustered, numbers

DIM = 8
COUNT = 300
STAMP = b"commit 7"


def made(exact_below: int, count: int = COUNT) -> tuple[Nearest, Floats]:
    index, vectors = Nearest(DIM, exact_below=exact_below), clustered(count, DIM, 1)
    index.put(np.arange(count), vectors)
    index.put(numbers(count, count + 1), np.zeros((2, DIM), np.float32))
    index.put(numbers(count + 2), vectors[:1])
    index.put(np.arange(20), clustered(20, DIM, 2))
    return index, vectors


def answers(index: Nearest) -> list[list[tuple[int, float]]]:
    return [index.search(query, 10) for query in clustered(20, DIM, 3)]


@pytest.fixture(params=[50, 1_000], ids=["with a graph", "exact"])
def exact_below(request: pytest.FixtureRequest) -> int:
    below: int = request.param
    return below


def test_a_loaded_index_answers_and_changes_like_the_one_saved(
    tmp_path: Path, exact_below: int
) -> None:
    path = str(tmp_path / "index")
    index, vectors = made(exact_below)
    index.save(path, STAMP)
    loaded = Nearest.load(path, STAMP, dim=DIM, exact_below=exact_below)
    assert loaded is not None
    assert len(loaded) == len(index)
    assert answers(loaded) == answers(index)
    for each in (index, loaded):
        each.put(np.arange(1_000, 1_200), clustered(200, DIM, 5))
        each.remove(np.arange(100))
    assert loaded.search(vectors[150], 1)[0][0] == 150
    assert len(loaded) == len(index) == COUNT + 103
    assert os.listdir(tmp_path) == ["index"]


def test_removed_rows_do_not_come_back_with_the_file(tmp_path: Path, exact_below: int) -> None:
    path = str(tmp_path / "index")
    index, vectors = made(exact_below)
    index.remove(np.arange(40, 60))
    index.save(path, STAMP)
    loaded = Nearest.load(path, STAMP, exact_below=exact_below)
    assert loaded is not None
    for query in vectors[40:60]:
        assert not {row for row, _ in loaded.search(query, COUNT)} & set(range(40, 60))


@pytest.mark.parametrize("removed", [5, 28, 200])
def test_a_saved_file_holds_nothing_of_removed_and_replaced_rows(
    tmp_path: Path, exact_below: int, removed: int
) -> None:
    path = str(tmp_path / "index")
    index, vectors = made(exact_below)
    index.save(path, STAMP)
    assert vectors[50].tobytes() in Path(path).read_bytes()
    index.remove(np.arange(50, 50 + removed))
    index.save(path, STAMP)
    body = Path(path).read_bytes()
    for row in (*range(1, 20), *range(50, 50 + removed)):  # Row 0's old vector has a live twin.
        assert vectors[row].tobytes() not in body
    assert vectors[0].tobytes() in body
    assert vectors[COUNT - 1].tobytes() in body


def test_scrubbing_keeps_the_rest_findable(tmp_path: Path) -> None:
    index, vectors = Nearest(DIM, exact_below=100), clustered(2_000, DIM, 1)
    index.build(np.arange(2_000), vectors)
    index.remove(np.arange(0, 180))
    index.save(str(tmp_path / "index"), STAMP)
    assert index._slots.used == 2_000, "this many are scrubbed, not built again"
    hits = 0
    for query in clustered(100, DIM, 3):
        true = 180 + np.argsort(-(vectors[180:] @ query))[:10]
        hits += len(set(true.tolist()) & {row for row, _ in index.search(query, 10)})
    assert hits >= 980


def test_an_entry_whose_row_is_gone_serves_its_twin_after_saving(tmp_path: Path) -> None:
    index, vectors = Nearest(DIM, exact_below=50), clustered(COUNT, DIM, 1)
    index.build(np.arange(COUNT), vectors)
    for row in range(500, 700):
        index.put(numbers(row), vectors[5:6])
    index.remove(numbers(5, 500))
    index.save(str(tmp_path / "index"), STAMP)
    assert [row for row, _ in index.search(vectors[5], 199)] == list(range(501, 700))


def test_the_stamp_can_be_read_without_loading(tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    index, _ = made(50)
    assert saved_stamp(path) is None
    for stamp in (b"", STAMP, bytes(range(256)) * 4):
        index.save(path, stamp)
        assert saved_stamp(path) == stamp
        assert Nearest.load(path, stamp) is not None
    with pytest.raises(InvalidInputError):
        index.save(path, b"x" * (STAMP_MAX + 1))


def test_only_the_file_asked_for_is_loaded(tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    index, _ = made(50)
    index.save(path, STAMP)
    assert Nearest.load(path, b"commit 8") is None
    assert Nearest.load(path, STAMP, dim=DIM + 1) is None
    assert Nearest.load(str(tmp_path / "other"), STAMP) is None
    assert Nearest.load(str(tmp_path), STAMP) is None
    assert Nearest.load(path, None) is not None


def test_a_file_cut_short_anywhere_is_not_loaded(tmp_path: Path, exact_below: int) -> None:
    path = tmp_path / "index"
    index, _ = made(exact_below)
    index.save(str(path), STAMP)
    body = path.read_bytes()
    cuts = {*range(0, 150), *range(150, len(body), 997), *range(len(body) - 40, len(body))}
    for cut in sorted(cuts):
        path.write_bytes(body[:cut])
        assert Nearest.load(str(path), None) is None, cut
        assert saved_stamp(str(path)) in (None, STAMP)
    path.write_bytes(body + b"\0")
    assert Nearest.load(str(path), None) is None


def test_a_file_with_one_wrong_bit_anywhere_is_not_loaded(tmp_path: Path, exact_below: int) -> None:
    path = tmp_path / "index"
    index, _ = made(exact_below)
    index.save(str(path), STAMP)
    body = bytearray(path.read_bytes())
    places = {*range(0, 150), *range(150, len(body), 997), *range(len(body) - 40, len(body))}
    for place in sorted(places):
        body[place] ^= 1 << (place % 8)
        path.write_bytes(body)
        assert Nearest.load(str(path), None) is None, place
        body[place] ^= 1 << (place % 8)
    path.write_bytes(body)
    assert Nearest.load(str(path), STAMP) is not None


def test_files_of_noise_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "index"
    rng = np.random.default_rng(1)
    for size in (0, 1, 8, 100, 5_000):
        path.write_bytes(rng.bytes(size))
        assert Nearest.load(str(path), None) is None
        assert saved_stamp(str(path)) is None


def test_a_save_that_fails_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    index, _ = made(50)
    path = tmp_path / "index"
    path.mkdir()
    (path / "inside").write_text("in the way")
    with pytest.raises(StorageError, match="cannot save the vector index"):
        index.save(str(path), STAMP)
    assert sorted(os.listdir(tmp_path)) == ["index"]
    with pytest.raises(StorageError):
        index.save(str(tmp_path / "no folder" / "index"), STAMP)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_save_on_a_full_disk_leaves_the_old_file_and_no_draft(tmp_path: Path) -> None:
    index, _ = made(50)
    path = tmp_path / "index"
    index.save(str(path), STAMP)
    before = path.read_bytes()
    os.symlink("/dev/full", f"{path}.{os.getpid()}.part")
    index.put(numbers(5_000), clustered(1, DIM, 9))
    with pytest.raises(StorageError, match="No space"):
        index.save(str(path), b"commit 8")
    assert os.listdir(tmp_path) == ["index"]
    assert path.read_bytes() == before
