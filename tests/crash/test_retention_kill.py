"""A process that applies retention policies is killed; a hold holds, and what is due goes."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path

from crash import keeper
from crash.test_kill import doomed, last_words, lines_of

KEEPER = Path(__file__).with_name("keeper.py")
LIFE_DAYS = 1_000  # The clock of each life begins after those before it.
ROUNDS_MAX = 400  # Two days each: fewer than a life has.


def kill_keeper(path: Path, life: int, acks: int, delay_s: float) -> int:
    """Kill a keeper after some rounds; return how many it had said were done."""
    start = (life + 1) * LIFE_DAYS
    with doomed(path, start, KEEPER, ROUNDS_MAX) as process:
        said = lines_of(process.stdout)
        heard = list(itertools.islice(said, acks + 1))
        assert len(heard) == acks + 1, last_words(process)
        time.sleep(delay_s)  # Not a wait for anything: the moment of death is what varies.
        process.kill()
        heard += said
    _verify(path, start, len(heard) - 1)
    return len(heard) - 1


def _verify(path: Path, start: int, rounds: int) -> None:
    with keeper.opened(str(path), keeper.Clock(start + LIFE_DAYS - 1)) as memory:
        assert memory.db.check() == []
        said = {
            user: [one.text for one in memory.list(user_id=user, limit=500)]
            for user in keeper.WORDS
        }
        done = [f"Round {start}.{number}: a " for number in range(rounds)]
        for begin in done:
            assert any(text.startswith(begin) for text in said[keeper.HELD]), begin
            assert not any(text.startswith(begin) for text in said[keeper.GONE]), begin
            assert not any(text.startswith(begin) for text in said[keeper.ENDED]), begin
        held = said[keeper.HELD]
        memory.apply_retention()  # What the kill has left to do.
        assert len(memory.list(user_id=keeper.GONE)) == 0
        assert len(memory.list(user_id=keeper.ENDED)) == 0
        assert [one.text for one in memory.list(user_id=keeper.HELD, limit=500)] == held
        assert memory.db.clean()
        assert memory.db.check() == []
    word = keeper.WORDS[keeper.GONE][:7].encode()  # However the index has shortened it.
    files = sorted(one for one in path.parent.iterdir() if one.is_file())
    assert [one.name for one in files if word in one.read_bytes()] == []
    assert keeper.WORDS[keeper.HELD].encode() in path.read_bytes()


def test_a_killed_keeper_erases_nothing_under_hold_and_all_that_is_due(tmp_path: Path) -> None:
    moments = random.Random(3)
    for life, acks in enumerate((1, 0, 2)):
        assert kill_keeper(tmp_path / "store.db", life, acks, moments.uniform(0, 0.1)) >= acks
