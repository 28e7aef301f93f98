"""bench: figures of this machine, and nothing left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from .command import in_process, on_terminal

SMALL = ("--memories", 20, "--recalls", 10, "--embedder", "hash")


def test_bench_measures_writes_and_recalls_and_leaves_nothing(tmp_path: Path) -> None:
    done = in_process("bench", *SMALL, "--folder", tmp_path, "--json", env={"HOME": str(tmp_path)})
    assert (done.code, done.err) == (0, "")
    figures = done.data["figures"]
    assert {name: row["n"] for name, row in figures.items()} == {
        "write": 20,
        "first recall": 1,
        "recall": 10,
    }
    for row in figures.values():
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["max_ms"]
    assert done.data["machine"]["embedder"] == "hash-64"
    assert done.data["machine"]["bytes"] > 20_000
    assert list(tmp_path.iterdir()) == []


def test_bench_prints_a_table_and_draws_its_progress(tmp_path: Path) -> None:
    code, screen = on_terminal("bench", *SMALL, "--folder", tmp_path)
    assert code == 0
    assert "P50 ms" in screen
    assert screen.rindex("\x1b[K") < screen.index("P50 ms")
    assert "20 memories" in screen


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--memories", "0"], 2), (["--recalls", "0"], 2), (["--folder", "/no/such"], 8)],
)
def test_a_wrong_bench_is_one_line_and_a_code(arguments: list[str], code: int) -> None:
    done = in_process("bench", *arguments)
    assert (done.code, done.out) == (code, "")
    assert done.err.count("\n") == 1
