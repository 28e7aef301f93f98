"""A writer is killed at any moment: what it acknowledged is there, and nothing is half-done."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import worlddb
from started_program import StartedProgram
from thinning import DEEP

WRITER = Path(__file__).with_name("writer.py")
ROUNDS = 26 if DEEP else 9
FRESH_ROUNDS = 30 if DEEP else 10
CHECKPOINT_PAGES = 300
KEY: str | None = None  # Of an encrypted store; its writer gets it by WORLDDB_TEST_KEY.
CROWD = Path(__file__).with_name("crowd.py")
WRITERS = 12  # Threads that write at once: enough for several to wait while one commits.


@contextlib.contextmanager
def doomed(
    path: Path | str, seed: int, program: Path = WRITER, number: int = CHECKPOINT_PAGES
) -> Iterator[StartedProgram]:
    """Start a writer; it is dead for certain when the block ends."""
    it = StartedProgram(program, [str(path), str(seed), str(number)], os.environ)
    try:
        yield it
    finally:
        it.kill()
        it.communicate()


def lines_of(pipe: IO[bytes] | None) -> Iterator[Any]:
    """Yield what the writer said; a line that was cut off was not said."""
    assert pipe is not None
    for line in pipe:
        if line.endswith(b"\n"):
            yield json.loads(line)


def last_words(writer: StartedProgram) -> bytes:
    """Return what a writer that should not have ended complained about."""
    writer.kill()
    return writer.communicate()[1]


class Witness:
    """Remembers every acknowledged commit of a file and holds the file to it."""

    def __init__(self, path: Path | str) -> None:
        self.path = path
        self.hashes: dict[int, str] = {}
        self.head = 0

    def kill(self, seed: int, acks: int, delay_s: float) -> int:
        """Let a writer live for some commits and a moment; return how many it acknowledged."""
        with doomed(self.path, seed) as writer:
            said = lines_of(writer.stdout)
            assert next(said) == "opening"
            heard: list[Any] = []
            if acks:
                assert next(said, None) == self.head, last_words(writer)
                heard += itertools.islice(said, acks)
                assert len(heard) == acks, last_words(writer)
            # Not a wait for anything: the moment of death is what varies.
            time.sleep(delay_s)
            writer.kill()
            heard += [line for line in said if isinstance(line, dict)]
            writer.wait()
            assert writer.stderr is not None
            assert writer.stderr.read() == b""
        self.verify(heard)
        return len(heard)

    def verify(self, heard: list[Any]) -> None:
        """Open the file again; it has what was acknowledged, and at most one commit more."""
        with worlddb.open(self.path, key=KEY) as db:
            log = db.log()
            self.hashes.update((ack["seq"], ack["hash"]) for ack in heard)
            found = {commit.seq: str(commit.hash) for commit in log}
            assert {seq: found.get(seq) for seq in self.hashes} == self.hashes
            for ack in heard:
                assert db.get(ack["node"]).known_from == log[ack["seq"]].time
            acknowledged = heard[-1]["seq"] if heard else self.head
            assert log[-1].seq in (acknowledged, acknowledged + 1)
            assert db.check() == []
            self.head = log[-1].seq


def kill_crowd(path: Path | str, seed: int, acks: int, delay_s: float) -> int:
    """Kill many writers at once; all they acknowledged is there. Return how many that are."""
    with doomed(path, seed, CROWD, WRITERS) as crowd:
        said = lines_of(crowd.stdout)
        heard = hear(crowd, said, acks)
        time.sleep(delay_s)  # Not a wait for anything: the moment of death is what varies.
        crowd.kill()
        heard += said
    verify_acks(path, heard)
    return len(heard)


def hear(writer: StartedProgram, said: Iterator[Any], acks: int) -> list[Any]:
    """Return so many acknowledgements as soon as they have come."""
    heard = list(itertools.islice(said, acks))
    assert len(heard) == acks, last_words(writer)
    return heard


def verify_acks(path: Path | str, heard: list[Any]) -> None:
    """Open the store again; it has every commit that was acknowledged."""
    with worlddb.open(path) as db:
        log = {commit.seq: commit for commit in db.log()}
        found = {seq: str(commit.hash) for seq, commit in log.items()}
        assert {ack["seq"]: found.get(ack["seq"]) for ack in heard} == {
            ack["seq"]: ack["hash"] for ack in heard
        }
        for ack in heard:
            assert db.get(ack["id"]).known_from == log[ack["seq"]].time
        assert db.check() == []


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    moments = random.Random(20_240_501)
    witness = Witness(tmp_path / "store.db")
    total = 0
    for seed in range(ROUNDS):
        acks = moments.choice((0, 1, 3, 8, 15))
        total += witness.kill(seed, acks, moments.uniform(0, 0.02))
    assert total >= ROUNDS * 4


def test_a_writer_killed_while_it_makes_the_file_leaves_one_that_opens(tmp_path: Path) -> None:
    moments = random.Random(7)
    for seed in range(FRESH_ROUNDS):
        witness = Witness(tmp_path / f"{seed}.db")
        witness.kill(seed, 0, moments.uniform(0, 0.03))


def test_a_file_whose_making_was_killed_many_times_is_sound(tmp_path: Path) -> None:
    moments = random.Random(11)
    witness = Witness(tmp_path / "store.db")
    for seed in range(10):
        with doomed(witness.path, seed) as writer:
            assert next(lines_of(writer.stdout)) == "opening"
            time.sleep(moments.uniform(0, 0.008))
    with worlddb.open(witness.path) as db:
        assert db.check() == []
        witness.head = db.log()[-1].seq
    assert witness.kill(99, 3, 0.0) >= 3


def test_a_killed_writer_does_not_block_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with doomed(path, 1) as writer:
        said = lines_of(writer.stdout)
        for _ in range(5):
            next(said)
    with worlddb.open(path, busy_timeout_s=0) as db, db.transaction() as tx:
        tx.create_node(type="Fact", name="after the crash")
    assert tx.commit is not None


def test_an_open_reader_outlives_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with worlddb.open(path) as db:
        for seed in range(3):
            head = db.log()[-1].seq
            with doomed(path, seed) as writer:
                said = lines_of(writer.stdout)
                assert next(said) == "opening"
                assert next(said) == head
                acks = [next(said) for _ in range(10)]
                writer.kill()
                acks += list(said)
            hashes = {commit.seq: str(commit.hash) for commit in db.log()}
            assert {ack["seq"]: ack["hash"] for ack in acks}.items() <= hashes.items()
            assert db.check() == []
