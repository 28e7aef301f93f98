"""Ctrl-C at any instant: closing never hangs, and an interrupted transaction is over."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import worlddb
from patience import until
from worlddb.store.sqlite import gate
from worlddb.store.sqlite.gate import Gate, Turn

PROGRAM = Path(__file__).with_name("interrupts.py")
ROUNDS = 150
PATIENCE_S = 240


def test_after_an_interrupt_at_any_instant_writes_reads_and_closes_go_on(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path / "store.db"), str(ROUNDS), "7"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert run.returncode == 0, run.stderr
    said = json.loads(run.stdout)
    assert said["interrupts"] > ROUNDS / 4
    assert said["failures"] == []
    assert said["check"] == []


def test_closing_gives_up_on_a_thread_that_never_comes_out_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "CLOSING_S_MAX", 0.05)
    db = worlddb.open(tmp_path / "store.db")
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with db.transaction():
            inside.set()
            leave.wait(PATIENCE_S)

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(PATIENCE_S)
    with pytest.raises(worlddb.ConflictError, match="end that call, then close the store again"):
        db.engine.store.close()
    leave.set()
    thread.join()
    db.engine.store.close()


def test_a_block_that_a_generator_keeps_open_is_no_interrupted_one(tmp_path: Path) -> None:
    def paused(db: worlddb.WorldDB):  # type: ignore[no-untyped-def]
        with db.transaction() as tx:
            tx.create_node(type="Fact", name="one")
            yield

    def begin(db: worlddb.WorldDB):  # type: ignore[no-untyped-def]
        block = paused(db)
        next(block)
        return block

    with worlddb.open(tmp_path / "store.db") as db:
        block = begin(db)
        with pytest.raises(worlddb.InvalidInputError, match="already has a transaction open"):
            db.transaction().__enter__()
        assert next(block, "done") == "done"
        assert [node.name for node in db.children()] == ["one"]


def _taken(queue: Gate) -> Turn:
    turn = queue.turn()
    queue.take(turn)
    return turn


def test_a_thread_that_ended_in_its_turn_holds_up_nobody() -> None:
    queue = Gate("store.db", PATIENCE_S)
    thread = threading.Thread(target=lambda: _taken(queue))
    thread.start()
    thread.join()
    assert queue.holds(_taken(queue))


def test_a_wake_up_that_was_lost_delays_nobody_for_long() -> None:
    queue = Gate("store.db", PATIENCE_S)
    mine = _taken(queue)
    thread = threading.Thread(target=lambda: _taken(queue))
    thread.start()
    until(lambda: len(queue._turns) == 2)
    mine.leave()  # As if an interrupt came before `pass_on`.
    until(lambda: not thread.is_alive())
