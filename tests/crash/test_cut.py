"""The writer dies at each single write to the disk: by a kill, or with the whole machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import worlddb
from thinning import DEEP

CUT = Path(__file__).with_name("cut.py")
COMMITS = 4
STEP = 17 if DEEP else 43
"""Not every write: a life has some 570, and `make chaos` has all of them. Odd, so that it meets
both the headers and the pages of the log."""
STEP_NORMAL = 61 if DEEP else 101


class Life(NamedTuple):
    """What one life acknowledged, and where its file is."""

    number: int
    path: Path
    acks: list[tuple[int, str, str]]


def lives(folder: Path, how: str, durability: str, step: int) -> list[Life]:
    """Run the script; return every life, the whole one last."""
    command = [sys.executable, str(CUT), str(folder), how, durability, str(step)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = []
    for child in sorted(folder.iterdir(), key=lambda path: int(path.name)):
        lines = (child / "acks").read_text().splitlines() if (child / "acks").exists() else []
        acks = [(int(line.split()[0]), *line.split()[1:]) for line in lines]
        found.append(Life(int(child.name), child / "store.db", acks))  # type: ignore[arg-type]
    return found


def verify(life: Life, *, may_lose: bool) -> None:
    """Hold a file to what was acknowledged; nothing is damaged and the next commit works."""
    with worlddb.open(life.path) as db:
        assert db.check() == [], f"life {life.number}"
        log = db.log()
        head = log[-1].seq
        if not may_lose:
            assert head in (len(life.acks), len(life.acks) + 1), f"life {life.number}"
        for seq, hash_, node in life.acks[:head]:
            assert str(log[seq].hash) == hash_
            assert db.get(node).known_from == log[seq].time
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="life goes on")
        assert tx.commit is not None
        assert tx.commit.seq == head + 1


@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_writer_killed_at_any_write_loses_nothing(tmp_path: Path, durability: str) -> None:
    found = lives(tmp_path, "kill", durability, STEP if durability == "full" else STEP_NORMAL)
    assert len(found[-1].acks) == COMMITS
    for life in found:
        verify(life, may_lose=False)


def test_a_power_cut_at_any_write_loses_nothing_acknowledged(tmp_path: Path) -> None:
    found = lives(tmp_path, "power", "full", STEP)
    assert len(found[-1].acks) == COMMITS
    for life in found:
        verify(life, may_lose=False)


def test_a_power_cut_with_normal_durability_leaves_a_sound_past(tmp_path: Path) -> None:
    found = lives(tmp_path, "power", "normal", STEP_NORMAL)
    assert len(found[-1].acks) == COMMITS
    for life in found:
        verify(life, may_lose=True)
